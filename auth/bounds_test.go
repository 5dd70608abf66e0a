package auth

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"palmares/ent/confirmation"
	"palmares/internal/core/store"
	"palmares/internal/dev/testkit"
	"palmares/internal/dev/testkit/wait"
)

// Who has many networks has no more messages for it.
func TestMessagesFromTheNetworkAround(t *testing.T) {
	t.Parallel()
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		for wider, most := range map[string]int{"2001:db8:1::/48": messagesFromIPv6, "192.0.2.0/24": messagesFromIPv4} {
			a := newAsking(t, s)
			ask := func(i int, wider string) error {
				_, err := a.AskSignIn(t.Context(), fmt.Sprintf("victim%d@%d.example.com", i, most), Sender{fmt.Sprint(wider, " network ", i), wider})
				return err
			}
			for i := range most {
				if err := ask(i, wider); err != nil {
					t.Fatalf("%s, message %d: %v", wider, i, err)
				}
			}
			wants(t, wider, ask(most, wider), ErrSenderBusy)
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
		for range 2 * messagesToOne {
			asked := a.signIn("ana@example.com")
			if err := a.Withdraw(t.Context(), asked); err != nil {
				t.Fatal(err)
			}
			_, err := a.Look(t.Context(), asked.Link)
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
		guesses := func(asked Asked, many int) (last error) {
			for i := range many {
				_, last = a.Try(t.Context(), signingIn, asked.Browser, otherThan(asked.Code, i))
			}
			return last
		}
		for i := range maxWrong / maxTries {
			wants(t, "a message's last", guesses(a.signIn(fmt.Sprintf("ana+%d@example.com", i)), maxTries), ErrLocked)
			a.time = a.time.Add(messageWindow)
		}
		asked := a.signIn("ana@example.com")
		_, err := a.Try(t.Context(), signingIn, asked.Browser, asked.Code)
		wants(t, "the right code", err, ErrLocked)
		found := a.look(asked.Link)
		if locked, err := a.Locked(t.Context(), found); err != nil || !locked {
			t.Errorf("locked: %v, %v", locked, err)
		}
		if _, err := a.SignIn(t.Context(), found); err != nil {
			t.Errorf("the link: %v", err)
		}
		wants(t, "another mailbox", guesses(a.signIn("ben@example.com"), 1), ErrWrongCode)

		a.time = a.time.Add(confirmationKept)
		asked = a.signIn("ana@example.com")
		if _, err := a.Try(t.Context(), signingIn, asked.Browser, asked.Code); err != nil {
			t.Errorf("a day later: %v", err)
		}
	})
}

// Who types no wrong code may sign in as often as they like.
func TestRightCodesDoNotCount(t *testing.T) {
	t.Parallel()
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		a := newAsking(t, s)
		for range maxWrong + 1 {
			asked := a.signIn("ana@example.com")
			found, err := a.Try(t.Context(), signingIn, asked.Browser, asked.Code)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := a.SignIn(t.Context(), found); err != nil {
				t.Fatal(err)
			}
			a.time = a.time.Add(messageWindow / messagesToOne)
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
		for i := range maxWrong {
			asked := a.change(mallory, "victim@example.com")
			_, err := a.Try(t.Context(), changing, asked.Browser, otherThan(asked.Code, i))
			if err == nil {
				t.Fatal("a wrong code was taken")
			}
			a.time = a.time.Add(messageWindow / messagesToOne)
		}
		a.time = a.time.Add(2 * messageWindow)
		if err := accounts.Delete(t.Context(), mallory); err != nil {
			t.Fatal(err)
		}
		asked := a.signIn("victim@example.com")
		_, err := a.Try(t.Context(), signingIn, asked.Browser, asked.Code)
		wants(t, "one more", err, ErrLocked)
	})
}

