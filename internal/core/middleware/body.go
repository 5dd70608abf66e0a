package middleware

import (
	"net/http"

	"palmares/internal/core/problem"
)

// LimitBody refuses a request whose declared body is larger than its path
// takes, before anything reads it: the first read makes net/http send "100
// Continue", which invites the client to send all of it. Where limit returns
// 0, bodies of any size and of unknown length are refused; where it is
// negative, the handler decides. A body of unknown length is for the handler to
// cut.
func LimitBody(limit func(*http.Request) int64, refuse Refuse) Link {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.ContentLength == 0 { // nearly always
				next.ServeHTTP(w, r)
				return
			}
			switch most := limit(r); {
			case most == 0:
				refuse(w, r, problem.New(problem.TooLarge, "This path takes no request body. Send the request without one."))
			case most > 0 && r.ContentLength > most:
				refuse(w, r, problem.New(problem.TooLarge, "The request body has %d bytes. At most %d are allowed.", r.ContentLength, most))
			default:
				next.ServeHTTP(w, r)
			}
		})
	}
}
