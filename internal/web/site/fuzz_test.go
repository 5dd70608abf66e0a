package site

import (
	"log/slog"
	"net/http"
	"net/url"
	"reflect"
	"testing"

	"palmares/graph"
	"palmares/graph/graphtest"
	"palmares/internal/core/cache"
	"palmares/internal/core/problem"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
)

// FuzzRequest checks that the normalized query string of a page is read as the original, and
// that other query strings and paths are a 400, or a 404 if an edition has no number.
func FuzzRequest(f *testing.F) {
	for _, query := range []string{"q=plume&page=2", "sort=price_asc&score_min=7,5", "sort=relevance&q=a", "category=+code+&pricing=", "as_of=8", "as_of=2026-11-10&q=x", "direction=up", "page=0", "q=%ff"} {
		f.Add(query, "plume")
	}
	log := slog.New(slog.DiscardHandler)
	site, err := New(Config{
		Executor: graphtest.New(graph.Config{Catalog: testkit.Open(f, testkit.SQLite(f)), Log: log}), Cache: cache.New(1<<20, nil, log),
	})
	check.OK(f, err)
	f.Fuzz(func(t *testing.T, query, slug string) {
		for _, route := range site.routes {
			parse := func(query string) (*request, error) {
				r := (&http.Request{Method: http.MethodGet, URL: &url.URL{Path: "/", RawQuery: query}, Header: http.Header{}}).WithContext(t.Context())
				for _, name := range route.pathParams() {
					r.SetPathValue(name, slug)
				}
				return route.parse(r)
			}
			first, err := parse(query)
			if err != nil {
				if p := problem.Of(err); p.Code != problem.BadInput && (route.name != "edition" || p.Code != problem.NotFound) || p.Message == "" {
					t.Errorf("%s?%s: got %v, want a 400", route.pattern, query, err)
				}
				continue
			}
			again, err := parse(first.query.Encode())
			if err != nil || again.asOf != first.asOf || !reflect.DeepEqual(again.variables, first.variables) || again.query.Encode() != first.query.Encode() {
				t.Errorf("%s?%s: got %+v and %v from %s, want %v", route.pattern, query, again, err, first.query.Encode(), first.variables)
			}
		}
	})
}
