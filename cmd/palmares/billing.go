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
	Setup billingSetupCommand `cmd:"" help:"Make at Stripe what selling Pro needs, unless it is there."`
	Sync  billingSyncCommand  `cmd:"" help:"Read every subscription at Stripe again."`
}

// withBilling opens the database for a command about billing. What it posts is
// sent before it ends.
func withBilling(ctx context.Context, s *settings, term terminal, do func(*billing.Billing) error) error {
	return withStore(ctx, s, func(db *store.Store) error {
		log := slog.New(slog.NewTextHandler(term.err, nil))
		mailer, err := newMailer(s, log)
		if err != nil {
			return err
		}
		posting, end := context.WithCancel(ctx)
		var sending sync.WaitGroup
		sending.Go(func() { mailer.Run(posting) })
		defer sending.Wait()
		defer end()
		return do(newBilling(s, db, mailer, log))
	})
}

type billingSetupCommand struct{}

// Run makes the price, and the page that a subscription is managed on.
func (billingSetupCommand) Run(ctx context.Context, s *settings, term terminal) error {
	return withBilling(ctx, s, term, func(b *billing.Billing) error {
		price, made, err := b.SetUp(ctx)
		if err != nil {
			return err
		}
		fmt.Fprintf(term.out, "The price %s is %s: %d EUR a month, tax on top.\n", price, madeOrThere(made), billing.MonthlyEuros)
		page, made, err := b.SetUpManaging(ctx)
		if err != nil {
			return err
		}
		fmt.Fprintf(term.out, "The page for cards, invoices and cancelling is %s: %s.\n", madeOrThere(made), page)
		fmt.Fprintf(term.out, "\nLet Stripe send these events to PUBLIC_URL%s, and put the secret it shows into STRIPE_WEBHOOK_SECRET:\n", billing.EventsPath)
		for _, event := range billing.Events {
			fmt.Fprintf(term.out, "  %s\n", event)
		}
		return nil
	})
}

func madeOrThere(made bool) string {
	if made {
		return "made"
	}
	return "there"
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
