package portal

import (
	"encoding/json"
	"html/template"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"palmares/auth"
	"palmares/internal/core/lang"
	"palmares/internal/core/problem"
	"palmares/internal/transport/saved"
	"palmares/internal/web/page"
)

// maxQueryForm is the maximum size of a form with a query, in bytes: form encoding
// can triple the length of a query.
const maxQueryForm = 3*saved.MaxDocument + MaxForm

func (p *Portal) showQueries(v *visit) error {
	all, err := p.Queries.List(v.Context(), v.account)
	if err != nil {
		return err
	}
	return p.show(v, "queries", all)
}

// queryForm is the data of the form that creates or edits a query.
type queryForm struct {
	saved.NewQuery
	Variables                string         // of the explorer
	Columns                  []saved.Column // the columns of the result
	Edited                   *saved.Query   // nil for a new one
	IsPreview                bool
	Preview                  template.HTML // of the result, if it was requested
	Explorer                 string
	MaxTitle, MaxDescription int
}

// draftPath is the form for a query that is not saved yet. The explorer sends queries to
// it. Browsers store them while their users sign in.
const draftPath = "/account/queries/new"

var errSignInFirst = problem.New(problem.Unauthenticated, "Sign in first, then return to the explorer and save the query.")

// showQueryForm shows a query that is not saved yet, with what it suggests for the rest.
func (p *Portal) showQueryForm(v *visit) error {
	form := typedQuery(v)
	if form.Text == "" && v.FormValue("draft") != "" { // the browser has it
		return p.show(v, "draft", nil)
	}
	return p.showForm(v, nil, form)
}

// draft returns what a query suggests: nothing if it is not valid, which is an error when it
// is saved. The visitor pays for validating it.
func (p *Portal) draft(v *visit, text string) (*saved.Draft, error) {
	done, err := p.Charge(v.Request)
	if err != nil {
		return nil, err
	}
	defer done()
	draft, err := p.Queries.Draft(text, nil)
	if err != nil {
		draft = &saved.Draft{}
	}
	return draft, nil
}

func typedQuery(v *visit) queryForm {
	return queryForm{Variables: v.FormValue("variables"), NewQuery: saved.NewQuery{
		Name: strings.TrimSpace(v.FormValue("name")), Handle: strings.TrimSpace(v.FormValue("handle")),
		Text: v.FormValue("query"), Title: v.FormValue("title"), Description: v.FormValue("description"),
		Chart:  saved.Chart{Kind: v.FormValue("chart"), X: v.FormValue("x"), Y: v.FormValue("y"), Series: v.FormValue("series")},
		Public: v.FormValue("private") == "", Edits: v.PostFormValue("edits") != "",
	}}
}

// showForm shows a query with the columns of its result. A new one, without a form that
// was sent, has what its text suggests.
func (p *Portal) showForm(v *visit, edited *saved.Query, form queryForm) error {
	draft, err := p.draft(v, form.Text)
	if err != nil {
		return err
	}
	if v.URL.Path == draftPath {
		form.Name, form.Title, form.Description, form.Chart = draft.Name, draft.Title, draft.Description, draft.Chart
	}
	form.Columns = draft.Columns
	form.Edited, form.MaxTitle, form.MaxDescription = edited, saved.MaxTitle, saved.MaxDescription
	form.Explorer = page.ExplorerURL(form.Text, form.Variables)
	return p.show(v, "queryform", form)
}

func (p *Portal) saveQuery(v *visit) error {
	form := typedQuery(v)
	form.Count = func() error { return p.Count(v.w, v.asCaller()) }
	var variables map[string]any
	_ = json.Unmarshal([]byte(form.Variables), &variables) // the explorer's; without them the query has its defaults
	if form.IsPreview = v.PostFormValue("preview") != ""; form.IsPreview {
		form.Preview, v.invalid = p.preview(v, form.NewQuery, variables)
		return p.showTyped(v, form)
	}
	q, err := p.Queries.Save(v.Context(), v.account, form.NewQuery)
	if err != nil {
		return p.showTyped(v.rejected(err), form)
	}
	target := "/account/queries/" + q.Name + "?done=querysaved"
	if draft, err := p.Queries.Draft(form.Text, variables); err == nil && draft.Parameters != "" {
		target += "&with=" + url.QueryEscape(draft.Parameters)
	}
	return p.redirect(v, target)
}

