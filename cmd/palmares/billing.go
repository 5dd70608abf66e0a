package main

import (
	"context"
	"fmt"
	"sync"

	"palmares/ent"
	"palmares/internal/account/billing"
	"palmares/internal/notify/mail"
)

type billingCommand struct {
	Setup billingSetupCommand `cmd:"" help:"Create the price and the customer portal in Stripe if they are missing."`
	Sync  billingSyncCommand  `cmd:"" help:"Read all subscriptions from Stripe again."`
}

type billingSetupCommand struct{}

func (billingSetupCommand) Run(ctx context.Context, b *billing.Billing, term terminal) error {
	price, created, err := b.SetUpPrice(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(term.out, "Price %s: %s (%d EUR a month before tax)\n", createdOrExists(created), price, billing.MonthlyEuros)
	page, created, err := b.SetUpPortal(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(term.out, "Customer portal %s: %s\n", createdOrExists(created), page)
	fmt.Fprintf(term.out, "\nAdd a webhook endpoint for PUBLIC_URL%s in Stripe's dashboard, with these events, and set STRIPE_WEBHOOK_SECRET to its signing secret:\n", billing.EventsPath)
	for _, event := range billing.Events {
		fmt.Fprintf(term.out, "  %s\n", event)
	}
	return nil
}

func createdOrExists(created bool) string {
	if created {
		return "created"
	}
	return "already exists"
}

type billingSyncCommand struct{}

// Run syncs all subscriptions, and sends the emails about them before it
// returns.
func (billingSyncCommand) Run(ctx context.Context, b *billing.Billing, mailer *mail.Mailer, term terminal) error {
	mailing, stop := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() { mailer.Run(mailing) })
	defer running.Wait()
	defer stop()
	return b.SyncAll(ctx, func(row *ent.Customer) {
		owner := "(deleted account)"
		if row.Edges.Account != nil {
			owner = row.Edges.Account.Email
		}
		fmt.Fprintf(term.out, "%s  %s  %s\n", row.ID, owner, row.Status)
	})
}
