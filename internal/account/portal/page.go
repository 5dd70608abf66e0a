package portal

import (
	"cmp"
	"embed"
	"errors"
	"html/template"
	"net/http"
	"time"

	"palmares/auth"
	"palmares/internal/core/problem"
	"palmares/internal/core/store"
	"palmares/internal/web/page"
)

//go:embed templates
var templateFiles embed.FS

var pages = page.MustTemplates(templateFiles, "templates", template.FuncMap{
	"day":     func(t time.Time) string { return t.UTC().Format("2 January 2006") },
	"iso":     func(t time.Time) string { return t.UTC().Format(time.RFC3339) },
	"moment":  func(t time.Time) string { return t.UTC().Format("2 Jan 15:04:05") },
	"eventID": eventID,
})

// content is what the layout shows around every page of a visit.
func (p *Portal) content(v *visit, data any) page.Content {
	c := page.Content{Service: p.ServiceName, Credit: p.Credit, Here: v.URL.Path, Data: data}
	if v.account != nil {
		c.Person = v.account.Email
	}
	return c
}

// show answers with a page; wrong is what its form was refused for.
func (p *Portal) show(v *visit, name string, data any, wrong error) error {
	status, text := http.StatusOK, ""
	if wrong != nil {
		trouble := problem.Of(wrong)
		if trouble.Code.Status() >= http.StatusInternalServerError {
			return wrong
		}
		status, text = trouble.Code.Status(), trouble.Message
	}
	content := p.content(v, data)
	content.Notice, content.Wrong = notices[v.FormValue("done")], text
	return pages.Write(v.w, status, name, content)
}

// notices are what a page may say that one is sent to after a form.
var notices = map[string]string{
	"revoked":   "The key is revoked.",
	"email":     "Your address is changed.",
	"signedout": "You are signed out.",
	"deleted":   "Your account is deleted, with its keys.",
	"replayed":  "It is sent again within seconds.",
	"paused":    "The endpoint is paused.",
	"resumed":   "The endpoint is on: what comes from now on is sent.",
	"removed":   "The endpoint is removed.",
	"everyone":  "You are signed out in every browser.",
	paying:      "Your payment may take a minute to show here.",
}

// title is what the page of a problem is headed with.
func title(err error) string {
	switch {
	case errors.Is(err, auth.ErrUnknownLink):
		return "This link is not known"
	case errors.Is(err, auth.ErrExpired):
		return "This link has expired"
	case errors.Is(err, auth.ErrUsed):
		return "This link was used already"
	case errors.Is(err, auth.ErrOtherAccount):
		return "This link is another account's"
	case errors.Is(err, auth.ErrTaken):
		return "This address is taken"
	case errors.Is(err, auth.ErrSameAddress):
		return "This is your address already"
	}
	return http.StatusText(problem.Of(err).Code.Status())
}

// trouble is the data of the page of a problem.
type trouble struct {
	Title, Text string
	AskAgain    bool   // another message would help
	RequestID   string // for what only we can mend
}

const (
	saidAway   = "Our database does not answer at the moment. Nothing was changed: try again in a minute."
	saidUnsure = "Our database was lost at the last moment, so we do not know whether this was done. Look before you try again in a minute."
)

// fail answers with the page of a problem. Its cause is for the log alone.
func (p *Portal) fail(v *visit, err error) {
	var fault *store.Fault
	if errors.As(err, &fault) {
		said := saidAway
		if fault.Unsure {
			said = saidUnsure
		}
		err = &problem.Problem{Code: problem.Unavailable, Message: said, Cause: cmp.Or(fault.Cause, err)}
	}
	said := problem.Of(err)
	if said.Code.Status() >= http.StatusInternalServerError && v.Context().Err() == nil {
		cause := said.Cause
		if cause == nil {
			cause = err
		}
		p.Log.ErrorContext(v.Context(), "a page could not be shown", "path", v.URL.Path, "cause", cause, "request_id", problem.RequestID(v.Context()))
	}
	p.showTrouble(v, err)
}

// Refuse writes the error page for a request that was refused before it
// reached the portal. It logs nothing.
func (p *Portal) Refuse(w http.ResponseWriter, r *http.Request, err error) {
	p.guard(w.Header())
	p.showTrouble(&visit{Request: r, w: w}, err)
}

func (p *Portal) showTrouble(v *visit, err error) {
	said := problem.Of(err)
	data := trouble{Title: title(err), Text: said.Message, AskAgain: said.Code == problem.Gone}
	status := said.Code.Status()
	if status >= http.StatusInternalServerError {
		data.RequestID = problem.RequestID(v.Context())
	}
	if status == http.StatusServiceUnavailable {
		v.w.Header().Set("Retry-After", "60")
	}
	if err := pages.Write(v.w, status, "trouble", p.content(v, data)); err != nil {
		p.Log.ErrorContext(v.Context(), "the page of a problem is wrong", "cause", err, "request_id", problem.RequestID(v.Context()))
		problem.Write(v.w, said)
	}
}
