// Newmigration writes the next migration of both databases from what the ent
// schema asks for and the migrations do not give yet. Read what it wrote
// before committing it.
//
//	make migration NAME=add_keys
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"palmares/internal/store"
	"palmares/internal/testdb"
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
	scratch, drop, err := testdb.Scratch(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = drop() }()
	for folder, cfg := range map[string]store.Config{
		"sqlite":   {DataDir: dir},
		"postgres": {DatabaseURL: scratch},
	} {
		if err := writeFor(ctx, folder, name, cfg); err != nil {
			return fmt.Errorf("%s: %w", folder, err)
		}
	}
	return nil
}

func writeFor(ctx context.Context, folder, name string, cfg store.Config) error {
	s, err := store.Open(ctx, cfg)
	if err != nil {
		return err
	}
	defer s.Close()
	if _, err := s.Migrate(ctx); err != nil {
		return err
	}
	steps, err := s.Migrations(ctx)
	if err != nil {
		return err
	}
	drift, err := s.Drift(ctx)
	if err != nil {
		return err
	}
	if drift == "" {
		fmt.Println(folder, "has nothing to migrate")
		return nil
	}
	file := filepath.Join("internal", "store", "migrations", folder, fmt.Sprintf("%04d_%s.sql", len(steps)+1, name))
	fmt.Println("wrote", file)
	return os.WriteFile(file, []byte(drift+"\n"), 0o644)
}
