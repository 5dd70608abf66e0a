package quota

import (
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"palmares/internal/core/cache"
	"palmares/internal/core/middleware"
	"palmares/internal/core/problem"
)

// Caller describes whose quota a request counts against.
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
	// Once returns what a request is for, if all requests of a caller for the same thing
	// on the same day count once, or "". It may be nil.
	Once func(*http.Request) string
	// Record is called with 1 for each counted request, and with -1 if it is
	// uncounted later. It may be nil.
	Record func(r *http.Request, day Day, n int)
}

// visit is a counted request. It uncounts the request if its response is 304 or 429,
// or 401 before any work.
type visit struct {
	http.ResponseWriter
	gate     *Gate
	request  *http.Request
	caller   Caller
	now      time.Time
	day      Day
	count    int
	mark     Subject // counts what the request is for, or 0
	free     bool    // whether the request does not count
	executed bool
	started  bool
}

// Count wraps the handlers whose requests are counted.
func (g *Gate) Count(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		v, decision := g.enter(w, r)
		switch {
		case decision.Granted:
			next.ServeHTTP(v, r)
		case conditional(r):
			// A 304 from the cache costs next to nothing, and is refunded anyway.
			only := &onlyNotModified{ResponseWriter: w, header: http.Header{}}
			next.ServeHTTP(only, r.WithContext(cache.WithCachedOnly(r.Context())))
			if !only.sent {
				v.reject(decision)
			}
		default:
			v.reject(decision)
		}
	})
}

// Take counts a call by itself, for a request that may contain several. It
// returns an error if the caller's quota is used up.
func (g *Gate) Take(w http.ResponseWriter, r *http.Request) error {
	v, decision := g.enter(w, r)
	if decision.Granted {
		return nil
	}
	return v.spent(decision)
}

// enter counts a request and sets the headers that report the quota.
func (g *Gate) enter(w http.ResponseWriter, r *http.Request) (*visit, Decision) {
	v := &visit{ResponseWriter: w, gate: g, request: r, caller: g.Caller(r), now: g.Now()}
	v.day = DayOf(v.now)
	if g.Once != nil {
		if name := g.Once(r); name != "" {
			v.mark = v.caller.Subject.mark(name)
		}
	}
	if v.mark != 0 && g.Store.Count(r.Context(), v.mark, v.day) > 0 {
		v.free = true
		decision := v.decide(v.carried() + g.Store.Count(r.Context(), v.caller.Subject, v.day))
		decision.Granted = true
		v.writeLimits(decision)
		return v, decision
	}
	v.count = v.take()
	decision := v.decide(v.count)
	if decision.Granted && v.mark != 0 && g.Store.Take(r.Context(), v.mark, v.day, 1) > 1 { // by a concurrent request
		v.free = true
		v.count--
		g.Store.Refund(r.Context(), v.caller.Subject, v.day)
		decision = v.decide(v.count)
	}
	v.writeLimits(decision)
	if decision.Granted && !v.free {
		v.record(1)
	}
	return v, decision
}

func (v *visit) record(n int) {
	if v.gate.Record != nil {
		v.gate.Record(v.request, v.day, n)
	}
}

// take counts the request on top of what the caller carries.
func (v *visit) take() int {
	c, carried := v.caller, v.carried()
	if carried > 0 && carried >= c.Limit {
		return carried + 1 // nothing is left, and a limit of 0 would be unlimited
	}
	return carried + v.gate.Store.Take(v.request.Context(), c.Subject, v.day, c.Limit-carried)
}

// carried returns what the caller carries on the day of the request.
func (v *visit) carried() int {
	if c := v.caller; c.Carried > 0 && c.Limit > 0 && c.CarriedDay == v.day.String() {
		return c.Carried
	}
	return 0
}

func (v *visit) decide(count int) Decision { return Decide(v.now, v.day, v.caller.Limit, count) }

func (v *visit) reject(d Decision) {
	v.writePolicy(d)
	v.Header().Set("Retry-After", strconv.Itoa(int(d.RetryAfter/time.Second)))
	problem.Refuse(v.ResponseWriter, v.request, v.spent(d))
}

