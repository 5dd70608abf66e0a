package browser_test

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"palmares/auth"
	"palmares/internal/core/lang"
	"palmares/internal/core/ledger"
	"palmares/internal/core/quota"
	"palmares/internal/core/store"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
	"palmares/internal/dev/testkit/blackbox"
	"palmares/internal/dev/testkit/browser"
)

// viewer opens pages of a server in a browser.
type viewer struct {
	*testing.T
	chrome *browser.Browser
	server *blackbox.Server
	base   string
	db     *store.Store
}

// signIn signs in to a new account. Each state of a page has its own account.
func (v *viewer) signIn(email string) *browser.Page {
	v.Helper()
	p := v.requestLink(email)
	link, _ := v.server.WaitForEmail(v, email, 0)
	p.Go(link)
	p.Follow("main button")
	return p
}

// requestLink submits the sign-in form, which sends a link.
func (v *viewer) requestLink(email string) *browser.Page {
	v.Helper()
	p := v.chrome.Open(v, browser.Look{}, v.base+"/login")
	p.Fill("#email", email)
	p.Follow("main button")
	return p
}

func (v *viewer) check(p *browser.Page, name string) {
	v.Helper()
	checkPage(v.T, p, name)
}

// view is how a visitor sees a page.
type view struct {
	lang.Language
	browser.Look
}

// views covers both languages and both color schemes. Two of the four
// combinations are enough, because colors do not depend on the language.
var views = []view{{lang.English, browser.Look{}}, {lang.French, browser.Look{Dark: true, Width: 390}}}

// widths are those of a desktop, a tablet and a phone.
var widths = []int{1280, 768, 390}

func (v view) String() string { return string(v.Language) + "-" + lookName(v.Look) }

// inEachView checks a page in each view and width, after some optional actions.
func (v *viewer) inEachView(visitor *browser.Page, name, path string, then ...func(*browser.Page)) {
	v.Helper()
	path = strings.TrimPrefix(path, lang.English.Path(""))
	for _, view := range views {
		v.Run(fmt.Sprintf("%s-%s", name, view), func(t *testing.T) { // which closes its tab
			p := visitor.OpenTab(t, view.Look)
			p.Go(v.base + view.Path(path))
			for _, act := range then {
				act(p)
			}
			p.Axe()
			for _, view.Width = range widths {
				p.Change(view.Look)
				p.Screenshot(fmt.Sprintf("%s-%s", name, view))
				checkFit(t, p, fmt.Sprintf("%s in %s at %d px", path, view.Language, view.Width))
			}
		})
	}
}

func (v *viewer) must(err error) {
	v.Helper()
	if err != nil {
		v.Fatal(err)
	}
}

