package atom_test

import (
	"regexp"
	"testing"
	"testing/fstest"

	"palmares/internal/dev/testkit"
	"palmares/internal/web/page"
)

// Every page leads a feed reader to every feed.
func TestPagesLinkToTheFeeds(t *testing.T) {
	pages := page.MustTemplates(fstest.MapFS{"pages/any.html": {Data: []byte(`{{define "main"}}{{end}}`)}}, "pages", nil)
	html, err := pages.Render("any", page.Content{Service: "palmarès"})
	if err != nil {
		t.Fatal(err)
	}
	h := newHandler(testkit.Open(t, testkit.SQLite(t)))
	var linked []string
	for _, link := range regexp.MustCompile(`<link rel="alternate" type="application/atom\+xml" title="[^"]+" href="/feeds/([^"]+)">`).FindAllSubmatch(html, -1) {
		linked = append(linked, string(link[1]))
		valid(t, get(h, string(link[1])))
	}
	expect(t, "linked", linked, []string{"changes.atom", "prices.atom", "cimetiere.atom"})
}
