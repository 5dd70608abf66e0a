package feed_test

import (
	"fmt"
	"strings"
	"testing"

	"palmares/ent/journalentry"
	"palmares/internal/catalog/feed"
	"palmares/internal/catalog/feed/feedtest"
	"palmares/internal/catalog/record"
	"palmares/internal/core/store"
	"palmares/internal/dev/testkit"
)

func TestJournalTellsBeforeAndAfter(t *testing.T) {
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		publish(t, s, catalogOf("2026-11-01", aTool("a"), aTool("b"), aTool("c"), aTool("d"), aTool("e")))
		publish(t, s, catalogOf("2026-11-02", aTool("a", priced("9,50 €/mois", "2026-11-02")), aTool("b"), aTool("c"), aTool("d"), aTool("e")))
		entries, err := s.Read.JournalEntry.Query().Where(journalentry.ReleaseNumber(2)).Order(journalentry.ByID()).All(t.Context())
		if err != nil || len(entries) != 3 {
			t.Fatalf("%d entries, %v", len(entries), err)
		}
		const tool = `{"slug":"a","name":"Outil a","domain":"a.example","category":"code","icp":"mixte","pricing":"payant","price":"%s","score":7.5,"tagline":"Un outil.","canonical_url":"https://palmares.example/a","alternatives_url":"https://palmares.example/alt/a","updated_at":"%s","sections_hash":"%s"}`
		hash := record.SectionsHash([]feed.Section{{Section: "verdict", Text: "Bien."}})
		want := func(price, date string) string { return fmt.Sprintf(tool, price, date, hash) }
		expect(t, "tool before", *entries[0].Before, want("20 €/mois", "2026-11-01"))
		expect(t, "tool after", *entries[0].After, want("9,50 €/mois", "2026-11-02"))
		expect(t, "price before", *entries[1].Before, `{"pricing":"payant","price":"20 €/mois"}`)
		expect(t, "price after", *entries[1].After, `{"pricing":"payant","price":"9,50 €/mois","changed_at":"2026-11-02"}`)
		expect(t, "release", *entries[2].After, `{"updated_at":"2026-11-02","tools_total":5,"tools_retired":0,"comparatifs_total":0,"events":{"price.changed":1,"tool.updated":1}}`)
	})
}

// More changes than one statement takes are all told, each as what it is.
func TestJournalOfManyChanges(t *testing.T) {
	const tools = 400
	catalog := func(tagline, label, title string) []byte {
		records := []any{&feed.Category{Slug: "voix", Label: label}}
		for i := range tools {
			records = append(records, aTool(fmt.Sprintf("t%03d", i), func(t *feed.Tool) { t.Tagline = tagline }))
		}
		duel := aComparison("duel", "t000", "t001")
		duel.Title = title
		return catalogOf("2026-11-01", append(records, duel)...)
	}
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		publish(t, s, catalog("Un.", "Voix", "Lequel ?"))
		publish(t, s, catalog("Deux.", "La voix", "Qui donc ?"))
		told := journalOf(t, s, 2)
		expect(t, "entries", len(told), tools+2)
		expect(t, "first and last", []string{told[0], told[1], told[tools], told[tools+1]},
			[]string{"category.updated voix", "tool.updated t000", "tool.updated t399", "comparatif.updated duel"})
		for kind, want := range map[string][2]string{
			"category.updated": {`{"slug":"voix","label":"Voix"}`, `{"slug":"voix","label":"La voix"}`}, "comparatif.updated": {"Lequel ?", "Qui donc ?"},
		} {
			entry := s.Read.JournalEntry.Query().Where(journalentry.Kind(kind)).OnlyX(t.Context())
			if !strings.Contains(*entry.Before, want[0]) || !strings.Contains(*entry.After, want[1]) {
				t.Errorf("%s: from %s to %s", kind, *entry.Before, *entry.After)
			}
		}
	})
}

// Whoever follows a category hears of what goes from it, too: tools that move,
// and comparisons of tools that leave with them.
func TestJournalTellsCategories(t *testing.T) {
	in := func(category string) func(*feed.Tool) { return func(t *feed.Tool) { t.Category = category } }
	first := func(t *feed.Tool) { t.Tier = 1 }
	backThen := aRetired("back")
	moved := aRetired("retires")
	moved.Category = "voix"
	hides := aComparison("hides", "moves", "stays")
	hidden := *hides
	hidden.Published = false
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		publish(t, s, feedtest.Catalog("2026-11-01", aTool("a"), aTool("v", in("voix")), aTool("moves"), aTool("stays"), aTool("retires"), aTool("in-set", first), aTool("leaves-set", first), backThen,
			aComparison("duel", "a", "v"), hides))
		publish(t, s, feedtest.Catalog("2026-11-02", aTool("moves", in("voix"), priced("9,50 €/mois", "2026-11-02")), aTool("stays", priced("15 €/mois", "2026-11-02")), moved,
			aTool("in-set", first, in("voix"), func(t *feed.Tool) { t.Sections = nil }), aTool("back", in("voix")), &hidden), feed.Options{Force: true})
		entries, err := s.Read.JournalEntry.Query().Where(journalentry.ReleaseNumber(2), journalentry.EventNotNil()).Order(journalentry.ByID()).All(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var told []string
		for _, e := range entries {
			told = append(told, fmt.Sprintf("%s %s: %s/%s", *e.Event, e.Slug, e.Category, e.OtherCategory))
		}
		expect(t, "told", strings.Join(told, "\n"), strings.Join([]string{
			"tool.updated moves: voix/code", "price.changed moves: voix/code",
			"tool.updated stays: code/", "price.changed stays: code/",
			"tool.retired retires: voix/code", "tool.updated in-set: voix/code", "tool.created back: voix/code",
			"comparatif.removed hides: code/code", "comparatif.removed duel: code/voix",
			"tool.removed a: code/", "tool.removed leaves-set: code/", "tool.removed v: voix/",
			"embeddings.changed in-set: voix/code", "embeddings.changed leaves-set: code/",
			"catalog.published : /",
		}, "\n"))
	})
}
