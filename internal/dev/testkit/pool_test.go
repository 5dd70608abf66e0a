package testkit

import (
	"testing"

	"palmares/internal/core/store"
	"palmares/internal/dev/check"
)

// A database that a test has used is as good as new for the next one, whatever the test
// has changed.
func TestDatabasesAreUsedAgain(t *testing.T) {
	for name, change := range map[string]string{
		"rows":        `INSERT INTO minutes (id, checks, failed) VALUES (1, 1, 1)`,
		"a migration": `INSERT INTO schema_migrations (version, name, applied_at) VALUES (999, 'later', '')`,
		"a secret":    `UPDATE secrets SET value = '\x00'`,
		"an index":    `CREATE INDEX extra ON categories (label)`,
		"a table":     `DROP TABLE secrets`,
		"a setting":   `DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET work_mem = 100', current_database()); END $$`,
	} {
		t.Run(name, func(t *testing.T) {
			var used, again store.Config
			t.Run("first", func(t *testing.T) {
				used = migratedPostgres(t)
				check.OK(t, query(used.DatabaseURL, change, nil))
			})
			again = migratedPostgres(t)
			if again.DatabaseURL != used.DatabaseURL {
				t.Skip("another process has taken the database")
			}
			var got, want string
			check.OK(t, query(again.DatabaseURL, fingerprint, &got))
			check.OK(t, query(databaseURL(t, ServerURL(t), template(t)), fingerprint, &want))
			check.Equal(t, got, want)
			var rows string
			check.OK(t, query(again.DatabaseURL, `SELECT count(*)::text FROM minutes`, &rows))
			check.Equal(t, rows, "0", "rows")
		})
	}
}
