package auth

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"palmares/internal/core/store"
	"palmares/internal/dev/testkit"
)

func TestMessagesToOneMailbox(t *testing.T) {
	t.Parallel()
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		a := newAsking(t, s)
		ana := a.account("ana@example.com")
		a.time = a.time.Add(2 * messageWindow)
		var sent atomic.Int64
		atOnce(20, func(i int) {
			email := []string{"victim@example.com", "VICTIM+a@example.com", fmt.Sprintf("victim+%d+x@example.com", i)}[i%3]
			ask := a.AskSignIn
			if i%2 == 0 { // a change of address is a message, too
				ask = func(ctx context.Context, email string, from Sender) (Asked, error) {
					return a.AskChange(ctx, ana, email, from)
				}
			}
			if _, err := ask(t.Context(), email, Sender{Network: fmt.Sprint("network ", i)}); err == nil {
				sent.Add(1)
			} else {
				wants(t, email, err, ErrMailboxFull)
			}
		})
		if sent.Load() != messagesToOne {
			t.Errorf("%d messages", sent.Load())
		}
		a.signIn("other@example.com")
		a.time = a.time.Add(messageWindow)
		a.signIn("victim@example.com")
	})
}

func TestMessagesFromOneNetwork(t *testing.T) {
	t.Parallel()
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		a := newAsking(t, s)
		var sent atomic.Int64
		atOnce(40, func(i int) {
			if _, err := a.AskSignIn(t.Context(), fmt.Sprintf("victim%d@example.com", i), Sender{Network: "192.0.2.1"}); err == nil {
				sent.Add(1)
			} else {
				wants(t, "one more", err, ErrSenderBusy)
			}
		})
		if sent.Load() != messagesFromOne {
			t.Errorf("%d messages", sent.Load())
		}
		if _, err := a.AskSignIn(t.Context(), "victim@example.com", Sender{Network: "192.0.2.2"}); err != nil {
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
		for range messagesToOne {
			asked, err := a.AskChange(t.Context(), acc, "victim@example.com", Sender{Network: "192.0.2.1"})
			if err != nil {
				t.Fatal(err)
			}
			links = append(links, asked.Link)
		}
		pending := a.signIn("mallory@example.com")
		if err := accounts.Delete(t.Context(), acc); err != nil {
			t.Fatal(err)
		}
		_, err := a.AskSignIn(t.Context(), "victim@example.com", Sender{Network: "192.0.2.9"})
		wants(t, "the mailbox", err, ErrMailboxFull)
		for i := range messagesFromOne - messagesToOne {
			if _, err := a.AskSignIn(t.Context(), fmt.Sprintf("victim%d@example.com", i), Sender{Network: "192.0.2.1"}); err != nil {
				t.Fatal(err)
			}
		}
		_, err = a.AskSignIn(t.Context(), "one-more@example.com", Sender{Network: "192.0.2.1"})
		wants(t, "the network", err, ErrSenderBusy)
		for _, link := range append(links, pending.Link) {
			if _, err := a.Look(t.Context(), link); err == nil {
				t.Error("a message of a deleted account still works")
			}
		}
		if err := Tidy(t.Context(), s, a.time.Add(confirmationKept+time.Second)); err != nil {
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
			if _, err := a.AskSignIn(t.Context(), email, Sender{Network: "x"}); !errors.Is(err, errNoEmail) {
				t.Errorf("%.40q: %v", email, err)
			}
		}
		if n := s.Write.Confirmation.Query().CountX(t.Context()); n != 0 {
			t.Errorf("%d messages", n)
		}
	})
}
