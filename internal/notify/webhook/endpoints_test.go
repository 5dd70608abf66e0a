package webhook

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"palmares/auth"
	"palmares/ent/endpoint"
	"palmares/internal/catalog/journal"
	"palmares/internal/core/problem"
	"palmares/internal/core/store"
	"palmares/internal/dev/testkit"
)

func TestAtMostTen(t *testing.T) {
	t.Parallel()
	testkit.EachStore(t, func(t *testing.T, db *store.Store) {
		s := newSite(t, db)
		var all sync.WaitGroup
		var mu sync.Mutex
		refused := 0
		for range 20 {
			all.Go(func() {
				_, err := s.Add(t.Context(), s.owner, Wish{URL: "https://hooks.example"})
				if err == nil {
					return
				}
				mu.Lock()
				defer mu.Unlock()
				refused++
				if problem.Of(err).Code != problem.BadInput {
					t.Error(err)
				}
			})
		}
		all.Wait()
		list, err := s.List(t.Context(), s.owner)
		if err != nil || len(list) != MostEndpoints || refused != 10 {
			t.Errorf("%d are there, %d were refused, %v", len(list), refused, err)
		}
	})
}

func TestWishes(t *testing.T) {
	t.Parallel()
	s := newSite(t, testkit.Open(t, testkit.SQLite(t)))
	many := make([]string, maxCategories+1)
	for i := range many {
		many[i] = fmt.Sprint("c", i)
	}
	for _, wrong := range []Wish{
		{URL: "https://hooks.example", Types: []string{"tool.exploded"}},
		{URL: "https://hooks.example", Types: []string{TestType}},
		{URL: "https://hooks.example", Categories: []string{"Code"}},
		{URL: "https://hooks.example", Categories: []string{""}},
		{URL: "https://hooks.example", Categories: []string{"a' OR 1=1"}},
		{URL: "https://hooks.example", Categories: []string{strings.Repeat("a", 81)}},
		{URL: "https://hooks.example", Categories: many},
		{URL: "http://hooks.example"},
	} {
		if _, err := s.Add(t.Context(), s.owner, wrong); problem.Of(err).Code != problem.BadInput {
			t.Errorf("%v: %v", wrong, err)
		}
	}
	e := s.add(Wish{URL: "https://hooks.example", Types: []string{"tool.updated", "tool.created", "tool.updated"}, Categories: []string{"voix", "code"}})
	if !slices.Equal(e.Types, []string{"tool.created", "tool.updated"}) || !slices.Equal(e.Categories, []string{"code", "voix"}) {
		t.Error(e)
	}
	free, err := auth.NewAccounts(s.Store).Create(t.Context(), "free@example.com", auth.Developer)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Add(t.Context(), free, Wish{URL: "https://hooks.example"}); problem.Of(err).Code != problem.Forbidden {
		t.Error(err)
	}
	if _, err := s.Find(t.Context(), free, e.ID); problem.Of(err).Code != problem.NotFound {
		t.Errorf("somebody else's is found: %v", err)
	}
}

// Nothing piles up for who does not pay, and what is new comes when they do.
func TestPlanEnds(t *testing.T) {
	t.Parallel()
	testkit.EachStore(t, func(t *testing.T, db *store.Store) {
		s := newSite(t, db)
		s.stopClock()
		accounts := auth.NewAccounts(db)
		r := newReceiver(t)
		r.answersStatus(500)
		e := s.add(Wish{URL: r.URL})
		tell(t, db, 29)
		s.sendDue(e)
		if len(s.waiting(e)) != 30 {
			t.Fatalf("%d wait", len(s.waiting(e)))
		}
		if err := accounts.SetPlan(t.Context(), s.owner, auth.Developer); err != nil {
			t.Fatal(err)
		}
		r.forget()
		r.answersStatus(200)
		stop := background(t, s.Run)
		newest := 0
		for range 3 {
			newest = tell(t, db, 9) + 9
		}
		eventually(t, "all is passed over", func() bool { return s.find(e.ID).Position == newest && len(s.waiting(e)) == 0 })
		stop()
		if got := s.attempts(e); len(r.all()) != 0 || len(got) != 30 {
			t.Errorf("%d came, %d attempts", len(r.all()), len(got))
		}
		s.clock.pass(40 * 24 * time.Hour)
		if err := accounts.SetPlan(t.Context(), s.owner, auth.Pro); err != nil {
			t.Fatal(err)
		}
		// It starts anew: what it failed before does not count.
		r.answersStatus(500)
		first := tell(t, db, 2)
		s.sendDue(e)
		if e := s.find(e.ID); e.State != endpoint.StateActive || e.Failures != 3 {
			t.Errorf("it is %s after %d failures", e.State, e.Failures)
		}
		r.answersStatus(200)
		r.forget()
		s.clock.pass(6 * time.Second)
		s.sendDue(e)
		if !slices.Equal(r.ids(), ids(first, 3)) {
			t.Error(r.ids())
		}
	})
}

