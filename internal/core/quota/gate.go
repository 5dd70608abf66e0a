package quota

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"palmares/internal/core/cache"
	"palmares/internal/core/problem"
)

// Caller is whose quota a request counts against.
type Caller struct {
	Subject Subject
	Limit   int    // requests a day; 0 for unlimited
	Tier    string // sent as X-RateLimit-Tier; without one, no limits are sent
	// Carried requests count against the limit on CarriedDay (YYYY-MM-DD) too.
	Carried    int
	CarriedDay string
}

// Gate is the middleware that counts requests, and rejects those whose caller
// has used up the day's quota.
type Gate struct {
	Store  Store
	Caller func(*http.Request) Caller
	Now    func() time.Time
}

// visit is one request at the gate.
type visit struct {
	gate    *Gate
	request *http.Request
	caller  Caller
	now     time.Time
	day     Day
	count   int
}

// Count wraps the handlers whose requests are counted.
func (g *Gate) Count(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		v := &visit{gate: g, request: r, caller: g.Caller(r), now: g.Now()}
		v.day = DayOf(v.now)
		v.count = g.take(r.Context(), v.caller, v.day)
		decision := v.decide(v.count)
		writeLimits(w.Header(), v.caller, decision)
		switch {
		case decision.Granted:
			next.ServeHTTP(&refunder{ResponseWriter: w, visit: v}, r)
		case conditional(r):
			// A 304 from the cache costs next to nothing, and is refunded anyway.
			only := &onlyNotModified{ResponseWriter: w, header: http.Header{}}
			next.ServeHTTP(only, r.WithContext(cache.WithCachedOnly(r.Context())))
			if !only.sent {
				v.reject(w, decision)
			}
		default:
			v.reject(w, decision)
		}
	})
}

// take counts a request on top of what the caller carries.
func (g *Gate) take(ctx context.Context, c Caller, day Day) int {
	if c.Limit == 0 || c.Carried == 0 || c.CarriedDay != day.String() {
		return g.Store.Take(ctx, c.Subject, day, c.Limit)
	}
	if c.Carried >= c.Limit {
		return c.Carried + 1 // nothing is left, and a limit of 0 would be unlimited
	}
	return c.Carried + g.Store.Take(ctx, c.Subject, day, c.Limit-c.Carried)
}

func (v *visit) decide(count int) Decision { return Decide(v.now, v.day, v.caller.Limit, count) }

func (v *visit) reject(w http.ResponseWriter, d Decision) {
	w.Header().Set("Retry-After", strconv.Itoa(int(d.RetryAfter/time.Second)))
	problem.Refuse(w, v.request, problem.New(problem.QuotaSpent, "The daily quota of %d requests is used up. It resets at %s.",
		v.caller.Limit, d.Reset.Format(time.RFC3339)))
}

// refund uncounts a request, and reports whether it did. A 304 that had to be
// executed costs as much as any response, so a caller gets no more of them
// refunded in a day than the quota has requests.
func (v *visit) refund(executed bool) bool {
	ctx := v.request.Context()
	if limit := v.caller.Limit; executed && limit > 0 && v.gate.Store.Take(ctx, v.caller.Subject.refunds(), v.day, limit) > limit {
		return false
	}
	v.gate.Store.GiveBack(ctx, v.caller.Subject, v.day)
	return true
}

// conditional reports whether a request names a response that the client has.
// "*" matches without having one.
func conditional(r *http.Request) bool {
	tags := r.Header["If-None-Match"]
	return len(tags) > 0 && !cache.AnyTag(tags) && (r.Method == http.MethodGet || r.Method == http.MethodHead)
}

// writeLimits sets the headers that report what is left.
func writeLimits(header http.Header, c Caller, d Decision) {
	if c.Tier == "" {
		return
	}
	header["X-Ratelimit-Tier"] = []string{c.Tier}
	if c.Limit > 0 {
		header["X-Ratelimit-Remaining"] = []string{strconv.Itoa(d.Remaining)}
		header["X-Ratelimit-Reset"] = []string{d.Reset.Format(time.RFC3339)}
	}
}

// refunder uncounts a request whose response is 304 or 401.
type refunder struct {
	http.ResponseWriter
	visit    *visit
	executed bool
	started  bool
}

// ReportExecution is called by the cache for responses that it had to execute.
func (w *refunder) ReportExecution() { w.executed = true }

func (w *refunder) WriteHeader(status int) {
	if !w.started && w.free(status) {
		writeLimits(w.Header(), w.visit.caller, w.visit.decide(w.visit.count-1))
	}
	w.started = true
	w.ResponseWriter.WriteHeader(status)
}

func (w *refunder) free(status int) bool {
	switch {
	case status == http.StatusUnauthorized:
		return w.visit.refund(false)
	case status == http.StatusNotModified && conditional(w.visit.request):
		return w.visit.refund(w.executed)
	}
	return false
}

// Unwrap lets http.ResponseController reach the connection.
func (w *refunder) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// onlyNotModified sends a 304, and drops every other response.
type onlyNotModified struct {
	http.ResponseWriter
	header http.Header // set by the handler
	sent   bool
}

func (w *onlyNotModified) Header() http.Header { return w.header }

func (w *onlyNotModified) WriteHeader(status int) {
	if status != http.StatusNotModified || w.sent {
		return
	}
	for name, values := range w.header {
		w.ResponseWriter.Header()[name] = values
	}
	w.sent = true
	w.ResponseWriter.WriteHeader(status)
}

func (w *onlyNotModified) Write(data []byte) (int, error) { return len(data), nil }
