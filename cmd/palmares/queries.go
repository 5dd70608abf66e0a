package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"

	"palmares/ent"
	"palmares/graph"
	"palmares/internal/core/cache"
	"palmares/internal/core/problem"
	"palmares/internal/core/store"
	"palmares/internal/notify/mail"
	"palmares/internal/transport/saved"
)

type queriesCommand struct {
	Save   queriesSaveCommand   `cmd:"" help:"Save a GraphQL query, or replace the one with the same name, and print its URLs."`
	List   queriesListCommand   `cmd:"" help:"List the saved queries of an account."`
	Show   queriesShowCommand   `cmd:"" help:"Show a saved query."`
	Delete queriesDeleteCommand `cmd:"" help:"Delete a saved query. Its permanent URLs keep working."`
	Token  queriesTokenCommand  `cmd:"" help:"Create or replace the token of a saved query, for clients that cannot send a key, and print the URL with the token."`
	Check  queriesCheckCommand  `cmd:"" help:"List saved queries that this version of palmares would reject. Run it before an upgrade."`
}

// newQueries returns the saved queries for commands. They run as on a server
// with the same settings.
func newQueries(ctx context.Context, s *settings, db *store.Store, mailer *mail.Mailer, log *slog.Logger) (*saved.Queries, error) {
	address, err := net.ResolveTCPAddr("tcp", s.Listen)
	if err != nil {
		return nil, listenError(s.Listen, err)
	}
	s.setAddresses(address)
	release, err := db.CurrentRelease(ctx)
	if err != nil {
		return nil, err
	}
	tools := 0
	if release != nil {
		tools = release.ToolsTotal
	}
	memory := cache.New(int64(s.CacheMB)<<20, nil, log)
	executor := graph.NewExecutor(graph.Config{
		Catalog: db, Credit: s.credit(), Limits: graph.Limits(s.GraphQL), Log: log, Cache: memory, Tools: func() int { return tools },
	})
	return saved.New(saved.Config{Service: s.rest(), Store: db, Executor: executor, Cache: memory, Mail: mailer, Log: log})
}

type queriesSaveCommand struct {
	emailArgument
	Name        string `arg:"" help:"Name of the query: lower-case letters, digits and hyphens."`
	File        string `arg:"" help:"Path of a file with the query; - for standard input."`
	Private     bool   `help:"Require a key of the account, or a token."`
	Handle      string `help:"Handle of the account, if it has none yet. It is part of the URLs of saved queries and cannot be changed later." placeholder:"HANDLE"`
	Description string `help:"Description of the query." placeholder:"TEXT"`
}

func (c *queriesSaveCommand) Run(ctx context.Context, owner *ent.Account, queries *saved.Queries, term terminal) error {
	file := term.in
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
	q, err := queries.Save(ctx, owner, saved.NewQuery{Name: c.Name, Handle: c.Handle, Text: string(text), Description: c.Description, Public: !c.Private})
	if err != nil {
		return err
	}
	fmt.Fprintf(term.out, "%s\n%s\n", q.Named, q.Permanent)
	return nil
}

type queriesListCommand struct{ emailArgument }

func (c *queriesListCommand) Run(ctx context.Context, owner *ent.Account, queries *saved.Queries, term terminal) error {
	all, err := queries.List(ctx, owner)
	if err != nil {
		return err
	}
	return printTable(term.out, "name\taccess\tstate\tupdated\taddress", all, func(q *saved.Query) string {
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

type queriesShowCommand struct{ queryArgument }

func (c *queriesShowCommand) Run(ctx context.Context, owner *ent.Account, queries *saved.Queries, term terminal) error {
	q, err := queries.Find(ctx, owner, c.Name)
	if err != nil {
		return err
	}
	text, err := queries.Text(ctx, q)
	if err != nil {
		return err
	}
	fmt.Fprintf(term.out, "%s\naccess     %s\nstate      %s\nupdated    %s\naddress    %s\npermanent  %s\n", q.Name, accessOf(q), stateOf(q), formatDay(q.UpdatedAt), q.Named, q.Permanent)
	if q.BrokenReason != "" {
		fmt.Fprintf(term.out, "reason     %s\n", q.BrokenReason)
	}
	if q.Description != "" {
		fmt.Fprintf(term.out, "\n%s\n", q.Description)
	}
	fmt.Fprintf(term.out, "\n%s\n", text)
	return nil
}

type queriesDeleteCommand struct{ queryArgument }

func (c *queriesDeleteCommand) Run(ctx context.Context, owner *ent.Account, queries *saved.Queries, term terminal) error {
	if err := queries.Delete(ctx, owner, c.Name); err != nil {
		return err
	}
	fmt.Fprintf(term.out, "Deleted %s. Its permanent URLs keep working.\n", c.Name)
	return nil
}

type queriesTokenCommand struct {
	queryArgument
	Revoke bool `help:"Revoke the token instead."`
}

func (c *queriesTokenCommand) Run(ctx context.Context, owner *ent.Account, queries *saved.Queries, term terminal) error {
	if c.Revoke {
		if err := queries.RevokeToken(ctx, owner, c.Name); err != nil {
			return err
		}
		fmt.Fprintln(term.out, "The token was revoked.")
		return nil
	}
	token, err := queries.SetToken(ctx, owner, c.Name)
	if err != nil {
		return err
	}
	q, err := queries.Find(ctx, owner, c.Name)
	if err != nil {
		return err
	}
	fmt.Fprintln(term.err, "Save this URL. The token is shown only once, and requests with it count against the account's quota:")
	fmt.Fprintf(term.out, "%s?token=%s\n", q.Named, token)
	return nil
}

type queriesCheckCommand struct{}

func (queriesCheckCommand) Run(ctx context.Context, queries *saved.Queries, term terminal) error {
	rejected := 0
	err := queries.Check(ctx, func(row *ent.SavedQuery, reason error) error {
		rejected++
		fmt.Fprintf(term.out, "%s  %s  %s\n", row.Edges.Account.Email, row.Name, reason)
		return nil
	})
	switch {
	case err != nil:
		return err
	case rejected > 0:
		return errors.New("this version of palmares would reject the saved queries above")
	}
	fmt.Fprintln(term.out, "All saved queries are valid.")
	return nil
}
