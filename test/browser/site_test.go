package browser_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"

	"palmares/internal/catalog/feed/synth"
	"palmares/internal/core/lang"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
	"palmares/internal/dev/testkit/blackbox"
	"palmares/internal/dev/testkit/browser"
	"palmares/internal/web/prose"
)

// checkPage checks that a page is accessible and fits its window. The browser
// package itself checks the console and requests to other hosts.
func checkPage(t *testing.T, p *browser.Page, name string) {
	t.Helper()
	p.Axe()
	p.Screenshot(name)
	checkFit(t, p, name)
}

// inLanguages runs a test in each language.
func inLanguages(t *testing.T, test func(t *testing.T, l lang.Language)) {
	for _, l := range lang.All {
		t.Run(string(l), func(t *testing.T) { test(t, l) })
	}
}

// The list of tools can be filtered, sorted and paged with only a keyboard and
// without scripts.
func TestSiteByKeyboard(t *testing.T) {
	t.Parallel()
	cfg := testkit.SQLite(t)
	blackbox.MustRun(t, blackbox.Command(t, cfg, "import", blackbox.SynthFile(t, synth.Options{Tools: 300, Seed: 1})))
	s := blackbox.Serve(t, cfg)
	chrome, base := browser.Start(t), "http://"+s.Address
	inLanguages(t, func(t *testing.T, l lang.Language) {
		list := base + l.Path("/tools")
		p := chrome.Open(t, browser.Look{NoScript: true, Width: 360}, list)
		to := func(id string) {
			t.Helper()
			for range 120 { // fifty tools are between the form and the link to the next page
				if strings.Contains(p.Focused(), id) {
					return
				}
				p.Press(kb.Tab)
			}
			t.Fatalf("got focus on %s, want %s after pressing Tab", p.Focused(), id)
		}
		to("summary") // phones fold the filters
		p.Press(kb.Enter)
		to("score_min")
		p.Press("5")
		to("sort")
		p.Press(kb.ArrowDown)
		p.Press(kb.ArrowDown)
		to(l.Text("Find tools"))
		p.FollowKey(kb.Enter)
		got := p.URL()
		check.MustTrue(t, strings.HasPrefix(got, list+"?") && strings.Contains(got, "score_min=5") && strings.Contains(got, "sort=name_asc"), "got URL %s, want score_min=5 and sort=name_asc", got)
		text := p.Text("[role=status]")
		check.MustTrue(t, strings.HasPrefix(text, "1–50 "), "got status %s, want 1–50", text)
		first := p.Text("tbody th a")
		to(l.Text("Next"))
		p.FollowKey(kb.Enter)
		if text := p.Text("[role=status]"); !strings.HasPrefix(text, "51–100 ") {
			t.Errorf("next page: got %s at %s, want 51–100", text, p.URL())
		}
		second := p.Text("tbody th a")
		check.True(t, strings.ToLower(second) > strings.ToLower(first), "got %s after %s, want the tools in order", second, first)
	})
}

var inPage = regexp.MustCompile(`(?:href|src)="(/assets/[^"]+)"`)

// Pages are small, including their assets.
func TestPageSizes(t *testing.T) {
	t.Parallel()
	s := blackbox.Serve(t, testkit.SQLite(t), "--demo")
	const most = 50_000
	for _, path := range []string{"/en/", "/fr/tools/plume", "/en/tools/plume?as_of=5", "/fr/compare/plume/ecritoire-cie", "/en/changes", "/en/editions/8"} {
		page, size := fetchCompressed(t, s, path)
		for _, match := range inPage.FindAllStringSubmatch(page, -1) {
			_, more := fetchCompressed(t, s, match[1])
			size += more
		}
		check.True(t, size <= most, "%s: got %d bytes, want at most %d", path, size, most)
		t.Logf("%s: %d bytes with its assets", path, size)
	}
}

// fetchCompressed returns a body and its compressed size.
func fetchCompressed(t *testing.T, s *blackbox.Server, path string) (string, int) {
	t.Helper()
	request := check.Try(http.NewRequest(http.MethodGet, "http://"+s.Address+path, nil)).OK(t)
	request.Header.Set("Accept-Encoding", "gzip")
	response := check.Try(http.DefaultTransport.RoundTrip(request)).OK(t)
	defer response.Body.Close()
	check.Must(t, response.StatusCode, http.StatusOK, path)
	sent := blackbox.ReadAll(t, response.Body)
	if response.Header.Get("Content-Encoding") != "gzip" {
		return sent, len(sent)
	}
	plain := check.Try(gzip.NewReader(strings.NewReader(sent))).OK(t)
	text := check.Try(io.ReadAll(plain)).OK(t)
	return string(text), len(sent)
}

