package publish_test

import (
	"strings"
	"testing"

	"palmares/ent/tool"
	"palmares/internal/catalog/feed"
	"palmares/internal/catalog/feed/feedtest"
	"palmares/internal/catalog/journal"
	"palmares/internal/catalog/publish"
	"palmares/internal/catalog/record"
	"palmares/internal/core/store"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
)

// Translations and sources are exported as they were imported, also from an earlier
// release. A change to one of them is an event, and a retired tool has neither.
func TestTranslationsAndSources(t *testing.T) {
	const odd = " <b>\"A\"</b> & \\ \u2028\r\n## é 🦊 \x01"
	catalog := func(date, label, tagline, title, note string, sources ...record.Source) []byte {
		category := &record.Category{Slug: "code", Label: "Code"}
		category.Translations.En.Label = label
		comparison := &record.Comparison{
			Slug: "a-vs-b", Title: "A ou B ?", ToolA: "a", ToolB: "b", Winner: "a", WinnerNote: "Plus simple.", Published: true,
			UpdatedAt: "2026-11-01", CanonicalURL: "https://palmares.example/a-vs-b",
		}
		comparison.Translations.En.Title, comparison.Translations.En.WinnerNote = title, note
		return feedtest.Of(date, category, feedtest.Tool("a", func(t *record.Tool) {
			t.Translations.En.Tagline, t.Sources = tagline, sources
		}), feedtest.Tool("b"), comparison)
	}
	price := record.Source{Field: "price", URL: "https://a.example/?<x>&é=1", CheckedAt: "2026-11-01"}
	again, score := price, price
	again.CheckedAt, score.Field = "2026-11-02", "score"
	editions := [][]byte{
		catalog("2026-11-01", "", "", "", ""),
		catalog("2026-11-02", odd, "", "", ""),
		catalog("2026-11-03", odd, odd, "", ""),
		catalog("2026-11-04", odd, odd, odd, ""),
		catalog("2026-11-05", odd, odd, odd, odd),
		catalog("2026-11-06", odd, odd, odd, odd, price),
		catalog("2026-11-07", odd, odd, odd, odd, again),
		catalog("2026-11-08", odd, odd, odd, odd, again, score),
		catalog("2026-11-09", "", "", "", ""),
	}
	events := []string{
		"", journal.EventCategoryUpdated, journal.EventToolUpdated, journal.EventComparisonUpdated, journal.EventComparisonUpdated,
		journal.EventToolUpdated, journal.EventToolUpdated, journal.EventToolUpdated,
		journal.EventCategoryUpdated + " " + journal.EventToolUpdated + " " + journal.EventComparisonUpdated,
	}
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		for i, edition := range editions {
			report := publishFeed(t, s, edition)
			check.Must(t, report.Release, i+1, "edition %d: %+v", i+1, report)
			var found []string
			for _, row := range s.Read.JournalEntry.Query().AllX(t.Context()) {
				if row.ReleaseNumber == report.Release && row.Event != nil && *row.Event != journal.EventCatalogPublished {
					found = append(found, *row.Event)
				}
			}
			if got := strings.Join(found, " "); i > 0 && got != events[i] {
				t.Errorf("edition %d: got events %s, want %s", i+1, got, events[i])
			}
			check.Equal(t, publishFeed(t, s, edition).Release, 0, "edition %d again: release", i+1)
		}
		if n := s.Read.Tool.Query().Where(tool.Or(tool.TranslationsNotNil(), tool.SourcesNotNil())).CountX(t.Context()); n > 0 {
			t.Errorf("got values in %d tools, want null in all of them", n)
		}
		for i, edition := range editions {
			check.Equal(t, exportOf(t, s, i+1), string(edition), "release %d", i+1)
		}
		publishFeed(t, s, editions[7], publish.Options{Force: true})
		retired := strings.Replace(string(editions[7]), string(feed.Line(feedtest.Tool("b"))), "", 1)
		lines := strings.Split(retired, "\n")
		lines[2] = string(feed.Line(&record.Retired{Slug: "a", Name: "A", Category: "code", Reason: "mort", RetiredAt: "2026-11-08", Note: "Fermé."}))
		lines[3] = string(feed.Line(feedtest.Tool("b")))
		publishFeed(t, s, []byte(strings.Join(lines, "\n")), publish.Options{Force: true})
		row := s.Read.Tool.GetX(t.Context(), "a")
		if row.RetiredAt == "" || row.Translations.En.Tagline != "" || row.Sources != nil {
			t.Errorf("got %+v, want a retired tool without translations and sources", row)
		}
	})
}
