package queries

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"palmares/internal/core/lang"
	"palmares/internal/core/params"
	items "palmares/internal/core/table"
	"palmares/internal/dev/check"
	"palmares/internal/transport/saved"
	"palmares/internal/web/chart"
	"palmares/internal/web/page"
	"palmares/internal/web/words"
)

// tableOf returns the table of a list of flat objects.
func tableOf(t testing.TB, body string) *table {
	t.Helper()
	columns, rows := readRows(t, body)
	grid, err := saved.NewGrid(t.Context(), columns, eachOf(rows))
	check.OK(t, err)
	return &table{Grid: grid}
}

func readRows(t testing.TB, body string) (columns []string, rows [][]jsontext.Value) {
	t.Helper()
	positions := map[string]int{}
	_, err := items.EachItem(jsontext.NewDecoder(strings.NewReader(body)), func(item jsontext.Value) error {
		row, in := make([]jsontext.Value, len(columns)), jsontext.NewDecoder(bytes.NewReader(item))
		for _, err := in.ReadToken(); err == nil && in.PeekKind() == '"'; {
			name, _ := in.ReadToken()
			at, known := positions[name.String()]
			if !known {
				at = len(columns)
				positions[name.String()] = at
				columns, row = append(columns, name.String()), append(row, nil)
			}
			value, err := in.ReadValue()
			check.OK(t, err)
			row[at] = value.Clone()
		}
		rows = append(rows, row)
		return nil
	})
	check.OK(t, err)
	for i, row := range rows {
		rows[i] = append(row, make([]jsontext.Value, len(columns)-len(row))...)
	}
	return columns, rows
}

func eachOf(rows [][]jsontext.Value) func(func([]jsontext.Value) error) error {
	return func(use func([]jsontext.Value) error) (err error) {
		for _, row := range rows {
			if err == nil {
				err = use(row)
			}
		}
		return err
	}
}

// A page has the rows of the CSV: an item whose inner list is empty has one without the
// values of the list. Independent lists are shown as JSON. Names are words: those of values
// that distinguish lists, of aliases, and of categories that have been removed.
func TestTable(t *testing.T) {
	wanted := []struct{ text, want string }{
		{`{tools(filter: {slugs: ["plume", "enclume-8"]}) {items {slug comparisonConnection(first: 0) {nodes {slug}}}}}`, "slug|comparisonConnection.nodes.slug\nenclume-8|\nplume|"},
		{`{stats {toolsTotal}}`, "toolsTotal\n48"},
		{`{a: tool(slug: "plume") {name} x: tool(slug: "x") {name}}`, "a.name|x.name\nPlume|"},
		{
			`{tool(slug: "plume") {slug comparisons(limit: 1) {slug} alternatives(limit: 1) {slug}}}`,
			"slug|comparisons|alternatives\n" + `plume|[{"slug":"plume-vs-ecritoire-cie"}]|[{"slug":"relire-svp"}]`,
		},
		{ // an empty list is not []
			`{tool(slug: "plume") {slug alternatives(limit: 1) {slug} comparisonConnection(first: 0) {nodes {title}}}}`,
			"slug|alternatives|comparisonConnection.nodes\n" + `plume|[{"slug":"relire-svp"}]|`,
		},
	}
	var all []saved.BuiltIn
	for i, e := range wanted {
		all = append(all, saved.BuiltIn{Name: fmt.Sprint("query-", i), Title: "X", Text: e.text})
	}
	named := map[string]string{ // the title of the chart, and the first column of the table
		`{a: scoreHistogram(filter: {pricings: [gratuit]}) {from count} b: scoreHistogram(filter: {pricings: [payant]}) {from count}}`: "Number by pricing: Pricing, Free, Paid",
		`{freeTools: scoreHistogram(filter: {categories: ["chat"]}) {from count} others: scoreHistogram {from count}}`:                 "Number by group: Group, Free tools, Others",
		`{series(metrics: [mean_score], by: category, every: month) {key points {period value}}}`:                                      "Average score over time by category: Category, Agents, Automation (removed), Chat, Code, Images, Research, Writing, Video, Voice",
	}
	for text := range named {
		all = append(all, saved.BuiltIn{Name: fmt.Sprint("query-", len(all)), Title: "X", Text: text})
	}
	queries := newPages(t, all...).Queries
	for i, e := range wanted {
		view, err := queries.View(httptest.NewRequest(http.MethodGet, fmt.Sprint("/q/palmares/query-", i), nil))
		check.OK(t, err)
		found, err := view.Grid(t.Context())
		check.OK(t, err)
		lines := []string{strings.Join(found.Columns, "|")}
		for _, row := range found.Rows {
			var cells []string
			for _, c := range row {
				cells = append(cells, c.Text)
			}
			lines = append(lines, strings.Join(cells, "|"))
		}
		check.Equal(t, strings.Join(lines, "\n"), e.want, e.text)
	}
	for _, b := range all[len(wanted):] {
		view, err := queries.View(httptest.NewRequest(http.MethodGet, "/q/palmares/"+b.Name, nil))
		check.OK(t, err)
		grid, err := view.Grid(t.Context())
		check.OK(t, err)
		shown, names := &table{Grid: grid}, readCatalog(t.Context(), lang.English, view, queries.Executor)
		title := newChart(lang.English, shown, saved.Chart{}, names).Title
		shown.addWords(lang.English, names)
		texts := []string{shown.Headings[0]}
		for _, r := range shown.Rows {
			texts = append(texts, r[0].Text)
		}
		check.Equal(t, title+": "+strings.Join(slices.Compact(texts), ", "), named[b.Text], b.Text)
	}
	many := tableOf(t, "["+strings.Repeat(`{"n":1},`, 600)+`{"n":1}]`)
	check.Equal(t, len(many.Rows), 500)
	check.Equal(t, many.Total, 601)
}

