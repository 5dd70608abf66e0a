package webhook

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"palmares/ent"
	"palmares/internal/catalog/feed/synth"
	"palmares/internal/catalog/journal"
	"palmares/internal/core/problem"
)

// addBatchReceiver starts a receiver and adds an endpoint that gets batches.
func (s *fixture) addBatchReceiver() (*receiver, *ent.Endpoint) {
	s.t.Helper()
	r := newReceiver(s.t)
	return r, s.add(NewEndpoint{URL: r.URL, Batches: true})
}

// sendAll runs rounds until nothing is due.
func (s *fixture) sendAll(e *ent.Endpoint) {
	s.t.Helper()
	for more := true; more; {
		var err error
		if more, err = s.round(s.t.Context(), always, e.ID); err != nil {
			s.t.Fatal(err)
		}
	}
}

// sentEvent is an event in a request, alone or in a batch.
type sentEvent struct {
	ID, Type, Slug string
	Release        int
	Data           struct{ Events []sentEvent }
}

// events returns the events of a request.
func (one *received) events(t *testing.T) []sentEvent {
	t.Helper()
	var body sentEvent
	if err := json.Unmarshal(one.body, &body); err != nil {
		t.Fatal(err)
	}
	if body.ID != one.header.Get("webhook-id") {
		t.Errorf("got webhook-id %s, want %s", one.header.Get("webhook-id"), body.ID)
	}
	if body.Type != journal.EventsBatch {
		return []sentEvent{body}
	}
	for _, event := range body.Data.Events {
		if event.Release != body.Release {
			t.Errorf("%s: got an event of release %d, want %d", body.ID, event.Release, body.Release)
		}
	}
	return body.Data.Events
}

// batches returns the IDs of the events of each request.
func (r *receiver) batches(t *testing.T) (all [][]string) {
	t.Helper()
	for _, one := range r.all() {
		var batch []string
		for _, event := range one.events(t) {
			batch = append(batch, event.ID)
		}
		all = append(all, batch)
	}
	return all
}

func expectBatches(t *testing.T, r *receiver, want ...[]string) {
	t.Helper()
	if got := r.batches(t); !slices.EqualFunc(got, want, slices.Equal) {
		t.Errorf("got batches %v\nwant %v", got, want)
	}
}

// A batch has up to 100 events of one release, in order, signed as a whole. Other
// endpoints get single events at the same time.
func TestBatches(t *testing.T) {
	t.Parallel()
	eachFixture(t, func(t *testing.T, s *fixture) {
		r, e := s.addBatchReceiver()
		single, other := s.addReceiver()
		filtered := newReceiver(t)
		narrow := s.add(NewEndpoint{URL: filtered.URL, Batches: true, Types: []string{journal.EventToolCreated}})
		first := s.publishTools(250)
		second := s.publishTools(99)
		third := s.publishTools(100)
		last := s.publishTools(0)
		for _, endpoint := range []*ent.Endpoint{e, other, narrow} {
			s.sendAll(endpoint)
		}
		expectBatches(t, r, ids(first, 100), ids(first+100, 100), ids(first+200, 51), ids(second, 100), ids(third, 100), ids(third+100, 1), ids(last, 1))
		expectBatches(t, filtered, ids(first, 100), ids(first+100, 100), ids(first+200, 50), ids(second, 99), ids(third, 100))
		if want := slices.Concat(ids(first, 251), ids(second, 100), ids(third, 101), ids(last, 1)); !slices.Equal(single.ids(), want) {
			t.Errorf("got %d single events, want %d in order", len(single.ids()), len(want))
		}
		hook, err := standardwebhooks.NewWebhook(e.Secret)
		if err != nil {
			t.Fatal(err)
		}
		for _, one := range r.all() {
			if err := hook.Verify(one.body, one.header); err != nil {
				t.Error(err)
			}
		}
		attempts := s.attempts(e)
		if len(attempts) != 7 || attempts[6].Type != journal.EventsBatch || len(attempts[6].Events) != 100 || MessageID(attempts[6]) != r.ids()[0] {
			t.Errorf("got attempts %v, want 7 batches, the first with 100 events", attempts)
		}
		if newest, _ := journal.Newest(t.Context(), s.Store.Current().JournalEntry); s.find(e.ID).Position != newest || len(s.deliveries(e)) != 0 {
			t.Errorf("got position %d and %d retries, want %d and none", s.find(e.ID).Position, len(s.deliveries(e)), newest)
		}
	})
}

