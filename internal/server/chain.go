package server

import (
	"net/http"

	"palmares/internal/account/portal"
	"palmares/internal/core/edge"
	"palmares/internal/core/middleware"
	"palmares/internal/core/negotiate"
	"palmares/internal/core/problem"
	"palmares/internal/web/page"
	"palmares/internal/web/status"
	"palmares/internal/web/visitor"
)

// newChain returns the mounts behind the middleware chain. The order of the chain is the
// security policy; what a link does is in the policy of the request's route.
func newChain(cfg Config, mounts *routes, e *engine, a *access, account *portal.Portal, budgets *visitor.Limiter, availability *status.Recorder, t telemetry, st *state) http.Handler {
	refuse := func(w http.ResponseWriter, r *http.Request, err error) { writeError(w, r, account, err) }
	observers := append(t.observers(), func(o middleware.Observed) {
		if routeOf(o.Request).servesData(o.Request) {
			availability.Observe(o.Status, o.Took)
		}
	})
	return middleware.Chain(mounts,
		st.closeWhenDraining,                  // outermost, so that every response of a draining server closes its connection
		mounts.find,                           // before everything that uses the route
		middleware.RequestID,                  // before the log, which includes the ID
		t.middleware,                          // before the log, which includes the trace ID
		middleware.Log(cfg.Log, observers...), // outside Recover, so that panics are logged with a status too
		middleware.Recover(cfg.Log),           // outside everything that can panic
		edge.Middleware(e.cache.Newest, cfg.Edge.URL != ""), // outside everything that sends a public response
		page.Localize, // before everything that uses the path, which no longer includes the language
		when(func(p *policy) bool { return p.cors }, middleware.CORS),                                                                         // before any rejection, so that browsers can read the error
		when(func(p *policy) bool { return p.described }, linkDescriptions(cfg.PublicURL)),                                                    // before any handler, which may add links of its own
		when(func(p *policy) bool { return p.explorer }, middleware.When(lacksOperation, showExplorer)),                                       // before the quota, because it is not a request for data
		when(func(p *policy) bool { return p.explorer }, problem.ForGraphQL),                                                                  // before everything that refuses requests for data
		when((*policy).identifies, a.keyring.Identify),                                                                                        // before the quota, which depends on the caller
		middleware.When(func(r *http.Request) bool { return routeOf(r).counts(r) }, a.quota.Count),                                            // before any work, so that over-quota requests cost nothing
		middleware.LimitBody(func(r *http.Request) int64 { return routeOf(r).maxBody(r) }, refuse),                                            // after the quota, so that rejected requests count too
		middleware.When(func(r *http.Request) bool { return routeOf(r).hasDeadline(r) }, middleware.Deadline(pageDeadline, cfg.Log, refuse)),  // outside only what takes time
		when(func(p *policy) bool { return p.pays == eachPage }, func(next http.Handler) http.Handler { return budgets.Limit(next, refuse) }), // innermost, so that visitors pay only for the handler
	)
}

// when applies middleware to the requests whose route has a policy.
func when(applies func(*policy) bool, wrap middleware.Middleware) middleware.Middleware {
	return middleware.When(func(r *http.Request) bool { return applies(&routeOf(r).policy) }, wrap)
}

// writeError writes an HTML page to browsers and JSON to programs.
func writeError(w http.ResponseWriter, r *http.Request, account *portal.Portal, err error) {
	rt := routeOf(r)
	if rt.callers == session || negotiate.Named(r.Header["Accept"], "text/html") > 0 && !rt.identifies() {
		account.Refuse(w, r, err)
		return
	}
	problem.Refuse(w, r, err)
}
