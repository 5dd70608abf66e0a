package graph_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"palmares/auth"
	"palmares/ent"
	"palmares/graph"
	"palmares/graph/graphtest"
	"palmares/internal/catalog/feed/demo"
	"palmares/internal/catalog/feed/feedtest"
	"palmares/internal/catalog/feed/synth"
	"palmares/internal/catalog/journal"
	"palmares/internal/catalog/publish"
	"palmares/internal/catalog/record"
	"palmares/internal/catalog/release"
	"palmares/internal/core/cache"
	"palmares/internal/core/problem"
	"palmares/internal/core/store"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
	"palmares/internal/dev/testkit/wait"
)

func historyOf(t *testing.T, e *graph.Executor, slug string) string {
	t.Helper()
	type moment struct {
		At, Pricing, Price string
		Score              *float64
	}
	text := ""
	for _, m := range decode[struct{ Tool struct{ History []moment } }](t, mustExecute(t, e, `{tool(slug: "`+slug+`") {history {at pricing price score}}}`)).Tool.History {
		score := "untested"
		if m.Score != nil {
			score = fmt.Sprint(*m.Score)
		}
		text += fmt.Sprintf("%s %s %s %s; ", m.At, m.Pricing, m.Price, score)
	}
	return text
}

func TestHistory(t *testing.T) {
	early := record.PriceChange{ChangedAt: "2026-05-01", Pricing: "payant", Price: "20 €/mois", PreviousPricing: "gratuit", PreviousPrice: "0 €/mois"}
	late := record.PriceChange{ChangedAt: "2026-11-05", Pricing: "payant", Price: "17 €/mois", PreviousPricing: "payant", PreviousPrice: "15 €/mois"}
	odd := record.PriceChange{ChangedAt: "2026-12-24", Pricing: "gratuit", Price: "0 €/mois", PreviousPricing: "payant", PreviousPrice: "20 €/mois"}
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		e := newExecutor(s)
		other, contradicted := feedtest.Tool("b", withoutScore), feedtest.Tool("odd", func(t *record.Tool) { t.PriceHistory = []record.PriceChange{odd} })
		step := func(date string, records ...any) {
			feedtest.Publish(t, s, feedtest.Catalog(date, append(records, other, contradicted)...))
		}
		step("2026-11-01", feedtest.Tool("a", func(t *record.Tool) { t.PriceHistory = []record.PriceChange{early} }))
		step("2026-11-02", feedtest.Tool("a", updatedOn("2026-11-02", func(t *record.Tool) { t.Tagline = "Autre." })))
		step("2026-11-03", feedtest.Tool("a", updatedOn("2026-11-03", func(t *record.Tool) { t.Price = "15 €/mois"; withScore(8)(t) })))
		step("2026-11-04", feedtest.Tool("a", updatedOn("2026-11-03", func(t *record.Tool) { t.Price = "15 €/mois"; withoutScore(t) }))) // its date is unchanged
		want := "2026-05-01 payant 20 €/mois untested; 2026-11-01 payant 20 €/mois 7.5; 2026-11-03 payant 15 €/mois 8; 2026-11-04 payant 15 €/mois untested; "
		expect(t, "a", historyOf(t, e, "a"), want)
		step("2026-11-06", feedtest.Tool("a", updatedOn("2026-11-06", func(t *record.Tool) {
			t.Price, t.Pricing, t.PriceHistory = "18 €/mois", "freemium", []record.PriceChange{late}
			withoutScore(t)
		})))
		want += "2026-11-05 payant 17 €/mois untested; 2026-11-06 freemium 18 €/mois untested; "
		expect(t, "with a late price change", historyOf(t, e, "a"), want)
		expect(t, "nothing ever changed", historyOf(t, e, "b"), "2026-11-01 payant 20 €/mois untested; ")
		// Even if the price history contradicts the price, the last entry is the current state.
		expect(t, "a history that contradicts the price", historyOf(t, e, "odd"), "2026-11-01 payant 20 €/mois 7.5; ")

		step("2026-11-07", &record.Retired{Slug: "a", Name: "Outil a", Category: "code", Reason: "mort", RetiredAt: "2026-11-07", Note: "Fermé."})
		step("2026-11-08", feedtest.Tool("a", updatedOn("2026-11-08", func(t *record.Tool) { t.Price = "5 €/mois" })))
		expect(t, "back from retirement", historyOf(t, e, "a"), want+"2026-11-08 payant 5 €/mois 7.5; ")
	})
}

