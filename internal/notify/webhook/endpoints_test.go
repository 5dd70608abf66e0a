package webhook

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"palmares/auth"
	"palmares/ent/endpoint"
	"palmares/internal/catalog/feed"
	"palmares/internal/catalog/feed/feedtest"
	"palmares/internal/catalog/journal"
	"palmares/internal/catalog/publish"
	"palmares/internal/core/problem"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
)

func TestEndpointLimit(t *testing.T) {
	t.Parallel()
	eachFixture(t, func(t *testing.T, s *fixture) {
		var all sync.WaitGroup
		var mu sync.Mutex
		refused := 0
		for range 20 {
			all.Go(func() {
				_, err := s.Add(t.Context(), s.owner, NewEndpoint{URL: "https://hooks.example"})
				if err == nil {
					return
				}
				mu.Lock()
				defer mu.Unlock()
				refused++
				check.Equal(t, problem.Of(err).Code, problem.BadInput)
			})
		}
		all.Wait()
		list := check.Try(s.List(t.Context(), s.owner)).OK(t)
		check.Equal(t, len(list), MaxEndpoints)
		check.Equal(t, refused, 10)
	})
}

func TestCheckEndpoint(t *testing.T) {
	t.Parallel()
	s := newSQLiteFixture(t)
	many := make([]string, maxFilters+1)
	for i := range many {
		many[i] = fmt.Sprint("c", i)
	}
	for _, invalid := range []NewEndpoint{
		{URL: "https://hooks.example", Types: []string{"tool.exploded"}},
		{URL: "https://hooks.example", Types: []string{TestType}},
		{URL: "https://hooks.example", Filter: Filter{Categories: []string{"Code"}}},
		{URL: "https://hooks.example", Filter: Filter{Categories: []string{""}}},
		{URL: "https://hooks.example", Filter: Filter{Categories: []string{"a' OR 1=1"}}},
		{URL: "https://hooks.example", Filter: Filter{Categories: []string{strings.Repeat("a", 81)}}},
		{URL: "https://hooks.example", Filter: Filter{Categories: many}},
		{URL: "http://hooks.example"},
	} {
		_, err := s.Add(t.Context(), s.owner, invalid)
		check.Equal(t, problem.Of(err).Code, problem.BadInput, invalid)
	}
	e := s.add(NewEndpoint{URL: "https://hooks.example", Types: []string{"tool.updated", "tool.created", "tool.updated"}, Filter: Filter{Categories: []string{"voix", "code"}}})
	check.Slices(t, e.Types, []string{"tool.created", "tool.updated"}, e)
	check.Slices(t, e.Categories, []string{"code", "voix"}, e)
	catalog := feedtest.Catalog("2026-11-01", feedtest.Tool("plume"), feedtest.Tool("voix-claire"))
	check.Try(publish.Import(t.Context(), s.Store, feed.NewLines(bytes.NewReader(catalog)), publish.Options{})).OK(t)
	for slug, want := range map[string]string{
		"plum": `There is no tool "plum". Did you mean "plume"?`, "nobodyhasthis": `There is no tool "nobodyhasthis". Use the slug in the address of its page.`, "A B": `"A B" is not a valid tool slug (example: plume).`,
	} {
		_, err := s.Add(t.Context(), s.owner, NewEndpoint{URL: "https://hooks.example", Filter: Filter{Tools: []string{slug}}})
		check.Equal(t, problem.Of(err).Code, problem.BadInput, slug)
		check.Equal(t, problem.Of(err).Message, want, slug)
	}
	about := s.add(NewEndpoint{URL: "https://hooks.example", Filter: Filter{Categories: []string{"code"}, Tools: []string{"voix-claire", "plume", "plume"}}})
	got := FilterOf(about)
	check.Slices(t, got.Tools, []string{"plume", "voix-claire"})
	check.Slices(t, got.Categories, []string{"code"})
	free := check.Try(auth.NewAccounts(s.Store).Create(t.Context(), "free@example.com", auth.Developer)).OK(t)
	_, err := s.Add(t.Context(), free, NewEndpoint{URL: "https://hooks.example"})
	check.Equal(t, problem.Of(err).Code, problem.Forbidden, "without Pro")
	_, err = s.Find(t.Context(), free, e.ID)
	check.Equal(t, problem.Of(err).Code, problem.NotFound, "another account")
}

