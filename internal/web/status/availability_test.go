package status

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"palmares/ent/minute"
	"palmares/internal/core/store"
	"palmares/internal/dev/testkit"
)

var quiet = slog.New(slog.DiscardHandler)

// clock is a recorder's, and a page's. Its time elapses as it is moved, or
// jumps as it is set.
type clock struct {
	mu sync.Mutex // a read that was given up may still look at it
	time.Time
	elapsed time.Duration
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.Time
}

func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.Time = c.Add(d)
	c.elapsed += d
}

// newRecorder has a clock of the test's, and a database that fails as the test
// wants.
func newRecorder(s *store.Store, c *clock, failure *error) *Recorder {
	r := NewRecorder(s, quiet)
	r.probeTime = time.Minute // for a busy machine
	r.clock = &steadyClock{wall: c.now, elapsed: func() time.Duration { return c.elapsed }}
	read := r.read
	r.read = func(ctx context.Context) error {
		if *failure != nil {
			return *failure
		}
		return read(ctx)
	}
	return r
}

// checkFor checks as often as a running server does, and writes.
func checkFor(t *testing.T, c *clock, d time.Duration, recorders ...*Recorder) {
	t.Helper()
	for end := c.elapsed + d; c.elapsed < end; c.pass(30 * time.Second) {
		for _, r := range recorders {
			r.check(t.Context())
			r.write(t.Context(), false)
		}
	}
}

func TestMinutes(t *testing.T) {
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		at := &clock{Time: time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)}
		var failure error
		one, two := newRecorder(s, at, &failure), newRecorder(s, at, &failure)

		// Two servers for two minutes, one of them in a third, which fails once.
		checkFor(t, at, 2*time.Minute, one, two)
		failure = errors.New("lost")
		one.check(t.Context())
		if one.Healthy() || !two.Healthy() {
			t.Errorf("got %v and %v, want the first to be unhealthy", one.Healthy(), two.Healthy())
		}
		failure = nil
		checkFor(t, at, time.Minute, one)
		if !one.Healthy() {
			t.Error("got unhealthy, want healthy")
		}
		// Nothing runs for a minute, and then one again.
		at.pass(time.Minute)
		checkFor(t, at, time.Minute, one)
		one.write(t.Context(), true)
		at.pass(writtenBy)

		all, whole, err := days(t.Context(), s, at.Time)
		if err != nil {
			t.Fatal(err)
		}
		today := all[len(all)-1]
		if len(all) != shownDays || today.Minutes != 5 || today.Good != 3 {
			t.Errorf("got %+v of %d days, want 3 good minutes of 5", today, len(all))
		}
		if whole != (Day{Minutes: 5, Good: 3}) || whole.Percent() != "60.00\u00a0%" {
			t.Errorf("got %+v, %s, want 3 good minutes of 5", whole, whole.Percent())
		}
		if _, week, err := lastDays(t.Context(), s, at.Time, 7); err != nil || week != whole {
			t.Errorf("got %+v, %v for a week, want %+v", week, err, whole)
		}
		if all[0].Known() || all[0].Percent() != "not known" || all[0].Date.Format(time.DateOnly) != "2026-08-18" {
			t.Errorf("got %+v for the first day, want it to be unknown", all[0])
		}
		if row := s.Read.Minute.Query().Order(minute.ByID()).FirstX(t.Context()); row.Requests != 4 || row.Failed != 0 {
			t.Errorf("got %d checks, %d failed, want 4 of both servers", row.Requests, row.Failed)
		}

		// A day later the rest of today counts as down.
		all, _, err = days(t.Context(), s, at.AddDate(0, 0, 1))
		if err != nil || all[shownDays-2].Minutes != 12*60 || all[shownDays-2].Good != 3 || all[shownDays-1].Good != 0 {
			t.Errorf("got %+v, %v for yesterday, want 3 good minutes of 720", all[shownDays-2], err)
		}
	})
}

// Minutes that cannot be written are written later.
func TestMinutesWait(t *testing.T) {
	s := testkit.Open(t, testkit.SQLite(t))
	at := &clock{Time: time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)}
	var failure error
	r := newRecorder(s, at, &failure)
	checks := func(times int) {
		for range times {
			r.check(t.Context())
		}
	}
	checks(3)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	r.write(ended, true)
	checks(2)
	r.write(t.Context(), true)
	if row := s.Read.Minute.Query().OnlyX(t.Context()); row.Requests != 5 {
		t.Errorf("got %d checks, want 5", row.Requests)
	}
	// At the end, the minute that is not over is written, too.
	checks(1)
	r.Run(ended)
	if row := s.Read.Minute.Query().OnlyX(t.Context()); row.Requests != 6 {
		t.Errorf("got %d checks at the end, want 6", row.Requests)
	}
	// Only so many wait.
	for i := range mostWaiting + 10 {
		r.minutes[i+1] = &counts{1, 0}
	}
	r.write(ended, true)
	if _, oldest := r.minutes[11]; len(r.minutes) != mostWaiting || !oldest {
		t.Errorf("got %d minutes that wait, want %d", len(r.minutes), mostWaiting)
	}
}