// The example request on the home page has the response that is shown beside it,
// and its button copies it.
func TestExampleRequest(t *testing.T) {
	t.Parallel()
	s := blackbox.Serve(t, blackbox.Demo(t), "--demo")
	p := browser.Start(t).Open(t, browser.Look{}, "http://"+s.Address+"/en/")
	line := p.Text("#curl")
	out := check.Try(exec.Command("sh", "-c", line).Output()).OK(t, line)
	var tools struct{ Data []struct{ Score float64 } }
	if err := json.Unmarshal(out, &tools); err != nil || len(tools.Data) != 2 || tools.Data[1].Score < 8 {
		t.Errorf("%s: got %v and %s, want two tools with a score of 8 or more", line, err, out)
	}
	var shown bytes.Buffer
	if err := json.Compact(&shown, []byte(p.Text(".demo-response.rest pre"))); err != nil || shown.String() != strings.TrimSpace(string(out)) {
		t.Errorf("got %v and %s on the page, want the response %s", err, &shown, out)
	}

	p.Click(`label[for="tab-graphql"]`)
	if got := p.Text(".demo"); !strings.Contains(got, "scoreMin: 8") || !strings.Contains(got, `"items": [`) || strings.Contains(got, "curl -s") || strings.Contains(got, `"meta"`) {
		t.Errorf("got %s in the tab of GraphQL, want its query and response only", got)
	}
	p.Click(`label[for="tab-curl"]`)

	const button = `button[data-copy="curl"]`
	// Pages may not read the clipboard, so the test intercepts writes to it.
	p.Eval(`(write => navigator.clipboard.writeText = text => { document.body.dataset.copied = text; return write(text) })(navigator.clipboard.writeText.bind(navigator.clipboard)), 0`, nil)
	p.Click(button)
	p.WaitForText(button, "Copied")
	var copied string
	if p.Eval("document.body.dataset.copied", &copied); copied != line {
		t.Errorf("got %q copied, want %q", copied, line)
	}
}

// The first screen of a laptop shows the search and the ranking, and that of a phone a
// result: the other filters are folded.
func TestFirstScreen(t *testing.T) {
	t.Parallel()
	s := blackbox.Serve(t, blackbox.Demo(t), "--demo")
	chrome, base := browser.Start(t), "http://"+s.Address
	inLanguages(t, func(t *testing.T, l lang.Language) {
		p := chrome.Open(t, browser.Look{Width: 1280}, base+l.Path("/"))
		bottom := func(selector string) (y float64) {
			p.Eval(fmt.Sprintf("document.querySelector(%q).getBoundingClientRect().bottom", selector), &y)
			return y
		}
		search, ranking := bottom(".finder"), bottom(".ranking li:nth-child(5)")
		check.True(t, search <= 600 && ranking <= 800, "got the search down to %.0f and five tools down to %.0f, want both within 800 px", search, ranking)
		const visible = "document.querySelector('#price_max').checkVisibility({contentVisibilityAuto: true, visibilityProperty: true}) && document.querySelector('#price_max').getBoundingClientRect().height > 0"
		for width, shown := range map[int]bool{390: false, 768: true, 1280: true} {
			p.Change(browser.Look{Width: width})
			p.Go(base + l.Path("/tools"))
			var got bool
			if p.Eval(visible, &got); got != shown {
				t.Errorf("%d px: got filters shown: %t, want %t", width, got, shown)
			}
			first := bottom("tbody th a")
			check.True(t, shown || first <= 560, "%d px: got the first tool at %.0f, want it within 560 px", width, first)
		}
		p.Change(browser.Look{Width: 390})
		p.Go(base + l.Path("/tools"))
		p.Click(".more summary")
		p.Fill("#price_max", "20")
		p.Follow(".more button")
		if text := p.Text("main"); !strings.Contains(text, l.Text("Filters")+" (1)") || !strings.Contains(text, l.Text("%s (%s per month)", l.Euros(240)+l.Text(" per ")+map[lang.Language]string{lang.English: "year", lang.French: "an"}[l], l.Euros(20))) {
			t.Errorf("got %s, want one active filter and a price per year with that per month", text)
		}
	})
}

