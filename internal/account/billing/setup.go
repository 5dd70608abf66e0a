package billing

import (
	"context"
	"slices"

	"github.com/stripe/stripe-go/v86"

	"palmares/internal/core/problem"
)

const (
	// MonthlyEuros is the price of Pro before tax.
	MonthlyEuros = 99
	lookupKey    = "pro_monthly"

	// Metadata that marks the portal configuration of SetUpPortal.
	markName  = "made_by"
	markValue = "palmares billing setup"
)

// errNoPrice is what users see. The reason is logged.
var errNoPrice = problem.New(problem.Unavailable, "Subscriptions are not available at the moment.")

// findPrice looks the price up, once.
func (b *Billing) findPrice(ctx context.Context) (string, error) {
	if id := b.foundPrice.Load(); id != nil {
		return *id, nil
	}
	found, err := lookUpPrice(ctx, b)
	switch {
	case err != nil:
		return "", explain(err)
	case found == nil:
		b.Log.Error("no price for Pro found at Stripe", "lookup_key", lookupKey, "advice", "run palmares billing setup")
		return "", errNoPrice
	case !asAdvertised(found):
		b.Log.Error("price at Stripe differs from the advertised price", "price", found.ID, "lookup_key", lookupKey, "advice", "archive it and run palmares billing setup")
		return "", errNoPrice
	}
	b.foundPrice.Store(&found.ID)
	return found.ID, nil
}

// forgetPrice makes the next checkout look the price up again. It returns the error for
// users.
func (b *Billing) forgetPrice(id string) error {
	b.foundPrice.Store(nil)
	b.Log.Error("price rejected by Stripe", "price", id, "advice", "run palmares billing setup")
	return errNoPrice
}

func lookUpPrice(ctx context.Context, b *Billing) (*stripe.Price, error) {
	params := &stripe.PriceListParams{LookupKeys: []*string{stripe.String(lookupKey)}, Active: stripe.Bool(true)}
	for price, err := range api(b).V1Prices.List(ctx, params).All(ctx) {
		return price, err
	}
	return nil, nil
}

func asAdvertised(p *stripe.Price) bool {
	return p.Currency == stripe.CurrencyEUR && p.UnitAmount == MonthlyEuros*100 && p.TaxBehavior == stripe.PriceTaxBehaviorExclusive &&
		p.Recurring != nil && p.Recurring.Interval == stripe.PriceRecurringIntervalMonth && p.Recurring.IntervalCount == 1
}

// SetUpPrice creates the price at Stripe, unless it exists.
func (b *Billing) SetUpPrice(ctx context.Context) (id string, created bool, err error) {
	if !b.Enabled() {
		return "", false, errNoKey
	}
	found, err := lookUpPrice(ctx, b)
	if err != nil {
		return "", false, explain(err)
	}
	if found != nil {
		if !asAdvertised(found) {
			return "", false, problem.New(problem.BadInput, "The price %s at Stripe has the lookup key %s but is not €%d per month plus VAT. Archive it first.", found.ID, lookupKey, MonthlyEuros)
		}
		return found.ID, false, nil
	}
	price, err := api(b).V1Prices.Create(ctx, &stripe.PriceCreateParams{
		Currency:    stripe.String(string(stripe.CurrencyEUR)),
		UnitAmount:  stripe.Int64(MonthlyEuros * 100),
		Recurring:   &stripe.PriceCreateRecurringParams{Interval: stripe.String(string(stripe.PriceRecurringIntervalMonth))},
		TaxBehavior: stripe.String(string(stripe.PriceTaxBehaviorExclusive)),
		LookupKey:   stripe.String(lookupKey),
		ProductData: &stripe.PriceCreateProductDataParams{Name: stripe.String(b.ServiceName + " Pro")},
	})
	if err != nil {
		return "", false, explain(err)
	}
	return price.ID, true, nil
}

