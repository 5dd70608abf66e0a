package publish_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"testing"

	"palmares/ent/comparison"
	"palmares/ent/journalentry"
	"palmares/internal/catalog/feed"
	"palmares/internal/catalog/feed/feedtest"
	"palmares/internal/catalog/feed/synth"
	"palmares/internal/catalog/publish"
	"palmares/internal/catalog/record"
	"palmares/internal/core/store"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
)

// catalogOf returns a feed with one category and these records.
func catalogOf(date string, records ...any) []byte {
	return feedtest.Of(date, append([]any{&record.Category{Slug: "code", Label: "Code"}}, records...)...)
}

func priced(price, updatedAt string) func(*record.Tool) {
	return func(t *record.Tool) { t.Price, t.UpdatedAt = price, updatedAt }
}

// publish imports a feed that must be accepted.
func publishFeed(t *testing.T, s *store.Store, data []byte, opts ...publish.Options) *publish.Report {
	t.Helper()
	var o publish.Options
	if len(opts) > 0 {
		o = opts[0]
	}
	return check.Try(publish.Import(t.Context(), s, feed.NewLines(bytes.NewReader(data)), o)).OK(t)
}

func export(t *testing.T, s *store.Store) string {
	t.Helper()
	var buf bytes.Buffer
	check.OK(t, publish.Export(t.Context(), s, &buf, 0))
	return buf.String()
}

// journalOf returns the entries of a release as "kind slug", without the last
// one, catalog.published.
func journalOf(t *testing.T, s *store.Store, release int) []string {
	t.Helper()
	entries := check.Try(s.Read.JournalEntry.Query().Where(journalentry.ReleaseNumber(release)).Order(journalentry.ByID()).All(t.Context())).OK(t)
	var lines []string
	for _, e := range entries {
		lines = append(lines, e.Kind+" "+e.Slug)
	}
	if len(lines) == 0 {
		return nil
	}
	last := len(lines) - 1
	check.Equal(t, lines[last], "catalog.published ", "last entry of release %d: want catalog.published", release)
	return lines[:last]
}

func expect[T any](t *testing.T, what string, got, want T) {
	t.Helper()
	check.Equal(t, fmt.Sprintf("%+v", got), fmt.Sprintf("%+v", want), what)
}

func TestPriceHistory(t *testing.T) {
	earlier := record.PriceChange{ChangedAt: "2026-05-01", Pricing: "payant", Price: "20 €/mois", PreviousPricing: "gratuit", PreviousPrice: "0 €/mois"}
	withHistory := func(entries ...record.PriceChange) func(*record.Tool) {
		return func(t *record.Tool) { t.PriceHistory = entries }
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
		others := []any{feedtest.Tool("b"), feedtest.Tool("c"), feedtest.Tool("d"), feedtest.Tool("e")}
		step := func(date string, a *record.Tool, opts ...publish.Options) *publish.Report {
			t.Helper()
			return publishFeed(t, s, catalogOf(date, append([]any{a}, others...)...), opts...)
		}
		expect(t, "listed twice in the feed", step("2026-11-01", feedtest.Tool("a", withHistory(earlier, earlier))).PriceChanges, 1)
		expect(t, "left out later", step("2026-11-02", feedtest.Tool("a")).PriceChanges, 0)

		expect(t, "detected by an import", step("2026-11-03", feedtest.Tool("a", priced("30 €/mois", "2026-11-03"))).PriceChanges, 1)
		expect(t, "listed again", step("2026-11-04", feedtest.Tool("a", priced("30 €/mois", "2026-11-03"), withHistory(earlier))).PriceChanges, 0)

		// The feed lists the change with its own date. It is recorded once, as listed.
		own := record.PriceChange{ChangedAt: "2026-11-04", Pricing: "payant", Price: "35 €/mois", PreviousPricing: "payant", PreviousPrice: "30 €/mois"}
		expect(t, "detected and listed", step("2026-11-05", feedtest.Tool("a", priced("35 €/mois", "2026-11-05"), withHistory(own, earlier))).PriceChanges, 1)
		expect(t, "its kind", journalOf(t, s, 5), []string{"tool.updated a", "price.changed a"})

		older := record.PriceChange{ChangedAt: "2025-01-01", Pricing: "gratuit", Price: "0 €/mois", PreviousPricing: "payant", PreviousPrice: "5 €/mois"}
		late := step("2026-11-06", feedtest.Tool("a", priced("35 €/mois", "2026-11-05"), withHistory(own, earlier, older)))
		expect(t, "listed late", late.PriceChanges, 1)
		expect(t, "the tool itself", late.Tools, publish.Counts{Unchanged: 5})
		expect(t, "its kind", journalOf(t, s, 6), []string{"price.backfilled a"})

		expect(t, "newest first", history(t, s), `[`+
			`{"changed_at":"2026-11-04","pricing":"payant","price":"35 €/mois","previous_pricing":"payant","previous_price":"30 €/mois"},`+
			`{"changed_at":"2026-11-03","pricing":"payant","price":"30 €/mois","previous_pricing":"payant","previous_price":"20 €/mois"},`+
			`{"changed_at":"2026-05-01","pricing":"payant","price":"20 €/mois","previous_pricing":"gratuit","previous_price":"0 €/mois"},`+
			`{"changed_at":"2025-01-01","pricing":"gratuit","price":"0 €/mois","previous_pricing":"payant","previous_price":"5 €/mois"}]}`)
	})
}

