package webhook

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"palmares/internal/catalog/journal"
)

// arrival is a request at an unreliable receiver.
type arrival struct {
	id       string
	body     []byte
	events   []sentEvent
	accepted bool
}

// With random failures, interruptions and waits, requests arrive in the order of
// the journal, and catalog.published only after everything before it.
func TestRandomFailures(t *testing.T) {
	t.Parallel()
	eachFixture(t, func(t *testing.T, s *fixture) {
		for range 2 {
			seed := rand.Uint64()
			for _, batches := range []bool{false, true} {
				s.randomFailures(seed, batches)
			}
		}
	})
}

func (s *fixture) randomFailures(seed uint64, batches bool) {
	t := s.t
	random := rand.New(rand.NewPCG(seed, 0))
	s.freezeClock()
	r := newReceiver(t)
	e := s.add(NewEndpoint{URL: r.URL, Batches: batches})
	start := e.Position
	var mu sync.Mutex
	var arrivals []arrival
	healthy := false
	interrupt := func() {}
	r.respond(func(n int, w http.ResponseWriter, _ *http.Request) {
		one := r.all()[n-1]
		mu.Lock()
		defer mu.Unlock()
		a := arrival{one.header.Get("webhook-id"), one.body, one.events(t), false}
		poison := slices.ContainsFunc(a.events, func(event sentEvent) bool { return event.Slug == "poison" })
		switch dice := random.IntN(20); {
		case poison:
			w.WriteHeader(500)
		case healthy || dice >= 8:
			a.accepted = true
		case dice == 0:
			w.Header().Set("Retry-After", "60")
			w.WriteHeader(503)
		case dice == 1:
			interrupt()
			w.WriteHeader(500) // the response may arrive before the sender notices
		default:
			w.WriteHeader(500)
		}
		arrivals = append(arrivals, a)
	})
	step := func() {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		mu.Lock()
		interrupt = cancel
		mu.Unlock()
		if _, err := s.round(ctx, always, e.ID); err != nil && ctx.Err() == nil {
			t.Fatal(err)
		}
	}
	for release := range 6 {
		var entries []journal.Entry
		for i := range random.IntN(150) {
			entries = append(entries, toolCreated(fmt.Sprintf("tool-%d", i), "code"))
		}
		if release == 2 {
			entries = append(entries, toolCreated("poison", "code"))
		}
		s.publish(entries...)
		for range random.IntN(6) {
			step()
			s.clock.advance(time.Duration(random.IntN(600)) * time.Second)
		}
	}
	mu.Lock()
	healthy = true
	mu.Unlock()
	for range 100 {
		step()
		s.clock.advance(2 * time.Hour)
	}
	if left := s.deliveries(e); len(left) != 0 {
		t.Errorf("seed %d, batches %t: got %d deliveries at the end, want none", seed, batches, len(left))
	}
	published, err := journal.Read(t.Context(), s.Store.Read.JournalEntry, journal.Query{After: start, Limit: 10_000})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Remove(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	if err := checkArrivals(arrivals, published); err != nil {
		t.Errorf("seed %d, batches %t: %v", seed, batches, err)
	}
}

// checkArrivals compares what arrived with the journal.
func checkArrivals(arrivals []arrival, published []*journal.Event) error {
	bodies := map[string][]byte{}
	accepted, attempts := map[string]bool{}, map[string]int{}
	finished := func(id string) bool { return accepted[id] || attempts[id] > len(retries) }
	var order []string
	for _, a := range arrivals {
		if body, known := bodies[a.id]; known && !bytes.Equal(body, a.body) {
			return fmt.Errorf("%s: got two bodies, want one", a.id)
		}
		bodies[a.id] = a.body
		if len(a.events) > journal.MaxBatch {
			return fmt.Errorf("%s: got %d events, want at most 100", a.id, len(a.events))
		}
		for _, event := range a.events {
			if event.Type == journal.EventCatalogPublished {
				for _, earlier := range published {
					if earlier.ID() == event.ID {
						break
					}
					together := slices.ContainsFunc(a.events, func(other sentEvent) bool { return other.ID == earlier.ID() })
					if !together && !finished(earlier.ID()) {
						return fmt.Errorf("got the release %s while %s was pending", event.ID, earlier.ID())
					}
				}
			} else if attempts[event.ID] == 0 {
				order = append(order, event.ID)
			}
		}
		for _, event := range a.events {
			attempts[event.ID]++
			accepted[event.ID] = accepted[event.ID] || a.accepted
		}
	}
	var want []string
	for _, event := range published {
		if !finished(event.ID()) {
			return fmt.Errorf("%s: got %d failed attempts, want a delivery", event.ID(), attempts[event.ID()])
		}
		if event.Type != journal.EventCatalogPublished {
			want = append(want, event.ID())
		}
	}
	if !slices.Equal(order, want) {
		return fmt.Errorf("got events in the order %v, want %v", order, want)
	}
	return nil
}
