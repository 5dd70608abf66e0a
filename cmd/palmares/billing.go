package main

import (
	"context"
	"fmt"
	"log/slog"

	"palmares/ent"
	"palmares/internal/billing"
	"palmares/internal/store"
)

type billingCommand struct {
	Setup billingSetupCommand `cmd:"" help:"Make the price of Pro at Stripe, unless it is there."`
	Sync  billingSyncCommand  `cmd:"" help:"Read every subscription at Stripe again."`
}

// withBilling opens the database for a command about billing.
func withBilling(ctx context.Context, s *settings, term terminal, do func(*billing.Billing) error) error {
	return withStore(ctx, s, func(db *store.Store) error {
		log := slog.New(slog.NewTextHandler(term.err, nil))
		mailer, err := newMailer(s, log)
		if err != nil {
			return err
		}
		return do(newBilling(s, db, mailer, log))
	})
}

type billingSetupCommand struct{}

// Run makes the price.
func (billingSetupCommand) Run(ctx context.Context, s *settings, term terminal) error {
	return withBilling(ctx, s, term, func(b *billing.Billing) error {
		id, made, err := b.SetUp(ctx)
		if err != nil {
			return err
		}
		if made {
			fmt.Fprintf(term.out, "The price %s is made: %d EUR a month, tax on top.\n", id, billing.MonthlyEuros)
		} else {
			fmt.Fprintf(term.out, "The price %s is there: %d EUR a month, tax on top.\n", id, billing.MonthlyEuros)
		}
		fmt.Fprintf(term.out, "\nLet Stripe send these events to PUBLIC_URL%s, and put the secret it shows into STRIPE_WEBHOOK_SECRET:\n", billing.EventsPath)
		for _, event := range billing.Events {
			fmt.Fprintf(term.out, "  %s\n", event)
		}
		return nil
	})
}

type billingSyncCommand struct{}

// Run reads the subscriptions.
func (billingSyncCommand) Run(ctx context.Context, s *settings, term terminal) error {
	return withBilling(ctx, s, term, func(b *billing.Billing) error {
		return b.SyncAll(ctx, func(row *ent.Customer) {
			owner := "a deleted account"
			if row.Edges.Account != nil {
				owner = row.Edges.Account.Email
			}
			fmt.Fprintf(term.out, "%s  %s  %s\n", row.ID, owner, row.Status)
		})
	})
}
