package auth

import (
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"palmares/internal/core/store"
	"palmares/internal/dev/testkit"
)

// A browser that is signed in has a key of its own, and no longer.
func TestSessionKeys(t *testing.T) {
	t.Parallel()
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		a := newAsking(t, s)
		sessions, keyring := NewSessions(s), newKeyring(s)
		sessions.now = a.now
		keyring.now = a.now
		keyOf := func(token string) string {
			t.Helper()
			text, err := sessions.Key(t.Context(), token)
			if err != nil {
				t.Fatal(err)
			}
			return text
		}
		caller := func(text string) (Caller, error) {
			r := httptest.NewRequest("GET", "/api/v1/stats", nil)
			r.Header.Set("Authorization", "Bearer "+text)
			if key, ok := ParseKey(text); ok {
				keyring.Forget(key.ID) // as after a second
			}
			return keyring.caller(r)
		}

		laptop, phone := signedIn(a, "ana@example.com"), signedIn(a, "ana@example.com")
		if keyOf("") != "" || keyOf("made up") != "" {
			t.Error("who is not signed in has a key")
		}
		key, other := keyOf(laptop), keyOf(phone)
		if key == other || key != keyOf(laptop) {
			t.Errorf("keys: %s, %s, %s", key, keyOf(laptop), other)
		}
		ana, err := sessions.Find(t.Context(), laptop)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := caller(key); err != nil || got.Account != ana.ID || got.Plan != Developer {
			t.Errorf("it opens %+v, %v", got, err)
		}
		if strings.Contains(everythingStored(t, s), sessionKey(laptop).secret) {
			t.Error("the key is stored as it is")
		}
		forged := sessionKey(laptop)
		forged.secret = sessionKey(phone).secret
		if _, err := caller(forged.Text()); err == nil {
			t.Error("another key's secret opens it")
		}

		if err := sessions.End(t.Context(), laptop); err != nil {
			t.Fatal(err)
		}
		if _, err := caller(key); err == nil || keyOf(laptop) != "" {
			t.Error("it opens something after signing out")
		}
		if _, err := caller(other); err != nil {
			t.Errorf("the other browser's key: %v", err)
		}
		a.time = a.time.Add(SessionTime + time.Second)
		if _, err := caller(other); err == nil || keyOf(phone) != "" {
			t.Error("it opens something when the session is over")
		}
	})
}
