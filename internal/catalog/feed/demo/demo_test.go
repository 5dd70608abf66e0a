package demo_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"palmares/ent/journalentry"
	"palmares/internal/catalog/feed"
	"palmares/internal/catalog/feed/demo"
	"palmares/internal/catalog/journal"
	"palmares/internal/catalog/publish"
	"palmares/internal/catalog/record"
	"palmares/internal/core/store"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
)

func editions(t *testing.T) []demo.Edition {
	t.Helper()
	return check.Try(demo.Editions()).OK(t)
}

func TestEditions(t *testing.T) {
	all := editions(t)
	check.Equal(t, len(all), 8, "editions")
	last := all[len(all)-1]
	check.Equal(t, string(last.Feed), string(demo.Catalog()), "last edition")
	check.Equal(t, last.Date, "2026-11-10", "last edition")
	first := all[0].Date
	check.True(t, strings.HasPrefix(first, "2026-03-"), "first edition: got %s, want one from March 2026", first)
	check.True(t, slices.IsSortedFunc(all, func(a, b demo.Edition) int { return strings.Compare(a.Date, b.Date) }), "got unsorted editions, want them ordered by date")
}

func TestEmbeddedSize(t *testing.T) {
	const limit = 400_000
	var size int64
	for _, pattern := range []string{"editions/*.ndjson", "catalog/*.yml", "catalog/*/*.md"} {
		files := check.Try(filepath.Glob(pattern)).OK(t)
		for _, file := range files {
			info := check.Try(os.Stat(file)).OK(t)
			size += info.Size()
		}
	}
	check.True(t, size < limit, "got %d bytes, want less than %d", size, limit)
}

// TestFilesAreMinimal checks that the files of older editions are named after
// their dates, and repeat nothing from the edition that followed.
func TestFilesAreMinimal(t *testing.T) {
	all := editions(t)
	for i, edition := range all[:len(all)-1] {
		data := check.Try(os.ReadFile("editions/" + edition.Date + ".ndjson")).OK(t)
		was, next := read(t, edition), read(t, all[i+1])
		for line := range strings.Lines(string(data)) {
			if !strings.Contains(line, `"slug"`) {
				continue
			}
			var given map[string]any
			decode(t, line, &given)
			id := idOf(given["type"].(string), given["slug"].(string))
			if given["absent"] == true {
				check.True(t, next[id] != nil && next[id].RecordType() == given["type"] && len(given) == 3, "%s: got %s, want only the slug of a record that the next edition has", edition.Date, line)
				continue
			}
			rest := strings.Replace(line, `"type":"`+given["type"].(string)+`",`, "", 1)
			err := json.Unmarshal([]byte(rest), record.New(given["type"].(string)), json.RejectUnknownMembers(true))
			check.OK(t, err, "%s: %s", edition.Date, id)
			check.True(t, slices.Contains(record.Types, given["type"].(string)), "%s: %s: got %v, want fields of a record", edition.Date, id, err)
			check.True(t, string(record.Encode(was[id])) != string(record.Encode(next[id])), "%s: got %s as in the next edition, want it left out", edition.Date, id)
			if next[id] == nil || next[id].RecordType() != given["type"] {
				continue
			}
			var later map[string]any
			decode(t, string(record.Encode(next[id])), &later)
			for name, value := range given {
				check.True(t, name == "type" || name == "slug" || !same(value, later[name]), "%s: got %s of %s as in the next edition, want it left out", edition.Date, name, id)
			}
		}
	}
}

