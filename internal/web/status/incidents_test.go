package status

import (
	"encoding/xml"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"palmares/ent"
	"palmares/internal/core/atomxml"
	"palmares/internal/core/lang"
	"palmares/internal/core/store"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
)

// record writes minutes from start on: "+" is up, "-" is down, " " is missing,
// as when no server runs.
func record(t *testing.T, s *store.Store, start time.Time, minutes string) {
	t.Helper()
	var rows []*ent.MinuteCreate
	for i, minute := range minutes {
		if minute != ' ' {
			failed := strings.Count(string(minute), "-")
			rows = append(rows, s.Write.Minute.Create().SetID(minuteOf(start)+i).SetChecks(30).SetFailed(failed))
		}
	}
	for batch := range slices.Chunk(rows, 1000) {
		s.Write.Minute.CreateBulk(batch...).ExecX(t.Context())
	}
}

// lastOutages returns the outages of the shown days and the total of these days.
func lastOutages(t *testing.T, s *store.Store, now time.Time) ([]outage, Day) {
	t.Helper()
	days, total, err := readDays(t.Context(), s, now, shownDays)
	check.OK(t, err)
	outages, err := readOutages(t.Context(), s, days)
	check.OK(t, err)
	return outages, total
}

func getFeed(t *testing.T, p *Page) (*httptest.ResponseRecorder, atomxml.Feed) {
	t.Helper()
	w := httptest.NewRecorder()
	p.ServeFeed(w, httptest.NewRequest(http.MethodGet, FeedPath, nil))
	var feed atomxml.Feed
	if err := xml.Unmarshal(w.Body.Bytes(), &feed); w.Code != 200 || err != nil || w.Header().Get("Content-Type") != "application/atom+xml; charset=utf-8" {
		t.Fatalf("got %d %v %s, want an Atom feed", w.Code, w.Header(), w.Body)
	}
	return w, feed
}

func TestIncidents(t *testing.T) {
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		noon := time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)
		for minutes, want := range map[string]string{
			"":                        "",
			"++++":                    "",
			"+-+":                     "", // too short
			"+--+":                    "12:01-12:03: 2 minutes",
			"+  +":                    "12:01-12:03: 2 minutes", // no server
			"+- -+":                   "12:01-12:04: 3 minutes",
			"--+":                     "12:00-12:02: 2 minutes", // the first minutes ever
			"+--":                     "12:01-12:03: 2 minutes", // healthy since then
			"+-+++++-+":               "12:01-12:08: 2 minutes", // one incident
			"+--++++++--+":            "12:09-12:11: 2 minutes, 12:01-12:03: 2 minutes",
			"+--++++++-+":             "12:01-12:03: 2 minutes",
			"+" + spaces(61) + "+":    "12:01-13:02: 1 h 1 min",
			"-" + spaces(2) + "+--++": "12:00-12:06: 5 minutes",
		} {
			s.Write.Minute.Delete().ExecX(t.Context())
			record(t, s, noon, minutes)
			now := noon.Add(time.Duration(len(minutes))*time.Minute + writeDelay)
			outages, _ := lastOutages(t, s, now)
			var got []string
			for _, i := range incidents(outages, time.Time{}, now) {
				got = append(got, i.Start.Format("15:04-")+i.End.Format("15:04: ")+i.downtime(lang.English))
			}
			check.Equal(t, strings.Join(got, ", "), want, "%q", minutes)
		}
	})
}

func spaces(n int) string { return strings.Repeat(" ", n) }

// The minutes of the feed agree with those of the bars.
func TestIncidentsAgreeWithDays(t *testing.T) {
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		start := time.Date(2026, 11, 14, 22, 0, 0, 0, time.UTC)
		record(t, s, start, strings.Repeat("++-- ++-   +-", 20))
		now := start.Add(5 * time.Hour)
		outages, total := lastOutages(t, s, now)
		down := 0
		for i, o := range outages {
			if i > 0 && o.start <= outages[i-1].end {
				t.Errorf("got outages %v and %v, want one, over midnight", outages[i-1], o)
			}
			down += o.end - o.start
		}
		if total.Minutes-total.Up != down || down == 0 {
			t.Errorf("got %d minutes down in outages, want those of the days, %+v", down, total)
		}
	})
}

