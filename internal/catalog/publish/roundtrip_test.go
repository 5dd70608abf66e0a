package publish_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"entgo.io/ent/dialect"
	entsql "entgo.io/ent/dialect/sql"

	"palmares/ent/category"
	"palmares/ent/journalentry"
	"palmares/ent/release"
	"palmares/ent/tool"
	"palmares/internal/catalog/feed"
	"palmares/internal/catalog/feed/demo"
	"palmares/internal/catalog/feed/feedtest"
	"palmares/internal/catalog/publish"
	"palmares/internal/core/store"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
)

// contents returns everything that readers can see of a catalog: the records
// and the values derived from them.
func contents(t *testing.T, s *store.Store) string {
	t.Helper()
	var all strings.Builder
	all.WriteString(export(t, s))
	rel := s.Read.Release.Query().Order(release.ByID(entsql.OrderDesc())).FirstX(t.Context())
	fmt.Fprintln(&all, rel.FeedDate, rel.ToolsTotal, rel.ToolsTested, show(rel.ToolsAvgScore), rel.ToolsRetired, rel.ComparisonsTotal)
	for _, c := range s.Read.Category.Query().Order(category.ByID()).AllX(t.Context()) {
		fmt.Fprintln(&all, c.ID, c.ToolCount, show(c.AvgScore))
	}
	for _, row := range s.Read.Tool.Query().Order(tool.ByNameKey(), tool.ByID()).AllX(t.Context()) {
		fmt.Fprintln(&all, row.ID, row.NameKey, row.PriceAmount, row.PricePeriod, row.SectionsHash, row.InEmbeddings)
	}
	words := map[string]string{dialect.SQLite: "words", dialect.Postgres: "array_to_string(tsvector_to_array(words), ' ')"}[s.Dialect()]
	rows := check.Try(s.Read.QueryContext(t.Context(), "SELECT slug, "+words+" FROM tool_search WHERE until_release = 2147483647 ORDER BY slug")).OK(t)
	defer rows.Close()
	for rows.Next() {
		var slug, words string
		check.OK(t, rows.Scan(&slug, &words))
		fmt.Fprintln(&all, slug, words)
	}
	return all.String()
}

func show(score *float64) string {
	if score == nil {
		return "none"
	}
	return fmt.Sprint(*score)
}

// TestRoundTrip exports catalogs after several imports. Importing the export
// again changes nothing, and importing it into an empty database of either kind
// gives the same contents.
func TestRoundTrip(t *testing.T) {
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		for seed := range uint64(6) {
			random := feedtest.NewTangled(testkit.SeedOr(t, seed))
			for range 4 {
				feedtest.Publish(t, s, random.Next())
			}
			exported := export(t, s)
			check.Must(t, publishFeed(t, s, []byte(exported)).Release, 0, "seed %d: import of the export: release", seed)
			want := contents(t, s)
			testkit.EachStore(t, func(t *testing.T, empty *store.Store) {
				publishFeed(t, empty, []byte(exported))
				check.Equal(t, contents(t, empty), want, "seed %d: other contents", seed)
			})
		}
	})
}

// TestDemoCatalog checks that the demo catalog covers every case, and has the
// format of an export.
func TestDemoCatalog(t *testing.T) {
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		report := publishFeed(t, s, demo.Catalog())
		check.Equal(t, export(t, s), string(demo.Catalog()), "another export")
		check.True(t, report.Tools.Created >= 40 && report.Categories.Created >= 6 && report.Comparisons.Created >= 12, "got %+v, want a larger catalog", report)
		check.True(t, report.Tools.Retired >= 8 && report.PriceChanges >= 10, "got %+v, want a larger catalog", report)
		reasons := map[string]bool{}
		for _, row := range s.Read.Tool.Query().WithSections().AllX(t.Context()) {
			reasons[string(row.RetiredReason)] = true
			check.True(t, !row.InEmbeddings || len(row.Edges.Sections) >= 4, "sections of %s, in the embeddings set: got %d, want at least 4", row.ID, len(row.Edges.Sections))
			check.True(t, row.RetiredAt != "" || strings.HasSuffix(row.Domain, ".example"), "domain of %s: got %s, want one in .example", row.ID, row.Domain)
		}
		check.True(t, len(reasons) == 6, "reasons: got %v, want all five", reasons) // five reasons, and none for active tools
	})
}

