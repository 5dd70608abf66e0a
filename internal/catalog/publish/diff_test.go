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

	"palmares/ent/journalentry"
	"palmares/internal/catalog/feed"
	"palmares/internal/catalog/feed/feedtest"
	"palmares/internal/catalog/publish"
	"palmares/internal/core/store"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
)

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
	for kind, list := range map[string][]publish.Change{"tool": diff.Tools, "comparatif": diff.Comparisons, "category": diff.Categories} {
		for _, c := range list {
			line := fmt.Sprint(c.Change, " ", kind, " ", c.Slug, " ", c.Name)
			if c.Change == publish.DiffUpdated {
				line += fmt.Sprint(c.Fields)
				updated[kind+c.Slug] = true
			}
			got = append(got, line)
		}
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