// A code is for what was asked for: elsewhere it uses up no try.
func TestCodeIsForItsPurpose(t *testing.T) {
	t.Parallel()
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		a := newAsking(t, s)
		change := a.change(a.account("ana@example.com"), "anna@example.com")
		_, err := a.LookByBrowser(t.Context(), signingIn, change.Browser)
		wants(t, "waiting to sign in", err, ErrUnknownLink)
		_, err = a.Try(t.Context(), signingIn, change.Browser, change.Code)
		wants(t, "signing in", err, ErrUnknownLink)
		if n := a.look(change.Link).Tries; n != 0 {
			t.Errorf("%d tries are used up", n)
		}
		if _, err := a.Try(t.Context(), changing, change.Browser, change.Code); err != nil {
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
		_, err = a.AskChange(t.Context(), ana, " ANA@example.com", Sender{})
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

// Keys that are revoked at once must not fill the database.
func TestKeysInADay(t *testing.T) {
	t.Parallel()
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		accounts := NewAccounts(s)
		now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
		accounts.now = func() time.Time { return now }
		acc, err := accounts.Create(t.Context(), "ana@example.com", Developer)
		if err != nil {
			t.Fatal(err)
		}
		makeAndRevoke := func() error {
			_, key, err := accounts.CreateKey(t.Context(), acc, "")
			if err == nil {
				err = accounts.RevokeOf(t.Context(), acc, key.ID)
			}
			return err
		}
		for i := range keysInADay {
			if err := makeAndRevoke(); err != nil {
				t.Fatalf("key %d: %v", i, err)
			}
		}
		if err := makeAndRevoke(); err == nil || !strings.Contains(err.Error(), "30 keys were made within 24 hours") {
			t.Errorf("one more: %v", err)
		}
		if keys, err := accounts.UnrevokedKeys(t.Context(), acc); err != nil || len(keys) != 0 {
			t.Errorf("%d keys are not revoked, %v", len(keys), err)
		}
		if had, err := accounts.HadKeys(t.Context(), acc); err != nil || !had {
			t.Errorf("had keys: %v, %v", had, err)
		}
		now = now.Add(24 * time.Hour)
		if _, _, err := accounts.CreateKey(t.Context(), acc, "stays"); err != nil {
			t.Fatalf("a day later: %v", err)
		}

		tidy(t, s, now.Add(revokedKept-25*time.Hour))
		if keys, _ := accounts.Keys(t.Context(), acc); len(keys) != keysInADay+1 {
			t.Errorf("%d keys are kept for 90 days", len(keys))
		}
		tidy(t, s, now.Add(revokedKept))
		if keys, _ := accounts.Keys(t.Context(), acc); len(keys) != 1 || keys[0].Name != "stays" {
			t.Errorf("%d keys are kept after 90 days", len(keys))
		}
	})
}

// What is kept of who left has no address.
func TestAddressesOfWhoLeft(t *testing.T) {
	t.Parallel()
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		a := newAsking(t, s)
		ana := a.account("ana@example.com")
		s.Write.Customer.Create().SetID("cus_1").SetAccountID(ana.ID).SetEmail(ana.Email).ExecX(t.Context())
		s.Write.Customer.Create().SetID("cus_0").SetEmail("left-before@example.com").ExecX(t.Context())
		if err := NewAccounts(s).Delete(t.Context(), ana); err != nil {
			t.Fatal(err)
		}
		if email := s.Write.Customer.GetX(t.Context(), "cus_1").Email; email != "" {
			t.Errorf("%s is kept", email)
		}
		tidy(t, s, a.time.Add(2*confirmationKept))
		if stored := everythingStored(t, s); strings.Contains(stored, "@example.com") {
			t.Errorf("an address is kept:\n%s", stored)
		}
	})
}

// Nobody's reading waits for another who writes.
func TestReadingBesideAWriter(t *testing.T) {
	t.Parallel()
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		a := newAsking(t, s)
		sessions, accounts := NewSessions(s), NewAccounts(s)
		sessions.now = a.now
		token := signedIn(a, "ana@example.com")
		asked := a.signIn("ana@example.com")
		writing, err := s.Write.Tx(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = writing.Rollback() }()
		writing.Confirmation.Update().Where(confirmation.Email("nobody")).SetTries(0).ExecX(t.Context())
		done := make(chan error, 1)
		go func() {
			acc, err := sessions.Find(t.Context(), token)
			if err != nil {
				done <- err
				return
			}
			_, a1 := sessions.Of(t.Context(), acc)
			_, a2 := accounts.Find(t.Context(), acc.Email)
			_, a3 := accounts.List(t.Context())
			_, a4 := accounts.Keys(t.Context(), acc)
			_, a5 := accounts.HadKeys(t.Context(), acc)
			_, a6 := accounts.Usage(t.Context(), acc, 3)
			_, a7 := a.Look(t.Context(), asked.Link)
			_, a8 := a.LookByBrowser(t.Context(), signingIn, asked.Browser)
			_, a9 := a.Of(t.Context(), acc)
			done <- errors.Join(a1, a2, a3, a4, a5, a6, a7, a8, a9)
		}()
		if err := wait.Receive(t, "reading beside a writer", done); err != nil {
			t.Error(err)
		}
	})
}
