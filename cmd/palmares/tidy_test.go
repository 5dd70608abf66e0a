package main

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"palmares/internal/core/quota"
	"palmares/internal/core/store"
	"palmares/internal/dev/testkit"
	"palmares/internal/notify/webhook"
)

// Expired data is deleted, unless the clocks of server and database differ.
func TestCleanUpComparesClocks(t *testing.T) {
	testkit.EachStore(t, func(t *testing.T, db *store.Store) {
		var output bytes.Buffer
		log := slog.New(slog.NewTextHandler(&output, nil))
		p := &services{store: db, log: log, hooks: webhook.New(webhook.Config{Store: db, Log: log})}
		acc := db.Write.Account.Create().SetEmail("ana@example.com").SetPlan("developer").SaveX(t.Context())
		now := time.Now().UTC()
		expires := func(id string, at time.Time) {
			db.Write.Session.Create().SetID(id).SetAccountID(acc.ID).SetExpiresAt(at).ExecX(t.Context())
		}
		expires("expired", now.Add(-time.Minute))
		expires("valid", now.Add(24*time.Hour))
		db.Write.CountBatch.Create().SetID("old").SetDay(quota.DayOf(now.AddDate(0, 0, -3)).String()).SetCounts([]byte{}).ExecX(t.Context())
		db.Write.BillingEvent.Create().SetID("evt_old").SetType("invoice.paid").SetAppliedAt(now.AddDate(0, 0, -91)).ExecX(t.Context())
		remaining := func() int {
			return db.Write.Session.Query().CountX(t.Context()) + db.Write.BillingEvent.Query().CountX(t.Context()) + db.Write.CountBatch.Query().CountX(t.Context())
		}
		if db.Describe() == "PostgreSQL" {
			for _, wrong := range []time.Time{now.AddDate(1, 0, 0), now.AddDate(-1, 0, 0), now.Add(2 * time.Hour)} {
				p.cleanUp(t.Context(), wrong)
				if got := remaining(); got != 4 {
					t.Errorf("%s: got %d rows, want 4", wrong, got)
				}
			}
			if got := strings.Count(output.String(), "cleanup skipped"); got != 3 {
				t.Errorf("got %d warnings, want 3", got)
			}
		}
		p.cleanUp(t.Context(), now)
		if got := remaining(); got != 1 {
			t.Errorf("got %d rows, want only the valid session", got)
		}
	})
}
