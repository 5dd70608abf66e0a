package quota

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"palmares/internal/core/cache"
	"palmares/internal/core/limiter"
	"palmares/internal/core/middleware"
	"palmares/internal/core/problem"
)

// Caller describes whose quota a request counts against.
type Caller struct {
	Subject Subject
	Limit   int    // requests a day; 0 for unlimited
	Tier    string // sent as X-RateLimit-Tier; without one, no limits are sent
	Advice  string // follows the message that the quota is used up
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
	// Free reports whether an answer from the cache does not count, as often as FreeRate
	// allows. It may be nil.
	Free     func(*http.Request) bool
	FreeRate *limiter.Rate[Subject]
	// Record is called with 1 for each counted request, and with -1 if it is
	// uncounted later. It may be nil.
	Record func(r *http.Request, day Day, n int)
}

// visit is a request at the gate.
type visit struct {
	http.ResponseWriter
	gate     *Gate
	request  *http.Request
	caller   Caller
	now      time.Time
	day      Day
	count    int     // the caller's, with this request if it counts
	mark     Subject // counts what the request is for, or 0
	free     bool    // whether the request does not count
	executed bool
	kept     bool // counts, whatever the status of the response
	started  bool
}

func (g *Gate) visit(w http.ResponseWriter, r *http.Request) *visit {
	v := &visit{ResponseWriter: w, gate: g, request: r, caller: g.Caller(r), now: g.Now()}
	v.day = DayOf(v.now)
	if g.Once != nil {
		if name := g.Once(r); name != "" {
			v.mark = v.caller.Subject.mark(name)
		}
	}
	return v
}

// Count wraps the handlers whose requests are counted.
func (g *Gate) Count(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		v := g.visit(w, r)
		free := g.Free != nil && g.Free(r) && g.FreeRate.Take(v.caller.Subject, 1)
		if (free || conditional(r)) && v.fromCache(next, free) {
			return
		}
		if decision := v.enter(); !decision.Granted {
			v.reject(decision)
			return
		}
		next.ServeHTTP(v, r)
	})
}

// Take counts a call by itself, for a request that may contain several. It
// returns an error if the caller's quota is used up.
func (g *Gate) Take(w http.ResponseWriter, r *http.Request) error {
	v := g.visit(w, r)
	if decision := v.enter(); !decision.Granted {
		return v.spent(decision)
	}
	return nil
}

// fromCache sends a 304, or any successful response if that is free, if it takes no more
// than the cache, and reports whether it did.
func (v *visit) fromCache(next http.Handler, free bool) bool {
	r, body := v.request.WithContext(cache.WithCachedOnly(v.request.Context())), v.request.Body
	var read bytes.Buffer
	if r.Method == middleware.MethodQuery { // the body is read again
		r.Body = io.NopCloser(io.TeeReader(body, &read))
		v.request.Body = struct {
			io.Reader
			io.Closer
		}{io.MultiReader(&read, body), body}
	}
	only := &onlyFree{ResponseWriter: v.ResponseWriter, visit: v, header: http.Header{}, whole: free}
	next.ServeHTTP(only, r)
	return only.sent
}

// enter counts a request and sets the headers that report the quota.
func (v *visit) enter() Decision {
	ctx, store := v.request.Context(), v.gate.Store
	if v.free = v.mark != 0 && store.Count(ctx, v.mark, v.day) > 0; v.free {
		return v.pass()
	}
	decision := v.take()
	if decision.Granted && v.mark != 0 && store.Take(ctx, v.mark, v.day, 1) > 1 { // by a concurrent request
		v.uncount()
		v.free = true
		return v.pass()
	}
	return decision
}

// pass returns the decision on a request that does not count.
func (v *visit) pass() Decision {
	if v.caller.Tier != "" { // otherwise no limits are sent
		v.count = v.gate.Store.Count(v.request.Context(), v.caller.Subject, v.day)
		v.writeLimits(v.decide())
	}
	return Decision{Granted: true}
}

// take counts the request, unless it is rejected.
func (v *visit) take() Decision {
	v.count = v.gate.Store.Take(v.request.Context(), v.caller.Subject, v.day, v.caller.Limit)
	decision := v.decide()
	v.writeLimits(decision)
	if decision.Granted {
		v.record(1)
	}
	return decision
}

