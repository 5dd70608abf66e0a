package auth

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"palmares/ent"
	"palmares/ent/confirmation"
	"palmares/internal/core/store"
	"palmares/internal/dev/testkit"
)

const (
	signingIn = confirmation.PurposeSignIn
	changing  = confirmation.PurposeChangeEmail
)

// fixture holds confirmations with a clock of their own.
type fixture struct {
	*Confirmations
	t    *testing.T
	time time.Time // of the clock
}

func newFixture(t *testing.T, s *store.Store) *fixture {
	a := &fixture{Confirmations: NewConfirmations(s), t: t, time: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}
	a.now = func() time.Time { return a.time }
	return a
}

// signIn starts to sign in, for each address from another network.
func (a *fixture) signIn(email string) Challenge {
	a.t.Helper()
	challenge, err := a.StartSignIn(a.t.Context(), email, Sender{Network: "network of " + email})
	if err != nil {
		a.t.Fatal(err)
	}
	return challenge
}

func (a *fixture) change(acc *ent.Account, email string) Challenge {
	a.t.Helper()
	challenge, err := a.StartEmailChange(a.t.Context(), acc, email, Sender{Network: "network of " + email})
	if err != nil {
		a.t.Fatal(err)
	}
	return challenge
}

func (a *fixture) find(link string) *ent.Confirmation {
	a.t.Helper()
	found, err := a.FindByLink(a.t.Context(), link)
	if err != nil {
		a.t.Fatal(err)
	}
	return found
}

// account signs up and returns the account.
func (a *fixture) account(email string) *ent.Account {
	a.t.Helper()
	session, err := a.SignIn(a.t.Context(), a.find(a.signIn(email).Link))
	if err != nil {
		a.t.Fatal(err)
	}
	sessions := NewSessions(a.store)
	sessions.now = a.now
	acc, err := sessions.Find(a.t.Context(), session)
	if err != nil || acc == nil {
		a.t.Fatalf("got %v, %v, want an account", acc, err)
	}
	return acc
}

func (a *fixture) accounts() int {
	a.t.Helper()
	return a.store.Write.Account.Query().CountX(a.t.Context())
}

func wants(t *testing.T, what string, got, want error) {
	t.Helper()
	if !errors.Is(got, want) {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

// otherThan returns a wrong code.
func otherThan(code string, n int) string {
	wrong := fmt.Sprintf("%06d", n)
	if wrong == code {
		return "999999x"
	}
	return wrong
}

func TestSignInCreatesAnAccountOnce(t *testing.T) {
	t.Parallel()
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		a := newFixture(t, s)
		challenge := a.signIn("Ana@Example.com")
		for range 3 { // like mail scanners
			a.find(challenge.Link)
		}
		if n := a.accounts(); n != 0 {
			t.Fatalf("before the address is confirmed: got %d accounts, want 0", n)
		}
		found := a.find(challenge.Link)
		if _, err := a.SignIn(t.Context(), found); err != nil {
			t.Fatal(err)
		}
		if acc := s.Write.Account.Query().OnlyX(t.Context()); acc.Email != "ana@example.com" || Plan(acc.Plan) != Developer || acc.PlanByHand {
			t.Errorf("got %v, want a Developer account for ana@example.com", acc)
		}
		_, err := a.SignIn(t.Context(), found)
		wants(t, "signing in again", err, ErrUsed)
		_, err = a.FindByLink(t.Context(), challenge.Link)
		wants(t, "link", err, ErrUsed)
		_, err = a.CheckCode(t.Context(), signingIn, challenge.Browser, challenge.Code)
		wants(t, "code", err, ErrUsed)

		// Signing in again leads to the same account with the same plan.
		s.Write.Account.Update().SetPlan("pro").ExecX(t.Context())
		if again := a.account("ana@example.com"); again.Plan != "pro" || a.accounts() != 1 {
			t.Errorf("got %v of %d accounts, want the same with plan pro", again, a.accounts())
		}
	})
}

func TestConfirmationExpires(t *testing.T) {
	t.Parallel()
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		a := newFixture(t, s)
		challenge := a.signIn("ana@example.com")
		a.time = a.time.Add(15*time.Minute - time.Second)
		a.find(challenge.Link)
		a.time = a.time.Add(time.Second)
		_, err := a.FindByLink(t.Context(), challenge.Link)
		wants(t, "link", err, ErrExpired)
		_, err = a.CheckCode(t.Context(), signingIn, challenge.Browser, challenge.Code)
		wants(t, "code", err, ErrExpired)
		_, err = a.FindByLink(t.Context(), challenge.Link+"x")
		wants(t, "unknown link", err, ErrUnknownLink)
		_, err = a.FindByLink(t.Context(), "")
		wants(t, "empty link", err, ErrUnknownLink)
	})
}

