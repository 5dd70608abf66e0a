package site

import (
	"context"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"palmares/internal/core/problem"
	"palmares/internal/core/quota"
)

// limiter limits how many pages are rendered at the same time, in total and per
// visitor. Pages do not count against a quota, so without it a single visitor
// could slow down the API. Cached pages are not limited.
type limiter struct {
	total    *semaphore.Weighted
	mu       sync.Mutex
	visitors map[netip.Prefix]*visitor
}

type visitor struct {
	slots *semaphore.Weighted
	pages int // being rendered or waiting
}

const (
	maxRendering           = 4
	maxRenderingPerVisitor = 2
	maxPagesPerVisitor     = 16 // rendering and waiting; browsers may open several tabs at once
	maxWait                = time.Second
)

func newLimiter() *limiter {
	return &limiter{total: semaphore.NewWeighted(maxRendering), visitors: map[netip.Prefix]*visitor{}}
}

var errBusy = problem.New(problem.TooMany, "Too many pages are being loaded at the same time. Try again in a few seconds.")

type visitorKey struct{}

// withVisitor adds the visitor's network to the context of a request: the IPv4
// address, or the IPv6 /64, which is what one customer has.
func (s *Site) withVisitor(r *http.Request) context.Context {
	address := quota.ClientAddress(r, s.TrustedProxies)
	bits := 64
	if address.Is4() {
		bits = 32
	}
	network, err := address.WithZone("").Prefix(bits)
	if err != nil {
		network = netip.Prefix{} // visitors without an address share one
	}
	return context.WithValue(r.Context(), visitorKey{}, network)
}

// acquire waits for a free slot. Work without a visitor, such as refreshing
// cached pages after a release, needs none.
func (l *limiter) acquire(ctx context.Context) (release func(), err error) {
	network, ok := ctx.Value(visitorKey{}).(netip.Prefix)
	if !ok {
		return func() {}, nil
	}
	v := l.enter(network)
	if v == nil {
		return nil, errBusy
	}
	wait, cancel := context.WithTimeoutCause(ctx, maxWait, errBusy)
	defer cancel()
	if v.slots.Acquire(wait, 1) != nil {
		l.leave(network, v)
		return nil, context.Cause(wait)
	}
	if l.total.Acquire(wait, 1) != nil {
		v.slots.Release(1)
		l.leave(network, v)
		return nil, context.Cause(wait)
	}
	return func() {
		l.total.Release(1)
		v.slots.Release(1)
		l.leave(network, v)
	}, nil
}

// enter counts a page of a visitor. It returns nil if the visitor has too many.
func (l *limiter) enter(network netip.Prefix) *visitor {
	l.mu.Lock()
	defer l.mu.Unlock()
	v := l.visitors[network]
	if v == nil {
		v = &visitor{slots: semaphore.NewWeighted(maxRenderingPerVisitor)}
		l.visitors[network] = v
	}
	if v.pages == maxPagesPerVisitor {
		return nil
	}
	v.pages++
	return v
}

func (l *limiter) leave(network netip.Prefix, v *visitor) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if v.pages--; v.pages == 0 {
		delete(l.visitors, network)
	}
}
