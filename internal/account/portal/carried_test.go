package portal

import (
	"testing"
	"time"
)

// The pages show the numbers that the API counts with.
func TestUsageCarriedFromADeletedAccount(t *testing.T) {
	t.Parallel()
	s := onSQLite(t)
	s.now = func() time.Time { return noon }
	ana := s.db.Write.Account.Create().SetEmail("ana@example.com").SetPlan("developer").SetCarriedDay("2026-03-15").SetCarriedRequests(600).SaveX(t.Context())
	s.db.Write.Usage.Create().SetAccountID(ana.ID).SetDay("2026-03-15").SetRequests(150).ExecX(t.Context())
	b := s.signIn("ana@example.com")
	wantPage(t, b.get("/account/usage"), 200, `<strong id="today">750</strong> requests today, 250 of 1,000 left`,
		"This includes 600 requests made today by a deleted account with your email address.", "The last 30 days: 150 requests")
	wantPage(t, b.get(home), 200, "Today: 750 requests of 1,000")

	s.now = func() time.Time { return noon.AddDate(0, 0, 1) }
	page := b.get("/account/usage")
	wantPage(t, page, 200, `<strong id="today">0</strong> requests today, 1,000 of 1,000 left`)
	wantNot(t, page, "deleted account")
}
