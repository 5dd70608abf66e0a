package webhook

import (
	"slices"
	"testing"
	"time"

	"palmares/internal/core/problem"
	"palmares/internal/core/store"
	"palmares/internal/dev/testkit"
)

func TestReplay(t *testing.T) {
	t.Parallel()
	testkit.EachStore(t, func(t *testing.T, db *store.Store) {
		s := newSite(t, db)
		r := newReceiver(t)
		e := s.add(Wish{URL: r.URL, Categories: []string{"code"}})
		first := tell(t, db, 4)
		time.Sleep(10 * time.Millisecond)
		between := time.Now()
		second := tell(t, db, 4)
		s.sendDue(e)
		for _, wrong := range []string{"", "evt_", "evt_0", "evt_-1", "evt_01", "evt_999", "evt_99999999999999999999", "msg_1", "evt_1x", "EVT_1"} {
			if err := s.Replay(t.Context(), e, wrong); err == nil || problem.Of(err).Code == problem.Internal {
				t.Errorf("%q: %v", wrong, err)
			}
		}
		for what, replay := range map[string]struct {
			do   func() error
			want []string
		}{
			"one":         {func() error { return s.Replay(t.Context(), e, ids(first+1, 1)[0]) }, ids(first+1, 1)},
			"since":       {func() error { return s.ReplaySince(t.Context(), e, between) }, ids(second, 5)},
			"since, away": {func() error { return s.ReplaySince(t.Context(), e, between.In(time.FixedZone("", 9*3600))) }, ids(second, 5)},
			"all":         {func() error { return s.ReplaySince(t.Context(), e, time.Time{}) }, append(ids(first, 5), ids(second, 5)...)},
			"none":        {func() error { return s.ReplaySince(t.Context(), e, time.Now().Add(time.Hour)) }, nil},
		} {
			r.forget()
			if err := replay.do(); err != nil {
				t.Fatal(err)
			}
			s.sendDue(e)
			if !slices.Equal(r.ids(), replay.want) || len(s.waiting(e)) != 0 {
				t.Errorf("%s: %v", what, r.ids())
			}
		}
	})
}

// What is to be tried again and is wanted again comes once, and the sooner.
func TestReplayOfWhatWaits(t *testing.T) {
	t.Parallel()
	testkit.EachStore(t, func(t *testing.T, db *store.Store) {
		s := newSite(t, db)
		s.stopClock()
		r := newReceiver(t)
		r.answersStatus(500)
		e := s.add(Wish{URL: r.URL})
		first := tell(t, db, 4)
		s.sendDue(e)
		r.answersStatus(200)
		r.forget()
		if err := s.Replay(t.Context(), e, ids(first+2, 1)[0]); err != nil {
			t.Fatal(err)
		}
		s.sendDue(e)
		if !slices.Equal(r.ids(), ids(first+2, 1)) {
			t.Error(r.ids())
		}
		r.forget()
		if err := s.ReplaySince(t.Context(), e, time.Time{}); err != nil {
			t.Fatal(err)
		}
		// One of them is planned by a round that ends just now.
		err := db.Write.Delivery.Create().SetEndpointID(e.ID).SetEvent(first + 3).SetAttempts(1).SetNextAt(s.clock.now().UTC()).Exec(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		s.sendDue(e)
		s.clock.pass(time.Hour)
		s.sendDue(e)
		if got := r.ids(); len(got) != 5 || got[0] != ids(first+3, 1)[0] || !slices.Equal(slices.Sorted(slices.Values(got)), ids(first, 5)) {
			t.Error(got)
		}
	})
}

// whileSending does something while an endpoint's first event is on its way.
func whileSending(t *testing.T, s *site, r *receiver, id int, do func()) {
	t.Helper()
	there, on := r.holds()
	done := make(chan error, 1)
	go func() {
		_, err := s.round(t.Context(), always, id)
		done <- err
	}()
	<-there
	do()
	close(on)
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestReplayWhileSending(t *testing.T) {
	t.Parallel()
	testkit.EachStore(t, func(t *testing.T, db *store.Store) {
		s := newSite(t, db)
		s.stopClock()
		r := newReceiver(t)
		e := s.add(Wish{URL: r.URL})
		first := tell(t, db, 2)
		replayAll := func() {
			if err := s.ReplaySince(t.Context(), e, time.Time{}); err != nil {
				t.Error(err)
			}
		}
		replayFirst := func() {
			s.clock.pass(time.Millisecond)
			if err := s.Replay(t.Context(), e, ids(first, 1)[0]); err != nil {
				t.Error(err)
			}
		}
		// All are on their way already.
		whileSending(t, s, r, e.ID, replayAll)
		s.sendDue(e)
		if !slices.Equal(slices.Sorted(slices.Values(r.ids())), ids(first, 3)) {
			t.Error(r.ids())
		}
		// They are not new any more, and come again, twice.
		r.forget()
		replayAll()
		next := tell(t, db, 0)
		s.sendDue(e)
		last := tell(t, db, 0)
		whileSending(t, s, r, e.ID, replayAll)
		s.sendDue(e)
		if got := r.ids(); len(got) != 10 || !slices.Equal(got[5:], slices.Concat(ids(first, 3), ids(next, 1), ids(last, 1))) {
			t.Error(got)
		}
		// One that is being replayed is wanted once more.
		r.forget()
		replayFirst()
		whileSending(t, s, r, e.ID, replayFirst)
		s.sendDue(e)
		s.sendDue(e)
		if got := r.ids(); !slices.Equal(got, append(ids(first, 1), ids(first, 1)...)) {
			t.Error(got)
		}
	})
}
