package queries

import (
	"cmp"
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

// unitNames are the units of columns for programs.
var unitNames = map[chart.Unit]string{chart.Score: "/10", chart.Euros: "EUR", chart.Percent: "%", chart.Proportion: "1", chart.Days: "d"}

// serveMetadata describes the CSV of a query, as in the Data Resource and the Table Schema of
// Frictionless Data, so that programs need not guess the types of its columns.
func (p *Pages) serveMetadata(w http.ResponseWriter, r *http.Request) error {
	return p.serveDerived(w, r, "metadata", func(ctx context.Context, view *saved.View, caching string) (*cache.Entry, error) {
		if len(view.Columns) == 0 {
			return nil, problem.New(problem.NotFound, "This query has no table form, because it has independent lists.")
		}
		columns := table{Grid: &saved.Grid{}}
		for _, c := range view.Columns {
			columns.Columns = append(columns.Columns, c.Name)
		}
		var fields []items.Field
		for i, c := range view.Columns {
			f := c.Field()
			f.Titles = map[string]string{}
			for _, l := range lang.All {
				name, unit := columns.words(l, i, catalog{})
				f.Titles[string(l)], f.Unit = name, unitNames[unit]
			}
			f.Title = f.Titles[string(lang.English)]
			fields = append(fields, f)
		}
		about := object{
			"profile": "tabular-data-resource", "name": cmp.Or(view.Name, view.Hash),
			"path": p.PublicURL + page.WithQuery(view.Address+"."+items.CSV, withoutToken(r.URL)), "mediatype": "text/csv", "encoding": "utf-8",
			"release": view.Result.Release, "date": view.Result.UpdatedAt, "licenses": []object{{"title": p.Credit, "path": p.PublicURL}},
			"schema": object{"fields": fields, "missingValues": []string{""}},
		}
		for name, text := range map[string]string{"title": view.Title, "description": view.Description} {
			if text != "" {
				about[name] = text
			}
		}
		count, err := view.Count()
		if err != nil {
			return nil, err
		}
		if count >= 0 { // of the path; for a whole list, with a key or token
			about["rows"] = count
		}
		body, err := json.Marshal(about, json.Deterministic(true), jsontext.WithIndent("  "))
		return cache.NewEntry(body, http.Header{
			"Content-Type": {"application/json"}, "Cache-Control": {caching}, "Vary": {"Authorization, Accept-Encoding"}, "X-Content-Type-Options": {"nosniff"},
		}), err
	})
}
