package main

import (
	"context"
	"fmt"
	"log/slog"
	"sync"

	"palmares/ent"
	"palmares/internal/account/billing"
	"palmares/internal/core/store"
)

type billingCommand struct {
	Setup billingSetupCommand `cmd:"" help:"Create the price and the customer portal in Stripe if they are missing."`
	Sync  billingSyncCommand  `cmd:"" help:"Read all subscriptions from Stripe again."`
}

// withBilling runs a billing command, and sends its emails before it returns.
func withBilling(ctx context.Context, s *settings, term terminal, do func(*billing.Billing) error) error {
	return withStore(ctx, s, func(db *store.Store) error {
		log := slog.New(slog.NewTextHandler(term.err, nil))
		mailer, err := newMailer(s, log)
		if err != nil {
			return err
		}
		mailing, stop := context.WithCancel(ctx)
		var running sync.WaitGroup
		running.Go(func() { mailer.Run(mailing) })
		defer running.Wait()
		defer stop()
		return do(newBilling(s, db, mailer, log))
	})
}

type billingSetupCommand struct{}

func (billingSetupCommand) Run(ctx context.Context, s *settings, term terminal) error {
	return withBilling(ctx, s, term, func(b *billing.Billing) error {
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
	})
}

func createdOrExists(created bool) string {
	if created {
		return "created"
	}
	return "already exists"
}

type billingSyncCommand struct{}

func (billingSyncCommand) Run(ctx context.Context, s *settings, term terminal) error {
	return withBilling(ctx, s, term, func(b *billing.Billing) error {
		return b.SyncAll(ctx, func(row *ent.Customer) {
			owner := "(deleted account)"
			if row.Edges.Account != nil {
				owner = row.Edges.Account.Email
			}
			fmt.Fprintf(term.out, "%s  %s  %s\n", row.ID, owner, row.Status)
		})
	})
}
