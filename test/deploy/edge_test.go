package deploy_test

import (
	"bytes"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"palmares/internal/catalog/feed"
	"palmares/internal/catalog/feed/feedtest"
	"palmares/internal/catalog/publish"
	"palmares/internal/core/edge"
	"palmares/internal/core/store"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
	"palmares/internal/dev/testkit/blackbox"
	"palmares/internal/dev/testkit/wait"
)

// modelEdge stores responses forever, until one of their keys is purged. It ignores the
// second purge of a release, which would hide a key that is missing in the next one.
type modelEdge struct {
	mu     sync.Mutex
	stored map[string]storedResponse // by path
	purges map[string]bool           // by their keys
}

type storedResponse struct {
	status     int
	body, keys string
}

// ServeHTTP receives purges.
func (e *modelEdge) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	e.mu.Lock()
	defer e.mu.Unlock()
	purged := r.Header.Get(edge.KeysHeader)
	if r.Header.Get("X-Purge-Token") != "secret" || e.purges[purged] {
		return
	}
	e.purges[purged] = true
	maps.DeleteFunc(e.stored, func(_ string, s storedResponse) bool { return shareWord(s.keys, purged) })
}

func shareWord(a, b string) bool {
	return slices.ContainsFunc(strings.Fields(a), func(word string) bool { return slices.Contains(strings.Fields(b), word) })
}

// serveEdge starts a server that purges an edge.
func serveEdge(t *testing.T, cfg store.Config, purges string) *blackbox.Server {
	t.Helper()
	return blackbox.Serve(t, cfg, "--trusted-proxies", "127.0.0.1", "--purge-url", purges, "--purge-header", "X-Purge-Token: secret")
}

// anySlug matches the slugs of tools and comparisons, which not every release has.
var anySlug = regexp.MustCompile(`\b[tc][0-9]+`)

// edgeTools is the number of tools that the catalog has at most.
const edgeTools = 10

// edgePaths are paths of all kinds of public responses.
func edgePaths() []string {
	paths := []string{
		"/api/v1/tools", "/api/v1/tools?limit=2&page=2", "/api/v1/tools?search=texte", "/api/v1/tools?category=code&search=zutil", "/api/v1/tools?score_min=5",
		"/api/v1/tools?category=code,voix", "/api/v1/tools?category=unknown", "/api/v1/tools?as_of=2", "/api/v1/tools?as_of=2026-02-01", "/api/v1/tools/t01?as_of=2026-02-01",
		"/api/v1/comparatifs", "/api/v1/comparatifs?category=voix", "/api/v1/pricing", "/api/v1/cimetiere", "/api/v1/cimetiere?category=code",
		"/api/v1/categories", "/api/v1/stats", "/api/v1/changes", "/api/v1/changes?slug=t01", "/api/v1/openapi.json", "/api/v1/openapi.yaml",
		"/graphql?query=%7Btool(slug:%22t01%22)%7Bname%20comparisons%7Btitle%7D%7D%7D", "/graphql?query=%7Bfeed%7Brelease%7D%7D",
		"/q/ana/texts.json", "/q/ana/texts.csv", "/q/ana/texts", "/feeds/changes.atom", "/feeds/prices.atom", "/feeds/cimetiere.atom", "/feeds/changelog.atom",
		"/sitemap.xml", "/sitemaps/pages.xml", "/sitemaps/tools-1.xml", "/llms.txt", "/llms-full.txt", "/search/suggestions?q=ou", "/robots.txt", "/schemas/events/tool.updated.json",
		"/.well-known/api-catalog", "/en/comparisons", "/fr/comparatifs", "/en/graveyard", "/fr/cimetiere",
	}
	for _, language := range []string{"/en", "/fr"} {
		for _, path := range []string{"/", "/tools", "/tools?category=code", "/tools.md", "/categories", "/editions/1", "/changes", "/prices", "/trends", "/compare", "/search?q=texte", "/guides", "/status"} {
			paths = append(paths, language+path)
		}
		for _, slug := range []string{"t01", "t02", "t03"} {
			paths = append(paths, language+"/tools/"+slug, language+"/compare/"+slug+"/t04")
		}
	}
	for i := range edgeTools {
		slug := fmt.Sprintf("t%02d", i)
		paths = append(paths, "/fr/cimetiere/"+slug, "/en/graveyard/"+slug, "/api/v1/tools/"+slug, "/api/v1/tools/"+slug+"/versions", "/api/v1/pricing/"+slug)
	}
	for _, category := range feedtest.Categories {
		paths = append(paths, "/api/v1/tools?category="+category, "/api/v1/pricing?category="+category, "/en/categories/"+category,
			"/api/v1/tools?category="+category+"&score_min=5&sort=name_desc")
	}
	for i := range 4 {
		paths = append(paths, fmt.Sprintf("/api/v1/comparatifs/c%d", i), fmt.Sprintf("/fr/comparatifs/c%d", i))
	}
	return paths
}

