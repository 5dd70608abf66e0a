package store_test

import (
	"strings"
	"testing"

	"palmares/internal/catalog/search"
	"palmares/internal/core/store"
	"palmares/internal/dev/testkit"
)

// Migration 12 replaces the column that searches scanned with an index, which
// the program fills, so that no new import is needed.
func TestMigrationToSearchIndex(t *testing.T) {
	testkit.EachNew(t, func(t *testing.T, cfg store.Config) {
		s := open(t, cfg)
		if err := s.MigrateTo(t.Context(), 11); err != nil {
			t.Fatal(err)
		}
		for _, statement := range []string{
			`INSERT INTO releases (number, feed_date, imported_at, tools_total, tools_tested, tools_retired, comparisons_total)
				VALUES (1, '2026-11-01', '2026-11-01 00:00:00', 1, 0, 1, 0)`,
			`INSERT INTO categories (slug, label, fingerprint, tool_count) VALUES ('code', 'Code', '', 2)`,
			`INSERT INTO tools (slug, name, name_key, untested, domain, tagline, search_text, fingerprint, category_slug, mainstream, in_embeddings)
				VALUES ('plume', 'Plume', 'plume', true, 'plume.example', 'Un agent.', 'plume un agent.', '', 'code', false, false)`,
			`INSERT INTO tools (slug, name, name_key, untested, retired_at, retired_reason, fingerprint, category_slug, mainstream, in_embeddings)
				VALUES ('ancien', 'Ancien agent', 'ancien agent', true, '2025-01-01', 'mort', '', 'code', false, false)`,
			`INSERT INTO sections (tool_slug, position, section, text) VALUES ('plume', 0, 'verdict', 'Rédige vite.')`,
		} {
			if _, err := s.Write.ExecContext(t.Context(), statement); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := s.Migrate(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := search.Fill(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		if n := s.Read.Section.Query().CountX(t.Context()); n != 1 {
			t.Errorf("got %d sections, want 1", n)
		}
		index, err := search.Load(t.Context(), s.Read, s.Dialect(), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for query, want := range map[string]int{"agent code": 1, "redige": 1, "ancien": 0} {
			if found, err := index.Find(1, strings.Fields(query)); err != nil || len(found) != want {
				t.Errorf("%q: got %v and %v, want %d tools", query, found, err, want)
			}
		}
		if len(index.Texts) != 1 || index.Texts[0].Slug != "plume" {
			t.Errorf("got %v in the index, want plume", index.Texts)
		}
	})
}