// Several changes on one day keep the order of the feed.
// Every earlier change that a feed adds is recorded.
func TestBackfilledPrices(t *testing.T) {
	s := testkit.Open(t, testkit.SQLite(t))
	publishFeed(t, s, catalogOf("2026-11-01", feedtest.Tool("a")))
	publishFeed(t, s, catalogOf("2026-11-02", feedtest.Tool("a", func(t *record.Tool) {
		for _, day := range []string{"2026-03-01", "2026-02-01", "2026-01-01"} {
			t.PriceHistory = append(t.PriceHistory, record.PriceChange{ChangedAt: day, Pricing: "payant", Price: "20 €/mois", PreviousPricing: "payant", PreviousPrice: "10 €/mois"})
		}
	})))
	expect(t, "recorded changes", s.Read.JournalEntry.Query().Where(journalentry.Kind("price.backfilled")).CountX(t.Context()), 3)
}

func TestPriceHistoryOfOneDay(t *testing.T) {
	change := func(from, to string) record.PriceChange {
		return record.PriceChange{ChangedAt: "2026-05-01", Pricing: "payant", Price: to, PreviousPricing: "payant", PreviousPrice: from}
	}
	data := catalogOf("2026-11-01", feedtest.Tool("a", func(t *record.Tool) {
		t.PriceHistory = []record.PriceChange{change("9 €/mois", "2 €/mois"), change("5 €/mois", "9 €/mois"), change("7 €/mois", "5 €/mois")}
	}))
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		publishFeed(t, s, data)
		expect(t, "export", export(t, s), string(data))
	})
}