func (v *visit) spent(d Decision) error {
	return problem.New(problem.QuotaSpent, "The daily quota of %d requests is used up. It resets at %s.", v.caller.Limit, d.Reset.Format(time.RFC3339))
}

// refund uncounts the request, and reports whether it did. A 304 that required
// executing the query costs as much as any response, so at most as many of them
// are refunded per day as the quota allows requests.
func (v *visit) refund() bool {
	ctx := v.request.Context()
	if limit := v.caller.Limit; v.executed && limit > 0 && v.gate.Store.Take(ctx, v.caller.Subject.refunds(), v.day, limit) > limit {
		return false
	}
	v.gate.Store.Refund(ctx, v.caller.Subject, v.day)
	if v.mark != 0 {
		v.gate.Store.Refund(ctx, v.mark, v.day)
	}
	v.record(-1)
	return true
}

// conditional reports whether a request has the tag of a response. "*" does not
// count, because it matches any response.
func conditional(r *http.Request) bool {
	tags := r.Header["If-None-Match"]
	return len(tags) > 0 && !cache.AnyTag(tags) && (r.Method == http.MethodGet || r.Method == http.MethodHead || r.Method == middleware.MethodQuery)
}

// writeLimits sets the headers that report the remaining quota.
func (v *visit) writeLimits(d Decision) {
	if v.caller.Tier == "" {
		return
	}
	header := v.Header()
	header["X-Ratelimit-Tier"] = []string{v.caller.Tier}
	if v.caller.Limit > 0 {
		header["X-Ratelimit-Remaining"] = []string{strconv.Itoa(d.Remaining)}
		header["X-Ratelimit-Reset"] = []string{d.Reset.Format(time.RFC3339)}
		v.writePolicy(d)
	}
}

// writePolicy sets the headers of the IETF draft ratelimit-headers-11: what is
// left of the quota until it resets, and the quota.
func (v *visit) writePolicy(d Decision) {
	header := v.Header()
	setDay(header, "Ratelimit", ";r="+strconv.Itoa(d.Remaining)+";t="+strconv.Itoa(int(d.RetryAfter/time.Second)))
	setDay(header, "Ratelimit-Policy", ";q="+strconv.Itoa(v.caller.Limit)+";w=86400")
}

// setDay sets the item of the daily quota in a header that may have other items.
func setDay(header http.Header, name, parameters string) {
	const day = `"day"`
	others := slices.DeleteFunc(header[name], func(item string) bool { return strings.HasPrefix(item, day) })
	header[name] = append([]string{day + parameters}, others...)
}

// CountAgain counts a request that is free because another one for the same thing was
// counted, before it does more work than sending it. It returns an error if the quota is
// used up. Requests that were not free are counted already.
func CountAgain(w http.ResponseWriter) error {
	for {
		if v, found := w.(*visit); found {
			return v.countAgain()
		}
		wrapper, wraps := w.(interface{ Unwrap() http.ResponseWriter })
		if !wraps {
			return nil
		}
		w = wrapper.Unwrap()
	}
}

func (v *visit) countAgain() error {
	if !v.free {
		return nil
	}
	v.count = v.take()
	decision := v.decide(v.count)
	v.writeLimits(decision)
	if !decision.Granted {
		return v.spent(decision)
	}
	v.free, v.mark = false, 0 // the other request stays counted
	v.record(1)
	return nil
}

// ReportExecution is called by the cache for responses that required executing a query.
func (v *visit) ReportExecution() { v.executed = true }

// WriteHeader implements http.ResponseWriter.
func (v *visit) WriteHeader(status int) {
	free := status == http.StatusUnauthorized && !v.executed || status == http.StatusTooManyRequests || status == http.StatusNotModified && conditional(v.request)
	if !v.started && !v.free && free && v.refund() {
		v.writeLimits(v.decide(v.count - 1))
	}
	v.started = true
	v.ResponseWriter.WriteHeader(status)
}

// Unwrap lets http.ResponseController reach the connection.
func (v *visit) Unwrap() http.ResponseWriter { return v.ResponseWriter }

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
	maps.Copy(w.ResponseWriter.Header(), w.header)
	w.sent = true
	w.ResponseWriter.WriteHeader(status)
}

func (w *onlyNotModified) Write(data []byte) (int, error) { return len(data), nil }