// All pages of the portal are accessible, in every state.
func TestPortalIsAccessible(t *testing.T) {
	t.Parallel()
	cfg := blackbox.Demo(t)
	s := blackbox.Serve(t, cfg, "--demo", "--stripe-secret-key", "sk_test_123", "--stripe-webhook-secret", "whsec_test",
		"--stripe-api-base", testkit.StartStripeMock(t))
	base := "http://" + s.Address
	db := testkit.Open(t, cfg)
	v := &viewer{T: t, chrome: browser.Start(t), server: s, base: base, db: db}
	notSelling := "http://" + blackbox.Serve(t, cfg, "--contact-email", "hello@palmares.example").Address // on the same database, so sessions are valid on both

	visitor := v.chrome.Open(t, browser.Look{}, base+"/login")
	v.inEachView(visitor, "login", "/login")
	v.inEachView(visitor, "link-unknown", "/login/confirm?token=nobodyhasit")
	visitor.Fill("#email", "ola@example.com")
	visitor.Follow("main button")
	v.inEachView(visitor, "code", "/login/code")
	visitor.Fill("#code", "000 000")
	visitor.Follow("main button")
	v.check(visitor, "code-wrong")
	link, _ := s.WaitForEmail(t, "ola@example.com", 0)
	v.inEachView(visitor, "link", strings.TrimPrefix(link, base))
	visitor.Go(link)
	visitor.Follow("main button")
	v.inEachView(visitor, "link-used", strings.TrimPrefix(link, base))

	ola := visitor
	v.inEachView(ola, "keys-none", "/account")
	v.inEachView(ola, "key-new", "/account", func(p *browser.Page) {
		p.Fill("#name", "<b>machine</b>")
		p.Follow("main form button")
	})
	ola.Go(base + "/account")
	ola.Fill("#name", "<i>the last</i>")
	ola.Follow("main form button")
	v.inEachView(ola, "keys-limit", "/account")
	ola.Go(base + "/account")
	ola.Follow("tbody a.button")
	v.inEachView(ola, "key-revoke", strings.TrimPrefix(ola.URL(), base))
	v.inEachView(ola, "usage-one", "/account/usage")
	v.inEachView(ola, "plan-developer", "/account/plan")
	v.base = notSelling
	v.inEachView(ola, "plan-closed", "/account/plan")
	v.base = base
	v.inEachView(ola, "settings", "/account/settings")
	v.inEachView(ola, "delete", "/account/delete")
	v.inEachView(ola, "delete-refused", "/account/delete", func(p *browser.Page) {
		p.Fill("#email", "somebody@example.com")
		p.Follow("main button")
	})
	v.inEachView(ola, "not-found", "/account/nothing")
	v.emailChange(ola)
	v.invalidMessages()
	v.suspendedKeys()
	v.justPaid()
	v.closedSignUp()

	busy := v.signIn("busy@example.com")
	account := db.Read.Account.GetX(t.Context(), accountID(t, db, "busy@example.com"))
	subject := auth.Subject(account)
	for back := range 30 {
		day := quota.DayOf(time.Now().AddDate(0, 0, -back)).String()
		requests := []int{1000, 12, 640, 0, 411, 3}[back%6]
		check.OK(t, db.Write.Usage.Create().SetSubject(int64(subject)).SetDay(day).SetKey("").SetEndpoint("").SetRequests(requests).Exec(t.Context()))
	}
	key, _, err := auth.NewAccounts(db).CreateKey(t.Context(), account, "a machine")
	v.must(err)
	parsed, _ := auth.ParseKey(key)
	calls, today := ledger.New(db, quota.NewCounter(), false, slog.New(slog.DiscardHandler)), quota.DayOf(time.Now())
	for i, endpoint := range []string{"/api/v1/tools/{slug}", "/graphql", "/mcp", "/q/{handle}/{name}", "other"} {
		calls.Add(ledger.Call{Day: today, Subject: subject, Key: []string{parsed.ID, "", auth.TokenKey}[i%3], Endpoint: endpoint}, 1+i*i*1234)
	}
	calls.Write(t.Context())
	v.inEachView(busy, "usage-spent", "/account/usage")
	v.inEachView(busy, "keys-spent", "/account")

	for _, customer := range []struct {
		name, status string
		since, end   time.Time
		cancels      bool
	}{
		{"pays", "active", time.Time{}, time.Now().AddDate(0, 0, 20), false},
		{"leaves", "active", time.Time{}, time.Now().AddDate(0, 0, 20), true},
		{"failed", "past_due", time.Now().AddDate(0, 0, -2), time.Now().AddDate(0, 1, 0), false},
		{"unpaid", "unpaid", time.Time{}, time.Now(), false},
	} {
		email := customer.name + "@example.com"
		p := v.signIn(email)
		id := accountID(t, db, email)
		row := db.Write.Customer.Create().SetID("cus_" + customer.name).SetAccountID(id).SetEmail(email).SetStatus(customer.status).
			SetSubscription("sub_" + customer.name).SetPeriodEnd(customer.end).SetCancels(customer.cancels)
		if !customer.since.IsZero() {
			row.SetPastDueSince(customer.since)
		}
		check.OK(t, row.Exec(t.Context()))
		if customer.status != "unpaid" {
			check.OK(t, db.Write.Account.UpdateOneID(id).SetPlan("pro").Exec(t.Context()))
		}
		v.inEachView(p, "plan-"+customer.name, "/account/plan")
		v.inEachView(p, "keys-"+customer.name, "/account")
		if customer.name != "pays" {
			continue
		}
		v.inEachView(p, "webhooks-none", "/account/webhooks")
		p.Go(base + "/account/webhooks")
		p.Fill("#url", "http://"+s.Address+"/nobody-is-here")
		p.Follow("main section button")
		v.check(p, "webhook-secret")
		p.Follow("main a.button")
		p.Follow("main form button") // a test event, which is not delivered
		v.check(p, "webhook-tested")
		webhook, _, _ := strings.Cut(strings.TrimPrefix(p.URL(), base), "?")
		v.inEachView(p, "webhook", webhook)
		p.Go(base + webhook)
		p.Follow("tbody a")
		v.inEachView(p, "webhook-attempt", strings.TrimPrefix(p.URL(), base))
		v.inEachView(p, "webhook-rotate", webhook+"/rotate")
		v.inEachView(p, "webhook-remove", webhook+"/remove")
		v.inEachView(p, "queries-none", "/account/queries")
		v.inEachView(p, "query-new", "/account/queries/new")
		v.inEachView(p, "downloads-none", "/account/downloads")
		v.inEachView(p, "webhooks", "/account/webhooks")
	}
}

