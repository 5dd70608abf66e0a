package auth

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"palmares/ent"
	"palmares/ent/confirmation"
	"palmares/internal/core/store"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
)

const (
	signingIn = confirmation.PurposeSignIn
	changing  = confirmation.PurposeChangeEmail
)

// fixture is a database of accounts with its own clock.
type fixture struct {
	*Accounts
	t    *testing.T
	time time.Time // of the clock
}

func newFixture(t *testing.T, s *store.Store) *fixture {
	a := &fixture{Accounts: NewAccounts(s), t: t, time: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}
	a.now = func() time.Time { return a.time }
	return a
}

// eachFixture runs a test on each database.
func eachFixture(t *testing.T, test func(t *testing.T, a *fixture)) {
	t.Parallel()
	testkit.EachStore(t, func(t *testing.T, s *store.Store) { test(t, newFixture(t, s)) })
}

// signIn starts to sign in, from a different network for each address.
func (a *fixture) signIn(email string) Challenge {
	a.t.Helper()
	return check.Try(a.StartSignIn(a.t.Context(), email, Sender{Network: "network of " + email})).OK(a.t)
}

func (a *fixture) change(acc *ent.Account, email string) Challenge {
	a.t.Helper()
	return check.Try(a.StartEmailChange(a.t.Context(), acc, email, Sender{Network: "network of " + email})).OK(a.t)
}

func (a *fixture) find(link string) *ent.Confirmation {
	a.t.Helper()
	return check.Try(a.ConfirmationByLink(a.t.Context(), link)).OK(a.t)
}

// signedIn signs in and returns the session's token.
func (a *fixture) signedIn(email string) string {
	a.t.Helper()
	return check.Try(a.SignIn(a.t.Context(), a.find(a.signIn(email).Link), "", "en")).OK(a.t)
}

// accountOf returns the account of a session.
func (a *fixture) accountOf(token string) *ent.Account {
	a.t.Helper()
	acc := check.Try(a.SessionAccount(a.t.Context(), token)).OK(a.t)
	check.MustTrue(a.t, acc != nil, "got %v, want an account", acc)
	return acc
}

// account signs up and returns the account.
func (a *fixture) account(email string) *ent.Account {
	a.t.Helper()
	return a.accountOf(a.signedIn(email))
}

func (a *fixture) accounts() int {
	a.t.Helper()
	return a.store.Write.Account.Query().CountX(a.t.Context())
}

// wrongCode returns the code n, or another one if that is correct.
func wrongCode(code string, n int) string {
	wrong := fmt.Sprintf("%06d", n)
	if wrong == code {
		return "999999x"
	}
	return wrong
}

func TestSignInCreatesAccountOnce(t *testing.T) {
	eachFixture(t, func(t *testing.T, a *fixture) {
		challenge := a.signIn("Ana@Example.com")
		for range 3 { // as email scanners do
			a.find(challenge.Link)
		}
		check.Must(t, a.accounts(), 0, "before the address is confirmed: accounts")
		found := a.find(challenge.Link)
		check.Try(a.SignIn(t.Context(), found, "", "en")).OK(t)
		acc := a.store.Write.Account.Query().OnlyX(t.Context())
		check.Equal(t, acc.Email, "ana@example.com")
		check.Equal(t, Plan(acc.Plan), Developer)
		check.Equal(t, acc.ManualPlan, false)
		check.Try(a.SignIn(t.Context(), found, "", "en")).Is(t, ErrUsed, "signing in again")
		check.Try(a.ConfirmationByLink(t.Context(), challenge.Link)).Is(t, ErrUsed, "link")
		check.Try(a.CheckCode(t.Context(), signingIn, challenge.Browser, challenge.Code)).Is(t, ErrUsed, "code")

		// Signing in again leads to the same account with the same plan.
		a.store.Write.Account.Update().SetPlan("pro").ExecX(t.Context())
		again := a.account("ana@example.com")
		check.Equal(t, again.Plan, "pro")
		check.Equal(t, a.accounts(), 1)
	})
}

func TestConfirmationExpires(t *testing.T) {
	eachFixture(t, func(t *testing.T, a *fixture) {
		challenge := a.signIn("ana@example.com")
		a.time = a.time.Add(15*time.Minute - time.Second)
		a.find(challenge.Link)
		a.time = a.time.Add(time.Second)
		check.Try(a.ConfirmationByLink(t.Context(), challenge.Link)).Is(t, ErrExpired, "link")
		check.Try(a.CheckCode(t.Context(), signingIn, challenge.Browser, challenge.Code)).Is(t, ErrExpired, "code")
		check.Try(a.ConfirmationByLink(t.Context(), challenge.Link+"x")).Is(t, ErrUnknownLink, "unknown link")
		check.Try(a.ConfirmationByLink(t.Context(), "")).Is(t, ErrUnknownLink, "empty link")
	})
}

