package rest_test

import (
	"context"
	"net/http"
	"testing"

	"palmares/auth"
	"palmares/ent"
	"palmares/graph"
	"palmares/internal/core/cache"
	"palmares/internal/dev/testkit"
)

// kept is a handler with its cache, over the demo catalog.
func kept(t *testing.T) (http.Handler, *cache.Cache) {
	t.Helper()
	s := testkit.Open(t, testkit.SQLite(t))
	demoOn(t, s)
	return handlerOver(t, s)
}

// Parameters in another order, defaults spelled out and unknown ones meet the
// same answer; others do not.
func TestOneAnswerForOneQuestion(t *testing.T) {
	handler, answers := kept(t)
	same := []string{
		"/api/v1/tools", "/api/v1/tools?", "/api/v1/tools?page=1", "/api/v1/tools?limit=50&page=1&sort=score_desc", "/api/v1/tools?page=01&limit=050",
		"/api/v1/tools?unknown=1", "/api/v1/tools?sort=%73core_desc", "/api/v1/%74ools",
	}
	for _, target := range same {
		if got := get(handler, target); got.Code != 200 {
			t.Fatalf("%s: %d", target, got.Code)
		}
	}
	// The first answer tells of the release, which nobody had published here.
	if misses := answers.Misses.Load(); misses != 1 {
		t.Errorf("%d answers for one question", misses)
	}
	before := answers.Misses.Load()
	others := []string{
		"/api/v1/tools?page=2", "/api/v1/tools?category=code", "/api/v1/tools?score_min=0", "/api/v1/pricing", "/api/v1/tools/plume", "/api/v1/pricing/plume",
		"/api/v1/tools/plume%3Fpage=2", "/api/v1/tools?category=a%26page%3D2",
	}
	for _, target := range others {
		get(handler, target)
	}
	if misses := answers.Misses.Load() - before; misses != int64(len(others)) {
		t.Errorf("%d answers for %d questions", misses, len(others))
	}
}

// A kept document is still only for who may read it.
func TestKeptEmbeddingsNeedAKey(t *testing.T) {
	handler, answers := kept(t)
	for range 2 {
		if got := get(handler, "/api/embeddings/plume"); got.Code != 200 {
			t.Fatalf("%d", got.Code)
		}
	}
	if answers.Hits.Load() != 1 {
		t.Errorf("%d hits", answers.Hits.Load())
	}
	r := request(http.MethodGet, "/api/embeddings/plume")
	got := serve(handler, r.WithContext(auth.WithCaller(r.Context(), auth.Caller{Plan: auth.Anonymous})))
	refused(t, "without a key", got, 401, "Embeddings need an API key.")
}

// panicking is a catalog that cannot be read without a panic.
type panicking struct{ graph.Catalog }

func (panicking) Reading(ctx context.Context, read func(context.Context, *ent.Release) error) error {
	return read(ctx, &ent.Release{ID: 1})
}

func (panicking) Client() *ent.Client { return nil }

// A panic is answered in our words, and not kept.
func TestPanicIsAnswered(t *testing.T) {
	handler := serving(t, panicking{})
	for range 2 {
		refused(t, "a panic", get(handler, "/api/v1/categories"), 500, "Something went wrong on our side.")
	}
}
