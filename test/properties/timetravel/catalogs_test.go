// Package timetravel_test checks on both databases that every release can later be
// read exactly as it was when it was the newest.
package timetravel_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"palmares/auth"
	"palmares/graph"
	"palmares/graph/graphtest"
	"palmares/internal/catalog/feed"
	"palmares/internal/catalog/feed/synth"
	"palmares/internal/catalog/publish"
	"palmares/internal/catalog/record"
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

var published = regexp.MustCompile(`,"published":(true|false)`)

// randomCatalog returns the feed of the i-th release. Compared with others, tools
// and categories are removed, tools are retired and active again, categories are
// renamed, and comparisons are published and unpublished.
func randomCatalog(t testing.TB, i, tools int) []byte {
	t.Helper()
	var buf bytes.Buffer
	check.OK(t, synth.Write(t.Context(), &buf, synth.Options{Tools: tools, Seed: uint64(i / 5), Revision: i}))
	r := rand.New(rand.NewPCG(uint64(i), 7))
	removed := map[string]bool{}
	var lines []string
	for line := range strings.Lines(buf.String()) {
		kind, rest, _ := strings.Cut(strings.TrimPrefix(line, `{"type":"`), `"`)
		slug, _, _ := strings.Cut(strings.TrimPrefix(rest, `,"slug":"`), `"`)
		switch n := r.IntN(16); {
		case len(lines) == 0:
			line = regexp.MustCompile(`"updated_at":"[^"]*"`).ReplaceAllString(line, `"updated_at":"`+dates[i%len(dates)]+`"`)
		case kind == "category" && slug == "vide" && n < 8:
			continue
		case kind == "category" && n < 5:
			line = strings.Replace(line, `"label":"`, fmt.Sprintf(`"label":"Nouveau%d `, i), 1)
		case kind == "tool" && n == 0:
			removed[slug] = true
			continue
		case kind == "tool" && n == 1:
			reason := []string{"mort", "acquis", "deprecie", "pivot", "absorbe"}[r.IntN(5)]
			line = string(feed.Line(&record.Retired{
				Slug: slug, Name: "Feu " + slug, Category: "code", Reason: reason, RetiredAt: fmt.Sprintf("2026-01-%02d", 1+i), Note: "Parti.",
			})) + "\n"
		case kind == "comparatif" && n < 3:
			is := published.FindString(line)
			line = published.ReplaceAllString(line, "")
			if !strings.HasSuffix(is, "false") {
				line = strings.TrimSuffix(line, "}\n") + `,"published":false}` + "\n"
			}
		}
		lines = append(lines, line)
	}
	var out strings.Builder
	for _, line := range lines {
		if !strings.HasPrefix(line, `{"type":"comparatif"`) || !refersTo(line, removed) {
			out.WriteString(line)
		}
	}
	return []byte(out.String())
}

func refersTo(line string, slugs map[string]bool) bool {
	for slug := range slugs {
		if strings.Contains(line, `"`+slug+`"`) {
			return true
		}
	}
	return false
}

// publish imports a feed and returns the number of the release.
func publishFeed(t testing.TB, s *store.Store, data []byte) int {
	t.Helper()
	report := check.Try(publish.Import(t.Context(), s, feed.NewLines(bytes.NewReader(data)), publish.Options{Force: true})).OK(t)
	check.MustTrue(t, report.Release != 0, "got no release, want one")
	return report.Release
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
	number := publishFeed(t, db, data)
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
