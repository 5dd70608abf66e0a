package availability

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"palmares/internal/middleware"
	"palmares/internal/store"
	"palmares/internal/testdb"
	"palmares/internal/testdb/wait"
)

var quiet = slog.New(slog.DiscardHandler)

// clock is a recorder's, and a page's.
type clock struct{ time.Time }

func (c *clock) now() time.Time { return c.Time }

func observe(r *Recorder, path string, status, times int) {
	for range times {
		r.Observe(middleware.Observed{Request: httptest.NewRequest("GET", path, nil), Status: status})
	}
}

func TestMinutes(t *testing.T) {
	testdb.EachStore(t, func(t *testing.T, s *store.Store) {
		at := &clock{time.Date(2026, 11, 15, 12, 0, 30, 0, time.UTC)}
		one, two := NewRecorder(s, quiet), NewRecorder(s, quiet)
		one.now, two.now = at.now, at.now

		// Two servers in one minute, which is good together.
		observe(one, "/api/v1/tools", 200, 150)
		observe(two, "/graphql", 503, 1)
		observe(two, "/graphql", 404, 49)
		observe(one, "/readyz", 503, 100) // a probe is nobody's request
		at.Time = at.Add(time.Minute)
		one.write(t.Context(), minuteOf(at.Time))
		two.write(t.Context(), minuteOf(at.Time))

		// A bad one, one without a server, a silent one.
		observe(one, "/", 200, 10)
		observe(one, "/", 500, 1)
		at.Time = at.Add(2 * time.Minute)
		one.at(minuteOf(at.Time))
		at.Time = at.Add(time.Minute)
		one.write(t.Context(), minuteOf(at.Time))

		all, whole, err := days(t.Context(), s, at.Time)
		if err != nil {
			t.Fatal(err)
		}
		if _, week, err := lastDays(t.Context(), s, at.Time, 7); err != nil || week != whole || week.Share() != 0.5 {
			t.Errorf("a week: %+v %v", week, err)
		}
		today := all[len(all)-1]
		if len(all) != shownDays || today.Minutes != 4 || today.Good != 2 || today.Requests != 211 || today.Failed != 2 {
			t.Errorf("today: %+v of %d days", today, len(all))
		}
		if whole != (Day{Minutes: 4, Good: 2, Requests: 211, Failed: 2}) || whole.Percent() != "50.00\u00a0%" {
			t.Errorf("together: %+v, %s", whole, whole.Percent())
		}
		if all[0].Known() || all[0].Percent() != "not known" || all[0].Date.Format(time.DateOnly) != "2026-08-18" {
			t.Errorf("the first day: %+v", all[0])
		}

		// A day later the rest of today counts as down, and in time all is
		// forgotten.
		all, _, err = days(t.Context(), s, at.AddDate(0, 0, 1))
		if err != nil || all[shownDays-2].Minutes != 12*60 || all[shownDays-2].Good != 2 || all[shownDays-1].Good != 0 {
			t.Errorf("yesterday: %+v, %v", all[shownDays-2], err)
		}
		at.Time = at.AddDate(0, 0, keptDays+1)
		one.at(minuteOf(at.Time))
		at.Time = at.Add(time.Minute)
		one.write(t.Context(), minuteOf(at.Time))
		if n := s.Read.Minute.Query().CountX(t.Context()); n != 1 {
			t.Errorf("%d minutes are kept", n)
		}
	})
}

// What cannot be written is not lost.
func TestMinutesWait(t *testing.T) {
	s := testdb.Open(t, testdb.SQLite(t))
	at := &clock{time.Date(2026, 11, 15, 12, 0, 30, 0, time.UTC)}
	r := NewRecorder(s, quiet)
	r.now = at.now
	observe(r, "/", 200, 3)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	r.write(ended, minuteOf(at.Time)+1)
	observe(r, "/", 200, 2)
	r.write(t.Context(), minuteOf(at.Time)+1)
	if row := s.Read.Minute.Query().OnlyX(t.Context()); row.Requests != 5 {
		t.Errorf("kept: %+v", row)
	}
	// At the end, also the minute that is not over is written.
	observe(r, "/", 200, 1)
	r.Run(ended)
	if row := s.Read.Minute.Query().OnlyX(t.Context()); row.Requests != 6 {
		t.Errorf("kept at the end: %+v", row)
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
	testdb.EachStore(t, func(t *testing.T, s *store.Store) {
		at := &clock{time.Date(2026, 11, 15, 0, 10, 0, 0, time.UTC)}
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
		for _, text := range []string{"<strong>50.00\u00a0%</strong>", "20 requests, 9 failed", `class="bad"`, "2026-11-15: 50.00\u00a0%", "the target is 99\u00a0%"} {
			if !strings.Contains(body, text) {
				t.Errorf("the page does not say %q", text)
			}
		}
		// The table tells what each bar shows.
		row := `<tr><th scope="row"><time datetime="2026-11-15">2026-11-15</time></th><td class="number">50.00 %</td><td class="number">20</td><td class="number">9</td></tr>`
		bar := `<rect class="bad" x="890" y="40" width="7" height="40" rx="1">`
		if !strings.Contains(body, row) || !strings.Contains(body, bar) {
			t.Errorf("today is not drawn and told: %s", body)
		}
		if rows, bars := strings.Count(body, `<tr><th scope="row">`), strings.Count(body, "<rect "); rows != shownDays || bars != shownDays {
			t.Errorf("%d rows and %d bars", rows, bars)
		}
		s.Close()
		at.Time = at.Add(time.Hour)
		if got := get(); got.Code != 200 || got.Body.String() != body {
			t.Errorf("without a database: %d", got.Code)
		}
	})
}

// Nobody gets a program's answer while the database is away from the start.
func TestPageOfTrouble(t *testing.T) {
	testdb.EachStore(t, func(t *testing.T, s *store.Store) {
		p := NewPage(Config{ServiceName: "palmares", Credit: "Source : palmares", Store: s, Log: quiet})
		s.Close()
		for method, want := range map[string]struct {
			status int
			text   string
		}{
			http.MethodGet:  {503, "Our database does not answer at the moment"},
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

// A database that hangs holds up one visitor, not a queue of them.
func TestPageWhileTheDatabaseHangs(t *testing.T) {
	s := testdb.Open(t, testdb.SQLite(t))
	at := &clock{time.Date(2026, 11, 15, 0, 10, 0, 0, time.UTC)}
	p := NewPage(Config{ServiceName: "palmares", Store: s, Log: quiet})
	p.now = at.now
	if _, err := p.read(t.Context()); err != nil {
		t.Fatal(err)
	}
	at.Time = at.Add(time.Hour)
	p.reading.Lock() // somebody waits for the database
	defer p.reading.Unlock()
	done := make(chan error)
	go func() {
		_, err := p.read(t.Context())
		done <- err
	}()
	if err := wait.Receive(t, "whoever comes later does not wait", done); err != nil {
		t.Error(err)
	}
}
