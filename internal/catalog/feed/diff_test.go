package feed_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"palmares/internal/catalog/feed"
	"palmares/internal/catalog/record"
	"palmares/internal/core/store"
	"palmares/internal/dev/testkit"
)

func compare(t *testing.T, s *store.Store, data []byte) *feed.Diff {
	t.Helper()
	diff, err := feed.Compare(t.Context(), s, feed.NewLines(bytes.NewReader(data)), nil)
	if err != nil {
		t.Fatal(err)
	}
	return diff
}

func markdown(t *testing.T, diff *feed.Diff) string {
	t.Helper()
	var out strings.Builder
	testkit.Check(t, diff.Markdown(&out))
	return out.String()
}

func scored(score float64) func(*record.Tool) { return func(t *record.Tool) { t.Score = &score } }

func untested(t *record.Tool) { t.Score = nil }

func TestDiffAsMarkdown(t *testing.T) {
	history := func(t *record.Tool) {
		t.PriceHistory = []record.PriceChange{{ChangedAt: "2026-01-01", Pricing: "payant", Price: "20 €/mois", PreviousPricing: "payant", PreviousPrice: "15 €/mois"}}
	}
	first := catalogOf("2026-11-01",
		newTool("dearer", priced("20 €/mois", "2026-11-01")), newTool("free", priced("0 €/mois", "2026-11-01")), newTool("better", scored(8.1)),
		newTool("tested", untested), newTool("renamed"), newTool("closing"), newTool("leaving"), newTool("dated"), newTool("past"),
		newTool("a"), newTool("b"), newTool("c"), newTool("d"), newRetired("back"), newComparison("duel", "a", "b"), newComparison("over", "a", "b"))
	closing := newRetired("closing")
	closing.Reason = "acquis"
	second := catalogOf("2026-11-02",
		newTool("dearer", priced("25,50 €/mois", "2026-11-02")),
		newTool("free", priced("5 €/mois", "2026-11-02"), func(t *record.Tool) { t.Pricing = "freemium" }),
		newTool("better", scored(8.6)), newTool("tested", scored(7)),
		newTool("renamed", func(t *record.Tool) { t.Name, t.Sections, t.UpdatedAt = "Nom", nil, "2026-11-02" }),
		newTool("dated", func(t *record.Tool) { t.UpdatedAt = "2026-11-02" }), newTool("past", history),
		newTool("a"), newTool("b"), newTool("c"), newTool("d"), newTool("back"), closing,
		newTool("hostile", func(t *record.Tool) { t.Name = "a|b\n`c` <b>*x*</b> &lt; R&D @team \u202etxt" }),
		newComparison("duel", "b", "a"), newComparison("fresh", "c", "d"), &record.Category{Slug: "voix", Label: "Voix"})
	const want = `## Catalog changes

Publishing this feed (2026-11-02) would change the following, compared with release 1 (2026-11-01):

- **Tools**: 2 added, 6 updated, 1 retired, 1 removed, 5 unchanged
- **Prices and scores**: 2 price changes, 2 score changes
- **Comparisons**: 1 added, 1 updated, 1 removed, 0 unchanged
- **Categories**: 1 added, 0 updated, 0 removed, 1 unchanged

### Added tools (2)

| slug | name |
|---|---|
| back | Outil back (was retired) |
| hostile | a\|b \` + "`c\\`" + ` \<b\>\*x\*\</b\> \&lt; R&D @<!-- -->team txt |

### Retired tools (1)

| slug | name | reason |
|---|---|---|
| closing | Outil closing | acquis |

### Removed tools (1)

| slug | name |
|---|---|
| leaving | Outil leaving |

### Price changes (2)

| slug | old | new | change |
|---|---:|---:|---:|
| dearer | 20 €/mois | 25,50 €/mois | +27.5% |
| free | 0 €/mois (payant) | 5 €/mois (freemium) | – |

### Score changes (2)

| slug | old | new | change |
|---|---:|---:|---:|
| better | 8.1 | 8.6 | +6.2% |
| tested | – | 7 | – |

### Other changes to tools (3)

| slug | fields |
|---|---|
| dated | updated_at |
| past | price_history (1 added) |
| renamed | name, sections |

### Comparisons (3)

| slug | title | change |
|---|---|---|
| duel | Lequel ? | updated: tool_a, tool_b, winner |
| fresh | Lequel ? | created |
| over | Lequel ? | removed |

### Categories (1)

| slug | label | change |
|---|---|---|
| voix | Voix | created |

### Events

Subscribers would receive 19 events.

| type | events |
|---|---:|
| catalog.published | 1 |
| category.created | 1 |
| comparatif.published | 1 |
| comparatif.removed | 1 |
| comparatif.updated | 1 |
| embeddings.changed | 1 |
| price.backfilled | 1 |
| price.changed | 2 |
| tool.created | 2 |
| tool.removed | 1 |
| tool.retired | 1 |
| tool.updated | 6 |
`
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		if diff := compare(t, s, first); diff.Base != nil || len(diff.Tools) != 14 {
			t.Errorf("empty catalog: got %+v, want no base and 14 tools", diff)
		}
		publish(t, s, first)
		before := contents(t, s)
		if got := markdown(t, compare(t, s, second)); got != want {
			t.Errorf("got\n%s\nwant another; first difference at %s", got, firstDifference(got, want))
		}
		if after := contents(t, s); after != before || len(journalOf(t, s, 2)) > 0 {
			t.Error("got a changed catalog, want it unchanged")
		}
		if got := markdown(t, compare(t, s, first)); got != "## Catalog changes\n\nPublishing this feed (2026-11-01) would change nothing, compared with release 1 (2026-11-01).\n" {
			t.Errorf("same feed: got %s, want no changes", got)
		}
	})
}

// A feed that an import refuses still has a diff, whose Markdown has a limited length.
func TestDiffOfImplausibleFeed(t *testing.T) {
	s := testkit.Open(t, testkit.SQLite(t))
	var tools []any
	for i := range 1500 {
		tools = append(tools, newTool(fmt.Sprint("outil-", i), func(t *record.Tool) { t.Name = strings.Repeat("x", 500) }))
	}
	publish(t, s, catalogOf("2026-11-02", tools...))
	diff := compare(t, s, catalogOf("2026-11-02", tools[0]))
	got := markdown(t, diff)
	for _, want := range []string{
		"> **`palmares import` would refuse this feed**: the feed would remove or retire 1499 of 1500 active tools, more than a fifth; use --force to import it anyway.\n",
		"### Removed tools (1,499)", "\n…and 1,449 more.\n", "Subscribers would receive 1,500 events.", "| outil-1 | " + strings.Repeat("x", 100) + "… |",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("got %s, want %q", got, want)
		}
	}
	if len(diff.Tools) != 1499 || len(got) > 10_000 {
		t.Errorf("got %d tools and %d bytes of Markdown, want 1499 and fewer than 10,000", len(diff.Tools), len(got))
	}
	if diff := compare(t, s, catalogOf("2026-11-01", tools...)); !strings.Contains(diff.Refusal, "is older than the catalog's") {
		t.Errorf("older feed: got refusal %q, want its date", diff.Refusal)
	}
}

// A file name never starts a line of its own, where a workflow would read a command.
func TestFileNames(t *testing.T) {
	for name, want := range map[string]string{
		"tools/plume.md": "tools/plume.md:3:1", "tools/\n::add-mask::x.md": `"tools/\n::add-mask::x.md":3:1`, "a\r\x1b[2J": `"a\r\x1b[2J":3:1`,
	} {
		if got := (feed.Position{File: name, Line: 3, Column: 1}).String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
