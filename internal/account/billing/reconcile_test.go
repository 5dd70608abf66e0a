package billing

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/emersion/go-smtp"
	"github.com/stripe/stripe-go/v86"

	"palmares/auth"
	"palmares/internal/dev/testkit"
	"palmares/internal/notify/mail"
)

// An event that never came is not missed for ever.
func TestLateNews(t *testing.T) {
	eachShop(t, func(t *testing.T, s *shop) {
		sub := s.subscribed()
		sub.status = stripe.SubscriptionStatusCanceled
		s.peer.set("cus_1", sub)
		s.wait(month + renewalOverdue)
		s.reconcile(t.Context())
		s.wantPlan(auth.Pro) // it may still come
		s.wait(time.Second)
		s.reconcile(t.Context())
		s.wantPlan(auth.Developer)
	})
}

// Where there is no news, Stripe is asked once an hour.
func TestLateNewsIsAskedForSeldom(t *testing.T) {
	eachShop(t, func(t *testing.T, s *shop) {
		s.subscribed()
		s.wait(month + renewalOverdue + time.Second)
		before := len(s.peer.made("GET /v1/subscriptions"))
		for range 61 {
			s.reconcile(t.Context())
			s.wait(time.Minute)
		}
		s.reconcile(t.Context())
		if n := len(s.peer.made("GET /v1/subscriptions")) - before; n != 2 {
			t.Errorf("asked %d times", n)
		}
	})
}

// Who has paid has Pro, also where no event tells of it.
func TestLostCheckout(t *testing.T) {
	eachShop(t, func(t *testing.T, s *shop) {
		if _, err := s.Subscribe(t.Context(), s.account); err != nil {
			t.Fatal(err)
		}
		s.peer.set("cus_1", s.begun(stripe.SubscriptionStatusActive))
		before := len(s.peer.made(reading))
		s.wait(paymentOverdue)
		s.reconcile(t.Context())
		s.wantPlan(auth.Developer) // the event may still come
		s.wait(time.Second)
		s.reconcile(t.Context())
		s.wantPlan(auth.Pro)
		s.wait(paymentOverdue + time.Second)
		s.reconcile(t.Context())
		if n := len(s.peer.made(reading)) - before; n != 1 {
			t.Errorf("asked %d times", n)
		}
	})
}

// A page to pay on that nobody paid on is looked after while it is open.
func TestCheckoutThatIsLeft(t *testing.T) {
	eachShop(t, func(t *testing.T, s *shop) {
		if _, err := s.Subscribe(t.Context(), s.account); err != nil {
			t.Fatal(err)
		}
		before := len(s.peer.made(reading))
		asked := func() int {
			s.reconcile(t.Context())
			return len(s.peer.made(reading)) - before
		}
		for i := range 3 {
			s.wait(paymentOverdue + time.Second)
			if n := asked(); n != i+1 {
				t.Errorf("asked %d times, not %d", n, i+1)
			}
			if n := asked(); n != i+1 {
				t.Errorf("asked %d times at once", n-i)
			}
		}
		s.wait(checkoutLifetime)
		if n := asked(); n != 3 {
			t.Errorf("asked %d times, also after its end", n)
		}
	})
}

// Stripe writes to where our account is.
func TestRenamed(t *testing.T) {
	eachShop(t, func(t *testing.T, s *shop) {
		s.subscribed()
		s.reconcile(t.Context())
		const what = "POST /v1/customers/cus_1"
		if len(s.peer.made(what)) > 0 {
			t.Error("nothing was renamed")
		}
		if err := s.Store.Write.Account.UpdateOne(s.account).SetEmail("new@example.com").Exec(t.Context()); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			s.reconcile(t.Context())
		}
		wantForm(t, s.peer.only(t, what), map[string]string{"email": "new@example.com"})
		if email := s.row().Email; email != "new@example.com" {
			t.Errorf("it is %q", email)
		}
	})
}

// A customer that was deleted at Stripe without news cannot be renamed.
func TestRenamedButGone(t *testing.T) {
	eachShop(t, func(t *testing.T, s *shop) {
		s.subscribed()
		s.peer.forget("cus_1")
		s.Store.Write.Account.UpdateOne(s.account).SetEmail("new@example.com").ExecX(t.Context())
		for range 2 {
			s.reconcile(t.Context())
		}
		s.peer.only(t, "POST /v1/customers/cus_1")
		s.wantPlan(auth.Developer)
		s.wantNewBeginning()
	})
}

