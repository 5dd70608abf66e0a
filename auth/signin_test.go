package auth

import (
	"context"
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

// asking is what a test of messages works with.
type asking struct {
	*Confirmations
	t    *testing.T
	time time.Time // what the clock shows
}

func newAsking(t *testing.T, s *store.Store) *asking {
	a := &asking{Confirmations: NewConfirmations(s), t: t, time: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}
	a.now = func() time.Time { return a.time }
	return a
}

// signIn asks for a message, each from a network of its own.
func (a *asking) signIn(email string) Challenge {
	a.t.Helper()
	asked, err := a.StartSignIn(a.t.Context(), email, Sender{Network: "network of " + email})
	if err != nil {
		a.t.Fatal(err)
	}
	return asked
}

func (a *asking) change(acc *ent.Account, email string) Challenge {
	a.t.Helper()
	asked, err := a.StartEmailChange(a.t.Context(), acc, email, Sender{Network: "network of " + email})
	if err != nil {
		a.t.Fatal(err)
	}
	return asked
}

func (a *asking) look(link string) *ent.Confirmation {
	a.t.Helper()
	found, err := a.FindByLink(a.t.Context(), link)
	if err != nil {
		a.t.Fatal(err)
	}
	return found
}

// account is one that signed up.
func (a *asking) account(email string) *ent.Account {
	a.t.Helper()
	session, err := a.SignIn(a.t.Context(), a.look(a.signIn(email).Link))
	if err != nil {
		a.t.Fatal(err)
	}
	sessions := NewSessions(a.store)
	sessions.now = a.now
	acc, err := sessions.Find(a.t.Context(), session)
	if err != nil || acc == nil {
		a.t.Fatalf("%v, %v", acc, err)
	}
	return acc
}

func (a *asking) accounts() int {
	a.t.Helper()
	return a.store.Write.Account.Query().CountX(a.t.Context())
}

func wants(t *testing.T, what string, got, want error) {
	t.Helper()
	if !errors.Is(got, want) {
		t.Errorf("%s: %v, not %v", what, got, want)
	}
}

// otherThan is a code that is wrong.
func otherThan(code string, n int) string {
	wrong := fmt.Sprintf("%06d", n)
	if wrong == code {
		return "999999x"
	}
	return wrong
}

func TestMessageOpensAnAccountOnce(t *testing.T) {
	t.Parallel()
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		a := newAsking(t, s)
		asked := a.signIn("Ana@Example.com")
		for range 3 { // as mail scanners do
			a.look(asked.Link)
		}
		if n := a.accounts(); n != 0 {
			t.Fatalf("%d accounts before the address is confirmed", n)
		}
		found := a.look(asked.Link)
		if _, err := a.SignIn(t.Context(), found); err != nil {
			t.Fatal(err)
		}
		if acc := s.Write.Account.Query().OnlyX(t.Context()); acc.Email != "ana@example.com" || Plan(acc.Plan) != Developer || acc.PlanByHand {
			t.Errorf("opened: %v", acc)
		}
		_, err := a.SignIn(t.Context(), found)
		wants(t, "a second time", err, ErrUsed)
		_, err = a.FindByLink(t.Context(), asked.Link)
		wants(t, "the link", err, ErrUsed)
		_, err = a.CheckCode(t.Context(), signingIn, asked.Browser, asked.Code)
		wants(t, "the code", err, ErrUsed)

		// Who comes back has the account and the plan they had.
		s.Write.Account.Update().SetPlan("pro").ExecX(t.Context())
		if again := a.account("ana@example.com"); again.Plan != "pro" || a.accounts() != 1 {
			t.Errorf("back as %v, one of %d", again, a.accounts())
		}
	})
}

func TestMessageWorksForFifteenMinutes(t *testing.T) {
	t.Parallel()
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		a := newAsking(t, s)
		asked := a.signIn("ana@example.com")
		a.time = a.time.Add(15*time.Minute - time.Second)
		a.look(asked.Link)
		a.time = a.time.Add(time.Second)
		_, err := a.FindByLink(t.Context(), asked.Link)
		wants(t, "the link", err, ErrExpired)
		_, err = a.CheckCode(t.Context(), signingIn, asked.Browser, asked.Code)
		wants(t, "the code", err, ErrExpired)
		_, err = a.FindByLink(t.Context(), asked.Link+"x")
		wants(t, "another link", err, ErrUnknownLink)
		_, err = a.FindByLink(t.Context(), "")
		wants(t, "no link", err, ErrUnknownLink)
	})
}