func TestPause(t *testing.T) {
	t.Parallel()
	testkit.EachStore(t, func(t *testing.T, db *store.Store) {
		s := newSite(t, db)
		s.stopClock()
		r := newReceiver(t)
		r.answersStatus(500)
		e := s.add(Wish{URL: r.URL})
		tell(t, db, 2)
		s.sendDue(e)
		if err := s.Pause(t.Context(), e); err != nil {
			t.Fatal(err)
		}
		e = s.find(e.ID)
		for name, err := range map[string]error{"replay": s.Replay(t.Context(), e, "evt_1"), "replay since": s.ReplaySince(t.Context(), e, time.Time{})} {
			if problem.Of(err).Code != problem.BadInput {
				t.Errorf("%s: %v", name, err)
			}
		}
		tell(t, db, 2)
		s.clock.pass(time.Hour)
		s.sendDue(e)
		if len(r.all()) != 3 || len(s.waiting(e)) != 0 {
			t.Errorf("%d came, %d wait", len(r.all()), len(s.waiting(e)))
		}
		if err := s.Resume(t.Context(), e); err != nil {
			t.Fatal(err)
		}
		r.forget()
		first := tell(t, db, 0)
		s.sendDue(e)
		if !slices.Equal(r.ids(), ids(first, 1)) {
			t.Error(r.ids())
		}
	})
}

func TestEndWhileSending(t *testing.T) {
	t.Parallel()
	testkit.EachStore(t, func(t *testing.T, db *store.Store) {
		s := newSite(t, db)
		s.stopClock()
		mail := s.withMail()
		r := newReceiver(t)
		ends := []struct {
			what string
			do   func(id int) error
		}{
			{"pause", func(id int) error { return s.Pause(t.Context(), s.find(id)) }},
			{"disable", func(id int) error { return s.Disable(t.Context(), s.find(id), "by hand") }},
			{"remove", func(id int) error { return s.Remove(t.Context(), s.find(id)) }},
			{"delete the account", func(int) error { return auth.NewAccounts(db).Delete(t.Context(), s.owner) }},
		}
		for _, end := range ends {
			e := s.add(Wish{URL: r.URL})
			tell(t, db, 2)
			whileSending(t, s, r, e.ID, func() {
				r.answersStatus(410) // which the rest of them get
				if err := end.do(e.ID); err != nil {
					t.Errorf("%s: %v", end.what, err)
				}
			})
			s.sendDue(e)
			if len(s.waiting(e)) != 0 {
				t.Errorf("%s: %d wait", end.what, len(s.waiting(e)))
			}
			found, err := s.Find(t.Context(), nil, e.ID)
			switch {
			case end.what == "pause" && (err != nil || found.State != endpoint.StatePaused),
				end.what == "disable" && (err != nil || found.State != endpoint.StateDisabled || found.Why != "by hand"),
				strings.Contains("remove, delete the account", end.what) && problem.Of(err).Code != problem.NotFound:
				t.Errorf("%s: %v %v", end.what, found, err)
			}
			// Who is not there any more has no attempts either.
			if err != nil && len(s.attempts(e)) != 0 {
				t.Errorf("%s: attempts are kept", end.what)
			}
		}
		if db.Current().Endpoint.Query().CountX(t.Context()) != 0 || db.Current().Attempt.Query().CountX(t.Context()) != 0 {
			t.Error("something is left of the account")
		}
		eventually(t, "no letter waits", func() bool { return s.Mail.Waiting() == 0 })
		if mail.Count(ownerEmail) != 0 {
			t.Error("a letter was sent about what its owner ended")
		}
	})
}

// Ends and rounds that meet do not wait for each other for ever.
func TestPauseMeetsRounds(t *testing.T) {
	t.Parallel()
	s := newSite(t, testkit.Open(t, testkit.Postgres(t)))
	r := newReceiver(t)
	r.answersStatus(500)
	e := s.add(Wish{URL: r.URL})
	var all sync.WaitGroup
	var ended atomic.Bool
	all.Go(func() {
		defer ended.Store(true)
		for range 10 {
			tell(t, s.Store, 19)
			if err := s.ReplaySince(t.Context(), e, time.Time{}); err != nil {
				t.Error(err)
			}
			if _, err := s.round(t.Context(), always, e.ID); err != nil {
				t.Errorf("a round: %v", err)
			}
		}
	})
	all.Go(func() {
		for !ended.Load() {
			if err := s.Pause(t.Context(), e); err != nil {
				t.Errorf("a pause: %v", err)
			}
			if err := s.Resume(t.Context(), e); err != nil {
				t.Errorf("a resumption: %v", err)
			}
			time.Sleep(time.Millisecond)
		}
	})
	all.Wait()
}

// Events that are published just as a round begins are sent once.
func TestPublishedMeanwhile(t *testing.T) {
	t.Parallel()
	testkit.EachStore(t, func(t *testing.T, db *store.Store) {
		s := newSite(t, db)
		r := newReceiver(t)
		e := s.add(Wish{URL: r.URL})
		var want []string
		var all sync.WaitGroup
		published := make(chan struct{})
		all.Go(func() {
			defer close(published)
			for range 30 {
				want = append(want, ids(tell(t, db, 2), 3)...)
			}
		})
		all.Go(func() {
			for more := true; more; {
				select {
				case <-published:
					more = false
				default:
				}
				s.sendDue(e)
			}
		})
		all.Wait()
		if !slices.Equal(r.ids(), want) {
			t.Errorf("%d came for %d", len(r.all()), len(want))
		}
		if newest, _ := journal.Newest(t.Context(), db.Current().JournalEntry); s.find(e.ID).Position != newest {
			t.Error("it is not at the end")
		}
	})
}
