package billing

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/stripe/stripe-go/v86"

	"palmares/ent"
	"palmares/internal/core/lang"
	"palmares/internal/core/problem"
)

// Subscribe returns the URL of the checkout at which the account's owner pays.
func (b *Billing) Subscribe(ctx context.Context, acc *ent.Account) (checkoutURL string, err error) {
	if !b.Enabled() {
		return "", errDisabled
	}
	if err := b.count(acc); err != nil {
		return "", err
	}
	for range 2 {
		row, err := b.ensureCustomer(ctx, acc)
		if err != nil {
			return "", err
		}
		checkoutURL, err = b.openCheckout(ctx, row, acc)
		if !missing(err, customerParam) {
			return checkoutURL, explain(err)
		}
		// The customer was deleted at Stripe: try again with a new one.
		if err := b.unlinkDeleted(ctx, row.ID); err != nil {
			return "", err
		}
	}
	return "", explain(errors.New("a new customer is missing at Stripe"))
}

// ensureCustomer creates at most one customer, even if it is called concurrently.
func (b *Billing) ensureCustomer(ctx context.Context, acc *ent.Account) (*ent.Customer, error) {
	row, err := b.Customer(ctx, acc)
	if err != nil || row != nil {
		return row, err
	}
	params := &stripe.CustomerCreateParams{Email: &acc.Email, Metadata: map[string]string{"account": strconv.Itoa(acc.ID)}}
	// The key changes every minute, because Stripe would repeat an error, or a
	// customer that was deleted since.
	params.SetIdempotencyKey(fmt.Sprintf("palmares-customer-%d-%d-%d", acc.ID, acc.CreatedAt.Unix(), b.now().Unix()/60))
	created, err := api(b).V1Customers.Create(ctx, params)
	if err != nil {
		return nil, explain(err)
	}
	row, err = b.Store.Write.Customer.Create().SetID(created.ID).SetAccountID(acc.ID).SetEmail(acc.Email).SetCreatedAt(b.now().UTC()).Save(ctx)
	if !ent.IsConstraintError(err) {
		return row, err
	}
	row, readErr := b.Customer(ctx, acc)
	if row == nil && readErr == nil { // not created concurrently
		return nil, explain(errors.New("the account or the customer was deleted"))
	}
	return row, readErr
}

// openCheckout returns the URL of the customer's open checkout, or of a new one.
func (b *Billing) openCheckout(ctx context.Context, row *ent.Customer, acc *ent.Account) (checkoutURL string, err error) {
	all, err := subscriptions(ctx, b, row.ID)
	if err != nil {
		return "", err
	}
	if Live(stateOf(all).Status) {
		if err := refresh(ctx, b, row.ID, nil); err != nil {
			return "", err
		}
		return "", problem.New(problem.BadInput, "This account already has a subscription.")
	}
	price, err := b.findPrice(ctx)
	if err != nil {
		return "", err
	}
	if err := b.Store.Write.Customer.UpdateOneID(row.ID).SetCheckoutAt(b.now().UTC()).Exec(ctx); err != nil {
		return "", err
	}
	// With two open checkouts, the customer could pay twice.
	open, err := openCheckouts(ctx, b, row.ID)
	if err != nil {
		return "", err
	}
	for _, session := range open {
		if session.URL != "" {
			return session.URL, nil
		}
	}
	params := checkoutParams(b, lang.Of(ctx), row.ID, price, acc)
	// A double click creates one checkout.
	params.SetIdempotencyKey(fmt.Sprintf("palmares-checkout-%s-%s-%d-%d", row.ID, price, row.Revision, b.now().Unix()/60))
	session, err := api(b).V1CheckoutSessions.Create(ctx, params)
	if e := reported(err); e.Type == stripe.ErrorTypeInvalidRequest && strings.HasPrefix(e.Param, "line_items") {
		return "", b.forgetPrice(price) // it is missing or archived
	}
	if err != nil {
		return "", err
	}
	return session.URL, nil
}

func openCheckouts(ctx context.Context, b *Billing, customer string) ([]*stripe.CheckoutSession, error) {
	params := &stripe.CheckoutSessionListParams{Customer: &customer, Status: stripe.String(string(stripe.CheckoutSessionStatusOpen))}
	all, err := collect(api(b).V1CheckoutSessions.List(ctx, params).All(ctx))
	return slices.DeleteFunc(all, func(s *stripe.CheckoutSession) bool { return s.Status != stripe.CheckoutSessionStatusOpen }), err
}