// An account may be deleted between the two queries that found it.
func TestAccountDeletedMeanwhile(t *testing.T) {
	eachShop(t, func(t *testing.T, s *shop) {
		sub := s.subscribed()
		sub.status = stripe.SubscriptionStatusPastDue
		s.isNow(stripe.EventTypeInvoicePaymentFailed, sub)
		row := s.row() // without its account
		if err := s.notifyPaymentFailed(t.Context(), row); err != nil {
			t.Error(err)
		}
		if err := s.updateEmail(t.Context(), row); err != nil {
			t.Error(err)
		}
		s.reconcile(t.Context())
		s.smtp.Wait(t, owner) // that was no reason not to tell
	})
}

// Where one customer makes trouble, the others are still seen to.
func TestOneFails(t *testing.T) {
	eachShop(t, func(t *testing.T, s *shop) {
		sub := s.subscribed()
		nobody := s.Store.Write.Customer.Create().SetID("cus_0").SetEmail("a@example.com").SetStatus(StatusActive)
		if err := nobody.Exec(t.Context()); err != nil {
			t.Fatal(err)
		}
		s.peer.forget("cus_0")
		sub.status = stripe.SubscriptionStatusPastDue
		s.isNow(stripe.EventTypeInvoicePaymentFailed, sub)
		s.reconcile(t.Context())
		s.smtp.Wait(t, owner)
		row, err := s.Store.Write.Customer.Get(t.Context(), "cus_0")
		if err != nil || row.Status != "" {
			t.Errorf("%v, %v", row, err)
		}
	})
}

func TestDeleteOldEvents(t *testing.T) {
	eachShop(t, func(t *testing.T, s *shop) {
		sub := s.subscribed()
		s.wait(eventRetention - time.Second)
		s.isNow(stripe.EventTypeInvoicePaid, sub)
		for _, want := range []int{2, 1} {
			if err := DeleteOldEvents(t.Context(), s.Store, s.clock()); err != nil {
				t.Fatal(err)
			}
			if got := s.applied(); got != want {
				t.Errorf("got %d events, want %d", got, want)
			}
			s.wait(2 * time.Second)
		}
	})
}

// Run looks at once, and ends when it is told to.
func TestRun(t *testing.T) {
	eachShop(t, func(t *testing.T, s *shop) {
		sub := s.subscribed()
		sub.status = stripe.SubscriptionStatusPastDue
		s.isNow(stripe.EventTypeInvoicePaymentFailed, sub)
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { defer close(ended); s.Run(ctx) }()
		s.smtp.Wait(t, owner)
		stop()
		<-ended
	})
}

// A debit may come back long after its invoice: the grace begins with the news.
func TestDebitBouncesLate(t *testing.T) {
	eachShop(t, func(t *testing.T, s *shop) {
		sub := s.subscribed()
		s.wait(month)
		sub.status, sub.invoiced = stripe.SubscriptionStatusPastDue, s.clock().Add(-8*24*time.Hour)
		sub.finalizedAt = sub.invoiced
		s.isNow(stripe.EventTypeInvoicePaymentFailed, sub)
		s.wantPlan(auth.Pro)
		s.wantNotice(s.clock().Add(Grace))
		s.wantGraceUntil(s.clock().Add(Grace))
	})
}

// wantNotice looks, and wants a letter that says until when Pro goes on.
func (s *shop) wantNotice(until time.Time) {
	s.t.Helper()
	s.reconcile(s.t.Context())
	letter := s.smtp.Wait(s.t, owner)
	if !strings.Contains(letter, until.UTC().Format("2 January 2006")) || !strings.Contains(letter, "failed") {
		s.t.Errorf("the letter does not say until when: %s", letter)
	}
}

// wantGraceUntil wants Pro up to a moment and no longer.
func (s *shop) wantGraceUntil(end time.Time) {
	s.t.Helper()
	s.wait(end.Sub(s.clock()) - time.Second)
	s.reconcile(s.t.Context())
	s.wantPlan(auth.Pro)
	s.wait(time.Second)
	s.reconcile(s.t.Context())
	s.wantPlan(auth.Developer)
}

// Each attempt that fails is news, but none gives another seven days.
func TestGraceIsNotBegunAgain(t *testing.T) {
	eachShop(t, func(t *testing.T, s *shop) {
		sub := s.subscribed()
		end := s.clock().Add(Grace)
		sub.status = stripe.SubscriptionStatusPastDue
		for range 3 {
			sub.invoiced, sub.finalizedAt = s.clock(), s.clock()
			s.isNow(stripe.EventTypeInvoicePaymentFailed, sub)
			s.wait(2 * 24 * time.Hour)
		}
		s.wantNotice(end)
		s.wantGraceUntil(end)
	})
}

