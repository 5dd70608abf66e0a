package billing

import (
	"bytes"
	"math"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stripe/stripe-go/v86"

	"palmares/auth"
)

// What is not signed by Stripe, just now, changes nothing.
func TestForgeries(t *testing.T) {
	eachShop(t, func(t *testing.T, s *shop) {
		s.customer()
		s.peer.set("cus_1", s.begun(stripe.SubscriptionStatusActive))
		event := s.event(stripe.EventTypeCustomerSubscriptionCreated)
		good := signed(event, webhookSecret, time.Now())
		for what, signature := range map[string]string{
			"stale":       signed(event, webhookSecret, time.Now().Add(-6*time.Minute)),
			"forged":      good[:len(good)-1] + flipped(good[len(good)-1]),
			"of another":  signed(append([]byte(" "), event...), webhookSecret, time.Now()),
			"wrong":       signed(event, "whsec_other", time.Now()),
			"empty":       signed(event, "", time.Now()),
			"missing":     "",
			"nonsense":    "nonsense",
			"old scheme":  strings.Replace(good, "v1=", "v0=", 1),
			"without all": "t=1,v1=",
		} {
			if w := s.deliver(t.Context(), event, signature); w.Code != http.StatusBadRequest {
				t.Errorf("%s: answered %d: %s", what, w.Code, w.Body)
			} else {
				s.wantAnswer(w, http.StatusBadRequest)
			}
		}
		s.wantPlan(auth.Developer)
		if len(s.peer.made("GET /v1/subscriptions")) > 0 || s.applied() > 0 {
			t.Error("something was done about a forgery")
		}
		s.wantAnswer(s.deliver(t.Context(), event, good), http.StatusOK)
		s.wantPlan(auth.Pro)
	})
}

func flipped(digit byte) string {
	if digit == '0' {
		return "1"
	}
	return "0"
}

// Without a secret, anybody could sign.
func TestNoWebhookSecret(t *testing.T) {
	eachShop(t, func(t *testing.T, s *shop) {
		s.customer()
		s.peer.set("cus_1", s.begun(stripe.SubscriptionStatusActive))
		s.WebhookSecret = ""
		event := s.event(stripe.EventTypeCustomerSubscriptionCreated)
		s.wantAnswer(s.deliver(t.Context(), event, signed(event, "", time.Now())), http.StatusNotFound)
		s.wantPlan(auth.Developer)
	})
}

func TestNoEvents(t *testing.T) {
	eachShop(t, func(t *testing.T, s *shop) {
		s.customer()
		for _, payload := range []string{"not JSON", `{"object":"event"}`, `[]`, `{"object":"v2.core.event","id":"evt_thin"}`} {
			s.wantAnswer(s.send([]byte(payload)), http.StatusBadRequest)
		}
		s.wantAnswer(s.send(bytes.Repeat([]byte("x"), MaxEvent+1)), http.StatusRequestEntityTooLarge)
	})
}

// What is none of our business is taken and forgotten.
func TestIgnoredEvents(t *testing.T) {
	eachShop(t, func(t *testing.T, s *shop) {
		s.customer()
		s.wantAnswer(s.send(eventOf("evt_other", stripe.EventTypeInvoicePaid, "cus_of_another_shop")), http.StatusOK)
		for _, object := range []any{
			map[string]any{"object": "balance"},
			map[string]any{"object": "subscription", "customer": nil},
			map[string]any{"object": "subscription", "customer": 7},
			nil,
		} {
			s.wantAnswer(s.send(eventAbout("evt_nobody", "balance.available", object)), http.StatusOK)
		}
		s.wantAnswer(s.send([]byte(`{"object":"event","id":"evt_empty"}`)), http.StatusOK)
		if len(s.peer.made("GET /v1/subscriptions")) > 0 || s.applied() > 0 {
			t.Error("something was done")
		}
	})
}

// A customer may be told whole.
func TestExpandedCustomer(t *testing.T) {
	eachShop(t, func(t *testing.T, s *shop) {
		s.customer()
		s.peer.set("cus_1", s.begun(stripe.SubscriptionStatusActive))
		event := eventAbout("evt_whole", stripe.EventTypeInvoicePaid, map[string]any{
			"object": "invoice", "customer": map[string]any{"object": "customer", "id": "cus_1"},
		})
		s.wantAnswer(s.send(event), http.StatusOK)
		s.wantPlan(auth.Pro)
	})
}