func TestRetirementAndReturn(t *testing.T) {
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		others := []any{feedtest.Tool("b"), feedtest.Tool("c"), feedtest.Tool("d"), feedtest.Tool("e")}
		publishFeed(t, s, catalogOf("2026-11-01", append(others, feedtest.Tool("a", func(t *record.Tool) { t.Tier = 1 }), feedtest.Comparison("a-vs-b", "a", "b"))...))
		publishFeed(t, s, catalogOf("2026-11-02", append(others, feedtest.Tool("a", priced("30 €/mois", "2026-11-02")), feedtest.Comparison("a-vs-b", "a", "b"))...))

		retired := publishFeed(t, s, catalogOf("2026-11-03", append(others, feedtest.Retired("a"), feedtest.Comparison("a-vs-b", "a", "b"))...))
		expect(t, "retired", retired.Tools, publish.Counts{Unchanged: 4, Retired: 1})
		row := s.Read.Tool.GetX(t.Context(), "a")
		expect(t, "remaining columns", []string{row.Domain, row.Price, string(row.Icp), row.Tagline, row.SectionsHash}, make([]string, 5))
		expect(t, "sections", row.QuerySections().CountX(t.Context()), 0)
		expect(t, "comparisons", s.Read.Comparison.Query().Where(comparison.ToolASlug("a")).CountX(t.Context()), 1)

		back := publishFeed(t, s, catalogOf("2026-11-04", append(others, feedtest.Tool("a", priced("12 €/mois", "2026-11-04")), feedtest.Comparison("a-vs-b", "a", "b"))...))
		expect(t, "back", back.Tools, publish.Counts{Created: 1, Unchanged: 4})
		expect(t, "price changes across a retirement", back.PriceChanges, 1)
		entry := s.Read.JournalEntry.Query().Where(journalentry.ReleaseNumber(4), journalentry.Kind("tool.created")).OnlyX(t.Context())
		check.Contains(t, *entry.Before, `"reason":"mort"`, "journal entry before: want the retired tool")
		const history = `{"changed_at":"2026-11-04","pricing":"payant","price":"12 €/mois","previous_pricing":"payant","previous_price":"30 €/mois"},{"changed_at":"2026-11-02","pricing":"payant","price":"30 €/mois","previous_pricing":"payant","previous_price":"20 €/mois"}`
		check.Contains(t, export(t, s), history)
	})
}

func TestRefusedImports(t *testing.T) {
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		ten := []any{}
		for i := range 10 {
			ten = append(ten, feedtest.Tool(fmt.Sprintf("t%d", i)))
		}
		publishFeed(t, s, catalogOf("2026-11-10", ten...))
		before := export(t, s)

		refused := func(name, want string, data []byte) {
			t.Helper()
			_, err := publish.Import(t.Context(), s, feed.NewLines(bytes.NewReader(data)), publish.Options{})
			var implausible *publish.ImplausibleError
			check.True(t, errors.As(err, &implausible) && implausible.Reason == want, "%s: got %v, want %s", name, err, want)
			expect(t, name, export(t, s), before)
		}
		refused("three tools removed", "the feed would remove or retire 3 of 10 active tools, more than a fifth; use --force to import it anyway",
			catalogOf("2026-11-11", append(slices.Clone(ten[:7]), feedtest.Retired("t7"))...))
		refused("an older feed", "the feed's date, 2026-11-09, is older than the catalog's, 2026-11-10; use --force to import it anyway",
			catalogOf("2026-11-09", ten...))

		expect(t, "two tools removed", publishFeed(t, s, catalogOf("2026-11-11", ten[:8]...)).Tools, publish.Counts{Unchanged: 8, Removed: 2})
		expect(t, "forced", publishFeed(t, s, catalogOf("2026-11-01", ten[0]), publish.Options{Force: true}).Tools, publish.Counts{Unchanged: 1, Removed: 7})
	})
}

func TestInvalidFeedChangesNothing(t *testing.T) {
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		publishFeed(t, s, catalogOf("2026-11-01", feedtest.Tool("a")))
		before := export(t, s)
		wrong := strings.Replace(string(catalogOf("2026-11-02", feedtest.Tool("a"), feedtest.Tool("b"))), `"score":7.5`, `"score":75`, 1)
		_, err := publish.Import(t.Context(), s, feed.NewLines(strings.NewReader(wrong)), publish.Options{})
		const want = `line 3: tool "a": score: must be at most 10 (got 75)`
		check.Equal(t, fmt.Sprint(err), want)
		expect(t, "catalog", export(t, s), before)
	})
}

// changingFeed changes to next when it is read for the second time.
type changingFeed struct {
	*bytes.Reader
	next  []byte
	reads int
}