// TestDates checks that no edition has dates in its future, and that the dates
// of changed records are later than the previous edition.
func TestDates(t *testing.T) {
	all := editions(t)
	for i, edition := range all {
		var before map[string]record.Record
		since := ""
		if i > 0 {
			before, since = read(t, all[i-1]), all[i-1].Date
		}
		within := func(id, what, date string, changed bool) {
			check.True(t, date <= edition.Date && (!changed || date > since), "edition of %s: %s of %s: got %s, want a date after %q and not after the edition's", edition.Date, what, id, date, since)
		}
		for id, rec := range read(t, edition) {
			changed := before[id] != nil && string(record.Encode(rec)) != string(record.Encode(before[id]))
			switch rec := rec.(type) {
			case *record.Tool:
				within(id, "updated_at", rec.UpdatedAt, changed)
				checkPrices(t, edition.Date, rec, before[id])
			case *record.Comparison:
				within(id, "updated_at", rec.UpdatedAt, changed)
			case *record.Retired:
				_, wasActive := before[id].(*record.Tool)
				within(id, "retired_at", rec.RetiredAt, wasActive)
			}
		}
	}
}

// TestFacts checks that every text of every edition is translated, and that no source was
// checked after its edition.
func TestFacts(t *testing.T) {
	sources := 0
	for _, edition := range editions(t) {
		for id, rec := range read(t, edition) {
			var texts []string
			switch rec := rec.(type) {
			case *record.Category:
				texts = []string{rec.Translations.En.Label}
			case *record.Tool:
				texts = []string{rec.Translations.En.Tagline}
				for _, source := range rec.Sources {
					if sources++; source.CheckedAt > edition.Date {
						t.Errorf("edition of %s: %s: got a source that was checked on %s, want none after the edition", edition.Date, id, source.CheckedAt)
					}
				}
			case *record.Comparison:
				texts = []string{rec.Translations.En.Title, rec.Translations.En.WinnerNote}
			}
			check.True(t, !slices.Contains(texts, ""), "edition of %s: %s: got translations %q, want all", edition.Date, id, texts)
		}
	}
	check.True(t, sources != 0, "got no sources, want some")
}

// checkPrices checks that a tool's price history leads to its price, has no
// changes in the future and continues the history of the previous edition.
func checkPrices(t *testing.T, date string, tool *record.Tool, before record.Record) {
	t.Helper()
	for i, change := range tool.PriceHistory {
		pricing, price := tool.Pricing, tool.Price
		if i > 0 {
			pricing, price = tool.PriceHistory[i-1].PreviousPricing, tool.PriceHistory[i-1].PreviousPrice
		}
		check.Equal(t, change.Pricing, pricing, "edition of %s: %s: price after the change of %s", date, tool.Slug, change.ChangedAt)
		check.Equal(t, change.Price, price, "edition of %s: %s: price after the change of %s", date, tool.Slug, change.ChangedAt)
		check.True(t, change.ChangedAt <= tool.UpdatedAt, "edition of %s: %s: got a price change of %s, want none after %s", date, tool.Slug, change.ChangedAt, tool.UpdatedAt)
	}
	was, ok := before.(*record.Tool)
	if !ok {
		return
	}
	added := len(tool.PriceHistory) - len(was.PriceHistory)
	if added < 0 || !slices.Equal(tool.PriceHistory[added:], was.PriceHistory) {
		t.Fatalf("edition of %s: %s: got price history %v, want a continuation of %v", date, tool.Slug, tool.PriceHistory, was.PriceHistory)
	}
	check.Equal(t, tool.Price != was.Price || tool.Pricing != was.Pricing, (added > 0), "edition of %s: %s: new price changes: %d", date, tool.Slug, added)
	if added > 0 && tool.PriceHistory[added-1].PreviousPrice != was.Price {
		t.Errorf("edition of %s: %s: got a change from %s, want from %s", date, tool.Slug, tool.PriceHistory[added-1].PreviousPrice, was.Price)
	}
}