// The body of a batch is as long as the limit allows, and matches the schema.
func TestBatchBytes(t *testing.T) {
	t.Parallel()
	eachFixture(t, func(t *testing.T, s *fixture) {
		r, e := s.addBatchReceiver()
		var entries []journal.Entry
		for i := range 60 {
			entry := toolCreated(fmt.Sprintf("tool-%d", i), "code")
			// Every fifth is longer than an event may be, and is sent as a link.
			length := 12_000 + rand.IntN(7_000) + i%5/4*30_000
			entry.After = fmt.Appendf(nil, `{"slug":"tool-%d","tagline":"%s"}`, i, strings.Repeat("x", length))
			entries = append(entries, entry)
		}
		first := s.publish(entries...)
		s.sendAll(e)
		if got := slices.Concat(r.batches(t)...); !slices.Equal(got, ids(first, 61)) {
			t.Errorf("got %v, want %v", got, ids(first, 61))
		}
		all := r.all()
		for i, one := range all {
			if len(one.body) > 262_144 || i < len(all)-1 && len(one.body) < 262_144-maxBody-batchEnvelope {
				t.Errorf("batch %d of %d: got %d bytes, want as many as fit into 262144", i+1, len(all), len(one.body))
			}
		}
		if len(all) < 3 {
			t.Errorf("got %d batches, want at least 3", len(all))
		}
	})
}

// Batches of real events match the published schema.
func TestBatchSchema(t *testing.T) {
	t.Parallel()
	s := newSQLiteFixture(t)
	r, e := s.addBatchReceiver()
	importFeed(t, s.Store, synth.Options{Tools: 40, Seed: 1})
	importFeed(t, s.Store, synth.Options{Tools: 40, Seed: 1, Revision: 5})
	s.sendAll(e)
	if len(r.all()) < 2 {
		t.Fatalf("got %d batches, want at least 2", len(r.all()))
	}
	for _, one := range r.all() {
		fitsSchema(t, journal.EventsBatch, one.body)
	}
}

// A batch that failed is sent again with the same ID and body, whatever was
// published in the meantime. When its attempts are exhausted, so are its events.
func TestBatchRetry(t *testing.T) {
	t.Parallel()
	eachFixture(t, func(t *testing.T, s *fixture) {
		s.freezeClock()
		r, e := s.addBatchReceiver()
		r.respondStatus(500)
		first := s.publishTools(120)
		s.sendAll(e)
		// The rest of the release waits without catalog.published.
		expectBatches(t, r, ids(first, 100), ids(first+100, 20))
		failed := r.all()
		second := s.publishTools(3)
		r.reset()
		r.respondStatus(200)
		s.sendAll(e)
		expectBatches(t, r, ids(second, 3))
		r.reset()
		s.clock.advance(6 * time.Second)
		s.sendAll(e)
		expectBatches(t, r, ids(first, 100), ids(first+100, 20), ids(first+120, 1), ids(second+3, 1))
		for i, one := range r.all()[:2] {
			if !bytes.Equal(one.body, failed[i].body) {
				t.Errorf("retry %d: got another body, want the same", i)
			}
		}
		if len(s.deliveries(e)) != 0 {
			t.Errorf("got %d retries, want none", len(s.deliveries(e)))
		}

		r.reset()
		r.respondStatus(500)
		third := s.publishTools(2)
		s.sendAll(e)
		s.exhaustRetries(e)
		if got := r.ids(); len(got) != 10 || len(slices.Compact(got)) != 1 || len(s.deliveries(e)) != 0 {
			t.Errorf("got %v, want one batch ten times", got)
		}
		expectBatches(t, &receiver{got: r.all()[:1]}, ids(third, 3))
		r.reset()
		r.respondStatus(200)
		fourth := s.publishTools(1)
		s.sendAll(e)
		expectBatches(t, r, ids(fourth, 2))
	})
}

