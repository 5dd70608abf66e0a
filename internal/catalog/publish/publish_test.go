package publish_test

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"palmares/ent"
	"palmares/ent/journalentry"
	"palmares/ent/tool"
	"palmares/internal/catalog/feed/feedtest"
	"palmares/internal/catalog/journal"
	"palmares/internal/catalog/publish"
	"palmares/internal/catalog/record"
	"palmares/internal/core/store"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
)

func TestJournalBeforeAndAfter(t *testing.T) {
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		publishFeed(t, s, catalogOf("2026-11-01", feedtest.Tool("a"), feedtest.Tool("b"), feedtest.Tool("c"), feedtest.Tool("d"), feedtest.Tool("e")))
		publishFeed(t, s, catalogOf("2026-11-02", feedtest.Tool("a", priced("9,50 €/mois", "2026-11-02")), feedtest.Tool("b"), feedtest.Tool("c"), feedtest.Tool("d"), feedtest.Tool("e")))
		entries := check.Try(s.Read.JournalEntry.Query().Where(journalentry.ReleaseNumber(2)).Order(journalentry.ByID()).All(t.Context())).OK(t)
		check.Must(t, len(entries), 3)
		const tool = `{"slug":"a","name":"Outil a","domain":"a.example","category":"code","icp":"mixte","pricing":"payant","price":"%s","score":7.5,"tagline":"Un outil.","canonical_url":"https://palmares.example/a","alternatives_url":"https://palmares.example/alt/a","updated_at":"%s","sections_hash":"%s"}`
		hash := record.SectionsHash([]record.Section{{Section: "verdict", Text: "Bien."}})
		want := func(price, date string) string { return fmt.Sprintf(tool, price, date, hash) }
		expect(t, "tool before", *entries[0].Before, want("20 €/mois", "2026-11-01"))
		expect(t, "tool after", *entries[0].After, want("9,50 €/mois", "2026-11-02"))
		expect(t, "price before", *entries[1].Before, `{"pricing":"payant","price":"20 €/mois"}`)
		expect(t, "price after", *entries[1].After, `{"pricing":"payant","price":"9,50 €/mois","changed_at":"2026-11-02"}`)
		expect(t, "release", *entries[2].After, `{"updated_at":"2026-11-02","tools_total":5,"tools_retired":0,"comparatifs_total":0,"events":{"price.changed":1,"tool.updated":1}}`)

		dated := strings.Replace(export(t, s), "2026-11-02", "2026-11-03", 1)
		expect(t, "release of a new date", publishFeed(t, s, []byte(dated)).Release, 3)
		expect(t, "its journal", len(journalOf(t, s, 3)), 0)
	})
}

// All changes are recorded, even if there are too many for one statement.
func TestJournalOfManyChanges(t *testing.T) {
	const tools = 400
	catalog := func(tagline, label, title string) []byte {
		records := []any{&record.Category{Slug: "voix", Label: label}}
		for i := range tools {
			records = append(records, feedtest.Tool(fmt.Sprintf("t%03d", i), func(t *record.Tool) { t.Tagline = tagline }))
		}
		duel := feedtest.Comparison("duel", "t000", "t001")
		duel.Title = title
		return catalogOf("2026-11-01", append(records, duel)...)
	}
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		publishFeed(t, s, catalog("Un.", "Voix", "Lequel ?"))
		publishFeed(t, s, catalog("Deux.", "La voix", "Qui donc ?"))
		entries := journalOf(t, s, 2)
		expect(t, "entries", len(entries), tools+2)
		expect(t, "first and last", []string{entries[0], entries[1], entries[tools], entries[tools+1]},
			[]string{"category.updated voix", "tool.updated t000", "tool.updated t399", "comparatif.updated duel"})
		for kind, want := range map[string][2]string{
			"category.updated": {`{"slug":"voix","label":"Voix"}`, `{"slug":"voix","label":"La voix"}`}, "comparatif.updated": {"Lequel ?", "Qui donc ?"},
		} {
			entry := s.Read.JournalEntry.Query().Where(journalentry.Kind(kind)).OnlyX(t.Context())
			check.Contains(t, *entry.Before, want[0], kind)
			check.Contains(t, *entry.After, want[1], kind)
		}
	})
}

