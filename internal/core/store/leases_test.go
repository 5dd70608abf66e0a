package store_test

import (
	"testing"
	"time"

	"palmares/internal/core/store"
	"palmares/internal/dev/testkit"
)

// Migration 11 drops the tables of River and, on PostgreSQL, leases every
// endpoint for a minute, because servers of the previous version may be sending.
func TestMigrationToLeases(t *testing.T) {
	testkit.EachNew(t, func(t *testing.T, cfg store.Config) {
		s := open(t, cfg)
		if err := s.MigrateTo(t.Context(), 10); err != nil {
			t.Fatal(err)
		}
		for _, statement := range []string{
			`CREATE TABLE river_job (id integer)`,
			`INSERT INTO accounts (id, email, plan, created_at) VALUES (1, 'ana@example.com', 'pro', '2026-11-15')`,
			`INSERT INTO endpoints (id, account_id, url, types, categories, secret, position, created_at) VALUES (1, 1, 'https://hooks.example', '[]', '[]', 'secret', 0, '2026-11-15')`,
		} {
			if _, err := s.Write.ExecContext(t.Context(), statement); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := s.Migrate(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Write.ExecContext(t.Context(), `SELECT * FROM river_job`); err == nil {
			t.Error("got table river_job, want it dropped")
		}
		e := s.Read.Endpoint.GetX(t.Context(), 1)
		if leased := e.LeasedBy != "" && e.LeasedUntil.After(time.Now()); leased != (cfg.DatabaseURL != "") {
			t.Errorf("got a lease by %q until %s, want one only on PostgreSQL", e.LeasedBy, e.LeasedUntil)
		}
	})
}