func TestLinkUsedByManyAtOnce(t *testing.T) {
	t.Parallel()
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		a := newAsking(t, s)
		found := a.look(a.signIn("ana@example.com").Link)
		var in atomic.Int64
		atOnce(20, func(int) {
			if _, err := a.SignIn(t.Context(), found); err == nil {
				in.Add(1)
			} else {
				wants(t, "at once", err, ErrUsed)
			}
		})
		if n := s.Write.Session.Query().CountX(t.Context()); in.Load() != 1 || n != 1 {
			t.Errorf("%d were let in, with %d sessions", in.Load(), n)
		}
	})
}

// Different messages to a new address, used at once, are one account.
func TestOneAccountForManyMessages(t *testing.T) {
	t.Parallel()
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		a := newAsking(t, s)
		var found []*ent.Confirmation
		for range maxPerMailbox {
			found = append(found, a.look(a.signIn("ana@example.com").Link))
		}
		atOnce(maxPerMailbox, func(i int) {
			if _, err := a.SignIn(t.Context(), found[i]); err != nil {
				t.Error(err)
			}
		})
		if n := a.accounts(); n != 1 {
			t.Errorf("%d accounts", n)
		}
	})
}

func TestFiveCodesAreTaken(t *testing.T) {
	t.Parallel()
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		a := newAsking(t, s)
		lucky := a.signIn("eva@example.com")
		for i := range maxAttempts - 1 {
			_, err := a.CheckCode(t.Context(), signingIn, lucky.Browser, otherThan(lucky.Code, i))
			wants(t, "a wrong code", err, ErrWrongCode)
		}
		if _, err := a.CheckCode(t.Context(), signingIn, lucky.Browser, lucky.Code); err != nil {
			t.Errorf("the fifth, which is right: %v", err)
		}

		asked := a.signIn("ana@example.com")
		for i := range 1000 {
			want := ErrWrongCode
			if i >= maxAttempts-1 {
				want = ErrLocked
			}
			_, err := a.CheckCode(t.Context(), signingIn, asked.Browser, otherThan(asked.Code, i))
			wants(t, fmt.Sprint("code ", i), err, want)
		}
		_, err := a.CheckCode(t.Context(), signingIn, asked.Browser, asked.Code)
		wants(t, "the right code", err, ErrLocked)
		if _, err := a.SignIn(t.Context(), a.look(asked.Link)); err != nil {
			t.Errorf("the link: %v", err)
		}
	})
}

func TestCodesTriedAtOnce(t *testing.T) {
	t.Parallel()
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		a := newAsking(t, s)
		asked := a.signIn("ana@example.com")
		atOnce(100, func(i int) {
			if _, err := a.CheckCode(t.Context(), signingIn, asked.Browser, otherThan(asked.Code, i)); !errors.Is(err, ErrWrongCode) && !errors.Is(err, ErrLocked) {
				t.Error(err)
			}
		})
		if found := a.look(asked.Link); found.Tries != maxAttempts {
			t.Errorf("%d were looked at", found.Tries)
		}
		_, err := a.CheckCode(t.Context(), signingIn, asked.Browser, asked.Code)
		wants(t, "the right code", err, ErrLocked)
	})
}

func TestCodeIsForItsBrowser(t *testing.T) {
	t.Parallel()
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		a := newAsking(t, s)
		asked, other := a.signIn("ana@example.com"), a.signIn("ben@example.com")
		for _, browser := range []string{"", "made up", asked.Link} {
			_, err := a.CheckCode(t.Context(), signingIn, browser, asked.Code)
			wants(t, "in browser "+browser, err, ErrUnknownLink)
		}
		if asked.Code != other.Code {
			_, err := a.CheckCode(t.Context(), signingIn, other.Browser, asked.Code)
			wants(t, "in a browser that waits for another", err, ErrWrongCode)
		}
		if a.look(asked.Link).Tries != 0 {
			t.Error("others use up its tries")
		}
	})
}

func TestMessagesAreForOneThing(t *testing.T) {
	t.Parallel()
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		a := newAsking(t, s)
		ana, ben := a.account("ana@example.com"), a.account("ben@example.com")
		wants(t, "a sign-in that changes", a.ChangeEmail(t.Context(), a.look(a.signIn("new@example.com").Link), ana, ""), ErrUnknownLink)
		change := a.look(a.change(ana, "anna@example.com").Link)
		_, err := a.SignIn(t.Context(), change)
		wants(t, "a change that signs in", err, ErrUnknownLink)
		wants(t, "another account's", a.ChangeEmail(t.Context(), change, ben, ""), ErrOtherAccount)
		if err := a.ChangeEmail(t.Context(), change, ana, ""); err != nil {
			t.Fatal(err)
		}
		wants(t, "twice", a.ChangeEmail(t.Context(), change, ana, ""), ErrUsed)
		if got := s.Write.Account.GetX(t.Context(), ana.ID).Email; got != "anna@example.com" {
			t.Errorf("the address is %s", got)
		}
		wants(t, "an address that is taken", a.ChangeEmail(t.Context(), a.look(a.change(ana, "BEN@example.com").Link), ana, ""), ErrTaken)
	})
}