// Followers of a category also receive events about what leaves it: tools that
// move, and comparisons of tools that are removed.
func TestJournalCategories(t *testing.T) {
	in := func(category string) func(*record.Tool) { return func(t *record.Tool) { t.Category = category } }
	first := func(t *record.Tool) { t.Tier = 1 }
	backThen := feedtest.Retired("back")
	moved := feedtest.Retired("retires")
	moved.Category = "voix"
	hides := feedtest.Comparison("hides", "moves", "stays")
	hidden := *hides
	hidden.Published = false
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		publishFeed(t, s, feedtest.Catalog("2026-11-01", feedtest.Tool("a"), feedtest.Tool("v", in("voix")), feedtest.Tool("moves"), feedtest.Tool("stays"), feedtest.Tool("retires"), feedtest.Tool("in-set", first), feedtest.Tool("leaves-set", first), backThen,
			feedtest.Comparison("duel", "a", "v"), hides))
		publishFeed(t, s, feedtest.Catalog("2026-11-02", feedtest.Tool("moves", in("voix"), priced("9,50 €/mois", "2026-11-02")), feedtest.Tool("stays", priced("15 €/mois", "2026-11-02")), moved,
			feedtest.Tool("in-set", first, in("voix"), func(t *record.Tool) { t.Sections = nil }), feedtest.Tool("back", in("voix")), &hidden), publish.Options{Force: true})
		entries := check.Try(s.Read.JournalEntry.Query().Where(journalentry.ReleaseNumber(2), journalentry.EventNotNil()).Order(journalentry.ByID()).All(t.Context())).OK(t)
		var got []string
		for _, e := range entries {
			got = append(got, fmt.Sprintf("%s %s: %s/%s", *e.Event, e.Slug, e.Category, e.OtherCategory))
		}
		expect(t, "events", strings.Join(got, "\n"), strings.Join([]string{
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

func TestDerivedNumbers(t *testing.T) {
	scored := func(score float64) func(*record.Tool) { return func(t *record.Tool) { t.Score = &score } }
	unscored := func(t *record.Tool) { t.Score = nil }
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		hidden := feedtest.Comparison("hidden", "a", "b")
		hidden.Published = false
		publishFeed(t, s, catalogOf("2026-11-01",
			&record.Category{Slug: "vide", Label: "Vide"}, &record.Category{Slug: "voix", Label: "Voix"},
			feedtest.Tool("a", scored(8.33)), feedtest.Tool("b", scored(8.34)), feedtest.Tool("c", unscored),
			feedtest.Tool("d", unscored, func(t *record.Tool) { t.Category = "voix" }),
			feedtest.Retired("old"), feedtest.Comparison("a-vs-b", "a", "b"), hidden))

		rel := check.Try(s.CurrentRelease(t.Context())).OK(t)
		expect(t, "totals", []int{rel.ToolsTotal, rel.ToolsTested, rel.ToolsRetired, rel.ComparisonsTotal}, []int{4, 2, 1, 1})
		expect(t, "average, rounded half up", *rel.ToolsAvgScore, 8.34)
		for slug, want := range map[string]string{"code": "3 8.34", "voix": "1 none", "vide": "0 none"} {
			expect(t, slug, numbers(s.Read.Category.GetX(t.Context(), slug)), want)
		}
	})
}

func numbers(c *ent.Category) string {
	if c.AvgScore == nil {
		return fmt.Sprintf("%d none", c.ToolCount)
	}
	return fmt.Sprintf("%d %v", c.ToolCount, *c.AvgScore)
}

func TestEmbeddingsSet(t *testing.T) {
	is := func(tier int, mainstream bool, score float64) func(*record.Tool) {
		return func(t *record.Tool) {
			t.Tier, t.Mainstream, t.Score = record.Tier(tier), mainstream, &score
			if score < 0 {
				t.Score = nil
			}
		}
	}
	set := func(t *testing.T, s *store.Store) []string {
		return check.Try(s.Read.Tool.Query().Where(tool.InEmbeddings(true)).Order(tool.ByID()).IDs(t.Context())).OK(t)
	}
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		publishFeed(t, s, catalogOf("2026-11-01",
			feedtest.Tool("tier-1", is(1, false, 2)), feedtest.Tool("tier-1-unscored", is(1, false, -1)), feedtest.Tool("score-8", is(3, false, 8)),
			feedtest.Tool("score-7-9", is(3, true, 7.9)), feedtest.Tool("tier-2-mainstream", is(2, true, 3)), feedtest.Tool("tier-2", is(2, false, 7)),
			feedtest.Tool("spare", is(3, false, 1)), feedtest.Tool("no-review", is(1, false, 9), func(t *record.Tool) { t.Sections = nil }), feedtest.Retired("old")))
		expect(t, "the set", set(t, s), []string{"score-8", "tier-1", "tier-1-unscored", "tier-2-mainstream"})

		// One review changes, one tool leaves the set, and one joins it.
		publishFeed(t, s, catalogOf("2026-11-02",
			feedtest.Tool("tier-1", is(1, false, 2), func(t *record.Tool) { t.Sections[0].Text = "Mieux." }), feedtest.Tool("tier-1-unscored", is(1, false, -1)),
			feedtest.Tool("score-8", is(3, false, 7)), feedtest.Tool("score-7-9", is(3, true, 8.1)), feedtest.Tool("tier-2-mainstream", is(2, true, 3)),
			feedtest.Tool("tier-2", is(2, false, 7)), feedtest.Tool("spare", is(3, false, 1)), feedtest.Tool("no-review", is(1, false, 9), func(t *record.Tool) { t.Sections = nil }), feedtest.Retired("old")))
		expect(t, "the set after", set(t, s), []string{"score-7-9", "tier-1", "tier-1-unscored", "tier-2-mainstream"})
		changes := slices.DeleteFunc(journalOf(t, s, 2), func(e string) bool { return !strings.HasPrefix(e, "embeddings.") })
		expect(t, "changes", changes, []string{"embeddings.changed score-7-9", "embeddings.changed score-8", "embeddings.changed tier-1"})
	})
}

