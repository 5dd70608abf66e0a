package billing

import (
	"context"
	"fmt"

	"github.com/stripe/stripe-go/v86"

	"palmares/internal/problem"
)

// What Pro costs. Tax comes on top.
const (
	MonthlyEuros = 99
	lookupKey    = "pro_monthly"
)

// findPrice is the one to sell at: as set, or found by its lookup key.
func (b *Billing) findPrice(ctx context.Context) (string, error) {
	if id := b.price.Load(); id != nil {
		return *id, nil
	}
	found, err := b.lookUpPrice(ctx)
	if err != nil {
		return "", failed(err)
	}
	if found == nil {
		b.Log.Error("there is no price to sell at: run palmares billing setup")
		return "", problem.New(problem.Unavailable, "Subscription is not open yet: its price is not set up.")
	}
	b.price.Store(&found.ID)
	return found.ID, nil
}

func (b *Billing) lookUpPrice(ctx context.Context) (*stripe.Price, error) {
	params := &stripe.PriceListParams{LookupKeys: []*string{stripe.String(lookupKey)}, Active: stripe.Bool(true)}
	for price, err := range b.stripe.V1Prices.List(ctx, params).All(ctx) {
		return price, err
	}
	return nil, nil
}

// SetUp makes the price at Stripe, unless it is there already.
func (b *Billing) SetUp(ctx context.Context) (id string, made bool, err error) {
	if !b.Open() {
		return "", false, errNoKey
	}
	found, err := b.lookUpPrice(ctx)
	if err != nil {
		return "", false, failed(err)
	}
	if found != nil {
		if !asPromised(found) {
			return "", false, problem.New(problem.BadInput, "Stripe has a price %s with the lookup key %s that is not %d EUR a month before tax: archive it first.", found.ID, lookupKey, MonthlyEuros)
		}
		return found.ID, false, nil
	}
	price, err := b.stripe.V1Prices.Create(ctx, &stripe.PriceCreateParams{
		Currency:    stripe.String(string(stripe.CurrencyEUR)),
		UnitAmount:  stripe.Int64(MonthlyEuros * 100),
		Recurring:   &stripe.PriceCreateRecurringParams{Interval: stripe.String(string(stripe.PriceRecurringIntervalMonth))},
		TaxBehavior: stripe.String(string(stripe.PriceTaxBehaviorExclusive)),
		LookupKey:   stripe.String(lookupKey),
		ProductData: &stripe.PriceCreateProductDataParams{Name: stripe.String(fmt.Sprintf("%s Pro", b.ServiceName))},
	})
	if err != nil {
		return "", false, failed(err)
	}
	return price.ID, true, nil
}

var errNoKey = problem.New(problem.BadInput, "STRIPE_SECRET_KEY is not set.")

func asPromised(p *stripe.Price) bool {
	return p.Currency == stripe.CurrencyEUR && p.UnitAmount == MonthlyEuros*100 && p.TaxBehavior == stripe.PriceTaxBehaviorExclusive &&
		p.Recurring != nil && p.Recurring.Interval == stripe.PriceRecurringIntervalMonth && p.Recurring.IntervalCount == 1
}
