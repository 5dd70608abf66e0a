package site

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp/kb"

	"palmares/graph"
	"palmares/graph/graphtest"
	"palmares/internal/catalog/feed"
	"palmares/internal/catalog/feed/demo"
	"palmares/internal/catalog/feed/feedtest"
	"palmares/internal/catalog/publish"
	"palmares/internal/catalog/record"
	"palmares/internal/core/cache"
	"palmares/internal/core/store"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
	"palmares/internal/dev/testkit/browser"
	"palmares/internal/web/page"
	"palmares/internal/web/status"
	"palmares/internal/web/visitor"
)

func TestMain(m *testing.M) { browser.Main(m) }

// startSite starts a server with the pages and their assets.
func startSite(t *testing.T, s *store.Store) (*Site, string) {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	site, err := New(Config{
		Service:  page.Service{PublicURL: "http://palmares.example", ServiceName: "palmares", Credit: "Source : palmares (http://palmares.example)", Log: log},
		Executor: graphtest.New(graph.Config{Catalog: s, Log: log}), Cache: cache.New(1<<20, nil, log),
		Visitors: visitor.NewLimiter(nil),
	})
	check.OK(t, err)
	mux := http.NewServeMux()
	mux.Handle("/", site)
	mux.Handle("GET "+page.AssetsPath, page.ServeAssets(page.SharedAssets))
	mux.Handle(status.Path, status.NewPage(status.Config{Service: page.Service{ServiceName: "palmares", Log: log}, Store: s, DownSince: func() time.Time { return time.Time{} }}))
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return site, server.URL
}

// Pages that a healthy server with an ordinary catalog never shows.
func TestUnusualPagesWithChromium(t *testing.T) {
	testkit.FullTier(t, "it needs Chromium")
	_, empty := startSite(t, testkit.Open(t, testkit.SQLite(t)))

	closed := testkit.Open(t, testkit.SQLite(t))
	_, unavailable := startSite(t, closed)
	closed.Close()

	busySite, busy := startSite(t, testkit.Open(t, testkit.SQLite(t)))
	request := httptest.NewRequest(http.MethodGet, "/", nil)
	request.RemoteAddr = "127.0.0.1:1"
	for range 2 { // all that one visitor may load at the same time
		_, err := busySite.Visitors.Start(busySite.Visitors.Identify(request))
		check.OK(t, err)
	}

	wide := testkit.Open(t, testkit.SQLite(t))
	for _, word := range []string{"Anticonstitutionnellement", "Intergouvernementalisation"} { // the version history shows both
		if _, err := publish.Import(t.Context(), wide, feed.NewLines(bytes.NewReader(catalogOfLongWords(word))), publish.Options{}); err != nil {
			t.Fatal(err)
		}
	}
	_, long := startSite(t, wide)

	chrome := browser.Start(t)
	for _, look := range []browser.Look{{}, {Dark: true}, {Width: 360}, {Width: 360, Dark: true}} {
		p := chrome.Open(t, look, empty+"/")
		for _, test := range []struct {
			base, path string
			status     int
		}{
			{empty, "/", 200}, {empty, "/tools", 200}, {empty, "/categories", 200}, {empty, "/search?q=x", 200}, {empty, "/compare", 200}, {empty, "/tools?score_min=x", 400}, {empty, "/changes", 200},
			{unavailable, "/tools", 503}, {unavailable, "/status", 503}, {busy, "/tools", 429},
		} {
			p.Go(test.base + test.path)
			check.Equal(t, p.Status(), test.status, test.path)
			p.Axe()
			p.Screenshot(fmt.Sprintf("unusual-%d%s-%d-%v", test.status, strings.ReplaceAll(test.path, "/", "-"), look.Width, look.Dark))
			checkWidth(t, p)
		}
	}
	for _, width := range []int{360, 768, 1280} {
		p := chrome.Open(t, browser.Look{Width: width}, long+"/")
		for _, path := range []string{"/", "/tools", "/tools/long", "/categories", "/categories/long", "/search?q=anti", "/compare", "/cimetiere", "/cimetiere/gone", "/comparatifs", "/comparatifs/long-vs-gone", "/changes", "/editions/2", "/tools/long?as_of=1"} {
			p.Go(long + path)
			checkWidth(t, p)
		}
	}
}

