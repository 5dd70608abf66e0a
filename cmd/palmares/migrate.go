package main

import (
	"context"
	"fmt"
	"io"
	"text/tabwriter"
)

type migrateCommand struct {
	Status migrateStatusCommand `cmd:"" help:"List the migrations and when each was applied."`
	Up     migrateUpCommand     `cmd:"" help:"Apply what is missing."`
}

type migrateStatusCommand struct{}

// Run lists the migrations.
func (migrateStatusCommand) Run(ctx context.Context, s *settings, term terminal) error {
	db, err := openStore(ctx, s)
	if err != nil {
		return err
	}
	defer db.Close()
	steps, err := db.Migrations(ctx)
	if err != nil {
		return err
	}
	table := tabwriter.NewWriter(term.out, 0, 0, 2, ' ', 0)
	for _, step := range steps {
		state := "pending"
		if step.AppliedAt != "" {
			state = "applied " + step.AppliedAt
		}
		fmt.Fprintf(table, "%04d\t%s\t%s\n", step.Version, step.Name, state)
	}
	return table.Flush()
}

type migrateUpCommand struct{}

// Run applies what is missing.
func (migrateUpCommand) Run(ctx context.Context, s *settings, term terminal) error {
	db, err := openStore(ctx, s)
	if err != nil {
		return err
	}
	defer db.Close()
	done, err := db.Migrate(ctx)
	if err != nil {
		return err
	}
	text := ""
	for _, step := range done {
		text += fmt.Sprintf("applied %04d %s\n", step.Version, step.Name)
	}
	if text == "" {
		text = "nothing to do: every migration is in\n"
	}
	_, err = io.WriteString(term.out, text)
	return err
}
