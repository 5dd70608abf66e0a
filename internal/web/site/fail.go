package site

import (
	"errors"
	"net/http"
	"strings"

	"palmares/internal/core/problem"
)

// trouble is the data of the page of a problem.
type trouble struct {
	Title, Text string
	Nearest     []suggestion
	RequestID   string // for what only we can mend
}

// titles are what the page of a problem is headed with.
var titles = map[problem.Code]string{
	problem.NotFound:    "There is no such page",
	problem.BadInput:    "This cannot be asked",
	problem.TooMany:     "Too much at once",
	problem.Unavailable: "The catalog does not answer",
	problem.Timeout:     "The catalog does not answer",
}

const saidAway = "Our database does not answer at the moment. Pages that were read a short while ago still work: try this one again in a minute."

// fail answers with the page of a problem; shown is nil for a path that
// nobody has.
func (s *Site) fail(w http.ResponseWriter, r *http.Request, shown *shown, err error) {
	var moved movedTo
	if errors.As(err, &moved) {
		w.Header().Set("Cache-Control", "no-store")
		http.Redirect(w, r, string(moved), http.StatusFound) // it may come back
		return
	}
	if r.Context().Err() != nil {
		return // nobody waits for it
	}
	said := problem.Of(err)
	w.Header().Set("Cache-Control", "no-store")
	if !strings.Contains(r.Header.Get("Accept"), "text/html") && shown == nil {
		problem.Write(w, said)
		return
	}
	data := trouble{Title: titles[said.Code], Text: said.Message}
	if data.Title == "" {
		data.Title = http.StatusText(said.Code.Status())
	}
	switch status := said.Code.Status(); {
	case said.Code == problem.NotFound:
		data.Nearest = s.nearest(s.withVisitor(r), r, shown)
	case said.Code == problem.TooMany:
		w.Header().Set("Retry-After", "2")
	case status == http.StatusServiceUnavailable:
		data.Text = saidAway
		w.Header().Set("Retry-After", "60")
		fallthrough
	case status >= http.StatusInternalServerError:
		data.RequestID = problem.RequestID(r.Context())
		cause := said.Cause
		if cause == nil {
			cause = err
		}
		s.Log.ErrorContext(r.Context(), "a page could not be shown", "path", r.URL.Path, "cause", cause, "request_id", data.RequestID)
	}
	if err := templates.Write(w, said.Code.Status(), "trouble", s.content(r.URL.Path, data)); err != nil {
		s.Log.ErrorContext(r.Context(), "the page of a problem is wrong", "cause", err, "request_id", problem.RequestID(r.Context()))
		problem.Write(w, said)
	}
}
