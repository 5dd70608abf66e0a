package store_test

import (
	"fmt"
	"testing"

	"palmares/internal/core/store"
	"palmares/internal/dev/testkit"
)

// Migration 17 finds the last delivery of existing endpoints in their attempts.
func TestMigrationToLastDeliveries(t *testing.T) {
	testkit.EachNew(t, func(t *testing.T, cfg store.Config) {
		s := open(t, cfg)
		if err := s.MigrateTo(t.Context(), 16); err != nil {
			t.Fatal(err)
		}
		statements := []string{`INSERT INTO accounts (id, email, plan, created_at) VALUES (1, 'ana@example.com', 'pro', '2026-11-15')`}
		for id := 1; id <= 2; id++ {
			statements = append(statements, fmt.Sprintf(`INSERT INTO endpoints (id, account_id, url, types, categories, secret, position, created_at) VALUES (%d, 1, 'https://hooks.example', '[]', '[]', 'secret', 0, '2026-11-01')`, id))
		}
		for day, attempt := range map[int]string{2: "1, true", 3: "1, true", 4: "1, false", 5: "2, false"} {
			statements = append(statements, fmt.Sprintf(`INSERT INTO attempts (endpoint_id, delivered, event, type, number, at, status, took_ms, answer) VALUES (%s, 1, 'x', 1, '2026-11-%02d 00:00:00+00:00', 0, 0, '')`, attempt, day))
		}
		for _, statement := range statements {
			if _, err := s.Write.ExecContext(t.Context(), statement); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := s.Migrate(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := s.Read.Endpoint.GetX(t.Context(), 1).DeliveredAt; got == nil || got.UTC().Day() != 3 {
			t.Errorf("got last delivery %v, want 3 November", got)
		}
		if got := s.Read.Endpoint.GetX(t.Context(), 2).DeliveredAt; got != nil {
			t.Errorf("got last delivery %v, want none", got)
		}
		if got := s.Read.Account.GetX(t.Context(), 1).Language; got != "en" {
			t.Errorf("got language %s, want en", got)
		}
	})
}
