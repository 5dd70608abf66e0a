package billing

import (
	"context"
	"net/http"

	"github.com/stripe/stripe-go/v86"

	"palmares/ent"
	"palmares/internal/core/problem"
)

// BackPath is where people come back to from Stripe's page for managing.
const BackPath = PlanPath + "/back"

// errNotManaged is for visitors. What is to be done about it is in the log.
var errNotManaged = problem.New(problem.Unavailable, "Cards and invoices cannot be seen at the moment. Nothing was changed.")

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
	if err := b.clicks.count(acc.ID, b.now()); err != nil {
		return "", err
	}
	page, err := b.InspectManaging(ctx)
	if err != nil && !RefusesCall(err) { // a key that may not read it may still open it
		return "", failed(err)
	}
	params := &stripe.BillingPortalSessionCreateParams{Customer: &row.ID, ReturnURL: stripe.String(b.PublicURL + BackPath)}
	if page.Ours != "" {
		params.Configuration = &page.Ours
	}
	session, err := b.stripe.V1BillingPortalSessions.Create(ctx, params)
	switch {
	case missing(err, customerParam):
		if err := b.lose(ctx, row.ID); err != nil {
			return "", err
		}
		return "", problem.New(problem.BadInput, "The payment service no longer has a subscription of yours. You may begin a new one.")
	case answered(err, http.StatusBadRequest) && page == ManagingPage{}:
		b.Log.Error("Stripe has no page for cards, invoices and cancelling: run palmares billing setup", "cause", err)
		return "", errNotManaged
	case err != nil:
		return "", failed(err)
	}
	return session.URL, nil
}

// ManagingPage is what Stripe's page for managing is made from.
type ManagingPage struct {
	Ours    string // what SetUpManaging has made
	Default string // what was saved in Stripe's dashboard, and is used if there is none of ours
}

// How we find what we made, among what others may have.
const (
	markName  = "made_by"
	markValue = "palmares billing setup"
)

// InspectManaging reads what is there. Its errors are Stripe's own.
func (b *Billing) InspectManaging(ctx context.Context) (page ManagingPage, err error) {
	params := &stripe.BillingPortalConfigurationListParams{Active: stripe.Bool(true)}
	for found, err := range b.stripe.V1BillingPortalConfigurations.List(ctx, params).All(ctx) {
		if err != nil {
			return ManagingPage{}, err
		}
		if page.Ours == "" && found.Metadata[markName] == markValue {
			page.Ours = found.ID
		}
		if found.IsDefault {
			page.Default = found.ID
		}
	}
	return page, nil
}

// SetUpManaging makes the page at Stripe where people change their card, read
// invoices and cancel, unless it is there already: without one Stripe has none.
func (b *Billing) SetUpManaging(ctx context.Context) (id string, made bool, err error) {
	if !b.Open() {
		return "", false, errNoKey
	}
	page, err := b.InspectManaging(ctx)
	if err != nil || page.Ours != "" {
		return page.Ours, false, failed(err)
	}
	yes := stripe.Bool(true)
	created, err := b.stripe.V1BillingPortalConfigurations.Create(ctx, &stripe.BillingPortalConfigurationCreateParams{
		Features: &stripe.BillingPortalConfigurationCreateFeaturesParams{
			PaymentMethodUpdate: &stripe.BillingPortalConfigurationCreateFeaturesPaymentMethodUpdateParams{Enabled: yes},
			InvoiceHistory:      &stripe.BillingPortalConfigurationCreateFeaturesInvoiceHistoryParams{Enabled: yes},
			SubscriptionCancel: &stripe.BillingPortalConfigurationCreateFeaturesSubscriptionCancelParams{
				Enabled: yes, Mode: stripe.String(string(stripe.BillingPortalConfigurationFeaturesSubscriptionCancelModeAtPeriodEnd)),
			},
			CustomerUpdate: &stripe.BillingPortalConfigurationCreateFeaturesCustomerUpdateParams{
				Enabled: yes, AllowedUpdates: stripe.StringSlice([]string{"address", "tax_id"}), // the address of mail is ours to tell
			},
		},
		Metadata: map[string]string{markName: markValue},
	})
	if err != nil {
		return "", false, failed(err)
	}
	return created.ID, true, nil
}
