package portal

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"palmares/internal/dev/check"
)

// wantSecurityHeaders checks the security headers of a response.
func wantSecurityHeaders(t *testing.T, what string, got response) {
	t.Helper()
	header := got.Header()
	policy := header.Get("Content-Security-Policy")
	for _, part := range []string{"default-src 'none'", "frame-ancestors 'none'", "base-uri 'none'", "form-action 'self'"} {
		check.Contains(t, policy, part, "%s: policy", what)
	}
	check.Lacks(t, policy, "unsafe", what)
	check.Lacks(t, policy, "*", what)
	check.Lacks(t, policy, "data:", what)
	for name, want := range map[string]string{
		"X-Frame-Options": "DENY", "X-Content-Type-Options": "nosniff", "Referrer-Policy": "same-origin", "Cache-Control": "no-store",
		"Strict-Transport-Security": "max-age=31536000", "Access-Control-Allow-Origin": "", "Access-Control-Allow-Credentials": "",
	} {
		check.Equal(t, header.Get(name), want, "%s: %s", what, name)
	}
	// Pages must not contain what the policy forbids.
	for _, forbidden := range []string{"<style", " style=", " onclick", " onload", "<script>", "javascript:"} {
		check.Lacks(t, got.Body.String(), forbidden, what)
	}
}

// target returns the method and a path of a route.
func target(pattern string) (method, path string) {
	method, path, found := strings.Cut(pattern, " ")
	switch {
	case found:
	case strings.HasSuffix(pattern, "/"):
		method, path = "GET", pattern+"nothing"
	default:
		method, path = "BREW", pattern
	}
	return method, strings.NewReplacer("{id}", "0123456789ab", "{name}", "nothing").Replace(path)
}

func TestSecurityHeaders(t *testing.T) {
	t.Parallel()
	s := newSQLiteSite(t)
	for i, route := range routes {
		method, path := target(route.pattern)
		wantSecurityHeaders(t, route.pattern, s.browser().send(method, path, strings.NewReader("")))
		// Some routes delete the account or the session, so each has its own.
		b := s.signIn(fmt.Sprintf("visitor%d@example.com", i))
		got := b.send(method, path, strings.NewReader(""), "Sec-Fetch-Site", "same-origin")
		wantSecurityHeaders(t, "signed in, "+route.pattern, got)
		check.True(t, got.Code < http.StatusInternalServerError, "%s: got status %d, want below 500", route.pattern, got.Code)
	}
}

func TestNoHSTSWithoutTLS(t *testing.T) {
	t.Parallel()
	check.Equal(t, newSiteWithoutMail(t).browser().get("/login").Header().Get("Strict-Transport-Security"), "", "Strict-Transport-Security")
}

// Without a session, account routes change nothing.
func TestRoutesRequireSession(t *testing.T) {
	t.Parallel()
	s := newSQLiteSite(t)
	b := s.signIn("ana@example.com")
	id := idOf(t, b.makeKey("laptop"))
	change := b.startEmailChange("anna@example.com")
	stranger := s.browser()
	for _, session := range []string{"", "invented"} {
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
			if saysSo := path == draftPath && method == http.MethodPost; saysSo && got.Code == http.StatusUnauthorized {
				continue
			}
			check.Equal(t, got.Code, http.StatusSeeOther, "%s: to %q", route.pattern, got.to())
			check.True(t, strings.HasPrefix(got.to(), "/login"), "%s: got status %d to %q, want 303 to /login", route.pattern, got.Code, got.to())
			wantNoText(t, got, "ana@example.com", "laptop")
		}
	}
	check.Equal(t, len(s.db.Write.APIKey.Query().AllX(t.Context())), 1)
	check.Equal(t, s.db.Write.APIKey.GetX(t.Context(), id).RevokedAt, nil)
	check.True(t, b.isSignedIn() && s.account("ana@example.com") != nil, "got a change, want none")
	check.Equal(t, stranger.get("/account/usage?x=1").to(), "/login?next=%2Fen%2Faccount%2Fusage%3Fx%3D1", "redirect")
}

