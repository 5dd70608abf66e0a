package billing

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/stripe/stripe-go/v86"
	"github.com/stripe/stripe-go/v86/webhook"

	"palmares/ent/billingevent"
	"palmares/ent/customer"
	"palmares/internal/core/problem"
	"palmares/internal/core/store"
)

// EventsPath receives Stripe's events.
const EventsPath = "/billing/stripe"

// Events are the types of events that billing requires. Others are ignored.
var Events = []string{
	string(stripe.EventTypeCheckoutSessionCompleted),
	string(stripe.EventTypeCustomerSubscriptionCreated),
	string(stripe.EventTypeCustomerSubscriptionUpdated),
	string(stripe.EventTypeCustomerSubscriptionDeleted),
	string(stripe.EventTypeCustomerSubscriptionPaused),
	string(stripe.EventTypeCustomerSubscriptionResumed),
	string(stripe.EventTypeInvoicePaid),
	string(stripe.EventTypeInvoicePaymentFailed),
	string(stripe.EventTypeCustomerDeleted),
}

const (
	// MaxEvent is the maximum size of an event, in bytes.
	MaxEvent = 1 << 20
	// eventTimeout is shorter than Stripe's own timeout.
	eventTimeout = 15 * time.Second
	// signatureTolerance limits how far a signature's timestamp may be from now
	// in either direction: one dated ahead could be replayed until then.
	signatureTolerance = 5 * time.Minute
	eventRetention     = 90 * 24 * time.Hour // Stripe retries events for days
)

// ServeHTTP receives an event. After a failure, Stripe sends it again.
func (b *Billing) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !b.Enabled() || b.WebhookSecret == "" { // an event could not be verified
		problem.Write(w, errDisabled)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), eventTimeout)
	defer cancel()
	if err := b.receive(r.WithContext(ctx)); err != nil {
		if problem.Of(err).Code.Status() >= http.StatusInternalServerError {
			b.Log.ErrorContext(r.Context(), "handling a Stripe event failed", "cause", cause(err), "request_id", problem.RequestID(r.Context()))
		}
		if _, known := errors.AsType[*problem.Problem](err); !known {
			err = &problem.Problem{Code: problem.Unavailable, Message: "The event could not be processed. Send it again later.", Cause: err}
		}
		problem.Write(w, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	_, _ = io.WriteString(w, `{"received":true}`)
}

func (b *Billing) receive(r *http.Request) error {
	body, err := io.ReadAll(http.MaxBytesReader(nil, r.Body, MaxEvent))
	if err != nil {
		return problem.New(problem.TooLarge, "The event could not be read or is larger than %d bytes.", MaxEvent)
	}
	signature := r.Header.Get("Stripe-Signature")
	event, err := webhook.ConstructEventWithOptions(body, signature, b.WebhookSecret,
		webhook.ConstructEventOptions{IgnoreAPIVersionMismatch: true, Tolerance: signatureTolerance}) // only ids are read from it
	switch {
	case errors.Is(err, webhook.ErrTooOld):
		return problem.New(problem.BadInput, "The event's signature is more than %.0f minutes old.", signatureTolerance.Minutes())
	case err != nil || event.ID == "":
		return problem.New(problem.BadInput, "The event's signature is missing or invalid.")
	case time.Until(signedAt(signature)) > signatureTolerance:
		return problem.New(problem.BadInput, "The event's signature is dated more than %.0f minutes in the future. Check the clocks.", signatureTolerance.Minutes())
	}
	id := customerOf(&event)
	if id == "" {
		return nil
	}
	// Repeated events need no request to Stripe.
	applied, err := b.Store.Read.BillingEvent.Query().Where(billingevent.ID(event.ID)).Exist(r.Context())
	if err != nil {
		return err
	}
	if !applied {
		if err := refresh(r.Context(), b, id, &event); err != nil {
			return err
		}
	}
	if event.Type == stripe.EventTypeCustomerDeleted {
		return b.unlink(r.Context(), id) // after the account has lost Pro
	}
	return nil
}

// signedAt returns the timestamp of a verified signature. Stripe's library only
// checks that it is not too old, and uses the last "t" if there are several.
func signedAt(signature string) time.Time {
	var seconds int64
	for part := range strings.SplitSeq(signature, ",") {
		if value, found := strings.CutPrefix(part, "t="); found {
			seconds, _ = strconv.ParseInt(value, 10, 64)
		}
	}
	return time.Unix(seconds, 0)
}

// customerOf returns the id of the customer that an event concerns, or "".
func customerOf(event *stripe.Event) string {
	if event.Data == nil {
		return ""
	}
	object := event.Data.Object
	if object["object"] != "customer" {
		if id, ok := object["customer"].(string); ok {
			return id
		}
		object, _ = object["customer"].(map[string]any) // expanded
	}
	id, _ := object["id"].(string)
	return id
}

// unlink lets the next subscription of the account create a new customer. Concurrent
// updates have to start again, because they must not change the account's plan.
func (b *Billing) unlink(ctx context.Context, id string) error {
	return b.Store.Write.Customer.Update().Where(customer.ID(id)).AddRevision(1).ClearAccountID().SetEmail("").Exec(ctx)
}

// unlinkDeleted also removes Pro, for a customer that was deleted without an event.
func (b *Billing) unlinkDeleted(ctx context.Context, id string) error {
	if err := refresh(ctx, b, id, nil); err != nil {
		return err
	}
	return b.unlink(ctx, id)
}

// DeleteOldEvents deletes the record of events that Stripe no longer retries.
// Callers must check the clock first, see clock.Steady.
func DeleteOldEvents(ctx context.Context, s *store.Store, now time.Time) error {
	_, err := s.Write.BillingEvent.Delete().Where(billingevent.AppliedAtLT(now.UTC().Add(-eventRetention))).Exec(ctx)
	return err
}
