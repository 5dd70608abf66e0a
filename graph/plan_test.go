package graph_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	entsql "entgo.io/ent/dialect/sql"

	"palmares/internal/catalog/feed/demo"
	"palmares/internal/catalog/feed/synth"
	"palmares/internal/catalog/journal"
	"palmares/internal/core/store"
	"palmares/internal/dev/testkit"
)

// The tests of long lists share a catalog, because importing it takes most of the
// time.
func TestLongLists(t *testing.T) {
	data := syntheticFeed(t, synth.Options{Tools: 3300, Seed: 3})
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		publish(t, s, data)
		t.Run("orders come from indexes", func(t *testing.T) { ordersComeFromIndexes(t, s) })
		t.Run("deep pages", func(t *testing.T) { deepPages(t, newExecutor(s)) })
		if _, err := s.Write.ExecContext(t.Context(), "ANALYZE tools"); s.Describe() == "PostgreSQL" && err != nil { // as autovacuum does in time
			t.Fatal(err)
		}
		t.Run("lists do not read every tool", func(t *testing.T) { listsDoNotReadEveryTool(t, s) })
		t.Run("cursors lead to their place", func(t *testing.T) { cursorsLeadToTheirPlace(t, s) })
	})
}

// ordersComeFromIndexes checks that no order sorts the table.
func ordersComeFromIndexes(t *testing.T, s *store.Store) {
	explain := "EXPLAIN "
	if s.Describe() != "PostgreSQL" {
		explain = "EXPLAIN QUERY PLAN "
	}
	const tools = "SELECT slug, name FROM tools WHERE retired_at IS NULL "
	for statement, index := range map[string]string{
		tools + "ORDER BY untested, score DESC, slug LIMIT 50":                                                                    "tools_by_score_desc",
		tools + "ORDER BY untested, score, slug LIMIT 50":                                                                         "tools_by_score_asc",
		tools + "ORDER BY name_key, slug LIMIT 50":                                                                                "tools_by_name_asc",
		tools + "ORDER BY name_key DESC, slug LIMIT 50":                                                                           "tools_by_name_desc",
		tools + "ORDER BY updated_at DESC, slug LIMIT 50":                                                                         "tools_by_update_desc",
		tools + "ORDER BY updated_at, slug LIMIT 50":                                                                              "tools_by_update_asc",
		tools + "ORDER BY price_amount DESC, slug LIMIT 50":                                                                       "tools_by_price_desc",
		tools + "ORDER BY price_amount, slug LIMIT 50":                                                                            "tools_by_price_asc",
		tools + "AND category_slug = 'code' ORDER BY untested, score DESC, slug LIMIT 50":                                         "tools_by_category_score",
		tools + "AND category_slug = 'code' ORDER BY name_key, slug LIMIT 50":                                                     "tools_by_category_name",
		tools + "AND untested = false AND score >= 8 ORDER BY untested, score DESC, slug LIMIT 50":                                "tools_by_score_desc",
		"SELECT slug FROM tools WHERE retired_at IS NOT NULL ORDER BY retired_at DESC, slug LIMIT 50":                             "tools_by_retirement",
		"SELECT slug FROM tools WHERE retired_at IS NOT NULL AND retired_reason = 'pivot' ORDER BY retired_at DESC, slug LIMIT 5": "tools_by_retirement_reason",
		"SELECT slug FROM tools WHERE retired_at IS NOT NULL AND category_slug = 'code' ORDER BY retired_at DESC, slug LIMIT 5":   "tools_by_retirement_category",
		"SELECT slug FROM comparisons WHERE published ORDER BY updated_at DESC, slug LIMIT 50":                                    "comparisons_by_update",
	} {
		rows, err := s.Read.QueryContext(t.Context(), explain+statement)
		if err != nil {
			t.Fatal(err)
		}
		plan := planOf(t, rows)
		if !strings.Contains(plan, index) {
			t.Errorf("%s: got plan\n%s\nwant index %s", statement, plan, index)
		}
	}
}