// If more than 300 tools qualify, the last ones of the lowest group are omitted
// until a better one is removed.
func TestEmbeddingsSetIsBounded(t *testing.T) {
	many := func(better int) []any {
		var records []any
		for i := range 310 {
			records = append(records, feedtest.Tool(fmt.Sprintf("m%03d", i), func(t *record.Tool) {
				t.Tier, t.Mainstream = 2, true
				if i < better {
					t.Tier = 1
				}
			}))
		}
		// Tools without a review do not count.
		return append(records, feedtest.Tool("no-review", func(t *record.Tool) { t.Tier, t.Sections = 1, nil }))
	}
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		publishFeed(t, s, catalogOf("2026-11-01", many(5)...))
		in := func(slug string) bool { return s.Read.Tool.GetX(t.Context(), slug).InEmbeddings }
		expect(t, "size", s.Read.Tool.Query().Where(tool.InEmbeddings(true)).CountX(t.Context()), 300)
		expect(t, "last member and first other", []bool{in("m299"), in("m300")}, []bool{true, false})

		// A better tool displaces the last one, which returns once it is removed.
		better := feedtest.Tool("zz", func(t *record.Tool) { t.Tier = 1 })
		publishFeed(t, s, catalogOf("2026-11-01", append(many(5), better)...))
		expect(t, "after one was added", []bool{in("zz"), in("m298"), in("m299")}, []bool{true, true, false})
		unscored := feedtest.Tool("zz", func(t *record.Tool) { t.Tier, t.Mainstream, t.Score = 2, true, nil })
		publishFeed(t, s, catalogOf("2026-11-01", append(many(5), unscored)...))
		expect(t, "untested tools come last", []bool{in("zz"), in("m299"), in("m300")}, []bool{false, true, false})
		publishFeed(t, s, catalogOf("2026-11-01", many(5)...))

		publishFeed(t, s, catalogOf("2026-11-02", many(5)[1:]...))
		expect(t, "after one was removed", []bool{in("m300"), in("m301")}, []bool{true, false})
		expect(t, "journal", journalOf(t, s, 5), []string{"tool.removed m000", "embeddings.changed m000", "embeddings.changed m300"})
	})
}

// Events say whether the chunks or the metadata of a document differ.
func TestEmbeddingsEventFields(t *testing.T) {
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		first := func(t *record.Tool) { t.Tier = 1 }
		fieldsOf := func(change ...func(*record.Tool)) string {
			t.Helper()
			report := publishFeed(t, s, feedtest.Catalog("2026-11-01", feedtest.Tool("plume", append([]func(*record.Tool){first}, change...)...)))
			if report.Release == 0 {
				return "no release"
			}
			events := check.Try(journal.Read(t.Context(), s.Read.JournalEntry, journal.Query{Types: []string{journal.EventEmbeddingsChanged}, From: report.Release, Limit: 10})).OK(t)
			var all []string
			for _, e := range events {
				all = append(all, strings.Join(e.Fields, "+"))
				check.Lacks(t, string(e.JSON()), `"metadata":"`)
				for _, name := range []string{"chunks", "metadata"} {
					found := check.Try(journal.Read(t.Context(), s.Read.JournalEntry, journal.Query{Fields: []string{name}, From: report.Release, Limit: 10})).OK(t)
					expect(t, "events of "+name, len(found) > 0, slices.Contains(e.Fields, name))
				}
			}
			return strings.Join(all, " ")
		}
		text := func(t *record.Tool) { t.Sections[0].Text = "Mieux." }
		score := func(t *record.Tool) { s := 3.5; t.Score = &s }
		avis := func(t *record.Tool) { url := "https://palmares.example/avis/plume"; t.AvisURL = &url }
		expect(t, "new", fieldsOf(), "chunks+metadata")
		expect(t, "the same", fieldsOf(), "no release")
		expect(t, "tagline", fieldsOf(func(t *record.Tool) { t.Tagline = "Autre." }), "")
		expect(t, "score", fieldsOf(score), "metadata")
		expect(t, "text", fieldsOf(score, text), "chunks")
		expect(t, "text and URL", fieldsOf(score, avis), "chunks+metadata")
		expect(t, "category", fieldsOf(score, avis, func(t *record.Tool) { t.Category = "voix" }), "metadata")
		expect(t, "leaves", fieldsOf(func(t *record.Tool) { t.Tier = 3 }), "chunks+metadata")
		expect(t, "not in the set", fieldsOf(text, func(t *record.Tool) { t.Tier = 3 }), "")
	})
}

