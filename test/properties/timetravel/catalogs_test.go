// Package timetravel_test checks on both databases that every release can later be
// read exactly as it was when it was the newest.
package timetravel_test

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"palmares/auth"
	"palmares/graph"
	"palmares/graph/graphtest"
	"palmares/internal/catalog/feed/feedtest"
	"palmares/internal/catalog/release"
	"palmares/internal/core/cache"
	"palmares/internal/core/store"
	"palmares/internal/dev/check"
	"palmares/internal/transport/graphql"
	"palmares/rest"
)

// dates are the feed dates of random releases. Some are equal, and one is older than
// the one before it.
var dates = []string{
	"2026-01-03", "2026-01-04", "2026-01-04", "2026-01-09", "2026-02-01", "2026-01-20",
	"2026-02-02", "2026-02-28", "2026-03-01", "2026-03-01", "2026-03-01", "2026-05-12",
}

// randomCatalog returns the feed of the i-th release.
func randomCatalog(i, tools int) []byte {
	catalog := feedtest.NewRandom(7, tools)
	for release := range i + 1 {
		catalog.Date = dates[release%len(dates)]
		catalog.Change(2 * tools)
	}
	return catalog.Feed()
}

const publicURL = "https://palmares.example"

// server is a REST and a GraphQL interface with one cache, like the program's.
type server struct {
	responses *cache.Cache
	executor  *graph.Executor
	rest      http.Handler
	graphql   http.Handler
}

const serverMemory = 16 << 20

func newServer(t testing.TB, catalog release.Database) *server {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	s := &server{responses: cache.New(serverMemory, []byte("secret"), log)}
	limits := graph.DefaultLimits
	limits.Time = time.Minute // these tests are not about slow machines
	s.executor = graphtest.New(graph.Config{Catalog: catalog, Credit: "Source", Limits: limits, Log: log, Cache: s.responses, Tools: func() int { return 1_000 }})
	s.graphql = graphql.NewHandler(s.executor, s.responses, graphql.StreamConfig{})
	var err error
	if s.rest, err = rest.NewHandler(rest.Config{PublicURL: publicURL, ServiceName: "palmares", ServiceURL: publicURL}, s.executor, s.responses); err != nil {
		t.Fatal(err)
	}
	return s
}

// publish imports a feed, and serves it as the program does.
func (s *server) publish(t testing.TB, db *store.Store, data []byte) int {
	t.Helper()
	number := feedtest.Publish(t, db, data)
	check.OK(t, s.responses.Renew(number))
	return number
}

var (
	anonymous = auth.Caller{Plan: auth.Anonymous}
	developer = auth.Caller{Plan: auth.Developer, Account: 1, Key: "key"}
)

// get requests a REST path.
func (s *server) get(caller auth.Caller, target string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodGet, target, nil)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	s.rest.ServeHTTP(w, r.WithContext(auth.WithCaller(r.Context(), caller)))
	return w
}

// query executes a GraphQL document.
func (s *server) query(t testing.TB, document string, variables map[string]any) *graph.Result {
	t.Helper()
	return s.executor.Execute(auth.WithCaller(t.Context(), developer), graph.Request{Query: document, Variables: variables})
}

// with adds a parameter to the address of a REST path.
func with(target, name string, value any) string {
	separator := "?"
	if strings.Contains(target, "?") {
		separator = "&"
	}
	return fmt.Sprint(target, separator, name, "=", value)
}

// differsAt returns two strings around their first difference.
func differsAt(got, want string) string {
	i := 0
	for i < min(len(got), len(want)) && got[i] == want[i] {
		i++
	}
	near := func(text string) string { return text[max(0, min(i-120, len(text))):min(len(text), i+120)] }
	return fmt.Sprintf("at %d\ngot  …%s…\nwant …%s…", i, near(got), near(want))
}
