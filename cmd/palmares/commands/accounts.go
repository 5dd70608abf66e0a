package commands

import (
	"context"
	"errors"
	"fmt"
	"time"

	"palmares/auth"
	"palmares/ent"
	"palmares/internal/account/billing"
	"palmares/internal/core/lang"
	"palmares/internal/core/quota"
	"palmares/internal/core/store"
	"palmares/internal/notify/mail"
	"palmares/internal/notify/outbox"
)

// Accounts groups the commands about accounts.
type Accounts struct {
	Create accountsCreate `cmd:"" help:"Create an account."`
	List   accountsList   `cmd:"" help:"List all accounts."`
	Show   accountsShow   `cmd:"" help:"Show the plan, keys and usage of an account."`
	Plan   accountsPlan   `cmd:"" help:"Change the plan of an account."`
	Delete accountsDelete `cmd:"" help:"Delete an account and everything that belongs to it, as its owner can."`
}

type emailArgument struct {
	Email string `arg:"" help:"Email address of the account."`
}

// ProvideAccount lets a Run method take the account as a parameter.
func (a *emailArgument) ProvideAccount(ctx context.Context, accounts *auth.Accounts) (*ent.Account, error) {
	return accounts.Find(ctx, a.Email)
}

type accountsCreate struct {
	emailArgument
	Plan string `help:"Plan of the account, developer or pro (${default})." enum:"developer,pro" default:"developer" placeholder:"PLAN"`
}

func (c *accountsCreate) Run(ctx context.Context, accounts *auth.Accounts, term Terminal) error {
	account, err := accounts.Create(ctx, c.Email, auth.Plan(c.Plan))
	if err != nil {
		return err
	}
	fmt.Fprintf(term.Out, "%s has the %s plan.\n", account.Email, account.Plan)
	return nil
}

type accountsList struct{}

func (accountsList) Run(ctx context.Context, accounts *auth.Accounts, term Terminal) error {
	all, err := accounts.List(ctx)
	if err != nil {
		return err
	}
	return printTable(term.Out, "email\tplan\tkeys\tcreated", all, func(a *ent.Account) string {
		return fmt.Sprintf("%s\t%s\t%d\t%s", a.Email, a.Plan, len(auth.Unrevoked(a.Edges.Keys)), formatDay(a.CreatedAt))
	})
}

type accountsShow struct{ emailArgument }

const usageDays = 30

func (c *accountsShow) Run(ctx context.Context, accounts *auth.Accounts, account *ent.Account, term Terminal) error {
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
	today := 0
	if len(days) > 0 && days[0].Day == date {
		today = days[0].Requests
	}
	source := ""
	if account.ManualPlan {
		source = " (set manually)"
	}
	fmt.Fprintf(term.Out, "%s\nplan      %s%s\ncreated   %s\nkeys      %d of %d\nrequests  %d today (daily quota: %s)\n\n",
		account.Email, account.Plan, source, formatDay(account.CreatedAt), len(auth.Unrevoked(keys)), terms.Keys, today, quotaText)
	return printTable(term.Out, "day\trequests", days, func(d auth.DayUsage) string { return fmt.Sprintf("%s\t%d", d.Day, d.Requests) })
}

type accountsPlan struct {
	emailArgument
	Plan string `arg:"" help:"developer or pro to set the plan manually, or billing to let the subscription determine it again." enum:"developer,pro,billing"`
}

func (c *accountsPlan) Run(ctx context.Context, db *store.Store, accounts *auth.Accounts, account *ent.Account, term Terminal) (err error) {
	plan := auth.Plan(c.Plan)
	if c.Plan == "billing" {
		plan, err = billing.ClearManualPlan(ctx, db, account)
	} else {
		err = accounts.SetPlan(ctx, account, plan)
	}
	return term.done(err, "%s has the %s plan.", account.Email, plan)
}

type accountsDelete struct {
	emailArgument
	Yes bool `help:"Skip the confirmation prompt."`
}

