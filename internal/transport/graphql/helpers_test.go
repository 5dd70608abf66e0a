package graphql_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"palmares/ent/journalentry"
	"palmares/graph"
	"palmares/graph/document"
	"palmares/graph/graphtest"
	"palmares/internal/catalog/feed/demo"
	"palmares/internal/catalog/feed/feedtest"
	"palmares/internal/catalog/journal"
	"palmares/internal/catalog/release"
	"palmares/internal/core/cache"
	"palmares/internal/core/store"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit/wait"
	"palmares/internal/transport/graphql"
)

func newExecutor(c release.Database) *graph.Executor { return newExecutorWith(c, graph.DefaultLimits) }

func newExecutorWith(c release.Database, limits document.Limits) *graph.Executor {
	return graphtest.New(graph.Config{Catalog: c, Credit: "Source : palmares (https://palmares.example)", Limits: limits})
}

func newHandler(e *graph.Executor) *graphql.Handler {
	return newStreamHandler(e, graphql.StreamConfig{Network: func(r *http.Request) string { return r.RemoteAddr }}) // each connection is its own caller
}

func newStreamHandler(e *graph.Executor, config graphql.StreamConfig) *graphql.Handler {
	return graphql.NewHandler(e, cache.New(1<<20, nil, slog.New(slog.DiscardHandler)), config)
}

func expect[T any](t testing.TB, what string, got, want T) {
	t.Helper()
	check.Equal(t, fmt.Sprintf("%+v", got), fmt.Sprintf("%+v", want), what)
}

// streamServer serves streams.
type streamServer struct {
	*graphql.Handler
	executor *graph.Executor
	server   *httptest.Server
	store    *store.Store
	releases int
}

func newStreamServer(t *testing.T, s *store.Store) *streamServer {
	t.Helper()
	l := &streamServer{executor: newExecutor(s), store: s}
	l.Handler = newHandler(l.executor)
	l.server = httptest.NewServer(l.Handler)
	t.Cleanup(l.server.Close)
	t.Cleanup(l.Handler.Close)
	return l
}

// publish imports a new release without announcing it.
func (l *streamServer) publish(t *testing.T) {
	t.Helper()
	l.releases++
	feedtest.Publish(t, l.store, bytes.Replace(demo.Catalog(), []byte("2026-11-10"), fmt.Appendf(nil, "2026-12-%02d", l.releases), 1))
}

const subscribe = `subscription {catalogPublished {release}}`

// stream is an open stream, read line by line.
type stream struct {
	*http.Response
	lines      chan string // closed when the stream ends
	disconnect context.CancelFunc
}

func (l *streamServer) open(t *testing.T, headers ...string) *stream {
	t.Helper()
	ctx, disconnect := context.WithCancel(t.Context())
	r := check.Try(http.NewRequestWithContext(ctx, http.MethodPost, l.server.URL, strings.NewReader(`{"query":"`+subscribe+`"}`))).OK(t)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "text/event-stream")
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	response := check.Try(http.DefaultClient.Do(r)).OK(t)
	s := &stream{response, make(chan string, 10_000), disconnect}
	t.Cleanup(disconnect)
	go func() {
		defer close(s.lines)
		defer response.Body.Close()
		hint := false // the block with the retry field, which is not an event
		for scanner := bufio.NewScanner(response.Body); scanner.Scan(); {
			line := scanner.Text()
			if hint = hint && line != "" || strings.HasPrefix(line, "retry: "); !hint {
				s.lines <- line
			}
		}
	}()
	return s
}

// events returns the next n events, skipping comments.
func (s *stream) events(t *testing.T, n int) []string {
	t.Helper()
	var events []string
	event := ""
	for deadline := time.After(wait.Limit); len(events) < n; {
		select {
		case line, ok := <-s.lines:
			switch {
			case !ok:
				t.Fatalf("got %q and the end of the stream, want %d events", events, n)
			case strings.HasPrefix(line, ":"):
			case line == "" && event != "":
				events, event = append(events, event), ""
			case line != "":
				event += line + "|"
			}
		case <-deadline:
			t.Fatalf("got %q, want %d events", events, n)
		}
	}
	return events
}

func (s *stream) waitForEnd(t *testing.T) {
	t.Helper()
	deadline := time.After(wait.Limit)
	for {
		select {
		case line, ok := <-s.lines:
			if !ok {
				return
			}
			check.True(t, !strings.HasPrefix(line, "event: complete"), "got %q, want no complete event, because clients would not reconnect", line)
		case <-deadline:
			t.Fatal("got an open stream, want it to end")
		}
	}
}

// publications returns the IDs of all catalog.published events.
func publications(t *testing.T, s *store.Store) (ids []string) {
	t.Helper()
	for _, id := range s.Read.JournalEntry.Query().Where(journalentry.Event(journal.EventCatalogPublished)).Order(journalentry.ByID()).IDsX(t.Context()) {
		ids = append(ids, fmt.Sprintf("evt_%d", id))
	}
	return ids
}
