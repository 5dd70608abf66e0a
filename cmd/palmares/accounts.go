package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"text/tabwriter"
	"time"

	"palmares/auth"
	"palmares/ent"
	"palmares/internal/account/billing"
	"palmares/internal/core/quota"
	"palmares/internal/core/store"
	"palmares/internal/notify/mail"
)

type accountsCommand struct {
	Create accountsCreateCommand `cmd:"" help:"Create an account."`
	List   accountsListCommand   `cmd:"" help:"List all accounts."`
	Show   accountsShowCommand   `cmd:"" help:"Show the plan, keys and usage of an account."`
	Plan   accountsPlanCommand   `cmd:"" help:"Change the plan of an account."`
}

type emailArgument struct {
	Email string `arg:"" help:"Email address of the account."`
}

// ProvideAccount lets a Run method take the account as a parameter.
func (a *emailArgument) ProvideAccount(ctx context.Context, accounts *auth.Accounts) (*ent.Account, error) {
	return accounts.Find(ctx, a.Email)
}

type accountsCreateCommand struct {
	emailArgument
	Plan string `help:"Plan of the account, developer or pro (${default})." enum:"developer,pro" default:"developer" placeholder:"PLAN"`
}

func (c *accountsCreateCommand) Run(ctx context.Context, accounts *auth.Accounts, term terminal) error {
	account, err := accounts.Create(ctx, c.Email, auth.Plan(c.Plan))
	if err != nil {
		return err
	}
	fmt.Fprintf(term.out, "%s has the %s plan.\n", account.Email, account.Plan)
	return nil
}

type accountsListCommand struct{}

func (accountsListCommand) Run(ctx context.Context, accounts *auth.Accounts, term terminal) error {
	all, err := accounts.List(ctx)
	if err != nil {
		return err
	}
	return printTable(term.out, "email\tplan\tkeys\tcreated", all, func(a *ent.Account) string {
		return fmt.Sprintf("%s\t%s\t%d\t%s", a.Email, a.Plan, countActive(a.Edges.Keys), formatDay(a.CreatedAt))
	})
}

type accountsShowCommand struct{ emailArgument }

const usageDays = 30

func (c *accountsShowCommand) Run(ctx context.Context, accounts *auth.Accounts, account *ent.Account, term terminal) error {
	keys, err := accounts.Keys(ctx, account)
	if err != nil {
		return err
	}
	days, err := accounts.Usage(ctx, account, usageDays)
	if err != nil {
		return err
	}
	terms := auth.Plan(account.Plan).Terms()
	quotaText := "unlimited"
	if terms.DailyQuota > 0 {
		quotaText = fmt.Sprint(terms.DailyQuota)
	}
	date := quota.DayOf(time.Now()).String()
	today := auth.Carried(account, date)
	if len(days) > 0 && days[0].Day == date {
		today += days[0].Requests
	}
	source := ""
	if account.ManualPlan {
		source = " (set manually)"
	}
	fmt.Fprintf(term.out, "%s\nplan      %s%s\ncreated   %s\nkeys      %d of %d\nrequests  %d today (daily quota: %s)\n\n",
		account.Email, account.Plan, source, formatDay(account.CreatedAt), countActive(keys), terms.Keys, today, quotaText)
	return printTable(term.out, "day\trequests", days, func(d *ent.Usage) string { return fmt.Sprintf("%s\t%d", d.Day, d.Requests) })
}

type accountsPlanCommand struct {
	emailArgument
	Plan string `arg:"" help:"developer or pro to set the plan manually, or billing to let the subscription determine it again." enum:"developer,pro,billing"`
}

func (c *accountsPlanCommand) Run(ctx context.Context, db *store.Store, accounts *auth.Accounts, account *ent.Account, term terminal) (err error) {
	plan := auth.Plan(c.Plan)
	if c.Plan == "billing" {
		plan, err = billing.ClearManualPlan(ctx, db, account)
	} else {
		err = accounts.SetPlan(ctx, account, plan)
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(term.out, "%s has the %s plan.\n", account.Email, plan)
	return nil
}

type keysCommand struct {
	Create keysCreateCommand `cmd:"" help:"Create a key and print it. It is shown only once."`
	List   keysListCommand   `cmd:"" help:"List the keys of an account."`
	Revoke keysRevokeCommand `cmd:"" help:"Revoke a key. All servers reject it within 2 seconds."`
}

type keysCreateCommand struct {
	emailArgument
	Name string `help:"Name of the key." placeholder:"NAME"`
}

func (c *keysCreateCommand) Run(ctx context.Context, accounts *auth.Accounts, account *ent.Account, term terminal) error {
	text, key, err := accounts.CreateKey(ctx, account, c.Name)
	if err != nil {
		return err
	}
	fmt.Fprintln(term.err, "Save this key. It is shown only once:")
	if _, err := fmt.Fprintln(term.out, text); err != nil {
		_ = accounts.Revoke(ctx, key.ID) // nobody has seen it
		return errors.New("the key could not be printed and was revoked")
	}
	return nil
}

type keysListCommand struct{ emailArgument }

func (c *keysListCommand) Run(ctx context.Context, accounts *auth.Accounts, account *ent.Account, term terminal) error {
	keys, err := accounts.Keys(ctx, account)
	if err != nil {
		return err
	}
	suspended := auth.Suspended(auth.Plan(account.Plan), keys)
	return printTable(term.out, "id\tname\tcreated\tlast used\trevoked", keys, func(key *ent.APIKey) string {
		revoked := formatTime(key.RevokedAt)
		if suspended[key.ID] {
			revoked = "suspended"
		}
		return fmt.Sprintf("%s\t%s\t%s\t%s\t%s", key.ID, key.Name, formatDay(key.CreatedAt), formatTime(key.LastUsedAt), revoked)
	})
}

type keysRevokeCommand struct {
	ID string `arg:"" help:"ID of the key, as shown by palmares keys list."`
}

func (c *keysRevokeCommand) Run(ctx context.Context, accounts *auth.Accounts, term terminal) error {
	if err := accounts.Revoke(ctx, c.ID); err != nil {
		return err
	}
	fmt.Fprintln(term.out, "The key is revoked.")
	return nil
}

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

func countActive(keys []*ent.APIKey) int {
	n := 0
	for _, key := range keys {
		if key.RevokedAt == nil {
			n++
		}
	}
	return n
}

func formatDay(t time.Time) string { return t.UTC().Format(time.DateOnly) }

func formatTime(t *time.Time) string {
	if t == nil {
		return "-"
	}
	return t.UTC().Format("2006-01-02 15:04")
}

// printTable prints a table with aligned columns. Tabs separate the columns.
func printTable[T any](w io.Writer, heading string, rows []T, format func(T) string) error {
	out := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(out, heading)
	for _, row := range rows {
		fmt.Fprintln(out, format(row))
	}
	return out.Flush()
}
