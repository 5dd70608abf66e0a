package portal

import (
	"bytes"
	"cmp"
	"embed"
	"errors"
	"html/template"
	"net/http"
	"path"
	"strings"
	"time"

	"palmares/auth"
	"palmares/ent"
	"palmares/internal/problem"
	"palmares/internal/store"
)

//go:embed templates
var templateFiles embed.FS

// pages are the templates, each within the layout.
var pages = func() map[string]*template.Template {
	names, err := templateFiles.ReadDir("templates")
	if err != nil {
		panic(err) // it is embedded
	}
	layout := template.Must(template.New("layout.html").Funcs(template.FuncMap{
		"asset":   assetPath,
		"day":     func(t time.Time) string { return t.UTC().Format("2 January 2006") },
		"iso":     func(t time.Time) string { return t.UTC().Format(time.RFC3339) },
		"count":   thousands,
		"moment":  func(t time.Time) string { return t.UTC().Format("2 Jan 15:04:05") },
		"eventID": eventID,
	}).ParseFS(templateFiles, "templates/layout.html"))
	all := map[string]*template.Template{}
	for _, file := range names {
		if name := strings.TrimSuffix(file.Name(), ".html"); name != "layout" {
			all[name] = template.Must(template.Must(layout.Clone()).ParseFS(templateFiles, path.Join("templates", file.Name())))
		}
	}
	return all
}()

// page is what the layout shows around each page's own content.
type page struct {
	Service, Credit string
	Account         *ent.Account // nil where nobody is signed in
	Here            string       // the page's path, for the menu
	Notice          string       // what was just done
	Wrong           string       // what is wrong with the form
	Data            any
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
	return p.write(v, status, name, page{
		Service: p.ServiceName, Credit: p.Credit, Account: v.account, Here: v.URL.Path,
		Notice: notices[v.FormValue("done")], Wrong: text, Data: data,
	})
}

// write renders before it answers, so that a page is whole or not at all.
func (p *Portal) write(v *visit, status int, name string, content page) error {
	var body bytes.Buffer
	if err := pages[name].ExecuteTemplate(&body, "layout.html", content); err != nil {
		return err
	}
	v.w.Header().Set("Content-Type", "text/html; charset=utf-8")
	v.w.WriteHeader(status)
	_, _ = body.WriteTo(v.w)
	return nil
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
	"paying":    "Your payment may take a minute to show here.",
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
	data := trouble{Title: title(err), Text: said.Message, AskAgain: said.Code == problem.Gone}
	status := said.Code.Status()
	if status >= http.StatusInternalServerError {
		data.RequestID = problem.RequestID(v.Context())
		cause := said.Cause
		if cause == nil {
			cause = err
		}
		if v.Context().Err() == nil {
			p.Log.Error("a page could not be shown", "path", v.URL.Path, "cause", cause, "request_id", data.RequestID)
		}
	}
	if status == http.StatusServiceUnavailable {
		v.w.Header().Set("Retry-After", "60")
	}
	content := page{Service: p.ServiceName, Credit: p.Credit, Account: v.account, Here: v.URL.Path, Data: data}
	if err := p.write(v, status, "trouble", content); err != nil {
		p.Log.Error("the page of a problem is wrong", "cause", err)
		problem.Write(v.w, said)
	}
}
