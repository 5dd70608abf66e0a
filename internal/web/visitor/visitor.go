// Package visitor limits what the pages of each visitor cost the server. Pages do not
// count against a quota, so without limits a few visitors could slow down everyone else.
// Cached pages are not limited. Start reading at Limiter.Start.
package visitor

import (
	"bytes"
	"cmp"
	"context"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"sync"
	"time"

	"palmares/internal/core/client"
	"palmares/internal/core/problem"
	"palmares/internal/core/quota"
)

// Each visitor, an IPv4 address or an IPv6 /64, has a budget of CPU time.
const (
	burst         = 5 * time.Second // at once, and 2 seconds more in each minute
	burstRecovery = 30              // time until CPU time is available again, as a multiple of it

	maxRendering           = 4  // pages at the same time
	maxRenderingPerVisitor = 2  // of them
	maxPagesPerVisitor     = 16 // rendering and waiting; browsers may open several tabs at once
	maxWait                = 4 * time.Second
)

// Limiter decides when pages are rendered. A nil or zero one does not limit them.
type Limiter struct {
	proxies []netip.Prefix       // whose X-Forwarded-For counts
	cpu     func() time.Duration // that the process has used
	now     func() time.Time

	mu        sync.Mutex
	visitors  map[quota.Subject]*visitor
	rendering []*visitor // one element for each page
	waiting   []*page    // oldest first
	charged   moment     // until when CPU time has been charged

	remembered int // visitors, after the last time that some were forgotten
}

// moment is a time on both clocks.
type moment struct {
	time time.Time
	cpu  time.Duration
}

type visitor struct {
	used      time.Duration // CPU time, which recovers
	at        time.Time     // when used was computed
	rendering int
	waiting   int
}

// page is a page that waits to be rendered.
type page struct {
	visitor *visitor
	decided chan error // nil when it may start
}

// NewLimiter returns a limiter for visitors that may come through trusted proxies.
func NewLimiter(proxies []netip.Prefix) *Limiter {
	return &Limiter{proxies: proxies, cpu: processTime, now: time.Now, visitors: map[quota.Subject]*visitor{}}
}

var errBusy = problem.New(problem.TooMany, "Too many pages are being loaded at the same time. Try again in a few seconds.").Wait(2 * time.Second)

type visitorKey struct{}

// Identify returns the context of a request with its visitor.
func (l *Limiter) Identify(r *http.Request) context.Context {
	if l == nil || l.visitors == nil {
		return r.Context()
	}
	return context.WithValue(r.Context(), visitorKey{}, quota.Address(client.Address(r, l.proxies)))
}

// Charge waits until what a request causes may start; done is called afterwards.
func (l *Limiter) Charge(r *http.Request) (done func(), err error) { return l.Start(l.Identify(r)) }

// Limit charges the pages of a handler, which are rendered for each request, and refuses
// those of visitors without a budget. It sends them when they are complete, so that a slow
// connection delays nobody else.
func (l *Limiter) Limit(next http.Handler, refuse func(http.ResponseWriter, *http.Request, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		done, err := l.Charge(r)
		if err != nil {
			w.Header().Set("Retry-After", strconv.Itoa(problem.Of(err).Seconds()))
			refuse(w, r, err)
			return
		}
		complete := &rendered{ResponseWriter: w, status: http.StatusOK}
		func() {
			defer done()
			next.ServeHTTP(complete, r)
		}()
		w.WriteHeader(complete.status)
		_, _ = w.Write(complete.body.Bytes())
	})
}

// rendered is a page in memory.
type rendered struct {
	http.ResponseWriter
	status int
	body   bytes.Buffer
}

// WriteHeader implements http.ResponseWriter.
func (p *rendered) WriteHeader(status int) { p.status = status }

// Write implements http.ResponseWriter.
func (p *rendered) Write(data []byte) (int, error) { return p.body.Write(data) }

// Start waits until a page may be rendered; done is called afterwards. Work without a
// visitor, such as refreshing cached pages after a release, does not wait.
func (l *Limiter) Start(ctx context.Context) (done func(), err error) {
	subject, ok := ctx.Value(visitorKey{}).(quota.Subject)
	if !ok {
		return func() {}, nil
	}
	p, err := l.enqueue(subject)
	if err != nil {
		return nil, err
	}
	wait, cancel := context.WithTimeoutCause(ctx, maxWait, errBusy)
	defer cancel()
	select {
	case err = <-p.decided:
	case <-wait.Done():
		if l.withdraw(p) {
			return nil, context.Cause(wait)
		}
		err = <-p.decided
	}
	if err != nil {
		return nil, err
	}
	return func() { l.end(p.visitor) }, nil
}