// uncount reverts take.
func (v *visit) uncount() {
	v.count--
	v.gate.Store.Refund(v.request.Context(), v.caller.Subject, v.day)
	v.record(-1)
}

func (v *visit) record(n int) {
	if v.gate.Record != nil {
		v.gate.Record(v.request, v.day, n)
	}
}

func (v *visit) decide() Decision { return Decide(v.now, v.day, v.caller.Limit, v.count) }

func (v *visit) reject(d Decision) {
	v.writePolicy(d)
	v.Header().Set("Retry-After", strconv.Itoa(int(d.RetryAfter/time.Second)))
	problem.Refuse(v.ResponseWriter, v.request, v.spent(d))
}

func (v *visit) spent(d Decision) error {
	words := fmt.Sprintf("The daily quota of %d requests is used up. It resets at %s. %s", v.caller.Limit, d.Reset.Format(time.RFC3339), v.caller.Advice)
	return problem.New(problem.QuotaSpent, "%s", strings.TrimSpace(words))
}

// refund uncounts the request if the status of its response is free.
func (v *visit) refund(status int) {
	ctx, store, limit := v.request.Context(), v.gate.Store, v.caller.Limit
	switch {
	case status == http.StatusTooManyRequests:
	case status == http.StatusUnauthorized && !v.executed:
	case status == http.StatusNotModified && conditional(v.request) &&
		(!v.executed || limit == 0 || store.Take(ctx, v.caller.Subject.refunds(), v.day, limit) <= limit):
	default:
		return
	}
	v.uncount()
	if v.mark != 0 {
		store.Refund(ctx, v.mark, v.day)
	}
	v.writeLimits(v.decide())
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
	if v, counts := cache.Unwrap[*visit](w); counts && v.free {
		if decision := v.take(); !decision.Granted {
			return v.spent(decision)
		}
		v.free, v.mark = false, 0 // the other request stays counted
	}
	return nil
}

// CountMore counts further requests, for a response that takes as much work as several. It
// returns an error, and counts none, if the quota does not suffice for all of them. The
// request itself stays counted, because it has done the first part of the work.
func CountMore(w http.ResponseWriter, n int) error {
	v, counts := cache.Unwrap[*visit](w)
	if !counts {
		return nil
	}
	v.kept = true
	if limit := v.caller.Limit; limit > 0 {
		used := v.gate.Store.Count(v.request.Context(), v.caller.Subject, v.day)
		if used+n > limit {
			return problem.New(problem.QuotaSpent, "This response counts as %d requests, but only %d of the daily quota of %d are left. It resets at %s.",
				n+1, max(0, limit-used+1), limit, v.decide().Reset.Format(time.RFC3339))
		}
	}
	for taken := range n {
		if decision := v.take(); !decision.Granted { // by a concurrent request
			for range taken {
				v.uncount()
			}
			return v.spent(decision)
		}
	}
	return nil
}

// ReportExecution is called by the cache for responses that required executing a query.
func (v *visit) ReportExecution() { v.executed = true }

// WriteHeader implements http.ResponseWriter.
func (v *visit) WriteHeader(status int) {
	if !v.started && !v.free && !v.kept {
		v.refund(status)
	}
	v.started = true
	v.ResponseWriter.WriteHeader(status)
}

// Unwrap lets http.ResponseController reach the connection.
func (v *visit) Unwrap() http.ResponseWriter { return v.ResponseWriter }

// onlyFree sends a 304, and a whole response if that is free, and drops every other response.
type onlyFree struct {
	http.ResponseWriter
	visit  *visit
	header http.Header // set by the handler
	whole  bool
	status int // 0 before it is written
	sent   bool
}

func (w *onlyFree) Header() http.Header { return w.header }

func (w *onlyFree) WriteHeader(status int) {
	if w.status != 0 {
		return
	}
	w.status = status
	if w.sent = status == http.StatusNotModified || status == http.StatusOK && w.whole; !w.sent {
		return
	}
	w.visit.pass()
	maps.Copy(w.ResponseWriter.Header(), w.header)
	w.ResponseWriter.WriteHeader(status)
}

func (w *onlyFree) Write(data []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	if w.sent {
		return w.ResponseWriter.Write(data)
	}
	return len(data), nil
}