// An edge that stores responses until they are purged never has one that the server
// would no longer give, after any release.
func TestEdgeIsNeverStale(t *testing.T) {
	t.Parallel()
	testkit.Each(t, func(t *testing.T, cfg store.Config) {
		if cfg.DatabaseURL != "" {
			testkit.FullTier(t, "keys do not depend on the database")
		}
		model := &modelEdge{stored: map[string]storedResponse{}, purges: map[string]bool{}}
		purges := httptest.NewServer(model)
		t.Cleanup(purges.Close)
		db := testkit.Open(t, cfg)
		blackbox.CreateKey(t, cfg, "ana@example.com", "pro")
		query := blackbox.WriteFile(t, "texts.graphql", []byte("query Texts {tools(sort: name_asc) {items {slug tagline score}}}"))
		blackbox.MustRun(t, blackbox.Command(t, cfg, "queries", "save", "ana@example.com", "texts", query, "--handle", "ana"))
		s := serveEdge(t, cfg, purges.URL)
		catalog, day := feedtest.NewRandom(testkit.SeedOr(t, 39), edgeTools), 0
		catalog.Date = "2026-01-01"
		catalog.Change(10)
		survived, succeeded := map[string]int{}, map[string]bool{}
		for release := 1; release <= 25; {
			catalog.Change(1 + catalog.IntN(2)*catalog.IntN(4))
			day += catalog.IntN(2)
			catalog.Date = fmt.Sprintf("2026-%02d-%02d", 1+day/28, 1+day%28)
			report := check.Try(publish.Import(t.Context(), db, feed.NewLines(bytes.NewReader(catalog.Feed())), publish.Options{Force: true})).OK(t)
			if report.Release == 0 {
				continue // nothing changed
			}
			wait.Until(t, "the edge is purged", func() bool {
				return strings.Contains(s.Log.String(), fmt.Sprintf(`"msg":"edge purged","release":%d,`, release))
			})
			for _, path := range edgePaths() {
				a := caller{}.ask(t, s.Address, path)
				kind := anySlug.ReplaceAllString(path, "*")
				succeeded[kind] = succeeded[kind] || a.StatusCode == http.StatusOK
				got := storedResponse{a.StatusCode, string(a.body), a.Header.Get(edge.KeysHeader)}
				tags := a.Header.Get("Cache-Tag")
				check.True(t, strings.ReplaceAll(tags, ",", " ") == got.keys, "%s: got Cache-Tag %q, want the keys %q", path, tags, got.keys)
				model.mu.Lock()
				stored, found := model.stored[path]
				if caching := a.Header.Get("Cache-Control"); !found && got.keys != "" {
					model.stored[path] = got
				} else if !found && !strings.Contains(caching, "no-store") && !strings.Contains(caching, "private") {
					t.Errorf("%s: got no keys with status %d and Cache-Control %q, want keys", path, got.status, caching)
				}
				model.mu.Unlock()
				if !found {
					continue
				}
				if survived[path]++; got.status != stored.status || got.body != stored.body {
					t.Fatalf("release %d, %s: the edge has a stale response, with keys %s\ngot  %d %.500s\nwant %d %.500s", release, path, stored.keys, stored.status, stored.body, got.status, got.body)
				}
			}
			release++
		}
		for kind, ok := range succeeded {
			check.Equal(t, ok, true, "%s: 200 in one release", kind)
		}
		hits := survived["/api/v1/tools/t01"]
		check.True(t, hits >= 10 && survived["/api/v1/tools?category=chat"] >= 3, "got %d hits of a tool and %d of a category, want at least 10 and 3", hits, survived["/api/v1/tools?category=chat"])
	})
}

// A server that starts purges the releases that were published while none was running,
// and no others.
func TestEdgeAfterStart(t *testing.T) {
	t.Parallel()
	testkit.Each(t, func(t *testing.T, cfg store.Config) {
		db := testkit.Open(t, cfg)
		noon := time.Now().UTC().Add(-24 * time.Hour).Truncate(time.Hour)
		for i, slugs := range [][]string{{"a"}, {"a", "b"}, {"a", "b", "c"}} { // at 12:00, 12:30 and 13:00
			var tools []any
			for _, slug := range slugs {
				tools = append(tools, feedtest.Tool(slug))
			}
			_, err := publish.Import(t.Context(), db, feed.NewLines(bytes.NewReader(feedtest.Catalog("2026-11-01", tools...))), publish.Options{PublishedAt: noon.Add(time.Duration(i) * 30 * time.Minute)})
			check.OK(t, err)
		}
		for _, c := range []struct {
			lastUp time.Duration // after noon; 0 if no server has been running
			want   string
		}{
			{0, "release-0 release-1 release-2 tool-a tool-b tool-c category-code category-voix"},
			{45 * time.Minute, "release-2 tool-c category-code"},
			{31 * time.Minute, "release-1 release-2 tool-b tool-c category-code"}, // it may not have purged the second
			{2 * time.Hour, ""},
		} {
			check.Try(db.Write.Minute.Delete().Exec(t.Context())).OK(t)
			if c.lastUp > 0 {
				check.OK(t, db.Write.Minute.Create().SetID(int(noon.Add(c.lastUp).Unix()/60)).SetChecks(1).SetFailed(0).Exec(t.Context()))
			}
			model := &modelEdge{purges: map[string]bool{}}
			purges := httptest.NewServer(model)
			s := serveEdge(t, cfg, purges.URL)
			stop := func() {
				check.OK(t, s.Cmd.Process.Signal(syscall.SIGTERM))
				s.WaitForExit(t)
			}
			if c.want == "" {
				stop() // which waits for purges
				check.True(t, len(model.purges) == 0, "last up %s after noon: got purges %v, want none", c.lastUp, model.purges)
			} else {
				wait.Until(t, "the edge is purged of "+c.want, func() bool {
					model.mu.Lock()
					defer model.mu.Unlock()
					return model.purges[c.want]
				})
				stop()
			}
			purges.Close()
		}
	})
}