func TestLinkUsedConcurrently(t *testing.T) {
	t.Parallel()
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		a := newFixture(t, s)
		found := a.find(a.signIn("ana@example.com").Link)
		var in atomic.Int64
		atOnce(20, func(int) {
			if _, err := a.SignIn(t.Context(), found); err == nil {
				in.Add(1)
			} else {
				wants(t, "concurrent sign-in", err, ErrUsed)
			}
		})
		if n := s.Write.Session.Query().CountX(t.Context()); in.Load() != 1 || n != 1 {
			t.Errorf("got %d sign-ins with %d sessions, want 1 of each", in.Load(), n)
		}
	})
}

// Several emails to a new address that are used concurrently create one account.
func TestOneAccountForSeveralEmails(t *testing.T) {
	t.Parallel()
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		a := newFixture(t, s)
		var found []*ent.Confirmation
		for range maxPerMailbox {
			found = append(found, a.find(a.signIn("ana@example.com").Link))
		}
		atOnce(maxPerMailbox, func(i int) {
			if _, err := a.SignIn(t.Context(), found[i]); err != nil {
				t.Error(err)
			}
		})
		if n := a.accounts(); n != 1 {
			t.Errorf("got %d accounts, want 1", n)
		}
	})
}

func TestMaxAttempts(t *testing.T) {
	t.Parallel()
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		a := newFixture(t, s)
		lucky := a.signIn("eva@example.com")
		for i := range maxAttempts - 1 {
			_, err := a.CheckCode(t.Context(), signingIn, lucky.Browser, otherThan(lucky.Code, i))
			wants(t, "a wrong code", err, ErrWrongCode)
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
			_, err := a.CheckCode(t.Context(), signingIn, challenge.Browser, otherThan(challenge.Code, i))
			wants(t, fmt.Sprint("code ", i), err, want)
		}
		_, err := a.CheckCode(t.Context(), signingIn, challenge.Browser, challenge.Code)
		wants(t, "correct code", err, ErrLocked)
		if _, err := a.SignIn(t.Context(), a.find(challenge.Link)); err != nil {
			t.Errorf("link: got %v, want no error", err)
		}
	})
}

func TestConcurrentAttempts(t *testing.T) {
	t.Parallel()
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		a := newFixture(t, s)
		challenge := a.signIn("ana@example.com")
		atOnce(100, func(i int) {
			if _, err := a.CheckCode(t.Context(), signingIn, challenge.Browser, otherThan(challenge.Code, i)); !errors.Is(err, ErrWrongCode) && !errors.Is(err, ErrLocked) {
				t.Error(err)
			}
		})
		if found := a.find(challenge.Link); found.Tries != maxAttempts {
			t.Errorf("got %d attempts, want %d", found.Tries, maxAttempts)
		}
		_, err := a.CheckCode(t.Context(), signingIn, challenge.Browser, challenge.Code)
		wants(t, "correct code", err, ErrLocked)
	})
}

func TestCodeInAnotherBrowser(t *testing.T) {
	t.Parallel()
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		a := newFixture(t, s)
		challenge, other := a.signIn("ana@example.com"), a.signIn("ben@example.com")
		for _, browser := range []string{"", "made up", challenge.Link} {
			_, err := a.CheckCode(t.Context(), signingIn, browser, challenge.Code)
			wants(t, "browser "+browser, err, ErrUnknownLink)
		}
		if challenge.Code != other.Code {
			_, err := a.CheckCode(t.Context(), signingIn, other.Browser, challenge.Code)
			wants(t, "browser of another email", err, ErrWrongCode)
		}
		if a.find(challenge.Link).Tries != 0 {
			t.Error("got attempts counted for another email, want 0")
		}
	})
}

func TestConfirmationPurposes(t *testing.T) {
	t.Parallel()
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		a := newFixture(t, s)
		ana, ben := a.account("ana@example.com"), a.account("ben@example.com")
		wants(t, "sign-in used to change the address", a.ChangeEmail(t.Context(), a.find(a.signIn("new@example.com").Link), ana, ""), ErrUnknownLink)
		change := a.find(a.change(ana, "anna@example.com").Link)
		_, err := a.SignIn(t.Context(), change)
		wants(t, "change of address used to sign in", err, ErrUnknownLink)
		wants(t, "another account", a.ChangeEmail(t.Context(), change, ben, ""), ErrOtherAccount)
		if err := a.ChangeEmail(t.Context(), change, ana, ""); err != nil {
			t.Fatal(err)
		}
		wants(t, "second use", a.ChangeEmail(t.Context(), change, ana, ""), ErrUsed)
		if got := s.Write.Account.GetX(t.Context(), ana.ID).Email; got != "anna@example.com" {
			t.Errorf("got address %s, want anna@example.com", got)
		}
		wants(t, "address of another account", a.ChangeEmail(t.Context(), a.find(a.change(ana, "BEN@example.com").Link), ana, ""), ErrTaken)
	})
}

