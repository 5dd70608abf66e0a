package rest_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	"palmares/ent"
	"palmares/graph"
	"palmares/graph/graphtest"
	"palmares/internal/catalog/feed/feedtest"
	"palmares/internal/catalog/feed/synth"
	"palmares/internal/core/cache"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
	"palmares/internal/dev/testkit/wait"
	"palmares/rest"
)

// BenchmarkUncached measures requests that miss the cache, which has room for
// only a few of 5,000 responses. It calls the handler without net/http.
func BenchmarkUncached(b *testing.B) {
	s := testkit.Open(b, testkit.SQLite(b))
	feedtest.Publish(b, s, feedtest.Synthetic(b, synth.Options{Tools: 5_000, Seed: 1}))
	log := slog.New(slog.DiscardHandler)
	executor := graphtest.New(graph.Config{Catalog: s, Log: log, Cache: cache.New(64<<20, nil, log)})
	go executor.Follow(b.Context(), func(*ent.Release) bool { return true }) // as a server does
	wait.Until(b, "the release is in memory", executor.Loaded)
	handler := check.Try(rest.NewHandler(config, executor, cache.New(100<<10, nil, log))).OK(b)
	var slugs []string
	for page := range 5 {
		var body struct{ Data []struct{ Slug string } }
		check.OK(b, json.Unmarshal(serve(handler, request(http.MethodGet, fmt.Sprintf("/api/v1/pricing?limit=200&page=%d", page+1))).Body.Bytes(), &body))
		for _, item := range body.Data {
			slugs = append(slugs, item.Slug)
		}
	}
	for name, path := range map[string]func(i int) string{
		"tool": func(i int) string { return "/api/v1/tools/" + slugs[i%len(slugs)] },
		"list": func(i int) string {
			return fmt.Sprintf("/api/v1/tools?page=%d&score_min=%.6f", 1+i%5, float64(i%10_000)/10_000)
		},
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				w := &httptest.ResponseRecorder{HeaderMap: http.Header{}}
				handler.ServeHTTP(w, request(http.MethodGet, path(i)))
				check.Must(b, w.Code, http.StatusOK)
			}
		})
	}
}
