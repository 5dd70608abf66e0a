package billing

import (
	"bytes"
	"context"
	"encoding/json"
	"math"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stripe/stripe-go/v86"

	"palmares/auth"
	"palmares/internal/core/problem"
	"palmares/internal/dev/check"
)

// An event without a valid, recent signature changes nothing. One that is dated ahead
// could be replayed until that time.
func TestInvalidSignatures(t *testing.T) {
	eachFixture(t, func(t *testing.T, s *fixture) {
		s.customer()
		s.fake.set("cus_1", s.started(stripe.SubscriptionStatusActive))
		event := s.event(stripe.EventTypeCustomerSubscriptionCreated)
		good := signed(event, webhookSecret, time.Now())
		for what, signature := range map[string]string{
			"stale":       signed(event, webhookSecret, time.Now().Add(-6*time.Minute)),
			"ahead":       signed(event, webhookSecret, time.Now().Add(6*time.Minute)),
			"end of time": signed(event, webhookSecret, time.Unix(math.MaxInt64, 0)),
			"forged":      good[:len(good)-1] + flipped(good[len(good)-1]),
			"of another":  signed(append([]byte(" "), event...), webhookSecret, time.Now()),
			"wrong":       signed(event, "whsec_other", time.Now()),
			"empty":       signed(event, "", time.Now()),
			"missing":     "",
			"nonsense":    "nonsense",
			"old scheme":  strings.Replace(good, "v1=", "v0=", 1),
			"without all": "t=1,v1=",
		} {
			w := s.deliver(t.Context(), event, signature)
			check.Equal(t, w.Code, http.StatusBadRequest, "%s: %s", what, w.Body)
			s.wantNoInternalText(w.Body.String())
		}
		s.wantPlan(auth.Developer)
		check.Equal(t, len(s.fake.requests("GET /v1/subscriptions")), 0)
		check.True(t, s.applied() == 0, "got an event applied, want none")
		// Small differences between clocks are tolerated.
		s.wantStatus(s.deliver(t.Context(), event, signed(event, webhookSecret, time.Now().Add(4*time.Minute))), http.StatusOK)
		s.wantPlan(auth.Pro)
		s.WebhookSecret = "" // without one, nothing can be verified
		event = s.event(stripe.EventTypeCustomerSubscriptionCreated)
		s.wantStatus(s.deliver(t.Context(), event, signed(event, "", time.Now())), http.StatusNotFound)
		check.Equal(t, s.applied(), 1, "applied events")
	})
}

func TestMalformedEvents(t *testing.T) {
	eachFixture(t, func(t *testing.T, s *fixture) {
		s.customer()
		for _, payload := range []string{"not JSON", `{"object":"event"}`, `[]`, `{"object":"v2.core.event","id":"evt_thin"}`} {
			s.wantStatus(s.send([]byte(payload)), http.StatusBadRequest)
		}
		s.wantStatus(s.send(bytes.Repeat([]byte("x"), MaxEvent+1)), http.StatusRequestEntityTooLarge)
	})
}

func flipped(digit byte) string {
	if digit == '0' {
		return "1"
	}
	return "0"
}

// Events that do not concern us are accepted and ignored.
func TestIgnoredEvents(t *testing.T) {
	eachFixture(t, func(t *testing.T, s *fixture) {
		s.customer()
		s.wantStatus(s.send(eventOf("evt_other", stripe.EventTypeInvoicePaid, "cus_of_another_shop")), http.StatusOK)
		for _, object := range []any{
			map[string]any{"object": "balance"},
			map[string]any{"object": "subscription", "customer": nil},
			map[string]any{"object": "subscription", "customer": 7},
			nil,
		} {
			s.wantStatus(s.send(eventAbout("evt_nobody", "balance.available", object)), http.StatusOK)
		}
		s.wantStatus(s.send([]byte(`{"object":"event","id":"evt_empty"}`)), http.StatusOK)
		check.Equal(t, len(s.fake.requests("GET /v1/subscriptions")), 0)
		check.True(t, s.applied() == 0, "got an event applied, want none")
	})
}

