package commands

import (
	"context"
	"errors"
	"fmt"
	"os"
	"text/tabwriter"

	"palmares/internal/core/disk"
	"palmares/internal/core/store"
	"palmares/internal/server"
)

// Migrate groups the commands about migrations.
type Migrate struct {
	Status migrateStatus `cmd:"" help:"List all migrations and when they were applied."`
	Up     migrateUp     `cmd:"" help:"Apply all pending migrations."`
}

type migrateStatus struct{}

func (migrateStatus) Run(ctx context.Context, db *store.Store, term Terminal) error {
	steps, err := db.Migrations(ctx)
	if err != nil {
		return err
	}
	table := tabwriter.NewWriter(term.Out, 0, 0, 2, ' ', 0)
	for _, step := range steps {
		state := "pending"
		if step.AppliedAt != "" {
			state = "applied " + step.AppliedAt
		}
		fmt.Fprintf(table, "%04d\t%s\t%s\n", step.Version, step.Name, state)
	}
	return table.Flush()
}

type migrateUp struct{}

func (migrateUp) Run(ctx context.Context, db *store.Store, term Terminal) error {
	applied, err := server.Migrate(ctx, db)
	if err != nil {
		return err
	}
	for _, step := range applied {
		fmt.Fprintf(term.Out, "applied %04d %s\n", step.Version, step.Name)
	}
	if len(applied) == 0 {
		fmt.Fprintln(term.Out, "no pending migrations")
	}
	return nil
}

// Backup copies the embedded database.
type Backup struct {
	File string `arg:"" help:"Path of the copy. An existing file is replaced once the copy is complete."`
}

// Run copies the embedded database, even while a server uses it.
func (c *Backup) Run(ctx context.Context, cfg store.Config, term Terminal) error {
	if cfg.DatabaseURL != "" {
		return store.ErrNotEmbedded
	}
	cfg.MustExist = true
	db, err := store.Open(ctx, cfg)
	if err != nil {
		return err
	}
	defer db.Close()
	if disk.IsSpecial(c.File) || isSameFile(c.File, store.File(cfg.DataDir)) {
		return fmt.Errorf("%s: cannot be replaced by a backup; choose another path", c.File)
	}
	var size int64
	err = disk.Replace(c.File, func(file *os.File) error {
		if err := db.Backup(ctx, file.Name()); err != nil {
			_ = os.Remove(file.Name() + "-journal") // an interrupted backup leaves it
			return err
		}
		info, err := file.Stat()
		if err == nil {
			size = info.Size()
		}
		return err
	})
	if err != nil {
		return disk.Error(c.File, err)
	}
	_, err = fmt.Fprintf(term.Out, "%s: %d bytes\n", c.File, size)
	return err
}

func isSameFile(a, b string) bool {
	first, errA := os.Stat(a)
	second, errB := os.Stat(b)
	return errors.Join(errA, errB) == nil && os.SameFile(first, second)
}
