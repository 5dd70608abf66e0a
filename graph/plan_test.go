package graph_test

import (
	"fmt"
	"strings"
	"testing"

	"palmares/internal/catalog/feed/feedtest"
	"palmares/internal/catalog/feed/synth"
	"palmares/internal/catalog/journal"
	"palmares/internal/core/store"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
)

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
			feedtest.Publish(t, s, syntheticFeed(t, synth.Options{Tools: 1500, Seed: 1, Revision: i}))
		}
		if _, err := s.Write.ExecContext(t.Context(), "ANALYZE journal_entries"); err != nil { // as autovacuum does sooner or later
			t.Fatal(err)
		}
		explain, byNumber := "EXPLAIN ", "journal_entries_pkey"
		if s.Describe() != "PostgreSQL" {
			explain, byNumber = "EXPLAIN QUERY PLAN ", "INTEGER PRIMARY KEY"
		}
		newest, err := journal.Newest(t.Context(), s.Read.JournalEntry)
		check.OK(t, err)
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
			rows, err := s.Read.QueryContext(t.Context(), explain+statement)
			check.OK(t, err)
			plan := planOf(t, rows)
			// PostgreSQL may sort the ends of a few releases.
			sorted := strings.Count(plan, "Sort Key: ") > strings.Count(plan, "Sort Key: published") || strings.Contains(plan, "TEMP B-TREE")
			if !strings.Contains(plan, index) || sorted && index != "journal_by_slug" {
				t.Errorf("%s: got plan\n%s\nwant index %s", statement, plan, index)
			}
		}
	})
}

// planOf returns the text of a plan, which is in the last column of each row.
func planOf(t *testing.T, rows planRows) string {
	t.Helper()
	defer rows.Close()
	columns, err := rows.Columns()
	check.OK(t, err)
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