func (f *changingFeed) Seek(offset int64, whence int) (int64, error) {
	if whence == io.SeekStart {
		if f.reads++; f.reads == 2 {
			f.Reader = bytes.NewReader(f.next)
		}
	}
	return f.Reader.Seek(offset, whence)
}

func TestFeedChangesDuringImport(t *testing.T) {
	first := catalogOf("2026-11-01", feedtest.Tool("a"), feedtest.Tool("b"))
	for name, next := range map[string][]byte{
		"another text":  catalogOf("2026-11-01", feedtest.Tool("a"), feedtest.Tool("b", priced("1 €/an", "2026-11-01"))),
		"one tool less": catalogOf("2026-11-01", feedtest.Tool("a")),
		"truncated":     first[:len(first)-40],
		"empty":         {},
	} {
		t.Run(name, func(t *testing.T) {
			testkit.EachStore(t, func(t *testing.T, s *store.Store) {
				_, err := publish.Import(t.Context(), s, feed.NewLines(&changingFeed{Reader: bytes.NewReader(first), next: next}), publish.Options{})
				const want = "the feed changed while it was being read"
				check.True(t, err != nil && strings.HasPrefix(err.Error(), want), "got %v, want %s", err, want)
				rel, _ := s.CurrentRelease(t.Context())
				check.Equal(t, rel, nil)
			})
		})
	}
}

func TestLongStringsFitEveryDatabase(t *testing.T) {
	// PostgreSQL compresses indexed values. Random text does not compress, so
	// compression cannot make it fit.
	noise := strings.Builder{}
	for i := range 20_000 {
		noise.WriteRune(rune('a' + (i*i*7919+i*104729)%26))
	}
	data := catalogOf("2026-11-01", feedtest.Tool("a", func(t *record.Tool) {
		t.Name, t.Price = noise.String(), "1 €/"+noise.String()
		t.Sections = []record.Section{{Section: noise.String(), Text: noise.String()}}
		t.PriceHistory = []record.PriceChange{{ChangedAt: "2026-01-01", Pricing: "payant", Price: t.Price, PreviousPricing: "payant", PreviousPrice: "0 €/" + noise.String()}}
	}))
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		publishFeed(t, s, data)
		expect(t, "export", export(t, s) == string(data), true)
	})
}

// A record from the longest allowed line is exported as a line that can be
// imported again.
func TestLongestLineRoundTrip(t *testing.T) {
	const limit = 1 << 20
	longest := feedtest.Tool("a")
	fill := limit - len(feed.Line(longest)) + len(longest.Sections[0].Text)
	longest.Sections[0].Text = strings.Repeat("a", fill)
	check.Must(t, len(feed.Line(longest)), limit, "line length")
	data := catalogOf("2026-11-01", longest)
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		publishFeed(t, s, data)
		expect(t, "import of the export", publishFeed(t, s, []byte(export(t, s))).Release, 0)
	})
}

func TestHistoryTooLongForOneLine(t *testing.T) {
	with := func(year int) *record.Tool {
		return feedtest.Tool("a", func(t *record.Tool) {
			for i := range 5000 {
				t.PriceHistory = append(t.PriceHistory, record.PriceChange{
					ChangedAt: fmt.Sprintf("%d-01-01", year), Pricing: "payant", Price: fmt.Sprintf("%d €/mois", i),
					PreviousPricing: "payant", PreviousPrice: "0 €/mois",
				})
			}
		})
	}
	s := testkit.Open(t, testkit.SQLite(t))
	publishFeed(t, s, catalogOf("2026-11-01", with(2020)))
	before := export(t, s)
	_, err := publish.Import(t.Context(), s, feed.NewLines(bytes.NewReader(catalogOf("2026-11-02", with(2021)))), publish.Options{})
	want := `line 3: tool "a": price_history: together with the stored price changes, the record exceeds the line limit of 1 MiB; shorten its sections`
	check.Equal(t, fmt.Sprint(err), want)
	expect(t, "catalog unchanged", export(t, s) == before, true)
}

