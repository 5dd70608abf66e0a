package status

import (
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"palmares/ent"
	"palmares/internal/core/store"
	"palmares/internal/dev/testkit"
)

// A clock that jumps for a moment, by however much, changes nothing; one that
// is wrong for hours costs the minutes of these hours and no others.
func TestClockJumps(t *testing.T) {
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		begin := time.Date(2026, 11, 15, 0, 0, 0, 0, time.UTC)
		var failure error
		const hour = 60 // minutes
		for _, jump := range []time.Duration{3 * time.Hour, -3 * time.Hour, 365 * 24 * time.Hour, -365 * 24 * time.Hour} {
			s.Write.Minute.Delete().ExecX(t.Context())
			at := &clock{Time: begin}
			r := newRecorder(s, at, &failure)
			want := func(what string, minutes, good, tolerance int) {
				t.Helper()
				r.write(t.Context(), true)
				_, whole, err := days(t.Context(), s, at.Add(writtenBy))
				if err != nil || whole.Minutes != minutes || whole.Good < good-tolerance || whole.Good > good+tolerance {
					t.Errorf("%s, %s: got %+v, %v, want %d good minutes of %d", jump, what, whole, err, good, minutes)
				}
			}
			checkFor(t, at, 5*time.Hour, r)
			want("before", 5*hour, 5*hour, 0)

			at.Time = at.Add(jump)
			checkFor(t, at, 4*time.Minute, r)
			at.Time = at.Add(-jump)
			checkFor(t, at, 56*time.Minute, r)
			want("for a moment", 6*hour, 6*hour, 0)

			at.Time = at.Add(jump)
			checkFor(t, at, time.Hour, r)
			at.Time = at.Add(-jump)
			checkFor(t, at, time.Hour, r)
			if n := len(r.minutes); n > 1 {
				t.Errorf("%s: got %d minutes in memory, want at most 1", jump, n)
			}
			want("for an hour", 8*hour, 7*hour, 10)
		}
	})
}

// Minutes of another year are neither shown nor counted, and replace none.
func TestMinutesOfAnotherYear(t *testing.T) {
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		now := time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)
		create := func(at time.Time) {
			s.Write.Minute.Create().SetID(minuteOf(at)).SetRequests(30).SetFailed(0).ExecX(t.Context())
		}
		for i := range 60 {
			create(now.Add(time.Duration(i-60) * time.Minute))
		}
		create(now.AddDate(-1, 0, 0))
		create(now.AddDate(1, 0, 0))
		_, whole, err := days(t.Context(), s, now.Add(writtenBy))
		if err != nil || whole != (Day{Minutes: 60, Good: 60}) {
			t.Errorf("got %+v, %v, want 60 good minutes of 60", whole, err)
		}
		err = s.Update(t.Context(), func(tx *ent.Tx) error { return prune(t.Context(), tx, 62) })
		if n := s.Read.Minute.Query().CountX(t.Context()); err != nil || n != 62 {
			t.Errorf("got %d minutes, %v, want 62", n, err)
		}
		err = s.Update(t.Context(), func(tx *ent.Tx) error { return prune(t.Context(), tx, 61) })
		if n := s.Read.Minute.Query().CountX(t.Context()); err != nil || n != 61 {
			t.Errorf("got %d minutes, %v, want 61", n, err)
		}
		if _, whole, err = days(t.Context(), s, now.Add(writtenBy)); err != nil || whole.Good != 60 {
			t.Errorf("got %+v, %v, want 60 good minutes", whole, err)
		}
	})
}

// A recorder that starts with a clock a year ahead deletes no history.
func TestStartWithAWrongClock(t *testing.T) {
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		at := &clock{Time: time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)}
		var failure error
		checkFor(t, at, 10*time.Minute, newRecorder(s, at, &failure))
		real := at.Time
		at.Time = at.AddDate(1, 0, 0)
		ahead := newRecorder(s, at, &failure)
		checkFor(t, at, 10*time.Minute, ahead)
		ahead.write(t.Context(), true)
		if _, whole, err := days(t.Context(), s, real.Add(writtenBy)); err != nil || whole.Good < 9 || whole.Good != whole.Minutes-1 && whole.Good != whole.Minutes {
			t.Errorf("got %+v, %v, want the minutes from before", whole, err)
		}
	})
}

// A page that was read by a clock of next year is read again when that is set
// right.
func TestPageOfAnotherYear(t *testing.T) {
	s := testkit.Open(t, testkit.SQLite(t))
	at := &clock{Time: time.Date(2027, 11, 15, 12, 0, 0, 0, time.UTC)}
	p := NewPage(Config{ServiceName: "palmares", Store: s, Log: quiet})
	p.now = at.now
	if _, err := p.read(t.Context()); err != nil {
		t.Fatal(err)
	}
	at.Time = at.AddDate(-1, 0, 0)
	w := httptest.NewRecorder()
	p.ServeHTTP(w, httptest.NewRequest("GET", Path, nil))
	s.Write.Minute.Create().SetID(minuteOf(at.Time) - 2).SetRequests(30).SetFailed(0).ExecX(t.Context())
	at.pass(freshFor)
	w = httptest.NewRecorder()
	p.ServeHTTP(w, httptest.NewRequest("GET", Path, nil))
	if !strings.Contains(w.Body.String(), "since 2026-11-15") {
		t.Errorf("got %s, want the days until today", w.Body)
	}
}
