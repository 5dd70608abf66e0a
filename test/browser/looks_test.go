package browser_test

import (
	"fmt"
	"strings"
	"testing"

	"palmares/internal/core/lang"
	"palmares/internal/dev/testkit"
	"palmares/internal/dev/testkit/blackbox"
	"palmares/internal/dev/testkit/browser"
)

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