// Where the news of it was lost, the grace begins as it is found.
func TestFailureFoundLate(t *testing.T) {
	eachShop(t, func(t *testing.T, s *shop) {
		sub := s.subscribed()
		s.wait(month)
		sub.status, sub.invoiced = stripe.SubscriptionStatusPastDue, s.clock().Add(-Grace-time.Hour)
		s.peer.set("cus_1", sub)
		s.wait(2 * time.Hour)
		s.wantNotice(s.clock().Add(Grace))
		s.wantPlan(auth.Pro)
	})
}

// What was past due before we knew of it counts from its invoice. Who is found
// too late for any grace is not told that Pro goes on.
func TestGraceWasOver(t *testing.T) {
	eachShop(t, func(t *testing.T, s *shop) {
		s.customer()
		sub := s.begun(stripe.SubscriptionStatusPastDue)
		sub.invoiced = s.clock().Add(-2 * Grace)
		sub.finalizedAt = s.clock().Add(-Grace)
		s.isNow(stripe.EventTypeCustomerSubscriptionUpdated, sub)
		s.wantPlan(auth.Developer)
		s.reconcile(t.Context())
		if n := s.smtp.Count(owner); n != 0 {
			t.Errorf("%d letters", n)
		}
	})
}

// And who is found in time has what is left of it.
func TestRestOfTheGrace(t *testing.T) {
	eachShop(t, func(t *testing.T, s *shop) {
		s.customer()
		sub := s.begun(stripe.SubscriptionStatusPastDue)
		sub.invoiced = s.clock().Add(-2 * Grace)
		sub.finalizedAt = s.clock().Add(-Grace + time.Hour)
		s.isNow(stripe.EventTypeCustomerSubscriptionUpdated, sub)
		s.wantNotice(s.clock().Add(time.Hour))
		s.wantGraceUntil(s.clock().Add(time.Hour))
	})
}

// A letter that cannot be sent is tried again.
func TestNoticeIsRepeated(t *testing.T) {
	eachShop(t, func(t *testing.T, s *shop) {
		sub := s.subscribed()
		sub.status = stripe.SubscriptionStatusPastDue
		s.smtp.Stop()
		s.isNow(stripe.EventTypeInvoicePaymentFailed, sub)
		s.reconcile(t.Context())
		if s.row().NoticedAt != nil {
			t.Error("a letter that was not sent counts")
		}
		s.smtp.Start(t)
		s.reconcile(t.Context())
		s.smtp.Wait(t, owner)
		if s.row().NoticedAt == nil {
			t.Error("a letter that was sent does not count")
		}
	})
}

// Of many servers that see a failure at the same time, one tells of it.
func TestNoticeFromManyServers(t *testing.T) {
	eachShop(t, func(t *testing.T, s *shop) {
		sub := s.subscribed()
		sub.status = stripe.SubscriptionStatusPastDue
		s.isNow(stripe.EventTypeInvoicePaymentFailed, sub)
		seen, err := s.Store.Current().Customer.Query().WithAccount().Only(t.Context()) // by each of them
		if err != nil {
			t.Fatal(err)
		}
		var all sync.WaitGroup
		for range 5 {
			all.Go(func() {
				if err := s.notifyPaymentFailed(t.Context(), seen); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if n := s.smtp.Count(owner); n != 1 {
			t.Errorf("%d letters", n)
		}
	})
}

// One that can never be sent is told of once, not each minute.
func TestNoticeThatIsRefused(t *testing.T) {
	eachShop(t, func(t *testing.T, s *shop) {
		tries := 0
		refusing := testkit.StartSMTPWith(t, testkit.SMTPOptions{Rcpt: func(string) error {
			tries++
			return &smtp.SMTPError{Code: 550, Message: "no such user"}
		}})
		var err error
		if s.Mail, err = mail.New(mail.Config{URL: refusing.URL, From: "palmares@palmares.example", Log: s.Log}); err != nil {
			t.Fatal(err)
		}
		sub := s.subscribed()
		sub.status = stripe.SubscriptionStatusPastDue
		s.isNow(stripe.EventTypeInvoicePaymentFailed, sub)
		for range 3 {
			s.reconcile(t.Context())
		}
		if tries != 1 || s.row().NoticedAt == nil {
			t.Errorf("tried %d times", tries)
		}
		if n := strings.Count(s.log.String(), "a failed payment was not told of"); n != 1 {
			t.Errorf("logged %d times: %s", n, s.log)
		}
	})
}