func TestLinkUsedConcurrently(t *testing.T) {
	eachFixture(t, func(t *testing.T, a *fixture) {
		found := a.find(a.signIn("ana@example.com").Link)
		var in atomic.Int64
		concurrently(20, func(int) {
			if _, err := a.SignIn(t.Context(), found, "", "en"); err == nil {
				in.Add(1)
			} else {
				check.Is(t, err, ErrUsed, "concurrent sign-in")
			}
		})
		check.Equal(t, in.Load(), 1)
		check.Equal(t, a.store.Write.Session.Query().CountX(t.Context()), 1)
	})
}

func TestMaxAttempts(t *testing.T) {
	eachFixture(t, func(t *testing.T, a *fixture) {
		lucky := a.signIn("eva@example.com")
		for i := range maxAttempts - 1 {
			check.Try(a.CheckCode(t.Context(), signingIn, lucky.Browser, wrongCode(lucky.Code, i))).Is(t, ErrWrongCode, "wrong code")
		}
		if _, err := a.CheckCode(t.Context(), signingIn, lucky.Browser, lucky.Code); err != nil {
			t.Errorf("correct code at the last attempt: got %v, want no error", err)
		}

		challenge := a.signIn("ana@example.com")
		for i := range 1000 {
			want := ErrWrongCode
			if i >= maxAttempts-1 {
				want = ErrLocked
			}
			check.Try(a.CheckCode(t.Context(), signingIn, challenge.Browser, wrongCode(challenge.Code, i))).Is(t, want, "code %d", i)
		}
		check.Try(a.CheckCode(t.Context(), signingIn, challenge.Browser, challenge.Code)).Is(t, ErrLocked, "correct code")
		_, err := a.SignIn(t.Context(), a.find(challenge.Link), "", "en")
		check.Equal(t, err, nil, "link")
	})
}

func TestConcurrentAttempts(t *testing.T) {
	eachFixture(t, func(t *testing.T, a *fixture) {
		challenge := a.signIn("ana@example.com")
		concurrently(100, func(i int) {
			_, err := a.CheckCode(t.Context(), signingIn, challenge.Browser, wrongCode(challenge.Code, i))
			check.True(t, errors.Is(err, ErrWrongCode) || errors.Is(err, ErrLocked), "got %v", err)
		})
		check.Equal(t, a.find(challenge.Link).Tries, maxAttempts, "attempts")
		check.Try(a.CheckCode(t.Context(), signingIn, challenge.Browser, challenge.Code)).Is(t, ErrLocked, "correct code")
	})
}

func TestCodeInAnotherBrowser(t *testing.T) {
	eachFixture(t, func(t *testing.T, a *fixture) {
		challenge, other := a.signIn("ana@example.com"), a.signIn("ben@example.com")
		for _, browser := range []string{"", "invented", challenge.Link} {
			check.Try(a.CheckCode(t.Context(), signingIn, browser, challenge.Code)).Is(t, ErrUnknownLink, "browser "+browser)
		}
		if challenge.Code != other.Code {
			check.Try(a.CheckCode(t.Context(), signingIn, other.Browser, challenge.Code)).Is(t, ErrWrongCode, "browser of another email")
		}
		check.Equal(t, a.find(challenge.Link).Tries, 0, "attempts counted for another email")
	})
}

func TestConfirmationPurposes(t *testing.T) {
	eachFixture(t, func(t *testing.T, a *fixture) {
		ana, ben := a.account("ana@example.com"), a.account("ben@example.com")
		check.Is(t, a.ChangeEmail(t.Context(), a.find(a.signIn("new@example.com").Link), ana, ""), ErrUnknownLink, "sign-in used to change the address")
		change := a.find(a.change(ana, "anna@example.com").Link)
		check.Try(a.SignIn(t.Context(), change, "", "en")).Is(t, ErrUnknownLink, "change of address used to sign in")
		check.Is(t, a.ChangeEmail(t.Context(), change, ben, ""), ErrOtherAccount, "another account")
		check.OK(t, a.ChangeEmail(t.Context(), change, ana, ""))
		check.Is(t, a.ChangeEmail(t.Context(), change, ana, ""), ErrUsed, "second use")
		check.Equal(t, a.store.Write.Account.GetX(t.Context(), ana.ID).Email, "anna@example.com", "address")
		check.Is(t, a.ChangeEmail(t.Context(), a.find(a.change(ana, "BEN@example.com").Link), ana, ""), ErrTaken, "address of another account")
	})
}