func TestSameEventConcurrently(t *testing.T) {
	eachFixture(t, func(t *testing.T, s *fixture) {
		const many = 20
		s.customer()
		s.fake.set("cus_1", s.started(stripe.SubscriptionStatusActive))
		s.holdResponses("GET /v1/subscriptions", many)
		event := s.event(stripe.EventTypeCustomerSubscriptionCreated)
		codes := make([]int, many)
		var all sync.WaitGroup
		for i := range many {
			all.Go(func() { codes[i] = s.send(event).Code })
		}
		all.Wait()
		for _, code := range codes {
			check.Equal(t, code, http.StatusOK, "status")
		}
		s.wantStatus(s.send(event), http.StatusOK)
		check.Equal(t, len(s.fake.requests(reading)), many, "reads, none of them for an event that was applied")
		s.wantPlan(auth.Pro)
		check.Equal(t, s.applied(), 1)
		check.Equal(t, s.row().Revision, 1)
	})
}

// holdFirstRead delays the response to the next request: read is closed when the
// state was read, and the response is sent when the caller closes proceed.
func (s *fixture) holdFirstRead() (read, proceed chan struct{}) {
	read, proceed = make(chan struct{}), make(chan struct{})
	var requests atomic.Int32
	s.fake.onRequest(func(string) {
		if requests.Add(1) == 1 {
			close(read)
			<-proceed
		}
	})
	return read, proceed
}

// wantNewCustomer subscribes and expects another customer than the first.
func (s *fixture) wantNewCustomer() {
	s.t.Helper()
	row := s.row()
	check.MustTrue(s.t, row.AccountID == nil && row.Email == "", "got customer %v, want none", row)
	s.wait(time.Minute)
	check.Try(s.Subscribe(s.t.Context(), s.account)).OK(s.t)
	row = check.Try(s.Customer(s.t.Context(), s.account)).OK(s.t)
	check.MustTrue(s.t, row != nil, "got %v, want a new customer", row)
	check.Must(s.t, row.ID, "cus_2")
}

// A customer that was deleted at Stripe loses Pro and can subscribe again, even if Stripe
// fails when the event arrives.
func TestCustomerDeleted(t *testing.T) {
	eachFixture(t, func(t *testing.T, s *fixture) {
		s.subscribed()
		s.fake.deleteObject("cus_1")
		s.fake.failWith(internalError)
		event := s.event(stripe.EventTypeCustomerDeleted)
		s.wantStatus(s.send(event), http.StatusServiceUnavailable)
		s.wantPlan(auth.Pro)
		s.fake.recover()
		s.wantStatus(s.send(event), http.StatusOK)
		s.wantPlan(auth.Developer)
		s.wantNewCustomer()
	})
}

// An event about a deleted customer that takes long does not affect the account's
// next subscription.
func TestSlowEventOfDeletedCustomer(t *testing.T) {
	eachFixture(t, func(t *testing.T, s *fixture) {
		s.subscribed()
		s.fake.deleteObject("cus_1")
		deleted := s.event(stripe.EventTypeCustomerDeleted)
		// A server applies the event and dies before it unlinks the customer.
		check.OK(t, refresh(t.Context(), s.Billing, "cus_1", &stripe.Event{ID: idOf(deleted), Type: stripe.EventTypeCustomerDeleted}))
		read, proceed := s.holdFirstRead()
		slow := make(chan int)
		event := s.event(stripe.EventTypeCustomerSubscriptionDeleted)
		go func() { slow <- s.send(event).Code }()
		<-read
		s.wantStatus(s.send(deleted), http.StatusOK)
		s.wantNewCustomer()
		s.fake.set("cus_2", s.started(stripe.SubscriptionStatusActive))
		s.wantStatus(s.send(eventOf("evt_new", stripe.EventTypeCustomerSubscriptionCreated, "cus_2")), http.StatusOK)
		s.wantPlan(auth.Pro)
		close(proceed)
		check.Equal(t, <-slow, http.StatusOK, "status")
		s.wantPlan(auth.Pro)
	})
}

// The same if the event was lost and the account subscribes again.
func TestSubscribeWithDeletedCustomer(t *testing.T) {
	eachFixture(t, func(t *testing.T, s *fixture) {
		s.subscribed()
		s.fake.deleteObject("cus_1")
		s.wait(time.Minute) // for another idempotency key
		check.Try(s.Subscribe(t.Context(), s.account)).OK(t)
		s.wantPlan(auth.Developer)
		s.wantCustomers(1)
	})
}

