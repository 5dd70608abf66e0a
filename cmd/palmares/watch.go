package main

import (
	"context"
	"net/http"

	"palmares/internal/core/middleware"
	"palmares/internal/core/quota"
	"palmares/internal/core/store"
	"palmares/internal/ops/metrics"
	"palmares/internal/ops/tracing"
)

// watch is who looks on: numbers, traces, both or nobody. Where nobody does,
// nothing is put in anybody's way.
type watch struct {
	metrics *metrics.Metrics // nil for none
	traces  *tracing.Tracing // nil for none
}

func newWatch(s *settings, traces *tracing.Tracing) watch {
	w := watch{traces: traces}
	if s.MetricsListen != "" {
		w.metrics = metrics.New(version)
	}
	return w
}

// requests is the link of the chain.
func (w watch) requests(next http.Handler) http.Handler {
	if w.traces != nil {
		next = w.traces.Link(metrics.Route)(next)
	}
	if w.metrics != nil {
		next = w.metrics.Requests.Link(next)
	}
	return next
}

// observers are told of each request when it is answered.
func (w watch) observers() (all []func(middleware.Observed)) {
	if w.metrics != nil {
		all = append(all, w.metrics.Requests.Observe)
	}
	if w.traces != nil {
		all = append(all, w.traces.Observe)
	}
	return all
}

// statements hears of SQL.
func (w watch) statements() store.Watch {
	switch {
	case w.metrics == nil && w.traces == nil:
		return nil
	case w.traces == nil:
		return w.metrics.Statements()
	case w.metrics == nil:
		return w.traces.Statement
	}
	timed := w.metrics.Statements()
	return func(ctx context.Context, pool, text string) func(error) {
		traced, taken := w.traces.Statement(ctx, pool, text), timed(ctx, pool, text)
		return func(err error) {
			taken(err)
			traced(err)
		}
	}
}

// operations hears of GraphQL operations.
func (w watch) operations() func(context.Context, string) (context.Context, func(string)) {
	if w.traces == nil {
		return nil
	}
	return w.traces.Operation
}

// counting hears of requests that are counted in Redis. What a process counts
// by itself takes no time.
func (w watch) counting(g *gate) {
	if g.redis == nil {
		return
	}
	if w.metrics != nil {
		g.quota.Store = quota.Watched{Store: g.quota.Store, Watch: w.metrics.Counted}
	}
	if w.traces != nil {
		g.quota.Store = quota.Watched{Store: g.quota.Store, Watch: w.traces.Count}
	}
}