// SetUpPortal creates the configuration of Stripe's billing portal, unless
// it exists. Without one, the portal is not available.
func (b *Billing) SetUpPortal(ctx context.Context) (id string, created bool, err error) {
	if !b.Enabled() {
		return "", false, errNoKey
	}
	existing, err := b.InspectPortal(ctx)
	if err != nil || existing.Ours != "" {
		return existing.Ours, false, explain(err)
	}
	yes := stripe.Bool(true)
	config, err := api(b).V1BillingPortalConfigurations.Create(ctx, &stripe.BillingPortalConfigurationCreateParams{
		Features: &stripe.BillingPortalConfigurationCreateFeaturesParams{
			PaymentMethodUpdate: &stripe.BillingPortalConfigurationCreateFeaturesPaymentMethodUpdateParams{Enabled: yes},
			InvoiceHistory:      &stripe.BillingPortalConfigurationCreateFeaturesInvoiceHistoryParams{Enabled: yes},
			SubscriptionCancel: &stripe.BillingPortalConfigurationCreateFeaturesSubscriptionCancelParams{
				Enabled: yes, Mode: stripe.String(string(stripe.BillingPortalConfigurationFeaturesSubscriptionCancelModeAtPeriodEnd)),
			},
			CustomerUpdate: &stripe.BillingPortalConfigurationCreateFeaturesCustomerUpdateParams{
				Enabled: yes, AllowedUpdates: stripe.StringSlice([]string{"address", "tax_id"}), // we set the email address
			},
		},
		Metadata: map[string]string{markName: markValue},
	})
	if err != nil {
		return "", false, explain(err)
	}
	return config.ID, true, nil
}

// The functions below check the setup at Stripe without changing anything.
// They return Stripe's own errors, see IsInvalidKey.

// PriceState describes the price that Pro is sold at.
type PriceState struct {
	ID           string // empty if there is none
	AsAdvertised bool   // as advertised on our pages
}

// InspectPrice returns the state of the price.
func (b *Billing) InspectPrice(ctx context.Context) (PriceState, error) {
	price, err := lookUpPrice(ctx, b)
	if err != nil || price == nil {
		return PriceState{}, err
	}
	return PriceState{ID: price.ID, AsAdvertised: asAdvertised(price)}, nil
}

// ComputesTax reports whether Stripe is set up to compute tax.
func (b *Billing) ComputesTax(ctx context.Context) (bool, error) {
	settings, err := api(b).V1TaxSettings.Retrieve(ctx, nil)
	return err == nil && settings.Status == stripe.TaxSettingsStatusActive, err
}

// PortalConfigs holds the ids of the configurations of Stripe's billing portal.
type PortalConfigs struct {
	Ours    string // created by SetUpPortal
	Default string // saved in Stripe's dashboard, and used if there is none of ours
}

// InspectPortal returns the configurations of Stripe's billing portal.
func (b *Billing) InspectPortal(ctx context.Context) (found PortalConfigs, err error) {
	params := &stripe.BillingPortalConfigurationListParams{Active: stripe.Bool(true)}
	all, err := collect(api(b).V1BillingPortalConfigurations.List(ctx, params).All(ctx))
	for _, config := range all {
		if found.Ours == "" && config.Metadata[markName] == markValue {
			found.Ours = config.ID
		}
		if config.IsDefault {
			found.Default = config.ID
		}
	}
	return found, err
}

// MissingEvents returns which of the required Events Stripe does not send to us.
func (b *Billing) MissingEvents(ctx context.Context) (missing []string, err error) {
	endpoints, err := collect(api(b).V1WebhookEndpoints.List(ctx, nil).All(ctx))
	if err != nil {
		return nil, err
	}
	var sent []string
	for _, endpoint := range endpoints {
		if endpoint.URL == b.PublicURL+EventsPath && endpoint.Status == "enabled" {
			sent = append(sent, endpoint.EnabledEvents...)
		}
	}
	for _, event := range Events {
		if !slices.Contains(sent, event) && !slices.Contains(sent, "*") {
			missing = append(missing, event)
		}
	}
	return missing, nil
}