type planRows interface {
	Next() bool
	Columns() ([]string, error)
	Scan(...any) error
	Close() error
}

// The journal only grows, so all reads of it use an index.
func TestTheJournalIsReadFromIndexes(t *testing.T) {
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		for i := range 3 {
			publish(t, s, syntheticFeed(t, synth.Options{Tools: 1500, Seed: 1, Revision: i}))
		}
		if _, err := s.Write.ExecContext(t.Context(), "ANALYZE journal_entries"); err != nil { // as autovacuum does in time
			t.Fatal(err)
		}
		explain, byNumber := "EXPLAIN ", "journal_entries_pkey"
		if s.Describe() != "PostgreSQL" {
			explain, byNumber = "EXPLAIN QUERY PLAN ", "INTEGER PRIMARY KEY"
		}
		newest, err := journal.Newest(t.Context(), s.Read.JournalEntry)
		if err != nil {
			t.Fatal(err)
		}
		const events = "SELECT * FROM journal_entries WHERE event IS NOT NULL AND release_number <= 3 "
		for statement, index := range map[string]string{
			fmt.Sprintf(events+"AND id > %d ORDER BY id LIMIT 51", newest-700):                                byNumber,
			fmt.Sprintf(events+"AND id < %d ORDER BY id DESC LIMIT 51", newest-700):                           byNumber,
			events + "AND event = 'catalog.published' ORDER BY id DESC LIMIT 1":                               "journal_by_event",
			"SELECT * FROM journal_entries WHERE slug IN ('a', 'b') AND kind IN ('tool.created') ORDER BY id": "journal_by_slug",
		} {
			rows, err := s.Read.QueryContext(t.Context(), explain+statement)
			if err != nil {
				t.Fatal(err)
			}
			plan := planOf(t, rows)
			sorted := strings.Contains(plan, "Sort") || strings.Contains(plan, "TEMP B-TREE")
			if !strings.Contains(plan, index) || sorted && index != "journal_by_slug" {
				t.Errorf("%s: got plan\n%s\nwant index %s", statement, plan, index)
			}
		}
	})
}

// planOf returns the text of a plan: the last column of each row.
func planOf(t *testing.T, rows planRows) string {
	t.Helper()
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		t.Fatal(err)
	}
	var plan strings.Builder
	for rows.Next() {
		row := make([]any, len(columns))
		for i := range row {
			row[i] = new(any)
		}
		var text string
		row[len(row)-1] = &text
		if err := rows.Scan(row...); err != nil {
			t.Fatal(err)
		}
		plan.WriteString(text + "\n")
	}
	return plan.String()
}

// recordingStore records the last statement that reads tools.
type recordingStore struct {
	*store.Store
	statement string
	args      []any
}

func (r *recordingStore) Select(ctx context.Context, statement string, args ...any) (entsql.ColumnScanner, error) {
	r.statement, r.args = statement, args
	return r.Store.Select(ctx, statement, args...)
}

// plan returns the database's plan for the last statement of a query.
func (r *recordingStore) plan(t *testing.T, query string) string {
	t.Helper()
	mustExecute(t, newExecutor(r), query)
	explain := "EXPLAIN "
	if r.Describe() != "PostgreSQL" {
		explain = "EXPLAIN QUERY PLAN "
	}
	rows, err := r.Read.QueryContext(t.Context(), explain+r.statement, r.args...)
	if err != nil {
		t.Fatalf("got %v for %s, want a plan", err, r.statement)
	}
	return planOf(t, rows)
}