// TestDiffAgreesWithImport compares random feeds with the catalog and then imports
// them. The diff has the events that the import writes to the journal, and the changes
// that a naive comparison of the exports before and after finds.
func TestDiffAgreesWithImport(t *testing.T) {
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		random := feedtest.NewTangled(testkit.SeedOr(t, 36))
		before := map[string]map[string]any{}
		seen := map[string]int{}
		for i := range 40 {
			data := random.Next()
			diff := check.Try(publish.Compare(t.Context(), s, feed.NewLines(bytes.NewReader(data)), nil)).OK(t)
			report := check.Try(publish.Import(t.Context(), s, feed.NewLines(bytes.NewReader(data)), publish.Options{Force: true})).OK(t)
			check.Must(t, diff.Release, report.Release, "feed %d", i)
			check.Must(t, diff.Summary, (publish.DiffSummary{Tools: report.Tools, Comparisons: report.Comparisons, Categories: report.Categories}), "feed %d", i)
			events := map[string]int{}
			for _, e := range s.Read.JournalEntry.Query().Where(journalentry.ReleaseNumber(report.Release), journalentry.EventNotNil()).AllX(t.Context()) {
				events[*e.Event]++
			}
			check.MustTrue(t, maps.Equal(diff.Events, events), "feed %d: got events %v, want those of the journal, %v", i, diff.Events, events)
			after := exported(t, s)
			checkDiff(t, diff, before, after)
			check.MustTrue(t, !t.Failed(), "feed %d has the wrong diff above", i)
			for _, c := range slices.Concat(diff.Tools, diff.Comparisons, diff.Categories) {
				seen[c.Type+" "+c.Change]++
			}
			seen["price"] += len(diff.Prices)
			seen["history"] += len(diff.Backfilled)
			seen["score"] += len(diff.Scores)
			before = after
		}
		for _, kind := range []string{
			"tool created", "tool updated", "cimetiere retired", "tool removed", "cimetiere removed", "cimetiere updated",
			"comparatif created", "comparatif updated", "comparatif removed", "category created", "category updated", "category removed",
			"price", "history", "score",
		} {
			check.True(t, seen[kind] != 0, "%s: got no changes, want some", kind)
		}
	})
}

// exported returns the records of an export by kind and slug; active and retired tools
// are of one kind. Price histories are left out: they also depend on earlier releases.
func exported(t *testing.T, s *store.Store) map[string]map[string]any {
	t.Helper()
	records := map[string]map[string]any{}
	for line := range strings.Lines(export(t, s)) {
		var rec map[string]any
		check.OK(t, json.Unmarshal([]byte(line), &rec))
		delete(rec, "price_history")
		switch kind := rec["type"].(string); kind {
		case "feed":
		case "cimetiere":
			records["tool "+rec["slug"].(string)] = rec
		default:
			records[kind+" "+rec["slug"].(string)] = rec
		}
	}
	return records
}

