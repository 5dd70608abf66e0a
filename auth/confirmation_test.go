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
func (a *asking) signIn(email string) Asked {
	a.t.Helper()
	asked, err := a.AskSignIn(a.t.Context(), email, Sender{Network: "network of " + email})
	if err != nil {
		a.t.Fatal(err)
	}
	return asked
}

func (a *asking) change(acc *ent.Account, email string) Asked {
	a.t.Helper()
	asked, err := a.AskChange(a.t.Context(), acc, email, Sender{Network: "network of " + email})
	if err != nil {
		a.t.Fatal(err)
	}
	return asked
}

func (a *asking) look(link string) *ent.Confirmation {
	a.t.Helper()
	found, err := a.Look(a.t.Context(), link)
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
		_, err = a.Look(t.Context(), asked.Link)
		wants(t, "the link", err, ErrUsed)
		_, err = a.Try(t.Context(), signingIn, asked.Browser, asked.Code)
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
		_, err := a.Look(t.Context(), asked.Link)
		wants(t, "the link", err, ErrExpired)
		_, err = a.Try(t.Context(), signingIn, asked.Browser, asked.Code)
		wants(t, "the code", err, ErrExpired)
		_, err = a.Look(t.Context(), asked.Link+"x")
		wants(t, "another link", err, ErrUnknownLink)
		_, err = a.Look(t.Context(), "")
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
		for range messagesToOne {
			found = append(found, a.look(a.signIn("ana@example.com").Link))
		}
		atOnce(messagesToOne, func(i int) {
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
		for i := range maxTries - 1 {
			_, err := a.Try(t.Context(), signingIn, lucky.Browser, otherThan(lucky.Code, i))
			wants(t, "a wrong code", err, ErrWrongCode)
		}
		if _, err := a.Try(t.Context(), signingIn, lucky.Browser, lucky.Code); err != nil {
			t.Errorf("the fifth, which is right: %v", err)
		}

		asked := a.signIn("ana@example.com")
		for i := range 1000 {
			want := ErrWrongCode
			if i >= maxTries-1 {
				want = ErrLocked
			}
			_, err := a.Try(t.Context(), signingIn, asked.Browser, otherThan(asked.Code, i))
			wants(t, fmt.Sprint("code ", i), err, want)
		}
		_, err := a.Try(t.Context(), signingIn, asked.Browser, asked.Code)
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
			if _, err := a.Try(t.Context(), signingIn, asked.Browser, otherThan(asked.Code, i)); !errors.Is(err, ErrWrongCode) && !errors.Is(err, ErrLocked) {
				t.Error(err)
			}
		})
		if found := a.look(asked.Link); found.Tries != maxTries {
			t.Errorf("%d were looked at", found.Tries)
		}
		_, err := a.Try(t.Context(), signingIn, asked.Browser, asked.Code)
		wants(t, "the right code", err, ErrLocked)
	})
}

func TestCodeIsForItsBrowser(t *testing.T) {
	t.Parallel()
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		a := newAsking(t, s)
		asked, other := a.signIn("ana@example.com"), a.signIn("ben@example.com")
		for _, browser := range []string{"", "made up", asked.Link} {
			_, err := a.Try(t.Context(), signingIn, browser, asked.Code)
			wants(t, "in browser "+browser, err, ErrUnknownLink)
		}
		if asked.Code != other.Code {
			_, err := a.Try(t.Context(), signingIn, other.Browser, asked.Code)
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
		for _, secret := range []string{asked.Link, asked.Browser, hashed(asked.Code)} {
			if strings.Contains(stored, secret) {
				t.Errorf("%s is stored", secret)
			}
		}
		row := s.Write.Confirmation.Query().Where(confirmation.Email(asked.Email)).OnlyX(t.Context())
		// A million codes are soon tried: what is stored must not be theirs alone.
		for _, stored := range []string{row.LinkHash, row.BrowserHash, "", row.Email} {
			if row.CodeHash == keyed(stored, asked.Code) {
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