// Without Pro, events are skipped. With Pro again, new events are sent.
func TestPlanEnds(t *testing.T) {
	t.Parallel()
	eachFixture(t, func(t *testing.T, s *fixture) {
		s.freezeClock()
		accounts := auth.NewAccounts(s.Store)
		r, e := s.addReceiver()
		r.respondStatus(500)
		s.publishTools(29)
		s.sendDue(e)
		check.Must(t, len(s.deliveries(e)), 30, "retries")
		check.OK(t, accounts.SetPlan(t.Context(), s.owner, auth.Developer))
		r.reset()
		r.respondStatus(200)
		stop := background(t, s.Run)
		newest := 0
		for range 3 {
			newest = s.publishTools(9) + 9
		}
		eventually(t, "all events are skipped", func() bool { return s.find(e.ID).Position == newest && len(s.deliveries(e)) == 0 })
		stop()
		got := s.attempts(e)
		check.Equal(t, len(r.all()), 0)
		check.Equal(t, len(got), 29)
		s.clock.advance(40 * 24 * time.Hour)
		check.OK(t, accounts.SetPlan(t.Context(), s.owner, auth.Pro))
		// Earlier failures do not count.
		r.respondStatus(500)
		first := s.publishTools(2)
		s.sendDue(e)
		if e := s.find(e.ID); e.State != endpoint.StateActive || e.Failures != 2 {
			t.Errorf("got state %s and %d failures, want active and 2", e.State, e.Failures)
		}
		r.respondStatus(200)
		r.reset()
		s.clock.advance(6 * time.Second)
		s.sendDue(e)
		check.Slices(t, r.ids(), ids(first, 3))
	})
}

func TestPause(t *testing.T) {
	t.Parallel()
	eachFixture(t, func(t *testing.T, s *fixture) {
		s.freezeClock()
		r, e := s.addReceiver()
		r.respondStatus(500)
		s.publishTools(2)
		s.sendDue(e)
		check.OK(t, s.Pause(t.Context(), e))
		e = s.find(e.ID)
		for name, err := range map[string]error{"replay": s.Replay(t.Context(), e, "evt_1"), "replay since": s.ReplaySince(t.Context(), e, time.Time{})} {
			check.Equal(t, problem.Of(err).Code, problem.BadInput, "%s: %v", name, err)
		}
		s.publishTools(2)
		s.clock.advance(time.Hour)
		s.sendDue(e)
		check.Equal(t, len(r.all()), 2)
		check.Equal(t, len(s.deliveries(e)), 0)
		check.OK(t, s.Resume(t.Context(), e))
		r.reset()
		first := s.publishTools(0)
		s.sendDue(e)
		check.Slices(t, r.ids(), ids(first, 1))
	})
}

