package billing

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/stripe/stripe-go/v86"

	"palmares/ent"
	"palmares/internal/core/problem"
	"palmares/internal/core/store"
)

// PlanPath is the portal's page that people come back to.
const PlanPath = "/account/plan"

// Subscribe begins a subscription: where the account's owner goes to pay.
func (b *Billing) Subscribe(ctx context.Context, acc *ent.Account) (address string, err error) {
	if !b.Open() {
		return "", errClosed
	}
	if err := b.clicks.count(acc.ID, b.now()); err != nil {
		return "", err
	}
	for range 2 {
		row, err := b.ensureCustomer(ctx, acc)
		if err != nil {
			return "", err
		}
		address, err = b.openCheckout(ctx, row, acc)
		if !missing(err, customerParam) {
			return address, failed(err)
		}
		// The customer was deleted at Stripe: the next one is new.
		if err := b.lose(ctx, row.ID); err != nil {
			return "", err
		}
	}
	return "", failed(errors.New("a customer that was just made is missing"))
}

// openCheckout is the page to pay on: the one that is open, or a new one.
func (b *Billing) openCheckout(ctx context.Context, row *ent.Customer, acc *ent.Account) (address string, err error) {
	all, err := b.subscriptions(ctx, row.ID)
	if err != nil {
		return "", err
	}
	if at := stand(best(all)); Live(at.status) {
		if err := b.refresh(ctx, row.ID, nil); err != nil {
			return "", err
		}
		return "", problem.New(problem.BadInput, "This account has a subscription already.")
	}
	price, err := b.findPrice(ctx)
	if err != nil {
		return "", err
	}
	if err := b.Store.Write.Customer.UpdateOneID(row.ID).SetCheckoutAt(b.now().UTC()).Exec(ctx); err != nil {
		return "", store.Explain(err)
	}
	// Who left the page open goes back to it: two of them could both be paid.
	open, err := b.openSessions(ctx, row.ID)
	if err != nil {
		return "", err
	}
	for _, session := range open {
		if session.URL != "" {
			return session.URL, nil
		}
	}
	params := b.checkout(row.ID, price, acc)
	// Twice the same click is one session.
	params.SetIdempotencyKey(fmt.Sprintf("palmares-checkout-%s-%s-%d-%d", row.ID, price, row.Revision, b.now().Unix()/60))
	session, err := b.stripe.V1CheckoutSessions.Create(ctx, params)
	if refusesPrice(err) {
		return "", b.forgetPrice(price)
	}
	if err != nil {
		return "", err
	}
	return session.URL, nil
}

// openSessions are the pages to pay on that a customer has open.
func (b *Billing) openSessions(ctx context.Context, customer string) (open []*stripe.CheckoutSession, err error) {
	params := &stripe.CheckoutSessionListParams{Customer: &customer, Status: stripe.String(string(stripe.CheckoutSessionStatusOpen))}
	for session, err := range b.stripe.V1CheckoutSessions.List(ctx, params).All(ctx) {
		if err != nil {
			return nil, err
		}
		if session.Status == stripe.CheckoutSessionStatusOpen {
			open = append(open, session)
		}
	}
	return open, nil
}

// checkout is a subscription in euros with tax on top, as its place and tax id
// ask for.
func (b *Billing) checkout(customer, price string, acc *ent.Account) *stripe.CheckoutSessionCreateParams {
	account := map[string]string{"account": strconv.Itoa(acc.ID)}
	return &stripe.CheckoutSessionCreateParams{
		Mode:                     stripe.String(string(stripe.CheckoutSessionModeSubscription)),
		Customer:                 &customer,
		ClientReferenceID:        stripe.String(strconv.Itoa(acc.ID)),
		LineItems:                []*stripe.CheckoutSessionCreateLineItemParams{{Price: &price, Quantity: stripe.Int64(1)}},
		AutomaticTax:             &stripe.CheckoutSessionCreateAutomaticTaxParams{Enabled: stripe.Bool(true)},
		TaxIDCollection:          &stripe.CheckoutSessionCreateTaxIDCollectionParams{Enabled: stripe.Bool(true)},
		BillingAddressCollection: stripe.String(string(stripe.CheckoutSessionBillingAddressCollectionRequired)),
		CustomerUpdate:           &stripe.CheckoutSessionCreateCustomerUpdateParams{Address: stripe.String("auto"), Name: stripe.String("auto")},
		SubscriptionData:         &stripe.CheckoutSessionCreateSubscriptionDataParams{Metadata: account},
		SuccessURL:               stripe.String(b.PublicURL + PlanPath + "/done"),
		CancelURL:                stripe.String(b.PublicURL + PlanPath),
	}
}

