package feed_test

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"palmares/ent"
	"palmares/ent/journalentry"
	"palmares/ent/tool"
	"palmares/internal/feed"
	"palmares/internal/store"
	"palmares/internal/testdb"
)

// catalogOf writes a feed of the given date with one category and these records.
func catalogOf(date string, records ...any) []byte {
	var buf bytes.Buffer
	out := feed.NewWriter(&buf, date)
	out.Write(&feed.Category{Slug: "code", Label: "Code"})
	for _, rec := range records {
		switch rec := rec.(type) {
		case *feed.Category:
			out.Write(rec)
		case *feed.Tool:
			out.Write(rec)
		case *feed.Retired:
			out.Write(rec)
		case *feed.Comparison:
			out.Write(rec)
		default:
			panic(fmt.Sprintf("%T is no record", rec))
		}
	}
	if err := out.Flush(); err != nil {
		panic(err)
	}
	return buf.Bytes()
}

// aTool is a tool with everything that a tool must have.
func aTool(slug string, change ...func(*feed.Tool)) *feed.Tool {
	score := 7.5
	t := &feed.Tool{
		Slug: slug, Name: "Outil " + slug, Domain: slug + ".example", Category: "code", ICP: "mixte",
		Pricing: "payant", Price: "20 €/mois", Score: &score, Tagline: "Un outil.",
		CanonicalURL: "https://palmares.example/" + slug, AlternativesURL: "https://palmares.example/alt/" + slug,
		UpdatedAt: "2026-11-01", Tier: 3,
		Sections: []feed.Section{{Section: "verdict", Text: "Bien."}},
	}
	for _, f := range change {
		f(t)
	}
	return t
}

func priced(price, updatedAt string) func(*feed.Tool) {
	return func(t *feed.Tool) { t.Price, t.UpdatedAt = price, updatedAt }
}

func aRetired(slug string) *feed.Retired {
	return &feed.Retired{Slug: slug, Name: "Outil " + slug, Category: "code", Reason: "mort", RetiredAt: "2026-06-01", Note: "Fermé."}
}

func aComparison(slug, a, b string) *feed.Comparison {
	return &feed.Comparison{
		Slug: slug, Title: "Lequel ?", ToolA: a, ToolB: b, Winner: a, WinnerNote: "Plus net.",
		Published: true, UpdatedAt: "2026-10-01", CanonicalURL: "https://palmares.example/duel/" + slug,
	}
}

