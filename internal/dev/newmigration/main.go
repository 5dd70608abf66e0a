// Newmigration writes the next migration of both databases: what the ent schema
// has and the existing migrations lack. Review it before you commit it.
//
//	make migration NAME=add_keys
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"palmares/internal/core/store"
	"palmares/internal/dev/testkit"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: newmigration NAME")
		os.Exit(2)
	}
	if err := write(context.Background(), os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "newmigration:", err)
		os.Exit(1)
	}
}

func write(ctx context.Context, name string) error {
	dir, err := os.MkdirTemp("", "palmares-migration-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	scratch, drop, err := testkit.Scratch(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = drop() }()
	next, drifts := 1, map[string]string{}
	for dir, cfg := range map[string]store.Config{
		"sqlite":   {DataDir: dir},
		"postgres": {DatabaseURL: scratch},
	} {
		count, drift, err := driftOf(ctx, cfg)
		if err != nil {
			return fmt.Errorf("%s: %w", dir, err)
		}
		next, drifts[dir] = max(next, count+1), drift
	}
	if drifts["sqlite"] == "" && drifts["postgres"] == "" {
		return errors.New("the migrations already match the schema")
	}
	for dir, drift := range drifts {
		// Both databases get a file, so that their numbers stay the same.
		if drift == "" {
			drift = "-- No change on this database."
		}
		file := filepath.Join("internal", "core", "store", "migrations", dir, fmt.Sprintf("%04d_%s.sql", next, name))
		if err := os.WriteFile(file, []byte(drift+"\n"), 0o644); err != nil {
			return err
		}
		fmt.Println("wrote", file)
	}
	return nil
}

// driftOf migrates an empty database, and returns the number of migrations and
// the statements that the schema needs in addition.
func driftOf(ctx context.Context, cfg store.Config) (count int, drift string, err error) {
	s, err := store.Open(ctx, cfg)
	if err != nil {
		return 0, "", err
	}
	defer s.Close()
	if _, err := s.Migrate(ctx); err != nil {
		return 0, "", err
	}
	steps, err := s.Migrations(ctx)
	if err != nil {
		return 0, "", err
	}
	drift, err = s.Drift(ctx)
	return len(steps), drift, err
}
