package portal

import (
	"fmt"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"palmares/internal/core/store"
	"palmares/internal/dev/testkit"
)

func TestKeysOnThePages(t *testing.T) {
	t.Parallel()
	testkit.EachStore(t, func(t *testing.T, db *store.Store) {
		s := newSite(t, db)
		b := s.signIn("ana@example.com")
		begun := time.Now()
		wantPage(t, b.get(home), 200, "You have no key yet", "Make a key")

		made := b.post("/account/keys", "name", "laptop")
		key := keyInPage.FindString(made.Body.String())
		wantPage(t, made, 200, "shown this once", "laptop", `curl -s -H "Authorization: Bearer `+key+`" https://palmares.example/api/v1/tools`)
		if !s.opens(key) {
			t.Fatal("the key opens nothing")
		}
		id := idOf(t, key)
		for _, path := range []string{home, "/account/keys/" + id + "/revoke", "/account/export", "/account/settings", "/account/usage"} {
			wantNot(t, b.get(path), key, key[16:48])
		}
		wantPage(t, b.get(home), 200, "1 of 3 keys", "pal_"+id+"…", "never")
		if err := s.Keyring.WriteUsed(t.Context()); err != nil {
			t.Fatal(err)
		}
		used := b.get(home).text
		usedOn := func(at time.Time) bool {
			return strings.Contains(used, at.UTC().Format("2 January 2006")+"</time></td>\n  <td><a")
		}
		if !usedOn(begun) && !usedOn(time.Now()) { // midnight may be between
			t.Errorf("it does not say that the key was used today: %s", used)
		}
		wantNot(t, b.get(home), "never")

		b.makeKey("")
		b.makeKey("server")
		wantPage(t, b.get(home), 200, "3 of 3 keys", "without a name", "All 3 keys of your plan are made")
		wantPage(t, b.post("/account/keys", "name", "fourth"), 400, "revoke one first")

		wantPage(t, b.get("/account/keys/"+id+"/revoke"), 200, "Revoke this key?", "laptop", "last used on")
		if !s.opens(key) {
			t.Error("asking revoked it")
		}
		gone := b.post("/account/keys/" + id + "/revoke")
		wantGo(t, gone, home)
		wantPage(t, b.get(gone.to()), 200, "The key is revoked", "2 of 3 keys")
		wantNot(t, b.get(home), id)
		if s.opens(key) {
			t.Error("it is not revoked at once")
		}
		wantPage(t, b.post("/account/keys/"+id+"/revoke"), 404, "no such key")
		wantPage(t, b.get("/account/keys/"+id+"/revoke"), 404, "no such key")

		db.Write.APIKey.Update().SetRevokedAt(time.Now()).ExecX(t.Context())
		wantPage(t, b.get(home), 200, "All of your keys are revoked")
	})
}

func TestKeysOfOthers(t *testing.T) {
	t.Parallel()
	s := onSQLite(t)
	ana, ben := s.signIn("ana@example.com"), s.signIn("ben@example.com")
	key := ana.makeKey("secret project")
	id := idOf(t, key)
	for _, got := range []answer{ben.get("/account/keys/" + id + "/revoke"), ben.post("/account/keys/" + id + "/revoke")} {
		wantPage(t, got, 404, "You have no such key")
		wantNot(t, got, "secret project")
	}
	nobody := ben.get("/account/keys/000000000000/revoke")
	if got := ben.get("/account/keys/" + id + "/revoke"); strings.ReplaceAll(got.text, id, "000000000000") != nobody.text {
		t.Error("it is told that there is such a key")
	}
	for _, path := range []string{home, "/account/export", "/account/usage", "/account/settings"} {
		wantNot(t, ben.get(path), id, "secret project", "ana@example.com")
	}
	if !s.opens(key) {
		t.Error("another account's key was revoked")
	}
}

func TestKeysMadeAtOnce(t *testing.T) {
	t.Parallel()
	testkit.EachStore(t, func(t *testing.T, db *store.Store) {
		s := newSite(t, db)
		b := s.signIn("ana@example.com")
		b.makeKey("1")
		b.makeKey("2")
		var made atomic.Int64
		atOnce(6, func(int) {
			if b.post("/account/keys", "name", "3").Code == 200 {
				made.Add(1)
			}
		})
		if n := db.Write.APIKey.Query().CountX(t.Context()); made.Load() != 1 || n != 3 {
			t.Errorf("%d more were made, %d are there", made.Load(), n)
		}
	})
}

