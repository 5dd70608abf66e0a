package billing

import (
	"context"
	"encoding/json"
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

// EventsPath is where Stripe's events come to.
const EventsPath = "/billing/stripe"

// Events are the types to send there. More do no harm.
var Events = []stripe.EventType{
	stripe.EventTypeCheckoutSessionCompleted,
	stripe.EventTypeCustomerSubscriptionCreated,
	stripe.EventTypeCustomerSubscriptionUpdated,
	stripe.EventTypeCustomerSubscriptionDeleted,
	stripe.EventTypeCustomerSubscriptionPaused,
	stripe.EventTypeCustomerSubscriptionResumed,
	stripe.EventTypeInvoicePaid,
	stripe.EventTypeInvoicePaymentFailed,
	stripe.EventTypeCustomerDeleted,
}

const (
	// MaxEvent is the size of the largest event that is read, in bytes.
	MaxEvent = 1 << 20
	// eventTime is well within what Stripe waits for an answer.
	eventTime = 15 * time.Second
	// signatureTolerance bounds how far a signature's timestamp may be from
	// now in either direction; an event could be replayed for as long as its
	// signature is dated ahead.
	signatureTolerance = 5 * time.Minute
)

// ServeHTTP takes an event of Stripe's.
func (b *Billing) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !b.Open() || b.WebhookSecret == "" { // nothing could be told from a forgery
		problem.Write(w, errClosed)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), eventTime)
	defer cancel()
	if err := b.take(r.WithContext(ctx)); err != nil {
		b.logFailure(r, err)
		problem.Write(w, later(err))
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	_, _ = io.WriteString(w, `{"received":true}`)
}

func (b *Billing) take(r *http.Request) error {
	body, err := io.ReadAll(http.MaxBytesReader(nil, r.Body, MaxEvent))
	if err != nil {
		return problem.New(problem.TooLarge, "The event could not be read, or is larger than %d bytes.", MaxEvent)
	}
	signature := r.Header.Get("Stripe-Signature")
	event, err := webhook.ConstructEventWithOptions(body, signature, b.WebhookSecret,
		webhook.ConstructEventOptions{IgnoreAPIVersionMismatch: true, Tolerance: signatureTolerance}) // we only take ids from it
	switch {
	case errors.Is(err, webhook.ErrTooOld):
		return problem.New(problem.BadInput, "The event's signature is more than %.0f minutes old.", signatureTolerance.Minutes())
	case err != nil || event.ID == "":
		return problem.New(problem.BadInput, "The event's signature is missing or not valid.")
	case time.Until(signedAt(signature)) > signatureTolerance:
		return problem.New(problem.BadInput, "The event's signature is dated more than %.0f minutes in the future: check the clocks.", signatureTolerance.Minutes())
	}
	about := customerOf(&event)
	if about == "" {
		return nil // nothing that we act on
	}
	// Most repetitions need not ask Stripe again.
	known, err := b.Store.Current().BillingEvent.Query().Where(billingevent.ID(event.ID)).Exist(r.Context())
	if err != nil {
		return store.Explain(err)
	}
	if !known {
		if err := b.refresh(r.Context(), about, &event); err != nil {
			return err
		}
	}
	if event.Type == stripe.EventTypeCustomerDeleted {
		// Only now: the account had to lose Pro first.
		return b.unlink(r.Context(), about)
	}
	return nil
}

// signedAt returns the timestamp of a signature that Stripe's library has
// verified. The library checks only that it is not too old, and takes the last
// "t" where there are several.
func signedAt(signature string) time.Time {
	var seconds int64
	for part := range strings.SplitSeq(signature, ",") {
		if value, found := strings.CutPrefix(part, "t="); found {
			seconds, _ = strconv.ParseInt(value, 10, 64)
		}
	}
	return time.Unix(seconds, 0)
}

// unlink forgets whose a customer was that Stripe no longer has: the next
// subscription begins with a new one.
func (b *Billing) unlink(ctx context.Context, id string) error {
	return store.Explain(b.Store.Write.Customer.Update().Where(customer.ID(id)).ClearAccountID().SetEmail("").Exec(ctx))
}

// lose is for a customer that Stripe no longer has, where no event told so:
// the account loses Pro first.
func (b *Billing) lose(ctx context.Context, id string) error {
	if err := b.refresh(ctx, id, nil); err != nil {
		return err
	}
	return b.unlink(ctx, id)
}

// customerOf is whom an event is about, or nobody.
func customerOf(event *stripe.Event) string {
	if event.Data == nil {
		return ""
	}
	var about struct {
		Object   string
		ID       string
		Customer json.RawMessage
	}
	if json.Unmarshal(event.Data.Raw, &about) != nil {
		return ""
	}
	if about.Object == "customer" {
		return about.ID
	}
	var id string
	if json.Unmarshal(about.Customer, &id) == nil {
		return id
	}
	var whole struct{ ID string }
	_ = json.Unmarshal(about.Customer, &whole)
	return whole.ID
}

// later makes Stripe send again what failed here, as it would for any reason.
func later(err error) error {
	var said *problem.Problem
	if errors.As(err, &said) {
		return err
	}
	return &problem.Problem{Code: problem.Unavailable, Message: "The event could not be applied at the moment: send it again.", Cause: err}
}

// logFailure tells what only we can mend.
func (b *Billing) logFailure(r *http.Request, err error) {
	if problem.Of(err).Code.Status() < http.StatusInternalServerError {
		return
	}
	b.Log.ErrorContext(r.Context(), "an event of Stripe's was not applied: it will send it again", "cause", cause(err), "request_id", problem.RequestID(r.Context()))
}
