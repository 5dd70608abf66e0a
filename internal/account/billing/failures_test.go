package billing

import (
	"context"
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/stripe/stripe-go/v86"

	"palmares/auth"
	"palmares/internal/core/problem"
	"palmares/internal/dev/check"
)

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
	})
}

func TestStripeTimeout(t *testing.T) {
	eachFixture(t, func(t *testing.T, s *fixture) {
		s.customer()
		s.fake.set("cus_1", s.started(stripe.SubscriptionStatusActive))
		event := s.event(stripe.EventTypeCustomerSubscriptionCreated)
		s.fake.failWith(neverRespond)
		ctx, stop := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer stop()
		s.wantStatus(s.deliver(ctx, event, signed(event, webhookSecret, time.Now())), http.StatusServiceUnavailable)
		s.fake.recover()
		s.wantStatus(s.send(event), http.StatusOK)
		s.wantPlan(auth.Pro)
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
		_, err = s.Subscribe(t.Context(), s.account)
		check.OK(t, err)
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
