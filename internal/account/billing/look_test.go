package billing

import (
	"context"
	"testing"
	"time"

	"github.com/stripe/stripe-go/v86"

	"palmares/auth"
)

// An event that never came is not missed for ever.
func TestLateNews(t *testing.T) {
	eachShop(t, func(t *testing.T, s *shop) {
		sub := s.subscribed()
		sub.status = stripe.SubscriptionStatusCanceled
		s.peer.set("cus_1", sub)
		s.wait(month + lateAfter)
		s.look(t.Context())
		s.wantPlan(auth.Pro) // it may still come
		s.wait(time.Second)
		s.look(t.Context())
		s.wantPlan(auth.Developer)
	})
}

// Where there is no news, Stripe is asked once an hour.
func TestLateNewsIsAskedForSeldom(t *testing.T) {
	eachShop(t, func(t *testing.T, s *shop) {
		s.subscribed()
		s.wait(month + lateAfter + time.Second)
		before := len(s.peer.made("GET /v1/subscriptions"))
		for range 61 {
			s.look(t.Context())
			s.wait(time.Minute)
		}
		s.look(t.Context())
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
		s.wait(soonAfter)
		s.look(t.Context())
		s.wantPlan(auth.Developer) // the event may still come
		s.wait(time.Second)
		s.look(t.Context())
		s.wantPlan(auth.Pro)
		s.wait(soonAfter + time.Second)
		s.look(t.Context())
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
			s.look(t.Context())
			return len(s.peer.made(reading)) - before
		}
		for i := range 3 {
			s.wait(soonAfter + time.Second)
			if n := asked(); n != i+1 {
				t.Errorf("asked %d times, not %d", n, i+1)
			}
			if n := asked(); n != i+1 {
				t.Errorf("asked %d times at once", n-i)
			}
		}
		s.wait(pageOpen)
		if n := asked(); n != 3 {
			t.Errorf("asked %d times, also after its end", n)
		}
	})
}

// Stripe writes to where our account is.
func TestRenamed(t *testing.T) {
	eachShop(t, func(t *testing.T, s *shop) {
		s.subscribed()
		s.look(t.Context())
		const what = "POST /v1/customers/cus_1"
		if len(s.peer.made(what)) > 0 {
			t.Error("nothing was renamed")
		}
		if err := s.Store.Write.Account.UpdateOne(s.account).SetEmail("new@example.com").Exec(t.Context()); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			s.look(t.Context())
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
			s.look(t.Context())
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
		if err := s.notice(t.Context(), row); err != nil {
			t.Error(err)
		}
		if err := s.rename(t.Context(), row); err != nil {
			t.Error(err)
		}
		s.look(t.Context())
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
		s.look(t.Context())
		s.smtp.Wait(t, owner)
		row, err := s.Store.Write.Customer.Get(t.Context(), "cus_0")
		if err != nil || row.Status != "" {
			t.Errorf("%v, %v", row, err)
		}
	})
}

func TestOldEventsAreForgotten(t *testing.T) {
	eachShop(t, func(t *testing.T, s *shop) {
		sub := s.subscribed()
		s.wait(eventsKept - time.Second)
		s.isNow(stripe.EventTypeInvoicePaid, sub)
		s.look(t.Context())
		if n := s.applied(); n != 2 {
			t.Errorf("%d events are known", n)
		}
		s.wait(2 * time.Second)
		s.look(t.Context())
		if n := s.applied(); n != 1 {
			t.Errorf("%d events are known", n)
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
