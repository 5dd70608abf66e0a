package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"text/tabwriter"

	"palmares/internal/catalog/search"
	"palmares/internal/core/store"
)

func (s *settings) storeConfig() store.Config {
	return store.Config{DatabaseURL: s.DatabaseURL, DataDir: s.DataDir}
}

// openMigrated opens a database and applies its pending migrations.
func openMigrated(ctx context.Context, cfg store.Config) (*store.Store, error) {
	db, err := store.Open(ctx, cfg)
	if err != nil {
		return nil, err
	}
	if _, err := migrate(ctx, db); err != nil {
		_ = db.Close()
		return nil, err
	}
	return db, nil
}

// migrate applies pending migrations and fills the search index, which only
// this program can do.
func migrate(ctx context.Context, db *store.Store) ([]store.Migration, error) {
	applied, err := db.Migrate(ctx)
	if err != nil {
		return nil, err
	}
	return applied, search.Fill(ctx, db)
}

type migrateCommand struct {
	Status migrateStatusCommand `cmd:"" help:"List all migrations and when they were applied."`
	Up     migrateUpCommand     `cmd:"" help:"Apply all pending migrations."`
}

type migrateStatusCommand struct{}

func (migrateStatusCommand) Run(ctx context.Context, db *store.Store, term terminal) error {
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

func (migrateUpCommand) Run(ctx context.Context, db *store.Store, term terminal) error {
	applied, err := migrate(ctx, db)
	if err != nil {
		return err
	}
	for _, step := range applied {
		fmt.Fprintf(term.out, "applied %04d %s\n", step.Version, step.Name)
	}
	if len(applied) == 0 {
		fmt.Fprintln(term.out, "no pending migrations")
	}
	return nil
}

type backupCommand struct {
	File string `arg:"" help:"Path of the copy. An existing file is replaced once the copy is complete."`
}

// Run copies the embedded database, even while a server uses it.
func (c *backupCommand) Run(ctx context.Context, s *settings, term terminal) error {
	if s.DatabaseURL != "" {
		return store.ErrNotEmbedded
	}
	db, err := store.Open(ctx, store.Config{DataDir: s.DataDir, MustExist: true})
	if err != nil {
		return err
	}
	defer db.Close()
	if isSpecialFile(c.File) || isSameFile(c.File, store.File(s.DataDir)) {
		return fmt.Errorf("%s: cannot be replaced by a backup; choose another path", c.File)
	}
	var size int64
	err = replaceFile(c.File, func(file *os.File) error {
		if err := db.Backup(ctx, file.Name()); err != nil {
			_ = os.Remove(file.Name() + "-journal") // of an interrupted backup
			return err
		}
		info, err := file.Stat()
		if err == nil {
			size = info.Size()
		}
		return err
	})
	if err != nil {
		return fileError(c.File, err)
	}
	_, err = fmt.Fprintf(term.out, "%s: %d bytes\n", c.File, size)
	return err
}

func isSameFile(a, b string) bool {
	first, errA := os.Stat(a)
	second, errB := os.Stat(b)
	return errors.Join(errA, errB) == nil && os.SameFile(first, second)
}