// described returns the title of a chart, and how much it shows.
func described(c *chart.Chart) string {
	if c == nil {
		return "none"
	}
	switch drawn := c.Content.(type) {
	case chart.Bars:
		return fmt.Sprintf("%s: %d bars", c.Title, len(drawn))
	case chart.Tiles:
		return fmt.Sprintf("%s: %v", c.Title, drawn)
	case chart.Plots:
		text := c.Title + ":"
		for _, p := range drawn {
			text += fmt.Sprintf(" %s%v", map[chart.Kind]string{chart.Lines: "lines", chart.Steps: "steps", chart.Columns: "columns"}[p.Kind], p.Heading)
			for _, s := range p.Series {
				text += fmt.Sprintf(" %s %d", s.Name, len(s.Points))
			}
		}
		return text
	}
	return ""
}

// november is a catalog from March to November.
var november = catalog{
	find: func(slug string) (name, kind string) {
		found := map[string][2]string{"plume": {"Plume", "tool"}, "relire-svp": {"Relire, s’il vous plaît", "tool"}, "redaction": {"Rédaction", "category"}, "chat": {"Chat", "category"}}[slug]
		return found[0], found[1]
	},
	from: time.Date(2026, 3, 3, 0, 0, 0, 0, time.UTC), until: time.Date(2026, 11, 10, 0, 0, 0, 0, time.UTC),
}

