package billing

import (
	"context"
	"fmt"

	"github.com/stripe/stripe-go/v86"

	"palmares/internal/core/problem"
)

// What Pro costs. Tax comes on top.
const (
	MonthlyEuros = 99
	lookupKey    = "pro_monthly"
)

// errNoPrice is for visitors. What is to be done about it is in the log.
var errNoPrice = problem.New(problem.Unavailable, "Subscription is not open at the moment.")

// findPrice is the one to sell at: as the operator says, or found by its
// lookup key. One that is found must be as we promise it on our pages.
func (b *Billing) findPrice(ctx context.Context) (string, error) {
	if b.Price != "" {
		return b.Price, nil
	}
	if id := b.found.Load(); id != nil {
		return *id, nil
	}
	found, err := b.lookUpPrice(ctx)
	if err != nil {
		return "", failed(err)
	}
	switch {
	case found == nil:
		b.Log.Error("there is no price to sell at: run palmares billing setup")
		return "", errNoPrice
	case !asPromised(found):
		b.Log.Error("the price at Stripe is not what our pages say: archive it, and run palmares billing setup", "price", found.ID, "lookup_key", lookupKey)
		return "", errNoPrice
	}
	b.found.Store(&found.ID)
	return found.ID, nil
}

// forgetPrice is for a price that Stripe does not sell at. One that was looked
// up is looked up again the next time.
func (b *Billing) forgetPrice(id string) error {
	if b.Price != "" {
		b.Log.Error("Stripe does not know the price in STRIPE_PRICE, or it is archived: set another, or none and run palmares billing setup", "price", id)
		return errNoPrice
	}
	b.found.Store(nil)
	b.Log.Error("Stripe no longer has the price that was found there: run palmares billing setup", "price", id)
	return errNoPrice
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