// The page of a tool is the same without scripts.
func TestToolWithoutScripts(t *testing.T) {
	t.Parallel()
	s := blackbox.Serve(t, blackbox.Demo(t), "--demo")
	chrome := browser.Start(t)
	const path = "/en/tools/plume"
	with := chrome.Open(t, browser.Look{}, "http://"+s.Address+path)
	without := chrome.Open(t, browser.Look{NoScript: true}, "http://"+s.Address+path)
	check.Equal(t, without.Text("main"), with.Text("main"), "without scripts: want the same text as with scripts")
	for _, part := range []string{"svg.chart path.s0", "svg.chart circle", ".list a[href^='/en/tools/']", ".entries a", ".programs a[href='/api/v1/tools/plume']", ".versions a[href^='/en/tools/plume?as_of=']", ".versions ins"} {
		check.True(t, without.Exists(part), "without scripts: got no %s, want one", part)
	}
}

func TestGuidesAreAccessible(t *testing.T) {
	t.Parallel()
	s := blackbox.Serve(t, blackbox.Demo(t), "--demo")
	chrome := browser.Start(t)
	for _, view := range views {
		list := "http://" + s.Address + view.Path("/guides")
		p := chrome.Open(t, view.Look, list)
		checkPage(t, p, "guides-"+view.String())
		for _, name := range append(slices.Clone(prose.GuideNames), "quota") { // there is no guide named quota
			p.Go(list + "/" + name)
			checkPage(t, p, "guide-"+name+"-"+view.String())
		}
	}
}

// publicPages are all public pages of the demo catalog, in all of their states, by
// the name of their screenshots.
var publicPages = map[string]string{
	"home": "/", "home-as-of": "/?as_of=5",
	"tools": "/tools", "tools-filtered": "/tools?category=code&sort=name_asc&price_max=20", "tools-none": "/tools?q=nobodyhasthis", "tools-bad": "/tools?sort=best&q=plume", "tools-as-of": "/tools?as_of=5&category=code",
	"tool": "/tools/plume", "follow": "/tools/plume/follow", "tool-untested": "/tools/apostille", "tool-as-of": "/tools/plume?as_of=2026-08-01", "tool-unknown": "/tools/plmue",
	"search": "/search?q=code", "search-none": "/search?q=nobodyhasthis", "search-empty": "/search",
	"compare": "/compare/plume/ecritoire-cie", "compare-three": "/compare/plume/ecritoire-cie/aiguillage", "compare-four": "/compare/plume/ecritoire-cie/aiguillage/buvard",
	"compare-form": "/compare", "compare-unknown": "/compare/plume/nobody", "compare-typos-unknown": "/compare?a=plmue&b=Aiguillage&c=nobodyhasthis", "compare-same": "/compare?a=plume&b=plume",
	"comparisons": "/comparatifs", "comparison": "/comparatifs/plume-vs-ecritoire-cie",
	"categories": "/categories", "category": "/categories/code", "category-unknown": "/categories/nothing",
	"changes": "/changes", "changes-tool": "/changes?tool=plume", "edition": "/editions/8", "edition-7": "/editions/7", "edition-first": "/editions/1", "edition-unknown": "/editions/99", "prices": "/prices", "trends": "/trends",
	"graveyard": "/cimetiere", "retired": "/cimetiere/buvard", "retired-as-of": "/cimetiere/buvard?as_of=5",
	"release-unknown": "/tools?as_of=99",
	"guides":          "/guides", "guide": "/guides/webhooks", "guide-unknown": "/guides/nothing", "changelog": "/changelog",
	"status": "/status", "about": "/about", "method": "/method", "pricing": "/pricing", "terms": "/terms", "privacy": "/privacy", "licence": "/licence", "contact": "/contact",
	"queries": "/q", "login": "/login", "page-unknown": "/toosl",
}

