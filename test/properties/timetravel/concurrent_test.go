package timetravel_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"palmares/graph"
	"palmares/graph/graphtest"
	"palmares/internal/catalog/feed/feedtest"
	"palmares/internal/catalog/feed/synth"
	"palmares/internal/core/cache"
	"palmares/internal/core/store"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
)

// Readers of several releases get exactly the release that each response names,
// while imports publish others.
func TestConcurrentReaders(t *testing.T) {
	t.Parallel()
	testkit.EachStore(t, func(t *testing.T, db *store.Store) {
		t.Parallel()
		targets := []string{"/api/v1/tools?limit=200", "/api/v1/stats", "/api/v1/tools?search=outil&limit=5", "/api/v1/categories", "/api/v1/comparatifs",
			"/api/v1/tools/t01/versions", "/api/embeddings/t04", "/api/v1/pricing?page=1"}
		s := newServer(t, db)
		var bodies sync.Map // by release and address
		check := func(release, target, body string) {
			if before, known := bodies.LoadOrStore(release+" "+target, body); known && before != body {
				t.Errorf("%s of release %s: differs %s", target, release, differsAt(body, before.(string)))
			}
		}
		var newest atomic.Int64
		publishNext := func(i int) { newest.Store(int64(s.publish(t, db, randomCatalog(i, 40)))) }
		publishNext(0)
		publishNext(1)
		var stop atomic.Bool
		var all sync.WaitGroup
		var read atomic.Int64
		for reader := range 4 {
			all.Go(func() {
				for !stop.Load() {
					read.Add(1)
					target, asOf := targets[rand.IntN(len(targets))], 1+rand.IntN(int(newest.Load()))
					if reader == 0 { // the newest
						if got := s.get(developer, target); got.Code == 200 {
							check(got.Header().Get("X-Service-Release"), target, got.Body.String())
						}
						continue
					}
					if reader == 1 {
						document := `{feed {release updatedAt} stats {toolsTotal} tools(limit: 20) {items ` + allOfTool + `}}`
						got := s.query(t, fmt.Sprintf("query @asOf(release: %d) ", asOf)+document, nil)
						if len(got.Errors) > 0 || got.Release != asOf {
							t.Errorf("got release %d and %v, want release %d", got.Release, got.Errors, asOf)
						}
						check(fmt.Sprint(asOf), "graphql", string(got.Data))
						continue
					}
					got := s.get(developer, with(target, "as_of", asOf))
					if release := got.Header().Get("X-Service-Release"); got.Code == 200 && release != fmt.Sprint(asOf) || got.Code != 200 && got.Code != 404 {
						t.Errorf("%s as of %d: got %d with release %s", target, asOf, got.Code, release)
					}
					if got.Code == 200 {
						check(fmt.Sprint(asOf), target, got.Body.String())
					}
				}
			})
		}
		for i := 2; i < 7; i++ {
			publishNext(i)
			for before := read.Load(); read.Load() < before+30 && !t.Failed(); {
				s.get(anonymous, "/api/v1/stats")
			}
		}
		stop.Store(true)
		all.Wait()
		// What was seen during the imports is what each release has.
		fresh := newServer(t, db)
		for release := range int(newest.Load()) {
			for _, target := range targets {
				if got := fresh.get(developer, with(target, "as_of", release+1)); got.Code == 200 {
					check(fmt.Sprint(release+1), target, got.Body.String())
				}
			}
		}
		t.Logf("%d responses", read.Load())
	})
}

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