// listsDoNotReadEveryTool checks that lists of a category and pages in the middle
// of a list come from an index.
func listsDoNotReadEveryTool(t *testing.T, s *store.Store) {
	r := &recordingStore{Store: s}
	for sort, index := range map[string]string{
		"score_desc": "score", "score_asc": "score_asc", "name_asc": "name", "name_desc": "name_desc",
		"updated_asc": "update_asc", "updated_desc": "update_desc", "price_asc": "price_asc", "price_desc": "price_desc",
	} {
		plan := r.plan(t, fmt.Sprintf("{categories {tools(limit: 1, sort: %s) {slug}}}", sort))
		for _, unwanted := range []string{"Seq Scan on tools", "WindowAgg", "SCAN f", "SCAN t", "CO-ROUTINE"} {
			if strings.Contains(plan, unwanted) {
				t.Errorf("%s: got %s in\n%s", sort, unwanted, plan)
			}
		}
		if !strings.Contains(plan, "tools_by_category_"+index) {
			t.Errorf("%s: got plan\n%s\nwant the index of the category's order", sort, plan)
		}
		// From here on the list is read backward if its other end is nearer.
		plan = r.plan(t, fmt.Sprintf("{tools(page: 150, limit: 10, sort: %s) {items {name}}}", sort))
		if strings.Contains(plan, "Seq Scan on tools") || strings.Contains(plan, "SCAN tools\n") || !strings.Contains(plan, "tools_by_") {
			t.Errorf("%s: got plan\n%s\nwant an index of the order", sort, plan)
		}
	}
}

// cursorsLeadToTheirPlace checks that a cursor in an order by score, which has
// tools with and without one, skips no rows.
func cursorsLeadToTheirPlace(t *testing.T, s *store.Store) {
	r := &recordingStore{Store: s}
	for list, want := range map[string][]string{
		"sort: score_desc, first: 5, after":   {"untested=? AND score<?", "(score <= "},
		"sort: score_asc, last: 5, before":    {"untested=? AND score<?", "(score <= "},
		"sort: score_asc, first: 5, after":    {"untested=? AND score>?", "(score >= "},
		"sort: updated_desc, first: 5, after": {"updated_at<?", "(updated_at <= "},
	} {
		sort, _, _ := strings.Cut(list, ",")
		cursor := decode[struct {
			ToolConnection struct{ PageInfo struct{ EndCursor string } }
		}](t, mustExecute(t, newExecutor(s), "{toolConnection("+sort+", first: 200) {pageInfo {endCursor}}}")).ToolConnection.PageInfo.EndCursor
		plan := r.plan(t, fmt.Sprintf("{toolConnection(%s: %q) {nodes {slug}}}", list, cursor))
		if !strings.Contains(plan, want[0]) && !strings.Contains(plan, want[1]) || !strings.Contains(plan, "tools_by_") {
			t.Errorf("%s: got plan\n%s\nwant a search in an index", list, plan)
		}
	}
}

// SQLite scans the table for conditions that no index covers, instead of walking
// another index.
func TestFiltersScanTheTable(t *testing.T) {
	s := testkit.Open(t, testkit.SQLite(t))
	publish(t, s, demo.Catalog)
	r := &recordingStore{Store: s}
	for arguments, want := range map[string]string{
		"filter: {verifiabilityMin: 1}":                               "SCAN tools\n",
		`filter: {categories: ["code", "voix"]}, sort: name_asc`:      "SCAN tools\n",
		`filter: {categories: ["code"]}, sort: updated_asc`:           "tools_by_category_update_asc",
		"filter: {scoreMin: 5}":                                       "tools_by_score_desc (untested=? AND score>?)",
		`filter: {updatedSince: "2026-01-01"}, sort: updated_asc`:     "tools_by_update_asc (updated_at>?)",
		`filter: {updatedSince: "2020-01-01"}, sort: score_asc`:       "SCAN tools\n",
		`filter: {pricings: [gratuit], priceMax: 1}, sort: price_asc`: "SCAN tools\n",
	} {
		for _, list := range []string{"tools(%s) {items {slug}}", "toolConnection(%s) {nodes {slug}}"} {
			if plan := r.plan(t, "{"+fmt.Sprintf(list, arguments)+"}"); !strings.Contains(plan, want) {
				t.Errorf("%s: got\n%swant %s", fmt.Sprintf(list, arguments), plan, want)
			}
		}
	}
}