// enqueue adds a page of a visitor, and starts it if it does not have to wait.
func (l *Limiter) enqueue(subject quota.Subject) (*page, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.charge()
	l.forget()
	v := l.visitors[subject]
	if v == nil {
		v = &visitor{at: l.charged.time}
		l.visitors[subject] = v
	}
	if v.waiting+v.rendering == maxPagesPerVisitor {
		return nil, errBusy
	}
	p := &page{visitor: v, decided: make(chan error, 1)}
	l.waiting = append(l.waiting, p)
	v.waiting++
	l.startNext()
	return p, nil
}

// startNext starts pages while there is room. Visitors with fewer pages being rendered
// come first, then those with less CPU time used, so that a new visitor does not wait for
// all pages of a busy one. The caller holds the lock.
func (l *Limiter) startNext() {
	l.waiting = slices.DeleteFunc(l.waiting, func(p *page) bool {
		over := p.visitor.usedAt(l.charged.time) - burst
		if over < 0 {
			return false
		}
		after := (over*burstRecovery + time.Second).Truncate(time.Second)
		l.decide(p, problem.New(problem.TooMany,
			"Pages of your network have used up their computing time. Try again in %d seconds.", int(after/time.Second)).Wait(after))
		return true
	})
	for len(l.rendering) < maxRendering {
		next := -1
		for i, p := range l.waiting {
			if p.visitor.rendering < maxRenderingPerVisitor && (next < 0 || precedes(p.visitor, l.waiting[next].visitor)) {
				next = i
			}
		}
		if next < 0 {
			return
		}
		p := l.waiting[next]
		l.waiting = slices.Delete(l.waiting, next, next+1)
		p.visitor.rendering++
		l.rendering = append(l.rendering, p.visitor)
		l.decide(p, nil)
	}
}

func (l *Limiter) decide(p *page, err error) {
	p.visitor.waiting--
	p.decided <- err
}

func precedes(a, b *visitor) bool {
	return cmp.Or(cmp.Compare(a.rendering, b.rendering), cmp.Compare(a.used, b.used)) < 0
}

// withdraw removes a page from the queue; false if it has left it already.
func (l *Limiter) withdraw(p *page) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	i := slices.Index(l.waiting, p)
	if i < 0 {
		return false
	}
	l.waiting = slices.Delete(l.waiting, i, i+1)
	p.visitor.waiting--
	return true
}

// end is called when a page has been rendered.
func (l *Limiter) end(v *visitor) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.charge()
	v.rendering--
	i := slices.Index(l.rendering, v)
	l.rendering = slices.Delete(l.rendering, i, i+1)
	l.startNext()
}

// charge divides the CPU time since the last call among the pages that were rendered
// since then. Other requests may have used part of it, but no page is charged more than
// the time that has passed. The caller holds the lock.
func (l *Limiter) charge() {
	last, now := l.charged, moment{l.now(), l.cpu()}
	l.charged = now
	if len(l.rendering) == 0 {
		return
	}
	share := min((now.cpu-last.cpu)/time.Duration(len(l.rendering)), now.time.Sub(last.time))
	for _, v := range l.rendering {
		v.usedAt(now.time)
		v.used += share
	}
}

// usedAt returns the CPU time that has not recovered yet.
func (v *visitor) usedAt(now time.Time) time.Duration {
	v.used = max(0, v.used-now.Sub(v.at)/burstRecovery)
	v.at = now
	return v.used
}

// minRemembered is how many visitors are remembered before any is forgotten.
const minRemembered = 1_000

// forget removes visitors whose budgets have recovered, when there are twice as many as
// after the last time. The caller holds the lock.
func (l *Limiter) forget() {
	if len(l.visitors) < max(minRemembered, 2*l.remembered) {
		return
	}
	for subject, v := range l.visitors {
		if v.rendering+v.waiting == 0 && v.usedAt(l.charged.time) == 0 {
			delete(l.visitors, subject)
		}
	}
	l.remembered = len(l.visitors)
}
