package quota

import (
	"context"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"palmares/auth"
	"palmares/internal/problem"
)

// Gate is the link of the chain that counts requests, and refuses those whose
// caller has had the day's quota.
type Gate struct {
	Store   Store
	Trusted []netip.Prefix // proxies
	Now     func() time.Time
}

// Count wraps what is counted.
func (g *Gate) Count(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		caller := auth.CallerFrom(r.Context())
		terms := caller.Plan.Terms()
		subject := Account(caller.Account)
		if caller.Key == "" {
			subject = Address(ClientAddress(r, g.Trusted))
		}
		now := g.Now()
		day := DayOf(now)
		count := g.take(r.Context(), caller, subject, day, terms.DailyQuota)
		decision := Decide(now, day, terms.DailyQuota, count)
		tell(w.Header(), terms, decision)
		if !decision.Granted {
			w.Header().Set("Retry-After", strconv.Itoa(int(decision.RetryAfter/time.Second)))
			problem.Refuse(w, r, problem.New(problem.QuotaSpent, "The quota of %d requests a day is spent: it is full again at %s.",
				terms.DailyQuota, decision.Reset.Format(time.RFC3339)))
			return
		}
		anything := slices.ContainsFunc(r.Header["If-None-Match"], anyTag) // tells headers without knowing any answer: that is no 304 to give back
		next.ServeHTTP(&giver{ResponseWriter: w, only401: anything, giveBack: func(header http.Header) {
			g.Store.GiveBack(r.Context(), subject, day)
			tell(header, terms, Decide(now, day, terms.DailyQuota, count-1))
		}}, r)
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

// anyTag tells whether a header matches whatever there is.
func anyTag(header string) bool { return strings.TrimSpace(header) == "*" }

// tell writes what is left into the headers, for callers with a key.
func tell(header http.Header, terms auth.Terms, d Decision) {
	if terms.Tier == "" {
		return
	}
	header["X-Ratelimit-Tier"] = []string{terms.Tier}
	if terms.DailyQuota > 0 {
		header["X-Ratelimit-Remaining"] = []string{strconv.Itoa(d.Remaining)}
		header["X-Ratelimit-Reset"] = []string{d.Reset.Format(time.RFC3339)}
	}
}

// giver gives a request back whose answer is that nothing changed, or that it
// needed a key.
type giver struct {
	http.ResponseWriter
	giveBack func(http.Header)
	only401  bool
	told     bool
}

func (w *giver) WriteHeader(status int) {
	if !w.told && (status == http.StatusNotModified && !w.only401 || status == http.StatusUnauthorized) {
		w.giveBack(w.Header())
	}
	w.told = true
	w.ResponseWriter.WriteHeader(status)
}

// Unwrap lets http.ResponseController reach the connection.
func (w *giver) Unwrap() http.ResponseWriter { return w.ResponseWriter }