func (c *accountsDelete) Run(
	ctx context.Context, accounts *auth.Accounts, billing *billing.Billing, mailer *mail.Mailer, notices *outbox.Outbox, account *ent.Account,
	term Terminal,
) error {
	if !c.Yes {
		prompt := fmt.Sprintf("The account %s, its keys, queries and webhooks will be deleted, and its subscription canceled. This cannot be undone.\nType yes to continue: ", account.Email)
		if err := confirm(ctx, term, prompt); err != nil {
			return err
		}
	}
	if err := billing.Cancel(ctx, account); err != nil {
		return err
	}
	err := accounts.Delete(ctx, account, func(tx *ent.Tx) error {
		if mailer.LogsOnly() {
			return nil
		}
		return outbox.Add(ctx, tx, "", mail.AccountDeleted(lang.Language(account.Language), account.Email, billing.ServiceName))
	})
	if err != nil {
		return err
	}
	fmt.Fprintf(term.Out, "%s was deleted. All servers reject its keys within 2 seconds.\n", account.Email)
	if mailer.LogsOnly() {
		return nil
	}
	return notices.Send(ctx)
}

// Keys groups the commands about API keys.
type Keys struct {
	Create keysCreate `cmd:"" help:"Create a key and print it. It is shown only once."`
	List   keysList   `cmd:"" help:"List the keys of an account."`
	Revoke keysRevoke `cmd:"" help:"Revoke a key. All servers reject it within 2 seconds."`
}

type keysCreate struct {
	emailArgument
	Name string `help:"Name of the key." placeholder:"NAME"`
}

func (c *keysCreate) Run(ctx context.Context, accounts *auth.Accounts, account *ent.Account, term Terminal) error {
	text, key, err := accounts.CreateKey(ctx, account, c.Name)
	if err != nil {
		return err
	}
	fmt.Fprintln(term.Err, "Save this key. It is shown only once:")
	if _, err := fmt.Fprintln(term.Out, text); err != nil {
		_ = accounts.Revoke(ctx, key.ID) // nobody has seen it
		return errors.New("the key could not be printed and was revoked")
	}
	return nil
}

type keysList struct{ emailArgument }

func (c *keysList) Run(ctx context.Context, accounts *auth.Accounts, account *ent.Account, term Terminal) error {
	keys, err := accounts.Keys(ctx, account)
	if err != nil {
		return err
	}
	suspended := auth.Suspended(auth.Plan(account.Plan), keys)
	return printTable(term.Out, "id\tname\tcreated\tlast used\trevoked", keys, func(key *ent.APIKey) string {
		revoked := formatTime(key.RevokedAt)
		if suspended[key.ID] {
			revoked = "suspended"
		}
		return fmt.Sprintf("%s\t%s\t%s\t%s\t%s", key.ID, key.Name, formatDay(key.CreatedAt), formatTime(key.LastUsedAt), revoked)
	})
}

type keysRevoke struct {
	ID string `arg:"" help:"ID of the key, as shown by palmares keys list."`
}

func (c *keysRevoke) Run(ctx context.Context, accounts *auth.Accounts, term Terminal) error {
	return term.done(accounts.Revoke(ctx, c.ID), "The key is revoked.")
}

// Billing groups the commands about Stripe.
type Billing struct {
	Setup billingSetup `cmd:"" help:"Create the price and the customer portal in Stripe if they are missing."`
	Sync  billingSync  `cmd:"" help:"Read all subscriptions from Stripe again."`
}

type billingSetup struct{}

func (billingSetup) Run(ctx context.Context, b *billing.Billing, term Terminal) error {
	price, created, err := b.SetUpPrice(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(term.Out, "Price %s: %s (€%d per month plus VAT)\n", createdOrExists(created), price, billing.MonthlyEuros)
	page, created, err := b.SetUpPortal(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(term.Out, "Customer portal %s: %s\n", createdOrExists(created), page)
	fmt.Fprintf(term.Out, "\nAdd a webhook endpoint for PUBLIC_URL%s in Stripe's dashboard, with these events, and set STRIPE_WEBHOOK_SECRET to its signing secret:\n", billing.EventsPath)
	for _, event := range billing.Events {
		fmt.Fprintf(term.Out, "  %s\n", event)
	}
	return nil
}

func createdOrExists(created bool) string {
	if created {
		return "created"
	}
	return "already exists"
}

type billingSync struct{}

// Run syncs all subscriptions, and sends the emails about them before it returns. Without
// a mail server, they are left to a server that may have one.
func (billingSync) Run(ctx context.Context, b *billing.Billing, mailer *mail.Mailer, notices *outbox.Outbox, term Terminal) error {
	err := b.SyncAll(ctx, func(row *ent.Customer) {
		owner := "(deleted account)"
		if row.Edges.Account != nil {
			owner = row.Edges.Account.Email
		}
		fmt.Fprintf(term.Out, "%s  %s  %s\n", row.ID, owner, row.Status)
	})
	if mailer.LogsOnly() {
		return err
	}
	return errors.Join(err, notices.Send(ctx))
}
