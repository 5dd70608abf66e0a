package site_test

import (
	"cmp"
	"net/http"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"palmares/internal/catalog/feed"
	"palmares/internal/catalog/feed/feedtest"
	"palmares/internal/dev/testkit"
)

// written marks what editors write.
const written = "Écrit"

// What editors write is told to be French, wherever it stands, and what we
// write around it English.
func TestLanguages(t *testing.T) {
	s := testkit.Open(t, testkit.SQLite(t))
	tool := func(slug, before string) *feed.Tool {
		return feedtest.Tool(slug, func(tool *feed.Tool) {
			tool.Category, tool.Tagline, tool.Price = "ecrit", written, "20 €/"+written
			tool.PriceHistory = []feed.PriceChange{{ChangedAt: "2026-05-01", Pricing: "payant", Price: tool.Price, PreviousPricing: "payant", PreviousPrice: before}}
		})
	}
	catalog := func(date, price string) []byte {
		one := tool("one", "10 €/"+written)
		one.Price = price
		return feedtest.Catalog(date, &feed.Category{Slug: "ecrit", Label: written}, one, tool("two", "10 €/"+written),
			&feed.Retired{Slug: "gone", Name: "Gone", Category: "ecrit", Reason: "mort", RetiredAt: "2026-03-14", Note: written},
			&feed.Comparison{Slug: "one-vs-gone", Title: written, ToolA: "one", ToolB: "gone", Winner: "one", WinnerNote: written,
				Published: true, UpdatedAt: "2026-11-01", CanonicalURL: "https://palmares.example/one-vs-gone"})
	}
	publish(t, s, catalog("2026-11-01", "20 €/"+written))
	publish(t, s, catalog("2026-11-02", "30 €/"+written)) // which the first page tells of
	handler := serving(t, s)
	for _, target := range []string{"/", "/tools", "/tools/one", "/comparatifs", "/comparatifs/one-vs-gone", "/comparatifs/one-vs-gnoe", "/cimetiere", "/cimetiere/gone", "/categories"} {
		document, err := html.Parse(visit(handler, http.MethodGet, target).Body)
		if err != nil {
			t.Fatal(err)
		}
		found := map[string]int{}
		eachText(document, "", func(text, language string) {
			if strings.Contains(text, written) {
				found[language]++
			}
			if language == "fr" && strings.Contains(text, "ools") {
				t.Errorf("%s: %q is English", target, text)
			}
		})
		if found["fr"] == 0 || len(found) != 1 {
			t.Errorf("%s: languages of the catalog's texts: %v", target, found)
		}
	}
}

// eachText goes through what a page shows, with the language it is said to be in.
func eachText(node *html.Node, language string, do func(text, language string)) {
	if node.Data == "head" && node.Type == html.ElementNode {
		return
	}
	for _, attribute := range node.Attr {
		if attribute.Key == "lang" {
			language = cmp.Or(attribute.Val, language)
		}
	}
	if node.Type == html.TextNode {
		do(node.Data, language)
	}
	for child := range node.ChildNodes() {
		eachText(child, language, do)
	}
}