func TestChart(t *testing.T) {
	series := func(metric string, values string) string {
		return strings.ReplaceAll(values, "{", fmt.Sprintf(`{"metric":%q,`, metric))
	}
	const two, five = `{"period":"2026-10","value":40},{"period":"2026-11","value":48.5}`, `{"period":"2026-07","value":40},{"period":"2026-08","value":41},{"period":"2026-09","value":42},{"period":"2026-10","value":43},{"period":"2026-11","value":44}`
	for body, want := range map[string]string{
		`[{"k":"a","n":1},{"k":"b","n":2}]`:                                                                     "N by k: 2 bars",
		`[{"slug":"a","name":"A","n":1,"score":3},{"slug":"b","name":"B","n":2,"score":4}]`:                     "Score by tool: 2 bars",
		`[{"k":"a","l":"x","n":1},{"k":"a","l":"y","n":-2}]`:                                                    "N by l: 2 bars",
		`[{"k":"a","l":"x","n":1},{"k":"a","l":"y","n":2},{"k":"b","l":"x","n":2}]`:                             "N by k and l: 3 bars",
		`[{"k":"a","from":0,"count":1},{"k":"a","from":1,"count":2},{"k":"b","from":0,"count":2}]`:              "Number by k: columnsa  2 columnsb  1",
		`[{"key":"chat","avgMonthlyPrice":1},{"key":"redaction","avgMonthlyPrice":2}]`:                          "Average monthly price, € by category: 2 bars",
		`[{"key":"plume","winRate":1},{"key":"relire-svp","winRate":0.5},{"key":"grenier-commun","winRate":0}]`: "Win rate by tool: 3 bars",
		`[{"at":"2026-09","n":1},{"at":"2026-10","n":null},{"at":"2026-11","n":3}]`:                             "N over time: lines  2",
		`[{"month":"2026-08","count":1},{"month":"2026-10","count":3}]`:                                         "Number: columns  4", // zero in September and November
		`[{"k":"a","at":"2026-Q3","n":1},{"k":"b","at":"2026-Q3","n":2},{"k":"a","at":"2026-Q4","n":2}]`:        "N over time by k: lines a 2 b 1",
		`[{"a.name":"A","a.n":1,"b.name":"C","b.n":3},{"a.name":"B","a.n":2,"b.name":"C","b.n":3}]`:             "N by a: 2 bars", // not the number of b
		`[{"k":"a","n":1},{"k":"b","n":null},{"k":"c","n":3}]`:                                                  "N by k: 3 bars", // null has a label
		`[{"k":"a","n":1},{"k":"b","n":null}]`:                                                                  "none",
		`[{"k":"a","n":1}]`:                                                                                     "none", // one bar says nothing
		`[{"k":"a"},{"k":"b"}]`:                                                                                 "none",
		`[{"k":"a","n":1},{"k":"a","n":2}]`:                                                                     "none", // nothing identifies the rows
		`[]`:                                                                                                    "none",
		`{"toolsTotal":48,"toolsAvgScore":6.99}`:                                                                "Key figures: [{Active tools 48 } {Average score 6.99 }]",
		// Different units never share an axis.
		"[" + series("count", two) + "," + series("mean_monthly_price", two) + "]":                                     "Key figures: [{Active tools 48.5 +8.5 since October\u00a02026} {Average monthly price, € €48.50 +€8.50 since October\u00a02026}]",
		"[" + series("count", five) + "," + series("mean_monthly_price", five) + "," + series("additions", five) + "]": "Figures over time: stepsActive tools  5 linesAverage monthly price, €  5 columnsAdded tools  5",
	} {
		check.Equal(t, described(newChart(lang.English, tableOf(t, body), saved.Chart{}, november)), want, body)
	}
	const french = `[{"key":"chat","avgMonthlyPrice":1},{"key":"redaction","avgMonthlyPrice":2}]`
	if got, want := described(newChart(lang.French, tableOf(t, french), saved.Chart{}, november)), "Prix mensuel moyen, € par catégorie: 2 bars"; strings.ReplaceAll(got, "\u00a0", " ") != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// Slugs become names. Those of tools that no longer exist become words.
func TestNames(t *testing.T) {
	bars := newChart(lang.English, tableOf(t, `[{"key":"relire-svp","winRate":0.5},{"key":"grenier-commun","winRate":0},{"key":"mort","winRate":1}]`), saved.Chart{}, november).Content.(chart.Bars)
	if want := (chart.Bars{{Label: "Relire, s’il vous plaît", Text: "50%", Value: 0.5}, {Label: "Grenier commun", Text: "0%"}, {Label: "Shut down", Text: "100%", Value: 1}}); !reflect.DeepEqual(bars, want) {
		t.Errorf("got %+v, want %+v", bars, want)
	}
	bars = newChart(lang.French, tableOf(t, `[{"key":"plume","count":1,"winRate":1},{"key":"relire-svp","count":4,"winRate":0.5}]`), saved.Chart{Kind: saved.Bar, X: "key", Y: "winRate"}, november).Content.(chart.Bars)
	check.Equal(t, bars[0].Text, "1 sur 1", "%+v", bars)
	check.Equal(t, bars[1].Text, "2 sur 4 (50\u00a0%)", "%+v", bars)
	bars = newChart(lang.English, tableOf(t, `[{"name":"v0","score":5},{"name":"plain","score":6}]`), saved.Chart{}, november).Content.(chart.Bars)
	check.Equal(t, bars[0].Label, "v0", "%+v", bars)
	check.Equal(t, bars[1].Label, "plain", "%+v", bars)
}

// A form chooses the kind and the columns, as a CSV names them.
func TestForm(t *testing.T) {
	body := `[{"metric":"count","period":"2026-10","value":40},{"metric":"count","period":"2026-11","value":48},{"metric":"tested","period":"2026-10","value":4},{"metric":"tested","period":"2026-11","value":8}]`
	const rows = `[{"name":"A","score":8,"price":3},{"name":"B","score":9,"price":2}]`
	for _, c := range []struct {
		body string
		form saved.Chart
		want string
	}{
		{body, saved.Chart{Kind: "table"}, "none"},
		{body, saved.Chart{Kind: "tiles"}, "Key figures: [{Active tools 48 +8 since October\u00a02026} {Tested tools 8 +4 since October\u00a02026}]"},
		{body, saved.Chart{Kind: "bar", X: "metric", Y: "value"}, "Value by figure: 4 bars"},
		{body, saved.Chart{Kind: "tiles", X: "period", Y: "tested"}, "Key figures: [{Tested tools 8 +4 since October\u00a02026}]"},
		{rows, saved.Chart{}, "Price by tool: 2 bars"},
		{rows, saved.Chart{Kind: "bar", X: "name", Y: "score"}, "Score by tool: 2 bars"},
		{rows, saved.Chart{Y: "nothing"}, "Price by tool: 2 bars"},
	} {
		check.Equal(t, described(newChart(lang.English, tableOf(t, c.body), c.form, november)), c.want, "%+v", c.form)
	}
}

// Negative numbers have a minus sign, and another color among positive ones.
func TestNegativeBars(t *testing.T) {
	got := newChart(lang.English, tableOf(t, `[{"k":"a","n":-20.5},{"k":"b","n":5},{"k":"c","n":null}]`), saved.Chart{}, catalog{}).Content
	want := chart.Bars{{Label: "a", Text: "−20.5", Value: -20.5, Series: negativeSeries}, {Label: "b", Text: "5.0", Value: 5}, {Label: "c"}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	got = newChart(lang.English, tableOf(t, `[{"k":"a","n":-20.5},{"k":"b","n":-5}]`), saved.Chart{}, catalog{}).Content
	if bars := got.(chart.Bars); bars[0].Series != 0 || bars[1].Series != 0 {
		t.Errorf("got %+v, want the first color for negative numbers only", bars)
	}
}

// Points are at their days. A period without a row is zero for counts, up to the end of
// the catalog, and a gap for others; slugs are names.
func TestLines(t *testing.T) {
	at := func(day string) float64 {
		found, _ := time.Parse(time.DateOnly, day)
		return chart.Time(found)
	}
	var notes []string
	plotOf := func(body string) *chart.Plot {
		drawn := newChart(lang.English, tableOf(t, body), saved.Chart{}, november)
		notes = drawn.Notes
		return drawn.Content.(chart.Plots)[0]
	}
	values := plotOf(`[{"key":"chat","at":"2026-08","score":8},{"key":"redaction","at":"2026-08","score":5},{"key":"chat","at":"2026-10","score":7},{"key":"redaction","at":"2026-09","score":6},{"key":"redaction","at":"2026-10","score":null}]`)
	if s := values.Series[0]; s.Name != "Chat" || len(s.Points) != 2 || s.Points[0].X != at("2026-08-01") || s.Points[1].X != at("2026-10-01") || !s.Points[1].Gap || s.Points[1].Text != "Chat · October\u00a02026 · 7.0" {
		t.Errorf("got %+v, want a gap in September", s)
	}
	if s := values.Series[1]; s.Name != "Rédaction" || len(s.Points) != 2 || s.Points[1].Gap || values.X.To != at("2026-12-01") {
		t.Errorf("got %+v up to %v, want two points without a gap, and the axis up to the end of November", s, values.X.To)
	}
	counts := plotOf(`[{"month":"2026-03","count":42},{"month":"2026-05","count":1}]`)
	var numbers []float64
	for _, p := range counts.Series[0].Points {
		numbers = append(numbers, p.Y)
	}
	if want := []float64{42, 0, 1, 0, 0, 0, 0, 0, 0}; !reflect.DeepEqual(numbers, want) {
		t.Errorf("got %v, want %v", numbers, want)
	}
	check.Equal(t, fmt.Sprint(notes), "[Before March\u00a02026: entered with the first edition.]")
	plotOf(`[{"month":"2026-04","count":42},{"month":"2026-05","count":1}]`)
	check.Equal(t, len(notes), 0, "notes of a chart without earlier months")
}

// Readers get names first, with links, words and units; slugs and totals are only in the data.
func TestShownTable(t *testing.T) {
	pages := newPages(t,
		saved.BuiltIn{Name: "movers", Title: "M", Text: `query ($from: Date! = "-6m") {movers(metric: score, from: $from, first: 9) {before change tool {name category {label}} slug}}`},
		saved.BuiltIn{Name: "drops", Title: "D", Text: `{movers(metric: price, from: "2026-01-01", direction: down, first: 3) {slug percent change tool {name}}}`},
		saved.BuiltIn{Name: "growth", Title: "G", Text: `{series(metrics: [count, additions], every: release) {metric points {period start value}}}`},
		saved.BuiltIn{Name: "compared", Title: "Tools compared with a given tool", Text: `query ($tool: String! = "plume") {comparisons(tool: $tool) {meta {total} items {slug toolB {slug name}}}}`},
	)
	for target, wanted := range map[string][]string{
		"/en/q/palmares/movers": {
			`(a date, or -6m for six months ago)`, `Change by tool · edition 8, <time datetime="2026-11-10">10\u00a0November\u00a02026</time> · since <time datetime="2026-05-10">10\u00a0May\u00a02026</time>`, `title="tool.name">Tool</th><th scope="col" class="number" title="before">Before</th>`,
			`<td><a href="/en/tools/mirage-huile">Mirage à l’Huile</a></td><td class="number">5.1</td><td class="number">−0.8</td><td>Images</td></tr>`, `<td class="number">&#43;0.6</td>`,
		},
		"/fr/q/palmares/drops":                 {`−25\u00a0€`, `−100,0`},
		"/fr/q/palmares/growth":                {`Indicateur</th>`, `Édition</th>`, `Date</th>`, `<time datetime="2026-03-03">3\u00a0mars\u00a02026</time>`, `les suppressions ne sont pas montrées`},
		"/fr/q/palmares/compared":              {`<h1>Outils comparés à Plume</h1>`, `title="toolB.name">`},
		"/en/q/palmares/compared?tool=trame72": {`<h1>Tools compared with a given tool</h1>`},
		"/en/q/palmares/movers/embed":          {`<base target="_blank">`, `<h1><a href="/en/q/palmares/movers" rel="noopener">M</a></h1>`, ` · see the data</a>`},
		"/fr/q":                                {`src="/fr/q/palmares/movers.small.svg"`, `>Outils comparés à Plume</a>`},
	} {
		r, w := httptest.NewRequest(http.MethodGet, target, nil), httptest.NewRecorder()
		r.Header.Set("Accept", "text/html")
		page.Localize(pages).ServeHTTP(w, r)
		body := w.Body.String()
		for _, want := range wanted {
			check.True(t, strings.Contains(body, strings.ReplaceAll(want, `\u00a0`, "\u00a0")), "%s: got no %s, want it", target, want)
		}
		for _, hidden := range []string{`title="slug"`, `title="toolB.slug"`, `title="meta.total"`, `class="owner"`} {
			check.True(t, !strings.Contains(body, hidden), "%s: got %s, want it only in the data", target, hidden)
		}
	}
}

// Rows without a day have no place on an axis of time.
func TestRowsWithoutDay(t *testing.T) {
	c := newChart(lang.English, tableOf(t, `[{"at":"2026-09-01","n":1},{"at":null,"n":2},{"at":"2026-11-01","n":3}]`), saved.Chart{}, november)
	check.Equal(t, described(c), "N over time: lines  2")
}

// Prices and inputs are in the language of the page, numbers of a column have as many
// decimals.
func TestWords(t *testing.T) {
	const body = `[{"price":"15 €/mois","monthlyPrice":15},{"price":"19,90 €/poste/mois","monthlyPrice":19.9},{"price":"sur devis","monthlyPrice":null}]`
	for l, want := range map[lang.Language]string{
		lang.English: "€15 per month|€15.00|€19.90 per seat per month|€19.90|sur devis||Monthly price, €|Score out of 10",
		lang.French:  "15 € par mois|15,00 €|19,90 € par poste par mois|19,90 €|sur devis||Prix mensuel, €|Note sur 10",
	} {
		shown := tableOf(t, body)
		shown.addWords(l, november)
		var texts []string
		for _, r := range shown.Rows {
			texts = append(texts, r[0].Text, r[1].Text)
		}
		texts = append(texts, words.Input(l, "price"), words.Input(l, "score"))
		check.Equal(t, strings.ReplaceAll(strings.Join(texts, "|"), "\u00a0", " "), want)
	}
}

// A chart says what it leaves out.
func TestChartNote(t *testing.T) {
	rows := func(count int, format string) string {
		var all []string
		for i := range count {
			all = append(all, fmt.Sprintf(format, i))
		}
		return "[" + strings.Join(all, ",") + "]"
	}
	const series, bars = `{"k":"k%[1]d","at":"2026-10","n":1},{"k":"k%[1]d","at":"2026-11","n":2}`, `{"k":"k%d","n":1}`
	for body, want := range map[string]string{
		rows(12, series): "[]", rows(13, series): "[12 of 13 series, those with the highest latest values.]", rows(40, bars): "[]", rows(601, bars): "[The chart shows 40 of 601 rows.]",
	} {
		if c := newChart(lang.English, tableOf(t, body), saved.Chart{}, november); fmt.Sprint(c.Notes) != want {
			t.Errorf("%.40s: got notes %q, want %s", body, c.Notes, want)
		}
	}
}

// Browsers show no placeholder in date fields, so these have the default as value.
func TestFieldOf(t *testing.T) {
	from := params.Param{Name: "from", Kind: "Date", Default: "2026-06-01"}
	limit := params.Param{Name: "limit", Kind: "Int", Default: int64(20)}
	for _, c := range []struct {
		parameter    params.Param
		given        string
		value, shown string
	}{
		{from, "", "2026-06-01", "2026-06-01"},
		{from, "from=2026-10-01", "2026-10-01", "2026-06-01"},
		{params.Param{Name: "from", Kind: "Date"}, "", "", ""},
		{limit, "", "", "20"},
	} {
		given, err := url.ParseQuery(c.given)
		check.OK(t, err)
		if got := fieldOf(c.parameter, given); got.Value != c.value || got.Preset != c.shown {
			t.Errorf("%s with %q: got value %q and default %q, want %q and %q", c.parameter.Name, c.given, got.Value, got.Preset, c.value, c.shown)
		}
	}
}

// Catalog texts in the table, the chart and the form never become HTML.
func TestPageEscapesTexts(t *testing.T) {
	const evil = `</text></svg><script>alert(1)</script>"' onload=x `
	body := fmt.Sprintf(`[{"name":%q,"n":1},{"name":"b","n":2}]`, evil)
	found := tableOf(t, strings.ReplaceAll(body, `\'`, `'`))
	lines := tableOf(t, strings.ReplaceAll(fmt.Sprintf(`[{"k":%q,"at":"2026-01","n":1},{"k":%q,"at":"2026-02","n":2},{"k":"b","at":"2026-01","n":2}]`, evil, evil), `\'`, `'`))
	for _, shown := range []*table{found, lines} {
		c := newChart(lang.English, shown, saved.Chart{}, catalog{})
		shown.addWords(lang.English, catalog{})
		if c == nil {
			t.Fatal("got no chart, want one")
		}
		page, err := templates.Render("query", page.Content{Data: &queryPage{
			View:  &saved.View{Title: evil, Description: evil, Text: evil, Address: "/q/a/b"},
			Owner: evil, Problem: evil, Wrong: "e", Share: evil, Snippet: evil, Table: shown, Chart: c, Fields: []field{{Param: params.Param{Name: evil}, Value: evil, Preset: evil}, {Param: params.Param{Name: "e", Values: []string{evil}}}},
		}})
		check.OK(t, err)
		check.Contains(t, string(page), `name="e" aria-invalid="true"`)
		if strings.Contains(string(page), "<script>alert") || strings.Contains(string(page), `"' onload=x`) || !strings.Contains(string(page), "&lt;script&gt;alert") {
			t.Errorf("got a page with unescaped texts, want none:\n%s", page)
		}
	}
}