// numbersOf returns the numbers of a release's entries, in order.
func numbersOf(t *testing.T, s *store.Store, release int) []int {
	t.Helper()
	numbers := check.Try(s.Read.JournalEntry.Query().Where(journalentry.ReleaseNumber(release)).Order(journalentry.ByID()).IDs(t.Context())).OK(t)
	check.MustTrue(t, len(numbers) != 0, "got %d entries and error , want entries", len(numbers))
	return numbers
}

// Numbers used after a backup are not reused once it is restored, because
// clients would mistake new events for ones they have seen.
func TestNumbersAfterRestore(t *testing.T) {
	testkit.Each(t, func(t *testing.T, cfg store.Config) {
		s := testkit.Open(t, cfg)
		publishFeed(t, s, catalogOf("2026-11-01", feedtest.Tool("a")))
		check.OK(t, s.Close())
		backup := testkit.Copy(t, cfg)

		s = testkit.Open(t, cfg)
		publishFeed(t, s, catalogOf("2026-11-02", feedtest.Tool("a"), feedtest.Tool("b"), feedtest.Tool("c")))
		lost := numbersOf(t, s, 2)

		restored := testkit.Open(t, backup)
		publishFeed(t, restored, catalogOf("2026-11-03", feedtest.Tool("a"), feedtest.Tool("d"), feedtest.Tool("e")))
		fresh := numbersOf(t, restored, 2)
		before := numbersOf(t, restored, 1)
		check.True(t, lost[0] > before[len(before)-1] && fresh[0] > lost[len(lost)-1], "got %v before the backup, %v after it and %v after the restore, want increasing numbers", before, lost, fresh)
		const exact = 1 << 53 // JavaScript represents integers exactly up to here
		check.True(t, fresh[len(fresh)-1] < exact, "got numbers %v, want less than %d", fresh, exact)
	})
}

// Numbers increase even if the clock was set back.
func TestNumbersAheadOfTheClock(t *testing.T) {
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		publishFeed(t, s, catalogOf("2026-11-01", feedtest.Tool("a")))
		const ahead = 9_000_000_000_000_000
		s.Write.JournalEntry.Create().SetID(ahead).SetReleaseNumber(1).SetKind(journal.ToolCreated).SetSlug("x").ExecX(t.Context())
		publishFeed(t, s, catalogOf("2026-11-02", feedtest.Tool("a"), feedtest.Tool("b")))
		expect(t, "numbers", numbersOf(t, s, 2), []int{ahead + 1, ahead + 2})
	})
}

// exportOf returns a release as a feed.
func exportOf(t *testing.T, s *store.Store, release int) string {
	t.Helper()
	var buf bytes.Buffer
	check.OK(t, publish.Export(t.Context(), s, &buf, release), "release %d", release)
	return buf.String()
}

// TestHistory publishes random catalogs, and then exports each release again.
func TestHistory(t *testing.T) {
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		exports := map[int]string{}
		random := feedtest.NewTangled(testkit.SeedOr(t, 30))
		for range 40 {
			if release := feedtest.Publish(t, s, random.Next()); release > 0 {
				exports[release] = export(t, s)
			}
		}
		check.MustTrue(t, len(exports) >= 25, "got %d releases, want at least 25", len(exports))
		for release, want := range exports {
			check.Equal(t, exportOf(t, s, release), want, "release %d: another export", release)
		}
		checkPruning(t, s, exports)
	})
}

// checkPruning prunes a part of the history, and checks that the rest is
// unchanged.
func checkPruning(t *testing.T, s *store.Store, exports map[int]string) {
	t.Helper()
	const before = 12
	pruning := check.Try(publish.Prune(t.Context(), s, before)).OK(t)
	check.MustTrue(t, pruning.Rows != 0, "got %+v, want some rows", pruning)
	for release, want := range exports {
		if release >= before {
			check.Equal(t, exportOf(t, s, release), want, "release %d after pruning: another export", release)
		} else if err := publish.Export(t.Context(), s, &bytes.Buffer{}, release); !errors.Is(err, store.ErrNoRelease) {
			t.Errorf("pruned release %d: got %v, want %v", release, err, store.ErrNoRelease)
		}
	}
	for _, number := range []int{before, 1, -1, 1000} {
		check.Try(publish.Prune(t.Context(), s, number)).Fails(t, "pruning before %d", number)
	}
}
