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

// The data of a template is the type whose name ends in Page beside its handler.
//
//go:embed templates
var templateFiles embed.FS

var pages = page.MustTemplates(templateFiles, "templates", template.FuncMap{
	"day":     func(t time.Time) string { return t.UTC().Format("2 January 2006") },
	"iso":     func(t time.Time) string { return t.UTC().Format(time.RFC3339) },
	"moment":  func(t time.Time) string { return t.UTC().Format("2 Jan 15:04:05") },
	"eventID": eventID,
})

// notices are shown by the page that a form redirects to with ?done=.
var notices = map[string]string{
	"revoked":   "The key was revoked.",
	"email":     "Your email address was changed.",
	"signedout": "You are signed out.",
	"deleted":   "Your account and its keys were deleted.",
	"replayed":  "The events will be sent again within a few seconds.",
	"paused":    "The endpoint is paused.",
	"resumed":   "The endpoint is enabled. New events are sent from now on.",
	"removed":   "The endpoint was removed.",
	"everyone":  "You are signed out of all browsers.",
	paying:      "Your payment may take a minute to show here.",
}

func (p *Portal) content(v *visit, data any) page.Content {
	c := page.Content{Service: p.ServiceName, Credit: p.Credit, Path: v.URL.Path, Data: data}
	if v.account != nil {
		c.Email = v.account.Email
	}
	return c
}

// show writes a page. If a form was rejected, the page shows why.
func (p *Portal) show(v *visit, name string, data any) error {
	status, content := http.StatusOK, p.content(v, data)
	content.Notice = notices[v.FormValue("done")]
	if v.invalid != nil {
		reason := problem.Of(v.invalid)
		if status = reason.Code.Status(); status >= http.StatusInternalServerError {
			return v.invalid
		}
		content.FormError = reason.Message
	}
	return pages.Write(v.w, status, name, content)
}

var errorTitles = map[*problem.Problem]string{
	auth.ErrUnknownLink:  "Invalid link",
	auth.ErrExpired:      "This link has expired",
	auth.ErrUsed:         "This link was already used",
	auth.ErrOtherAccount: "This link belongs to another account",
	auth.ErrTaken:        "This email address is taken",
	auth.ErrSameAddress:  "This is already your email address",
}

// fail logs a server error and writes an error page, which never shows the cause.
func (p *Portal) fail(v *visit, err error) {
	var fault *store.Fault
	if errors.As(err, &fault) {
		message := "Our database is unavailable. Nothing was changed. Try again in a minute."
		if fault.Unsure {
			message = "We lost the connection to our database, so your change may or may not have been saved. Check before you try again."
		}
		err = &problem.Problem{Code: problem.Unavailable, Message: message, Cause: cmp.Or(fault.Cause, err)}
	}
	if reason := problem.Of(err); reason.Code.Status() >= http.StatusInternalServerError && v.Context().Err() == nil {
		p.Log.ErrorContext(v.Context(), "account page failed", "path", v.URL.Path, "cause", cmp.Or(reason.Cause, err), "request_id", problem.RequestID(v.Context()))
	}
	p.showError(v, err)
}

// Refuse writes the error page for a request that was rejected before it
// reached the portal. It logs nothing.
func (p *Portal) Refuse(w http.ResponseWriter, r *http.Request, err error) {
	p.setHeaders(w.Header())
	p.showError(&visit{Request: r, w: w}, err)
}

func (p *Portal) showError(v *visit, err error) {
	reason := problem.Of(err)
	status := reason.Code.Status()
	data := page.ErrorPage{Title: cmp.Or(errorTitles[reason], http.StatusText(status)), Text: reason.Message}
	if reason.Code == problem.Gone { // a new email helps
		data.Retry = "/login"
	}
	if status >= http.StatusInternalServerError {
		data.RequestID = problem.RequestID(v.Context())
	}
	if status == http.StatusServiceUnavailable {
		v.w.Header().Set("Retry-After", "60")
	}
	pages.WriteError(v.w, v.Request, p.Log, reason, p.content(v, data))
}