// TestPublishEditions publishes all editions. After each one, an export returns
// the same feed. At the end, the journal has every kind of change.
func TestPublishEditions(t *testing.T) {
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		for i, edition := range editions(t) {
			report := check.Try(publish.Import(t.Context(), s, feed.NewLines(bytes.NewReader(edition.Feed)), publish.Options{})).OK(t, "edition of %s", edition.Date)
			check.Equal(t, report.Release, i+1, "edition of %s: release", edition.Date)
			var exported bytes.Buffer
			check.OK(t, publish.Export(t.Context(), s, &exported, 0))
			check.Equal(t, exported.String(), string(edition.Feed), "edition of %s: an export of %d bytes", edition.Date, exported.Len())
		}
		counts := map[string]int{}
		for _, row := range s.Read.JournalEntry.Query().Where(journalentry.ReleaseNumberNEQ(1)).AllX(t.Context()) {
			counts[row.Kind]++
			if row.Event != nil {
				counts["event "+*row.Event]++
			}
			if row.Kind != journal.ToolUpdated {
				continue
			}
			before, after := stateOf(t, row.Before), stateOf(t, row.After)
			switch {
			case after.Score > before.Score:
				counts["score up"]++
			case after.Score < before.Score:
				counts["score down"]++
			}
			if after.SectionsHash != before.SectionsHash {
				counts["review changed"]++
			}
		}
		for kind, least := range map[string]int{
			"event " + journal.EventToolCreated: 6, "event " + journal.EventToolRetired: 4, "event " + journal.EventToolRemoved: 1,
			"event " + journal.EventPriceChanged: 10, "event " + journal.EventComparisonPublished: 8, "event " + journal.EventEmbeddingsChanged: 5,
			"score up": 8, "score down": 7, "review changed": 5,
		} {
			check.True(t, counts[kind] >= least, "%s: got %d since the first edition, want at least %d", kind, counts[kind], least)
		}
		for _, event := range journal.Events {
			check.True(t, counts["event "+event] != 0 || event == journal.EventPriceBackfilled, "got no event %s since the first edition, want one", event) // the first edition has all of them
		}
		for _, kind := range []string{
			journal.CategoryCreated, journal.CategoryUpdated, journal.CategoryRemoved,
			journal.ToolCreated, journal.ToolUpdated, journal.ToolRetired, journal.ToolRemoved, journal.PriceChanged,
			journal.ComparisonCreated, journal.ComparisonUpdated, journal.ComparisonRemoved, journal.EmbeddingsChanged, journal.CatalogPublished,
		} {
			check.True(t, counts[kind] != 0, "got no change %s since the first edition, want one", kind)
		}
		check.True(t, s.Read.JournalEntry.Query().Where(journalentry.Kind(journal.PriceBackfilled)).ExistX(t.Context()), "got no change %s, want one", journal.PriceBackfilled)
	})
}

// read returns the records of an edition by ID. A tool has the same ID while it
// is active and once it is retired.
func read(t *testing.T, edition demo.Edition) map[string]record.Record {
	t.Helper()
	records := map[string]record.Record{}
	for line := range strings.Lines(string(edition.Feed)) {
		var given struct {
			Type string `json:"type"`
			Slug string `json:"slug"`
		}
		decode(t, line, &given)
		if given.Type == record.TypeFeed {
			continue
		}
		rec := record.New(given.Type)
		decode(t, line, rec)
		records[idOf(given.Type, given.Slug)] = rec
	}
	return records
}

func idOf(recordType, slug string) string {
	if recordType == record.TypeRetired {
		recordType = record.TypeTool
	}
	return recordType + " " + slug
}

func decode(t *testing.T, line string, into any) {
	t.Helper()
	check.OK(t, json.Unmarshal([]byte(line), into))
}

func same(a, b any) bool { return string(record.Encode(a)) == string(record.Encode(b)) }

// state is what the journal stores of an active tool.
type state struct {
	Score        float64 `json:"score"`
	SectionsHash string  `json:"sections_hash"`
}

func stateOf(t *testing.T, stored *string) (s state) {
	t.Helper()
	decode(t, *stored, &s)
	return s
}
