package timetravel_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"runtime"
	"testing"

	"palmares/graph"
	"palmares/graph/graphtest"
	"palmares/internal/catalog/feed/feedtest"
	"palmares/internal/catalog/feed/synth"
	"palmares/internal/core/cache"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
)

// heap returns the bytes in use after a garbage collection.
func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// Reading many releases does not exceed the memory budget, no matter what is read:
// orders, search indexes, price changes and entities count too.
func TestMemoryOfManyReleases(t *testing.T) {
	const budget = 4 << 20
	releases := testkit.Rounds(12, 24)
	db := testkit.Open(t, testkit.SQLite(t))
	for revision := range releases {
		var buf bytes.Buffer
		check.OK(t, synth.Write(t.Context(), &buf, synth.Options{Tools: 600, Seed: 3, Revision: revision}))
		feedtest.Publish(t, db, buf.Bytes())
	}
	log := slog.New(slog.DiscardHandler)
	s := &server{responses: cache.New(budget, nil, log)}
	s.executor = graphtest.New(graph.Config{Catalog: db, Log: log, Cache: s.responses})
	read := func(asOf string) {
		t.Helper()
		for page := 1; page <= 6; page++ {
			result(t, s, fmt.Sprintf(`query %s {tools(page: %d, limit: 100) {items {slug name tagline priceHistory {price}}}}`, asOf, page), nil)
		}
		for _, order := range []string{"score_asc", "name_asc", "name_desc", "updated_desc", "updated_asc", "price_asc", "price_desc"} {
			result(t, s, fmt.Sprintf(`query %s {tools(sort: %s, limit: 1) {items {slug}}}`, asOf, order), nil)
		}
		result(t, s, fmt.Sprintf(`query %s {tools(filter: {search: "lanterne"}) {meta {total}} priceChangeCounts {count} retiredTools {meta {total}}}`, asOf), nil)
	}
	read("")
	before := heap()
	for range 2 {
		for release := 1; release < releases; release++ {
			read(fmt.Sprintf("@asOf(release: %d)", release))
		}
	}
	grown := heap() - before
	t.Logf("%d bytes with a budget of %d, %d of which the cache counts in %d items", grown, budget, s.responses.Weight(), s.responses.Entries())
	limit := int64(budget * 11 / 10)
	check.True(t, grown <= limit, "got %d bytes for %d releases, want at most %d", grown, releases, limit)
	runtime.KeepAlive(s)
}