func TestMessagesAreStoredWithoutTheirSecrets(t *testing.T) {
	t.Parallel()
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		a := newAsking(t, s)
		asked := a.signIn("ana@example.com")
		stored := everythingStored(t, s)
		if !strings.Contains(stored, "ana@example.com") {
			t.Fatal("nothing is seen of what is stored")
		}
		for _, secret := range []string{asked.Link, asked.Browser, hashToken(asked.Code)} {
			if strings.Contains(stored, secret) {
				t.Errorf("%s is stored", secret)
			}
		}
		row := s.Write.Confirmation.Query().Where(confirmation.Email(asked.Email)).OnlyX(t.Context())
		// A million codes are soon tried: what is stored must not be theirs alone.
		for _, stored := range []string{row.LinkHash, row.BrowserHash, "", row.Email} {
			if row.CodeHash == hashCode(stored, asked.Code) {
				t.Error("the code can be guessed from what is stored")
			}
		}
		if printed := fmt.Sprint(row); strings.Contains(printed, row.LinkHash) || strings.Contains(printed, row.CodeHash) {
			t.Errorf("printed: %s", printed)
		}
	})
}

func TestCodesAreSixDigits(t *testing.T) {
	first := map[byte]int{}
	for range 5000 {
		code := newCode()
		if len(code) != 6 || strings.Trim(code, "0123456789") != "" {
			t.Fatalf("a code: %q", code)
		}
		first[code[0]]++
	}
	for digit, n := range first {
		if n < 350 || n > 650 || len(first) != 10 {
			t.Errorf("%c comes first %d times, not 500", digit, n)
		}
	}
}

// atOnce runs do as often as told, all at the same time.
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

func TestMessagesToOneMailbox(t *testing.T) {
	t.Parallel()
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		a := newAsking(t, s)
		ana := a.account("ana@example.com")
		a.time = a.time.Add(2 * emailWindow)
		var sent atomic.Int64
		atOnce(20, func(i int) {
			email := []string{"victim@example.com", "VICTIM+a@example.com", fmt.Sprintf("victim+%d+x@example.com", i)}[i%3]
			ask := a.StartSignIn
			if i%2 == 0 { // a change of address is a message, too
				ask = func(ctx context.Context, email string, from Sender) (Challenge, error) {
					return a.StartEmailChange(ctx, ana, email, from)
				}
			}
			if _, err := ask(t.Context(), email, Sender{Network: fmt.Sprint("network ", i)}); err == nil {
				sent.Add(1)
			} else {
				wants(t, email, err, ErrMailboxLimit)
			}
		})
		if sent.Load() != maxPerMailbox {
			t.Errorf("%d messages", sent.Load())
		}
		a.signIn("other@example.com")
		a.time = a.time.Add(emailWindow)
		a.signIn("victim@example.com")
	})
}

func TestMessagesFromOneNetwork(t *testing.T) {
	t.Parallel()
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		a := newAsking(t, s)
		var sent atomic.Int64
		atOnce(40, func(i int) {
			if _, err := a.StartSignIn(t.Context(), fmt.Sprintf("victim%d@example.com", i), Sender{Network: "192.0.2.1"}); err == nil {
				sent.Add(1)
			} else {
				wants(t, "one more", err, ErrNetworkLimit)
			}
		})
		if sent.Load() != maxPerNetwork {
			t.Errorf("%d messages", sent.Load())
		}
		if _, err := a.StartSignIn(t.Context(), "victim@example.com", Sender{Network: "192.0.2.2"}); err != nil {
			t.Errorf("from another network: %v", err)
		}
	})
}

