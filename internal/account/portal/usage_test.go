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
	wantPage(t, empty, 200, "quota: 1,000", `d="M0 12H630"`, "with a line at the quota of 1,000")
	wantNoText(t, empty, "<rect x", "NaN", "Inf", "style=")

	ana := s.account("ana@example.com")
	for back, requests := range map[int]int{0: 999, 1: 1, 29: 12345, 30: 777} {
		s.db.Write.Usage.Create().SetSubject(int64(auth.Subject(ana))).SetDay(quota.DayOf(noon.AddDate(0, 0, -back)).String()).SetKey("").SetEndpoint("").SetRequests(requests).ExecX(t.Context())
	}
	page := b.get("/account/usage")
	wantPage(t, page, 200, `Requests today: <strong id="today">999</strong>. 1 of 1,000 left`, "Last 30 days: 13,345 requests", "12,345", "14 March 2026: 1 request<", "15 March 2026: 999 requests<")
	wantNoText(t, page, "777", "You have reached your daily quota")
	check.Equal(t, strings.Count(page.text, "<rect x"), 3, "bars")
	wantPage(t, b.get(home), 200, "999 of 1,000 requests used today")

	s.db.Write.Usage.Update().SetRequests(1003).ExecX(t.Context())
	wantPage(t, b.get("/account/usage"), 200, "You have reached your daily quota", "0 of 1,000 left", "midnight UTC", "2026-03-16T00:00:00Z")
	wantPage(t, b.get(home), 200, "You have reached your daily quota")
	s.db.Write.Account.Update().SetPlan("pro").ExecX(t.Context())
	wantPage(t, b.get("/account/usage"), 200, "(unlimited)")
	wantNoText(t, b.get("/account/usage"), "You have reached your daily quota", "quota:", "<path fill", "line at the quota")
	wantNoText(t, b.get(home), "You have reached your daily quota")
}

func TestChart(t *testing.T) {
	for n, want := range map[int]int{0: 1, 1: 1, 2: 2, 3: 5, 9: 10, 11: 20, 12345: 20000, 50000: 50000} {
		check.Equal(t, roundUp(n), want, "roundUp(%d)", n)
	}
	days := []dayUsage{{Requests: 0}, {Requests: 1}, {Requests: 1000}}
	drawn := newChart(days, 0)
	if drawn.Bars[0].Height != 0 || drawn.Bars[1].Height < 2 || drawn.Bars[2].Height != chartHeight || drawn.Bars[2].Y != chartTop {
		t.Errorf("got %+v, want heights in proportion to the requests", drawn)
	}
	for quota, want := range map[int]struct {
		max int
		y   float64
	}{0: {1000, chartTop + chartHeight}, 500: {1000, chartTop + chartHeight/2}, 5000: {5000, chartTop}} {
		if got := newChart(days, quota); got.Max != want.max || got.QuotaY != want.y {
			t.Errorf("quota %d: got up to %d with a line at %v, want %+v", quota, got.Max, got.QuotaY, want)
		}
	}
}
