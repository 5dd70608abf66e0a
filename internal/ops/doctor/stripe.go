package doctor

import (
	"context"
	"fmt"
	"strings"

	"palmares/internal/account/billing"
)

// stripe only reads there.
func stripe(ctx context.Context, cfg *Config, r *report) {
	if cfg.Stripe.SecretKey == "" {
		r.ok("stripe", "No key is set: Pro is not sold here.")
		return
	}
	if cfg.Stripe.WebhookSecret == "" {
		r.wrong("stripe secret", "STRIPE_WEBHOOK_SECRET is missing, and without it no server starts.", "Set it to what Stripe shows for the endpoint PUBLIC_URL"+billing.EventsPath+".", nil)
	}
	sells := billing.New(billing.Config{
		SecretKey: cfg.Stripe.SecretKey, WebhookSecret: cfg.Stripe.WebhookSecret, Price: cfg.Stripe.Price, APIBase: cfg.Stripe.APIBase, PublicURL: cfg.PublicURL,
	})
	price, err := sells.InspectPrice(ctx)
	switch {
	case billing.RefusesKey(err):
		r.wrong("stripe", "Stripe refuses the key in STRIPE_SECRET_KEY.", "Set one that its dashboard shows as active.", err)
		return
	case billing.RefusesCall(err):
		r.wrong("stripe", "The key in STRIPE_SECRET_KEY may not read prices.", "Use a secret key, or let the restricted one do so.", err)
		return
	case err != nil:
		r.wrong("stripe", "Stripe does not answer.", "See whether this machine can reach Stripe's API, and Stripe's own status page.", err)
		return
	}
	if !cfg.Private && strings.HasPrefix(cfg.Stripe.SecretKey, "sk_test_") {
		r.warn("stripe", "Stripe takes the key, but it is one for tests: nobody pays.", "Set the live key when you mean to sell.", nil)
	} else {
		r.ok("stripe", "Stripe takes the key.")
	}
	priced(cfg, price, r)
	taxed(ctx, sells, r)
	managed(ctx, sells, r)
	told(ctx, cfg, sells, r)
}

func priced(cfg *Config, price billing.PriceState, r *report) {
	promised := fmt.Sprintf("%d EUR a month before tax", billing.MonthlyEuros)
	switch {
	case price.ID == "" && cfg.Stripe.Price != "":
		r.wrong("price", "Stripe does not have the price in STRIPE_PRICE.", "Set another, or none and run palmares billing setup.", nil)
	case price.ID == "":
		r.wrong("price", "Stripe has no price to sell at.", "Run palmares billing setup.", nil)
	case !price.Active:
		r.wrong("price", fmt.Sprintf("The price %s is archived.", price.ID), "Set another in STRIPE_PRICE, or none and run palmares billing setup.", nil)
	case !price.AsPromised && cfg.Stripe.Price == "":
		r.wrong("price", fmt.Sprintf("The price %s is not %s, as our pages say.", price.ID, promised), "Archive it, and run palmares billing setup.", nil)
	case !price.AsPromised:
		r.warn("price", fmt.Sprintf("The price %s is not %s, as our pages say.", price.ID, promised), "Set another in STRIPE_PRICE, unless that is meant.", nil)
	default:
		r.ok("price", "The price %s is %s.", price.ID, promised)
	}
}

func taxed(ctx context.Context, sells *billing.Billing, r *report) {
	active, err := sells.ComputesTax(ctx)
	switch {
	case err != nil:
		unread(r, "tax", "whether Stripe computes tax", err)
	case !active:
		r.wrong("tax", "Stripe is not set up to compute tax, so no subscription can be begun.", "Give it your address and registrations, under Tax in its dashboard.", nil)
	default:
		r.ok("tax", "Stripe computes tax.")
	}
}

// managed sees that people can change their card, and cancel.
func managed(ctx context.Context, sells *billing.Billing, r *report) {
	page, err := sells.InspectManaging(ctx)
	switch {
	case err != nil:
		unread(r, "managing", "whether Stripe has a page for cards, invoices and cancelling", err)
	case page == billing.ManagingPage{}:
		r.wrong("managing", "Stripe has no page for cards, invoices and cancelling, so nobody who pays can do any of it.", "Run palmares billing setup.", nil)
	default:
		r.ok("managing", "Stripe has a page for cards, invoices and cancelling.")
	}
}

// told sees that Stripe's events come to this server. Without them a
// subscription counts only when it is looked at the next time.
func told(ctx context.Context, cfg *Config, sells *billing.Billing, r *report) {
	if cfg.Private { // Stripe could not reach it; events are handed on by its own tool
		return
	}
	untold, err := sells.Untold(ctx)
	switch {
	case err != nil:
		unread(r, "events", "which events Stripe sends", err)
	case len(untold) == len(billing.Events):
		r.warn("events", "Stripe sends no events to "+cfg.PublicURL+billing.EventsPath+".", "Add that endpoint in its dashboard: palmares billing setup lists the events.", nil)
	case len(untold) > 0:
		r.warn("events", "Stripe does not send "+strings.Join(untold, ", ")+".", "Add them to the endpoint in its dashboard.", nil)
	default:
		r.ok("events", "Stripe sends every event that is needed.")
	}
}

// unread is for what a restricted key may not see, or came too late.
func unread(r *report, check, what string, err error) {
	r.warn(check, "It cannot be told "+what+".", "Look at it in Stripe's dashboard, or let the key read it.", err)
}