// checkWidth checks that neither the page nor a table overflows.
func checkWidth(t *testing.T, p *browser.Page) {
	t.Helper()
	var wider string
	p.Eval(`[document.documentElement, ...document.querySelectorAll(".scroll")].filter(box => box.scrollWidth > box.clientWidth).map(box => box.localName + " at " + innerWidth).join()`, &wider)
	if wider != "" {
		t.Errorf("%s: got %s wider than its container, want none", p.URL(), wider)
	}
}

// catalogOfLongWords returns a catalog of names that no line can break.
func catalogOfLongWords(word string) []byte {
	word = strings.Repeat(word, 4)
	score := 6.66
	return feedtest.Catalog("2026-11-01",
		&record.Category{Slug: "long", Label: word},
		feedtest.Tool("long", func(tool *record.Tool) {
			tool.Name, tool.Tagline, tool.Category, tool.Domain, tool.Score = word, word, "long", strings.ToLower(word)+".example", &score
		}),
		&record.Retired{Slug: "gone", Name: word, Category: "long", Reason: "absorbe", RetiredAt: "2026-03-14", Note: word},
		&record.Comparison{Slug: "long-vs-gone", Title: word, ToolA: "long", ToolB: "gone", Winner: "long", WinnerNote: word,
			Published: true, UpdatedAt: "2026-11-01", CanonicalURL: "https://palmares.example/long-vs-gone"})
}

// measures are JavaScript helpers for positions on a page.
const measures = `
const all = selector => [...document.querySelectorAll(selector)];
const box = element => element.getBoundingClientRect();
const spread = numbers => Math.max(...numbers) - Math.min(...numbers);
const textLeft = element => { const range = document.createRange(); range.selectNodeContents(element); return range.getBoundingClientRect().left };
const menu = all(".bar a").filter(link => link.checkVisibility()), firstOfRows = menu.filter((link, i) => i == 0 || box(link).left < box(menu[i-1]).left);
`

// Related elements are aligned at every width.
func TestAlignmentWithChromium(t *testing.T) {
	testkit.FullTier(t, "it needs Chromium")
	s := testkit.Open(t, testkit.SQLite(t))
	if _, err := publish.Import(t.Context(), s, feed.NewLines(bytes.NewReader(demo.Catalog())), publish.Options{}); err != nil {
		t.Fatal(err)
	}
	_, base := startSite(t, s)
	chrome := browser.Start(t)
	for _, width := range []int{360, 768, 1440} {
		p := chrome.Open(t, browser.Look{Width: width}, base+"/tools")
		atMost := func(what, expression string, most float64) {
			t.Helper()
			var got float64
			if p.Eval("(() => {"+measures+"return "+expression+"})()", &got); got > most {
				t.Errorf("%s at width %d: got %v for the %s, want at most %v", p.URL(), width, got, what, most)
			}
		}
		atMost("difference between the heights of the fields", `spread(all(".filter input, .filter select, .filter button").filter(field => field.checkVisibility()).map(field => box(field).height))`, 0.1)
		atMost("indentation of the menu", `spread([...firstOfRows, document.querySelector("h1")].map(textLeft))`, 0.5)
		atMost("missing height of a link as a touch target", `32 - Math.min(...menu.map(link => box(link).height))`, 0)
		atMost("height of the header", `box(document.querySelector("header")).height`, 70)
		atMost("rows of the header", `firstOfRows.length`, 1)

		p.Go(base + "/tools/plume")
		if width > 360 { // where the figures are in one row
			atMost("difference between the tops of the figures", `spread(all(".figures dd").map(figure => box(figure).top))`, 0.5)
			atMost("difference between the tops of their names", `spread(all(".figures dt").map(name => box(name).top))`, 0.5)

			p.Go(base + "/comparatifs/plume-vs-ecritoire-cie")
			atMost("difference between the figures of both cards", `spread(all(".sides .figures").map(figures => box(figures).top))`, 0.5)
		}

		p.Go(base + "/cimetiere")
		atMost("height of a badge", `Math.max(...all(".mark").map(mark => box(mark).height))`, 30)
	}
}

