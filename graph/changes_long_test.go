package graph_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"palmares/graph"
	"palmares/internal/catalog/feed"
	"palmares/internal/catalog/feed/feedtest"
	"palmares/internal/core/store"
	"palmares/internal/dev/testkit"
)

// Long texts make slices shorter, not answers longer: whoever reads on from the
// cursor sees every event all the same.
func TestChangesWithLongTexts(t *testing.T) {
	const long, most = 700_000, 2_500_000
	catalog := func(date, letter string) []byte {
		var tools []any
		for i := range 6 {
			tools = append(tools, feedtest.Tool(fmt.Sprintf("t%d", i), func(t *feed.Tool) { t.Tagline = strings.Repeat(letter, long) }),
				feedtest.Tool(fmt.Sprintf("u%d", i), on(date, func(*feed.Tool) {})))
		}
		return feedtest.Catalog(date, tools...)
	}
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		e := newExecutor(s)
		publish(t, s, catalog("2026-11-01", "a"))
		publish(t, s, catalog("2026-11-02", "b"))
		for _, filter := range []struct {
			arguments string
			types     []string
		}{
			{"", nil},
			{", types: [tool_updated]", []string{"tool.updated"}},
			{", types: [tool_updated, catalog_published]", []string{"tool.updated", "catalog.published"}},
		} {
			want := storedEvents(t, s, filter.types...)
			expect(t, "oldest first"+filter.arguments, walkLong(t, e, filter.arguments, most), want)
			slices.Reverse(want)
			expect(t, "newest first"+filter.arguments, walkLong(t, e, filter.arguments+", order: newest_first", most), want)
		}
	})
}

// walkLong reads to the end, and no more than so many bytes at once.
func walkLong(t *testing.T, e *graph.Executor, arguments string, most int) (seen []string) {
	t.Helper()
	for after, slices := "", 0; ; slices++ {
		text := ask(t, e, `{changes(first: 200`+arguments+after+`) {nodes {id before after} pageInfo {hasNextPage endCursor}}}`)
		page := decoded[changesPage](t, text).Changes
		if len(text) > most || len(page.Nodes) == 0 || *page.PageInfo.EndCursor != page.Nodes[len(page.Nodes)-1].ID {
			t.Fatalf("%d bytes and %d events%s%s", len(text), len(page.Nodes), arguments, after)
		}
		for _, c := range page.Nodes {
			seen = append(seen, c.ID)
		}
		if !page.PageInfo.HasNextPage {
			if slices < 5 {
				t.Errorf("%s: all is in %d slices: that proves nothing", arguments, slices+1)
			}
			return seen
		}
		after = `, after: "` + *page.PageInfo.EndCursor + `"`
	}
}