func TestSameEventTwice(t *testing.T) {
	eachShop(t, func(t *testing.T, s *shop) {
		s.customer()
		s.peer.set("cus_1", s.begun(stripe.SubscriptionStatusActive))
		event := s.event(stripe.EventTypeCustomerSubscriptionCreated)
		for range 2 {
			s.wantAnswer(s.send(event), http.StatusOK)
		}
		s.wantAppliedOnce()
		s.peer.only(t, "GET /v1/subscriptions") // Stripe need not be asked again
	})
}

func TestSameEventManyTimesAtOnce(t *testing.T) {
	eachShop(t, func(t *testing.T, s *shop) {
		const many = 20
		s.customer()
		s.peer.set("cus_1", s.begun(stripe.SubscriptionStatusActive))
		s.togetherOn("GET /v1/subscriptions", many)
		event := s.event(stripe.EventTypeCustomerSubscriptionCreated)
		codes := make([]int, many)
		var all sync.WaitGroup
		for i := range many {
			all.Go(func() { codes[i] = s.send(event).Code })
		}
		all.Wait()
		for _, code := range codes {
			if code != http.StatusOK {
				t.Errorf("answered %d", code)
			}
		}
		s.wantAppliedOnce()
	})
}

func (s *shop) wantAppliedOnce() {
	s.t.Helper()
	s.wantPlan(auth.Pro)
	if n, row := s.applied(), s.row(); n != 1 || row.Revision != 1 {
		s.t.Errorf("%d events, revision %d", n, row.Revision)
	}
}

// An event is only a reason to look: it may be as old as it likes.
func TestReorderedEvents(t *testing.T) {
	eachShop(t, func(t *testing.T, s *shop) {
		old := s.subscribed()
		old.status = stripe.SubscriptionStatusCanceled
		s.wait(time.Hour)
		s.isNow(stripe.EventTypeCustomerSubscriptionCreated, s.begun(stripe.SubscriptionStatusActive), old)
		s.wantAnswer(s.send(s.event(stripe.EventTypeCustomerSubscriptionDeleted)), http.StatusOK)
		s.wantPlan(auth.Pro)
		if n := s.smtp.Count(owner); n != 0 {
			t.Errorf("%d letters", n)
		}
	})
}

// What was read first and is written last must not win.
func TestOvertakenEvent(t *testing.T) {
	eachShop(t, func(t *testing.T, s *shop) {
		sub := s.subscribed()
		read, goOn := make(chan struct{}), make(chan struct{})
		var first sync.Once
		s.peer.onReading(func(string) {
			held := false
			first.Do(func() { held = true })
			if held {
				close(read)
				<-goOn
			}
		})
		slow := make(chan int)
		event := s.event(stripe.EventTypeCustomerSubscriptionUpdated)
		go func() { slow <- s.send(event).Code }()
		<-read // it is active, the slow one knows
		sub.status = stripe.SubscriptionStatusCanceled
		s.isNow(stripe.EventTypeCustomerSubscriptionDeleted, sub)
		s.wantPlan(auth.Developer)
		close(goOn)
		if code := <-slow; code != http.StatusOK {
			t.Errorf("answered %d", code)
		}
		s.wantPlan(auth.Developer)
		if status := s.row().Status; status != "canceled" {
			t.Errorf("it is %q", status)
		}
	})
}

// Whatever is in flight, the state after the last event is the last state.
func TestManyEventsAtOnce(t *testing.T) {
	eachShop(t, func(t *testing.T, s *shop) {
		sub := s.subscribed()
		for round := range 5 {
			var all sync.WaitGroup
			for change := range 6 {
				sub.status = stripe.SubscriptionStatusActive
				if (round+change)%2 == 0 {
					sub.status = stripe.SubscriptionStatusCanceled
				}
				s.peer.set("cus_1", sub)
				event := s.event(stripe.EventTypeCustomerSubscriptionUpdated)
				all.Go(func() {
					for s.send(event).Code != http.StatusOK { // as Stripe repeats it
						time.Sleep(time.Millisecond)
					}
				})
				time.Sleep(2 * time.Millisecond)
			}
			all.Wait()
			want := planOf(string(sub.status), nil, s.clock())
			s.wantPlan(want)
		}
		if n := s.applied(); n != 31 {
			t.Errorf("%d events were applied", n)
		}
	})
}

