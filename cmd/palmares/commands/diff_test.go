package commands_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"palmares/cmd/palmares/commands"
	"palmares/internal/catalog/feed"
	"palmares/internal/catalog/feed/feedtest"
	"palmares/internal/catalog/publish"
	"palmares/internal/catalog/record"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
)

// A feed that an import refuses still has a diff, whose Markdown has a limited length.
func TestDiffOfImplausibleFeed(t *testing.T) {
	s := testkit.Open(t, testkit.SQLite(t))
	compare := func(data []byte) *publish.Diff {
		return check.Try(publish.Compare(t.Context(), s, feed.NewLines(bytes.NewReader(data)), nil)).OK(t)
	}
	var tools []any
	for i := range 1500 {
		tools = append(tools, feedtest.Tool(fmt.Sprint("outil-", i), func(t *record.Tool) { t.Name = strings.Repeat("x", 500) }))
	}
	feedtest.Publish(t, s, feedtest.Catalog("2026-11-02", tools...))
	diff := compare(feedtest.Catalog("2026-11-02", tools[0]))
	var out strings.Builder
	check.OK(t, commands.WriteMarkdown(&out, diff))
	got := out.String()
	for _, want := range []string{
		"> **`palmares import` would refuse this feed**: the feed would remove or retire 1499 of 1500 active tools, more than a fifth; use --force to import it anyway.\n",
		"### Removed tools (1,499)", "\n…and 1,449 more.\n", "Subscribers would receive 1,500 events.", "| outil-1 | " + strings.Repeat("x", 100) + "… |",
	} {
		check.Contains(t, got, want)
	}
	check.True(t, len(diff.Tools) == 1499 && len(got) <= 10_000,
		"got %d tools and %d bytes of Markdown, want 1499 and fewer than 10,000", len(diff.Tools), len(got))
	check.Contains(t, compare(feedtest.Catalog("2026-11-01", tools...)).Refusal, "is older than the catalog's", "older feed: refusal")
}
