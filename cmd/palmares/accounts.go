package main

import (
	"context"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"palmares/auth"
	"palmares/ent"
	"palmares/internal/account/billing"
	"palmares/internal/core/quota"
	"palmares/internal/core/store"
)

type accountsCommand struct {
	Create accountsCreateCommand `cmd:"" help:"Open an account."`
	List   accountsListCommand   `cmd:"" help:"List every account."`
	Show   accountsShowCommand   `cmd:"" help:"Show an account: its plan, keys and usage."`
	Plan   accountsPlanCommand   `cmd:"" help:"Move an account to another plan."`
}

// withStore opens the database for a command.
func withStore(ctx context.Context, s *settings, do func(*store.Store) error) error {
	db, err := openMigrated(ctx, s)
	if err != nil {
		return err
	}
	defer db.Close()
	return do(db)
}

// withAccounts is for a command about accounts.
func withAccounts(ctx context.Context, s *settings, do func(*auth.Accounts) error) error {
	return withStore(ctx, s, func(db *store.Store) error { return do(auth.NewAccounts(db)) })
}

// withAccount is for a command about one.
func withAccount(ctx context.Context, s *settings, email string, do func(*auth.Accounts, *ent.Account) error) error {
	return withAccounts(ctx, s, func(accounts *auth.Accounts) error {
		account, err := accounts.Find(ctx, email)
		if err != nil {
			return err
		}
		return do(accounts, account)
	})
}

type accountsCreateCommand struct {
	Email string `arg:"" help:"The owner's e-mail address."`
	Plan  string `help:"developer or pro (${default})." enum:"developer,pro" default:"developer"`
}

// Run opens an account.
func (c *accountsCreateCommand) Run(ctx context.Context, s *settings, term terminal) error {
	return withAccounts(ctx, s, func(accounts *auth.Accounts) error {
		account, err := accounts.Create(ctx, c.Email, auth.Plan(c.Plan))
		if err != nil {
			return err
		}
		fmt.Fprintf(term.out, "%s has the %s plan.\n", account.Email, account.Plan)
		return nil
	})
}

type accountsListCommand struct{}

// Run lists accounts.
func (accountsListCommand) Run(ctx context.Context, s *settings, term terminal) error {
	return withAccounts(ctx, s, func(accounts *auth.Accounts) error {
		all, err := accounts.List(ctx)
		if err != nil {
			return err
		}
		return table(term.out, "email\tplan\tkeys\tsince", len(all), func(i int) string {
			return fmt.Sprintf("%s\t%s\t%d\t%s", all[i].Email, all[i].Plan, working(all[i].Edges.Keys), day(all[i].CreatedAt))
		})
	})
}

type accountsShowCommand struct {
	Email string `arg:"" help:"The owner's e-mail address."`
}

const shownDays = 30

// Run shows an account.
func (c *accountsShowCommand) Run(ctx context.Context, s *settings, term terminal) error {
	return withAccount(ctx, s, c.Email, func(accounts *auth.Accounts, account *ent.Account) error {
		keys, err := accounts.Keys(ctx, account)
		if err != nil {
			return err
		}
		days, err := accounts.Usage(ctx, account, shownDays)
		if err != nil {
			return err
		}
		terms := auth.Plan(account.Plan).Terms()
		bound := "no bound"
		if terms.DailyQuota > 0 {
			bound = fmt.Sprint(terms.DailyQuota)
		}
		date := quota.DayOf(time.Now()).String()
		today := auth.Carried(account, date)
		if len(days) > 0 && days[0].Day == date {
			today += days[0].Requests
		}
		by := ""
		if account.PlanByHand {
			by = " (set by hand)"
		}
		fmt.Fprintf(term.out, "%s\nplan      %s%s\nsince     %s\nkeys      %d of %d\ntoday     %d requests of %s\n\n",
			account.Email, account.Plan, by, day(account.CreatedAt), working(keys), terms.Keys, today, bound)
		return table(term.out, "day\trequests", len(days), func(i int) string {
			return fmt.Sprintf("%s\t%d", days[i].Day, days[i].Requests)
		})
	})
}

type accountsPlanCommand struct {
	Email string `arg:"" help:"The owner's e-mail address."`
	Plan  string `arg:"" help:"developer or pro, which billing then leaves alone; or billing, for what the subscription says." enum:"developer,pro,billing"`
}

// Run changes an account's plan.
func (c *accountsPlanCommand) Run(ctx context.Context, s *settings, term terminal) error {
	return withStore(ctx, s, func(db *store.Store) error {
		accounts := auth.NewAccounts(db)
		account, err := accounts.Find(ctx, c.Email)
		if err != nil {
			return err
		}
		plan := auth.Plan(c.Plan)
		if c.Plan == "billing" {
			plan, err = billing.HandBack(ctx, db, account)
		} else {
			err = accounts.SetPlan(ctx, account, plan)
		}
		if err != nil {
			return err
		}
		fmt.Fprintf(term.out, "%s has the %s plan.\n", account.Email, plan)
		return nil
	})
}

// working counts the keys that were not revoked.
func working(keys []*ent.APIKey) int {
	n := 0
	for _, key := range keys {
		if key.RevokedAt == nil {
			n++
		}
	}
	return n
}

func day(t time.Time) string { return t.UTC().Format(time.DateOnly) }

// table prints rows under a heading.
func table(w io.Writer, heading string, rows int, row func(int) string) error {
	out := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(out, heading)
	for i := range rows {
		fmt.Fprintln(out, row(i))
	}
	return out.Flush()
}
