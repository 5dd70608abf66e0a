package site

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"palmares/graph"
	"palmares/internal/catalog/feed"
	"palmares/internal/catalog/feed/feedtest"
	"palmares/internal/core/cache"
	"palmares/internal/core/store"
	"palmares/internal/dev/testkit"
	"palmares/internal/dev/testkit/browser"
	"palmares/internal/web/page"
	"palmares/internal/web/status"
)

// visited is pages for a browser, with their assets, over a database.
func visited(t *testing.T, s *store.Store) (*Site, string) {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	site, err := New(Config{
		PublicURL: "http://palmares.example", ServiceName: "palmares", Credit: "Source : palmares (http://palmares.example)",
		Executor: graph.NewExecutor(graph.Config{Catalog: s, Limits: graph.DefaultLimits, Log: log}), Answers: cache.New(1<<20, nil, log), Log: log,
	})
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	site.Register(mux)
	mux.Handle("GET "+page.AssetsPath, page.ServeAssets(page.Own, Assets, status.Assets))
	mux.Handle(status.Path, status.NewPage(status.Config{ServiceName: "palmares", Store: s, Log: log}))
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return site, server.URL
}

// Pages that a healthy server with a usual catalog never shows look right, too.
func TestUnusualPagesLookRight(t *testing.T) {
	_, empty := visited(t, testkit.Open(t, testkit.SQLite(t)))

	closed := testkit.Open(t, testkit.SQLite(t))
	_, away := visited(t, closed)
	closed.Close()

	busySite, busy := visited(t, testkit.Open(t, testkit.SQLite(t)))
	for range pagesOfOne {
		busySite.slots.enter(netip.MustParsePrefix("127.0.0.1/32"))
	}

	wide := testkit.Open(t, testkit.SQLite(t))
	if _, err := feed.Import(t.Context(), wide, bytes.NewReader(catalogOfLongWords()), feed.Options{}); err != nil {
		t.Fatal(err)
	}
	_, long := visited(t, wide)

	chrome := browser.Start(t)
	for _, look := range []browser.Look{{}, {Dark: true}, {Width: 360}, {Width: 360, Dark: true}} {
		p := chrome.Open(t, look, empty+"/")
		for _, shown := range []struct {
			base, path string
			status     int
		}{
			{empty, "/", 200}, {empty, "/tools", 200}, {empty, "/categories", 200},
			{away, "/tools", 503}, {away, "/status", 503}, {busy, "/tools", 429},
		} {
			p.Go(shown.base + shown.path)
			if p.Status() != shown.status {
				t.Errorf("%s: %d", shown.path, p.Status())
			}
			p.Axe()
			p.Screenshot(fmt.Sprintf("unusual-%d%s-%d-%v", shown.status, strings.ReplaceAll(shown.path, "/", "-"), look.Width, look.Dark))
			nothingWider(t, p)
		}
	}
	for _, width := range []int{360, 768, 1280} {
		p := chrome.Open(t, browser.Look{Width: width}, long+"/")
		for _, path := range []string{"/", "/tools", "/tools/long", "/categories", "/cimetiere", "/cimetiere/gone", "/comparatifs", "/comparatifs/long-vs-gone"} {
			p.Go(long + path)
			nothingWider(t, p)
		}
	}
}

// nothingWider checks that a page fits its window, and each table its place.
func nothingWider(t *testing.T, p *browser.Page) {
	t.Helper()
	var wider string
	p.Eval(`[document.documentElement, ...document.querySelectorAll(".scroll")].filter(box => box.scrollWidth > box.clientWidth).map(box => box.localName + " at " + innerWidth).join()`, &wider)
	if wider != "" {
		t.Errorf("%s: wider than its place: %s", p.URL(), wider)
	}
}

// catalogOfLongWords has no place to break a line.
func catalogOfLongWords() []byte {
	word := strings.Repeat("Anticonstitutionnellement", 4)
	score := 6.66
	return feedtest.Catalog("2026-11-01",
		&feed.Category{Slug: "long", Label: word},
		feedtest.Tool("long", func(tool *feed.Tool) {
			tool.Name, tool.Tagline, tool.Category, tool.Domain, tool.Score = word, word, "long", strings.ToLower(word)+".example", &score
		}),
		&feed.Retired{Slug: "gone", Name: word, Category: "long", Reason: "absorbe", RetiredAt: "2026-03-14", Note: word},
		&feed.Comparison{Slug: "long-vs-gone", Title: word, ToolA: "long", ToolB: "gone", Winner: "long", WinnerNote: word,
			Published: true, UpdatedAt: "2026-11-01", CanonicalURL: "https://palmares.example/long-vs-gone"})
}
