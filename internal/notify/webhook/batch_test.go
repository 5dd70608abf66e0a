package webhook

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"palmares/ent"
	"palmares/graph"
	"palmares/graph/graphtest"
	"palmares/internal/catalog/feed/feedtest"
	"palmares/internal/catalog/feed/synth"
	"palmares/internal/catalog/journal"
	"palmares/internal/core/cache"
	"palmares/internal/core/problem"
	"palmares/internal/dev/check"
	"palmares/internal/transport/graphql"
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
		more = check.Try(s.round(s.t.Context(), always, e.ID)).OK(s.t)
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
	check.Equal(t, json.Unmarshal(one.body, &body), nil)
	check.Equal(t, body.ID, one.header.Get("webhook-id"), "webhook-id")
	if body.Type != journal.EventsBatch {
		return []sentEvent{body}
	}
	for _, event := range body.Data.Events {
		check.Equal(t, event.Release, body.Release, "%s: event of release", body.ID)
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
	got := r.batches(t)
	check.True(t, slices.EqualFunc(got, want, slices.Equal), "got batches %v\nwant %v", got, want)
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
		check.Slices(t, single.ids(), slices.Concat(ids(first, 251), ids(second, 100), ids(third, 101), ids(last, 1)))
		hook := check.Try(standardwebhooks.NewWebhook(e.Secret)).OK(t)
		for _, one := range r.all() {
			check.Equal(t, hook.Verify(one.body, one.header), nil)
		}
		attempts := s.attempts(e)
		check.Must(t, len(attempts), 7, "attempts %v", attempts)
		check.Equal(t, attempts[6].Type, journal.EventsBatch)
		check.Equal(t, len(attempts[6].Events), 100)
		check.Equal(t, MessageID(attempts[6]), r.ids()[0])
		newest, _ := journal.Newest(t.Context(), s.Store.Read.JournalEntry)
		check.Equal(t, s.find(e.ID).Position, newest)
		check.Equal(t, len(s.deliveries(e)), 0)
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
			length := 12_000 + i*1_999%7_000 + i%5/4*30_000
			entry.After = fmt.Appendf(nil, `{"slug":"tool-%d","tagline":"%s"}`, i, strings.Repeat("x", length))
			entries = append(entries, entry)
		}
		first := s.publish(entries...)
		s.sendAll(e)
		check.Slices(t, slices.Concat(r.batches(t)...), ids(first, 61))
		all := r.all()
		for i, one := range all {
			check.True(t, len(one.body) <= 262_144 && (i >= len(all)-1 || len(one.body) >= 262_144-maxBody-batchEnvelope),
				"batch %d of %d: got %d bytes, want as many as fit into 262144", i+1, len(all), len(one.body))
		}
		check.True(t, len(all) >= 3, "got %d batches, want at least 3", len(all))
	})
}

// Batches of real events match the published schema.
func TestBatchSchema(t *testing.T) {
	t.Parallel()
	s := newSQLiteFixture(t)
	r, e := s.addBatchReceiver()
	feedtest.Publish(t, s.Store, feedtest.Synthetic(t, synth.Options{Tools: 40, Seed: 1}))
	feedtest.Publish(t, s.Store, feedtest.Synthetic(t, synth.Options{Tools: 40, Seed: 1, Revision: 5}))
	s.sendAll(e)
	check.MustTrue(t, len(r.all()) >= 2, "got %d batches, want at least 2", len(r.all()))
	for _, one := range r.all() {
		fitsSchema(t, journal.EventsBatch, one.body)
	}
}