func checkoutParams(b *Billing, l lang.Language, customer, price string, acc *ent.Account) *stripe.CheckoutSessionCreateParams {
	account := strconv.Itoa(acc.ID)
	return &stripe.CheckoutSessionCreateParams{
		Mode:                     stripe.String(string(stripe.CheckoutSessionModeSubscription)),
		Locale:                   stripe.String(string(l)),
		Customer:                 &customer,
		ClientReferenceID:        &account,
		LineItems:                []*stripe.CheckoutSessionCreateLineItemParams{{Price: &price, Quantity: stripe.Int64(1)}},
		AutomaticTax:             &stripe.CheckoutSessionCreateAutomaticTaxParams{Enabled: stripe.Bool(true)},
		TaxIDCollection:          &stripe.CheckoutSessionCreateTaxIDCollectionParams{Enabled: stripe.Bool(true)},
		BillingAddressCollection: stripe.String(string(stripe.CheckoutSessionBillingAddressCollectionRequired)),
		CustomerUpdate:           &stripe.CheckoutSessionCreateCustomerUpdateParams{Address: stripe.String("auto"), Name: stripe.String("auto")},
		SubscriptionData:         &stripe.CheckoutSessionCreateSubscriptionDataParams{Metadata: map[string]string{"account": account}},
		SuccessURL:               stripe.String(b.PublicURL + l.Path(PlanPath) + "/done"),
		CancelURL:                stripe.String(b.PublicURL + l.Path(PlanPath)),
	}
}

// Manage returns the URL of Stripe's portal for cards, invoices and canceling.
func (b *Billing) Manage(ctx context.Context, acc *ent.Account) (portalURL string, err error) {
	if !b.Enabled() {
		return "", errDisabled
	}
	row, err := b.Customer(ctx, acc)
	if err != nil {
		return "", err
	}
	if row == nil {
		return "", problem.New(problem.BadInput, "This account has never had a subscription.")
	}
	if err := b.count(acc); err != nil {
		return "", err
	}
	config, err := b.InspectPortal(ctx)
	if err != nil && !IsForbidden(err) { // a key without this permission may still open the portal
		return "", explain(err)
	}
	params := &stripe.BillingPortalSessionCreateParams{Customer: &row.ID, ReturnURL: stripe.String(b.PublicURL + lang.Of(ctx).Path(BackPath))}
	if config.Ours != "" {
		params.Configuration = &config.Ours
	}
	session, err := api(b).V1BillingPortalSessions.Create(ctx, params)
	switch {
	case missing(err, customerParam):
		if err := b.unlinkDeleted(ctx, row.ID); err != nil {
			return "", err
		}
		return "", problem.New(problem.BadInput, "The payment service no longer has your subscription. You can subscribe again.")
	case reported(err).HTTPStatusCode == http.StatusBadRequest && config == PortalConfigs{}:
		b.Log.Error("billing portal at Stripe is not configured", "cause", err, "advice", "run palmares billing setup")
		return "", problem.New(problem.Unavailable, "The billing portal is not available at the moment. Nothing was changed.")
	case err != nil:
		return "", explain(err)
	}
	return session.URL, nil
}

// Cancel ends the subscription of an account that is about to be deleted.
// Stripe retains the invoices, as the law requires.
func (b *Billing) Cancel(ctx context.Context, acc *ent.Account) error {
	row, err := b.Customer(ctx, acc)
	if err != nil || row == nil {
		return err
	}
	if !b.Enabled() {
		if !Live(row.Status) {
			return nil
		}
		return problem.New(problem.Unavailable, "The subscription cannot be canceled at the moment, so the account was not deleted. Try again later.")
	}
	if err := b.cancelAll(ctx, row.ID); err != nil {
		return explain(err)
	}
	return update(ctx, b, row.ID, nil, false)
}

// cancelAll closes the checkouts of a customer and cancels the subscriptions.
func (b *Billing) cancelAll(ctx context.Context, customer string) error {
	open, err := openCheckouts(ctx, b, customer)
	if err != nil && !missing(err, customerParam) {
		return err
	}
	for _, session := range open {
		if err := b.expire(ctx, session.ID); err != nil {
			return err
		}
	}
	all, err := subscriptions(ctx, b, customer)
	if err != nil {
		return err
	}
	for _, s := range all {
		if !Live(string(s.Status)) {
			continue
		}
		if _, err := api(b).V1Subscriptions.Cancel(ctx, s.ID, nil); err != nil && !missing(err, pathParam) { // missing: it has just ended
			return err
		}
	}
	return nil
}

// expire closes a checkout, unless it has just been paid or closed.
func (b *Billing) expire(ctx context.Context, session string) error {
	_, err := api(b).V1CheckoutSessions.Expire(ctx, session, nil)
	if !rejected(err) {
		return err
	}
	current, readErr := api(b).V1CheckoutSessions.Retrieve(ctx, session, nil)
	if readErr != nil || current.Status == stripe.CheckoutSessionStatusOpen {
		return err
	}
	return nil
}
