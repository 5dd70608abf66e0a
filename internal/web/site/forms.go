package site

import (
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"palmares/graph"
	"palmares/internal/core/lang"
	"palmares/internal/core/params"
	"palmares/internal/core/problem"
	"palmares/internal/core/text"
	"palmares/internal/web/page"
)

// correctForm responds to an invalid value in the form of a page: with the form,
// what was typed, and the error beside the field. For any other error it returns
// the error.
func (s *Site) correctForm(w http.ResponseWriter, r *http.Request, from *route, err error) error {
	p := problem.Of(err)
	if errors.As(err, new(rejectedForm)) && !page.WantsMarkdown(r) {
		form := s.routes[slices.IndexFunc(s.routes, func(rt route) bool { return rt.name == "choose" })]
		entered := r.URL.Query()
		for _, name := range from.pathParams() {
			entered.Set(name, r.PathValue(name))
		}
		return s.showForm(w, r, &form, entered, nil, nil) // with suggestions beside each unknown tool
	}
	name := p.Param
	if name == "search" { // of the executor
		name = "q"
	}
	typed, decodeErr := url.ParseQuery(r.URL.RawQuery)
	inForm := from.form && !slices.Contains([]string{"", "page", graph.AsOfName}, name) && decodeErr == nil && params.IsText(typed.Get(name))
	if !inForm || p.Code != problem.BadInput || page.WantsMarkdown(r) {
		return err
	}
	return s.showForm(w, r, from, url.Values{graph.AsOfName: {typed.Get(graph.AsOfName)}}, map[string]string{name: invalidText(lang.Of(r.Context()), name, typed.Get(name))}, typed)
}

// showForm shows the form of a page that loads with some parameters, with the errors of
// others and what was typed.
func (s *Site) showForm(w http.ResponseWriter, r *http.Request, route *route, valid url.Values, invalid map[string]string, typed url.Values) error {
	plain := r.Clone(r.Context())
	plain.URL.RawQuery = valid.Encode()
	req, err := route.parse(plain)
	if err != nil {
		return err
	}
	req.service, req.invalid = s.Service, invalid
	ctx, status := s.Visitors.Identify(r), http.StatusBadRequest
	release, err := s.Visitors.Start(ctx)
	if err != nil {
		return err
	}
	defer release()
	view, response, err := s.load(ctx, req)
	if rejected, ok := errors.AsType[rejectedForm](err); ok {
		status = rejected.status
	} else if err != nil {
		return err
	}
	for _, p := range route.params {
		if value := text.Truncate(strings.TrimSpace(typed.Get(p.Name)), maxText); value != "" && p.Name != "page" {
			req.query.Set(p.Name, value)
		}
	}
	content := s.content(ctx, req, view, response)
	content.NoIndex = true
	w.Header().Set("Cache-Control", "no-store")
	return templates.Write(w, status, req.name, content)
}

// invalidText says what a field accepts, in the words of the form.
func invalidText(l lang.Language, name, value string) string {
	value = params.Truncate(value)
	switch name {
	case "score_min":
		return l.Text("The minimum score must be a number from 0 to 10, such as 7.5 (got “%s”).", value)
	case "price_max":
		return l.Text("The maximum price must be an amount in euros, such as 20 (got “%s”).", value)
	case "q":
		return l.Text("Search for at most %d words and %d characters.", graph.MaxSearchWords, maxText)
	}
	return l.Text("“%s” is not a valid option. Choose one from the list.", value)
}

// Invalid returns the error of a field of the form, or "".
func (r *request) Invalid(name string) string { return r.invalid[name] }

// HasErrors reports whether the form has an invalid field.
func (r *request) HasErrors() bool { return len(r.invalid) > 0 }
