package graph_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"palmares/auth"
	"palmares/ent"
	"palmares/graph"
	"palmares/internal/catalog/feed/demo"
	"palmares/internal/catalog/feed/feedtest"
	"palmares/internal/catalog/feed/synth"
	"palmares/internal/catalog/journal"
	"palmares/internal/core/store"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
)

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
