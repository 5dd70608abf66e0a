package portal

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"palmares/auth"
	"palmares/internal/transport/saved"
)

// maxQueryForm is the maximum size of a form with a query, in bytes: form encoding
// can triple the length of a query.
const maxQueryForm = 3*saved.MaxDocument + MaxForm

type queriesPage struct {
	Queries []*saved.Query
	Plan    auth.Plan
	Handle  string
}

func (p *Portal) showQueries(v *visit) error {
	queries, err := p.Queries.List(v.Context(), v.account)
	if err != nil {
		return err
	}
	return p.show(v, "queries", queriesPage{queries, auth.Plan(v.account.Plan), handleOf(v)})
}

func handleOf(v *visit) string {
	if v.account.Handle == nil {
		return ""
	}
	return *v.account.Handle
}

// queryForm is the data of the form that creates or edits a query.
type queryForm struct {
	Name, Text, Description string
	Private                 bool
	Handle                  string // typed, if the account has none
	HasHandle               bool
	Edits                   *saved.Query // nil for a new one
	Explorer                string
}

// showQueryForm shows what was typed before, or what the explorer sent.
func (p *Portal) showQueryForm(v *visit) error {
	return p.showForm(v, nil, typedQuery(v))
}

func typedQuery(v *visit) queryForm {
	return queryForm{
		Name: v.FormValue("name"), Text: v.FormValue("query"), Description: v.FormValue("description"), Private: v.FormValue("private") != "", Handle: v.FormValue("handle"),
	}
}

func (p *Portal) showForm(v *visit, edits *saved.Query, form queryForm) error {
	form.HasHandle, form.Edits = v.account.Handle != nil, edits
	form.Explorer = "/explorer?" + url.Values{"query": {form.Text}}.Encode()
	return p.show(v, "queryform", form)
}

func (p *Portal) saveQuery(v *visit) error {
	q, err := p.Queries.Save(v.Context(), v.account, saved.NewQuery{
		Name: strings.TrimSpace(v.PostFormValue("name")), Handle: strings.TrimSpace(v.PostFormValue("handle")), Text: v.PostFormValue("query"),
		Description: v.PostFormValue("description"), Public: v.PostFormValue("private") == "", Count: func() error { return p.count(v) },
	})
	if err != nil {
		v.invalid = err
		if v.PostFormValue("edits") != "" {
			if edited, err := p.Queries.Find(v.Context(), v.account, v.PostFormValue("name")); err == nil {
				return p.showForm(v, edited, typedQuery(v))
			}
		}
		return p.showQueryForm(v)
	}
	return p.redirect(v, "/account/queries/"+q.Name+"?done=querysaved")
}

// count counts a visit against the quota of the account, like a request of the explorer.
func (p *Portal) count(v *visit) error {
	if p.Count == nil {
		return nil
	}
	caller := auth.CallerOf(v.account, "browser")
	caller.Browser = true
	return p.Count(v.w, v.WithContext(auth.WithCaller(v.Context(), caller)))
}

func (p *Portal) query(v *visit) (*saved.Query, error) {
	return p.Queries.Find(v.Context(), v.account, v.PathValue("name"))
}

type queryPage struct {
	*saved.Query
	Text     string
	Explorer string
	Token    string // a new token, which is shown once
}

func (p *Portal) showQuery(v *visit, q *saved.Query) error { return p.showWithToken(v, q, "") }

func (p *Portal) showWithToken(v *visit, q *saved.Query, token string) error {
	text, err := p.Queries.Text(v.Context(), q)
	if err != nil {
		return err
	}
	return p.show(v, "query", queryPage{q, text, "/explorer?" + url.Values{"query": {text}}.Encode(), token})
}

func (p *Portal) editQuery(v *visit, q *saved.Query) error {
	text, err := p.Queries.Text(v.Context(), q)
	if err != nil {
		return err
	}
	return p.showForm(v, q, queryForm{Name: q.Name, Text: text, Description: q.Description, Private: !q.Public})
}

// createToken shows the token once, so it cannot redirect.
func (p *Portal) createToken(v *visit, q *saved.Query) error {
	token, err := p.Queries.SetToken(v.Context(), v.account, q.Name)
	if err != nil {
		return err
	}
	if q, err = p.Queries.Find(v.Context(), v.account, q.Name); err != nil {
		return err
	}
	return p.showWithToken(v, q, token)
}

func (p *Portal) revokeToken(v *visit, q *saved.Query) error {
	if err := p.Queries.RevokeToken(v.Context(), v.account, q.Name); err != nil {
		return err
	}
	return p.redirect(v, fmt.Sprintf("/account/queries/%s?done=tokenrevoked", q.Name))
}

func (p *Portal) deleteQuery(v *visit, q *saved.Query) error {
	if err := p.Queries.Delete(v.Context(), v.account, q.Name); err != nil {
		return err
	}
	return p.redirect(v, "/account/queries?done=querydeleted")
}

// FormLimit returns the maximum size of the form of a request.
func FormLimit(r *http.Request) int64 {
	if slices.Contains([]string{"/account/queries", "/account/queries/new"}, r.URL.Path) {
		return maxQueryForm
	}
	return MaxForm
}
