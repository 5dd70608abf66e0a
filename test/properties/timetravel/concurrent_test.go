package timetravel_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"palmares/internal/core/store"
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
