package main

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"palmares/internal/account/billing"
	"palmares/internal/account/portal"
	"palmares/internal/core/middleware"
	"palmares/internal/core/problem"
	"palmares/internal/web/page"
)

// responseTime is how long a page may take to start its response. Every
// request is to have one within 10 seconds, also while the database is frozen.
const responseTime = 8 * time.Second

// bound limits the size and the time of requests.
func (p *program) bound(next http.Handler) http.Handler {
	return middleware.Chain(next,
		middleware.LimitBody(bodyLimit, p.refuse),
		middleware.When(bounded, middleware.Deadline(responseTime, p.log, p.refuse)),
	)
}

// bounded reports whether responseTime applies to a request: to all but the
// API, which has limits of its own and streams, and assets, which are in
// memory.
func bounded(r *http.Request) bool {
	path := r.URL.Path
	return path != "/graphql" && path != "/api" && !strings.HasPrefix(path, "/api/") && !strings.HasPrefix(path, page.AssetsPath)
}

// bodyLimit returns how many bytes of a body a request may have; see
// middleware.LimitBody.
func bodyLimit(r *http.Request) int64 {
	switch path := r.URL.Path; {
	case path == "/graphql":
		return -1 // its handler refuses in GraphQL's own form
	case path == billing.EventsPath:
		return billing.MaxEvent
	case inPortal(path):
		return portal.MaxForm
	case r.Method == http.MethodGet || r.Method == http.MethodHead:
		return 0
	}
	return -1 // its handler refuses the method
}

// inPortal reports whether a path is one of the portal's.
func inPortal(path string) bool {
	return slices.ContainsFunc(portal.Paths, func(known string) bool {
		return path == known || strings.HasSuffix(known, "/") && strings.HasPrefix(path, known)
	})
}

// refuse writes an error as people or programs read it.
func (p *program) refuse(w http.ResponseWriter, r *http.Request, err error) {
	if inPortal(r.URL.Path) || strings.Contains(r.Header.Get("Accept"), "text/html") && !counted(r) {
		p.people.portal.Refuse(w, r, err)
		return
	}
	problem.Refuse(w, r, err)
}