// interruptedCatalog does something before the first statement that reads what is not
// in memory.
type interruptedCatalog struct {
	*store.Store
	before func()
}

func (c *interruptedCatalog) Client() *ent.Client {
	if before := c.before; before != nil {
		c.before = nil
		before()
	}
	return c.Store.Client()
}

// readEarlier returns everything that an index holds of a release, and reviews, which are
// read from the database.
func readEarlier(t testing.TB, e *graph.Executor, release int) string {
	t.Helper()
	var all strings.Builder
	for _, selection := range []string{
		`{tools(limit: 40) {items {slug verdict}}}`,
		`{tools(limit: 40) {meta {total} items ` + allOfTools + `} retiredTools(limit: 200) {items {slug note}}}`,
		`{a: tools(sort: score_asc, limit: 200) {items {slug}} b: tools(sort: name_asc, limit: 200) {items {slug}} c: tools(sort: name_desc, limit: 200) {items {slug}}}`,
		`{a: tools(sort: updated_asc, limit: 200) {items {slug}} b: tools(sort: updated_desc, limit: 200) {items {slug}}}`,
		`{a: tools(sort: price_asc, limit: 200) {items {slug}} b: tools(sort: price_desc, limit: 200) {items {slug}}}`,
		`{categories {slug label toolCount tools(limit: 3) {slug}} comparisons(limit: 100) {items {slug title winnerName toolA {slug} toolB {slug}}}}`,
		`{tools(filter: {search: "lanterne"}) {items {slug}} priceChangeCounts {month category count} releases {nodes {number}}}`,
	} {
		all.WriteString(mustExecute(t, e, fmt.Sprintf("query @asOf(release: %d) %s", release, selection)) + "\n")
	}
	return all.String()
}

// A release is published between choosing an earlier one and reading it. The memory
// suffices only for a few earlier releases.
func TestEarlierReleaseWhileAnotherIsPublished(t *testing.T) {
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		catalog := &interruptedCatalog{Store: s}
		log := slog.New(slog.DiscardHandler)
		e := graphtest.New(graph.Config{Catalog: catalog, Credit: credit, Log: log, Cache: cache.New(300_000, nil, log)})
		want := map[int]string{}
		publishNext := func() {
			feedtest.Publish(t, s, feedtest.Synthetic(t, synth.Options{Tools: 120, Seed: 8, Revision: len(want)}))
			want[len(want)+1] = readEarlier(t, newExecutor(s), len(want)+1)
		}
		publishNext()
		publishNext()
		for range 3 {
			release := len(want) - 1
			mustExecute(t, e, `{feed {release}}`)
			catalog.before = publishNext
			check.Equal(t, readEarlier(t, e, release), want[release], "release %d", release)
			check.True(t, catalog.before == nil, "release %d: got nothing read, want a release published in the meantime", release)
			for release, want := range want {
				check.Equal(t, readEarlier(t, e, release), want, "release %d later", release)
			}
		}
	})
}

// A release that is pruned while it is read is not available. The server has not failed,
// so no error is logged.
func TestEarlierReleaseWhileItIsPruned(t *testing.T) {
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		for revision := range 2 {
			feedtest.Publish(t, s, feedtest.Synthetic(t, synth.Options{Tools: 120, Seed: 8, Revision: revision}))
		}
		catalog := &interruptedCatalog{Store: s, before: func() { check.Try(publish.Prune(t.Context(), s, 2)).OK(t) }}
		var log bytes.Buffer
		e := graphtest.New(graph.Config{Catalog: catalog, Log: slog.New(slog.NewTextHandler(&log, nil))})
		got := execute(t, e, auth.Developer, `query @asOf(release: 1) {tools(limit: 40) {items {slug verdict}}}`)
		check.True(t, len(got.Errors) == 1 && strings.HasPrefix(got.Errors[0].Message, "Release 1 is not available.") && got.Data == nil, "got %.300s and %v, want no release 1", got.Data, got.Errors)
		check.Lacks(t, log.String(), "level=ERROR", "errors in the log %s", &log)
	})
}

