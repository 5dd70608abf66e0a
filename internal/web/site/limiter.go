package site

import (
	"context"
	"net/http"
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
	visitors map[quota.Subject]*visitor
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
	return &limiter{total: semaphore.NewWeighted(maxRendering), visitors: map[quota.Subject]*visitor{}}
}

var errBusy = problem.New(problem.TooMany, "Too many pages are being loaded at the same time. Try again in a few seconds.")

type visitorKey struct{}

// withVisitor adds the visitor to the context of a request.
func (s *Site) withVisitor(r *http.Request) context.Context {
	return context.WithValue(r.Context(), visitorKey{}, quota.Address(quota.ClientAddress(r, s.TrustedProxies)))
}

// acquire waits for a free slot. Work without a visitor, such as refreshing
// cached pages after a release, needs none.
func (l *limiter) acquire(ctx context.Context) (release func(), err error) {
	subject, ok := ctx.Value(visitorKey{}).(quota.Subject)
	if !ok {
		return func() {}, nil
	}
	v := l.enter(subject)
	if v == nil {
		return nil, errBusy
	}
	wait, cancel := context.WithTimeoutCause(ctx, maxWait, errBusy)
	defer cancel()
	if v.slots.Acquire(wait, 1) == nil {
		if l.total.Acquire(wait, 1) == nil {
			return func() {
				l.total.Release(1)
				v.slots.Release(1)
				l.leave(subject, v)
			}, nil
		}
		v.slots.Release(1)
	}
	l.leave(subject, v)
	return nil, context.Cause(wait)
}

// enter counts a page of a visitor. It returns nil if the visitor has too many.
func (l *limiter) enter(subject quota.Subject) *visitor {
	l.mu.Lock()
	defer l.mu.Unlock()
	v := l.visitors[subject]
	if v == nil {
		v = &visitor{slots: semaphore.NewWeighted(maxRenderingPerVisitor)}
		l.visitors[subject] = v
	}
	if v.pages == maxPagesPerVisitor {
		return nil
	}
	v.pages++
	return v
}

func (l *limiter) leave(subject quota.Subject, v *visitor) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if v.pages--; v.pages == 0 {
		delete(l.visitors, subject)
	}
}
