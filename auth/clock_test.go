package auth

import (
	"fmt"
	"testing"
	"time"

	"palmares/internal/core/store"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
)

const year = 365 * 24 * time.Hour

// clockJumps are how far off a wrong clock is.
var clockJumps = []time.Duration{3 * time.Hour, -3 * time.Hour, year, -year}

// eachJump runs a test for each jump on each database. The clock is correct at
// first.
func eachJump(t *testing.T, test func(t *testing.T, a *fixture, jump time.Duration)) {
	t.Parallel()
	for _, jump := range clockJumps {
		t.Run(jump.String(), func(t *testing.T) {
			testkit.EachStore(t, func(t *testing.T, s *store.Store) { test(t, newFixture(t, s), jump) })
		})
	}
}

// sessionState describes whether a session and its API key are accepted.
func (a *fixture) sessionState(token, key string) string {
	a.t.Helper()
	keyring := newKeyring(a.store)
	keyring.now = a.now
	return fmt.Sprintf("session %t, key %t", a.emailOf(token) != "", tryKey(keyring, key) == "")
}

func TestSessionsWithWrongClock(t *testing.T) {
	eachJump(t, func(t *testing.T, a *fixture, jump time.Duration) {
		start := func(email string) (token, key string) {
			token = a.signedIn(email)
			key = check.Try(a.SessionKey(t.Context(), token)).OK(t)
			return token, key
		}
		want := func(when, token, key, want string) {
			t.Helper()
			check.Equal(t, a.sessionState(token, key), want, when)
		}
		right := a.time
		before, beforeKey := start("ana@example.com")
		a.time = right.Add(jump)
		during, duringKey := start("ben@example.com")
		want("started now, clock wrong", during, duringKey, "session true, key true")

		a.time = right.Add(time.Minute)
		want("started before, clock corrected", before, beforeKey, "session true, key true")
		valid := "session true, key true"
		if jump == year || jump == -year { // it would last too long, or has expired
			valid = "session false, key false"
		}
		want("started meanwhile, clock corrected", during, duringKey, valid)

		// No session lasts longer than 30 days plus the tolerance, even where
		// nothing is deleted. Nothing becomes valid again a year later.
		for _, later := range []time.Duration{SessionLifetime + clockTolerance, year, year + time.Minute} {
			a.time = right.Add(later)
			deleteExpired(t, a.store, right.Add(min(later, 2*SessionLifetime)))
			want(later.String()+" later", before, beforeKey, "session false, key false")
			want(later.String()+" later", during, duringKey, "session false, key false")
		}
	})
}

// Emails sent before a clock jump count against the limits once the clock is
// correct again. Those sent with a wrong date do not.
func TestEmailLimitsWithWrongClock(t *testing.T) {
	eachJump(t, func(t *testing.T, a *fixture, jump time.Duration) {
		right := a.time
		fill := func(email string) (challenge Challenge) {
			for range maxPerMailbox {
				challenge = a.signIn(email)
			}
			check.Try(a.StartSignIn(t.Context(), email, Sender{Network: "x"})).Is(t, ErrMailboxLimit, "one more")
			return challenge
		}
		fill("ana@example.com")
		a.time = right.Add(jump)
		challenge := fill("ben@example.com")

		a.time = right.Add(time.Minute)
		check.Try(a.StartSignIn(t.Context(), "ana@example.com", Sender{Network: "x"})).Is(t, ErrMailboxLimit, "sent before")
		a.signIn("ben@example.com")
		_, err := a.ConfirmationByLink(t.Context(), challenge.Link)
		check.Equal[error](t, err, ErrExpired, "link with a wrong date")
		check.Try(a.CheckCode(t.Context(), signingIn, challenge.Browser, challenge.Code)).Is(t, ErrExpired, "code with a wrong date")
	})
}

func TestWrongCodesWithWrongClock(t *testing.T) {
	eachJump(t, func(t *testing.T, a *fixture, jump time.Duration) {
		right := a.time
		lock := func(email string) {
			for range maxMailboxAttempts / maxAttempts {
				challenge := a.signIn(email)
				for i := range maxAttempts {
					_, err := a.CheckCode(t.Context(), signingIn, challenge.Browser, wrongCode(challenge.Code, i))
					check.MustTrue(t, err != nil, "got a wrong code accepted, want it rejected")
				}
			}
		}
		try := func(email string) error {
			challenge := a.signIn(email)
			_, err := a.CheckCode(t.Context(), signingIn, challenge.Browser, challenge.Code)
			return err
		}
		lock("ana@example.com")
		a.time = right.Add(jump)
		lock("ben@example.com")
		a.time = right.Add(time.Minute)
		check.Is(t, try("ana@example.com"), ErrLocked, "locked before")
		a.time = right.Add(confirmationRetention + 3*time.Hour)
		check.Equal(t, try("ben@example.com"), nil, "a day later")
	})
}

func TestKeyLimitWithWrongClock(t *testing.T) {
	t.Parallel()
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		accounts := NewAccounts(s)
		now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
		accounts.now = func() time.Time { return now.Add(year) }
		acc := check.Try(accounts.Create(t.Context(), "ana@example.com", Developer)).OK(t)
		for range maxKeysPerDay {
			_, key, err := accounts.CreateKey(t.Context(), acc, "")
			check.OK(t, err)
			check.OK(t, accounts.RevokeOwned(t.Context(), acc, key.ID))
		}
		accounts.now = func() time.Time { return now }
		_, _, err := accounts.CreateKey(t.Context(), acc, "")
		check.Equal(t, err, nil, "after correcting the clock")
	})
}

// A key that was cached while the clock was ahead is looked up again once the
// clock is correct.
func TestRevokedKeyAfterWrongClock(t *testing.T) {
	t.Parallel()
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		_, texts := createAccount(t, s, "ana@example.com", Developer, 1)
		keyring := newKeyring(s)
		now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
		keyring.now = func() time.Time { return now }
		for _, jump := range []time.Duration{3 * time.Hour, year} {
			now = now.Add(jump)
			check.Must(t, tryKey(keyring, texts[0]), "", "want the key accepted")
			now = now.Add(-jump)
		}
		check.OK(t, keyring.SaveLastUsed(t.Context()))
		check.OK(t, NewAccounts(s).Revoke(t.Context(), texts[0]))
		check.Contains(t, tryKey(keyring, texts[0]), "revoked", "want the key rejected as revoked")
	})
}

// Days that were counted while the clock was ahead are left out.
func TestUsageAfterWrongClock(t *testing.T) {
	eachFixture(t, func(t *testing.T, a *fixture) {
		acc := a.account("ana@example.com")
		for _, day := range []string{"2026-02-28", "2026-03-01", "2027-03-01"} {
			a.store.Write.Usage.Create().SetSubject(int64(Subject(acc))).SetDay(day).SetKey("").SetEndpoint("").SetRequests(1).ExecX(t.Context())
		}
		days := check.Try(a.Usage(t.Context(), acc, 2)).OK(t)
		check.Must(t, len(days), 2, days)
		check.Equal(t, days[0].Day, "2026-03-01")
		check.Equal(t, days[1].Day, "2026-02-28")
	})
}