func TestStopEndpointWhileSending(t *testing.T) {
	t.Parallel()
	eachFixture(t, func(t *testing.T, s *fixture) {
		s.freezeClock()
		r := newReceiver(t)
		stops := []struct {
			what string
			do   func(id int) error
		}{
			{"pause", func(id int) error { return s.Pause(t.Context(), s.find(id)) }},
			{"disable", func(id int) error { return s.Disable(t.Context(), s.find(id), "it is slow") }},
			{"remove", func(id int) error { return s.Remove(t.Context(), s.find(id)) }},
			{"delete the account", func(int) error { return auth.NewAccounts(s.Store).Delete(t.Context(), s.owner) }},
		}
		for _, stop := range stops {
			e := s.add(NewEndpoint{URL: r.URL})
			s.publishTools(2)
			whileSending(t, s, r, e.ID, func() {
				r.respondStatus(410) // to the other events
				check.Equal(t, stop.do(e.ID), nil, stop.what)
			})
			s.sendDue(e)
			check.Equal(t, len(s.deliveries(e)), 0, "%s: retries", stop.what)
			found, err := s.Find(t.Context(), nil, e.ID)
			switch {
			case stop.what == "pause" && (err != nil || found.State != endpoint.StatePaused),
				stop.what == "disable" && (err != nil || found.State != endpoint.StateDisabled || found.DisabledReason != "it is slow"),
				strings.Contains("remove, delete the account", stop.what) && problem.Of(err).Code != problem.NotFound:
				t.Errorf("%s: got %v %v, want it stopped", stop.what, found, err)
			}
			// Attempts are deleted with their endpoint.
			check.True(t, err == nil || len(s.attempts(e)) == 0, "%s: got attempts, want none", stop.what)
		}
		check.Equal(t, s.Store.Read.Endpoint.Query().CountX(t.Context()), 0)
		check.Equal(t, s.Store.Read.Attempt.Query().CountX(t.Context()), 0)
		check.Equal(t, len(s.notices()), 0, "email about an endpoint that its owner stopped")
	})
}

// Rounds and pauses at the same time do not deadlock.
func TestPauseDuringRounds(t *testing.T) {
	t.Parallel()
	s := newFixture(t, testkit.Open(t, testkit.Postgres(t)))
	r, e := s.addReceiver()
	r.respondStatus(500)
	stop := background(t, func(ctx context.Context) {
		for ctx.Err() == nil {
			check.Equal(t, s.Pause(t.Context(), e), nil, "pause")
			check.Equal(t, s.Resume(t.Context(), e), nil, "resume")
			time.Sleep(time.Millisecond)
		}
	})
	defer stop()
	for range 10 {
		s.publishTools(19)
		check.Equal(t, s.ReplaySince(t.Context(), e, time.Time{}), nil)
		s.sendDue(e)
	}
}

// Events that are published during a round are sent once.
func TestPublishDuringRounds(t *testing.T) {
	t.Parallel()
	eachFixture(t, func(t *testing.T, s *fixture) {
		r, e := s.addReceiver()
		var want []string
		stop := background(t, func(ctx context.Context) {
			for ctx.Err() == nil {
				_, err := s.round(t.Context(), always, e.ID)
				check.Equal(t, err, nil, "round")
			}
		})
		defer stop()
		for range 30 {
			want = append(want, ids(s.publishTools(2), 3)...)
		}
		stop()
		s.sendDue(e)
		check.Slices(t, r.ids(), want, "events")
		newest, _ := journal.Newest(t.Context(), s.Store.Read.JournalEntry)
		check.Equal(t, s.find(e.ID).Position, newest, "position")
	})
}

func TestReplay(t *testing.T) {
	t.Parallel()
	eachFixture(t, func(t *testing.T, s *fixture) {
		r := newReceiver(t)
		e := s.add(NewEndpoint{URL: r.URL, Filter: Filter{Categories: []string{"code"}}})
		first := s.publishTools(4)
		time.Sleep(10 * time.Millisecond)
		between := time.Now()
		second := s.publishTools(4)
		s.sendDue(e)
		for _, invalid := range []string{"", "evt_", "evt_0", "evt_-1", "evt_01", "evt_999", "evt_99999999999999999999", "msg_1", "evt_1x", "EVT_1"} {
			err := s.Replay(t.Context(), e, invalid)
			check.Fails(t, err, invalid)
			check.True(t, problem.Of(err).Code != problem.Internal, "%q: got %v, want an error of the caller", invalid, err)
		}
		for what, replay := range map[string]struct {
			do   func() error
			want []string
		}{
			"one":       {func() error { return s.Replay(t.Context(), e, ids(first+1, 1)[0]) }, ids(first+1, 1)},
			"since":     {func() error { return s.ReplaySince(t.Context(), e, between) }, ids(second, 5)},
			"time zone": {func() error { return s.ReplaySince(t.Context(), e, between.In(time.FixedZone("", 9*3600))) }, ids(second, 5)},
			"all":       {func() error { return s.ReplaySince(t.Context(), e, time.Time{}) }, append(ids(first, 5), ids(second, 5)...)},
			"none":      {func() error { return s.ReplaySince(t.Context(), e, time.Now().Add(time.Hour)) }, nil},
		} {
			r.reset()
			check.OK(t, replay.do())
			s.sendDue(e)
			check.Slices(t, r.ids(), replay.want, what)
			check.Equal(t, len(s.deliveries(e)), 0, what)
		}
	})
}

