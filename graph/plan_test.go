package graph_test

import (
	"fmt"
	"strings"
	"testing"

	"palmares/internal/catalog/feed/synth"
	"palmares/internal/catalog/journal"
	"palmares/internal/core/store"
	"palmares/internal/dev/testkit"
)

// What lists do once they are long, over one catalog: to publish it is what
// takes the time.
func TestLongLists(t *testing.T) {
	data := synthetic(t, synth.Options{Tools: 3300, Seed: 3})
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		publish(t, s, data)
		t.Run("orders come from indexes", func(t *testing.T) { ordersComeFromIndexes(t, s) })
		t.Run("deep pages", func(t *testing.T) { deepPages(t, newExecutor(s)) })
		if _, err := s.Write.ExecContext(t.Context(), "ANALYZE tools"); s.Describe() == "PostgreSQL" && err != nil { // as it does by itself, in time
			t.Fatal(err)
		}
		t.Run("lists do not read every tool", func(t *testing.T) { listsDoNotReadEveryTool(t, s) })
		t.Run("cursors lead to their place", func(t *testing.T) { cursorsLeadToTheirPlace(t, s) })
	})
}

// Every order that is promised comes from an index, without sorting the table.
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
			t.Errorf("%s\n%s", statement, plan)
		}
	}
}

type planRows interface {
	Next() bool
	Columns() ([]string, error)
	Scan(...any) error
	Close() error
}

// The journal only grows: what is read of it comes from an index, in order.
func TestTheJournalIsReadFromIndexes(t *testing.T) {
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		for i := range 3 {
			publish(t, s, synthetic(t, synth.Options{Tools: 1500, Seed: 1, Revision: i}))
		}
		if _, err := s.Write.ExecContext(t.Context(), "ANALYZE journal_entries"); err != nil { // as PostgreSQL does by itself, in time
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
				t.Errorf("%s\n%s", statement, plan)
			}
		}
	})
}

// planOf is the text of a plan: the last column of each row.
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