// publish imports a feed that must be taken.
func publish(t *testing.T, s *store.Store, data []byte, opts ...feed.Options) *feed.Report {
	t.Helper()
	var o feed.Options
	if len(opts) > 0 {
		o = opts[0]
	}
	report, err := feed.Import(t.Context(), s, bytes.NewReader(data), o)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

func export(t *testing.T, s *store.Store) string {
	t.Helper()
	var buf bytes.Buffer
	if err := feed.Export(t.Context(), s, &buf); err != nil {
		t.Fatal(err)
	}
	return buf.String()
}

// journalOf tells the entries of a release as "kind slug".
func journalOf(t *testing.T, s *store.Store, release int) []string {
	t.Helper()
	entries, err := s.Read.JournalEntry.Query().Where(journalentry.ReleaseNumber(release)).Order(journalentry.ByID()).All(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var told []string
	for _, e := range entries {
		told = append(told, e.Kind+" "+e.Slug)
	}
	return told
}

func expect[T any](t *testing.T, what string, got, want T) {
	t.Helper()
	if g, w := fmt.Sprintf("%+v", got), fmt.Sprintf("%+v", want); g != w {
		t.Errorf("%s:\ngot  %s\nwant %s", what, g, w)
	}
}

func TestImportTellsWhatItDid(t *testing.T) {
	testdb.EachStore(t, func(t *testing.T, s *store.Store) {
		first := publish(t, s, catalogOf("2026-11-01",
			aTool("a"), aTool("b"), aTool("c"), aTool("d"), aTool("e"), aTool("f"),
			aRetired("old"), aComparison("a-vs-b", "a", "b"), aComparison("a-vs-old", "a", "old")))
		expect(t, "first tools", first.Tools, feed.Counts{Created: 6, Retired: 1})
		expect(t, "first comparisons", first.Comparisons, feed.Counts{Created: 2})
		expect(t, "first categories", first.Categories, feed.Counts{Created: 1})
		expect(t, "first release", first.Release, 1)

		second := publish(t, s, catalogOf("2026-11-02",
			aTool("a", func(t *feed.Tool) { t.Tagline = "Un autre." }), aTool("b", priced("25 €/mois", "2026-11-02")),
			aTool("c"), aTool("d"), aTool("e"), aRetired("f"), aTool("g"),
			&feed.Category{Slug: "voix", Label: "Voix"}, aComparison("a-vs-b", "a", "b")))
		expect(t, "second tools", second.Tools, feed.Counts{Created: 1, Updated: 2, Unchanged: 3, Retired: 1, Removed: 1})
		expect(t, "second comparisons", second.Comparisons, feed.Counts{Unchanged: 1, Removed: 1})
		expect(t, "second categories", second.Categories, feed.Counts{Created: 1, Unchanged: 1})
		expect(t, "second price changes", second.PriceChanges, 1)
		expect(t, "second release", second.Release, 2)
		expect(t, "journal", journalOf(t, s, 2), []string{
			"category.created voix", "tool.updated a", "tool.updated b", "price.changed b",
			"tool.retired f", "tool.created g", "comparatif.removed a-vs-old", "tool.removed old",
		})

		again := publish(t, s, catalogOf("2026-11-02",
			aTool("a", func(t *feed.Tool) { t.Tagline = "Un autre." }), aTool("b", priced("25 €/mois", "2026-11-02")),
			aTool("c"), aTool("d"), aTool("e"), aRetired("f"), aTool("g"),
			&feed.Category{Slug: "voix", Label: "Voix"}, aComparison("a-vs-b", "a", "b")))
		expect(t, "the same feed again", again.Release, 0)
		expect(t, "its tools", again.Tools, feed.Counts{Unchanged: 7})

		dated := publish(t, s, []byte(strings.Replace(export(t, s), "2026-11-02", "2026-11-03", 1)))
		expect(t, "a new date alone", dated.Release, 3)
		expect(t, "its journal", len(journalOf(t, s, 3)), 0)
	})
}

func TestJournalTellsBeforeAndAfter(t *testing.T) {
	testdb.EachStore(t, func(t *testing.T, s *store.Store) {
		publish(t, s, catalogOf("2026-11-01", aTool("a"), aTool("b"), aTool("c"), aTool("d"), aTool("e")))
		publish(t, s, catalogOf("2026-11-02", aTool("a", priced("9,50 €/mois", "2026-11-02")), aTool("b"), aTool("c"), aTool("d"), aTool("e")))
		entries, err := s.Read.JournalEntry.Query().Where(journalentry.ReleaseNumber(2)).Order(journalentry.ByID()).All(t.Context())
		if err != nil || len(entries) != 2 {
			t.Fatalf("%d entries, %v", len(entries), err)
		}
		const tool = `{"slug":"a","name":"Outil a","domain":"a.example","category":"code","icp":"mixte","pricing":"payant","price":"%s","score":7.5,"tagline":"Un outil.","canonical_url":"https://palmares.example/a","alternatives_url":"https://palmares.example/alt/a","updated_at":"%s","sections_hash":"%s"}`
		hash := feed.SectionsHash([]feed.Section{{Section: "verdict", Text: "Bien."}})
		want := func(price, date string) string { return fmt.Sprintf(tool, price, date, hash) }
		expect(t, "tool before", *entries[0].Before, want("20 €/mois", "2026-11-01"))
		expect(t, "tool after", *entries[0].After, want("9,50 €/mois", "2026-11-02"))
		expect(t, "price before", *entries[1].Before, `{"pricing":"payant","price":"20 €/mois"}`)
		expect(t, "price after", *entries[1].After, `{"pricing":"payant","price":"9,50 €/mois","changed_at":"2026-11-02"}`)
	})
}

func TestPriceHistory(t *testing.T) {
	told := feed.PriceChange{ChangedAt: "2026-05-01", Pricing: "payant", Price: "20 €/mois", PreviousPricing: "gratuit", PreviousPrice: "0 €/mois"}
	withHistory := func(entries ...feed.PriceChange) func(*feed.Tool) {
		return func(t *feed.Tool) { t.PriceHistory = entries }
	}
	history := func(t *testing.T, s *store.Store) string {
		for line := range strings.Lines(export(t, s)) {
			if strings.Contains(line, `"slug":"a"`) {
				_, entries, _ := strings.Cut(strings.TrimSpace(line), `"price_history":`)
				return entries
			}
		}
		return "no tool"
	}
	testdb.EachStore(t, func(t *testing.T, s *store.Store) {
		others := []any{aTool("b"), aTool("c"), aTool("d"), aTool("e")}
		step := func(date string, a *feed.Tool, opts ...feed.Options) *feed.Report {
			t.Helper()
			return publish(t, s, catalogOf(date, append([]any{a}, others...)...), opts...)
		}
		expect(t, "told by the feed, twice", step("2026-11-01", aTool("a", withHistory(told, told))).PriceChanges, 1)
		expect(t, "left out later", step("2026-11-02", aTool("a")).PriceChanges, 0)

		expect(t, "seen by an import", step("2026-11-03", aTool("a", priced("30 €/mois", "2026-11-03"))).PriceChanges, 1)
		expect(t, "told again", step("2026-11-04", aTool("a", priced("30 €/mois", "2026-11-03"), withHistory(told))).PriceChanges, 0)

		// The feed dates the change itself: it is recorded once, as told.
		own := feed.PriceChange{ChangedAt: "2026-11-04", Pricing: "payant", Price: "35 €/mois", PreviousPricing: "payant", PreviousPrice: "30 €/mois"}
		expect(t, "seen and told", step("2026-11-05", aTool("a", priced("35 €/mois", "2026-11-05"), withHistory(own, told))).PriceChanges, 1)
		expect(t, "its kind", journalOf(t, s, 5), []string{"tool.updated a", "price.changed a"})

		older := feed.PriceChange{ChangedAt: "2025-01-01", Pricing: "gratuit", Price: "0 €/mois", PreviousPricing: "payant", PreviousPrice: "5 €/mois"}
		late := step("2026-11-06", aTool("a", priced("35 €/mois", "2026-11-05"), withHistory(own, told, older)))
		expect(t, "told late", late.PriceChanges, 1)
		expect(t, "the tool itself", late.Tools, feed.Counts{Unchanged: 5})
		expect(t, "its kind", journalOf(t, s, 6), []string{"price.backfilled a"})

		expect(t, "newest first", history(t, s), `[`+
			`{"changed_at":"2026-11-04","pricing":"payant","price":"35 €/mois","previous_pricing":"payant","previous_price":"30 €/mois"},`+
			`{"changed_at":"2026-11-03","pricing":"payant","price":"30 €/mois","previous_pricing":"payant","previous_price":"20 €/mois"},`+
			`{"changed_at":"2026-05-01","pricing":"payant","price":"20 €/mois","previous_pricing":"gratuit","previous_price":"0 €/mois"},`+
			`{"changed_at":"2025-01-01","pricing":"gratuit","price":"0 €/mois","previous_pricing":"payant","previous_price":"5 €/mois"}]}`)
	})
}

// Several changes of one day keep the order in which a feed tells them.
func TestPriceHistoryOfOneDay(t *testing.T) {
	change := func(from, to string) feed.PriceChange {
		return feed.PriceChange{ChangedAt: "2026-05-01", Pricing: "payant", Price: to, PreviousPricing: "payant", PreviousPrice: from}
	}
	data := catalogOf("2026-11-01", aTool("a", func(t *feed.Tool) {
		t.PriceHistory = []feed.PriceChange{change("9 €/mois", "2 €/mois"), change("5 €/mois", "9 €/mois"), change("7 €/mois", "5 €/mois")}
	}))
	testdb.EachStore(t, func(t *testing.T, s *store.Store) {
		publish(t, s, data)
		expect(t, "export", export(t, s), string(data))
	})
}

func TestRetirementAndReturn(t *testing.T) {
	testdb.EachStore(t, func(t *testing.T, s *store.Store) {
		others := []any{aTool("b"), aTool("c"), aTool("d"), aTool("e")}
		publish(t, s, catalogOf("2026-11-01", append(others, aTool("a", func(t *feed.Tool) { t.Tier = 1 }), aComparison("a-vs-b", "a", "b"))...))
		publish(t, s, catalogOf("2026-11-02", append(others, aTool("a", priced("30 €/mois", "2026-11-02")), aComparison("a-vs-b", "a", "b"))...))

		retired := publish(t, s, catalogOf("2026-11-03", append(others, aRetired("a"), aComparison("a-vs-b", "a", "b"))...))
		expect(t, "retired", retired.Tools, feed.Counts{Unchanged: 4, Retired: 1})
		row := s.Read.Tool.GetX(t.Context(), "a")
		expect(t, "what is left of the tool", []string{row.Domain, row.Price, string(row.Icp), row.Tagline, row.SectionsHash}, make([]string, 5))
		expect(t, "its sections", row.QuerySections().CountX(t.Context()), 0)
		expect(t, "its comparisons", row.QueryComparisonsAsA().CountX(t.Context()), 1)

		back := publish(t, s, catalogOf("2026-11-04", append(others, aTool("a", priced("12 €/mois", "2026-11-04")), aComparison("a-vs-b", "a", "b"))...))
		expect(t, "back", back.Tools, feed.Counts{Created: 1, Unchanged: 4})
		expect(t, "no price is compared across a retirement", back.PriceChanges, 0)
		entry := s.Read.JournalEntry.Query().Where(journalentry.ReleaseNumber(4), journalentry.Kind("tool.created")).OnlyX(t.Context())
		if !strings.Contains(*entry.Before, `"reason":"mort"`) {
			t.Errorf("the journal forgot that it was retired: %s", *entry.Before)
		}
		if !strings.Contains(export(t, s), `"previous_price":"20 €/mois"`) {
			t.Error("its price history from before is lost")
		}
	})
}

func TestRefusals(t *testing.T) {
	testdb.EachStore(t, func(t *testing.T, s *store.Store) {
		ten := []any{}
		for i := range 10 {
			ten = append(ten, aTool(fmt.Sprintf("t%d", i)))
		}
		publish(t, s, catalogOf("2026-11-10", ten...))
		before := export(t, s)

		refused := func(name, want string, data []byte) {
			t.Helper()
			_, err := feed.Import(t.Context(), s, bytes.NewReader(data), feed.Options{})
			var refusal *feed.Refusal
			if !errors.As(err, &refusal) || refusal.Reason != want {
				t.Errorf("%s: got %v", name, err)
			}
			expect(t, name, export(t, s), before)
		}
		refused("three gone", "the feed would remove or retire 3 of 10 active tools, more than a fifth: import it with --force if that is meant",
			catalogOf("2026-11-11", append(slices.Clone(ten[:7]), aRetired("t7"))...))
		refused("an older feed", "the feed is of 2026-11-09, older than the catalog's 2026-11-10: import it with --force if that is meant",
			catalogOf("2026-11-09", ten...))

		expect(t, "two gone", publish(t, s, catalogOf("2026-11-11", ten[:8]...)).Tools, feed.Counts{Unchanged: 8, Removed: 2})
		expect(t, "forced", publish(t, s, catalogOf("2026-11-01", ten[0]), feed.Options{Force: true}).Tools, feed.Counts{Unchanged: 1, Removed: 7})
	})
}

func TestDryRunChangesNothing(t *testing.T) {
	testdb.EachStore(t, func(t *testing.T, s *store.Store) {
		publish(t, s, catalogOf("2026-11-01", aTool("a")))
		before := export(t, s)
		report := publish(t, s, catalogOf("2026-11-02", aTool("a", priced("1 €/an", "2026-11-02")), aTool("b")), feed.Options{DryRun: true})
		expect(t, "what would change", report.Tools, feed.Counts{Created: 1, Updated: 1})
		expect(t, "release that would be", report.Release, 2)
		expect(t, "catalog", export(t, s), before)
		expect(t, "journal", len(journalOf(t, s, 2)), 0)
	})
}

func TestWrongFeedChangesNothing(t *testing.T) {
	testdb.EachStore(t, func(t *testing.T, s *store.Store) {
		publish(t, s, catalogOf("2026-11-01", aTool("a")))
		before := export(t, s)
		wrong := strings.Replace(string(catalogOf("2026-11-02", aTool("a"), aTool("b"))), `"score":7.5`, `"score":75`, 1)
		_, err := feed.Import(t.Context(), s, strings.NewReader(wrong), feed.Options{})
		if err == nil || err.Error() != `line 3: tool "a": score: 75 is over 10` {
			t.Errorf("got %v", err)
		}
		expect(t, "catalog", export(t, s), before)
	})
}

// movingFeed is another feed from its second reading on.
type movingFeed struct {
	*bytes.Reader
	next []byte
	from int
}

func (m *movingFeed) Seek(offset int64, whence int) (int64, error) {
	if whence == 0 {
		if m.from++; m.from == 2 {
			m.Reader = bytes.NewReader(m.next)
		}
	}
	return m.Reader.Seek(offset, whence)
}

func TestFeedThatMovesUnderTheReader(t *testing.T) {
	first := catalogOf("2026-11-01", aTool("a"), aTool("b"))
	for name, next := range map[string][]byte{
		"another text": catalogOf("2026-11-01", aTool("a"), aTool("b", priced("1 €/an", "2026-11-01"))),
		"a tool less":  catalogOf("2026-11-01", aTool("a")),
		"cut":          first[:len(first)-40],
		"nothing":      {},
	} {
		t.Run(name, func(t *testing.T) {
			testdb.EachStore(t, func(t *testing.T, s *store.Store) {
				_, err := feed.Import(t.Context(), s, &movingFeed{Reader: bytes.NewReader(first), next: next}, feed.Options{})
				if err == nil || !strings.HasPrefix(err.Error(), "the feed changed while it was being read") {
					t.Errorf("got %v", err)
				}
				if rel, _ := s.CurrentRelease(t.Context()); rel != nil {
					t.Error("something was published")
				}
			})
		})
	}
}

func TestDerivedNumbers(t *testing.T) {
	scored := func(score float64) func(*feed.Tool) { return func(t *feed.Tool) { t.Score = &score } }
	unscored := func(t *feed.Tool) { t.Score = nil }
	testdb.EachStore(t, func(t *testing.T, s *store.Store) {
		hidden := aComparison("hidden", "a", "b")
		hidden.Published = false
		publish(t, s, catalogOf("2026-11-01",
			&feed.Category{Slug: "vide", Label: "Vide"}, &feed.Category{Slug: "voix", Label: "Voix"},
			aTool("a", scored(8.33)), aTool("b", scored(8.34)), aTool("c", unscored),
			aTool("d", unscored, func(t *feed.Tool) { t.Category = "voix" }),
			aRetired("old"), aComparison("a-vs-b", "a", "b"), hidden))

		rel, err := s.CurrentRelease(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		expect(t, "totals", []int{rel.ToolsTotal, rel.ToolsTested, rel.ToolsRetired, rel.ComparisonsTotal}, []int{4, 2, 1, 1})
		expect(t, "average, a tie goes up", *rel.ToolsAvgScore, 8.34)
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
	is := func(tier int, mainstream bool, score float64) func(*feed.Tool) {
		return func(t *feed.Tool) {
			t.Tier, t.Mainstream, t.Score = feed.Tier(tier), mainstream, &score
			if score < 0 {
				t.Score = nil
			}
		}
	}
	set := func(t *testing.T, s *store.Store) []string {
		slugs, err := s.Read.Tool.Query().Where(tool.InEmbeddings(true)).Order(tool.ByID()).IDs(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return slugs
	}
	testdb.EachStore(t, func(t *testing.T, s *store.Store) {
		publish(t, s, catalogOf("2026-11-01",
			aTool("tier-1", is(1, false, 2)), aTool("tier-1-unscored", is(1, false, -1)), aTool("score-8", is(3, false, 8)),
			aTool("score-7-9", is(3, true, 7.9)), aTool("tier-2-mainstream", is(2, true, 3)), aTool("tier-2", is(2, false, 7)),
			aTool("spare", is(3, false, 1)), aRetired("old")))
		expect(t, "the set", set(t, s), []string{"score-8", "tier-1", "tier-1-unscored", "tier-2-mainstream"})

		// One text changes, one tool leaves the set, one joins.
		publish(t, s, catalogOf("2026-11-02",
			aTool("tier-1", is(1, false, 2), func(t *feed.Tool) { t.Sections[0].Text = "Mieux." }), aTool("tier-1-unscored", is(1, false, -1)),
			aTool("score-8", is(3, false, 7)), aTool("score-7-9", is(3, true, 8.1)), aTool("tier-2-mainstream", is(2, true, 3)),
			aTool("tier-2", is(2, false, 7)), aTool("spare", is(3, false, 1)), aRetired("old")))
		expect(t, "the set after", set(t, s), []string{"score-7-9", "tier-1", "tier-1-unscored", "tier-2-mainstream"})
		told := slices.DeleteFunc(journalOf(t, s, 2), func(e string) bool { return !strings.HasPrefix(e, "embeddings.") })
		expect(t, "told", told, []string{"embeddings.changed score-7-9", "embeddings.changed score-8", "embeddings.changed tier-1"})
	})
}

// Where more than 300 qualify, the last of the last group are left out, and
// come in when a better one goes.
func TestEmbeddingsSetIsBounded(t *testing.T) {
	many := func(better int) []any {
		var records []any
		for i := range 310 {
			records = append(records, aTool(fmt.Sprintf("m%03d", i), func(t *feed.Tool) {
				t.Tier, t.Mainstream = 2, true
				if i < better {
					t.Tier = 1
				}
			}))
		}
		return records
	}
	testdb.EachStore(t, func(t *testing.T, s *store.Store) {
		publish(t, s, catalogOf("2026-11-01", many(5)...))
		in := func(slug string) bool { return s.Read.Tool.GetX(t.Context(), slug).InEmbeddings }
		expect(t, "how many", s.Read.Tool.Query().Where(tool.InEmbeddings(true)).CountX(t.Context()), 300)
		expect(t, "the last in, the first out", []bool{in("m299"), in("m300")}, []bool{true, false})

		// A better one pushes the last out, and lets it back in by going.
		better := aTool("zz", func(t *feed.Tool) { t.Tier = 1 })
		publish(t, s, catalogOf("2026-11-01", append(many(5), better)...))
		expect(t, "after one came", []bool{in("zz"), in("m298"), in("m299")}, []bool{true, true, false})
		unscored := aTool("zz", func(t *feed.Tool) { t.Tier, t.Mainstream, t.Score = 2, true, nil })
		publish(t, s, catalogOf("2026-11-01", append(many(5), unscored)...))
		expect(t, "unscored ones are the last", []bool{in("zz"), in("m299"), in("m300")}, []bool{false, true, false})
		publish(t, s, catalogOf("2026-11-01", many(5)...))

		publish(t, s, catalogOf("2026-11-02", many(5)[1:]...))
		expect(t, "after one left", []bool{in("m300"), in("m301")}, []bool{true, false})
		expect(t, "told", journalOf(t, s, 5), []string{"tool.removed m000", "embeddings.changed m000", "embeddings.changed m300"})
	})
}

func TestLongTextsFitEveryDatabase(t *testing.T) {
	// Random text does not compress: what fits an index of PostgreSQL only
	// when compressed must not slip through.
	noise := strings.Builder{}
	for i := range 20_000 {
		noise.WriteRune(rune('a' + (i*i*7919+i*104729)%26))
	}
	data := catalogOf("2026-11-01", aTool("a", func(t *feed.Tool) {
		t.Name, t.Price = noise.String(), "1 €/"+noise.String()
		t.Sections = []feed.Section{{Section: noise.String(), Text: noise.String()}}
		t.PriceHistory = []feed.PriceChange{{ChangedAt: "2026-01-01", Pricing: "payant", Price: t.Price, PreviousPricing: "payant", PreviousPrice: "0 €/" + noise.String()}}
	}))
	testdb.EachStore(t, func(t *testing.T, s *store.Store) {
		publish(t, s, data)
		expect(t, "export", export(t, s) == string(data), true)
	})
}

// What was read from a line fits into one again, also after an export has
// written it its own way.
func TestLongestLineComesBack(t *testing.T) {
	const limit = 1 << 20
	shortest := aTool("a")
	fill := limit - len(feed.Line(shortest)) + len(shortest.Sections[0].Text)
	shortest.Sections[0].Text = strings.Repeat("a", fill)
	if n := len(feed.Line(shortest)); n != limit {
		t.Fatalf("the line has %d bytes", n)
	}
	data := catalogOf("2026-11-01", shortest)
	testdb.EachStore(t, func(t *testing.T, s *store.Store) {
		publish(t, s, data)
		expect(t, "import of the export", publish(t, s, []byte(export(t, s))).Release, 0)
	})
}

func TestHistoryThatNoLineCanTell(t *testing.T) {
	with := func(year int) *feed.Tool {
		return aTool("a", func(t *feed.Tool) {
			for i := range 5000 {
				t.PriceHistory = append(t.PriceHistory, feed.PriceChange{
					ChangedAt: fmt.Sprintf("%d-01-01", year), Pricing: "payant", Price: fmt.Sprintf("%d €/mois", i),
					PreviousPricing: "payant", PreviousPrice: "0 €/mois",
				})
			}
		})
	}
	s := testdb.Open(t, testdb.SQLite(t))
	publish(t, s, catalogOf("2026-11-01", with(2020)))
	before := export(t, s)
	_, err := feed.Import(t.Context(), s, bytes.NewReader(catalogOf("2026-11-02", with(2021))), feed.Options{})
	want := `line 3: tool "a": price_history: with what the catalog already has, the tool no longer fits a line of 1 MiB`
	if err == nil || err.Error() != want {
		t.Errorf("got %v", err)
	}
	expect(t, "the catalog is as before", export(t, s) == before, true)
}

func TestStoredKeys(t *testing.T) {
	zero := math.Copysign(0, -1) // there is no score of -0
	testdb.EachStore(t, func(t *testing.T, s *store.Store) {
		publish(t, s, catalogOf("2026-11-01", aTool("a", func(t *feed.Tool) {
			t.Name, t.Tagline, t.Price, t.Score = "Écritoire & Cie", "Très net.", "19,90 €/poste et par mois", &zero
		})))
		row := s.Read.Tool.GetX(t.Context(), "a")
		expect(t, "keys", []any{row.NameKey, row.SearchText, row.PriceAmount, row.PricePeriod, row.Untested, math.Signbit(*row.Score)},
			[]any{"ecritoire & cie", "ecritoire & cie\ntres net.", 19.9, "poste et par mois", false, false})
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
	testdb.EachStore(t, func(t *testing.T, s *store.Store) {
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