// An event that waits for its retry and is replayed is sent once, immediately.
func TestReplayOfRetry(t *testing.T) {
	t.Parallel()
	eachFixture(t, func(t *testing.T, s *fixture) {
		s.freezeClock()
		r, e := s.addReceiver()
		r.respondStatus(500)
		first := s.publishTools(4)
		s.sendDue(e)
		r.respondStatus(200)
		r.reset()
		check.OK(t, s.Replay(t.Context(), e, ids(first+2, 1)[0]))
		s.sendDue(e)
		check.Slices(t, r.ids(), ids(first+2, 1))
		r.reset()
		check.OK(t, s.ReplaySince(t.Context(), e, time.Time{}))
		// A round that ends at the same time plans a retry.
		err := s.Store.Write.Delivery.Create().SetEndpointID(e.ID).SetEvent(first + 3).SetAttempts(1).SetNextAt(s.clock.now().UTC()).Exec(t.Context())
		check.OK(t, err)
		s.sendDue(e)
		s.clock.advance(time.Hour)
		s.sendDue(e)
		got := r.ids()
		check.Must(t, len(got), 5, got)
		check.Equal(t, got[0], ids(first+3, 1)[0])
		check.Slices(t, slices.Sorted(slices.Values(got)), ids(first, 5))
	})
}

// whileSending calls do while the first event of a round is being sent.
func whileSending(t *testing.T, s *fixture, r *receiver, id int, do func()) {
	t.Helper()
	arrived, proceed := r.hold()
	done := make(chan error, 1)
	go func() {
		_, err := s.round(t.Context(), always, id)
		done <- err
	}()
	<-arrived
	do()
	close(proceed)
	check.Equal(t, <-done, nil)
}

func TestReplayWhileSending(t *testing.T) {
	t.Parallel()
	eachFixture(t, func(t *testing.T, s *fixture) {
		s.freezeClock()
		r, e := s.addReceiver()
		first := s.publishTools(2)
		replayAll := func() { check.Equal(t, s.ReplaySince(t.Context(), e, time.Time{}), nil) }
		replayFirst := func() {
			s.clock.advance(time.Millisecond)
			check.Equal(t, s.Replay(t.Context(), e, ids(first, 1)[0]), nil)
		}
		// The events are already being sent.
		whileSending(t, s, r, e.ID, replayAll)
		s.sendDue(e)
		check.Slices(t, slices.Sorted(slices.Values(r.ids())), ids(first, 3), r.ids())
		// They are no longer new, and are sent twice.
		r.reset()
		replayAll()
		next := s.publishTools(0)
		s.sendDue(e)
		last := s.publishTools(0)
		whileSending(t, s, r, e.ID, replayAll)
		s.sendDue(e)
		got := r.ids()
		check.Must(t, len(got), 10, got)
		check.Slices(t, got[5:], slices.Concat(ids(first, 3), ids(next, 1), ids(last, 1)))
		// An event is replayed while it is being replayed.
		r.reset()
		replayFirst()
		whileSending(t, s, r, e.ID, replayFirst)
		s.sendDue(e)
		s.sendDue(e)
		check.Slices(t, r.ids(), append(ids(first, 1), ids(first, 1)...))
	})
}