// A server that starts can be read while the history is loaded. What needs the history
// waits for it.
func TestHistoryIsLoadedLast(t *testing.T) {
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		for release := 1; release <= 3; release++ {
			feedtest.Publish(t, s, feedtest.Synthetic(t, synth.Options{Tools: 60, Seed: 3, Revision: release}))
		}
		current := []string{
			`{tools(limit: 200) {items {slug priceHistory {price}}} retiredTools(limit: 200) {items {slug}}}`,
			`{tools(filter: {search: "lanterne"}) {items {slug}} comparisons(limit: 100) {items {slug}} embeddingsSync {items {__typename}}}`,
			`{toolGroups(by: category) {key count} priceChangeCounts {month count}}`,
		}
		past := []string{
			`query @asOf(release: 1) {tools(limit: 200) {items {slug name}}}`,
			`{series(metrics: [count, additions], every: release) {points {value}}}`,
			`{movers(metric: score, from: "2000-01-01") {slug change}}`,
		}
		complete := newExecutor(s)
		for _, release := range []int{1, 3} { // from 3, nothing is new, so that its answer is not that of a new client
			token := decode[struct{ EmbeddingsSync struct{ NextSync string } }](t,
				mustExecute(t, complete, fmt.Sprintf(`query @asOf(release: %d) {embeddingsSync(limit: 100) {nextSync}}`, release))).EmbeddingsSync.NextSync
			past = append(past, fmt.Sprintf(`{embeddingsSync(sync: %q) {items {... on EmbeddingsDocument {slug} ... on EmbeddingsDeletion {slug reason}}}}`, token))
		}
		want := map[string]string{}
		for _, query := range append(current, past...) {
			want[query] = mustExecute(t, complete, query)
		}

		reads, blocked := 0, make(chan struct{})
		unblock := sync.OnceFunc(func() { close(blocked) })
		defer unblock() // also if the test fails
		s.Read.Tool.Intercept(ent.InterceptFunc(func(next ent.Querier) ent.Querier {
			return ent.QuerierFunc(func(ctx context.Context, q ent.Query) (ent.Value, error) {
				if reads++; reads > 1 { // the first statement reads the current tools
					<-blocked
				}
				return next.Query(ctx, q)
			})
		}))
		e := newExecutor(s)
		go e.Follow(t.Context(), func(*ent.Release) bool { return true })
		wait.Until(t, "the newest release is in memory", e.Loaded)
		for _, query := range current {
			expect(t, query, mustExecute(t, e, query), want[query])
		}
		waiting := make(chan string, len(past))
		for _, query := range past {
			ctx, cancel := context.WithDeadline(auth.WithCaller(t.Context(), auth.Caller{Plan: auth.Developer}), time.Time{})
			p := e.Execute(ctx, graph.Request{Query: query}).Problem()
			cancel()
			check.True(t, p != nil && p.Code == problem.Unavailable, "%s: got %v before the history is loaded, want it to be unavailable", query, p) // the caller is not to blame
			go func() { waiting <- query + string(execute(t, e, auth.Developer, query).Data) }()
		}
		for _, query := range slices.Repeat(current, 5) { // while the others wait
			mustExecute(t, e, query)
		}
		select {
		case got := <-waiting:
			t.Fatalf("got %.200s before the history is loaded, want it to wait", got)
		default:
		}
		unblock()
		for range past {
			got := <-waiting
			for _, query := range past {
				if data, ok := strings.CutPrefix(got, query); ok {
					expect(t, query, data, want[query])
				}
			}
		}
		// A token of a release that is not loaded yet is accepted later.
		held := make(chan struct{})
		defer close(held)
		s.Read.Tool.Intercept(ent.InterceptFunc(func(ent.Querier) ent.Querier {
			return ent.QuerierFunc(func(context.Context, ent.Query) (ent.Value, error) { <-held; return nil, context.Canceled })
		}))
		feedtest.Publish(t, s, feedtest.Synthetic(t, synth.Options{Tools: 60, Seed: 3, Revision: 4}))
		got := execute(t, e, auth.Developer, fmt.Sprintf(`{embeddingsSync(sync: %q) {items {__typename}}}`, release.SyncToken{Release: 4}))
		check.Contains(t, fmt.Sprint(got.Errors), "Release 4 is being loaded")
	})
}