// A batch that failed is sent again with the same ID and body, no matter what
// was published in the meantime. When its attempts are exhausted, so are its events.
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
			check.Equal(t, string(one.body), string(failed[i].body), "retry %d", i)
		}
		check.Equal(t, len(s.deliveries(e)), 0, "retries")

		r.reset()
		r.respondStatus(500)
		third := s.publishTools(2)
		s.sendAll(e)
		s.exhaustRetries(e)
		got := r.ids()
		check.Equal(t, len(got), 10, got)
		check.Equal(t, len(slices.Compact(got)), 1)
		check.Equal(t, len(s.deliveries(e)), 0)
		expectBatches(t, &receiver{got: r.all()[:1]}, ids(third, 3))
		r.reset()
		r.respondStatus(200)
		fourth := s.publishTools(1)
		s.sendAll(e)
		expectBatches(t, r, ids(fourth, 2))
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

// Batches are replayed as a whole, with the same ID; other events individually.
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
			check.OK(t, s.Replay(t.Context(), e, id))
			s.sendDue(e)
		}
		replay(sent)
		expectBatches(t, r, ids(first, 4))
		check.Equal(t, r.ids()[0], sent)
		replay(ids(first+1, 1)[0])
		expectBatches(t, r, ids(first+1, 1))
		r.respondStatus(500)
		second := s.publishTools(3)
		s.sendDue(e)
		r.respondStatus(200)
		replay(ids(second+2, 1)[0]) // which waits to be sent again
		expectBatches(t, r, ids(second, 4))
		check.Equal(t, len(s.deliveries(e)), 0, "deliveries")
		_, other := s.addBatchReceiver()
		for id, endpoint := range map[string]*ent.Endpoint{"batch_": e, "batch_x_y": e, sent + "0": e, "batch_1_0123456789abcdef": e, sent: other} {
			err := s.Replay(t.Context(), endpoint, id)
			check.Fails(t, err, id)
			check.True(t, problem.Of(err).Code != problem.Internal, "%s: got %v, want an error of the caller", id, err)
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
			check.OK(t, s.SetBatches(t.Context(), e, batches))
			r.reset()
			s.clock.advance(6 * time.Minute)
		}
		change(false)
		s.sendDue(e) // catalog.published waits again
		check.Slices(t, r.ids(), ids(first, 2))
		change(true)
		r.respondStatus(200)
		s.sendDue(e)
		s.sendDue(e)
		expectBatches(t, r, ids(first, 1), ids(first+1, 1), ids(first+2, 1))
		check.Equal(t, len(s.deliveries(e)), 0, "deliveries")
	})
}

// Events that are too long are sent as a link to the full event.
func TestLongBody(t *testing.T) {
	t.Parallel()
	s := newSQLiteFixture(t)
	r, e := s.addReceiver()
	long := func(tagline string) []byte {
		return []byte(`{"slug":"long","name":"Long","tagline":"` + tagline + `"}`)
	}
	first := s.publish(
		journal.Entry{Kind: journal.ToolUpdated, Event: journal.EventToolUpdated, Slug: "long", Category: "code", Before: long("short"), After: long(strings.Repeat("€", 8_000))},
		journal.Entry{Kind: journal.ToolCreated, Event: journal.EventToolCreated, Slug: "long", Category: "code", After: long(strings.Repeat("x", 19_000))},
	)
	s.sendDue(e)
	got := r.all()
	check.Must(t, len(got), 3)
	check.MustTrue(t, len(got[1].body) >= 19_000 && len(got[0].body) <= 2_000, "got %d events, want 3 of which the first is short", len(got))
	executor := graphtest.New(graph.Config{Catalog: s.Store})
	api := graphql.NewHandler(executor, cache.New(1<<20, nil, slog.New(slog.DiscardHandler)), graphql.StreamConfig{})
	for i, one := range got {
		var body struct {
			ID, Type, Slug string
			Data           struct {
				TooLong bool `json:"too_long"`
				Bytes   int
				Fields  int `json:"fields_changed"`
				Link    string
			}
		}
		check.True(t, len(one.body) <= maxBody, "got %d bytes, want at most %d", len(one.body), maxBody)
		check.OK(t, json.Unmarshal(one.body, &body))
		check.Equal(t, body.Data.TooLong, (i == 0), "event %d: %.100s", i, one.body)
		if !body.Data.TooLong {
			continue
		}
		fitsSchema(t, body.Type, one.body)
		check.True(t, body.Data.Bytes >= 24_000, "got %s, want a link instead of one long field", one.body)
		check.Equal(t, body.Data.Fields, 1, string(one.body))
		check.Equal(t, body.Slug, "long", string(one.body))
		check.Equal(t, body.Type, journal.EventToolUpdated, string(one.body))
		path, found := strings.CutPrefix(body.Data.Link, s.PublicURL)
		response := httptest.NewRecorder()
		api.ServeHTTP(response, httptest.NewRequest(http.MethodGet, path, nil))
		if text := response.Body.String(); !found || response.Code != 200 || !strings.Contains(text, `"id":"`+ids(first, 1)[0]+`"`) || strings.Count(text, "€") != 8_000 {
			t.Errorf("%s: got %d %.300s, want the whole event", body.Data.Link, response.Code, text)
		}
	}
}

