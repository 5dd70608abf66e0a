package billing

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/stripe/stripe-go/v86"

	"palmares/ent"
	"palmares/internal/problem"
	"palmares/internal/store"
)

// PlanPath is the portal's page that people come back to.
const PlanPath = "/account/plan"

// Subscribe begins a subscription: where the account's owner goes to pay.
func (b *Billing) Subscribe(ctx context.Context, acc *ent.Account) (address string, err error) {
	if !b.Open() {
		return "", errClosed
	}
	row, err := b.ensureCustomer(ctx, acc)
	if err != nil {
		return "", err
	}
	all, err := b.subscriptions(ctx, row.ID)
	if err != nil {
		return "", failed(err)
	}
	if at := stand(best(all)); Live(at.status) {
		if err := b.refresh(ctx, row.ID, nil); err != nil {
			return "", err
		}
		return "", problem.New(problem.BadInput, "This account has a subscription already.")
	}
	// Who left the payment page open goes back to it: two of them could both
	// be paid.
	open := &stripe.CheckoutSessionListParams{Customer: &row.ID, Status: stripe.String(string(stripe.CheckoutSessionStatusOpen))}
	for session, err := range b.stripe.V1CheckoutSessions.List(ctx, open).All(ctx) {
		if err != nil {
			return "", failed(err)
		}
		if session.Status == stripe.CheckoutSessionStatusOpen && session.URL != "" {
			return session.URL, nil
		}
	}
	price, err := b.findPrice(ctx)
	if err != nil {
		return "", err
	}
	params := b.checkout(row.ID, price, acc)
	// Twice the same click is one session.
	params.SetIdempotencyKey(fmt.Sprintf("palmares-checkout-%s-%d-%d", row.ID, row.Revision, b.now().Unix()/60))
	session, err := b.stripe.V1CheckoutSessions.Create(ctx, params)
	if err != nil {
		return "", failed(err)
	}
	return session.URL, nil
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

// Manage is where the owner changes the card, reads invoices and cancels.
func (b *Billing) Manage(ctx context.Context, acc *ent.Account) (address string, err error) {
	if !b.Open() {
		return "", errClosed
	}
	row, err := b.Customer(ctx, acc)
	if err != nil {
		return "", err
	}
	if row == nil {
		return "", problem.New(problem.BadInput, "This account has never had a subscription.")
	}
	session, err := b.stripe.V1BillingPortalSessions.Create(ctx, &stripe.BillingPortalSessionCreateParams{
		Customer: &row.ID, ReturnURL: stripe.String(b.PublicURL + PlanPath + "/done"),
	})
	if err != nil {
		return "", failed(err)
	}
	return session.URL, nil
}

// ensureCustomer is the account's customer at Stripe, made at its first
// subscription: once, also when two pages ask at the same time.
func (b *Billing) ensureCustomer(ctx context.Context, acc *ent.Account) (*ent.Customer, error) {
	row, err := b.Customer(ctx, acc)
	if err != nil || row != nil {
		return row, err
	}
	params := &stripe.CustomerCreateParams{Email: &acc.Email, Metadata: map[string]string{"account": strconv.Itoa(acc.ID)}}
	params.SetIdempotencyKey(fmt.Sprintf("palmares-customer-%d-%d", acc.ID, acc.CreatedAt.Unix()))
	made, err := b.stripe.V1Customers.Create(ctx, params)
	if err != nil {
		return nil, failed(err)
	}
	row, err = b.Store.Write.Customer.Create().SetID(made.ID).SetAccountID(acc.ID).SetEmail(acc.Email).SetCreatedAt(b.now().UTC()).Save(ctx)
	if ent.IsConstraintError(err) { // the other page was first
		return b.Store.Write.Customer.Get(ctx, made.ID)
	}
	return row, store.Explain(err)
}

// subscriptions are all that a customer ever had.
func (b *Billing) subscriptions(ctx context.Context, customer string) ([]*stripe.Subscription, error) {
	params := &stripe.SubscriptionListParams{Customer: &customer, Status: stripe.String("all")}
	params.AddExpand("data.latest_invoice")
	var all []*stripe.Subscription
	for s, err := range b.stripe.V1Subscriptions.List(ctx, params).All(ctx) {
		if missing(err) {
			return nil, nil // the customer was deleted there
		}
		if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return all, nil
}

func missing(err error) bool {
	var said *stripe.Error
	return errors.As(err, &said) && said.Code == stripe.ErrorCodeResourceMissing
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
	if err := b.cancelAll(ctx, row.ID); err != nil {
		return failed(err)
	}
	return b.refresh(ctx, row.ID, nil)
}
