package portal

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"palmares/internal/core/store"
	"palmares/internal/dev/testkit"
)

func TestLinkPressedByManyAtOnce(t *testing.T) {
	t.Parallel()
	testkit.EachStore(t, func(t *testing.T, db *store.Store) {
		s := newSite(t, db)
		token := s.browser().ask("ana@example.com").token(t)
		var in atomic.Int64
		atOnce(20, func(int) {
			b := s.browser()
			switch got := b.post("/login/confirm", "token", token); got.Code {
			case http.StatusSeeOther:
				in.Add(1)
			case http.StatusGone:
			default:
				t.Errorf("%d: %s", got.Code, got.text)
			}
		})
		if n := db.Write.Session.Query().CountX(t.Context()); in.Load() != 1 || n != 1 {
			t.Errorf("%d were let in, with %d sessions", in.Load(), n)
		}
	})
}

// wrongCode is never the right one.
func wrongCode(right string, i int) string {
	if code := fmt.Sprintf("%06d", i); code != right {
		return code
	}
	return "abcdef"
}

func TestGuessedCodes(t *testing.T) {
	t.Parallel()
	s := onSQLite(t)
	b := s.browser()
	sent := b.ask("ana@example.com")
	for i := range 1000 {
		if got := b.post("/login/code", "code", wrongCode(sent.code, i)); i < 4 {
			wantPage(t, got, 400, "not the code")
		} else if got.Code != 429 {
			t.Fatalf("code %d: %d", i, got.Code)
		}
	}
	locked := b.post("/login/code", "code", sent.code)
	wantPage(t, locked, 429, "no more are taken", "The link in the message still works")
	wantNot(t, locked, `name="code"`)
	again := b.get("/login/code")
	wantPage(t, again, 429, "no more are taken")
	wantNot(t, again, `name="code"`)
	wantGo(t, b.post("/login/confirm", "token", sent.token(t)), home)
}

func TestCodesGuessedAtOnce(t *testing.T) {
	t.Parallel()
	testkit.EachStore(t, func(t *testing.T, db *store.Store) {
		s := newSite(t, db)
		b := s.browser()
		sent := b.ask("ana@example.com")
		atOnce(100, func(i int) {
			if got := b.post("/login/code", "code", wrongCode(sent.code, i)); got.Code != 400 && got.Code != 429 {
				t.Errorf("%d: %s", got.Code, got.text)
			}
		})
		wantPage(t, b.post("/login/code", "code", sent.code), 429, "no more are taken")
		if n := db.Write.Confirmation.Query().OnlyX(t.Context()).Tries; n != 5 {
			t.Errorf("%d codes were looked at", n)
		}
	})
}

// After twenty wrong codes in many messages, none is asked for any more.
func TestGuessedCodesOfManyMessages(t *testing.T) {
	t.Parallel()
	s := onSQLite(t)
	for range 4 {
		b := s.browser()
		sent := b.ask("ana@example.com")
		for i := range 5 {
			b.post("/login/code", "code", wrongCode(sent.code, i))
		}
	}
	b := s.browser()
	sent := b.ask("ana@example.com")
	page := b.get("/login/code")
	wantPage(t, page, 429, "no more are taken")
	wantNot(t, page, `name="code"`)
	wantPage(t, b.post("/login/code", "code", sent.code), 429, "The link in the message still works")
	wantGo(t, b.post("/login/confirm", "token", sent.token(t)), home)
}

func TestCodeInAnotherBrowser(t *testing.T) {
	t.Parallel()
	s := onSQLite(t)
	sent := s.browser().ask("ana@example.com")
	other := s.browser()
	wantPage(t, other.post("/login/code", "code", sent.code), 404, "not known")
	wantGo(t, other.get("/login/code"), "/login")
	other.ask("mallory@example.com") // now it waits, but for another code
	if got := other.post("/login/code", "code", sent.code); got.Code != 400 {
		t.Errorf("%d: %s", got.Code, got.text)
	}
	if s.db.Write.Account.Query().CountX(t.Context()) != 0 {
		t.Error("somebody was let in")
	}
}

var strayPaths = []string{
	"//evil.example", "///evil.example", "////evil.example", `/\evil.example`, `\\evil.example`, `/\/evil.example`, "https://evil.example", "HTTPS:evil.example", "https:/evil.example",
	"http:///evil.example", "javascript:alert(1)", "data:text/html,x", "/%5cevil.example", "/%5Cevil.example", "/%2f/evil.example", "/%2Fevil.example", "//%65vil.example",
	"/\t/evil.example", "/\n/evil.example", "/\r\nSet-Cookie: x=y", "\t//evil.example", " //evil.example", "/ /evil.example", "/\x00/evil.example", "/\x7f/evil.example",
	"//evil.example\\@palmares.example", "https://palmares.example@evil.example", "evil.example", "?x", "#x", "", "//evil.example/%2e%2e", "/%zz", "/" + strings.Repeat("x", 2000),
	"\u2044\u2044evil.example", "\uff0f\uff0fevil.example", "/\u00a0//evil.example/..//x\t", "//\u3002evil.example",
}