// allOfTools selects all stored fields of tools except their reviews.
const allOfTools = `{slug name domain categorySlug category {slug label toolCount avgScore} icp icpCode pricing price priceAmount pricePeriod
	score verifiability obsolescence tagline canonicalUrl avisUrl alternativesUrl updatedAt tier mainstream
	priceHistory {changedAt price pricing previousPrice previousPricing} comparisons {slug title toolA {slug} toolB {slug} winner {name}}}`

// Only tools that a release changed are read again.
func TestUnchangedToolsAreReadOnce(t *testing.T) {
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		var rows atomic.Int64
		s.Read.Tool.Intercept(ent.InterceptFunc(func(next ent.Querier) ent.Querier {
			return ent.QuerierFunc(func(ctx context.Context, q ent.Query) (ent.Value, error) {
				value, err := next.Query(ctx, q)
				if tools, ok := value.([]*ent.Tool); ok {
					rows.Add(int64(len(tools)))
				}
				return value, err
			})
		}))
		e := newExecutor(s)
		var read []int64
		for revision := range 2 {
			feedtest.Publish(t, s, feedtest.Synthetic(t, synth.Options{Tools: 120, Seed: 8, Revision: revision}))
			rows.Store(0)
			check.OK(t, e.Preload(t.Context()))
			mustExecute(t, e, `{tools(limit: 100) {items `+allOfTools+`} retiredTools(limit: 200) {items {slug}}}`)
			read = append(read, rows.Load())
		}
		check.True(t, read[0] >= 120 && read[1] != 0 && read[1] <= 60, "got %v tools read for two releases, want all tools and then at most 60", read)
	})
}

// While the catalog is in memory, operations that read neither reviews nor
// histories need no database.
func TestOperationsWithoutDatabase(t *testing.T) {
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		feedtest.Publish(t, s, demo.Catalog())
		e := newExecutor(s)
		ctx, stop := context.WithCancel(t.Context())
		followed, ended := make(chan struct{}, 10), make(chan struct{})
		go func() {
			defer close(ended)
			e.Follow(ctx, func(*ent.Release) bool { followed <- struct{}{}; return true })
		}()
		defer func() { stop(); <-ended }()
		<-followed
		queries := []string{
			`{tool(slug: "plume") {name category {label} priceHistory {price}}}`,
			`{categories {slug tools {slug name}}}`,
			`{tools(filter: {scoreMin: 8}, sort: price_asc) {meta {total} items {slug comparisons {title winner {name}}}}}`,
			`{toolGroups(by: category) {key count avgScore} scoreHistogram {count}}`,
		}
		var want []string
		for _, query := range queries {
			want = append(want, mustExecute(t, e, query))
		}
		check.OK(t, s.Close())
		for i, query := range queries {
			got := execute(t, e, auth.Developer, query)
			check.Equal(t, len(got.Errors), 0, "%s: %v", query, got.Errors)
			check.Equal(t, string(got.Data), want[i], "%s: %v", query, got.Errors)
		}
		got := execute(t, e, auth.Developer, `{embeddings(slug: "plume") {chunks {text}}}`)
		check.True(t, len(got.Errors) != 0, "review without a database: got %s, want an error", got.Data)
	})
}

// blockedCatalog cannot be loaded in time.
type blockedCatalog struct{ *store.Store }

func (blockedCatalog) Snapshot(ctx context.Context, _ func(*ent.Client, *ent.Release) error) error {
	<-ctx.Done()
	return ctx.Err()
}

// Operations that wait for the first release are not blamed for it.
func TestOperationsBeforeTheFirstLoad(t *testing.T) {
	s := testkit.Open(t, testkit.SQLite(t))
	feedtest.Publish(t, s, demo.Catalog())
	limits := graph.DefaultLimits
	limits.Time = 20 * time.Millisecond
	e := newExecutorWith(blockedCatalog{s}, limits)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		e.Follow(ctx, func(*ent.Release) bool { return true })
	}()
	defer func() { stop(); <-ended }()
	wantRejected(t, execute(t, e, "", `{feed {release}}`), "UNAVAILABLE", "The catalog is temporarily unavailable. Try again in a minute.")
	got := execute(t, e, "", `{__typename}`)
	check.Equal(t, len(got.Errors), 0, "%v for the schema", got.Errors)
}