var newestInForm = regexp.MustCompile(`name="newest" value="(\d+)"`)

// A double click makes one key, and says what became of it.
func TestKeyFormSentTwice(t *testing.T) {
	t.Parallel()
	testkit.EachStore(t, func(t *testing.T, db *store.Store) {
		s := newSite(t, db)
		b := s.signIn("ana@example.com")
		for made := range 3 { // also at the limit
			form := newestInForm.FindStringSubmatch(b.get(home).Body.String())
			if form == nil {
				t.Fatal("the form does not know the newest key")
			}
			var shown, refused atomic.Int64
			atOnce(2, func(int) {
				got := b.post("/account/keys", "name", "laptop", "newest", form[1])
				if got.Code == 200 {
					shown.Add(1)
				} else {
					refused.Add(1)
					wantPage(t, got, 400, "This form was sent twice", fmt.Sprintf("%d of 3 keys", made+1), "Revoke")
				}
			})
			if n := db.Write.APIKey.Query().CountX(t.Context()); n != made+1 || shown.Load() != 1 || refused.Load() != 1 {
				t.Fatalf("%d keys are made, %d shown, %d refused", n, shown.Load(), refused.Load())
			}
		}
	})
}

// Who makes keys without end is told so in words.
func TestKeysMadeWithoutEnd(t *testing.T) {
	t.Parallel()
	s := onSQLite(t)
	b := s.signIn("ana@example.com")
	for range 30 {
		wantGo(t, b.post("/account/keys/"+idOf(t, b.makeKey("x"))+"/revoke"), home)
	}
	wantPage(t, b.post("/account/keys", "name", "one more"), 429, "30 keys were made within 24 hours", "All of your keys are revoked")
	if n := strings.Count(b.get("/account/export").text, `"revoked_at": "`); n != 30 {
		t.Errorf("%d keys are exported", n)
	}
}

func TestSuspendedKeysAreShown(t *testing.T) {
	t.Parallel()
	s := onSQLite(t)
	b := s.signIn("ana@example.com")
	s.db.Write.Account.Update().SetPlan("pro").ExecX(t.Context())
	var keys []string
	for range 5 {
		keys = append(keys, b.makeKey("key"))
	}
	wantPage(t, b.get(home), 200, "5 of 10 keys")
	wantNot(t, b.get(home), "suspended")
	s.db.Write.Account.Update().SetPlan("developer").ExecX(t.Context())
	page := b.get(home)
	wantPage(t, page, 200, "5 of 3 keys", "the oldest 3 go on", "return to Pro")
	if n := strings.Count(page.text, ">suspended<"); n != 2 {
		t.Errorf("%d are shown as suspended", n)
	}
	for _, key := range keys {
		s.Keyring.Forget(idOf(t, key))
	}
	if !s.opens(keys[2]) || s.opens(keys[3]) {
		t.Error("other keys are suspended than the page says")
	}
	// Revoking an older one lets a younger one go on, at once.
	wantGo(t, b.post("/account/keys/"+idOf(t, keys[0])+"/revoke"), home)
	if !s.opens(keys[3]) || s.opens(keys[4]) {
		t.Error("the next one does not go on")
	}
}

func TestHTMLIsShown(t *testing.T) {
	t.Parallel()
	s := onSQLite(t)
	const evil = `<script>alert(1)</script>`
	b := s.signIn("a'&{x}@example.com")
	made := b.post("/account/keys", "name", evil)
	id := idOf(t, keyInPage.FindString(made.Body.String()))
	long := b.post("/account/keys", "name", evil+strings.Repeat("x", 90))
	for _, got := range []answer{made, long, b.get(home), b.get("/account/keys/" + id + "/revoke"), b.get("/account?done=" + evil), b.get("/login/confirm?token=" + evil),
		s.browser().get("/login?next=/" + evil), b.get("/account/nothing" + evil), b.post("/account/email", "email", evil)} {
		if strings.Contains(got.Body.String(), evil) || strings.Contains(got.Body.String(), "a'&{x}") {
			t.Errorf("it is run: %s", got.Body)
		}
	}
	wantPage(t, b.get(home), 200, evil) // as text
}
