package status

import (
	"fmt"
	"math/rand/v2"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"palmares/internal/core/store"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
	"palmares/internal/web/page"
)

// Requests that fail for ten minutes make exactly these unavailable on the page, as JSON and
// for metrics, although the database responds. Failures of fewer than one in a hundred
// requests do not.
func TestFaultOfTenMinutes(t *testing.T) {
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		at := &fakeClock{Time: time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)}
		var healthy error
		one, two := newRecorder(s, at, &healthy), newRecorder(s, at, &healthy)
		for minute := range 60 {
			for range 2 {
				for range 50 {
					status := 200
					if minute >= 20 && minute < 30 {
						status = 503
					}
					one.Observe(status, time.Millisecond)
					two.Observe(200, time.Millisecond)
				}
				checkFor(t, at, 30*time.Second, one, two)
			}
			if minute == 40 {
				two.Observe(500, time.Millisecond) // of 200
				two.Observe(0, time.Millisecond)   // a client that has left
			}
		}
		one.write(t.Context(), true)
		two.write(t.Context(), true)
		at.pass(writeDelay)

		shown := NewPage(Config{Service: page.Service{PublicURL: "https://palmares.example", Log: quiet}, Store: s, DownSince: neverDown})
		shown.now = at.now
		w := httptest.NewRecorder()
		shown.ServeHTTP(w, httptest.NewRequest("GET", "/status", nil))
		if body := w.Body.String(); !strings.Contains(body, "<strong>83.33%</strong> availability") || !strings.Contains(body, "The error budget is used up.") {
			t.Errorf("got %s, want 50 of 60 minutes", body)
		}
		w = httptest.NewRecorder()
		shown.ServeJSON(w, httptest.NewRequest("GET", JSONPath, nil))
		var got report
		check.OK(t, json.Unmarshal(w.Body.Bytes(), &got))
		start := time.Date(2026, 11, 15, 12, 20, 0, 0, time.UTC)
		if got.Status != "operational" || got.Objective != 0.99 || got.Minutes != 60 || got.Available != 50 || !strings.Contains(w.Body.String(), `"days":[{"date":"2026-11-15","minutes":60,"available":50}]`) ||
			len(got.Incidents) != 1 || !got.Incidents[0].Start.Equal(start) || !got.Incidents[0].End.Equal(start.Add(10*time.Minute)) || got.Incidents[0].Down != 10 {
			t.Errorf("got %s, want 10 of 60 minutes unavailable, from 12:20 to 12:30", w.Body)
		}
		if left := got.ErrorBudget; fmt.Sprintf("%.2f %.2f", left.Minutes, left.Remaining) != "0.60 -9.40" {
			t.Errorf("got error budget %+v, want 0.6 minutes of which 10 are used", left)
		}
		for minutes, want := range map[int]int{60: 10, 35: 5, 30: 0, 6 * 60: 10} {
			if down, err := Down(t.Context(), s, at.Time, minutes); err != nil || down != want {
				t.Errorf("last %d minutes: got %d unavailable, %v, want %d", minutes, down, err, want)
			}
		}
	})
}

// The rule in SQL is that of counts.up.
func TestRuleInSQL(t *testing.T) {
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		now := time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)
		last := minuteOf(now.Add(-writeDelay))
		random := rand.New(rand.NewPCG(1, 2))
		up := 0
		const minutes = 300
		for i := range minutes {
			c := counts{checks: 1 + random.IntN(200), requests: random.IntN(2) * random.IntN(300)}
			c.failed, c.errors = min(random.IntN(4), c.checks), min(random.IntN(5), c.requests)
			if c.up() {
				up++
			}
			s.Write.Minute.Create().SetID(last - minutes + i).SetChecks(c.checks).SetFailed(c.failed).SetRequests(c.requests).SetErrors(c.errors).ExecX(t.Context())
		}
		if down, err := Down(t.Context(), s, now, minutes); err != nil || down != minutes-up || up < 30 || up > 270 {
			t.Errorf("got %d of %d minutes unavailable, %v, want %d", down, minutes, err, minutes-up)
		}
	})
}
