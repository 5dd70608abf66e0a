package quota

import (
	"context"
	"net/http"
	"net/netip"
	"strconv"
	"time"

	"palmares/auth"
	"palmares/internal/core/cache"
	"palmares/internal/core/problem"
)

// Gate is the middleware that counts requests, and rejects those whose caller
// has used up the day's quota.
type Gate struct {
	Store   Store
	Trusted []netip.Prefix // proxies
	Now     func() time.Time
}

// visit is one request at the gate.
type visit struct {
	gate    *Gate
	request *http.Request
	subject Subject
	terms   auth.Terms
	now     time.Time
	day     Day
	count   int
}

// Count wraps the handlers whose requests are counted.
func (g *Gate) Count(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		caller := auth.CallerFrom(r.Context())
		v := &visit{gate: g, request: r, subject: Account(caller.Account), terms: caller.Plan.Terms(), now: g.Now()}
		if caller.Key == "" {
			v.subject = Address(ClientAddress(r, g.Trusted))
		}
		v.day = DayOf(v.now)
		v.count = g.take(r.Context(), caller, v.subject, v.day, v.terms.DailyQuota)
		decision := v.decide(v.count)
		writeLimits(w.Header(), v.terms, decision)
		switch {
		case decision.Granted:
			next.ServeHTTP(&refunder{ResponseWriter: w, visit: v}, r)
		case conditional(r):
			// A 304 from the cache costs next to nothing and is free anyway.
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

// take counts a request on top of what deleted accounts with the caller's
// address used that day.
func (g *Gate) take(ctx context.Context, caller auth.Caller, subject Subject, day Day, quota int) int {
	if quota == 0 || caller.Carried == 0 || caller.CarriedDay != day.String() {
		return g.Store.Take(ctx, subject, day, quota)
	}
	if caller.Carried >= quota {
		return caller.Carried + 1 // nothing is left, and a quota of 0 would be unlimited
	}
	return caller.Carried + g.Store.Take(ctx, subject, day, quota-caller.Carried)
}

func (v *visit) decide(count int) Decision { return Decide(v.now, v.day, v.terms.DailyQuota, count) }

func (v *visit) reject(w http.ResponseWriter, d Decision) {
	w.Header().Set("Retry-After", strconv.Itoa(int(d.RetryAfter/time.Second)))
	problem.Refuse(w, v.request, problem.New(problem.QuotaSpent, "The daily quota of %d requests is used up. It resets at %s.",
		v.terms.DailyQuota, d.Reset.Format(time.RFC3339)))
}

// refund uncounts a request, and reports whether it did. A 304 that had to be
// executed costs as much as any response, so a caller gets no more of them
// refunded in a day than the quota has requests.
func (v *visit) refund(executed bool) bool {
	ctx := v.request.Context()
	if quota := v.terms.DailyQuota; executed && quota > 0 && v.gate.Store.Take(ctx, v.subject.refunds(), v.day, quota) > quota {
		return false
	}
	v.gate.Store.GiveBack(ctx, v.subject, v.day)
	return true
}

// conditional reports whether a request can be answered with a 304 by a client
// that holds the response. "*" matches without holding one.
func conditional(r *http.Request) bool {
	tags := r.Header["If-None-Match"]
	return len(tags) > 0 && !cache.AnyTag(tags) && (r.Method == http.MethodGet || r.Method == http.MethodHead)
}

// writeLimits sets the headers that report what is left, for callers with a
// key.
func writeLimits(header http.Header, terms auth.Terms, d Decision) {
	if terms.Tier == "" {
		return
	}
	header["X-Ratelimit-Tier"] = []string{terms.Tier}
	if terms.DailyQuota > 0 {
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
		writeLimits(w.Header(), w.visit.terms, w.visit.decide(w.visit.count-1))
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
