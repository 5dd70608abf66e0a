package commands

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"palmares/ent"
	"palmares/internal/core/problem"
	"palmares/internal/transport/saved"
)

// Queries groups the commands about saved queries.
type Queries struct {
	Save   queriesSave   `cmd:"" help:"Save a GraphQL query, or replace the one with the same name, and print its URLs."`
	List   queriesList   `cmd:"" help:"List the saved queries of an account."`
	Show   queriesShow   `cmd:"" help:"Show a saved query."`
	Delete queriesDelete `cmd:"" help:"Delete a saved query. Its permanent URLs keep working."`
	Token  queriesToken  `cmd:"" help:"Create or replace the token of a saved query, for clients that cannot send a key, and print the URL with the token."`
	Check  queriesCheck  `cmd:"" help:"List saved queries that this version of palmares would reject. Run it before an upgrade."`
}

type queriesSave struct {
	emailArgument
	Name        string `arg:"" help:"Name of the query: lower-case letters, digits and hyphens."`
	File        string `arg:"" help:"Path of a file with the query; - for standard input."`
	Private     bool   `help:"Require a key of the account, or a token."`
	Handle      string `help:"Handle of the account, if it has none yet. It is part of the URLs of saved queries and cannot be changed later." placeholder:"HANDLE"`
	Title       string `help:"Title of the query's page. Default: the name of the operation, as words." placeholder:"TEXT"`
	Description string `help:"Description of the query." placeholder:"TEXT"`
}

func (c *queriesSave) Run(ctx context.Context, owner *ent.Account, queries *saved.Queries, term Terminal) error {
	file := term.In
	if c.File != "-" {
		var err error
		if file, err = os.Open(c.File); err != nil {
			return &problem.Problem{Code: problem.BadInput, Message: c.File + " cannot be opened", Cause: err}
		}
		defer file.Close()
	}
	text, err := io.ReadAll(io.LimitReader(file, saved.MaxDocument+1))
	if err != nil {
		return &problem.Problem{Code: problem.BadInput, Message: c.File + " cannot be read", Cause: err}
	}
	q, err := queries.Save(ctx, owner, saved.NewQuery{Name: c.Name, Handle: c.Handle, Text: string(text), Title: c.Title, Description: c.Description, Public: !c.Private})
	if err != nil {
		return err
	}
	fmt.Fprintf(term.Out, "%s\n%s\n", q.Named, q.Permanent)
	return nil
}

type queriesList struct{ emailArgument }

func (c *queriesList) Run(ctx context.Context, owner *ent.Account, queries *saved.Queries, term Terminal) error {
	all, err := queries.List(ctx, owner)
	if err != nil {
		return err
	}
	return printTable(term.Out, "name\taccess\tstate\tupdated\taddress", all, func(q *saved.Query) string {
		return fmt.Sprintf("%s\t%s\t%s\t%s\t%s", q.Name, accessOf(q), stateOf(q), formatDay(q.UpdatedAt), q.Named)
	})
}

func accessOf(q *saved.Query) string {
	access := "private"
	if q.Public {
		access = "public"
	}
	if q.TokenHash != nil {
		access += ", token"
	}
	return access
}

func stateOf(q *saved.Query) string {
	switch {
	case q.Suspended:
		return "suspended"
	case q.BrokenReason != "":
		return "no longer valid"
	}
	return "active"
}

type queryArgument struct {
	emailArgument
	Name string `arg:"" help:"Name of the query, as shown by palmares queries list."`
}

type queriesShow struct{ queryArgument }

func (c *queriesShow) Run(ctx context.Context, owner *ent.Account, queries *saved.Queries, term Terminal) error {
	q, err := queries.Find(ctx, owner, c.Name)
	if err != nil {
		return err
	}
	text, err := queries.Text(ctx, q)
	if err != nil {
		return err
	}
	fmt.Fprintf(term.Out, "%s\naccess     %s\nstate      %s\nupdated    %s\naddress    %s\npermanent  %s\n", q.Name, accessOf(q), stateOf(q), formatDay(q.UpdatedAt), q.Named, q.Permanent)
	if q.BrokenReason != "" {
		fmt.Fprintf(term.Out, "reason     %s\n", q.BrokenReason)
	}
	if q.Description != "" {
		fmt.Fprintf(term.Out, "\n%s\n", q.Description)
	}
	fmt.Fprintf(term.Out, "\n%s\n", text)
	return nil
}

type queriesDelete struct{ queryArgument }

func (c *queriesDelete) Run(ctx context.Context, owner *ent.Account, queries *saved.Queries, term Terminal) error {
	return term.done(queries.Delete(ctx, owner, c.Name), "Deleted %s. Its permanent URLs keep working.", c.Name)
}

type queriesToken struct {
	queryArgument
	Revoke bool `help:"Revoke the token instead."`
}

func (c *queriesToken) Run(ctx context.Context, owner *ent.Account, queries *saved.Queries, term Terminal) error {
	if c.Revoke {
		return term.done(queries.RevokeToken(ctx, owner, c.Name), "The token was revoked.")
	}
	token, err := queries.SetToken(ctx, owner, c.Name)
	if err != nil {
		return err
	}
	q, err := queries.Find(ctx, owner, c.Name)
	if err != nil {
		return err
	}
	fmt.Fprintln(term.Err, "Save this URL. The token is shown only once, and requests with it count against the account's quota:")
	fmt.Fprintf(term.Out, "%s?token=%s\n", q.Named, token)
	return nil
}

type queriesCheck struct{}

func (queriesCheck) Run(ctx context.Context, queries *saved.Queries, term Terminal) error {
	rejected := 0
	err := queries.Check(ctx, func(row *ent.SavedQuery, reason error) error {
		rejected++
		fmt.Fprintf(term.Out, "%s  %s  %s\n", row.Edges.Account.Email, row.Name, reason)
		return nil
	})
	switch {
	case err != nil:
		return err
	case rejected > 0:
		return errors.New("this version of palmares would reject the saved queries above")
	}
	fmt.Fprintln(term.Out, "All saved queries are valid.")
	return nil
}