type planRows interface {
	Next() bool
	Columns() ([]string, error)
	Scan(...any) error
	Close() error
}

// The journal only grows, so all reads must use an index.
func TestJournalReadsUseIndexes(t *testing.T) {
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		for i := range 3 {
			feedtest.Publish(t, s, feedtest.Synthetic(t, synth.Options{Tools: 1500, Seed: 1, Revision: i}))
		}
		if _, err := s.Write.ExecContext(t.Context(), "ANALYZE journal_entries"); err != nil { // as autovacuum does sooner or later
			t.Fatal(err)
		}
		explain, byNumber := "EXPLAIN ", "journal_entries_pkey"
		if s.Describe() != "PostgreSQL" {
			explain, byNumber = "EXPLAIN QUERY PLAN ", "INTEGER PRIMARY KEY"
		}
		newest := check.Try(journal.Newest(t.Context(), s.Read.JournalEntry)).OK(t)
		const published = "SELECT id FROM journal_entries AS published WHERE event = 'catalog.published' AND release_number "
		const release = "AND release_number >= 2 AND id > coalesce((" + published + "< 2 ORDER BY id DESC LIMIT 1), 0) AND id < coalesce((" + published + "> 2 ORDER BY id LIMIT 1), 9223372036854775807) "
		const events = "SELECT * FROM journal_entries WHERE event IS NOT NULL AND release_number <= 3 "
		for statement, index := range map[string]string{
			fmt.Sprintf(events+"AND id > %d ORDER BY id LIMIT 51", newest-700):                        byNumber,
			fmt.Sprintf(events+"AND id < %d ORDER BY id DESC LIMIT 51", newest-700):                   byNumber,
			events + "AND event = 'catalog.published' ORDER BY id DESC LIMIT 1":                       "journal_by_event",
			events + release + "ORDER BY id LIMIT 51":                                                 byNumber,
			events + release + "ORDER BY id DESC LIMIT 51":                                            byNumber,
			events + release + "AND event = 'tool.updated' ORDER BY id DESC LIMIT 51":                 "journal_by_event",
			events + "AND slug = 'a' AND id > 0 ORDER BY id LIMIT 51":                                 "journal_by_slug",
			events + "AND slug = 'a' AND event = 'tool.updated' AND id > 0 ORDER BY id DESC LIMIT 51": "journal_by_slug",
			"SELECT id, place FROM (SELECT id, row_number() OVER (PARTITION BY slug ORDER BY id DESC) AS place FROM journal_entries WHERE slug IN ('a', 'b') AND coalesce(event, '') IN ('tool.created', 'tool.updated') AND release_number <= 3) AS e WHERE place <= 3": "journal_by_slug",
			"SELECT * FROM journal_entries WHERE slug IN ('a', 'b') AND kind IN ('tool.created') ORDER BY id": "journal_by_slug",
		} {
			rows := check.Try(s.Read.QueryContext(t.Context(), explain+statement)).OK(t)
			plan := planOf(t, rows)
			// PostgreSQL may sort the ends of a few releases.
			sorted := strings.Count(plan, "Sort Key: ") > strings.Count(plan, "Sort Key: published") || strings.Contains(plan, "TEMP B-TREE")
			check.Contains(t, plan, index, statement)
			check.True(t, !sorted || index == "journal_by_slug", "%s: got plan\n%s\nwant index %s", statement, plan, index)
		}
	})
}

// planOf returns the text of a plan, which is in the last column of each row.
func planOf(t *testing.T, rows planRows) string {
	t.Helper()
	defer rows.Close()
	columns := check.Try(rows.Columns()).OK(t)
	var plan strings.Builder
	for rows.Next() {
		row := make([]any, len(columns))
		for i := range row {
			row[i] = new(any)
		}
		var text string
		row[len(row)-1] = &text
		check.OK(t, rows.Scan(row...))
		plan.WriteString(text + "\n")
	}
	return plan.String()
}
