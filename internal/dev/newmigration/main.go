// Newmigration writes the next migration of both databases: what the ent schema
// has and the existing migrations lack. Review it before you commit it.
//
//	make migration NAME=add_keys
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"palmares/internal/core/store"
	"palmares/internal/dev/check"
	"palmares/internal/dev/drift"
	"palmares/internal/dev/testkit"
)

func main() {
	testkit.Main("newmigration", func(t testing.TB) {
		if len(os.Args) != 2 {
			t.Fatal("usage: newmigration NAME")
		}
		write(t, os.Args[1])
	})
}

func write(t testing.TB, name string) {
	next, drifts, changed := 0, map[string]string{}, false
	for dir, cfg := range map[string]store.Config{"sqlite": testkit.SQLite(t), "postgres": testkit.Postgres(t)} {
		s := testkit.Open(t, cfg)
		steps, err := s.Migrations(t.Context())
		check.OK(t, err)
		statements, err := drift.Statements(t.Context(), cfg)
		check.OK(t, err)
		// Both databases get a file, so that their numbers stay the same.
		if statements == "" {
			statements = "-- No change on this database."
		} else {
			changed = true
		}
		next, drifts[dir] = max(next, steps[len(steps)-1].Version+1), statements
	}
	if !changed {
		t.Fatal("the migrations already match the schema")
	}
	for dir, statements := range drifts {
		file := filepath.Join("internal", "core", "store", "migrations", dir, fmt.Sprintf("%04d_%s.sql", next, name))
		check.OK(t, os.WriteFile(file, []byte(statements+"\n"), 0o644))
		fmt.Println("wrote", file)
	}
}
