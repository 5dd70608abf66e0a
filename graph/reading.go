package graph

import (
	"context"
	"errors"
	"sync"

	"palmares/ent"
	"palmares/graph/model"
	"palmares/internal/problem"
)

// reading is one operation at work on one release.
type reading struct {
	// Root fields are resolved side by side, but a reading is one sequence of
	// statements: it answers one of them at a time.
	mu       sync.Mutex
	failed   error        // the first that the database did, not the caller
	release  *ent.Release // nil before the first import
	executor *Executor
	catalog  Catalog
	client   *ent.Client
	counted  map[countKey]int // held back until the release is known to be right
	passed   map[waypointsKey][][]any
	searches map[string][]string // what was found, by text
	// categoryTools are lists asked for with arguments, by who asks.
	categoryTools map[categoryToolsKey][]*model.Tool
}

func newReading(release *ent.Release, e *Executor) *reading {
	return &reading{
		release: release, executor: e, catalog: e.catalog, client: e.catalog.Client(),
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

// countKey names a count that holds as long as its release.
type countKey struct {
	release int
	what    string
}

// count asks once for each release and filter, however many pages are read.
func (r *reading) count(what string, ask func() (int, error)) (int, error) {
	if r.release == nil {
		return 0, nil
	}
	key := countKey{r.release.ID, what}
	if n, ok := r.executor.counts.Get(key); ok {
		return n, nil
	}
	if n, ok := r.counted[key]; ok {
		return n, nil
	}
	n, err := ask()
	if err == nil {
		if r.counted == nil {
			r.counted = map[countKey]int{}
		}
		r.counted[key] = n
	}
	return n, err
}

// keep is called once everything read is known to be of the release.
func (r *reading) keep() {
	for key, waypoints := range r.passed {
		r.executor.waypoints.Add(key, waypoints)
	}
	for key, n := range r.counted {
		r.executor.counts.Add(key, n)
	}
}