func idOf(event []byte) string {
	var known struct{ ID string }
	_ = json.Unmarshal(event, &known)
	return known.ID
}

// An event that failed is applied when it is repeated.
func TestStripeFails(t *testing.T) {
	eachFixture(t, func(t *testing.T, s *fixture) {
		s.customer()
		s.fake.set("cus_1", s.started(stripe.SubscriptionStatusActive))
		event := s.event(stripe.EventTypeCustomerSubscriptionCreated)
		for _, failing := range []http.HandlerFunc{internalError, closeConnection} {
			s.fake.failWith(failing)
			s.wantStatus(s.send(event), http.StatusServiceUnavailable)
			s.wantPlan(auth.Developer)
		}
		s.fake.recover()
		s.wantStatus(s.send(event), http.StatusOK)
		s.wantPlan(auth.Pro)
		check.Contains(t, s.log.String(), stripeMessage, "cause in the log")

		event = s.event(stripe.EventTypeCustomerSubscriptionUpdated)
		s.fake.failWith(neverRespond)
		ctx, stop := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer stop()
		s.wantStatus(s.deliver(ctx, event, signed(event, webhookSecret, time.Now())), http.StatusServiceUnavailable)
		s.fake.recover()
		s.wantStatus(s.send(event), http.StatusOK)
	})
}

// Users never see Stripe's messages. The message says whether trying again
// helps.
func TestFailedCalls(t *testing.T) {
	eachFixture(t, func(t *testing.T, s *fixture) {
		s.customer()
		s.foundPrice.Store(nil)
		for name, c := range map[string]struct {
			how  http.HandlerFunc
			code problem.Code
			text string
		}{
			"failing":   {internalError, problem.Unavailable, "Try again in a minute"},
			"busy":      {tooMany, problem.Unavailable, "Try again in a minute"},
			"rejecting": {reject, problem.Internal, "trying again will not help"},
		} {
			s.fake.failWith(c.how)
			for what, do := range map[string]func() error{
				"subscribe":       func() error { _, err := s.Subscribe(t.Context(), s.account); return err },
				"manage":          func() error { _, err := s.Manage(t.Context(), s.account); return err },
				"set up":          func() error { _, _, err := s.SetUpPrice(t.Context()); return err },
				"set up the page": func() error { _, _, err := s.SetUpPortal(t.Context()); return err },
				"price":           func() error { _, err := s.findPrice(t.Context()); return err },
				"sync":            func() error { return s.Sync(t.Context(), s.account) },
				"close":           func() error { return s.Cancel(t.Context(), s.account) },
			} {
				err := do()
				p := problem.Of(err)
				check.Equal(t, p.Code, c.code, "%s, %s", name, what)
				check.Contains(t, p.Message, c.text, "%s, %s", name, what)
				s.wantNoInternalText(problem.Of(err).Message)
			}
		}
	})
}

func tooMany(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusTooManyRequests)
	_, _ = w.Write(invalidRequest())
}

// Stripe repeats its response for the same idempotency key, even an error, so
// later requests need another key.
func TestSubscribeAfterAnError(t *testing.T) {
	eachFixture(t, func(t *testing.T, s *fixture) {
		s.fake.failWith(internalError)
		_, err := s.Subscribe(t.Context(), s.account)
		wantProblem(t, err, problem.Unavailable)
		s.fake.recover()
		s.wait(time.Minute)
		check.Try(s.Subscribe(t.Context(), s.account)).OK(t)
		attempts := s.fake.requests("POST /v1/customers")
		first, last := attempts[0], attempts[len(attempts)-1]
		check.True(t, first.key != "" && first.key != last.key, "got keys %q and %q, want different ones", first.key, last.key)
	})
}

func TestDatabaseClosed(t *testing.T) {
	eachFixture(t, func(t *testing.T, s *fixture) {
		s.customer()
		s.fake.set("cus_1", s.started(stripe.SubscriptionStatusActive))
		check.OK(t, s.Store.Close())
		w := s.send(s.event(stripe.EventTypeCustomerSubscriptionCreated))
		s.wantStatus(w, http.StatusServiceUnavailable)
		check.True(t, w.Header().Get("Retry-After") != "", "got no Retry-After, want one")
		s.reconcile(t.Context()) // logs warnings only
	})
}
