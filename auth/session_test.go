package auth

import (
	"net/http/httptest"
	"testing"
	"time"

	"palmares/internal/core/store"
	"palmares/internal/dev/check"
)

// emailOf returns the address of a session's account, or "".
func (a *fixture) emailOf(token string) string {
	a.t.Helper()
	acc := check.Try(a.SessionAccount(a.t.Context(), token)).OK(a.t)
	if acc == nil {
		return ""
	}
	return acc.Email
}

func TestSessions(t *testing.T) {
	eachFixture(t, func(t *testing.T, a *fixture) {
		laptop, phone, ben := a.signedIn("ana@example.com"), a.signedIn("ana@example.com"), a.signedIn("ben@example.com")
		if laptop == phone || len(laptop) < 26 { // base32
			t.Errorf("got tokens %s and %s, want two different ones of at least 26 characters", laptop, phone)
		}
		check.Equal(t, a.emailOf(laptop)+a.emailOf(phone)+a.emailOf(ben), "ana@example.comana@example.comben@example.com", "want ana, ana and ben")
		for _, token := range []string{"", "invented", hashToken(laptop), laptop + "x"} {
			check.Equal(t, a.emailOf(token), "", "token %q: want no account", token)
		}

		check.OK(t, a.EndSession(t.Context(), laptop))
		check.Equal(t, a.emailOf(laptop), "")
		check.True(t, a.emailOf(phone) != "", "got other sessions ended, want only the laptop's")

		laptop = a.signedIn("ana@example.com")
		ana := a.accountOf(laptop)
		all := check.Try(a.Sessions(t.Context(), ana)).OK(t)
		check.Equal(t, len(all), 2)
		open := check.Try(a.StartSignIn(t.Context(), "ana@example.com", Sender{Network: "192.0.2.1"})).OK(t)
		check.OK(t, a.EndSessions(t.Context(), ana))
		check.Try(a.ConfirmationByLink(t.Context(), open.Link)).Is(t, ErrUsed, "link after EndSessions")
		check.Equal(t, a.emailOf(laptop), "")
		check.Equal(t, a.emailOf(phone), "")
		check.True(t, a.emailOf(ben) != "", "got other sessions ended, want all of Ana's")
	})
}

func TestSessionsLastThirtyDays(t *testing.T) {
	eachFixture(t, func(t *testing.T, a *fixture) {
		token := a.signedIn("ana@example.com")
		a.time = a.time.Add(30*24*time.Hour - time.Second)
		check.True(t, a.emailOf(token) != "", "got no session before it expires, want one")
		deleteExpired(t, a.store, a.time)
		check.Equal(t, a.store.Write.Session.Query().CountX(t.Context()), 1, "session deleted before it expires")
		a.time = a.time.Add(time.Second)
		check.Equal(t, a.emailOf(token), "", "expired session")
		deleteExpired(t, a.store, a.time.Add(time.Second))
		check.Equal(t, a.store.Write.Session.Query().CountX(t.Context()), 0, "expired session stored")
	})
}

func deleteExpired(t *testing.T, s *store.Store, now time.Time) {
	t.Helper()
	check.OK(t, DeleteExpired(t.Context(), s, now))
}

// Deleting old emails does not reset the limits.
func TestDeleteExpiredRetainsCountedEmails(t *testing.T) {
	eachFixture(t, func(t *testing.T, a *fixture) {
		for range maxPerMailbox {
			a.signIn("ana@example.com")
		}
		a.time = a.time.Add(emailWindow - time.Second)
		deleteExpired(t, a.store, a.time)
		check.Try(a.StartSignIn(t.Context(), "ana@example.com", Sender{Network: "x"})).Is(t, ErrMailboxLimit, "one more")
		deleteExpired(t, a.store, a.time.Add(confirmationRetention))
		check.Equal(t, a.store.Write.Confirmation.Query().CountX(t.Context()), 0, "confirmations")
	})
}

func TestSessionsAreStoredHashed(t *testing.T) {
	eachFixture(t, func(t *testing.T, a *fixture) {
		token := a.signedIn("ana@example.com")
		stored := everythingStored(t, a.store)
		check.Lacks(t, stored, token)
		check.Contains(t, stored, hashToken(token))
	})
}

// The key of a signed-in browser is valid for as long as its session.
func TestSessionKeys(t *testing.T) {
	eachFixture(t, func(t *testing.T, a *fixture) {
		keyOf := func(token string) string {
			t.Helper()
			return check.Try(a.SessionKey(t.Context(), token)).OK(t)
		}
		caller := func(text string) (Caller, error) {
			r := httptest.NewRequest("GET", "/api/v1/stats", nil)
			r.Header.Set("Authorization", "Bearer "+text)
			keyring := newKeyring(a.store) // without cached keys, as if a second had passed
			keyring.now = a.now
			return keyring.caller(r)
		}

		laptop, phone := a.signedIn("ana@example.com"), a.signedIn("ana@example.com")
		check.Equal(t, keyOf(""), "", "invalid token")
		check.Equal(t, keyOf("invented"), "", "invalid token")
		key, other := keyOf(laptop), keyOf(phone)
		if key == other || key != keyOf(laptop) {
			t.Errorf("got keys %s, %s and %s, want one per browser", key, keyOf(laptop), other)
		}
		ana := a.accountOf(laptop)
		if got, err := caller(key); err != nil || got.Account != ana.ID || got.Plan != Developer || !got.Browser {
			t.Errorf("got %+v, %v, want Ana's account", got, err)
		}
		check.Lacks(t, everythingStored(t, a.store), sessionKey(laptop).secret, "the secret stored")
		forged := sessionKey(laptop)
		forged.secret = sessionKey(phone).secret
		check.Try(caller(forged.Text())).Fails(t, "secret of another key")

		check.OK(t, a.EndSession(t.Context(), laptop))
		check.Try(caller(key)).Fails(t, "after signing out")
		check.Equal(t, keyOf(laptop), "", "after signing out")
		_, err := caller(other)
		check.Equal(t, err, nil, "other browser's key")
		a.time = a.time.Add(SessionLifetime + time.Second)
		check.Try(caller(other)).Fails(t, "after the session expired")
		check.Equal(t, keyOf(phone), "", "after the session expired")
	})
}

// The key of a browser becomes invalid with its session.
func TestRecheckSession(t *testing.T) {
	eachFixture(t, func(t *testing.T, a *fixture) {
		keyring := newKeyring(a.store)
		keyring.now = a.now
		token := a.signedIn("ana@example.com")
		text := check.Try(a.SessionKey(t.Context(), token)).OK(t)
		key, _ := ParseKey(text)
		caller := check.Try(keyring.Recheck(t.Context(), Caller{Key: key.ID})).OK(t)
		check.Must(t, caller.Plan, Developer)
		check.MustTrue(t, caller.Account != 0, "got %+v, want a Developer account", caller)
		check.OK(t, a.EndSession(t.Context(), token))
		a.time = a.time.Add(time.Second)
		got, err := keyring.Recheck(t.Context(), caller)
		check.Fails(t, err, "%+v", got)
	})
}