// emailChange changes the email address, up to the last button.
func (v *viewer) emailChange(p *browser.Page) {
	p.Go(v.base + "/account/settings")
	p.Fill("#email", "olga@example.com")
	p.Follow("main form button")
	v.inEachView(p, "address-code", "/account/email/code")
	link, _ := v.server.WaitForEmail(v, "olga@example.com", 0)
	v.inEachView(p, "address-link", strings.TrimPrefix(link, v.base))
}

// invalidMessages opens sign-in messages that are locked or expired.
func (v *viewer) invalidMessages() {
	p := v.requestLink("late@example.com")
	link, _ := v.server.WaitForEmail(v, "late@example.com", 0)
	v.must(v.db.Write.Confirmation.Update().SetTries(5).Exec(v.Context()))
	v.inEachView(p, "code-locked", "/login/code")
	_, err := v.db.Write.ExecContext(v.Context(), "UPDATE confirmations SET expires_at = $1", time.Now().UTC().Add(-time.Second))
	v.must(err)
	v.inEachView(p, "link-expired", strings.TrimPrefix(link, v.base))
}

// suspendedKeys opens the keys of an account that no longer has Pro.
func (v *viewer) suspendedKeys() {
	p := v.signIn("former@example.com")
	accounts := auth.NewAccounts(v.db)
	former, err := accounts.Find(v.Context(), "former@example.com")
	v.must(err)
	v.must(v.db.Write.Account.UpdateOne(former).SetPlan("pro").Exec(v.Context()))
	for range 5 {
		_, _, err := accounts.CreateKey(v.Context(), former, "a machine")
		v.must(err)
	}
	v.must(v.db.Write.Account.UpdateOne(former).SetPlan("developer").Exec(v.Context()))
	v.inEachView(p, "keys-suspended", "/account")
	p.Go(v.base + "/account")
	if n := strings.Count(p.Text("tbody"), "suspended"); n != 2 {
		v.Errorf("got %d suspended keys, want 2", n)
	}
}

// justPaid opens the page after a payment that Stripe has not yet confirmed.
func (v *viewer) justPaid() {
	p := v.signIn("paid@example.com")
	v.must(v.db.Write.Customer.Create().SetID("cus_paid").SetAccountID(accountID(v, v.db, "paid@example.com")).SetEmail("paid@example.com").Exec(v.Context()))
	v.inEachView(p, "plan-confirming", "/account/plan?done=paying")
}

// closedSignUp opens the sign-in page of a server without a mail server.
func (v *viewer) closedSignUp() {
	selling := v.base
	defer func() { v.base = selling }()
	v.base = "http://" + blackbox.ServeWithoutSignIn(v.T).Address
	v.inEachView(v.chrome.Open(v, browser.Look{}, v.base+"/login"), "login-closed", "/login")
}

func lookName(look browser.Look) string {
	scheme, width := "light", 1280
	if look.Dark {
		scheme = "dark"
	}
	if look.Width > 0 {
		width = look.Width
	}
	return fmt.Sprintf("%s-%d", scheme, width)
}

func accountID(t testing.TB, db *store.Store, email string) int {
	t.Helper()
	account := check.Try(auth.NewAccounts(db).Find(t.Context(), email)).OK(t)
	return account.ID
}
