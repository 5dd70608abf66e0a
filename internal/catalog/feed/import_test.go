package feed_test

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"palmares/ent/journalentry"
	"palmares/internal/catalog/feed"
	"palmares/internal/catalog/feed/feedtest"
	"palmares/internal/core/store"
	"palmares/internal/dev/testkit"
)

// catalogOf writes a feed of the given date with one category and these records.
func catalogOf(date string, records ...any) []byte {
	return feedtest.Of(date, append([]any{&feed.Category{Slug: "code", Label: "Code"}}, records...)...)
}

// aTool is a tool with everything that a tool must have.
func aTool(slug string, change ...func(*feed.Tool)) *feed.Tool { return feedtest.Tool(slug, change...) }

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

// journalOf tells the entries of a release as "kind slug", but for the last,
// which is the release's own.
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
	if len(told) == 0 {
		return nil
	}
	if told[len(told)-1] != "catalog.published " {
		t.Errorf("release %d ends with %v", release, told)
		return told
	}
	return told[:len(told)-1]
}

func expect[T any](t *testing.T, what string, got, want T) {
	t.Helper()
	if g, w := fmt.Sprintf("%+v", got), fmt.Sprintf("%+v", want); g != w {
		t.Errorf("%s:\ngot  %s\nwant %s", what, g, w)
	}
}

func TestImportTellsWhatItDid(t *testing.T) {
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
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
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
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
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		publish(t, s, data)
		expect(t, "export", export(t, s), string(data))
	})
}

func TestRetirementAndReturn(t *testing.T) {
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
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
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
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
		refused("three gone", "the feed would remove or retire 3 of 10 active tools, more than a fifth; use --force to import it anyway",
			catalogOf("2026-11-11", append(slices.Clone(ten[:7]), aRetired("t7"))...))
		refused("an older feed", "the feed's date, 2026-11-09, is older than the catalog's, 2026-11-10; use --force to import it anyway",
			catalogOf("2026-11-09", ten...))

		expect(t, "two gone", publish(t, s, catalogOf("2026-11-11", ten[:8]...)).Tools, feed.Counts{Unchanged: 8, Removed: 2})
		expect(t, "forced", publish(t, s, catalogOf("2026-11-01", ten[0]), feed.Options{Force: true}).Tools, feed.Counts{Unchanged: 1, Removed: 7})
	})
}

func TestDryRunChangesNothing(t *testing.T) {
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
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
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
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
			testkit.EachStore(t, func(t *testing.T, s *store.Store) {
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
