package portal

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
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
			if route.who != signedIn {
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
