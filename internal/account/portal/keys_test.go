package portal

import (
	"fmt"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"palmares/auth"
	"palmares/ent/usage"
	"palmares/internal/core/ledger"
	"palmares/internal/core/quota"
	"palmares/internal/core/store"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
)

func TestKeyPages(t *testing.T) {
	t.Parallel()
	testkit.EachStore(t, func(t *testing.T, db *store.Store) {
		s := newSite(t, db)
		b := s.signIn("ana@example.com")
		started := time.Now()
		wantPage(t, b.get(home), 200, "You have no keys yet", "Create key")

		created := b.post("/account/keys", "name", "laptop")
		key := keyInPage.FindString(created.Body.String())
		wantPage(t, created, 200, "shown only once", "laptop", `curl -s -H "Authorization: Bearer `+key+`" https://palmares.example/api/v1/tools`,
			`"url": "https://palmares.example/mcp", "headers": {"Authorization": "Bearer `+key+`"}`)
		check.MustTrue(t, s.accepts(key), "got the new key refused, want it accepted")
		id := idOf(t, key)
		for _, path := range []string{home, "/account/keys/" + id + "/revoke", "/account/export", "/account/settings", "/account/usage"} {
			wantNoText(t, b.get(path), key, key[16:48])
		}
		wantPage(t, b.get(home), 200, "1 of 3 keys", "pal_"+id+"…", "never")
		check.OK(t, s.Keyring.SaveLastUsed(t.Context()))
		used := b.get(home).text
		usedOn := func(at time.Time) bool {
			return strings.Contains(used, at.UTC().Format("2 January 2006, 15:04 UTC")+"</time></td>")
		}
		if !usedOn(started) && !usedOn(time.Now()) { // it may have been in the minute before
			t.Errorf("got no last use today, want one: %s", used)
		}
		wantNoText(t, b.get(home), "never")

		b.makeKey("")
		b.makeKey("server")
		wantPage(t, b.get(home), 200, "3 of 3 keys", "Unnamed key", "You have reached the limit of 3 keys")
		wantPage(t, b.post("/account/keys", "name", "fourth"), 400, "The Developer plan includes 3 keys, and all of them are in use. Revoke one first")

		wantPage(t, b.get("/account/keys/"+id+"/revoke"), 200, "Revoke this key?", "laptop", "last used on")
		check.True(t, s.accepts(key), "got the key revoked without confirmation, want it accepted")
		revoked := b.post("/account/keys/" + id + "/revoke")
		wantRedirect(t, revoked, home)
		wantPage(t, b.get(revoked.to()), 200, "The key was revoked", "2 of 3 keys")
		wantNoText(t, b.get(home), id)
		check.True(t, !s.accepts(key), "got the revoked key accepted, want it refused at once")
		wantPage(t, b.post("/account/keys/"+id+"/revoke"), 404, "does not exist or was already revoked")
		wantPage(t, b.get("/account/keys/"+id+"/revoke"), 404, "does not exist or was already revoked")

		db.Write.APIKey.Update().SetRevokedAt(time.Now()).ExecX(t.Context())
		wantPage(t, b.get(home), 200, "All your keys are revoked")
	})
}

func TestKeysOfOtherAccounts(t *testing.T) {
	t.Parallel()
	s := newSQLiteSite(t)
	ana, ben := s.signIn("ana@example.com"), s.signIn("ben@example.com")
	key := ana.makeKey("secret project")
	id := idOf(t, key)
	for _, got := range []response{ben.get("/account/keys/" + id + "/revoke"), ben.post("/account/keys/" + id + "/revoke")} {
		wantPage(t, got, 404, "This key does not exist")
		wantNoText(t, got, "secret project")
	}
	unknown := ben.get("/account/keys/000000000000/revoke")
	got := ben.get("/account/keys/" + id + "/revoke")
	check.Equal(t, strings.ReplaceAll(got.text, id, "000000000000"), unknown.text)
	for _, path := range []string{home, "/account/export", "/account/usage", "/account/settings"} {
		wantNoText(t, ben.get(path), id, "secret project", "ana@example.com")
	}
	check.True(t, s.accepts(key), "got another account's key revoked, want it accepted")
}