func TestConfirmationSecretsAreNotStored(t *testing.T) {
	t.Parallel()
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		a := newFixture(t, s)
		challenge := a.signIn("ana@example.com")
		stored := everythingStored(t, s)
		if !strings.Contains(stored, "ana@example.com") {
			t.Fatal("got no stored address, want one")
		}
		for _, secret := range []string{challenge.Link, challenge.Browser, hashToken(challenge.Code)} {
			if strings.Contains(stored, secret) {
				t.Errorf("got the secret %s stored, want only its hash", secret)
			}
		}
		row := s.Write.Confirmation.Query().Where(confirmation.Email(challenge.Email)).OnlyX(t.Context())
		// A million codes are easy to try, so the hash must depend on an unknown key.
		for _, stored := range []string{row.LinkHash, row.BrowserHash, "", row.Email} {
			if row.CodeHash == hashCode(stored, challenge.Code) {
				t.Error("got a hash with a stored key, want a key that is not stored")
			}
		}
		if printed := fmt.Sprint(row); strings.Contains(printed, row.LinkHash) || strings.Contains(printed, row.CodeHash) {
			t.Errorf("got hashes in %s, want none", printed)
		}
	})
}

func TestCodesAreSixDigits(t *testing.T) {
	first := map[byte]int{}
	for range 5000 {
		code := newCode()
		if len(code) != 6 || strings.Trim(code, "0123456789") != "" {
			t.Fatalf("got code %q, want six digits", code)
		}
		first[code[0]]++
	}
	for digit, n := range first {
		if n < 350 || n > 650 || len(first) != 10 {
			t.Errorf("first digit %c: got %d codes, want about 500", digit, n)
		}
	}
}

// atOnce runs concurrent calls.
func atOnce(times int, do func(i int)) {
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
	t.Parallel()
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		a := newFixture(t, s)
		a.account("ana@example.com")
		if _, err := s.Write.ExecContext(t.Context(), "ALTER TABLE accounts RENAME TO hidden"); err != nil {
			t.Fatal(err)
		}
		a.signIn("ana@example.com")
		a.signIn("nobody@example.com")
	})
}

func TestStartSignInWithInvalidAddress(t *testing.T) {
	t.Parallel()
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		a := newFixture(t, s)
		for _, email := range []string{"", "ana", "ana@example.com\r\nBcc: ben@example.com", "ana@example.com\x00", "a\xff@example.com", strings.Repeat("a", 300) + "@example.com"} {
			if _, err := a.StartSignIn(t.Context(), email, Sender{Network: "x"}); !errors.Is(err, ErrInvalidEmail) {
				t.Errorf("%.40q: got %v, want %v", email, err, ErrInvalidEmail)
			}
		}
		if n := s.Write.Confirmation.Query().CountX(t.Context()); n != 0 {
			t.Errorf("got %d confirmations, want 0", n)
		}
	})
}

func TestWithdraw(t *testing.T) {
	t.Parallel()
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		a := newFixture(t, s)
		for range 2 * maxPerMailbox {
			challenge := a.signIn("ana@example.com")
			if err := a.Withdraw(t.Context(), challenge); err != nil {
				t.Fatal(err)
			}
			_, err := a.FindByLink(t.Context(), challenge.Link)
			wants(t, "link", err, ErrUnknownLink)
		}
	})
}

// A code that is used for another purpose is not counted as an attempt.
func TestCodePurposes(t *testing.T) {
	t.Parallel()
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		a := newFixture(t, s)
		change := a.change(a.account("ana@example.com"), "anna@example.com")
		_, err := a.FindByBrowser(t.Context(), signingIn, change.Browser)
		wants(t, "FindByBrowser", err, ErrUnknownLink)
		_, err = a.CheckCode(t.Context(), signingIn, change.Browser, change.Code)
		wants(t, "CheckCode", err, ErrUnknownLink)
		if n := a.find(change.Link).Tries; n != 0 {
			t.Errorf("got %d attempts, want 0", n)
		}
		if _, err := a.CheckCode(t.Context(), changing, change.Browser, change.Code); err != nil {
			t.Errorf("change of address: got %v, want no error", err)
		}
	})
}

func TestChangeEmailEndsOtherSessions(t *testing.T) {
	t.Parallel()
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		a := newFixture(t, s)
		sessions := NewSessions(s)
		sessions.now = a.now
		laptop, thief, ben := signedIn(a, "ana@example.com"), signedIn(a, "ana@example.com"), signedIn(a, "ben@example.com")
		ana, err := sessions.Find(t.Context(), laptop)
		if err != nil {
			t.Fatal(err)
		}
		_, err = a.StartEmailChange(t.Context(), ana, " ANA@example.com", Sender{})
		wants(t, "same address", err, ErrSameAddress)
		first, second := a.change(ana, "anna@example.com"), a.change(ana, "anna@example.com")
		if err := a.ChangeEmail(t.Context(), a.find(first.Link), ana, laptop); err != nil {
			t.Fatal(err)
		}
		if whose(t, sessions, laptop) != "anna@example.com" || whose(t, sessions, thief) != "" || whose(t, sessions, ben) == "" {
			t.Error("got other sessions ended, want only the account's other ones")
		}
		anna, _ := sessions.Find(t.Context(), laptop)
		wants(t, "second change", a.ChangeEmail(t.Context(), a.find(second.Link), anna, laptop), ErrSameAddress)
	})
}