// Else whoever deletes an account could send without end.
func TestBoundsOutliveTheAccount(t *testing.T) {
	t.Parallel()
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		a := newAsking(t, s)
		accounts := NewAccounts(s)
		accounts.now = a.now
		acc := a.account("mallory@example.com")
		var links []string
		for range maxPerMailbox {
			asked, err := a.StartEmailChange(t.Context(), acc, "victim@example.com", Sender{Network: "192.0.2.1"})
			if err != nil {
				t.Fatal(err)
			}
			links = append(links, asked.Link)
		}
		pending := a.signIn("mallory@example.com")
		if err := accounts.Delete(t.Context(), acc); err != nil {
			t.Fatal(err)
		}
		_, err := a.StartSignIn(t.Context(), "victim@example.com", Sender{Network: "192.0.2.9"})
		wants(t, "the mailbox", err, ErrMailboxLimit)
		for i := range maxPerNetwork - maxPerMailbox {
			if _, err := a.StartSignIn(t.Context(), fmt.Sprintf("victim%d@example.com", i), Sender{Network: "192.0.2.1"}); err != nil {
				t.Fatal(err)
			}
		}
		_, err = a.StartSignIn(t.Context(), "one-more@example.com", Sender{Network: "192.0.2.1"})
		wants(t, "the network", err, ErrNetworkLimit)
		for _, link := range append(links, pending.Link) {
			if _, err := a.FindByLink(t.Context(), link); err == nil {
				t.Error("a message of a deleted account still works")
			}
		}
		if err := Tidy(t.Context(), s, a.time.Add(confirmationRetention+time.Second)); err != nil {
			t.Fatal(err)
		}
		if n := s.Write.Confirmation.Query().CountX(t.Context()); n != 0 {
			t.Errorf("%d messages are kept", n)
		}
	})
}

// Without a table of accounts nothing is different: nobody is looked up there,
// so that neither words nor time tell who has one.
func TestAskingKnowsNothingOfAccounts(t *testing.T) {
	t.Parallel()
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		a := newAsking(t, s)
		a.account("ana@example.com")
		if _, err := s.Write.ExecContext(t.Context(), "ALTER TABLE accounts RENAME TO hidden"); err != nil {
			t.Fatal(err)
		}
		a.signIn("ana@example.com")
		a.signIn("nobody@example.com")
	})
}

func TestNoMessageWithoutAnAddress(t *testing.T) {
	t.Parallel()
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		a := newAsking(t, s)
		for _, email := range []string{"", "ana", "ana@example.com\r\nBcc: ben@example.com", "ana@example.com\x00", "a\xff@example.com", strings.Repeat("a", 300) + "@example.com"} {
			if _, err := a.StartSignIn(t.Context(), email, Sender{Network: "x"}); !errors.Is(err, ErrInvalidEmail) {
				t.Errorf("%.40q: %v", email, err)
			}
		}
		if n := s.Write.Confirmation.Query().CountX(t.Context()); n != 0 {
			t.Errorf("%d messages", n)
		}
	})
}

// Who has many networks has no more messages for it.
func TestMessagesFromTheNetworkAround(t *testing.T) {
	t.Parallel()
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		for wider, most := range map[string]int{"2001:db8:1::/48": maxPerWiderIPv6, "192.0.2.0/24": maxPerWiderIPv4} {
			a := newAsking(t, s)
			ask := func(i int, wider string) error {
				_, err := a.StartSignIn(t.Context(), fmt.Sprintf("victim%d@%d.example.com", i, most), Sender{fmt.Sprint(wider, " network ", i), wider})
				return err
			}
			for i := range most {
				if err := ask(i, wider); err != nil {
					t.Fatalf("%s, message %d: %v", wider, i, err)
				}
			}
			wants(t, wider, ask(most, wider), ErrNetworkLimit)
			if err := ask(most, "of others"); err != nil {
				t.Errorf("from elsewhere: %v", err)
			}
		}
	})
}

func TestWithdrawnMessagesDoNotCount(t *testing.T) {
	t.Parallel()
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		a := newAsking(t, s)
		for range 2 * maxPerMailbox {
			asked := a.signIn("ana@example.com")
			if err := a.Withdraw(t.Context(), asked); err != nil {
				t.Fatal(err)
			}
			_, err := a.FindByLink(t.Context(), asked.Link)
			wants(t, "its link", err, ErrUnknownLink)
		}
	})
}