func TestConfirmationSecretsAreNotStored(t *testing.T) {
	eachFixture(t, func(t *testing.T, a *fixture) {
		challenge := a.signIn("ana@example.com")
		stored := everythingStored(t, a.store)
		check.MustTrue(t, strings.Contains(stored, "ana@example.com"), "got no stored address, want one")
		for _, secret := range []string{challenge.Link, challenge.Browser, hashToken(challenge.Code)} {
			check.Lacks(t, stored, secret)
		}
		row := a.store.Write.Confirmation.Query().Where(confirmation.Email(challenge.Email)).OnlyX(t.Context())
		// A million codes are easy to try, so the hash must depend on an unknown key.
		for _, stored := range []string{row.LinkHash, row.BrowserHash, "", row.Email} {
			check.True(t, row.CodeHash != keyedHash([]byte(stored), challenge.Code), "got a hash with a stored key, want a key that is not stored")
		}
		printed := fmt.Sprint(row)
		check.Lacks(t, printed, row.LinkHash)
		check.Lacks(t, printed, row.CodeHash)
	})
}

func TestCodesAreSixDigits(t *testing.T) {
	first := map[byte]int{}
	for range 5000 {
		code := newCode()
		check.Must(t, len(code), 6, "want six digits")
		check.Must(t, strings.Trim(code, "0123456789"), "", "want six digits")
		first[code[0]]++
	}
	for digit, n := range first {
		check.True(t, n >= 350 && n <= 650, "first digit %c: got %d codes, want about 500", digit, n)
		check.Equal(t, len(first), 10, "first digit %c: %d codes", digit, n)
	}
}

// concurrently makes several calls at the same time.
func concurrently(times int, do func(i int)) {
	var ready, all sync.WaitGroup
	ready.Add(1)
	for i := range times {
		all.Go(func() {
			ready.Wait()
			do(i)
		})
	}
	ready.Done()
	all.Wait()
}

// Starting to sign in does not read the accounts, so neither the response nor
// its timing reveals whether an address has one.
func TestStartSignInReadsNoAccounts(t *testing.T) {
	eachFixture(t, func(t *testing.T, a *fixture) {
		a.account("ana@example.com")
		check.Try(a.store.Write.ExecContext(t.Context(), "ALTER TABLE accounts RENAME TO hidden")).OK(t)
		a.signIn("ana@example.com")
		a.signIn("nobody@example.com")
	})
}

func TestStartSignInWithInvalidAddress(t *testing.T) {
	eachFixture(t, func(t *testing.T, a *fixture) {
		for _, email := range []string{"", "ana", "ana@example.com\r\nBcc: ben@example.com", "ana@example.com\x00", "a\xff@example.com", strings.Repeat("a", 300) + "@example.com"} {
			check.Try(a.StartSignIn(t.Context(), email, Sender{Network: "x"})).Is(t, ErrInvalidEmail, "%.40q", email)
		}
		check.Equal(t, a.store.Write.Confirmation.Query().CountX(t.Context()), 0, "confirmations")
	})
}

func TestWithdraw(t *testing.T) {
	eachFixture(t, func(t *testing.T, a *fixture) {
		for range 2 * maxPerMailbox {
			challenge := a.signIn("ana@example.com")
			check.OK(t, a.Withdraw(t.Context(), challenge))
			check.Try(a.ConfirmationByLink(t.Context(), challenge.Link)).Is(t, ErrUnknownLink, "link")
		}
	})
}

// Using a code for another purpose does not count as an attempt.
func TestCodePurposes(t *testing.T) {
	eachFixture(t, func(t *testing.T, a *fixture) {
		change := a.change(a.account("ana@example.com"), "anna@example.com")
		check.Try(a.ConfirmationByBrowser(t.Context(), signingIn, change.Browser)).Is(t, ErrUnknownLink, "ConfirmationByBrowser")
		check.Try(a.CheckCode(t.Context(), signingIn, change.Browser, change.Code)).Is(t, ErrUnknownLink, "CheckCode")
		check.Equal(t, a.find(change.Link).Tries, 0, "attempts")
		_, err := a.CheckCode(t.Context(), changing, change.Browser, change.Code)
		check.Equal(t, err, nil, "change of address")
	})
}

