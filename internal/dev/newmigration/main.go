// Newmigration writes the next migration of both databases, if the ent schema has what
// the existing migrations lack. Review it before you commit it.
//
//	make generate NAME=add_keys
package main

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"palmares/internal/core/store"
	"palmares/internal/dev/check"
	"palmares/internal/dev/drift"
	"palmares/internal/dev/testkit"
)

func main() {
	testkit.Main("newmigration", func(t testing.TB) {
		name := strings.Join(os.Args[1:], "_")
		// Most changes of the schema concern both databases, and SQLite needs no server.
		if name == "" {
			drift := statementsFor(t, testkit.SQLite(t))
			check.MustTrue(t, drift.statements == "", "the schema has changed: name the next migration, as in make generate NAME=add_keys")
			return
		}
		write(t, name)
	})
}

// difference is what a database lacks after its last migration.
type difference struct {
	last       int
	statements string
}

func statementsFor(t testing.TB, cfg store.Config) difference {
	steps := check.Try(testkit.Open(t, cfg).Migrations(t.Context())).OK(t)
	statements := check.Try(drift.Statements(t.Context(), cfg)).OK(t)
	return difference{steps[len(steps)-1].Version, statements}
}

func write(t testing.TB, name string) {
	found := map[string]difference{"sqlite": statementsFor(t, testkit.SQLite(t)), "postgres": statementsFor(t, testkit.Postgres(t))}
	check.MustTrue(t, found["sqlite"].statements+found["postgres"].statements != "", "the migrations already match the schema")
	next := max(found["sqlite"].last, found["postgres"].last) + 1
	for dir, lacks := range found {
		// Both databases get a file, so that their numbers stay the same.
		file := filepath.Join("internal", "core", "store", "migrations", dir, fmt.Sprintf("%04d_%s.sql", next, name))
		check.OK(t, os.WriteFile(file, []byte(cmp.Or(lacks.statements, "-- No change on this database.")+"\n"), 0o644))
		fmt.Println("wrote", file)
	}
}
