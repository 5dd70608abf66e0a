package prose

import (
	"encoding/xml"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"palmares/internal/core/atomxml"
	"palmares/internal/dev/check"
	"palmares/internal/web/page"
)

func TestChangelogIsCurrent(t *testing.T) {
	want, err := os.ReadFile("../../../CHANGELOG.md")
	check.OK(t, err)
	check.Equal(t, changelog, string(want), "another changelog.md than CHANGELOG.md")
}

func TestChangelog(t *testing.T) {
	handler := newHandler(t)
	html := send(handler, "GET", "/changelog")
	if page := html.Body.String(); html.Code != 200 || html.Header().Get("Content-Type") != "text/html; charset=utf-8" || !strings.Contains(page, `id="changelog"`) ||
		!strings.Contains(page, "[0.1.0] - 2026-11-15") || !strings.Contains(page, `<a href="/en/changelog">Changelog</a>`) {
		t.Errorf("got %d %v %s, want the changelog and a link to it in the footer", html.Code, html.Header(), page)
	}
	check.Equal(t, wellFormed(html.Body.String()), nil)
	for _, id := range duplicates(regexp.MustCompile(` id="([^"]+)"`).FindAllStringSubmatch(html.Body.String(), -1)) {
		t.Errorf("got the id %s twice, want unique ids", id)
	}
	for _, path := range []string{"/changelog.md", "/changelog"} {
		text := send(handler, "GET", path, "Accept", "text/markdown")
		if text.Code != 200 || text.Header().Get("Content-Type") != page.MarkdownType || text.Body.String() != changelog {
			t.Errorf("%s: got %d %v, want the changelog as Markdown", path, text.Code, text.Header())
		}
	}
}

func TestChangelogFeed(t *testing.T) {
	got := send(newHandler(t), "GET", "/feeds/changelog.atom")
	var feed atomxml.Feed
	if err := xml.Unmarshal(got.Body.Bytes(), &feed); err != nil || got.Header().Get("Content-Type") != "application/atom+xml; charset=utf-8" {
		t.Fatalf("got %v and %v, want Atom", err, got.Header())
	}
	if feed.ID != "tag:catalog.example,2026:changelog" || len(feed.Entries) != strings.Count(changelog, "] - 2") || !feed.Updated.Equal(feed.Entries[0].Updated.Time) {
		t.Errorf("got %+v, want an entry for each version", feed)
	}
	g, err := New(testConfig)
	check.OK(t, err)
	entry, err := g.changelogFeed("# Changelog\n\n## [Unreleased]\n- Soon.\n\n## [2.0] - 2027-01-02\n### Removed\n- `a` & b.\n\n## [1.0] - 2026-12-31\n- First.\n")
	check.OK(t, err)
	if feed = (atomxml.Feed{}); xml.Unmarshal(entry.Body(), &feed) != nil || len(feed.Entries) != 2 {
		t.Fatalf("got %s, want two entries", entry.Body())
	}
	if e := feed.Entries[0]; e.ID != "tag:catalog.example,2026:changelog/2.0" || e.Title != "2.0" || e.Updated.Format(time.RFC3339) != "2027-01-02T00:00:00Z" || !feed.Updated.Equal(e.Updated.Time) ||
		!strings.Contains(string(e.Content.Text), "<code>a</code> &amp; b.") || strings.Contains(string(e.Content.Text), "First") {
		t.Errorf("got %+v, want version 2.0 alone", e)
	}
}