var newestInForm = regexp.MustCompile(`name="newest" value="(\d+)"`)

// A double click creates one key, and the second response explains it.
func TestKeyFormSubmittedTwice(t *testing.T) {
	t.Parallel()
	testkit.EachStore(t, func(t *testing.T, db *store.Store) {
		s := newSite(t, db)
		b := s.signIn("ana@example.com")
		for existing := range 3 { // including at the limit
			form := newestInForm.FindStringSubmatch(b.get(home).Body.String())
			check.MustTrue(t, form != nil, "got no date of the newest key in the form, want one")
			var shown, refused atomic.Int64
			var all sync.WaitGroup
			submit := func() {
				got := b.post("/account/keys", "name", "laptop", "newest", form[1])
				if got.Code == 200 {
					shown.Add(1)
				} else {
					refused.Add(1)
					wantPage(t, got, 400, "you submitted the form twice", fmt.Sprintf("%d of 3 keys", existing+1), "Revoke")
				}
			}
			all.Go(submit)
			all.Go(submit)
			all.Wait()
			check.Must(t, db.Write.APIKey.Query().CountX(t.Context()), existing+1)
			check.Must(t, shown.Load(), 1)
			check.Must(t, refused.Load(), 1)
		}
	})
}

func TestSuspendedKeys(t *testing.T) {
	t.Parallel()
	s := newSQLiteSite(t)
	b := s.signIn("ana@example.com")
	s.db.Write.Account.Update().SetPlan("pro").ExecX(t.Context())
	var keys []string
	for range 5 {
		keys = append(keys, b.makeKey("key"))
	}
	wantPage(t, b.get(home), 200, "5 of 10 keys")
	wantNoText(t, b.get(home), "suspended")
	s.db.Write.Account.Update().SetPlan("developer").ExecX(t.Context())
	page := b.get(home)
	wantPage(t, page, 200, "5 of 3 keys", "only the 3 oldest are active", "upgrade to Pro", "You have 5 keys, but your plan includes only 3.")
	check.Equal(t, strings.Count(page.text, ">suspended<"), 2, "keys shown as suspended")
	s.Keyring.ForgetAccount(s.account("ana@example.com").ID)
	check.True(t, s.accepts(keys[2]) && !s.accepts(keys[3]), "got other keys suspended, want those that the page shows")
	// Revoking an older key activates a newer one at once.
	wantRedirect(t, b.post("/account/keys/"+idOf(t, keys[0])+"/revoke"), home)
	check.True(t, s.accepts(keys[3]) && !s.accepts(keys[4]), "got the next key suspended, want it active")
}

func TestHTMLIsEscaped(t *testing.T) {
	t.Parallel()
	s := newSQLiteSite(t)
	const evil = `<script>alert(1)</script>`
	b := s.signIn("a'&{x}@example.com")
	created := b.post("/account/keys", "name", evil)
	id := idOf(t, keyInPage.FindString(created.Body.String()))
	long := b.post("/account/keys", "name", evil+strings.Repeat("x", 90))
	for _, got := range []response{created, long, b.get(home), b.get("/account/keys/" + id + "/revoke"), b.get("/account?done=" + evil), b.get("/login/confirm?token=" + evil),
		s.browser().get("/login?next=/" + evil), b.get("/account/nothing" + evil), b.post("/account/email", "email", evil)} {
		check.Lacks(t, got.Body.String(), evil)
		check.Lacks(t, got.Body.String(), "a'&{x}")
	}
	wantPage(t, b.get(home), 200, evil) // as text
}

