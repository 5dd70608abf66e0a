package webhook

import (
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"palmares/internal/catalog/journal"
	"palmares/internal/core/store"
	"palmares/internal/dev/testkit"
)

// A round holds what it sends just now, not all that it will: texts may be long.
// Nothing runs beside this test.
func TestMemoryOfARound(t *testing.T) {
	const events, length = 100, 300_000
	testkit.EachStore(t, func(t *testing.T, db *store.Store) {
		s := newSite(t, db)
		r := newReceiver(t)
		e := s.add(Wish{URL: r.URL})
		entries := make([]journal.Entry, events)
		for i := range entries {
			entries[i] = toolCreated(fmt.Sprintf("tool-%d", i), "code")
			entries[i].After = fmt.Appendf(nil, `{"slug":"tool-%d","tagline":"%s"}`, i, strings.Repeat("x", length))
		}
		tellAll(t, db, entries...)
		clear(entries)
		var most atomic.Int64
		r.answers(func(n int, w http.ResponseWriter, _ *http.Request) {
			if n%10 == 5 {
				most.Store(max(most.Load(), held()))
			}
			w.WriteHeader(500)
		})
		before := held()
		s.stopClock()
		for _, what := range []string{"new", "tried again"} {
			most.Store(0)
			r.forget()
			if err := db.Write.Endpoint.UpdateOneID(e.ID).SetFailures(0).Exec(t.Context()); err != nil {
				t.Fatal(err)
			}
			s.sendDue(e)
			if len(r.all()) != events+1 {
				t.Fatalf("%d came", len(r.all()))
			}
			if more := most.Load() - before; more > events*length/3 {
				t.Errorf("%s: %d MB are held for %d MB of events", what, more>>20, events*length>>20)
			}
			s.clock.pass(6 * time.Second)
		}
	})
}

func held() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// Reading the first event, however long it takes, leaves time to send it.
func TestWithin(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { // whose clock is its own
		mayBegin := within(time.Second)
		time.Sleep(5 * time.Second)
		if !mayBegin() {
			t.Error("its time was over before it began")
		}
		time.Sleep(time.Second - 1)
		if !mayBegin() {
			t.Error("its time ends early")
		}
		time.Sleep(time.Nanosecond)
		if mayBegin() {
			t.Error("its time does not end")
		}
	})
}
