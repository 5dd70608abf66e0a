// Package billing sells the Pro plan through Stripe. What a subscription is
// worth is always read there, never guessed from an event, so that events may
// come late, twice, in any order or not at all. It changes an account's plan
// and nothing else of it; cards and invoices stay with Stripe.
package billing

import (
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
	"palmares/internal/core/middleware"
	"palmares/internal/core/problem"
	"palmares/internal/core/store"
	"palmares/internal/notify/mail"
)

// Config is what selling needs.
type Config struct {
	SecretKey     string // of Stripe's API; empty where nothing is sold
	WebhookSecret string // what Stripe signs its events with
	Price         string // Stripe's id of it; found by its lookup key if empty
	APIBase       string // where Stripe is; empty for the real one
	PublicURL     string
	ServiceName   string
	Store         *store.Store
	Mail          *mail.Mailer
	Log           *slog.Logger
}

// Billing keeps accounts in line with their subscriptions.
type Billing struct {
	Config
	stripe  *stripe.Client         // nil where nothing is sold
	found   atomic.Pointer[string] // the price, where it had to be looked up
	syncing singleflight.Group     // by customer
	clicks  clicks
	now     func() time.Time
}

const (
	callTime = 10 * time.Second
	retries  = 2
)

// New is ready to sell, or says that it does not; see Open.
func New(cfg Config) *Billing {
	b := &Billing{Config: cfg, now: time.Now}
	if cfg.SecretKey == "" {
		return b
	}
	backend := &stripe.BackendConfig{
		HTTPClient:        &http.Client{Timeout: callTime, Transport: middleware.PausingTransport{RoundTripper: http.DefaultTransport}},
		LeveledLogger:     &stripe.LeveledLogger{Level: stripe.LevelNull}, // we log ourselves, and no secrets
		MaxNetworkRetries: stripe.Int64(retries),
		EnableTelemetry:   stripe.Bool(false),
	}
	if cfg.APIBase != "" {
		backend.URL = stripe.String(cfg.APIBase)
	}
	b.stripe = stripe.NewClient(cfg.SecretKey, stripe.WithBackends(stripe.NewBackendsWithConfig(backend)))
	return b
}

// Open tells whether Pro can be subscribed to here.
func (b *Billing) Open() bool { return b.stripe != nil }

// Customer is what is known of an account's subscription; nil if it never had
// one.
func (b *Billing) Customer(ctx context.Context, acc *ent.Account) (*ent.Customer, error) {
	row, err := b.Store.Current().Customer.Query().Where(customer.AccountID(acc.ID)).Only(ctx)
	if ent.IsNotFound(err) {
		return nil, nil
	}
	return row, store.Explain(err)
}

// failed says in our words that Stripe did not do what it was asked.
func failed(err error) error {
	var ours *problem.Problem
	if err == nil || errors.As(err, &ours) {
		return err
	}
	if refused(err) {
		return &problem.Problem{
			Code:    problem.Internal,
			Message: "The payment service does not take what we ask of it. Nothing was changed, and trying again will not help: it is for us to mend.",
			Cause:   err,
		}
	}
	return &problem.Problem{
		Code:    problem.Unavailable,
		Message: "The payment service does not answer at the moment. Nothing was changed: try again in a minute.",
		Cause:   err,
	}
}

// cause is what the log tells of an error, where there is more than we say.
func cause(err error) error {
	if inner := errors.Unwrap(err); inner != nil {
		return inner
	}
	return err
}

var errClosed = problem.New(problem.NotFound, "Subscription is not open on this server.")