// On a phone, the menu opens without scripts, as a panel over the whole width.
func TestMenuOnPhoneWithChromium(t *testing.T) {
	testkit.FullTier(t, "it needs Chromium")
	_, base := startSite(t, testkit.Open(t, testkit.SQLite(t)))
	p := browser.Start(t).Open(t, browser.Look{Width: 390, NoScript: true}, base+"/")
	var shown string
	const links = `[...document.querySelectorAll("#menu a")].filter(link => link.checkVisibility()).length + " links, " + document.querySelector("#menu").offsetWidth + " wide"`
	if p.Eval(links, &shown); shown != "0 links, 0 wide" {
		t.Errorf("got %s before a click, want none", shown)
	}
	p.Click(".fold")
	if p.Eval(links, &shown); shown != "9 links, 390 wide" {
		t.Errorf("got %s, want 9 links, 390 wide", shown)
	}
}

// The search box suggests tools while the visitor types.
func TestSuggestionsWhileTypingWithChromium(t *testing.T) {
	testkit.FullTier(t, "it needs Chromium")
	_, address := startSite(t, testkit.Open(t, testkit.SQLite(t)))
	pages, err := url.Parse(address)
	check.OK(t, err)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/search/suggestions":
			w.Header().Set("Content-Type", "application/json")
			if q := r.URL.Query(); q.Get("q") == "plu" && q.Get("lang") == "en" {
				_, _ = w.Write([]byte(`[{"name":"<b>Plume","path":"/en/tools/plume","note":"Rédaction · 8.1"},{"name":"Plumeau","path":"/en/releases","note":""}]`))
			} else {
				_, _ = w.Write([]byte(`[]`))
			}
		case "/en/releases":
			http.Redirect(w, r, "/releases", http.StatusFound)
		default:
			httputil.NewSingleHostReverseProxy(pages).ServeHTTP(w, r)
		}
	}))
	t.Cleanup(server.Close)
	chrome := browser.Start(t)
	for _, look := range []browser.Look{{}, {Width: 390, Dark: true}} {
		p := chrome.Open(t, look, server.URL+"/tools")
		var before, after float64
		const position = `document.querySelector("h1").getBoundingClientRect().top`
		p.Eval(position, &before)
		p.Click("#find")
		for _, key := range []string{"p", "l", "u"} {
			p.Press(key)
		}
		p.WaitForText("#find-suggestions", "<b>Plume\nRédaction · 8.1\nPlumeau")
		if p.Eval(position, &after); after != before {
			t.Errorf("got the heading at %v, want it to stay at %v", after, before)
		}
		p.Axe()
		p.Screenshot(fmt.Sprintf("suggestions-%d", look.Width))
		state := func(want string) {
			t.Helper()
			var got string
			p.Eval(`(input => input.getAttribute("aria-expanded") + " " + input.getAttribute("aria-activedescendant"))(document.querySelector("#find"))`, &got)
			check.Equal(t, got, want, "state")
		}
		state("true null")
		p.Press(kb.ArrowUp)
		state("true find-suggestions-1")
		p.Press(kb.ArrowDown)
		state("true null")
		p.Press(kb.ArrowDown)
		state("true find-suggestions-0")
		p.Press(kb.Escape)
		state("false null")
		p.Press(kb.ArrowDown)
		p.Press(kb.ArrowDown)
		state("true find-suggestions-1")
		p.FollowKey(kb.Enter)
		check.Equal(t, p.URL(), server.URL+"/en/changes", "after Enter")
	}
}
