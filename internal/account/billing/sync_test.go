package billing

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stripe/stripe-go/v86"

	"palmares/auth"
	"palmares/internal/dev/testkit/wait"
)

const reading = "GET /v1/subscriptions"

// wantAsked syncs, and wants to know how often Stripe was asked.
func (s *shop) wantAsked(want int) {
	s.t.Helper()
	if err := s.Sync(s.t.Context(), s.account); err != nil {
		s.t.Error(err)
	}
	if n := len(s.peer.made(reading)); n != want {
		s.t.Errorf("asked %d times, not %d", n, want)
	}
}

// Whoever reloads the page after paying does not make us ask Stripe each time.
func TestSyncAsksSeldom(t *testing.T) {
	eachShop(t, func(t *testing.T, s *shop) {
		s.customer()
		s.peer.set("cus_1", s.begun(stripe.SubscriptionStatusActive))
		s.wantAsked(1)
		s.wait(freshFor - time.Second)
		s.wantAsked(1)
		s.wait(time.Second)
		s.wantAsked(2)
	})
}

// Who was not Pro a moment ago may have paid since, but does not make us ask
// without end.
func TestSyncAfterPaying(t *testing.T) {
	eachShop(t, func(t *testing.T, s *shop) {
		s.customer()
		s.wantAsked(1)
		s.peer.set("cus_1", s.begun(stripe.SubscriptionStatusActive))
		s.wantAsked(2)
		s.wantPlan(auth.Pro)

		s.isNow(stripe.EventTypeCustomerSubscriptionDeleted) // and asks
		for asked := range clicksAMinute - 2 {
			s.wantAsked(4 + asked)
		}
		s.wantAsked(clicksAMinute + 1)
		s.wait(time.Minute)
		s.wantAsked(clicksAMinute + 2)
	})
}

// Who comes as another's reading ends need not read again.
func TestSyncAsAnotherEnds(t *testing.T) {
	eachShop(t, func(t *testing.T, s *shop) {
		seen := s.customer()
		s.peer.set("cus_1", s.begun(stripe.SubscriptionStatusActive))
		s.wantAsked(1)
		if err := s.readSince(t.Context(), seen, s.account); err != nil {
			t.Error(err)
		}
		s.wantAsked(1)
	})
}

func TestManySyncsAtOnce(t *testing.T) {
	eachShop(t, func(t *testing.T, s *shop) {
		const many = 20
		s.customer()
		s.peer.set("cus_1", s.begun(stripe.SubscriptionStatusActive))
		first, goOn := make(chan struct{}, many), make(chan struct{})
		s.peer.onReading(func(string) { first <- struct{}{}; <-goOn })
		// Who asked first goes away; the others still want to know.
		ctx, leave := context.WithCancel(t.Context())
		left := make(chan error)
		go func() { left <- s.Sync(ctx, s.account) }()
		<-first
		var all sync.WaitGroup
		var begun atomic.Int64
		for range many {
			all.Go(func() {
				begun.Add(1)
				if err := s.Sync(t.Context(), s.account); err != nil {
					t.Error(err)
				}
			})
		}
		leave()
		if <-left == nil {
			t.Error("who went away knows")
		}
		wait.Until(t, "all have come", func() bool { return begun.Load() == many })
		close(goOn)
		all.Wait()
		s.wantPlan(auth.Pro)
		if n := len(s.peer.made(reading)); n != 1 {
			t.Errorf("asked %d times", n)
		}
	})
}

// Where an event has brought the news meanwhile, there is no need to ask again.
func TestSyncIsOvertaken(t *testing.T) {
	eachShop(t, func(t *testing.T, s *shop) {
		s.customer()
		s.peer.set("cus_1", s.begun(stripe.SubscriptionStatusActive))
		var came atomic.Bool
		s.peer.onReading(func(string) {
			if !came.Swap(true) { // the event reads, too
				s.wantAnswer(s.send(s.event(stripe.EventTypeCustomerSubscriptionCreated)), 200)
			}
		})
		if err := s.Sync(t.Context(), s.account); err != nil {
			t.Error(err)
		}
		s.wantPlan(auth.Pro)
		if n := len(s.peer.made(reading)); n != 2 { // the event's, and ours
			t.Errorf("asked %d times", n)
		}
	})
}

// An operator who hands a plan back has read nothing at Stripe.
func TestSyncWhileHandedBack(t *testing.T) {
	eachShop(t, func(t *testing.T, s *shop) {
		s.customer()
		s.byHand(auth.Developer)
		s.peer.set("cus_1", s.begun(stripe.SubscriptionStatusActive))
		var once sync.Once
		s.peer.onReading(func(string) { once.Do(func() { s.wantHandedBack(auth.Developer) }) })
		if err := s.Sync(t.Context(), s.account); err != nil {
			t.Error(err)
		}
		s.wantPlan(auth.Pro)
	})
}

// Nobody's reading waits for another who writes.
func TestReadingBesideAWriter(t *testing.T) {
	eachShop(t, func(t *testing.T, s *shop) {
		s.customer()
		writing, err := s.Store.Write.Tx(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = writing.Rollback() }()
		if row, err := s.Customer(wait.Context(t), s.account); err != nil || row == nil {
			t.Errorf("%v, %v", row, err)
		}
	})
}
