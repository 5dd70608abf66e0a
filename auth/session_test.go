package auth

import (
	"errors"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"palmares/internal/core/store"
	"palmares/internal/dev/testkit"
)

// signedIn is a new session of an address.
func signedIn(a *asking, email string) string {
	a.t.Helper()
	token, err := a.SignIn(a.t.Context(), a.look(a.signIn(email).Link))
	if err != nil {
		a.t.Fatal(err)
	}
	return token
}

// whose is the address that a session is signed in to, or "".
func whose(t *testing.T, s *Sessions, token string) string {
	t.Helper()
	acc, err := s.Find(t.Context(), token)
	if err != nil {
		t.Fatal(err)
	}
	if acc == nil {
		return ""
	}
	return acc.Email
}

func TestSessions(t *testing.T) {
	t.Parallel()
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		a := newAsking(t, s)
		sessions := NewSessions(s)
		sessions.now = a.now
		laptop, phone, ben := signedIn(a, "ana@example.com"), signedIn(a, "ana@example.com"), signedIn(a, "ben@example.com")
		if laptop == phone || len(laptop) < 26 { // of 5 bits each
			t.Errorf("tokens: %s, %s", laptop, phone)
		}
		if got := whose(t, sessions, laptop) + whose(t, sessions, phone) + whose(t, sessions, ben); got != "ana@example.comana@example.comben@example.com" {
			t.Errorf("signed in: %s", got)
		}
		for _, token := range []string{"", "made up", hashToken(laptop), laptop + "x"} {
			if got := whose(t, sessions, token); got != "" {
				t.Errorf("%q opens %s", token, got)
			}
		}

		if err := sessions.End(t.Context(), laptop); err != nil {
			t.Fatal(err)
		}
		if whose(t, sessions, laptop) != "" || whose(t, sessions, phone) == "" {
			t.Error("one session ended, but not that one alone")
		}

		laptop = signedIn(a, "ana@example.com")
		ana, err := sessions.Find(t.Context(), laptop)
		if err != nil {
			t.Fatal(err)
		}
		if all, err := sessions.List(t.Context(), ana); err != nil || len(all) != 2 {
			t.Errorf("%d sessions, %v", len(all), err)
		}
		open, err := a.StartSignIn(t.Context(), "ana@example.com", Sender{Network: "192.0.2.1"})
		if err != nil {
			t.Fatal(err)
		}
		if err := sessions.EndAll(t.Context(), ana); err != nil {
			t.Fatal(err)
		}
		if _, err := a.FindByLink(t.Context(), open.Link); !errors.Is(err, ErrUsed) {
			t.Errorf("a link that was open: %v", err)
		}
		if whose(t, sessions, laptop) != "" || whose(t, sessions, phone) != "" || whose(t, sessions, ben) == "" {
			t.Error("all of Ana's ended, but not those alone")
		}
	})
}

func TestSessionsLastThirtyDays(t *testing.T) {
	t.Parallel()
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		a := newAsking(t, s)
		sessions := NewSessions(s)
		sessions.now = a.now
		token := signedIn(a, "ana@example.com")
		a.time = a.time.Add(30*24*time.Hour - time.Second)
		if whose(t, sessions, token) == "" {
			t.Error("it ended early")
		}
		tidy(t, s, a.time)
		if n := s.Write.Session.Query().CountX(t.Context()); n != 1 {
			t.Error("it was forgotten early")
		}
		a.time = a.time.Add(time.Second)
		if got := whose(t, sessions, token); got != "" {
			t.Error("it did not end")
		}
		tidy(t, s, a.time.Add(time.Second))
		if n := s.Write.Session.Query().CountX(t.Context()); n != 0 {
			t.Error("it was not forgotten")
		}
	})
}

func tidy(t *testing.T, s *store.Store, now time.Time) {
	t.Helper()
	if err := Tidy(t.Context(), s, now); err != nil {
		t.Fatal(err)
	}
}

// Messages are still counted when old ones are forgotten.
func TestTidyKeepsWhatCounts(t *testing.T) {
	t.Parallel()
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		a := newAsking(t, s)
		for range maxPerMailbox {
			a.signIn("ana@example.com")
		}
		a.time = a.time.Add(emailWindow - time.Second)
		tidy(t, s, a.time)
		_, err := a.StartSignIn(t.Context(), "ana@example.com", Sender{Network: "x"})
		wants(t, "one more", err, ErrMailboxLimit)
		tidy(t, s, a.time.Add(confirmationRetention))
		if n := s.Write.Confirmation.Query().CountX(t.Context()); n != 0 {
			t.Errorf("%d messages are kept", n)
		}
	})
}

func TestSessionsAreStoredHashed(t *testing.T) {
	t.Parallel()
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		token := signedIn(newAsking(t, s), "ana@example.com")
		stored := everythingStored(t, s)
		if strings.Contains(stored, token) || !strings.Contains(stored, hashToken(token)) {
			t.Error("a session is stored as it is, or not at all")
		}
	})
}

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
		a.time = a.time.Add(SessionLifetime + time.Second)
		if _, err := caller(other); err == nil || keyOf(phone) != "" {
			t.Error("it opens something when the session is over")
		}
	})
}

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
