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

// wantGuarded checks what every answer of ours says to browsers.
func wantGuarded(t *testing.T, what string, got answer) {
	t.Helper()
	header := got.Header()
	policy := header.Get("Content-Security-Policy")
	for _, part := range []string{"default-src 'none'", "frame-ancestors 'none'", "base-uri 'none'", "form-action 'self'"} {
		if !strings.Contains(policy, part) {
			t.Errorf("%s: the policy %q lacks %s", what, policy, part)
		}
	}
	if strings.Contains(policy, "unsafe") || strings.Contains(policy, "*") || strings.Contains(policy, "data:") {
		t.Errorf("%s: the policy is %q", what, policy)
	}
	for name, want := range map[string]string{
		"X-Frame-Options": "DENY", "X-Content-Type-Options": "nosniff", "Referrer-Policy": "same-origin", "Cache-Control": "no-store",
		"Strict-Transport-Security": "max-age=31536000", "Access-Control-Allow-Origin": "", "Access-Control-Allow-Credentials": "",
	} {
		if header.Get(name) != want {
			t.Errorf("%s: %s is %q", what, name, header.Get(name))
		}
	}
	// What the policy forbids must not be there to be missed.
	for _, forbidden := range []string{"<style", " style=", " onclick", " onload", "<script>", "javascript:"} {
		if strings.Contains(got.Body.String(), forbidden) {
			t.Errorf("%s: the page has %s", what, forbidden)
		}
	}
}

// target is a route's method, and an address that it answers.
func target(pattern string) (method, path string) {
	method, path, found := strings.Cut(pattern, " ")
	switch {
	case found:
	case strings.HasSuffix(pattern, "/"):
		method, path = "GET", pattern+"nothing"
	default:
		method, path = "BREW", pattern
	}
	return method, strings.ReplaceAll(path, "{id}", "0123456789ab")
}

func TestEveryAnswerIsGuarded(t *testing.T) {
	t.Parallel()
	s := onSQLite(t)
	for i, route := range routes {
		method, path := target(route.pattern)
		wantGuarded(t, route.pattern, s.browser().send(method, path, strings.NewReader("")))
		// Some routes end their account or session: each has its own.
		b := s.signIn(fmt.Sprintf("visitor%d@example.com", i))
		got := b.send(method, path, strings.NewReader(""), "Sec-Fetch-Site", "same-origin")
		wantGuarded(t, "signed in, "+route.pattern, got)
		if got.Code >= http.StatusInternalServerError {
			t.Errorf("%s: %d", route.pattern, got.Code)
		}
	}
}

func TestNoHSTSWithoutTLS(t *testing.T) {
	t.Parallel()
	if got := printing(t).browser().get("/login").Header().Get("Strict-Transport-Security"); got != "" {
		t.Errorf("%q", got)
	}
}

// Who is not signed in changes nothing, wherever they knock.
func TestStrangersAreSentToSignIn(t *testing.T) {
	t.Parallel()
	s := onSQLite(t)
	b := s.signIn("ana@example.com")
	id := idOf(t, b.makeKey("laptop"))
	change := b.askChange("anna@example.com")
	stranger := s.browser()
	for _, session := range []string{"", "made up"} {
		if session != "" {
			stranger.cookies["__Host-"+sessionCookie] = session
		}
		for _, route := range routes {
			if !route.signedIn {
				continue
			}
			method, path := target(route.pattern)
			path = strings.ReplaceAll(path, "0123456789ab", id)
			form := "email=ana%40example.com&name=x&code=" + change.code + "&token=" + change.token(t)
			got := stranger.send(method, path, strings.NewReader(form))
			if got.Code != http.StatusSeeOther || !strings.HasPrefix(got.to(), "/login") {
				t.Errorf("%s: %d to %q", route.pattern, got.Code, got.to())
			}
			wantNot(t, got, "ana@example.com", "laptop")
		}
	}
	if len(s.db.Write.APIKey.Query().AllX(t.Context())) != 1 || s.db.Write.APIKey.GetX(t.Context(), id).RevokedAt != nil || !b.isSignedIn() ||
		s.account("ana@example.com") == nil {
		t.Error("something was done")
	}
	if got := stranger.get("/account/usage?x=1"); got.to() != "/login?next=%2Faccount%2Fusage%3Fx%3D1" {
		t.Errorf("on to %q", got.to())
	}
}

