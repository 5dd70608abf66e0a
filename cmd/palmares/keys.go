package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"palmares/auth"
	"palmares/ent"
)

type keysCommand struct {
	Create keysCreateCommand `cmd:"" help:"Make a key, and print it: it is shown this once."`
	List   keysListCommand   `cmd:"" help:"List an account's keys."`
	Revoke keysRevokeCommand `cmd:"" help:"End a key; every server refuses it within 2 seconds."`
}

type keysCreateCommand struct {
	Email string `arg:"" help:"The owner's e-mail address."`
	Name  string `help:"What the key is for."`
}

// Run makes a key. Nothing else goes to standard output, so that a script can
// take it from there.
func (c *keysCreateCommand) Run(ctx context.Context, s *settings, term terminal) error {
	return withAccount(ctx, s, c.Email, func(accounts *auth.Accounts, account *ent.Account) error {
		text, key, err := accounts.CreateKey(ctx, account, c.Name)
		if err != nil {
			return err
		}
		fmt.Fprintln(term.err, "This key is shown this once:")
		if _, err := fmt.Fprintln(term.out, text); err != nil {
			_ = accounts.Revoke(ctx, key.ID) // nobody has it
			return errors.New("the key could not be printed, and is revoked")
		}
		return nil
	})
}

type keysListCommand struct {
	Email string `arg:"" help:"The owner's e-mail address."`
}

// Run lists an account's keys.
func (c *keysListCommand) Run(ctx context.Context, s *settings, term terminal) error {
	return withAccount(ctx, s, c.Email, func(accounts *auth.Accounts, account *ent.Account) error {
		keys, err := accounts.Keys(ctx, account)
		if err != nil {
			return err
		}
		suspended := auth.Suspended(auth.Plan(account.Plan), keys)
		return table(term.out, "id\tname\tcreated\tlast used\trevoked", len(keys), func(i int) string {
			key := keys[i]
			ended := moment(key.RevokedAt)
			if suspended[key.ID] {
				ended = "suspended"
			}
			return fmt.Sprintf("%s\t%s\t%s\t%s\t%s", key.ID, key.Name, day(key.CreatedAt), moment(key.LastUsedAt), ended)
		})
	})
}

type keysRevokeCommand struct {
	ID string `arg:"" help:"The key's id, as list shows it."`
}

// Run revokes a key.
func (c *keysRevokeCommand) Run(ctx context.Context, s *settings, term terminal) error {
	return withAccounts(ctx, s, func(accounts *auth.Accounts) error {
		if err := accounts.Revoke(ctx, c.ID); err != nil {
			return err
		}
		fmt.Fprintln(term.out, "The key is revoked.")
		return nil
	})
}

func moment(t *time.Time) string {
	if t == nil {
		return "-"
	}
	return t.UTC().Format("2006-01-02 15:04")
}