// Forms of other sites are rejected.
func TestCrossSiteForms(t *testing.T) {
	t.Parallel()
	s := newSQLiteSite(t)
	b := s.signIn("ana@example.com")
	for name, c := range map[string]struct {
		header   []string
		accepted bool
	}{
		"cross-site":                {[]string{"Sec-Fetch-Site", "cross-site"}, false},
		"another host of the site":  {[]string{"Sec-Fetch-Site", "same-site"}, false},
		"another origin":            {[]string{"Origin", "https://evil.example"}, false},
		"null origin":               {[]string{"Origin", "null"}, false},
		"another port":              {[]string{"Origin", "https://example.com:444"}, false},
		"same origin":               {[]string{"Sec-Fetch-Site", "same-origin", "Origin", "https://example.com"}, true},
		"same origin, old browser":  {[]string{"Origin", "https://example.com"}, true},
		"public URL behind a proxy": {[]string{"Sec-Fetch-Site", "same-site", "Origin", "https://palmares.example"}, true},
		"public URL, old browser":   {[]string{"Origin", "https://palmares.example"}, true},
		"public URL without TLS":    {[]string{"Origin", "http://palmares.example"}, false},
		"no browser":                {nil, true},
	} {
		before := s.db.Write.APIKey.Query().CountX(t.Context())
		got := b.send("POST", "/account/keys", strings.NewReader("name=x"), c.header...) // httptest's host is example.com
		check.Equal(t, s.db.Write.APIKey.Query().CountX(t.Context()) > before, c.accepted, "%s: %d", name, got.Code)
		if !c.accepted {
			wantPage(t, got, 403, "from another site")
			wantSecurityHeaders(t, name, got)
		}
		s.db.Write.APIKey.Delete().ExecX(t.Context())
	}
	for _, route := range routes {
		method, path := target(route.pattern)
		if method != "POST" {
			continue
		}
		check.Equal(t, b.send(method, path, strings.NewReader("email=ana%40example.com"), "Sec-Fetch-Site", "cross-site").Code, 403, "%s: status", route.pattern)
	}
	check.True(t, b.isSignedIn(), "got the session ended by another site, want it valid")
}

func TestOrigin(t *testing.T) {
	for address, want := range map[string]string{
		"https://palmares.example":          "https://palmares.example",
		"https://Palmares.Example:443/":     "https://palmares.example",
		"https://palmares.example:8443":     "https://palmares.example:8443",
		"http://localhost:80":               "http://localhost",
		"http://[::1]:8080":                 "http://[::1]:8080",
		"http://[::1]":                      "http://[::1]",
		"https://palmar\u00e8s.example:443": "https://xn--palmars-7xa.example",
	} {
		check.Equal(t, origin(address), want, address)
	}
}

func TestGuessedCodes(t *testing.T) {
	t.Parallel()
	s := newSQLiteSite(t)
	b := s.browser()
	sent := b.start("ana@example.com")
	for i := range 1000 {
		wrong := fmt.Sprintf("%06d", i)
		if wrong == sent.code {
			wrong = "abcdef"
		}
		if got := b.post("/login/code", "code", wrong); i < 4 {
			wantPage(t, got, 400, "code is incorrect")
		} else if got.Code != 429 {
			t.Fatalf("code %d: got status %d, want 400 or 429", i, got.Code)
		}
	}
	locked := b.post("/login/code", "code", sent.code)
	wantPage(t, locked, 429, "Too many incorrect codes", "The link in the email still works")
	wantNoText(t, locked, `name="code"`)
	again := b.get("/login/code")
	wantPage(t, again, 429, "Too many incorrect codes")
	wantNoText(t, again, `name="code"`)
	wantRedirect(t, b.post("/login/confirm", "token", sent.token(t)), home)
}

var offsitePaths = []string{
	"//evil.example", "///evil.example", "////evil.example", `/\evil.example`, `\\evil.example`, `/\/evil.example`, "https://evil.example", "HTTPS:evil.example", "https:/evil.example",
	"http:///evil.example", "javascript:alert(1)", "data:text/html,x", "/%5cevil.example", "/%5Cevil.example", "/%2f/evil.example", "/%2Fevil.example", "//%65vil.example",
	"/\t/evil.example", "/\n/evil.example", "/\r\nSet-Cookie: x=y", "\t//evil.example", " //evil.example", "/ /evil.example", "/\x00/evil.example", "/\x7f/evil.example",
	"//evil.example\\@palmares.example", "https://palmares.example@evil.example", "evil.example", "?x", "#x", "", "//evil.example/%2e%2e", "/%zz", "/" + strings.Repeat("x", 4000),
	"\u2044\u2044evil.example", "\uff0f\uff0fevil.example", "/\u00a0//evil.example/..//x\t", "//\u3002evil.example",
}

func TestLocalPath(t *testing.T) {
	t.Parallel()
	for _, path := range offsitePaths {
		check.Equal(t, localPath(path), home, "%q", path)
	}
	for _, path := range []string{"/account/usage", "/account/email/confirm?token=ABC", "/account/plan?x=a%2Fb", "/account?done=revoked"} {
		check.Equal(t, localPath(path), path, "%q: want it unchanged", path)
	}
}