// rejectSlug makes the receiver reject events with a slug.
func (r *receiver) rejectSlug(t *testing.T, slug string) {
	r.respond(func(n int, w http.ResponseWriter, _ *http.Request) {
		if slices.ContainsFunc(r.all()[n-1].events(t), func(event sentEvent) bool { return event.Slug == slug }) {
			w.WriteHeader(http.StatusBadRequest)
		}
	})
}

// catalog.published waits until every earlier event was delivered or given up, and
// delays only later events of its kind.
func TestReleaseWaits(t *testing.T) {
	t.Parallel()
	for _, end := range []string{"delivered", "exhausted", "replayed"} {
		eachFixture(t, func(t *testing.T, s *fixture) {
			s.freezeClock()
			r, e := s.addReceiver()
			r.rejectSlug(t, "tool-1")
			first := s.publishTools(3)
			s.sendDue(e)
			second := s.publish(toolCreated("later", "code"))
			s.sendDue(e)
			s.sendDue(e)
			if want := append(ids(first, 3), ids(second, 1)...); !slices.Equal(r.ids(), want) {
				t.Errorf("got %v, want %v", r.ids(), want)
			}
			if rows := s.deliveries(e); len(rows) != 3 || rows[1].NextAt.Before(rows[0].NextAt) || !rows[1].Held || !rows[2].Held {
				t.Errorf("got deliveries %v, want two held ones", rows)
			}
			r.reset()
			switch end {
			case "delivered":
				r.respondStatus(200)
				s.clock.advance(6 * time.Second)
			case "replayed":
				r.respondStatus(200)
				if err := s.Replay(t.Context(), e, ids(first+1, 1)[0]); err != nil {
					t.Fatal(err)
				}
			case "exhausted":
				for range len(retries) - 1 {
					s.clock.set(s.deliveries(e)[0].NextAt.Add(time.Millisecond))
					s.sendDue(e)
				}
				if got := slices.Compact(r.ids()); !slices.Equal(got, ids(first+1, 1)) {
					t.Errorf("got %v before the last attempt, want %v", got, ids(first+1, 1))
				}
				r.reset()
				s.clock.set(s.deliveries(e)[0].NextAt.Add(time.Millisecond))
			}
			s.sendDue(e)
			s.sendDue(e)
			if want := slices.Concat(ids(first+1, 1), ids(first+3, 1), ids(second+1, 1)); !slices.Equal(r.ids(), want) || len(s.deliveries(e)) != 0 {
				t.Errorf("%s: got %v and %d deliveries, want %v and none", end, r.ids(), len(s.deliveries(e)), want)
			}
		})
	}
}

// Events before a replayed catalog.published are sent first.
func TestReplayedReleaseWaits(t *testing.T) {
	t.Parallel()
	eachFixture(t, func(t *testing.T, s *fixture) {
		for _, batches := range []bool{false, true} {
			r := newReceiver(t)
			e := s.add(NewEndpoint{URL: r.URL, Batches: batches})
			first := s.publishTools(2)
			if err := s.Replay(t.Context(), e, ids(first+2, 1)[0]); err != nil { // before it was sent
				t.Fatal(err)
			}
			s.sendDue(e)
			s.sendDue(e)
			if got := slices.Concat(r.batches(t)...); !slices.Equal(got, ids(first, 3)) || len(s.deliveries(e)) != 0 {
				t.Errorf("batches %t: got %v and %d deliveries, want %v and none", batches, got, len(s.deliveries(e)), ids(first, 3))
			}
		}
	})
}

// If a server dies while it sends a batch, another one sends the same batch, even
// if more was published.
func TestBatchTakeover(t *testing.T) {
	t.Parallel()
	eachFixture(t, func(t *testing.T, s *fixture) {
		r, e := s.addBatchReceiver()
		first := s.publishTools(30)
		arrived, proceed := r.hold()
		ctx, die := context.WithCancel(t.Context())
		died := make(chan struct{})
		go func() {
			defer close(died)
			_, _ = s.round(ctx, always, e.ID)
		}()
		<-arrived
		leaseAs(t, s, "dead", -time.Second)
		die()
		<-died
		close(proceed)
		second := s.publishTools(2)
		other := New(s.Config)
		other.timing = testTiming
		pollSteadily(t, other.newScheduler())
		expectBatches(t, r, ids(first, 31), ids(first, 31), ids(second, 3))
		if got := r.all(); !bytes.Equal(got[0].body, got[1].body) {
			t.Error("got another body after the takeover, want the same")
		}
	})
}

