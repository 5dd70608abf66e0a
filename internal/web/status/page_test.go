package status

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"palmares/internal/core/lang"
	"palmares/internal/core/store"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
	"palmares/internal/web/page"
)

func TestPercent(t *testing.T) {
	for day, want := range map[Day]string{
		{}: "no data", {Minutes: 1440, Up: 1440}: "100%", {Minutes: 129600, Up: 129599}: "99.99%",
		{Minutes: 1440, Up: 1439}: "99.93%", {Minutes: 100}: "0.00%",
	} {
		check.Equal(t, day.percent(lang.English), want, "%+v", day)
	}
}

var service = page.Service{ServiceName: "palmares", Credit: "Source : palmares", Log: quiet}

func TestBudgetLeft(t *testing.T) {
	for day, want := range map[Day]int{{Minutes: 50, Up: 50}: 0, {Minutes: 50, Up: 49}: -1, {Minutes: 10_000, Up: 9_990}: 90, {Minutes: 10_000, Up: 9_800}: -100} {
		check.Equal(t, day.BudgetLeft(), want, "%+v: minutes left", day)
	}
}

func neverDown() time.Time { return time.Time{} }

func TestPage(t *testing.T) {
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		at := &fakeClock{Time: time.Date(2026, 11, 15, 0, 10, 0, 0, time.UTC)}
		var downSince time.Time
		p := NewPage(Config{Service: service, Store: s, DownSince: func() time.Time { return downSince }})
		p.now = at.now
		get := func() *httptest.ResponseRecorder {
			w := httptest.NewRecorder()
			p.ServeHTTP(w, httptest.NewRequest(http.MethodGet, Path, nil))
			return w
		}
		if got := get(); got.Code != 200 || !strings.Contains(got.Body.String(), "There is no data yet") {
			t.Errorf("got %d %s, want a page without data", got.Code, got.Body)
		}
		s.Write.Minute.Create().SetID(minuteOf(at.Time) - 2).SetChecks(10).SetFailed(0).ExecX(t.Context())
		s.Write.Minute.Create().SetID(minuteOf(at.Time) - 1).SetChecks(10).SetFailed(9).ExecX(t.Context())
		at.Time = at.Add(freshFor)
		body := get().Body.String()
		for _, text := range []string{"<strong>50.00%</strong>", "15\u00a0Nov\u00a02026 · 50.00%", "Monitoring started today. The target is 99%", ">100%</text>"} {
			check.Contains(t, body, text)
		}
		// The table lists the value of each bar.
		row := `<tr><th scope="row"><time datetime="2026-11-15">` + "15\u00a0Nov\u00a02026" + `</time></th><td class="number">50.00%</td></tr>`
		const bar, drawings = `<rect class="poor"`, 4 // for windows of different widths
		check.Contains(t, body, row)
		check.Contains(t, body, bar)
		check.Equal(t, strings.Count(body, `<rect class="grid"`), drawings*(shownDays-1), "bars of days without data")
		check.Contains(t, body, `<li class="grid">no data</li>`)
		check.True(t, !strings.Contains(body, "Today: "), "got the availability of the first day twice")
		check.Contains(t, body, `<figure class="figure">`) // the style sheet shows one of its drawings
		if rows, bars := strings.Count(body, `<tr><th scope="row">`), strings.Count(body, bar); rows != shownDays || bars != drawings {
			t.Errorf("got %d rows and %d bars, want %d and %d", rows, bars, shownDays, drawings)
		}
		s.Close()
		downSince = at.Time
		at.Time = at.Add(time.Hour)
		got := get()
		if text := got.Body.String(); got.Code != 200 || !strings.Contains(text, row) || !strings.Contains(text, "The database is unavailable") ||
			!strings.Contains(text, "15\u00a0November\u00a02026, 00:10\u00a0UTC") || got.Header().Get("Cache-Control") != "no-store" {
			t.Errorf("without a database: got %d %s, want the last snapshot", got.Code, text)
		}
	})
}

// Errors are shown as pages too.
func TestErrorPage(t *testing.T) {
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		p := NewPage(Config{Service: service, Store: s, DownSince: neverDown})
		s.Close()
		for method, want := range map[string]struct {
			status int
			text   string
		}{
			http.MethodGet:  {503, "Our database is unavailable at the moment"},
			http.MethodPost: {405, "The method POST is not allowed"},
		} {
			w := httptest.NewRecorder()
			p.ServeHTTP(w, httptest.NewRequest(method, Path, nil))
			if w.Code != want.status || w.Header().Get("Content-Type") != "text/html; charset=utf-8" || w.Header().Get("Cache-Control") != "no-store" {
				t.Errorf("%s: got %d %v, want %d and HTML", method, w.Code, w.Header(), want.status)
			}
			if body := w.Body.String(); !strings.Contains(body, want.text) || !strings.Contains(body, "<nav") || strings.Contains(body, "closed") {
				t.Errorf("%s: got %s, want %q", method, body, want.text)
			}
			check.Equal(t, (w.Header().Get("Retry-After") != ""), (want.status == 503), "%s: %q %d", method, w.Header().Get("Retry-After"), want.status)
		}
	})
}

// Callers cannot fill the log with errors.
func TestUnacceptableEncoding(t *testing.T) {
	log := &testkit.Log{}
	p := NewPage(Config{Service: service, Store: testkit.Open(t, testkit.SQLite(t)), DownSince: neverDown})
	p.Log = slog.New(slog.NewTextHandler(log, nil))
	r, w := httptest.NewRequest(http.MethodGet, Path, nil), httptest.NewRecorder()
	r.Header.Set("Accept-Encoding", "identity;q=0")
	if p.ServeHTTP(w, r); w.Code != http.StatusNotAcceptable || log.String() != "" {
		t.Errorf("got %d and the log %q, want 406 and nothing", w.Code, log)
	}
}

// A snapshot from a clock that was a year ahead is replaced once the clock is
// right.
func TestPageAfterWrongClock(t *testing.T) {
	s := testkit.Open(t, testkit.SQLite(t))
	at := &fakeClock{Time: time.Date(2027, 11, 15, 12, 0, 0, 0, time.UTC)}
	p := NewPage(Config{Service: service, Store: s, DownSince: neverDown})
	p.now = at.now
	if _, err := p.read(); err != nil {
		t.Fatal(err)
	}
	at.Time = at.AddDate(-1, 0, 0)
	w := httptest.NewRecorder()
	p.ServeHTTP(w, httptest.NewRequest("GET", Path, nil))
	s.Write.Minute.Create().SetID(minuteOf(at.Time) - 2).SetChecks(30).SetFailed(0).ExecX(t.Context())
	at.pass(freshFor)
	w = httptest.NewRecorder()
	p.ServeHTTP(w, httptest.NewRequest("GET", Path, nil))
	check.Contains(t, w.Body.String(), "since 15\u00a0Nov\u00a02026", "want days until today")
}
