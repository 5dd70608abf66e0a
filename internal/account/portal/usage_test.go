package portal

import (
	"strings"
	"testing"
	"time"

	"palmares/auth"
	"palmares/internal/core/quota"
	"palmares/internal/dev/check"
)

var noon = time.Date(2026, 3, 15, 12, 0, 0, 0, time.UTC)

func TestUsagePage(t *testing.T) {
	t.Parallel()
	s := newSQLiteSite(t)
	s.now = func() time.Time { return noon }
	b := s.signIn("ana@example.com")
	empty := b.get("/account/usage")
	wantPage(t, empty, 200, `Requests today: <strong id="today">0</strong>. 1,000 of 1,000 left`, "<svg", "15 March 2026")
	check.Equal(t, strings.Count(empty.text, `<th scope="row">`), 30, "days")
	wantPage(t, empty, 200, "quota: 1,000", "with a line at the quota of 1,000")
	wantNoText(t, empty, "NaN", "Inf", "style=")

	ana := s.account("ana@example.com")
	for back, requests := range map[int]int{0: 999, 1: 1, 29: 12345, 30: 777} {
		s.db.Write.Usage.Create().SetSubject(int64(auth.Subject(ana))).SetDay(quota.DayOf(noon.AddDate(0, 0, -back)).String()).SetKey("").SetEndpoint("").SetRequests(requests).ExecX(t.Context())
	}
	page := b.get("/account/usage")
	wantPage(t, page, 200, `Requests today: <strong id="today">999</strong>. 1 of 1,000 left`, "Last 30 days: 13,345 requests", "12,345", "14 March 2026 · 1<", "15 March 2026 · 999<")
	wantNoText(t, page, "777", "You have reached your daily quota")
	check.Equal(t, strings.Count(page.text, `<rect class="s0"`), 30, "columns")
	wantPage(t, b.get(home), 200, "999 of 1,000 requests used today")

	s.db.Write.Usage.Update().SetRequests(1003).ExecX(t.Context())
	wantPage(t, b.get("/account/usage"), 200, "You have reached your daily quota", "0 of 1,000 left", "midnight UTC", "2026-03-16T00:00:00Z")
	wantPage(t, b.get(home), 200, "You have reached your daily quota")
	s.db.Write.Account.Update().SetPlan("pro").ExecX(t.Context())
	wantPage(t, b.get("/account/usage"), 200, "(unlimited)")
	wantNoText(t, b.get("/account/usage"), "You have reached your daily quota", "quota:", "line at the quota")
	wantNoText(t, b.get(home), "You have reached your daily quota")
}
