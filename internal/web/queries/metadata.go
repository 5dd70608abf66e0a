package queries

import (
	"context"
	"net/http"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"palmares/internal/core/cache"
	"palmares/internal/core/lang"
	"palmares/internal/core/problem"
	items "palmares/internal/core/table"
	"palmares/internal/transport/saved"
	"palmares/internal/web/chart"
	"palmares/internal/web/page"
)

// resource describes the CSV of a query, as in the Data Resource and the Table Schema of
// Frictionless Data, so that programs need not guess the types of its columns.
type resource struct {
	Profile     string    `json:"profile"`
	Name        string    `json:"name"`
	Title       string    `json:"title,omitzero"`
	Description string    `json:"description,omitzero"`
	Path        string    `json:"path"`
	MediaType   string    `json:"mediatype"`
	Encoding    string    `json:"encoding"`
	Rows        *int      `json:"rows,omitempty"` // of the path; for a whole list, with a key or token
	Release     int       `json:"release"`
	Date        string    `json:"date"`
	Licenses    []license `json:"licenses"`
	Schema      struct {
		Fields        []items.Field `json:"fields"`
		MissingValues []string      `json:"missingValues"`
	} `json:"schema"`
}

type license struct {
	Title string `json:"title"`
	Path  string `json:"path"`
}

// unitNames are the units of columns for programs.
var unitNames = map[chart.Unit]string{chart.Score: "/10", chart.Euros: "EUR", chart.Percent: "%", chart.Proportion: "1", chart.Days: "d"}

// serveMetadata serves the description of a query's CSV.
func (p *Pages) serveMetadata(w http.ResponseWriter, r *http.Request) error {
	return p.serveDerived(w, r, "metadata", func(ctx context.Context, view *saved.View, caching string) (*cache.Entry, error) {
		if len(view.Columns) == 0 {
			return nil, problem.New(problem.NotFound, "This query has no table form, because it has independent lists.")
		}
		about := resource{
			Profile: "tabular-data-resource", Name: view.Hash, Title: view.Title, Description: view.Description,
			Path: p.PublicURL + page.WithQuery(view.Address+"."+items.CSV, withoutToken(r.URL)), MediaType: "text/csv", Encoding: "utf-8",
			Release: view.Result.Release, Date: view.Result.UpdatedAt, Licenses: []license{{p.Credit, p.PublicURL}},
		}
		if view.Name != "" {
			about.Name = view.Name
		}
		count, err := view.Count()
		if err != nil {
			return nil, err
		}
		if count >= 0 {
			about.Rows = &count
		}
		columns := table{Grid: &saved.Grid{}}
		for _, c := range view.Columns {
			columns.Columns = append(columns.Columns, c.Name)
		}
		about.Schema.MissingValues = []string{""}
		for i, c := range view.Columns {
			f := c.Field()
			f.Titles = map[string]string{}
			for _, l := range lang.All {
				name, unit := columns.words(l, i, catalog{})
				f.Titles[string(l)], f.Unit = name, unitNames[unit]
			}
			f.Title = f.Titles[string(lang.English)]
			about.Schema.Fields = append(about.Schema.Fields, f)
		}
		body, err := json.Marshal(about, json.Deterministic(true), jsontext.WithIndent("  "))
		return cache.NewEntry(body, http.Header{
			"Content-Type": {"application/json"}, "Cache-Control": {caching}, "Vary": {"Authorization, Accept-Encoding"}, "X-Content-Type-Options": {"nosniff"},
		}), err
	})
}
