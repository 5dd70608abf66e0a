package testkit

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"palmares/internal/core/store"
)

// The migrations make some hundred tables and indexes. Under the race detector
// that takes longer than most tests do, and nearly every test begins with it:
// so it is done once, and tests begin with a copy. Open still migrates what it
// opens, and finds nothing left to do.

// TemplateVariable names a migrated and empty database of the cluster, in the
// environment. Without it, each test migrates a database of its own.
const TemplateVariable = "TEST_DATABASE_TEMPLATE"

// MakeTemplate makes such a database, and sets the variable.
func MakeTemplate(ctx context.Context) (drop func() error, err error) {
	name, drop, err := create(ctx, "")
	if err != nil {
		return nil, err
	}
	address, err := addressOf(name)
	if err == nil {
		err = migrate(ctx, store.Config{DatabaseURL: address})
	}
	if err == nil {
		err = os.Setenv(TemplateVariable, name)
	}
	if err != nil {
		_ = drop()
		return nil, err
	}
	return drop, nil
}

// sqliteTemplate is the one file of a migrated and empty embedded database.
type sqliteTemplate struct {
	name string
	data []byte
}

var migratedSQLite = sync.OnceValues(func() (file sqliteTemplate, err error) {
	dir, err := os.MkdirTemp("", "palmares-template-")
	if err != nil {
		return file, err
	}
	defer os.RemoveAll(dir)
	if err := migrate(context.Background(), store.Config{DataDir: dir}); err != nil {
		return file, err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return file, err
	}
	if len(entries) != 1 { // a log beside it would hold a part of it
		return file, fmt.Errorf("a closed database is %d files", len(entries))
	}
	file.name = entries[0].Name()
	file.data, err = os.ReadFile(filepath.Join(dir, file.name))
	return file, err
})

// copyMigrated puts a migrated database into a folder that is empty, and
// leaves every other folder alone.
func copyMigrated(dir string) error {
	if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
		return nil
	}
	template, err := migratedSQLite()
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, template.name), template.data, 0o600)
}

// migrate makes a database what a server needs.
func migrate(ctx context.Context, cfg store.Config) error {
	s, err := store.Open(ctx, cfg)
	if err != nil {
		return err
	}
	if _, err := s.Migrate(ctx); err != nil {
		_ = s.Close()
		return err
	}
	return s.Close()
}
