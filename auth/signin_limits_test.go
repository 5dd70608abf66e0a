package auth

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"palmares/internal/core/store"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
)

func TestMaxPerMailbox(t *testing.T) {
	eachFixture(t, func(t *testing.T, a *fixture) {
		ana := a.account("ana@example.com")
		a.time = a.time.Add(2 * emailWindow)
		var sent atomic.Int64
		concurrently(20, func(i int) {
			email := []string{"victim@example.com", "VICTIM+a@example.com", fmt.Sprintf("victim+%d+x@example.com", i)}[i%3]
			start := a.StartSignIn
			if i%2 == 0 { // changes of address count too
				start = func(ctx context.Context, email string, from Sender) (Challenge, error) {
					return a.StartEmailChange(ctx, ana, email, from)
				}
			}
			if _, err := start(t.Context(), email, Sender{Network: fmt.Sprint("network ", i)}); err == nil {
				sent.Add(1)
			} else {
				wantError(t, email, err, ErrMailboxLimit)
			}
		})
		check.Equal(t, sent.Load(), maxPerMailbox, "emails")
		a.signIn("other@example.com")
		a.time = a.time.Add(emailWindow)
		a.signIn("victim@example.com")
	})
}

func TestMaxPerNetwork(t *testing.T) {
	eachFixture(t, func(t *testing.T, a *fixture) {
		var sent atomic.Int64
		concurrently(40, func(i int) {
			if _, err := a.StartSignIn(t.Context(), fmt.Sprintf("victim%d@example.com", i), Sender{Network: "192.0.2.1"}); err == nil {
				sent.Add(1)
			} else {
				wantError(t, "one more", err, ErrNetworkLimit)
			}
		})
		check.Equal(t, sent.Load(), maxPerNetwork, "emails")
		_, err := a.StartSignIn(t.Context(), "victim@example.com", Sender{Network: "192.0.2.2"})
		check.Equal(t, err, nil, "another network")
	})
}

// Deleting an account must not reset the limits on emails.
func TestEmailLimitsOutliveAccount(t *testing.T) {
	eachFixture(t, func(t *testing.T, a *fixture) {
		acc := a.account("mallory@example.com")
		var links []string
		for range maxPerMailbox {
			challenge, err := a.StartEmailChange(t.Context(), acc, "victim@example.com", Sender{Network: "192.0.2.1"})
			check.OK(t, err)
			links = append(links, challenge.Link)
		}
		pending := a.signIn("mallory@example.com")
		check.OK(t, a.Delete(t.Context(), acc))
		_, err := a.StartSignIn(t.Context(), "victim@example.com", Sender{Network: "192.0.2.9"})
		wantError(t, "mailbox", err, ErrMailboxLimit)
		for i := range maxPerNetwork - maxPerMailbox {
			_, err := a.StartSignIn(t.Context(), fmt.Sprintf("victim%d@example.com", i), Sender{Network: "192.0.2.1"})
			check.OK(t, err)
		}
		_, err = a.StartSignIn(t.Context(), "one-more@example.com", Sender{Network: "192.0.2.1"})
		wantError(t, "network", err, ErrNetworkLimit)
		for _, link := range append(links, pending.Link) {
			_, err := a.ConfirmationByLink(t.Context(), link)
			check.Fails(t, err, "link of a deleted account")
		}
		check.OK(t, DeleteExpired(t.Context(), a.store, a.time.Add(confirmationRetention+time.Second)))
		check.Equal(t, a.store.Write.Confirmation.Query().CountX(t.Context()), 0, "confirmations")
	})
}

// A sender with many small networks cannot send more emails.
func TestMaxPerWiderNetwork(t *testing.T) {
	t.Parallel()
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		for wider, most := range map[string]int{"2001:db8:1::/48": maxPerWiderIPv6, "192.0.2.0/24": maxPerWiderIPv4} {
			a := newFixture(t, s)
			start := func(i int, wider string) error {
				_, err := a.StartSignIn(t.Context(), fmt.Sprintf("victim%d@%d.example.com", i, most), Sender{fmt.Sprint(wider, " network ", i), wider})
				return err
			}
			for i := range most {
				check.OK(t, start(i, wider), "%s, email %d", wider, i)
			}
			wantError(t, wider, start(most, wider), ErrNetworkLimit)
			check.Equal(t, start(most, "another network"), nil, "another network")
		}
	})
}

// A mailbox has a daily limit on wrong codes in addition to the limit of each
// email.
func TestMaxMailboxAttempts(t *testing.T) {
	eachFixture(t, func(t *testing.T, a *fixture) {
		guesses := func(challenge Challenge, many int) (last error) {
			for i := range many {
				_, last = a.CheckCode(t.Context(), signingIn, challenge.Browser, wrongCode(challenge.Code, i))
			}
			return last
		}
		for i := range maxMailboxAttempts / maxAttempts {
			wantError(t, "last attempt of an email", guesses(a.signIn(fmt.Sprintf("ana+%d@example.com", i)), maxAttempts), ErrLocked)
			a.time = a.time.Add(emailWindow)
		}
		challenge := a.signIn("ana@example.com")
		_, err := a.CheckCode(t.Context(), signingIn, challenge.Browser, challenge.Code)
		wantError(t, "correct code", err, ErrLocked)
		found := a.find(challenge.Link)
		locked, err := a.Locked(t.Context(), found)
		check.OK(t, err, "Locked")
		check.Equal(t, locked, true, "Locked")
		_, err = a.SignIn(t.Context(), found, "", "en")
		check.Equal(t, err, nil, "link")
		wantError(t, "another mailbox", guesses(a.signIn("ben@example.com"), 1), ErrWrongCode)

		a.time = a.time.Add(confirmationRetention)
		challenge = a.signIn("ana@example.com")
		_, err = a.CheckCode(t.Context(), signingIn, challenge.Browser, challenge.Code)
		check.Equal(t, err, nil, "a day later")
	})
}

// Correct codes do not count towards the limit.
func TestCorrectCodesDoNotCount(t *testing.T) {
	eachFixture(t, func(t *testing.T, a *fixture) {
		for range maxMailboxAttempts + 1 {
			challenge := a.signIn("ana@example.com")
			found, err := a.CheckCode(t.Context(), signingIn, challenge.Browser, challenge.Code)
			check.OK(t, err)
			_, err = a.SignIn(t.Context(), found, "", "en")
			check.OK(t, err)
			a.time = a.time.Add(emailWindow / maxPerMailbox)
		}
	})
}

// Wrong codes still count after their account was deleted.
func TestWrongCodesOutliveAccount(t *testing.T) {
	eachFixture(t, func(t *testing.T, a *fixture) {
		mallory := a.account("mallory@example.com")
		for i := range maxMailboxAttempts {
			challenge := a.change(mallory, "victim@example.com")
			_, err := a.CheckCode(t.Context(), changing, challenge.Browser, wrongCode(challenge.Code, i))
			check.MustTrue(t, err != nil, "wrong code: got no error, want one")
			a.time = a.time.Add(emailWindow / maxPerMailbox)
		}
		a.time = a.time.Add(2 * emailWindow)
		check.OK(t, a.Delete(t.Context(), mallory))
		challenge := a.signIn("victim@example.com")
		_, err := a.CheckCode(t.Context(), signingIn, challenge.Browser, challenge.Code)
		wantError(t, "one more", err, ErrLocked)
	})
}
