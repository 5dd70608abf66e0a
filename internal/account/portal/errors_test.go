package portal

import (
	"fmt"
	"io"
	"net/http/httptest"
	"strings"
	"testing"

	"palmares/internal/core/store"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
	"palmares/internal/dev/testkit/wait"
)

func TestInvalidForms(t *testing.T) {
	t.Parallel()
	s := newSQLiteSite(t)
	b := s.signIn("ana@example.com")
	for name, c := range map[string]struct {
		body   io.Reader
		status int
		text   string
	}{
		"large":      {strings.NewReader("name=" + strings.Repeat("x", 20<<10)), 413, "larger than"},
		"broken":     {strings.NewReader("name=%zz"), 400, "could not be read"},
		"semicolons": {strings.NewReader("name=a;b=c"), 400, "could not be read"},
		"NUL byte":   {strings.NewReader("name=%00"), 400, "a single line"},
	} {
		t.Run(name, func(t *testing.T) { wantPage(t, b.send("POST", "/account/keys", c.body), c.status, c.text) })
	}
	check.Equal(t, s.db.Write.APIKey.Query().CountX(t.Context()), 0, "keys")
}

func TestOtherMethods(t *testing.T) {
	t.Parallel()
	s := newSQLiteSite(t)
	b := s.signIn("ana@example.com")
	key := idOf(t, b.makeKey("laptop"))
	for _, method := range []string{"PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "BREW"} {
		for _, path := range []string{"/login", "/logout", "/account", "/account/keys", "/account/keys/" + key + "/revoke", "/account/delete", "/account/logout-everywhere"} {
			got := b.send(method, path, strings.NewReader("email=ana@example.com"))
			check.True(t, got.Code == 405 || got.Code == 404, "%s %s: got status %d, want 404 or 405", method, path, got.Code)
			wantSecurityHeaders(t, method+" "+path, got)
		}
	}
	for _, path := range []string{"/logout", "/account/delete/", "/account/logout-everywhere", "/account/keys", "/account/nothing", "/login/nothing"} {
		got := b.get(path)
		check.True(t, got.Code == 405 || got.Code == 404, "GET %s: got status %d, want 404 or 405", path, got.Code)
		check.Lacks(t, got.Body.String(), "ana@example.com", "GET %s: a page with the email address", path)
	}
	for path, to := range map[string]string{"/account/": "/account", "/login/?next=%2Faccount": "/login?next=%2Faccount"} {
		got := b.get(path)
		check.Equal(t, got.Code, 303, "GET %s", path)
		check.Equal(t, got.to(), to, "GET %s", path)
	}
	check.True(t, b.isSignedIn(), "got a change, want none")
	check.Equal(t, s.db.Write.APIKey.GetX(t.Context(), key).RevokedAt, nil)
}

func TestDatabaseUnavailable(t *testing.T) {
	t.Parallel()
	cfg, proxies := testkit.Postgres(t), testkit.StartToxiproxy(t)
	cfg.DatabaseURL = proxies.Between("database", cfg.DatabaseURL)
	s := newSite(t, testkit.Open(t, cfg))
	b := s.signIn("ana@example.com")
	sent := s.browser().start("ben@example.com")
	proxies.Cut("database")
	stranger := s.browser()
	wantPage(t, stranger.get("/login"), 200) // needs no database
	for _, got := range []response{
		b.get(home), b.get("/account/usage"), b.get("/account/export"), b.post("/account/keys", "name", "x"), b.post("/account/delete", "email", "ana@example.com"),
		stranger.post("/login", "email", "eva@example.com"), stranger.get(sent.path(t)), stranger.post("/login/confirm", "token", sent.token(t)),
	} {
		wantPage(t, got, 503, "Our database is unavailable", "Try again in a minute")
		wantSecurityHeaders(t, "without a database", got)
		check.True(t, got.Header().Get("Retry-After") != "", "got no Retry-After, want one")
		for _, word := range []string{"sql", "pq:", "dial", "refused", "127.0.0.1", "EOF", "ent:"} {
			check.Lacks(t, got.Body.String(), word)
		}
	}
	check.Equal(t, s.smtp.Count("eva@example.com"), 0, "email that cannot be used")
}

// Pages are available while an import or a migration writes to SQLite.
func TestPagesDuringAWrite(t *testing.T) {
	t.Parallel()
	cfg := testkit.SQLite(t)
	s := newSite(t, testkit.Open(t, cfg))
	b := s.signIn("ana@example.com")
	b.makeKey("laptop")
	for name, db := range map[string]*store.Store{"same process": s.db, "another process": testkit.Open(t, cfg)} {
		writing := check.Try(db.Write.Tx(t.Context())).OK(t)
		writing.Account.Update().SetManualPlan(false).ExecX(t.Context())
		shown := make(chan struct{})
		go func() {
			defer close(shown)
			for _, path := range []string{home, "/account/usage", "/account/plan", "/account/settings", "/account/export", "/account/delete", "/account/plan/done"} {
				got := b.get(path)
				check.True(t, got.Code < 400, "writer in the %s, %s: got status %d, want success", name, path, got.Code)
			}
		}()
		wait.Receive(t, "pages during a write", shown)
		check.OK(t, writing.Rollback())
	}
}