// Each message takes five wrong codes, but not each day as many as there are
// messages.
func TestWrongCodesOfAMailbox(t *testing.T) {
	t.Parallel()
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		a := newAsking(t, s)
		guesses := func(asked Challenge, many int) (last error) {
			for i := range many {
				_, last = a.CheckCode(t.Context(), signingIn, asked.Browser, otherThan(asked.Code, i))
			}
			return last
		}
		for i := range maxMailboxAttempts / maxAttempts {
			wants(t, "a message's last", guesses(a.signIn(fmt.Sprintf("ana+%d@example.com", i)), maxAttempts), ErrLocked)
			a.time = a.time.Add(emailWindow)
		}
		asked := a.signIn("ana@example.com")
		_, err := a.CheckCode(t.Context(), signingIn, asked.Browser, asked.Code)
		wants(t, "the right code", err, ErrLocked)
		found := a.look(asked.Link)
		if locked, err := a.Locked(t.Context(), found); err != nil || !locked {
			t.Errorf("locked: %v, %v", locked, err)
		}
		if _, err := a.SignIn(t.Context(), found); err != nil {
			t.Errorf("the link: %v", err)
		}
		wants(t, "another mailbox", guesses(a.signIn("ben@example.com"), 1), ErrWrongCode)

		a.time = a.time.Add(confirmationRetention)
		asked = a.signIn("ana@example.com")
		if _, err := a.CheckCode(t.Context(), signingIn, asked.Browser, asked.Code); err != nil {
			t.Errorf("a day later: %v", err)
		}
	})
}

// Who types no wrong code may sign in as often as they like.
func TestRightCodesDoNotCount(t *testing.T) {
	t.Parallel()
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		a := newAsking(t, s)
		for range maxMailboxAttempts + 1 {
			asked := a.signIn("ana@example.com")
			found, err := a.CheckCode(t.Context(), signingIn, asked.Browser, asked.Code)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := a.SignIn(t.Context(), found); err != nil {
				t.Fatal(err)
			}
			a.time = a.time.Add(emailWindow / maxPerMailbox)
		}
	})
}

// Guesses made from an account that is deleted since still count.
func TestWrongCodesOutliveTheAccount(t *testing.T) {
	t.Parallel()
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		a := newAsking(t, s)
		accounts := NewAccounts(s)
		accounts.now = a.now
		mallory := a.account("mallory@example.com")
		for i := range maxMailboxAttempts {
			asked := a.change(mallory, "victim@example.com")
			_, err := a.CheckCode(t.Context(), changing, asked.Browser, otherThan(asked.Code, i))
			if err == nil {
				t.Fatal("a wrong code was taken")
			}
			a.time = a.time.Add(emailWindow / maxPerMailbox)
		}
		a.time = a.time.Add(2 * emailWindow)
		if err := accounts.Delete(t.Context(), mallory); err != nil {
			t.Fatal(err)
		}
		asked := a.signIn("victim@example.com")
		_, err := a.CheckCode(t.Context(), signingIn, asked.Browser, asked.Code)
		wants(t, "one more", err, ErrLocked)
	})
}

// A code is for what was asked for: elsewhere it uses up no try.
func TestCodeIsForItsPurpose(t *testing.T) {
	t.Parallel()
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		a := newAsking(t, s)
		change := a.change(a.account("ana@example.com"), "anna@example.com")
		_, err := a.FindByBrowser(t.Context(), signingIn, change.Browser)
		wants(t, "waiting to sign in", err, ErrUnknownLink)
		_, err = a.CheckCode(t.Context(), signingIn, change.Browser, change.Code)
		wants(t, "signing in", err, ErrUnknownLink)
		if n := a.look(change.Link).Tries; n != 0 {
			t.Errorf("%d tries are used up", n)
		}
		if _, err := a.CheckCode(t.Context(), changing, change.Browser, change.Code); err != nil {
			t.Errorf("changing: %v", err)
		}
	})
}

func TestChangeOfAddressEndsOtherSessions(t *testing.T) {
	t.Parallel()
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		a := newAsking(t, s)
		sessions := NewSessions(s)
		sessions.now = a.now
		laptop, thief, ben := signedIn(a, "ana@example.com"), signedIn(a, "ana@example.com"), signedIn(a, "ben@example.com")
		ana, err := sessions.Find(t.Context(), laptop)
		if err != nil {
			t.Fatal(err)
		}
		_, err = a.StartEmailChange(t.Context(), ana, " ANA@example.com", Sender{})
		wants(t, "to the same", err, ErrSameAddress)
		first, second := a.change(ana, "anna@example.com"), a.change(ana, "anna@example.com")
		if err := a.ChangeEmail(t.Context(), a.look(first.Link), ana, laptop); err != nil {
			t.Fatal(err)
		}
		if whose(t, sessions, laptop) != "anna@example.com" || whose(t, sessions, thief) != "" || whose(t, sessions, ben) == "" {
			t.Error("sessions ended, but not the account's others alone")
		}
		anna, _ := sessions.Find(t.Context(), laptop)
		wants(t, "again", a.ChangeEmail(t.Context(), a.look(second.Link), anna, laptop), ErrSameAddress)
	})
}
