package webhook

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"palmares/graph"
	"palmares/graph/graphtest"
	"palmares/internal/catalog/journal"
	"palmares/internal/core/cache"
	"palmares/internal/dev/check"
	"palmares/internal/transport/graphql"
)

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