// If a change may have been saved, the page does not say that it was not.
func TestUncertainChange(t *testing.T) {
	t.Parallel()
	s := newSQLiteSite(t)
	for unsure, text := range map[bool]string{false: "Nothing was changed", true: "may or may not have been saved"} {
		w := httptest.NewRecorder()
		s.setHeaders(w.Header())
		s.fail(&visit{Request: httptest.NewRequest("POST", home, nil), w: w}, &store.Error{Message: "the words of a database", CommitUnknown: unsure})
		got := newResponse(w)
		wantPage(t, got, 503, text)
		wantNoText(t, got, "the words of a database")
		if unsure {
			wantNoText(t, got, "Nothing was changed")
		}
	}
}

// Error pages link to the account only if somebody is signed in.
func TestErrorPageLinks(t *testing.T) {
	t.Parallel()
	s := newSQLiteSite(t)
	for _, got := range []response{s.browser().get("/account/nothing"), s.browser().get("/login/confirm?token=x"), s.browser().send("POST", "/login", strings.NewReader("email=%zz"))} {
		wantNoText(t, got, "Go to your account")
		check.Contains(t, got.text, `href="/login">Sign in</a>`, "link to sign in")
	}
	b := s.signIn("ana@example.com")
	for _, got := range []response{b.get("/account/nothing"), b.send("POST", "/account/keys", strings.NewReader("name=%zz"))} {
		wantNoText(t, got, ">Sign in<")
		check.Contains(t, got.text, "Go to your account", "link to the account")
	}
}

// A rejected form is shown again with what was typed.
func TestRejectedFormsKeepInput(t *testing.T) {
	t.Parallel()
	s := newSQLiteSite(t)
	b := s.pro("ana@example.com")
	b.post("/account/webhooks", "url", "https://example.com/hook")
	endpoint := endpointPath(s.db.Write.Endpoint.Query().OnlyX(t.Context()))
	const query = "query Tools { tools(limit: 1) { items { name } } }"
	wantRedirect(t, b.post("/account/queries", "name", "best", "handle", "ana", "query", query), "/account/queries/best")
	codes := s.browser()
	codes.start("eva@example.com")
	const checked = `value="tool.created" checked`
	for name, c := range map[string]struct {
		browser *browser
		path    string
		form    []string
		texts   []string
	}{
		"sign-in":         {s.browser(), "/login", []string{"email", "no address", "next", "/account/plan"}, []string{`value="no address"`, `name="next" value="/account/plan"`}},
		"code":            {codes, "/login/code", []string{"code", "12 34"}, []string{`name="code" value="12 34"`}},
		"key":             {b, "/account/keys", []string{"name", strings.Repeat("n", 81)}, []string{`value="` + strings.Repeat("n", 81) + `"`}},
		"email":           {b, "/account/email", []string{"email", "new address"}, []string{`name="email" type="email" value="new address"`}},
		"deletion":        {b, "/account/delete", []string{"email", "anna@example.com"}, []string{`name="email" type="email" value="anna@example.com"`}},
		"endpoint":        {b, "/account/webhooks", []string{"url", "http://example.com", "type", "tool.created", "category", "code", "batches", "1"}, []string{`value="http://example.com"`, checked, `value="code" checked`, `name="batches" value="1" checked`}},
		"endpoint change": {b, endpoint + "/settings", []string{"type", "tool.created", "category", "A B!", "batches", "1"}, []string{checked, `value="A B!" checked`, `name="batches" value="1" checked`, "Events: all."}},
		"resending":       {b, endpoint + "/replay", []string{"since", "2026-02-30T10:00"}, []string{`name="since" type="datetime-local" value="2026-02-30T10:00"`}},
		"query": {b, "/account/queries", []string{"name", "new", "query", "{ nothing }", "description", "Some words", "private", "1"},
			[]string{"<h1>Save and share a query</h1>", `name="name" value="new" required`, ">{ nothing }</textarea>", ">Some words</textarea>", `name="private" value="1" checked`}},
		"query change": {b, "/account/queries", []string{"name", "best", "edits", "1", "query", "{ nothing }", "description", "Some words"},
			[]string{"<h1>Edit Tools</h1>", `type="hidden" name="name" value="best"`, `name="edits" value="1"`, ">{ nothing }</textarea>", ">Some words</textarea>"}},
	} {
		got := c.browser.post(c.path, c.form...)
		t.Run(name, func(t *testing.T) { wantPage(t, got, 400, append(c.texts, `role="alert"`)...) })
	}
	check.Contains(t, b.get("/account/queries/best/edit").text, `name="edits" value="1"`, "form")

	// Also if a limit is reached, or the plan has ended, while the form is open.
	for range 10 {
		b.makeKey("k")
	}
	for i := range 9 {
		b.post("/account/webhooks", "url", fmt.Sprintf("https://example.com/%d", i))
	}
	wantPage(t, b.post("/account/keys", "name", "typed"), 400, `role="alert"`, `name="name" value="typed"`)
	wantPage(t, b.post("/account/webhooks", "url", "https://example.com/typed"), 400, `role="alert"`, `value="https://example.com/typed"`)
	s.db.Write.Account.Update().SetPlan("developer").ExecX(t.Context())
	wantPage(t, b.post("/account/webhooks", "url", "https://example.com/typed"), 403, `role="alert"`, `value="https://example.com/typed"`)
}
