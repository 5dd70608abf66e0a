package page

import (
	"cmp"
	"fmt"
	"html/template"
	"net/http"
	"strconv"

	"palmares/internal/core/lang"
	"palmares/internal/core/problem"
)

// ErrorPage is the page of an error. What is empty follows from the error.
type ErrorPage struct {
	Title, Text string
	Suggestions []Suggestion
	More        Suggestion // a button; none if its path is ""
	Retry       string     // path of the "Try again" button
	RequestID   string
	Logged      bool // already
}

// Suggestion is a page that the visitor may have meant.
type Suggestion struct {
	Path, Name string
	Lang       template.HTMLAttr // language of Name if it is not English
}

var errorPages = NewTemplates(files, "templates", nil)

var errorTitles = map[problem.Code]lang.Message{
	problem.NotFound: "Page not found",
	problem.BadInput: "Invalid request",
	problem.TooMany:  "Too many requests",
}

// Handle returns a handler for GET and HEAD that sends errors as pages.
func (s Service) Handle(policy string, serve func(http.ResponseWriter, *http.Request) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		s.SetSecurityHeaders(w.Header(), policy)
		err := CheckMethod(w, r)
		if err == nil {
			err = serve(w, r)
		}
		if err != nil {
			s.Fail(w, r, err, s.Content(lang.Of(r.Context()), r.URL.Path, Head{}, nil), ErrorPage{})
		}
	}
}

// ErrNoDatabase returns the error for a database that does not respond.
func ErrNoDatabase(cause error) error {
	return &problem.Problem{Code: problem.Unavailable, Message: "Our database is unavailable at the moment. Try again in a minute.", Cause: cause}
}

// Fail sends the page of an error, and logs those of the server. Content has the language
// and the path of the page.
func (s Service) Fail(w http.ResponseWriter, r *http.Request, err error, content Content, data ErrorPage) {
	if r.Context().Err() != nil {
		return // the client has disconnected
	}
	reason, l := problem.Of(err), lang.Parse(string(content.Language))
	data.Title = cmp.Or(data.Title, l.Text(cmp.Or(errorTitles[reason.Code], "Something went wrong")))
	data.Text = cmp.Or(data.Text, reason.In(l))
	status := reason.Code.Status()
	switch {
	case status == http.StatusServiceUnavailable:
		w.Header().Set("Retry-After", "60")
	case reason.Code == problem.TooMany:
		w.Header().Set("Retry-After", strconv.Itoa(cmp.Or(reason.Seconds(), 2)))
	}
	if waits := status == http.StatusServiceUnavailable || status == http.StatusTooManyRequests; waits && r.Method == http.MethodGet {
		data.Retry = cmp.Or(data.Retry, WithQuery(r.URL.EscapedPath(), r.URL.RawQuery))
	}
	if status >= http.StatusInternalServerError {
		data.RequestID = problem.RequestID(r.Context())
		if !data.Logged {
			s.Log.ErrorContext(r.Context(), "page failed", "path", r.URL.Path, "cause", cmp.Or(reason.Cause, err), "request_id", data.RequestID)
		}
	}
	w.Header().Set("Cache-Control", "no-store")
	if WantsMarkdown(r) {
		w.Header().Set("Content-Type", MarkdownType)
		w.WriteHeader(status)
		_, _ = fmt.Fprintf(w, "# %s\n\n%s\n", data.Title, data.Text)
		for i, other := range append(data.Suggestions, data.More) {
			switch {
			case other.Path == "":
				continue
			case i == 0 && data.Suggestions != nil:
				_, _ = fmt.Fprintf(w, "\n## %s\n\n", l.Text("Did you mean…?"))
			case i == len(data.Suggestions):
				_, _ = fmt.Fprintln(w)
			}
			_, _ = fmt.Fprintf(w, "- [%s](%s)\n", other.Name, s.PublicURL+LocalPath(l, other.Path))
		}
		return
	}
	content.NoIndex, content.Data = true, data
	if err := errorPages.Write(w, status, "error", content); err != nil {
		s.Log.ErrorContext(r.Context(), "rendering error page failed", "cause", err, "request_id", data.RequestID)
		problem.Write(w, reason)
	}
}