// A slow receiver of batches gets one at a time, and delays no others.
func TestSlowBatchReceiver(t *testing.T) {
	t.Parallel()
	eachFixture(t, func(t *testing.T, s *fixture) {
		s.timing.prompt, s.timing.attempt = defaultTiming.prompt, time.Hour
		slow, _ := s.addBatchReceiver()
		quick, _ := s.addBatchReceiver()
		single, _ := s.addReceiver()
		_, proceed := slow.hold()
		background(t, s.Run)
		first := s.publishTools(149)
		single.wait(t, 150)
		quick.wait(t, 2)
		second := s.publishTools(0)
		quick.wait(t, 3)
		expectBatches(t, quick, ids(first, 100), ids(first+100, 50), ids(second, 1))
		expectBatches(t, slow, ids(first, 100))
		close(proceed)
		slow.wait(t, 3)
		expectBatches(t, slow, ids(first, 100), ids(first+100, 50), ids(second, 1))
	})
}

// Batches are replayed as a whole, with the same ID; other events alone.
func TestReplayBatches(t *testing.T) {
	t.Parallel()
	eachFixture(t, func(t *testing.T, s *fixture) {
		s.freezeClock()
		r, e := s.addBatchReceiver()
		first := s.publishTools(3)
		s.sendDue(e)
		sent := r.ids()[0]
		replay := func(id string) {
			t.Helper()
			r.reset()
			if err := s.Replay(t.Context(), e, id); err != nil {
				t.Fatal(err)
			}
			s.sendDue(e)
		}
		replay(sent)
		expectBatches(t, r, ids(first, 4))
		if got := r.ids()[0]; got != sent {
			t.Errorf("got %s, want %s", got, sent)
		}
		replay(ids(first+1, 1)[0])
		expectBatches(t, r, ids(first+1, 1))
		r.respondStatus(500)
		second := s.publishTools(3)
		s.sendDue(e)
		r.respondStatus(200)
		replay(ids(second+2, 1)[0]) // which waits to be sent again
		expectBatches(t, r, ids(second, 4))
		if len(s.deliveries(e)) != 0 {
			t.Errorf("got %d deliveries, want none", len(s.deliveries(e)))
		}
		_, other := s.addBatchReceiver()
		for id, endpoint := range map[string]*ent.Endpoint{"batch_": e, "batch_x_y": e, sent + "0": e, "batch_1_0123456789abcdef": e, sent: other} {
			if err := s.Replay(t.Context(), endpoint, id); err == nil || problem.Of(err).Code == problem.Internal {
				t.Errorf("%s: got %v, want an error of the caller", id, err)
			}
		}
	})
}

// When the owner changes the setting, pending retries follow it.
func TestSetBatches(t *testing.T) {
	t.Parallel()
	eachFixture(t, func(t *testing.T, s *fixture) {
		s.freezeClock()
		r, e := s.addBatchReceiver()
		r.respondStatus(500)
		first := s.publishTools(2)
		s.sendDue(e)
		change := func(batches bool) {
			if err := s.SetBatches(t.Context(), e, batches); err != nil {
				t.Fatal(err)
			}
			r.reset()
			s.clock.advance(6 * time.Minute)
		}
		change(false)
		s.sendDue(e) // catalog.published waits again
		if got := r.ids(); !slices.Equal(got, ids(first, 2)) {
			t.Errorf("got %v, want %v", got, ids(first, 2))
		}
		change(true)
		r.respondStatus(200)
		s.sendDue(e)
		s.sendDue(e)
		expectBatches(t, r, ids(first, 1), ids(first+1, 1), ids(first+2, 1))
		if len(s.deliveries(e)) != 0 {
			t.Errorf("got %d deliveries, want none", len(s.deliveries(e)))
		}
	})
}

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
	published, err := journal.Read(t.Context(), s.Store.Current().JournalEntry, journal.Query{After: start, Limit: 10_000})
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
