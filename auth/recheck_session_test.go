package auth

import (
	"testing"
	"time"

	"palmares/internal/core/store"
	"palmares/internal/dev/testkit"
)

// The key of a browser ends with its session.
func TestRecheckOfASession(t *testing.T) {
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		a := newAsking(t, s)
		sessions, keyring := NewSessions(s), newKeyring(s)
		sessions.now, keyring.now = a.now, a.now
		token := signedIn(a, "ana@example.com")
		text, err := sessions.Key(t.Context(), token)
		if err != nil {
			t.Fatal(err)
		}
		key, _ := ParseKey(text)
		caller, err := keyring.Recheck(t.Context(), Caller{Key: key.ID})
		if err != nil || caller.Plan != Developer || caller.Account == 0 {
			t.Fatalf("got %+v, %v, want a Developer account", caller, err)
		}
		if err := sessions.End(t.Context(), token); err != nil {
			t.Fatal(err)
		}
		a.time = a.time.Add(time.Second)
		if got, err := keyring.Recheck(t.Context(), caller); err == nil {
			t.Errorf("got %+v, want the key to be refused", got)
		}
	})
}