func TestChangeEmailEndsOtherSessions(t *testing.T) {
	eachFixture(t, func(t *testing.T, a *fixture) {
		laptop, thief, ben := a.signedIn("ana@example.com"), a.signedIn("ana@example.com"), a.signedIn("ben@example.com")
		ana := a.accountOf(laptop)
		check.Try(a.StartEmailChange(t.Context(), ana, " ANA@example.com", Sender{})).Is(t, ErrSameAddress, "same address")
		first, second := a.change(ana, "anna@example.com"), a.change(ana, "anna@example.com")
		check.OK(t, a.ChangeEmail(t.Context(), a.find(first.Link), ana, laptop))
		check.Equal(t, a.emailOf(laptop), "anna@example.com")
		check.Equal(t, a.emailOf(thief), "")
		check.True(t, a.emailOf(ben) != "", "got the wrong sessions ended, want only the account's other ones")
		check.Is(t, a.ChangeEmail(t.Context(), a.find(second.Link), a.accountOf(laptop), laptop), ErrSameAddress, "second change")
	})
}

// Several browsers that sign up with one address at the same time get one account.
func TestConcurrentSignUps(t *testing.T) {
	eachFixture(t, func(t *testing.T, a *fixture) {
		for round := range testkit.Rounds(20, 300) {
			email := fmt.Sprintf("a%d@example.com", round)
			var found []*ent.Confirmation
			for i := range 4 {
				c := check.Try(a.StartSignIn(t.Context(), email, Sender{fmt.Sprint(round, i), fmt.Sprint(round, i)})).OK(t)
				found = append(found, a.find(c.Link))
			}
			concurrently(len(found), func(i int) {
				_, err := a.SignIn(t.Context(), found[i], "", "en")
				check.Equal(t, err, nil)
			})
			check.Must(t, a.accounts(), round+1, "accounts")
		}
	})
}

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
				check.Is(t, err, ErrMailboxLimit, email)
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
				check.Is(t, err, ErrNetworkLimit, "one more")
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
			challenge := check.Try(a.StartEmailChange(t.Context(), acc, "victim@example.com", Sender{Network: "192.0.2.1"})).OK(t)
			links = append(links, challenge.Link)
		}
		pending := a.signIn("mallory@example.com")
		check.OK(t, a.Delete(t.Context(), acc))
		check.Try(a.StartSignIn(t.Context(), "victim@example.com", Sender{Network: "192.0.2.9"})).Is(t, ErrMailboxLimit, "mailbox")
		for i := range maxPerNetwork - maxPerMailbox {
			check.Try(a.StartSignIn(t.Context(), fmt.Sprintf("victim%d@example.com", i), Sender{Network: "192.0.2.1"})).OK(t)
		}
		check.Try(a.StartSignIn(t.Context(), "one-more@example.com", Sender{Network: "192.0.2.1"})).Is(t, ErrNetworkLimit, "network")
		for _, link := range append(links, pending.Link) {
			check.Try(a.ConfirmationByLink(t.Context(), link)).Fails(t, "link of a deleted account")
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
			check.Is(t, start(most, wider), ErrNetworkLimit, wider)
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
			check.Is(t, guesses(a.signIn(fmt.Sprintf("ana+%d@example.com", i)), maxAttempts), ErrLocked, "last attempt of an email")
			a.time = a.time.Add(emailWindow)
		}
		challenge := a.signIn("ana@example.com")
		check.Try(a.CheckCode(t.Context(), signingIn, challenge.Browser, challenge.Code)).Is(t, ErrLocked, "correct code")
		found := a.find(challenge.Link)
		locked := check.Try(a.Locked(t.Context(), found)).OK(t, "Locked")
		check.Equal(t, locked, true, "Locked")
		_, err := a.SignIn(t.Context(), found, "", "en")
		check.Equal(t, err, nil, "link")
		check.Is(t, guesses(a.signIn("ben@example.com"), 1), ErrWrongCode, "another mailbox")

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
			found := check.Try(a.CheckCode(t.Context(), signingIn, challenge.Browser, challenge.Code)).OK(t)
			check.Try(a.SignIn(t.Context(), found, "", "en")).OK(t)
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
		check.Try(a.CheckCode(t.Context(), signingIn, challenge.Browser, challenge.Code)).Is(t, ErrLocked, "one more")
	})
}

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
		check.True(t, laptop != phone && len(laptop) >= 26, "got tokens %s and %s, want two different ones of at least 26 characters", laptop, phone) // base32
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