// A customer that was deleted at Stripe has no Pro, and can begin anew.
func TestCustomerDeleted(t *testing.T) {
	eachShop(t, func(t *testing.T, s *shop) {
		s.subscribed()
		s.peer.forget("cus_1")
		s.isNow(stripe.EventTypeCustomerDeleted)
		s.wantPlan(auth.Developer)
		s.wantNewBeginning()
	})
}

// wantNewBeginning subscribes with another customer than the first.
func (s *shop) wantNewBeginning() {
	s.t.Helper()
	if row := s.row(); row.AccountID != nil || row.Email != "" {
		s.t.Fatalf("the account is still that customer: %v", row)
	}
	s.wait(time.Minute)
	if _, err := s.Subscribe(s.t.Context(), s.account); err != nil {
		s.t.Fatal(err)
	}
	row, err := s.Customer(s.t.Context(), s.account)
	if err != nil || row == nil || row.ID != "cus_2" {
		s.t.Fatalf("%v, %v", row, err)
	}
}

// Also when Stripe failed as it was told.
func TestCustomerDeletedAsStripeFails(t *testing.T) {
	eachShop(t, func(t *testing.T, s *shop) {
		s.subscribed()
		s.peer.forget("cus_1")
		s.peer.breakWith(internalError)
		event := s.event(stripe.EventTypeCustomerDeleted)
		s.wantAnswer(s.send(event), http.StatusServiceUnavailable)
		s.wantPlan(auth.Pro)
		s.peer.mend()
		s.wantAnswer(s.send(event), http.StatusOK)
		s.wantPlan(auth.Developer)
		s.wantNewBeginning()
	})
}

// An event that was applied but for its end is ended when it is repeated.
func TestCustomerDeletedHalfway(t *testing.T) {
	eachShop(t, func(t *testing.T, s *shop) {
		s.subscribed()
		s.peer.forget("cus_1")
		event := s.event(stripe.EventTypeCustomerDeleted)
		if err := s.refresh(t.Context(), "cus_1", &stripe.Event{ID: idOf(event), Type: stripe.EventTypeCustomerDeleted}); err != nil {
			t.Fatal(err)
		}
		s.wantAnswer(s.send(event), http.StatusOK)
		s.wantNewBeginning()
	})
}

// Nor does Pro stay with who subscribes anew, where no event told of it.
func TestSubscribeButGone(t *testing.T) {
	eachShop(t, func(t *testing.T, s *shop) {
		s.subscribed()
		s.peer.forget("cus_1")
		s.wait(time.Minute) // Stripe would repeat the customer that it made
		if _, err := s.Subscribe(t.Context(), s.account); err != nil {
			t.Fatal(err)
		}
		s.wantPlan(auth.Developer)
		s.wantCustomers(1)
	})
}

// An event whose signature is dated ahead could be replayed until that time
// comes, so it is refused like one that is too old.
func TestEventSignedInTheFuture(t *testing.T) {
	eachShop(t, func(t *testing.T, s *shop) {
		s.customer()
		s.peer.set("cus_1", s.begun(stripe.SubscriptionStatusActive))
		event := s.event(stripe.EventTypeCustomerSubscriptionCreated)
		for name, at := range map[string]time.Time{
			"6 minutes":   time.Now().Add(6 * time.Minute),
			"10 years":    time.Now().AddDate(10, 0, 0),
			"end of time": time.Unix(math.MaxInt64, 0),
		} {
			w := s.deliver(t.Context(), event, signed(event, webhookSecret, at))
			if w.Code != http.StatusBadRequest {
				t.Errorf("%s ahead: got %d %s, want 400", name, w.Code, w.Body)
			}
			s.wantOwnWords(w.Body.String())
		}
		s.wantPlan(auth.Developer)
		if got := s.applied(); got != 0 {
			t.Errorf("got %d applied events, want 0", got)
		}
		// Clocks differ a little.
		s.wantAnswer(s.deliver(t.Context(), event, signed(event, webhookSecret, time.Now().Add(4*time.Minute))), http.StatusOK)
		s.wantPlan(auth.Pro)
	})
}
