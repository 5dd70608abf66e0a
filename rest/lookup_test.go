package rest_test

import (
	"log/slog"
	"net/http"
	"testing"

	"palmares/ent"
	"palmares/graph"
	"palmares/graph/graphtest"
	"palmares/internal/core/cache"
	"palmares/internal/core/store"
	"palmares/internal/dev/testkit"
	"palmares/rest"
)

// A tool that is read from memory has the same response as one that is executed.
func TestToolFromMemory(t *testing.T) {
	testkit.EachInFull(t, func(t *testing.T, s *store.Store) {
		executing := demoOn(t, s)
		log := slog.New(slog.DiscardHandler)
		executor := graphtest.New(graph.Config{Catalog: s, Log: log})
		published := make(chan int, 1)
		go executor.Follow(t.Context(), func(release *ent.Release) bool { published <- release.ID; return true })
		responses := cache.New(1<<20, nil, log)
		responses.Publish(<-published)
		fromMemory, err := rest.NewHandler(config, executor, responses)
		testkit.Check(t, err)
		const path = "/api/v1/tools/"
		for _, path := range []string{path + "plume", path + "nobody", path + "plume?as_of=1", path + "plume?page=1"} {
			want, got := get(executing, path), get(fromMemory, path)
			for name := range want.Header() {
				if name[:2] == "Ac" { // CORS
					want.Header().Del(name)
				}
			}
			if got.Code != want.Code || got.Body.String() != want.Body.String() || !equalHeaders(got.Header(), want.Header()) {
				t.Errorf("%s:\ngot  %d %v %s\nwant %d %v %s", path, got.Code, got.Header(), got.Body, want.Code, want.Header(), want.Body)
			}
		}
	})
}

func equalHeaders(a, b http.Header) bool {
	for name := range a {
		if a.Get(name) != b.Get(name) {
			return false
		}
	}
	return len(a) == len(b)
}