func TestDerivedColumns(t *testing.T) {
	zero := math.Copysign(0, -1) // stored as 0
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		publishFeed(t, s, catalogOf("2026-11-01", feedtest.Tool("a", func(t *record.Tool) {
			t.Name, t.Tagline, t.Price, t.Score = "Écritoire & Cie", "Très net.", "19,90 €/poste et par mois", &zero
		})))
		row := s.Read.Tool.GetX(t.Context(), "a")
		expect(t, "columns", []any{row.NameKey, row.PriceAmount, row.PricePeriod, math.Signbit(*row.Score)},
			[]any{"ecritoire & cie", 19.9, "poste et par mois", false})
	})
}

// duringWriting returns a progress function that calls do once, halfway through
// writing the tools.
func duringWriting(do func()) func(stage string, done, total int64) {
	did := false
	return func(stage string, done, total int64) {
		if stage == "writing tools" && done > total/2 && !did {
			did = true
			do()
		}
	}
}

// failedImport imports a large feed while something fails, and checks that the
// catalog does not change.
func failedImport(t *testing.T, s *store.Store, ctx context.Context, progress func(string, int64, int64)) error {
	t.Helper()
	publishFeed(t, s, feedtest.Synthetic(t, synth.Options{Tools: 100, Seed: 1}))
	before := contents(t, s)
	next := feedtest.Synthetic(t, synth.Options{Tools: 1500, Seed: 1, Revision: 3})
	_, err := publish.Import(ctx, s, feed.NewLines(bytes.NewReader(next)), publish.Options{Progress: progress})
	check.Equal(t, contents(t, s), before, "another catalog")
	return err
}

func TestDatabaseLostDuringImport(t *testing.T) {
	cfg := testkit.Postgres(t)
	s := testkit.Open(t, cfg)
	err := failedImport(t, s, t.Context(), duringWriting(func() {
		if _, err := s.Read.ExecContext(context.Background(),
			"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"); err != nil {
			t.Error(err)
		}
	}))
	const want = "the database cannot be reached"
	check.Equal(t, fmt.Sprint(err), want)
}

func TestInterruptedImport(t *testing.T) {
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		check.Is(t, failedImport(t, s, ctx, duringWriting(cancel)), context.Canceled)
	})
}

func TestDiskFullDuringImport(t *testing.T) {
	const want = "the database's disk is full"
	t.Run("sqlite", func(t *testing.T) {
		s := testkit.Open(t, store.Config{DataDir: testkit.SmallDisk(t, 4<<20)})
		check.Equal(t, fmt.Sprint(failedImport(t, s, t.Context(), nil)), want)
	})
	t.Run("postgres", func(t *testing.T) {
		disk := testkit.SmallDisk(t, 1<<20)
		testkit.ChownForPostgres(t, disk)
		s := testkit.Open(t, testkit.Postgres(t))
		name := "small_" + strings.ReplaceAll(strings.ToLower(t.Name()), "/", "_")
		for _, statement := range []string{
			"CREATE TABLESPACE " + name + " LOCATION '" + disk + "'",
			"ALTER TABLE sections SET TABLESPACE " + name,
		} {
			if _, err := s.Write.ExecContext(t.Context(), statement); err != nil {
				testkit.SkipUnsupported(t, "the server does not allow a tablespace on the test's disk")
			}
		}
		t.Cleanup(func() {
			for _, statement := range []string{"ALTER TABLE sections SET TABLESPACE pg_default", "DROP TABLESPACE " + name} {
				_, err := s.Write.ExecContext(context.Background(), statement)
				check.Equal(t, err, nil)
			}
		})
		check.Equal(t, fmt.Sprint(failedImport(t, s, t.Context(), nil)), want)
	})
}
