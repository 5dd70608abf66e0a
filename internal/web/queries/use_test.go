package queries

import (
	"encoding/json"
	"html"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"palmares/graph"
	"palmares/graph/graphtest"
	"palmares/internal/catalog/feed/feedtest"
	"palmares/internal/core/cache"
	items "palmares/internal/core/table"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
	"palmares/internal/transport/saved"
	"palmares/internal/web/page"
)

// newPages returns the pages of some queries about the demo catalog.
func newPages(t *testing.T, queries ...saved.BuiltIn) *Pages {
	s, log := testkit.Open(t, testkit.SQLite(t)), slog.New(slog.DiscardHandler)
	feedtest.PublishDemo(t, s)
	memory := cache.New(1<<20, nil, log)
	all, err := saved.New(saved.Config{
		Store: s, Executor: graphtest.New(graph.Config{Catalog: s, Cache: memory}), Cache: memory, Log: log, BuiltIn: queries,
	})
	check.OK(t, err)
	return &Pages{Service: page.Service{PublicURL: "https://palmares.example", Credit: "Source : palmares"}, Queries: all}
}

func (p *Pages) get(path string, headers ...string) *httptest.ResponseRecorder {
	r, w := httptest.NewRequest(http.MethodGet, path, nil), httptest.NewRecorder()
	for i := 0; i < len(headers); i += 2 {
		if headers[i] != "" {
			r.Header.Set(headers[i], headers[i+1])
		}
	}
	p.ServeHTTP(w, r)
	return w
}

// A page has what readers paste into other programs, with its parameters.
func TestUses(t *testing.T) {
	pages := newPages(t,
		saved.BuiltIn{Name: "best", Title: "Best", Text: `query($categories: [String!], $price: Float) {tools(filter: {categories: $categories, monthlyCostMax: $price}, limit: 200) {items {slug score updatedAt}}}`},
		saved.BuiltIn{Name: "lists", Title: "Lists", Text: `{tools {items {slug}} categories {label}}`},
	)
	body := pages.get("/q/palmares/best?categories=code&categories=o%27%22x&price=10", "Accept", "text/html").Body.String()
	codes := map[string]string{}
	for _, found := range regexp.MustCompile(`(?s)<code id="use-(\w+)">(.*?)</code>`).FindAllStringSubmatch(body, -1) {
		codes[found[1]] = html.UnescapeString(found[2])
	}
	const address = "https://palmares.example/q/palmares/best.csv?categories=code&categories=o%27%22x&price=10"
	check.Equal(t, codes["sheets"], `=IMPORTDATA("`+address+`&token=YOUR_TOKEN")`)
	check.Equal(t, codes["duckdb"], `SELECT * FROM read_csv('`+address+`&token=YOUR_TOKEN');`)
	check.Equal(t, codes["curl"], `curl -fsS -H 'Authorization: Bearer YOUR_KEY' '`+address+`'`)
	check.Contains(t, body, `<span id="label-sheets">In a cell</span>`)
	check.Contains(t, codes["pandas"], `pd.read_csv("`+address+`&token=YOUR_TOKEN")`)
	check.Contains(t, codes["excel"], `Web.Contents("https://palmares.example", [RelativePath = "q/palmares/best.csv", `+
		`Query = [#"categories" = {"code", "o'""x"}, #"price" = "10"], ApiKeyName = "token"])`)
	var target struct {
		URL     string
		Columns []struct{ Selector, Text, Type string }
	}
	check.OK(t, json.Unmarshal([]byte(codes["grafana"]), &target))
	check.Equal(t, target.URL, address+"&token=YOUR_TOKEN")
	check.Slices(t, target.Columns, []struct{ Selector, Text, Type string }{{"slug", "Slug", "string"}, {"score", "Score", "number"}, {"updatedAt", "Review date", "timestamp"}})

	if body := pages.get("/q/palmares/lists", "Accept", "text/html").Body.String(); strings.Contains(body, `id="use"`) {
		t.Error("got uses of a query without a table, want none")
	}
}

// The description of a table has its columns with words, types and units, and its length.
func TestMetadata(t *testing.T) {
	pages := newPages(t,
		saved.BuiltIn{Name: "all", Title: "All", Description: "Tools.", Text: `{tools(limit: 200) {items {slug canonicalUrl pricing monthlyPrice score updatedAt}}}`},
		saved.BuiltIn{Name: "some", Title: "Some", Text: `{tools(limit: 3) {items {slug}}}`},
		saved.BuiltIn{Name: "series", Title: "Series", Text: `{series(metrics: [count, mean_score]) {metric points {start value}}}`},
		saved.BuiltIn{Name: "lists", Title: "Lists", Text: `{tools {items {slug}} categories {label}}`},
	)
	type resource struct {
		Name, Title, Description, Path string
		Rows                           *int
		Licenses                       []struct{ Title string }
		Schema                         struct{ Fields []items.Field }
	}
	describe := func(name string) (got resource) {
		w := pages.get("/q/palmares/" + name + ".metadata.json")
		check.Must(t, w.Code, http.StatusOK, w.Body)
		check.OK(t, json.Unmarshal(w.Body.Bytes(), &got))
		return got
	}
	all := describe("all")
	check.Equal(t, *all.Rows, 48)
	check.Equal(t, all.Path, "https://palmares.example/q/palmares/all.csv")
	check.Equal(t, all.Name+" "+all.Title+" "+all.Description+" "+all.Licenses[0].Title, "all All Tools. Source : palmares")
	type short struct{ name, kind, format, title, french, unit string }
	var fields []short
	for _, f := range all.Schema.Fields {
		fields = append(fields, short{f.Name, f.Type, f.Format, f.Title, f.Titles["fr"], f.Unit})
	}
	check.Slices(t, fields, []short{
		{"slug", "string", "", "Slug", "Identifiant", ""}, {"canonicalUrl", "string", "uri", "Overview", "Présentation", ""}, {"pricing", "string", "", "Pricing", "Tarification", ""},
		{"monthlyPrice", "number", "", "Monthly price, €", "Prix mensuel,\u00a0€", "EUR"}, {"score", "number", "", "Score", "Note", "/10"}, {"updatedAt", "date", "", "Review date", "Date de l’avis", ""},
	})
	check.Contains(t, strings.Join(all.Schema.Fields[2].Constraints.Enum, " "), "freemium")
	check.Equal(t, *describe("some").Rows, 3)
	series := describe("series")
	check.Equal(t, len(series.Schema.Fields), 3)
	check.Equal(t, series.Schema.Fields[2].Name, "mean_score")
	lines := strings.Count(strings.TrimSpace(pages.get("/q/palmares/series.csv").Body.String()), "\n")
	check.Equal(t, *series.Rows, lines)
	check.Equal(t, pages.get("/q/palmares/lists.metadata.json").Code, http.StatusNotFound)
	check.Equal(t, pages.get("/q/palmares/none.metadata.json").Code, http.StatusNotFound)
}
