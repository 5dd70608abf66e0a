// Package billing sells the Pro plan through Stripe. It always reads the state
// of a subscription from Stripe, never from an event: events may be late,
// repeated, out of order or lost. It changes only the plan of an account;
// cards and invoices stay with Stripe.
package billing

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/stripe/stripe-go/v86"
	"golang.org/x/sync/singleflight"

	"palmares/ent"
	"palmares/ent/customer"
	"palmares/internal/core/limiter"
	"palmares/internal/core/middleware"
	"palmares/internal/core/problem"
	"palmares/internal/core/store"
)

const (
	// PlanPath is the page of the portal that the checkout returns to.
	PlanPath = "/account/plan"
	// BackPath is where Stripe's billing portal returns to.
	BackPath = PlanPath + "/back"

	callTimeout       = 10 * time.Second
	callRetries       = 2
	maxCallsPerMinute = 10 // per account, because Stripe limits our requests
)

var (
	errDisabled = problem.New(problem.NotFound, "Subscriptions are not available on this server.")
	errNoKey    = problem.New(problem.BadInput, "STRIPE_SECRET_KEY is not set.")
)

// Config configures billing. Without a SecretKey, billing is disabled.
type Config struct {
	SecretKey     string // authenticates requests to Stripe's API
	WebhookSecret string // for verifying Stripe's events
	APIBase       string // Stripe's API if empty
	PublicURL     string
	ServiceName   string
	Store         *store.Store
	Log           *slog.Logger
}

// Billing keeps the plans of accounts in line with their subscriptions.
type Billing struct {
	Config
	client     any                    // *stripe.Client, or nil if billing is disabled
	foundPrice atomic.Pointer[string] // id of the price, once it was looked up
	syncs      singleflight.Group     // by customer
	calls      limiter.Rate[int]      // by account
	now        func() time.Time
}

// New returns billing, which is disabled if no secret key is configured.
func New(cfg Config) *Billing {
	b := &Billing{Config: cfg, now: time.Now}
	b.calls.Limit, b.calls.Now = maxCallsPerMinute, func() time.Time { return b.now() }
	if cfg.SecretKey == "" {
		return b
	}
	backend := &stripe.BackendConfig{
		HTTPClient:        &http.Client{Timeout: callTimeout, Transport: middleware.PausingTransport{RoundTripper: http.DefaultTransport}},
		LeveledLogger:     &stripe.LeveledLogger{Level: stripe.LevelNull}, // it could log secrets
		MaxNetworkRetries: stripe.Int64(callRetries),
		EnableTelemetry:   stripe.Bool(false),
	}
	if cfg.APIBase != "" {
		backend.URL = stripe.String(cfg.APIBase)
	}
	b.client = stripe.NewClient(cfg.SecretKey, stripe.WithBackends(stripe.NewBackendsWithConfig(backend)))
	return b
}

// Enabled reports whether accounts can subscribe to Pro.
func (b *Billing) Enabled() bool { return b.client != nil }

// api returns Stripe's API. Neither fields nor methods of Billing have its types:
// packages that use Billing would compile them again, which takes longer than their own
// code.
func api(b *Billing) *stripe.Client { return b.client.(*stripe.Client) }

// Customer returns the customer of an account, or nil if it never subscribed.
func (b *Billing) Customer(ctx context.Context, acc *ent.Account) (*ent.Customer, error) {
	row, err := b.Store.Read.Customer.Query().Where(customer.AccountID(acc.ID)).Only(ctx)
	return row, ent.MaskNotFound(err)
}

// explain turns an error of Stripe into one whose message is for users.
func explain(err error) error {
	if _, known := errors.AsType[*problem.Problem](err); known || err == nil {
		return err
	}
	explained := problem.New(problem.Unavailable, "The payment service is unavailable. Nothing was changed. Try again in a minute.")
	if rejected(err) {
		explained = problem.New(problem.Internal, "The payment service rejected our request. Nothing was changed. The problem is on our side, so trying again will not help.")
	}
	explained.Cause = err
	return explained
}

// cause returns the error to log, which may say more than its message for users.
func cause(err error) error { return cmp.Or(errors.Unwrap(err), err) }

// Parameters with which Stripe reports a missing object.
const (
	customerParam = "customer"
	pathParam     = "id"
)

// collect returns all items of a list at Stripe.
func collect[T any](list stripe.Seq2[T, error]) (all []T, err error) {
	for item, err := range list {
		if err != nil {
			return nil, err
		}
		all = append(all, item)
	}
	return all, nil
}

// reported returns the error that Stripe reported, which is empty for other errors.
func reported(err error) *stripe.Error {
	e := &stripe.Error{}
	_ = errors.As(err, &e)
	return e
}

// missing reports whether Stripe does not have the object that a parameter names.
func missing(err error, param string) bool {
	e := reported(err)
	return e.Code == stripe.ErrorCodeResourceMissing && e.Param == param
}

// rejected reports whether Stripe would reject the same request again.
func rejected(err error) bool {
	status := reported(err).HTTPStatusCode
	return status >= 400 && status < 500 && status != http.StatusConflict && status != http.StatusTooManyRequests
}

// IsInvalidKey reports whether Stripe does not know our secret key.
func IsInvalidKey(err error) bool { return reported(err).HTTPStatusCode == http.StatusUnauthorized }

// IsForbidden reports whether our secret key lacks a permission.
func IsForbidden(err error) bool { return reported(err).HTTPStatusCode == http.StatusForbidden }

// count counts a call to Stripe for an account.
func (b *Billing) count(acc *ent.Account) error {
	if !b.calls.Take(acc.ID, 1) {
		return problem.New(problem.TooMany, "Too many attempts. Try again in a minute.")
	}
	return nil
}