// showTyped shows a form with a query as it was sent.
func (p *Portal) showTyped(v *visit, form queryForm) error {
	var edited *saved.Query
	if form.Edits {
		edited, _ = p.Queries.Find(v.Context(), v.account, form.Name) // if it was deleted meanwhile, it is a new one
	}
	return p.showForm(v, edited, form)
}

// preview runs a query once and draws its result. It costs what a run costs: it counts
// against the quota, and drawing it is charged to the visitor like a page.
func (p *Portal) preview(v *visit, typed saved.NewQuery, variables map[string]any) (template.HTML, error) {
	done, err := p.Charge(v.Request)
	if err != nil {
		return "", err
	}
	defer done()
	view, err := p.Queries.Preview(v.Context(), v.account, typed, variables)
	if err != nil {
		return "", err
	}
	return p.Preview(v.Context(), lang.Of(v.Context()), p.Queries, view)
}

// asCaller returns the request as one of the account to the API.
func (v *visit) asCaller() *http.Request {
	caller := auth.CallerOf(v.account, "browser")
	caller.Browser = true
	return v.Clone(auth.WithCaller(v.Context(), caller))
}

func (p *Portal) query(v *visit) (*saved.Query, error) {
	return p.Queries.Find(v.Context(), v.account, v.PathValue("name"))
}

type queryPage struct {
	*saved.Query
	Text       string
	Explorer   string
	Parameters string // the explorer's variables when the query was saved, as a query string
	HasTable   bool
	Token      string // a new token, which is shown once
}

func (p *Portal) showQuery(v *visit, q *saved.Query) error {
	text, err := p.Queries.Text(v.Context(), q)
	if err != nil {
		return err
	}
	data := queryPage{Query: q, Text: text, Explorer: page.ExplorerURL(text, ""), Token: v.token}
	if with, err := url.ParseQuery(v.FormValue("with")); err == nil {
		data.Parameters = with.Encode()
	}
	draft, err := p.draft(v, text)
	if err != nil {
		return err
	}
	data.HasTable = len(draft.Columns) > 0
	return p.show(v, "query", data)
}

func (p *Portal) editQuery(v *visit, q *saved.Query) error {
	text, err := p.Queries.Text(v.Context(), q)
	if err != nil {
		return err
	}
	return p.showForm(v, q, queryForm{NewQuery: saved.NewQuery{Name: q.Name, Text: text, Title: q.Title, Description: q.Description, Chart: q.Chart, Public: q.Public}})
}

// createToken shows the token once, so it cannot redirect.
func (p *Portal) createToken(v *visit, q *saved.Query) error {
	token, err := p.Queries.SetToken(v.Context(), v.account, q.Name)
	if err != nil {
		return err
	}
	v.token = token
	p.Keyring.ForgetAccount(v.account.ID)
	if q, err = p.Queries.Find(v.Context(), v.account, q.Name); err != nil {
		return err
	}
	return p.showQuery(v, q)
}

func (p *Portal) revokeToken(v *visit, q *saved.Query) error {
	return p.changed(v, p.Queries.RevokeToken(v.Context(), v.account, q.Name), "/account/queries/"+q.Name+"?done=tokenrevoked")
}

func (p *Portal) deleteQuery(v *visit, q *saved.Query) error {
	return p.changed(v, p.Queries.Delete(v.Context(), v.account, q.Name), "/account/queries?done=querydeleted")
}

// FormLimit returns the maximum size of the form of a request.
func FormLimit(r *http.Request) int64 {
	if slices.Contains([]string{"/account/queries", draftPath}, r.URL.Path) {
		return maxQueryForm
	}
	return MaxForm
}
