package journal_test

import (
	"fmt"
	"testing"

	"palmares/internal/catalog/feed/feedtest"
	"palmares/internal/catalog/journal"
	"palmares/internal/core/store"
	"palmares/internal/dev/testkit"
)

// The journal can be read for more tools than a statement may have parameters.
func TestJournalOfManyTools(t *testing.T) {
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		feedtest.Publish(t, s, feedtest.Catalog("2026-11-01", feedtest.Tool("a"), feedtest.Tool("z")))
		slugs := []string{"a"}
		for i := range 70_000 {
			slugs = append(slugs, fmt.Sprint("unknown-", i))
		}
		tools := journal.Tools{DB: s.Read, Dialect: s.Dialect(), Slugs: append(slugs, "z"), UpTo: 1}
		numbers, _, err := tools.Events(t.Context(), journal.ToolQuery{Types: journal.ToolEvents, Limit: 5})
		if err != nil || len(numbers["a"]) != 1 || len(numbers["z"]) != 1 {
			t.Errorf("got events %v and %v, want one of each tool", numbers, err)
		}
		if versions, err := tools.Versions(t.Context(), 5, false); err != nil || len(versions) != 2 {
			t.Errorf("got %d versions and %v, want 2", len(versions), err)
		}
		if first, err := tools.FirstReleases(t.Context()); err != nil || len(first) != 2 || first["z"] != 1 {
			t.Errorf("got first releases %v and %v, want 1 for both tools", first, err)
		}
		if changes, err := tools.ScoreChanges(t.Context()); err != nil || len(changes) != 2 {
			t.Errorf("got score changes %v and %v, want 2", changes, err)
		}
	})
}