// Every public page is accessible in both languages and color schemes, and fits
// every width. With SCREENSHOTS=1, it takes screenshots for people to look at.
func TestPublicPages(t *testing.T) {
	t.Parallel()
	s := blackbox.Serve(t, testkit.SQLite(t), "--demo")
	chrome := browser.Start(t)
	for _, l := range lang.All {
		t.Run(string(l), func(t *testing.T) {
			t.Parallel()
			p := chrome.Open(t, browser.Look{}, "http://"+s.Address+l.Path("/"))
			for name, path := range publicPages {
				p.Change(browser.Look{})
				p.Go("http://" + s.Address + l.Path(path))
				if unknown := strings.Contains(name, "unknown"); (p.Status() == 404) != unknown {
					t.Errorf("%s: got %d, want 404: %t", path, p.Status(), unknown)
				}
				checkLanguage(t, p, l, path)
				for _, dark := range []bool{false, true} {
					for _, width := range widths {
						look := browser.Look{Dark: dark, Width: width}
						if dark && !browser.Screenshots() {
							continue // the layout does not depend on the colors
						}
						p.Change(look)
						p.Screenshot(fmt.Sprintf("%s-%s-%s", name, l, lookName(look)))
						checkFit(t, p, fmt.Sprintf("%s at %d px", path, width))
					}
					p.Change(browser.Look{Dark: dark}) // colors do not depend on the width
					p.Axe()
				}
			}
		})
	}
}

// brokenWord returns the first word that continues on another line. Names of the
// catalog and addresses may be longer than a line.
const brokenWord = `(() => {
	const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT, node =>
		node.parentElement.closest("header, footer, .button, button, table, h1, h2, h3, dt, label, caption") && node.parentElement.checkVisibility() &&
		!node.parentElement.closest("code, .visually-hidden, .address, option") ? NodeFilter.FILTER_ACCEPT : NodeFilter.FILTER_SKIP);
	for (let node; node = walker.nextNode();) {
		for (const word of node.data.matchAll(/[\p{L}\d’']+/gu)) {
			const range = document.createRange();
			range.setStart(node, word.index);
			range.setEnd(node, word.index + word[0].length);
			if (new Set([...range.getClientRects()].map(box => Math.round(box.top))).size > 1) return word[0];
		}
	}
	return "";
})()`

// checkFit checks that nothing is cut off and no word breaks.
func checkFit(t *testing.T, p *browser.Page, name string) {
	t.Helper()
	var problems []string
	p.Eval(`[
		document.documentElement.scrollWidth > document.documentElement.clientWidth && "page wider than its window",
		// Also within what scrolls, except for code: a phone shows no more than three screens side by side.
		...[...document.querySelectorAll("body *")].filter(e => innerWidth <= 768 && e.scrollWidth > 1200 && !e.closest("svg, pre, .monaco-editor")).map(e => e.localName + "." + e.className + " that is " + e.scrollWidth + " px wide"),
		[...document.querySelectorAll(".scroll:has(> table.list), .compared")].some(box => box.scrollWidth > box.clientWidth) && "table that is cut off",
	].filter(Boolean)`, &problems)
	var word string
	if p.Eval(brokenWord, &word); word != "" {
		problems = append(problems, "break in the word "+word)
	}
	for _, problem := range problems {
		t.Errorf("%s: got a %s, want none", name, problem)
	}
}

// checkLanguage checks that a page is in its language, and refers to the other.
func checkLanguage(t *testing.T, p *browser.Page, l lang.Language, path string) {
	t.Helper()
	var page struct {
		Lang, Title, Description string
		Indexed                  bool
		Alternates               []string
		Links                    []string // to pages without the language
	}
	p.Eval(`({
		lang: document.documentElement.lang, title: document.title,
		description: document.querySelector("meta[name=description]")?.content ?? "",
		indexed: !document.querySelector("meta[name=robots]"),
		alternates: [...document.querySelectorAll("link[hreflang]")].map(e => e.hreflang),
		links: [...document.querySelectorAll("a[href^='/']:not([hreflang])")].map(e => e.getAttribute("href"))
			.filter(href => !new RegExp("^/(`+string(l)+`/|api/|feeds/|q/|graphql|llms|schemas/|docs.md|explorer/schema|sitemap|status.json$)").test(href)),
	})`, &page)
	if page.Lang != string(l) || page.Title == "" || len(page.Links) > 0 {
		t.Errorf("%s: got language %q, title %q and links to %v, want %s and links in the same language", path, page.Lang, page.Title, page.Links, l)
	}
	if length := len([]rune(page.Description)); page.Indexed && (length < 40 || length > 200 || fmt.Sprint(page.Alternates) != "[en fr x-default]") {
		t.Errorf("%s: got a description of %d characters and alternates %v, want 40 to 200 and both languages", path, length, page.Alternates)
	}
}