// The link to the first event has no cursor.
func TestLinkToFirstEvent(t *testing.T) {
	t.Parallel()
	link := New(Config{}).linkTo(&journal.Event{Number: 1})
	check.Lacks(t, link, "evt_0")
	check.Contains(t, link, "null")
}

// fitsSchema checks a body against the published schema of its type.
func fitsSchema(t *testing.T, event string, body []byte) {
	t.Helper()
	response := httptest.NewRecorder()
	journal.SchemaHandler().ServeHTTP(response, httptest.NewRequest(http.MethodGet, journal.SchemasPath+event+".json", nil))
	published := check.Try(jsonschema.UnmarshalJSON(response.Body)).OK(t)
	compiler := jsonschema.NewCompiler()
	check.OK(t, compiler.AddResource("schema.json", published))
	schema := check.Try(compiler.Compile("schema.json")).OK(t)
	sent := check.Try(jsonschema.UnmarshalJSON(bytes.NewReader(body))).OK(t)
	check.Equal(t, schema.Validate(sent), nil)
}

// A round holds in memory only the events that it is about to send. This test
// does not run in parallel with others.
func TestMemoryOfRound(t *testing.T) {
	const events, length = 100, 300_000
	eachFixture(t, func(t *testing.T, s *fixture) {
		r, e := s.addReceiver()
		entries := make([]journal.Entry, events)
		for i := range entries {
			entries[i] = toolCreated(fmt.Sprintf("tool-%d", i), "code")
			entries[i].After = fmt.Appendf(nil, `{"slug":"tool-%d","tagline":"%s"}`, i, strings.Repeat("x", length))
		}
		s.publish(entries...)
		clear(entries)
		var most atomic.Int64
		r.respond(func(n int, w http.ResponseWriter, _ *http.Request) {
			if n%10 == 5 {
				most.Store(max(most.Load(), heapSize()))
			}
			w.WriteHeader(500)
		})
		before := heapSize()
		s.freezeClock()
		for _, what := range []string{"new", "retries"} {
			most.Store(0)
			r.reset()
			check.OK(t, s.Store.Write.Endpoint.UpdateOneID(e.ID).SetFailures(0).Exec(t.Context()))
			s.sendDue(e)
			if len(r.all()) != events { // catalog.published waits
				t.Fatalf("got %d events, want %d", len(r.all()), events)
			}
			more := most.Load() - before
			check.True(t, more <= events*length/3, "%s: got %d MB on the heap for %d MB of events, want at most a third", what, more>>20, events*length>>20)
			s.clock.advance(6 * time.Second)
		}
	})
}

func heapSize() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// The time for sending starts when the first event has been read.
func TestWithin(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { // which has its own clock
		mayStart := within(time.Second)
		time.Sleep(5 * time.Second)
		check.True(t, mayStart(), "got false before the limit started, want true")
		time.Sleep(time.Second - 1)
		check.True(t, mayStart(), "got false before the limit, want true")
		time.Sleep(time.Nanosecond)
		check.True(t, !mayStart(), "got true after the limit, want false")
	})
}
