package billing

import (
	"context"
	"errors"
	"net/http"
	"slices"

	"github.com/stripe/stripe-go/v86"
)

// What follows reads at Stripe whether Pro can be sold, and changes nothing.
// Errors are Stripe's own: see RefusesKey.

// PriceState is what there is to sell at.
type PriceState struct {
	ID         string // empty if there is none
	Active     bool
	AsPromised bool // as our pages say
}

// InspectPrice reads the price that would be sold at.
func (b *Billing) InspectPrice(ctx context.Context) (PriceState, error) {
	price, err := b.priceToSellAt(ctx)
	if err != nil || price == nil {
		return PriceState{}, err
	}
	return PriceState{ID: price.ID, Active: price.Active, AsPromised: asPromised(price)}, nil
}

func (b *Billing) priceToSellAt(ctx context.Context) (*stripe.Price, error) {
	if b.Price == "" {
		return b.lookUpPrice(ctx)
	}
	price, err := b.stripe.V1Prices.Retrieve(ctx, b.Price, nil)
	if missing(err, "price") || missing(err, pathParam) {
		return nil, nil
	}
	return price, err
}

// ComputesTax tells whether Stripe is set up to.
func (b *Billing) ComputesTax(ctx context.Context) (bool, error) {
	settings, err := b.stripe.V1TaxSettings.Retrieve(ctx, nil)
	if err != nil {
		return false, err
	}
	return settings.Status == stripe.TaxSettingsStatusActive, nil
}

// Untold tells which of the events that we need Stripe does not send to us.
func (b *Billing) Untold(ctx context.Context) (untold []string, err error) {
	for endpoint, err := range b.stripe.V1WebhookEndpoints.List(ctx, nil).All(ctx) {
		if err != nil {
			return nil, err
		}
		if endpoint.URL == b.PublicURL+EventsPath && endpoint.Status == "enabled" {
			return notAmong(endpoint.EnabledEvents), nil
		}
	}
	return notAmong(nil), nil
}

func notAmong(sent []string) (untold []string) {
	for _, event := range Events {
		if !slices.Contains(sent, string(event)) && !slices.Contains(sent, "*") {
			untold = append(untold, string(event))
		}
	}
	return untold
}

// RefusesKey tells whether Stripe does not know our key.
func RefusesKey(err error) bool { return answered(err, http.StatusUnauthorized) }

// RefusesCall tells whether the key may not do what was asked.
func RefusesCall(err error) bool { return answered(err, http.StatusForbidden) }

func answered(err error, status int) bool {
	var said *stripe.Error
	return errors.As(err, &said) && said.HTTPStatusCode == status
}