// Signing in never redirects to another site: every way uses localPath.
func TestNextPathWhileSigningIn(t *testing.T) {
	t.Parallel()
	s := newSQLiteSite(t)
	const path = "//evil.example"
	wantRedirect(t, s.signIn("in@example.com").get("/login?next="+url.QueryEscape(path)), home)
	b := s.browser()
	sent := b.start("link@example.com", "next", path)
	check.True(t, strings.HasPrefix(sent.link, "https://palmares.example/en/login/confirm?"), "got link %s, want one of ours", sent.link)
	check.Lacks(t, sent.link, "evil")
	wantNoText(t, b.get("/login/confirm?token="+sent.token(t)+"&next="+url.QueryEscape(path)), `value="//evil.example"`)
	wantRedirect(t, b.post("/login/confirm", "token", sent.token(t), "next", path), home)
	b = s.browser()
	sent = b.start("code@example.com")
	wantRedirect(t, b.post("/login/code?next="+url.QueryEscape(path), "code", sent.code, "next", path), home)
}

func TestNextPathIsPreserved(t *testing.T) {
	t.Parallel()
	s := newSQLiteSite(t)
	b := s.browser()
	redirected := b.get("/account/usage")
	wantRedirect(t, redirected, "/login")
	check.Contains(t, b.get(redirected.to()).text, `name="next" value="/en/account/usage"`, "next path in the form")
	sent := b.start("ana@example.com", "next", "/account/usage")
	other := s.browser() // a link may be opened in another browser
	check.Contains(t, other.get(sent.path(t)).text, `name="next" value="/account/usage"`, "next path behind the link")
	wantRedirect(t, other.post("/login/confirm", "token", sent.token(t), "next", "/account/usage"), "/account/usage")
}

// With a mail server, the log contains no secrets.
func TestNoSecretsInTheLog(t *testing.T) {
	t.Parallel()
	s := newSQLiteSite(t)
	b := s.browser()
	sent := b.start("ana@example.com")
	browser := b.cookies["__Host-"+browserCookie]
	b.get(sent.path(t))
	b.post("/login/code", "code", "000")
	wantRedirect(t, b.post("/login/confirm", "token", sent.token(t)), home)
	b.post("/login/confirm", "token", sent.token(t))
	key := b.makeKey("laptop")
	change := b.startEmailChange("anna@example.com")
	session := b.session()
	// Cause some errors, which are logged.
	for _, table := range []string{"sessions", "confirmations", "api_keys"} {
		check.Try(s.db.Write.ExecContext(t.Context(), "ALTER TABLE "+table+" RENAME TO hidden_"+table)).OK(t)
		b.get(change.path(t))
		b.post("/account/email/confirm", "token", change.token(t))
		b.post("/login/confirm", "token", sent.token(t))
		b.post("/login/code", "code", sent.code)
		b.post("/account/keys", "name", "x")
		check.Try(s.db.Write.ExecContext(t.Context(), "ALTER TABLE hidden_"+table+" RENAME TO "+table)).OK(t)
	}
	log := s.log.String()
	check.Contains(t, log, "page failed", "log lines")
	for what, secret := range map[string]string{"a link": sent.token(t), "another link": change.token(t), "a code": sent.code, "another code": change.code,
		"the browser's secret": browser, "a session": session, "a key": key, "a key's secret": key[16:48]} {
		check.Lacks(t, log, secret, "%s in the log", what)
	}
}

// FuzzNextPath checks that the page after signing in is one of this site, as Go and browsers
// read the URL.
func FuzzNextPath(f *testing.F) {
	for _, next := range []string{"/account", "/en/account/keys?x=1#y", "//evil.example", "/\\evil.example", "https://evil.example", "/%2f/evil.example", "/\t/evil.example", "javascript:alert(1)", "", "/connect?client_id=a%20b"} {
		f.Add(next)
	}
	base := &url.URL{Scheme: "https", Host: "palmares.example", Path: "/login"}
	f.Fuzz(func(t *testing.T, next string) {
		got := localPath(next)
		check.MustTrue(t, got == next || got == home, "%q: got %q, want it unchanged or home", next, got)
		check.Must(t, localPath(got), got, next)
		to := check.Try(base.Parse(got)).OK(t, next)
		check.Equal(t, to.Host, base.Host, next)
		check.Equal(t, to.Scheme, base.Scheme, next)
		// Browsers remove tabs and line breaks, and read a backslash as a slash.
		read := strings.ReplaceAll(strings.NewReplacer("\t", "", "\n", "", "\r", "").Replace(strings.TrimSpace(got)), "\\", "/")
		check.True(t, strings.HasPrefix(read, "/") && !strings.HasPrefix(read, "//"), "%q: got %q, which leads to another site", next, got)
	})
}