// An incident that began before the shown days would have another id each day.
func TestIncidentBeforeShownDays(t *testing.T) {
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		now := time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)
		from := minuteOf(now.Truncate(24*time.Hour).AddDate(0, 0, 1-shownDays))
		record(t, s, timeOf(from-3), "+-----+--+")
		record(t, s, now.Add(-time.Minute-writeDelay), "+")
		outages, _ := lastOutages(t, s, now)
		if len(outages) == 0 || outages[0].start != from+4 {
			t.Errorf("got %v, want the outage from minute %d on first", outages, from+4)
		}
	})
}

// An outage of the database is in the feed while it lasts, and has the same id
// when it is over.
func TestFeedDuringOutage(t *testing.T) {
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		at := &fakeClock{Time: time.Date(2026, 11, 15, 23, 40, 0, 0, time.UTC)}
		var failure error
		r := newRecorder(s, at, &failure)
		cfg := Config{Service: service, Store: s, DownSince: r.DownSince}
		cfg.PublicURL = "https://palmares.example"
		p := NewPage(cfg)
		p.now = at.now
		run := func(d time.Duration, written bool) {
			for end := at.elapsed + d; at.elapsed < end; at.pass(30 * time.Second) {
				if r.check(t.Context()); written {
					r.write(t.Context(), false)
				}
			}
		}
		expect := func(what, caching, state string, entries ...string) {
			t.Helper()
			w, feed := getFeed(t, p)
			var got []string
			for _, e := range feed.Entries {
				got = append(got, fmt.Sprint(e.ID, " ", e.Updated.Format(time.RFC3339), " ", e.Title, ": ", e.Content.Text))
			}
			check.Slices(t, got, entries, what)
			check.Equal(t, w.Header().Get("Cache-Control"), caching, what)
			html := httptest.NewRecorder()
			p.ServeHTTP(html, httptest.NewRequest(http.MethodGet, Path, nil))
			if body := html.Body.String(); !strings.Contains(body, "<strong>"+state+"</strong>") || strings.Count(body, `role="status"`) != 1 || !strings.Contains(body, `<a href="/feeds/status.atom">`) {
				t.Errorf("%s: got %s, want %s and a link to the feed", what, body, state)
			}
			check.Contains(t, html.Header().Get("Link"), `</feeds/status.atom>; rel="alternate"`, "%s: Link", what)
		}
		run(10*time.Minute, true)
		expect("before", "public, max-age=30", "All systems operational.")
		failure = errors.New("lost")
		run(time.Minute, false)
		expect("after a minute", "no-store", "The database is unavailable at the moment.",
			"tag:palmares.example,2026:status/2026-11-15T23:50Z 2026-11-15T23:50:00Z Ongoing: unavailable since 2026-11-15 23:50 UTC: Start: 2026-11-15 23:50 UTC\nEnd: ongoing\n"+incidentMessage)
		run(2*time.Minute, false)
		expect("after three minutes", "no-store", "The database is unavailable at the moment.",
			"tag:palmares.example,2026:status/2026-11-15T23:50Z 2026-11-15T23:50:00Z Ongoing: unavailable since 2026-11-15 23:50 UTC: Start: 2026-11-15 23:50 UTC\nEnd: ongoing\n"+incidentMessage)
		failure = nil
		run(2*time.Minute, true)
		resolved := "tag:palmares.example,2026:status/2026-11-15T23:50Z 2026-11-15T23:53:00Z Resolved: unavailable for 3 minutes: Start: 2026-11-15 23:50 UTC\nEnd: 2026-11-15 23:53 UTC\n" + incidentMessage
		expect("when it is over", "public, max-age=30", "Availability is below target today.", resolved)
		run(15*time.Minute, true)
		expect("on the next day", "public, max-age=30", "All systems operational.", resolved)

		s.Close()
		w := httptest.NewRecorder()
		NewPage(cfg).ServeFeed(w, httptest.NewRequest(http.MethodGet, FeedPath, nil))
		if body := w.Body.String(); w.Code != 503 || !strings.Contains(body, `"error"`) || strings.Contains(body, "closed") || w.Header().Get("Retry-After") == "" {
			t.Errorf("without a database: got %d %s, want 503", w.Code, body)
		}
		w = httptest.NewRecorder()
		p.ServeFeed(w, httptest.NewRequest(http.MethodPost, FeedPath, nil))
		check.Equal(t, w.Code, 405, "POST: %v", w.Header())
		check.Equal(t, w.Header().Get("Allow"), "GET, HEAD", "POST: %v", w.Header())
	})
}
