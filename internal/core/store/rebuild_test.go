package store

import (
	"context"
	"database/sql"
	"testing"

	"palmares/ent"
	"palmares/internal/dev/check"
)

// A migration that rebuilds a table in SQLite must not delete the rows that
// reference it.
func TestRebuiltTableKeepsReferencingRows(t *testing.T) {
	s := withOneTool(t)
	err := s.inMigrationTx(t.Context(), func(tx *sql.Tx) error {
		for _, statement := range []string{
			`CREATE TABLE new_tools AS SELECT * FROM tools`,
			`DROP TABLE tools`,
			`ALTER TABLE new_tools RENAME TO tools`,
			`CREATE UNIQUE INDEX tools_slug ON tools (slug)`,
		} {
			if _, err := tx.ExecContext(t.Context(), statement); err != nil {
				return err
			}
		}
		return nil
	})
	check.OK(t, err)
	check.Equal(t, s.Read.Section.Query().CountX(t.Context()), 1, "sections after the migration")
	var enforced bool
	check.OK(t, s.writer.QueryRowContext(t.Context(), "PRAGMA foreign_keys").Scan(&enforced))
	check.Equal(t, enforced, true)
}

func TestMigrationMustNotBreakReferences(t *testing.T) {
	s := withOneTool(t)
	err := s.inMigrationTx(t.Context(), func(tx *sql.Tx) error {
		_, err := tx.ExecContext(t.Context(), `DELETE FROM tools`)
		return err
	})
	check.Fails(t, err)
	check.Equal(t, s.Read.Tool.Query().CountX(t.Context()), 1)
}

// A panic in a transaction releases the only writer connection.
func TestPanicReleasesTheLock(t *testing.T) {
	s := withOneTool(t)
	func() {
		defer func() { _ = recover() }()
		_ = s.Exclusive(t.Context(), func(*ent.Tx) error { panic("on purpose") })
	}()
	check.Equal(t, s.Exclusive(t.Context(), func(*ent.Tx) error { return nil }), nil)
}

// withOneTool returns a SQLite store with a tool that has a section.
func withOneTool(t *testing.T) *Store {
	t.Helper()
	s := check.Try(Open(t.Context(), Config{DataDir: t.TempDir()})).OK(t)
	t.Cleanup(func() { _ = s.Close() })
	check.Try(s.Migrate(t.Context())).OK(t)
	ctx := context.Background()
	s.Write.Category.Create().SetID("code").SetLabel("Code").SetFingerprint("").SaveX(ctx)
	s.Write.Tool.Create().SetID("a").SetName("A").SetNameKey("a").SetCategorySlug("code").
		SetDomain("a.example").SetFingerprint("").SaveX(ctx)
	s.Write.Section.Create().SetToolSlug("a").SetPosition(0).SetSection("verdict").SetText("Bien.").SaveX(ctx)
	return s
}