// The page shows how often each key called each endpoint in the last 7 days.
func TestUsageByEndpoint(t *testing.T) {
	t.Parallel()
	testkit.EachStore(t, func(t *testing.T, db *store.Store) {
		s := newSite(t, db)
		b := s.signIn("ana@example.com")
		wantNoText(t, b.get(home), "Usage by endpoint")
		laptop, server := idOf(t, b.makeKey("laptop")), idOf(t, b.makeKey(""))
		wantPage(t, b.get(home), 200, `<td class="number wide-only">no requests</td>`)
		ana, ben := auth.Subject(s.account("ana@example.com")), s.signIn("ben@example.com")
		calls := ledger.New(db, quota.NewCounter(), false, s.Log)
		today := quota.DayOf(time.Now())
		for _, c := range []struct {
			call ledger.Call
			n    int
		}{
			{ledger.Call{Day: today, Subject: ana, Key: laptop, Endpoint: "/api/v1/tools/{slug}"}, 1},
			{ledger.Call{Day: today - 5, Subject: ana, Key: laptop, Endpoint: "/graphql"}, 1200},
			{ledger.Call{Day: today, Subject: ana, Key: laptop, Endpoint: "/graphql"}, 34},
			{ledger.Call{Day: today - 8, Subject: ana, Key: laptop, Endpoint: "/api/v1/long-ago"}, 1},
			{ledger.Call{Day: today, Subject: ana, Key: server, Endpoint: "/mcp"}, 1},
			{ledger.Call{Day: today, Subject: ana, Key: "", Endpoint: "/graphql"}, 3},
			{ledger.Call{Day: today, Subject: ana, Key: auth.TokenKey, Endpoint: "/q/{handle}/{name}"}, 4},
			{ledger.Call{Day: today, Subject: ana, Key: "forgotten", Endpoint: "other"}, 5},
			{ledger.Call{Day: today, Subject: ana + 1, Key: "foreign", Endpoint: "/api/v1/foreign"}, 6},
		} {
			calls.Add(c.call, c.n)
		}
		calls.Write(t.Context())
		page := b.get(home)
		wantPage(t, page, 200, `<td class="number wide-only">1,235 requests</td>`, `<td class="number wide-only">1 request</td>`)
		wantNoText(t, page, "long-ago", "foreign", "1 requests")
		var got []string
		for _, row := range usageRow.FindAllStringSubmatch(page.text, -1) {
			got = append(got, strings.TrimSpace(tags.ReplaceAllString(strings.Join(row[1:], "|"), "")))
		}
		want := []string{
			"laptop pal_" + laptop + "…|/graphql (GraphQL)|1,234", "laptop pal_" + laptop + "…|/api/v1/tools/{slug}|1", "pal_" + server + "…|/mcp (MCP)|1",
			"Signed-in browser|/graphql (GraphQL)|3", "pal_forgotten…|Other paths|5", "Token|/q/{handle}/{name} (saved queries)|4",
		}
		check.Slices(t, got, want, "rows")
		b.post("/account/keys/" + server + "/revoke")
		wantPage(t, b.get(home), 200, "pal_"+server+`…</code> <span class="mark">revoked</span>`)
		check.Contains(t, b.get("/account/export").text, `"endpoint": "/q/{handle}/{name}"`, "export")
		wantNoText(t, ben.get(home), laptop)

		b.post("/account/delete", "email", "ana@example.com")
		if n := db.Write.Usage.Query().Where(usage.Subject(int64(ana)), usage.DayLT(today.String())).CountX(t.Context()); n != 0 {
			t.Errorf("got %d rows of a deleted account before today, want 0", n)
		}
	})
}

var (
	usageRow = regexp.MustCompile(`<tr>\s*<th scope="row">([^\n]*)</th>\s*<td>([^\n]*)</td>\s*<td class="number">([^\n]*)</td>\s*</tr>`)
	tags     = regexp.MustCompile(`<[^>]*>`)
)
