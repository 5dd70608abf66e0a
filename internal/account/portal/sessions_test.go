package portal

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

// apiKey is what a signed-in browser calls the API with. It is known to the
// keyring, as after a call.
func (b *browser) apiKey() string {
	b.site.t.Helper()
	r := httptest.NewRequest("GET", "/", nil)
	r.AddCookie(&http.Cookie{Name: b.site.cookieName(sessionCookie), Value: b.session()})
	key := b.site.Key(r)
	if key == "" || !b.site.opens(key) {
		b.site.t.Fatalf("the browser's key %q opens nothing", key)
	}
	return key
}

// What a browser calls the API with ends with its session, at once.
func TestKeysEndWithSessions(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		end  func(b *browser)
		both bool // the other browser's, too
	}{
		"logging out":            {func(b *browser) { wantGo(t, b.post("/logout"), "/login") }, false},
		"logging out everywhere": {func(b *browser) { wantGo(t, b.post("/account/logout-everywhere"), "/login") }, true},
		"deleting the account":   {func(b *browser) { wantGo(t, b.post("/account/delete", "email", "ana@example.com"), "/login") }, true},
		"signing in again": {func(b *browser) {
			wantGo(t, b.post("/login/confirm", "token", b.ask("ben@example.com").token(t)), home)
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := onSQLite(t)
			b, phone := s.signIn("ana@example.com"), s.signIn("ana@example.com")
			key, other := b.apiKey(), phone.apiKey()
			c.end(b)
			if s.opens(key) {
				t.Error("its key is still taken")
			}
			if taken := s.opens(other); taken == c.both {
				t.Errorf("the other browser's key is taken: %v", taken)
			}
		})
	}
}

// Who changes the address signs the other browsers out.
func TestKeysEndWithTheAddress(t *testing.T) {
	t.Parallel()
	s := onSQLite(t)
	b, phone := s.signIn("ana@example.com"), s.signIn("ana@example.com")
	key, other := b.apiKey(), phone.apiKey()
	wantGo(t, b.post("/account/email/confirm", "token", b.askChange("anna@example.com").token(t)), "/account/settings")
	if !s.opens(key) || s.opens(other) {
		t.Error("other keys ended than those of the other browsers")
	}
}