// leads is where a browser at our address ends up with a Location.
func leads(t *testing.T, location string) *url.URL {
	t.Helper()
	// Browsers take backslashes for slashes, and leave out tabs and newlines.
	location = strings.NewReplacer(`\`, "/", "\t", "", "\n", "", "\r", "").Replace(strings.TrimSpace(location))
	base, _ := url.Parse("https://palmares.example/login/confirm")
	to, err := base.Parse(location)
	if err != nil {
		t.Fatalf("%q: %v", location, err)
	}
	return to
}

func TestStrayPathsAreRefused(t *testing.T) {
	t.Parallel()
	for _, asked := range strayPaths {
		if got := next(asked); got != home {
			t.Errorf("%q leads to %q", asked, got)
		}
	}
	for _, asked := range []string{"/account/usage", "/account/email/confirm?token=ABC", "/account/plan?x=a%2Fb", "/account?done=revoked"} {
		if got := next(asked); got != asked {
			t.Errorf("%q leads to %q", asked, got)
		}
	}
}

// Wherever a stray path is brought in, nobody leaves our site with it.
func TestStrayPathsThroughSigningIn(t *testing.T) {
	t.Parallel()
	s := onSQLite(t)
	ours := func(what, asked string, got answer) {
		t.Helper()
		if to := leads(t, got.to()); got.Code != http.StatusSeeOther || to.Host != "palmares.example" || to.Scheme != "https" {
			t.Errorf("%s, %q: %d to %q", what, asked, got.Code, got.to())
		}
		if got.Header().Get("Set-Cookie") == "x=y" {
			t.Errorf("%s, %q: a header was brought in", what, asked)
		}
	}
	signedIn := s.signIn("in@example.com")
	for i, asked := range strayPaths {
		ours("signed in already", asked, signedIn.get("/login?next="+url.QueryEscape(asked)))

		b := s.browser()
		sent := b.ask(fmt.Sprintf("link%d@example.com", i), "next", asked)
		if !strings.HasPrefix(sent.link, "https://palmares.example/login/confirm?") || strings.Contains(sent.link, "evil") && len(asked) < 1000 && next(asked) == home {
			t.Errorf("%q: the letter's link is %s", asked, sent.link)
		}
		wantNot(t, b.get("/login/confirm?token="+sent.token(t)+"&next="+url.QueryEscape("//evil.example")), `value="//evil.example"`)
		ours("by link", asked, b.post("/login/confirm", "token", sent.token(t), "next", asked))

		b = s.browser()
		sent = b.ask(fmt.Sprintf("code%d@example.com", i))
		ours("by code", asked, b.post("/login/code?next="+url.QueryEscape(asked), "code", sent.code, "next", asked))
	}
}

func TestBackToWhereOneWasHeaded(t *testing.T) {
	t.Parallel()
	s := onSQLite(t)
	b := s.browser()
	away := b.get("/account/usage")
	wantGo(t, away, "/login")
	if page := b.get(away.to()); !strings.Contains(page.text, `name="next" value="/account/usage"`) {
		t.Errorf("the form forgets: %s", page.text)
	}
	sent := b.ask("ana@example.com", "next", "/account/usage")
	other := s.browser() // a link may be opened elsewhere
	if page := other.get(sent.path(t)); !strings.Contains(page.text, `name="next" value="/account/usage"`) {
		t.Errorf("the link forgets: %s", page.text)
	}
	wantGo(t, other.post("/login/confirm", "token", sent.token(t), "next", "/account/usage"), "/account/usage")
}

// With a mail server, nothing that opens anything is in the log.
func TestNoSecretsInTheLog(t *testing.T) {
	t.Parallel()
	s := onSQLite(t)
	b := s.browser()
	sent := b.ask("ana@example.com")
	browser := b.cookies["__Host-"+browserCookie]
	b.get(sent.path(t))
	b.post("/login/code", "code", "000")
	wantGo(t, b.post("/login/confirm", "token", sent.token(t)), home)
	b.post("/login/confirm", "token", sent.token(t))
	key := b.makeKey("laptop")
	change := b.askChange("anna@example.com")
	session := b.session()
	// Errors are what is logged most: have some.
	for _, table := range []string{"sessions", "confirmations", "api_keys"} {
		if _, err := s.db.Write.ExecContext(t.Context(), "ALTER TABLE "+table+" RENAME TO hidden_"+table); err != nil {
			t.Fatal(err)
		}
		b.get(change.path(t))
		b.post("/account/email/confirm", "token", change.token(t))
		b.post("/login/confirm", "token", sent.token(t))
		b.post("/login/code", "code", sent.code)
		b.post("/account/keys", "name", "x")
		if _, err := s.db.Write.ExecContext(t.Context(), "ALTER TABLE hidden_"+table+" RENAME TO "+table); err != nil {
			t.Fatal(err)
		}
	}
	log := s.log.String()
	if !strings.Contains(log, "a page could not be shown") {
		t.Errorf("nothing was logged: %s", log)
	}
	for what, secret := range map[string]string{"a link": sent.token(t), "another link": change.token(t), "a code": sent.code, "another code": change.code,
		"the browser's secret": browser, "a session": session, "a key": key, "a key's secret": key[16:48]} {
		if strings.Contains(log, secret) {
			t.Errorf("%s is in the log: %s", what, log)
		}
	}
}
