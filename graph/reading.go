package graph

import (
	"context"
	"errors"
	"sync"

	"palmares/ent"
	"palmares/graph/model"
	"palmares/internal/core/cache"
	"palmares/internal/core/problem"
)

// reading is one operation at work on one release.
type reading struct {
	// Root fields are resolved side by side, but a reading is one sequence of
	// statements: it answers one of them at a time.
	mu       sync.Mutex
	failed   error         // the first that the database did, not the caller
	release  *ent.Release  // nil before the first import
	edition  cache.Edition // of the release, for what is cached
	executor *Executor
	catalog  Catalog
	client   *ent.Client
	counted  map[string]int      // held back until the release is known to be right
	searches map[string][]string // what was found, by text
	// categoryTools are lists asked for with arguments, by who asks.
	categoryTools map[categoryToolsKey][]*model.Tool
}

func newReading(release *ent.Release, e *Executor, begun cache.Edition) *reading {
	if release != nil {
		begun = begun.Of(release.ID)
	}
	return &reading{
		release: release, edition: begun, executor: e, catalog: e.catalog, client: e.catalog.Client(),
		categoryTools: map[categoryToolsKey][]*model.Tool{},
	}
}

type readingKey struct{}

func withReading(ctx context.Context, r *reading) context.Context {
	return context.WithValue(ctx, readingKey{}, r)
}

// read lets a resolver use the operation's reading, alone.
func read[T any](ctx context.Context, do func(*reading) (T, error)) (T, error) {
	r := ctx.Value(readingKey{}).(*reading)
	r.mu.Lock()
	defer r.mu.Unlock()
	result, err := do(r)
	var told *problem.Problem
	if err != nil && r.failed == nil && !errors.As(err, &told) {
		r.failed = err
	}
	return result, err
}

// count counts once for each release and filter, however many pages are read.
func (r *reading) count(what string, query func() (int, error)) (int, error) {
	if r.release == nil {
		return 0, nil
	}
	if n, ok := r.executor.counts.Get(r.edition, cache.Question{Operation: what}); ok {
		return n, nil
	}
	if n, ok := r.counted[what]; ok {
		return n, nil
	}
	n, err := query()
	if err == nil {
		if r.counted == nil {
			r.counted = map[string]int{}
		}
		r.counted[what] = n
	}
	return n, err
}

// keep caches what was read, once all of it is known to be of the release.
func (r *reading) keep() {
	for what, n := range r.counted {
		r.executor.counts.Put(r.edition, cache.Question{Operation: what}, n, 0)
	}
}