// A form of another site's does nothing in our visitors' name.
func TestFormsOfOtherSites(t *testing.T) {
	t.Parallel()
	s := onSQLite(t)
	b := s.signIn("ana@example.com")
	for name, c := range map[string]struct {
		header []string
		made   bool
	}{
		"cross-site":                 {[]string{"Sec-Fetch-Site", "cross-site"}, false},
		"another host of the site":   {[]string{"Sec-Fetch-Site", "same-site"}, false},
		"a foreign origin":           {[]string{"Origin", "https://evil.example"}, false},
		"an origin that is not told": {[]string{"Origin", "null"}, false},
		"a foreign port":             {[]string{"Origin", "https://example.com:444"}, false},
		"our own":                    {[]string{"Sec-Fetch-Site", "same-origin", "Origin", "https://example.com"}, true},
		"our own, in old browsers":   {[]string{"Origin", "https://example.com"}, true},
		"our own, behind a proxy":    {[]string{"Sec-Fetch-Site", "same-site", "Origin", "https://palmares.example"}, true},
		"the same, in old browsers":  {[]string{"Origin", "https://palmares.example"}, true},
		"ours without encryption":    {[]string{"Origin", "http://palmares.example"}, false},
		"no browser":                 {nil, true},
	} {
		before := s.db.Write.APIKey.Query().CountX(t.Context())
		got := b.send("POST", "/account/keys", strings.NewReader("name=x"), c.header...) // httptest's host is example.com
		if made := s.db.Write.APIKey.Query().CountX(t.Context()) > before; made != c.made {
			t.Errorf("%s: %d", name, got.Code)
		}
		if !c.made {
			wantPage(t, got, 403, "from another site")
			wantGuarded(t, name, got)
		}
		s.db.Write.APIKey.Delete().ExecX(t.Context())
	}
	for _, route := range routes {
		method, path := target(route.pattern)
		if method != "POST" {
			continue
		}
		if got := b.send(method, path, strings.NewReader("email=ana%40example.com"), "Sec-Fetch-Site", "cross-site"); got.Code != 403 {
			t.Errorf("%s: %d", route.pattern, got.Code)
		}
	}
	if !b.isSignedIn() {
		t.Error("another site signed Ana out")
	}
}

func TestOrigins(t *testing.T) {
	for address, want := range map[string]string{
		"https://palmares.example":          "https://palmares.example",
		"https://Palmares.Example:443/":     "https://palmares.example",
		"https://palmares.example:8443":     "https://palmares.example:8443",
		"http://localhost:80":               "http://localhost",
		"http://[::1]:8080":                 "http://[::1]:8080",
		"http://[::1]":                      "http://[::1]",
		"https://palmar\u00e8s.example:443": "https://xn--palmars-7xa.example",
	} {
		if got := origin(address); got != want {
			t.Errorf("%s: %s, not %s", address, got, want)
		}
	}
}

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
		if got := localPath(asked); got != home {
			t.Errorf("%q leads to %q", asked, got)
		}
	}
	for _, asked := range []string{"/account/usage", "/account/email/confirm?token=ABC", "/account/plan?x=a%2Fb", "/account?done=revoked"} {
		if got := localPath(asked); got != asked {
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
		if !strings.HasPrefix(sent.link, "https://palmares.example/login/confirm?") || strings.Contains(sent.link, "evil") && len(asked) < 1000 && localPath(asked) == home {
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