// ensureCustomer is the account's customer at Stripe, made at its first
// subscription: once, also when two pages ask at the same time.
func (b *Billing) ensureCustomer(ctx context.Context, acc *ent.Account) (*ent.Customer, error) {
	row, err := b.Customer(ctx, acc)
	if err != nil || row != nil {
		return row, err
	}
	params := &stripe.CustomerCreateParams{Email: &acc.Email, Metadata: map[string]string{"account": strconv.Itoa(acc.ID)}}
	// Not the same key for long: Stripe repeats an error to it, too, and a
	// customer that was deleted since.
	params.SetIdempotencyKey(fmt.Sprintf("palmares-customer-%d-%d-%d", acc.ID, acc.CreatedAt.Unix(), b.now().Unix()/60))
	made, err := b.stripe.V1Customers.Create(ctx, params)
	if err != nil {
		return nil, failed(err)
	}
	row, err = b.Store.Write.Customer.Create().SetID(made.ID).SetAccountID(acc.ID).SetEmail(acc.Email).SetCreatedAt(b.now().UTC()).Save(ctx)
	if !ent.IsConstraintError(err) {
		return row, store.Explain(err)
	}
	row, first := b.Customer(ctx, acc)
	if row == nil && first == nil { // no other page was first: the account is gone, or the customer was
		return nil, failed(err)
	}
	return row, first
}

// subscriptions are all that a customer ever had.
func (b *Billing) subscriptions(ctx context.Context, customer string) ([]*stripe.Subscription, error) {
	params := &stripe.SubscriptionListParams{Customer: &customer, Status: stripe.String("all")}
	params.AddExpand("data.latest_invoice")
	var all []*stripe.Subscription
	for s, err := range b.stripe.V1Subscriptions.List(ctx, params).All(ctx) {
		if missing(err, customerParam) {
			return nil, nil // the customer was deleted there
		}
		if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return all, nil
}

// How Stripe names a customer that a request is about: in its form, or as the
// id in its path.
const (
	customerParam = "customer"
	pathParam     = "id"
)

// missing tells whether Stripe does not have what a parameter names. What else
// a request names may be missing, too.
func missing(err error, param string) bool {
	var said *stripe.Error
	return errors.As(err, &said) && said.Code == stripe.ErrorCodeResourceMissing && said.Param == param
}

// refused tells whether Stripe will not do what it was asked, however often.
func refused(err error) bool {
	var said *stripe.Error
	if !errors.As(err, &said) {
		return false
	}
	switch said.HTTPStatusCode {
	case http.StatusConflict, http.StatusTooManyRequests: // it was asked at the wrong moment
		return false
	}
	return said.HTTPStatusCode >= 400 && said.HTTPStatusCode < 500
}

// refusesPrice tells whether Stripe does not sell at a price: it is missing,
// or archived.
func refusesPrice(err error) bool {
	var said *stripe.Error
	return errors.As(err, &said) && said.Type == stripe.ErrorTypeInvalidRequest && strings.HasPrefix(said.Param, "line_items")
}

// cancelAll ends whatever a customer still pays for.
func (b *Billing) cancelAll(ctx context.Context, customer string) error {
	all, err := b.subscriptions(ctx, customer)
	if err != nil {
		return err
	}
	for _, s := range all {
		if !Live(string(s.Status)) {
			continue
		}
		if _, err := b.stripe.V1Subscriptions.Cancel(ctx, s.ID, nil); err != nil {
			return err
		}
	}
	return nil
}

// Close ends the subscription of an account that is about to be deleted. What
// the law wants kept, the invoices, stays with Stripe, and its number here.
func (b *Billing) Close(ctx context.Context, acc *ent.Account) error {
	row, err := b.Customer(ctx, acc)
	if err != nil || row == nil {
		return err
	}
	if !b.Open() {
		if !Live(row.Status) {
			return nil
		}
		return problem.New(problem.Unavailable, "The subscription cannot be ended from this server at the moment, so the account stays.")
	}
	if err := b.stopPaying(ctx, row.ID); err != nil {
		return failed(err)
	}
	_, err = b.align(ctx, row.ID, nil) // its owner knows without a letter
	return err
}

// stopPaying closes the pages to pay on, and ends what is paid for.
func (b *Billing) stopPaying(ctx context.Context, customer string) error {
	open, err := b.openSessions(ctx, customer)
	if err != nil && !missing(err, customerParam) {
		return err
	}
	for _, session := range open {
		if _, err := b.stripe.V1CheckoutSessions.Expire(ctx, session.ID, nil); err != nil {
			return err
		}
	}
	return b.cancelAll(ctx, customer)
}