func checkDiff(t *testing.T, diff *publish.Diff, before, after map[string]map[string]any) {
	t.Helper()
	var changes, prices, scores []string
	for _, key := range slices.Sorted(maps.Keys(union(before, after))) {
		was, is := before[key], after[key]
		switch {
		case was == nil && is["type"] == "cimetiere", was["type"] == "tool" && is["type"] == "cimetiere":
			changes = append(changes, fmt.Sprint("retired ", key, " ", is["name"]))
		case was == nil, is != nil && was["type"] != is["type"]:
			changes = append(changes, fmt.Sprint("created ", key, " ", title(is)))
		case is == nil:
			changes = append(changes, fmt.Sprint("removed ", key, " ", title(was)))
		default:
			var fields []string
			for name := range union(was, is) {
				if !reflect.DeepEqual(was[name], is[name]) {
					fields = append(fields, name)
				}
			}
			nameOf := func(records map[string]map[string]any, c map[string]any) any {
				return records[fmt.Sprint("tool ", c["winner"])]["name"]
			}
			if is["type"] == "comparatif" && was["winner"] == is["winner"] && nameOf(before, was) != nameOf(after, is) && (len(fields) > 0 || is["published"] != false) {
				fields = append(fields, "winner_name")
			}
			slices.Sort(fields)
			if len(fields) > 0 {
				changes = append(changes, fmt.Sprint("updated ", key, " ", title(is), fields))
			}
			if slices.Contains(fields, "score") {
				scores = append(scores, fmt.Sprint(is["slug"], was["score"], is["score"]))
			}
			if slices.Contains(fields, "price") || slices.Contains(fields, "pricing") {
				prices = append(prices, fmt.Sprint(is["slug"], was["pricing"], was["price"], is["pricing"], is["price"]))
			}
		}
	}
	var got, gotPrices, gotScores []string
	updated := map[string]bool{}
	summary := map[string]publish.Counts{"tool": diff.Summary.Tools, "comparatif": diff.Summary.Comparisons, "category": diff.Summary.Categories}
	for kind, list := range map[string][]publish.Change{"tool": diff.Tools, "comparatif": diff.Comparisons, "category": diff.Categories} {
		counts := map[string]int{}
		for _, c := range list {
			if !slices.Equal(c.Fields, []string{"winner_name"}) { // only the winner's record changed
				counts[c.Change]++
			}
			line := fmt.Sprint(c.Change, " ", kind, " ", c.Slug, " ", c.Name)
			if c.Change == publish.DiffUpdated {
				line += fmt.Sprint(c.Fields)
				updated[kind+c.Slug] = true
			}
			got = append(got, line)
		}
		for key := range after {
			if strings.HasPrefix(key, kind+" ") {
				counts["all"]++
			}
		}
		unchanged := counts["all"] - counts[publish.DiffCreated] - counts[publish.DiffUpdated] - counts[publish.DiffRetired]
		want := publish.Counts{
			Created: counts[publish.DiffCreated], Updated: counts[publish.DiffUpdated], Unchanged: unchanged,
			Retired: counts[publish.DiffRetired], Removed: counts[publish.DiffRemoved],
		}
		check.Equal(t, summary[kind], want, "counts of %s", kind)
	}
	for _, p := range diff.Prices {
		if updated["tool"+p.Slug] { // a tool that returns may have another price than before
			gotPrices = append(gotPrices, fmt.Sprint(p.Slug, p.OldPricing, p.OldPrice, p.NewPricing, p.NewPrice))
		}
	}
	text := func(score *float64) any {
		if score == nil {
			return nil
		}
		return *score
	}
	for _, s := range diff.Scores {
		gotScores = append(gotScores, fmt.Sprint(s.Slug, text(s.Old), text(s.New)))
	}
	for what, lists := range map[string][2][]string{"changes": {got, changes}, "prices": {gotPrices, prices}, "scores": {gotScores, scores}} {
		slices.Sort(lists[0])
		slices.Sort(lists[1])
		check.Slices(t, lists[0], lists[1], what)
	}
}

func title(rec map[string]any) any {
	for _, name := range []string{"name", "title"} {
		if rec[name] != nil {
			return rec[name]
		}
	}
	return rec["label"]
}

func union[V any](a, b map[string]V) map[string]V {
	all := maps.Clone(a)
	maps.Copy(all, b)
	return all
}
