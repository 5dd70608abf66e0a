package store_test

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"palmares/internal/catalog/feed"
	"palmares/internal/catalog/feed/feedtest"
	"palmares/internal/catalog/publish"
	"palmares/internal/catalog/record"
	"palmares/internal/core/store"
	"palmares/internal/dev/testkit"
	"palmares/internal/dev/testkit/blackbox"
	"palmares/internal/dev/testkit/wait"
)

// Migration 14 starts the history at the current release, because earlier ones
// were not stored.
func TestMigrationToHistory(t *testing.T) {
	testkit.EachNew(t, func(t *testing.T, cfg store.Config) {
		old := open(t, cfg)
		testkit.Check(t, old.MigrateTo(t.Context(), 13))
		for _, statement := range []string{
			`INSERT INTO releases (number, feed_date, imported_at, tools_total, tools_tested, tools_retired, comparisons_total)
				VALUES (1, '2026-10-01', '2026-10-01 00:00:00+00:00', 1, 0, 0, 0), (2, '2026-11-01', '2026-11-01 00:00:00+00:00', 2, 0, 1, 1)`,
			`INSERT INTO categories (slug, label, fingerprint, tool_count) VALUES ('code', 'Code', '', 3)`,
			`INSERT INTO tools (slug, name, name_key, untested, domain, tagline, fingerprint, category_slug, mainstream, in_embeddings, pricing, price)
				VALUES ('plume', 'Plume', 'plume', true, 'plume.example', 'Un agent.', '', 'code', false, false, 'payant', '5 €/mois'),
					('encre', 'Encre', 'encre', true, 'encre.example', 'Un outil.', '', 'code', false, false, 'gratuit', '0 €')`,
			`INSERT INTO tools (slug, name, name_key, untested, retired_at, retired_reason, retired_note, fingerprint, category_slug, mainstream, in_embeddings)
				VALUES ('ancien', 'Ancien', 'ancien', true, '2025-01-01', 'mort', 'Fermé.', '', 'code', false, false)`,
			`INSERT INTO sections (tool_slug, position, section, text) VALUES ('plume', 0, 'verdict', 'Rédige vite.')`,
			`INSERT INTO price_changes (tool_slug, changed_at, pricing, price, previous_pricing, previous_price, digest)
				VALUES ('plume', '2026-11-01', 'payant', '5 €/mois', 'gratuit', '0 €', 'x')`,
			`INSERT INTO comparisons (slug, title, tool_a_slug, tool_b_slug, winner_slug, winner_note, published, updated_at, canonical_url, fingerprint)
				VALUES ('encre-vs-plume', 'Encre ou Plume ?', 'encre', 'plume', 'plume', 'Net.', true, '2026-11-01', 'https://palmares.example/', '')`,
			`INSERT INTO tool_search (id, slug, words) VALUES (1, 'plume', 'agent plume')`,
			`INSERT INTO search_words (word, tools) VALUES ('agent', 1), ('plume', 1)`,
		} {
			if _, err := old.Write.ExecContext(t.Context(), statement); err != nil {
				t.Fatalf("%s: got %v, want no error", statement, err)
			}
		}
		testkit.Check(t, old.Close())

		s := testkit.Open(t, cfg)
		if newest, err := s.CurrentRelease(t.Context()); err != nil || newest.ID != 2 || newest.HistoryFrom != 2 {
			t.Fatalf("got %v and %v, want release 2 with a history from 2", newest, err)
		}
		server := blackbox.Serve(t, cfg)
		get := func(path string) (int, string) {
			response := server.Call(t, http.MethodGet, path, "")
			return response.StatusCode, blackbox.ReadAll(t, response.Body)
		}
		const first = "Release 1 is not available. Available releases: 2 (2026-11-01) to 2 (2026-11-01)."
		if code, body := get("/api/v1/stats?as_of=1"); code != 404 || !strings.Contains(body, first) {
			t.Errorf("release 1: got %d %s, want 404 and %q", code, body, first)
		}
		if err := publish.Export(t.Context(), s, io.Discard, 1); !errors.Is(err, store.ErrNoRelease) || !strings.HasSuffix(err.Error(), "no such release: 1 (only release 2 can be read)") {
			t.Errorf("export of release 1: got %v, want no release", err)
		}
		paths := []string{"/api/v1/tools", "/api/v1/tools/plume", "/api/v1/tools?search=agent", "/api/v1/pricing/plume", "/api/v1/comparatifs", "/api/v1/cimetiere", "/api/v1/categories", "/api/v1/stats"}
		bodies := map[string]string{}
		for _, path := range paths {
			code := 0
			if code, bodies[path] = get(path); code != 200 {
				t.Errorf("%s: got %d %s, want 200", path, code, bodies[path])
			}
		}
		if !strings.Contains(bodies["/api/v1/tools?search=agent"], "plume") || !strings.Contains(bodies["/api/v1/comparatifs"], "Encre ou Plume ?") {
			t.Errorf("got %v, want the tool and the comparison", bodies)
		}
		var export bytes.Buffer
		testkit.Check(t, publish.Export(t.Context(), s, &export, 2))
		wantUnchanged := func(when string) {
			t.Helper()
			for _, path := range paths {
				asOf := path + "?as_of=2"
				if strings.Contains(path, "?") {
					asOf = path + "&as_of=2"
				}
				if code, body := get(asOf); code != 200 || body != bodies[path] {
					t.Errorf("%s, %s: got %d %s, want %s", asOf, when, code, body, bodies[path])
				}
			}
		}
		wantUnchanged("while it is the newest")

		next := feedtest.Catalog("2026-11-20", feedtest.Tool("plume", func(t *record.Tool) { t.Name = "Grande Plume" }))
		if _, err := publish.Import(t.Context(), s, feed.NewLines(bytes.NewReader(next)), publish.Options{Force: true}); err != nil {
			t.Fatal(err)
		}
		wait.Until(t, "release 3 is served", func() bool {
			_, body := server.Get(t, "/readyz")
			return body["release"] == 3.0
		})
		if _, body := get("/api/v1/tools/plume"); !strings.Contains(body, "Grande Plume") {
			t.Errorf("release 3: got %s, want the new name", body)
		}
		wantUnchanged("after the next import")
		var again bytes.Buffer
		if testkit.Check(t, publish.Export(t.Context(), s, &again, 2)); again.String() != export.String() {
			t.Errorf("export of release 2: got\n%s\nwant\n%s", again.String(), export.String())
		}
		if code, body := get("/api/v1/stats?as_of=1"); code != 404 || !strings.Contains(body, "Available releases: 2 (2026-11-01) to 3 (2026-11-20).") {
			t.Errorf("release 1: got %d %s, want 404 with the range", code, body)
		}
	})
}
