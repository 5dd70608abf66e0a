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
	"palmares/internal/core/store"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
)

func compare(t *testing.T, s *store.Store, data []byte) *publish.Diff {
	t.Helper()
	diff := check.Try(publish.Compare(t.Context(), s, feed.NewLines(bytes.NewReader(data)), nil)).OK(t)
	return diff
}

func markdown(t *testing.T, diff *publish.Diff) string {
	t.Helper()
	var out strings.Builder
	check.OK(t, commands.WriteMarkdown(&out, diff))
	return out.String()
}

func catalogOf(date string, records ...any) []byte {
	return feedtest.Of(date, append([]any{&record.Category{Slug: "code", Label: "Code"}}, records...)...)
}

func priced(price, updatedAt string) func(*record.Tool) {
	return func(t *record.Tool) { t.Price, t.UpdatedAt = price, updatedAt }
}

func newRetired(slug string) *record.Retired {
	return &record.Retired{Slug: slug, Name: "Outil " + slug, Category: "code", Reason: "mort", RetiredAt: "2026-06-01", Note: "Fermé."}
}

func newComparison(slug, a, b string) *record.Comparison {
	return &record.Comparison{
		Slug: slug, Title: "Lequel ?", ToolA: a, ToolB: b, Winner: a, WinnerNote: "Plus net.",
		Published: true, UpdatedAt: "2026-10-01", CanonicalURL: "https://palmares.example/duel/" + slug,
	}
}

// stateOf returns the catalog as a feed, and the number of entries in its journal.
func stateOf(t *testing.T, s *store.Store) string {
	t.Helper()
	var out strings.Builder
	check.OK(t, publish.Export(t.Context(), s, &out, 0))
	return fmt.Sprint(out.String(), s.Read.JournalEntry.Query().CountX(t.Context()))
}

func scored(score float64) func(*record.Tool) { return func(t *record.Tool) { t.Score = &score } }

func untested(t *record.Tool) { t.Score = nil }

func TestDiffAsMarkdown(t *testing.T) {
	history := func(t *record.Tool) {
		t.PriceHistory = []record.PriceChange{{ChangedAt: "2026-01-01", Pricing: "payant", Price: "20 €/mois", PreviousPricing: "payant", PreviousPrice: "15 €/mois"}}
	}
	first := catalogOf("2026-11-01",
		feedtest.Tool("dearer", priced("20 €/mois", "2026-11-01")), feedtest.Tool("free", priced("0 €/mois", "2026-11-01")), feedtest.Tool("better", scored(8.1)),
		feedtest.Tool("tested", untested), feedtest.Tool("renamed"), feedtest.Tool("closing"), feedtest.Tool("leaving"), feedtest.Tool("dated"), feedtest.Tool("past"),
		feedtest.Tool("a"), feedtest.Tool("b"), feedtest.Tool("c"), feedtest.Tool("d"), newRetired("back"), newComparison("duel", "a", "b"), newComparison("over", "a", "b"))
	closing := newRetired("closing")
	closing.Reason = "acquis"
	second := catalogOf("2026-11-02",
		feedtest.Tool("dearer", priced("25,50 €/mois", "2026-11-02")),
		feedtest.Tool("free", priced("5 €/mois", "2026-11-02"), func(t *record.Tool) { t.Pricing = "freemium" }),
		feedtest.Tool("better", scored(8.6)), feedtest.Tool("tested", scored(7)),
		feedtest.Tool("renamed", func(t *record.Tool) { t.Name, t.Sections, t.UpdatedAt = "Nom", nil, "2026-11-02" }),
		feedtest.Tool("dated", func(t *record.Tool) { t.UpdatedAt = "2026-11-02" }), feedtest.Tool("past", history),
		feedtest.Tool("a"), feedtest.Tool("b"), feedtest.Tool("c"), feedtest.Tool("d"), feedtest.Tool("back"), closing,
		feedtest.Tool("hostile", func(t *record.Tool) { t.Name = "a|b\n`c` <b>*x*</b> &lt; R&D @team \u202etxt" }),
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
		diff := compare(t, s, first)
		check.True(t, diff.Base == nil && len(diff.Tools) == 14, "empty catalog: got %+v, want no base and 14 tools", diff)
		feedtest.Publish(t, s, first)
		before := stateOf(t, s)
		check.Equal(t, markdown(t, compare(t, s, second)), want)
		check.Equal(t, stateOf(t, s), before, "changed catalog")
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
		tools = append(tools, feedtest.Tool(fmt.Sprint("outil-", i), func(t *record.Tool) { t.Name = strings.Repeat("x", 500) }))
	}
	feedtest.Publish(t, s, catalogOf("2026-11-02", tools...))
	diff := compare(t, s, catalogOf("2026-11-02", tools[0]))
	got := markdown(t, diff)
	for _, want := range []string{
		"> **`palmares import` would refuse this feed**: the feed would remove or retire 1499 of 1500 active tools, more than a fifth; use --force to import it anyway.\n",
		"### Removed tools (1,499)", "\n…and 1,449 more.\n", "Subscribers would receive 1,500 events.", "| outil-1 | " + strings.Repeat("x", 100) + "… |",
	} {
		check.Contains(t, got, want)
	}
	check.True(t, len(diff.Tools) == 1499 && len(got) <= 10_000,
		"got %d tools and %d bytes of Markdown, want 1499 and fewer than 10,000", len(diff.Tools), len(got))
	check.Contains(t, compare(t, s, catalogOf("2026-11-01", tools...)).Refusal, "is older than the catalog's", "older feed: refusal")
}