func TestPercent(t *testing.T) {
	for day, want := range map[Day]string{
		{}: "not known", {Minutes: 1440, Good: 1440}: "100\u00a0%", {Minutes: 129600, Good: 129599}: "99.99\u00a0%",
		{Minutes: 1440, Good: 1439}: "99.93\u00a0%", {Minutes: 100}: "0.00\u00a0%",
	} {
		if got := day.Percent(); got != want {
			t.Errorf("%+v is %s", day, got)
		}
	}
}

func TestPage(t *testing.T) {
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		at := &clock{Time: time.Date(2026, 11, 15, 0, 10, 0, 0, time.UTC)}
		p := NewPage(Config{ServiceName: "palmares", Credit: "Source : palmares", Store: s, Log: quiet})
		p.now = at.now
		get := func() *httptest.ResponseRecorder {
			w := httptest.NewRecorder()
			p.ServeHTTP(w, httptest.NewRequest(http.MethodGet, Path, nil))
			return w
		}
		if got := get(); got.Code != 200 || !strings.Contains(got.Body.String(), "The first minute is not over yet") {
			t.Errorf("at first: %d %s", got.Code, got.Body)
		}
		s.Write.Minute.Create().SetID(minuteOf(at.Time) - 2).SetRequests(10).SetFailed(0).ExecX(t.Context())
		s.Write.Minute.Create().SetID(minuteOf(at.Time) - 1).SetRequests(10).SetFailed(9).ExecX(t.Context())
		at.Time = at.Add(freshFor)
		body := get().Body.String()
		for _, text := range []string{"<strong>50.00\u00a0%</strong>", `class="bad"`, "2026-11-15: 50.00\u00a0%", "the target is 99\u00a0%"} {
			if !strings.Contains(body, text) {
				t.Errorf("the page does not say %q", text)
			}
		}
		// The table tells what each bar shows.
		row := `<tr><th scope="row"><time datetime="2026-11-15">2026-11-15</time></th><td class="number">50.00 %</td></tr>`
		bar := `<rect class="bad" x="890" y="40" width="7" height="40" rx="1">`
		if !strings.Contains(body, row) || !strings.Contains(body, bar) {
			t.Errorf("today is not drawn and told: %s", body)
		}
		if rows, bars := strings.Count(body, `<tr><th scope="row">`), strings.Count(body, "<rect "); rows != shownDays || bars != shownDays {
			t.Errorf("%d rows and %d bars", rows, bars)
		}
		s.Close()
		at.Time = at.Add(time.Hour)
		got := get()
		if text := got.Body.String(); got.Code != 200 || !strings.Contains(text, row) || !strings.Contains(text, "The database is unavailable") ||
			!strings.Contains(text, "2026-11-15 00:10 UTC") || got.Header().Get("Cache-Control") != "no-store" {
			t.Errorf("got %d %s without a database, want what was read before", got.Code, text)
		}
	})
}

// Nobody gets a program's answer while the database is away from the start.
func TestPageOfTrouble(t *testing.T) {
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		p := NewPage(Config{ServiceName: "palmares", Credit: "Source : palmares", Store: s, Log: quiet})
		s.Close()
		for method, want := range map[string]struct {
			status int
			text   string
		}{
			http.MethodGet:  {503, "Our database is unavailable at the moment"},
			http.MethodPost: {405, "It does nothing with POST"},
		} {
			w := httptest.NewRecorder()
			p.ServeHTTP(w, httptest.NewRequest(method, Path, nil))
			if w.Code != want.status || w.Header().Get("Content-Type") != "text/html; charset=utf-8" || w.Header().Get("Cache-Control") != "no-store" {
				t.Errorf("%s: %d %v", method, w.Code, w.Header())
			}
			if body := w.Body.String(); !strings.Contains(body, want.text) || !strings.Contains(body, "<nav") || strings.Contains(body, "closed") {
				t.Errorf("%s says %s", method, body)
			}
			if (w.Header().Get("Retry-After") != "") != (want.status == 503) {
				t.Errorf("%s: come back after %q", method, w.Header().Get("Retry-After"))
			}
		}
	})
}
