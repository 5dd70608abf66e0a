package store_test

import (
	"fmt"
	"testing"

	"palmares/ent/journalentry"
	"palmares/internal/catalog/journal"
	"palmares/internal/core/store"
	"palmares/internal/dev/testkit"
)

// Migration 5 derives events from older journal entries. Migration 21 gives updates of
// retired tools a type of their own.
func TestMigrationToEvents(t *testing.T) {
	const shown, hidden = `{"slug":"duel","title":"Lequel ?","tool_a":"a","tool_b":"v","winner":"a","winner_note":"Net.","updated_at":"2026-10-01","canonical_url":"https://palmares.example/duel"}`,
		`{"slug":"duel","title":"Lequel ?","tool_a":"a","tool_b":"gone","winner":"a","winner_note":"Net.","published":false,"updated_at":"2026-10-01","canonical_url":"https://palmares.example/duel"}`
	const tool, retired = `{"slug":"a","name":"A","category":"%s","price":"20 €/mois","score":7.5}`, `{"slug":"a","name":"A","category":"voix","reason":"mort","retired_at":"2026-11-02","note":"Fermé."}`
	code, voix := fmt.Sprintf(tool, "code"), fmt.Sprintf(tool, "voix")
	entries := []struct{ kind, slug, before, after, want string }{
		{"category.created", "code", "", `{"slug":"code","label":"Code"}`, "none //"},
		{"category.updated", "code", `{"slug":"code","label":"Code"}`, `{"slug":"code","label":"Codes"}`, "none //"},
		{"category.removed", "code", `{"slug":"code","label":"Code"}`, "", "none //"},
		{"tool.created", "a", "", code, "tool.created /code/"},
		{"tool.updated", "a", code, voix, "tool.updated /voix/"},
		{"tool.retired", "a", code, retired, "tool.retired /voix/"},
		{"tool.updated", "a", retired, retired, "retired.updated /voix/"}, // since migration 21
		{"tool.removed", "gone", code, "", "tool.removed /code/"},
		{"price.changed", "a", `{"pricing":"payant","price":"20 €/mois"}`, `{"pricing":"payant","price":"9 €/mois","changed_at":"2026-11-02"}`, "price.changed /code/"},
		{"price.changed", "gone", `{"pricing":"payant","price":"20 €/mois"}`, `{"pricing":"payant","price":"9 €/mois","changed_at":"2026-11-02"}`, "price.changed //"},
		{"price.backfilled", "a", `{"pricing":"payant","price":"20 €/mois"}`, `{"pricing":"payant","price":"9 €/mois","changed_at":"2026-11-02"}`, "none //"},
		{"embeddings.changed", "v", "", `{"hash":"sha256-0"}`, "embeddings.changed /voix/"},
		{"comparatif.created", "duel", "", shown, "comparatif.published /code/voix"},
		{"comparatif.created", "duel", "", hidden, "none /code/"},
		{"comparatif.updated", "duel", shown, shown, "comparatif.updated /code/voix"},
		{"comparatif.updated", "duel", hidden, shown, "comparatif.published /code/voix"},
		{"comparatif.updated", "duel", shown, hidden, "comparatif.removed /code/"},
		{"comparatif.updated", "duel", hidden, hidden, "none /code/"},
		{"comparatif.removed", "duel", shown, "", "comparatif.removed /code/voix"},
		{"comparatif.removed", "duel", hidden, "", "none /code/"},
	}
	testkit.EachNew(t, func(t *testing.T, cfg store.Config) {
		s := open(t, cfg)
		if err := s.MigrateTo(t.Context(), 4); err != nil {
			t.Fatal(err)
		}
		run := func(statement string, args ...any) {
			t.Helper()
			if _, err := s.Write.ExecContext(t.Context(), statement, args...); err != nil {
				t.Fatal(err)
			}
		}
		run(`INSERT INTO releases (number, feed_date, imported_at, tools_total, tools_tested, tools_retired, comparisons_total) VALUES (1, '2026-11-01', '2026-11-01 12:00:00+00:00', 2, 0, 0, 0)`)
		for slug, tool := range map[string]string{"code": "a", "voix": "v"} {
			run(`INSERT INTO categories (slug, label, fingerprint, tool_count) VALUES ($1, $1, '', 0)`, slug)
			run(`INSERT INTO tools (slug, name, name_key, untested, domain, fingerprint, category_slug, mainstream, in_embeddings) VALUES ($1, $1, $1, true, 'x.example', '', $2, false, false)`, tool, slug)
		}
		for _, e := range entries {
			run(`INSERT INTO journal_entries (kind, slug, "before", "after", release_number) VALUES ($1, $2, $3, $4, 1)`, e.kind, e.slug, orNull(e.before), orNull(e.after))
		}
		if done, err := s.Migrate(t.Context()); err != nil || len(done) == 0 || done[0].Version != 5 {
			t.Fatalf("got migrations %v and %v, want migration 5 first", done, err)
		}
		rows := s.Read.JournalEntry.Query().Order(journalentry.ByID()).AllX(t.Context())
		if len(rows) != len(entries) {
			t.Fatalf("got %d entries, want %d", len(rows), len(entries))
		}
		var want []string
		for i, row := range rows {
			event := "none"
			if row.Event != nil {
				event = *row.Event
				want = append(want, event+" "+row.Slug)
			}
			e := entries[i]
			if got := event + " /" + row.Category + "/" + row.OtherCategory; got != e.want {
				t.Errorf("%d, %s of %s: got %s, want %s", i, e.kind, e.slug, got, e.want)
			}
			kind := e.kind
			if event == "retired.updated" {
				kind = event
			}
			if row.Kind != kind || text(row.Before) != e.before || text(row.After) != e.after {
				t.Errorf("%d: got %v, want the content unchanged", i, row)
			}
		}
		events, err := journal.Read(t.Context(), s.Read.JournalEntry, journal.Query{Limit: 100})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, event := range events {
			got = append(got, event.Type+" "+event.Slug)
			if event.At.IsZero() || len(event.JSON()) == 0 {
				t.Errorf("got %+v, want a time and content", event)
			}
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("got %v, want %v", got, want)
		}
		run(`INSERT INTO journal_entries (kind, slug, category, other_category, release_number) VALUES ('tool.created', 'new', '', '', 1)`)
		if newest, err := journal.Newest(t.Context(), s.Read.JournalEntry); err != nil || newest <= rows[len(rows)-1].ID {
			t.Errorf("got newest number %d and %v, want more than %d", newest, err, rows[len(rows)-1].ID)
		}
	})
}

func orNull(value string) any {
	if value == "" {
		return nil
	}
	return value
}

func text(value *string) string {
	if value == nil {
		return ""
	}
	return *value
}
