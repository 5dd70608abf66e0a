package search_test

import (
	"bytes"
	"database/sql"
	"maps"
	"strings"
	"testing"

	"entgo.io/ent/dialect"

	"palmares/internal/catalog/feed"
	"palmares/internal/catalog/feed/feedtest"
	"palmares/internal/catalog/feed/synth"
	"palmares/internal/catalog/publish"
	"palmares/internal/catalog/search"
	"palmares/internal/core/store"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
)

// A large catalog whose history was pruned has the same vocabulary as one
// without a history.
func TestPruneInBatches(t *testing.T) {
	testkit.Each(t, func(t *testing.T, cfg store.Config) {
		synthetic := func(seed uint64) []byte { return feedtest.Synthetic(t, synth.Options{Tools: 550, Seed: seed}) }
		s := testkit.Open(t, cfg)
		feedtest.Publish(t, s, synthetic(2))
		want := storedWords(t, s)
		feedtest.Publish(t, s, synthetic(3))
		feedtest.Publish(t, s, synthetic(2))
		check.MustTrue(t, !maps.Equal(storedWords(t, s), want), "got the same vocabulary, want the words of three releases")
		check.Try(publish.Prune(t.Context(), s, 3)).OK(t)
		got := storedWords(t, s)
		check.True(t, maps.Equal(got, want), "got a vocabulary of %d words, want %d words with the same counts", len(got), len(want))
	})
}

// storedWords returns how many rows have each word.
func storedWords(t *testing.T, s *store.Store) map[string]int {
	t.Helper()
	column := map[string]string{dialect.SQLite: "words", dialect.Postgres: "array_to_string(tsvector_to_array(words), ' ')"}[s.Dialect()]
	words := map[string]int{}
	err := store.ScanRows(t.Context(), s.Write, func(rows *sql.Rows) error {
		var text string
		err := rows.Scan(&text)
		for word := range strings.FieldsSeq(text) {
			words[word]++
		}
		return err
	}, "SELECT "+column+" FROM tool_search")
	check.OK(t, err)
	return words
}

func exec(t *testing.T, s *store.Store, statement string) {
	t.Helper()
	check.Try(s.Write.ExecContext(t.Context(), statement)).OK(t)
}

func TestImportWritesOnlyChangedTools(t *testing.T) {
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		tools := func(name string) []any {
			return []any{named("a", "Galet", "Un.", "Un."), named("b", name, "Deux.", "Deux.")}
		}
		feedtest.Publish(t, s, feedtest.Catalog("2026-11-01", tools("Orme")...))
		// The entry loses this word only if it is written again.
		exec(t, s, `UPDATE tool_search SET words = 'marque' WHERE slug = 'a'`)
		feedtest.Publish(t, s, feedtest.Catalog("2026-11-02", tools("Orme")...))
		feedtest.Publish(t, s, feedtest.Catalog("2026-11-03", tools("Verger")...))
		check.Slices(t, find(t, s, "marque"), []string{"a"}, "unchanged tool: want a")
		check.Slices(t, find(t, s, "verger"), []string{"b"}, "changed tool: want b")
	})
}

// The index is empty after a migration, and filled at startup or by the next
// import.
func TestFill(t *testing.T) {
	for name, refill := range map[string]func(*testing.T, *store.Store){
		"at startup": func(t *testing.T, s *store.Store) {
			for range 2 {
				check.OK(t, search.Fill(t.Context(), s))
			}
		},
		"by an import": func(t *testing.T, s *store.Store) {
			feedtest.Publish(t, s, bytes.Replace(catalog(), []byte("2026-11-01"), []byte("2026-11-02"), 1))
		},
	} {
		t.Run(name, func(t *testing.T) {
			testkit.EachStore(t, func(t *testing.T, s *store.Store) {
				feedtest.Publish(t, s, catalog())
				want := storedWords(t, s)
				exec(t, s, `DELETE FROM tool_search`)
				got := find(t, s, "agent")
				check.MustTrue(t, got == nil, "empty index: got %q, want none", got)
				refill(t, s)
				check.Slices(t, find(t, s, "agent"), []string{"ecritoire", "plume"}, "want ecritoire and plume")
				if got := storedWords(t, s); !maps.Equal(got, want) {
					t.Errorf("vocabulary: got %v, want %v", got, want)
				}
			})
		})
	}
}

func TestDryRunIndexesNothing(t *testing.T) {
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		check.Try(publish.Import(t.Context(), s, feed.NewLines(bytes.NewReader(catalog())), publish.Options{DryRun: true})).OK(t)
		check.Equal(t, len(storedWords(t, s)), 0, "want no words")
	})
}
