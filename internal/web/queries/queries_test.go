package queries

import (
	"fmt"
	"net/url"
	"reflect"
	"strings"
	"testing"

	"palmares/internal/core/lang"
	"palmares/internal/core/params"
	"palmares/internal/transport/saved"
	"palmares/internal/web/chart"
	"palmares/internal/web/page"
)

func tableOf(t *testing.T, body string) *table {
	t.Helper()
	found, err := newTable([]byte(body))
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestTable(t *testing.T) {
	for body, want := range map[string]string{
		`[]`:                              ``,
		`42`:                              "value\n42",
		`"a\u00e9\"<b>"`:                  "value\naé\"<b>",
		`[1,null,"x"]`:                    "value\n1\n\nx",
		`{"a":1,"b":{"c":true,"d":null}}`: "a|b.c|b.d\n1|true|",
		`[{"a":1},{"b":2},{"a":3,"b":4}]`: "a|b\n1|\n|2\n3|4",
		`[{"k":"x","p":[{"t":1},{"t":2}]},{"k":"y","p":[]}]`: "k|p.t|p\nx|1|\nx|2|\ny||[]",
		`{"x":[{"n":1}],"y":[{"n":2},{"n":3}]}`:              "list|n\nx|1\ny|2\ny|3",
		`[{"a":[1,2],"b":[3],"c":"z"}]`:                      "c|a|b\nz|[1,2]|[3]",
		`[{"p":[{"q":[1,2]}]}]`:                              "p.q\n[1,2]",
	} {
		found := tableOf(t, body)
		var lines []string
		if len(found.Columns) > 0 {
			lines = append(lines, strings.Join(found.Columns, "|"))
		}
		for _, row := range found.Rows {
			var cells []string
			for _, c := range row {
				cells = append(cells, c.Text)
			}
			lines = append(lines, strings.Join(cells, "|"))
		}
		if got := strings.Join(lines, "\n"); got != want {
			t.Errorf("%s: got\n%s\nwant\n%s", body, got, want)
		}
	}
	many := tableOf(t, "["+strings.Repeat("1,", 600)+"1]")
	if len(many.Rows) != maxRows || many.Total != 601 {
		t.Errorf("got %d of %d rows, want %d of 601", len(many.Rows), many.Total, maxRows)
	}
}

func TestChart(t *testing.T) {
	for body, want := range map[string]string{
		`[{"k":"a","n":1},{"k":"b","n":2}]`:                                                                 "n by k: 2 bars",
		`[{"slug":"a","name":"A","n":1,"m":3},{"slug":"b","name":"B","n":2,"m":4}]`:                         "m by name: 2 bars",
		`[{"k":"a","l":"x","n":1},{"k":"a","l":"y","n":-2}]`:                                                "n by l: 2 bars",
		`[{"k":"a","l":"x","n":1},{"k":"a","l":"y","n":2},{"k":"b","l":"x","n":2}]`:                         "n by k and l: 3 bars",
		`[{"at":"2026-01","n":1},{"at":"2026-02","n":null},{"at":"2026-03","n":3}]`:                         "n over time: 1 lines of 2 points",
		`[{"k":"a","at":"2026-Q1","n":1},{"k":"b","at":"2026-Q1","n":2},{"k":"a","at":"2026-Q2","n":2}]`:    "n over time by k: 2 lines of 2 points",
		`[{"a":{"name":"A","n":1},"b":{"name":"C","n":3}},{"a":{"name":"B","n":2},"b":{"name":"C","n":3}}]`: "a.n by a.name: 2 bars", // not the number of b
		`[{"a":{"name":"A","n":1},"m":3},{"a":{"name":"B","n":2},"m":4}]`:                                   "m by a.name: 2 bars",
		`[{"k":"a","n":1},{"k":"b","n":null},{"k":"c","n":3}]`:                                              "n by k: 3 bars", // null has a label
		`[{"k":"a","n":1},{"k":"b","n":null}]`:                                                              "none",
		`[{"k":"a","n":1}]`:                                                                                 "none", // one bar says nothing
		`[{"k":"a"},{"k":"b"}]`:                                                                             "none",
		`[{"k":"a","n":1},{"k":"a","n":2}]`:                                                                 "none", // nothing identifies the rows
		`[]`:                                                                                                "none", `42`: "none", `[{"n":5,"k":"a"},{"n":5,"k":"b"}]`: "n by k: 2 bars",
	} {
		got := "none"
		if c := newChart(lang.English, tableOf(t, body)); c != nil {
			switch drawn := c.Chart.(type) {
			case chart.Bars:
				got = fmt.Sprintf("%s: %d bars", c.Title, len(drawn))
			case *chart.Plot:
				got = fmt.Sprintf("%s: %d lines of %d points", c.Title, len(drawn.Series), len(drawn.Series[0].Points))
			}
		}
		if got != want {
			t.Errorf("%s: got %s, want %s", body, got, want)
		}
	}
}

// Negative numbers have a minus sign, and another color among positive ones.
func TestNegativeBars(t *testing.T) {
	got := newChart(lang.English, tableOf(t, `[{"k":"a","n":-20.5},{"k":"b","n":5},{"k":"c","n":null}]`)).Chart
	want := chart.Bars{{Label: "a", Text: "−20.5", Value: -20.5, Series: negativeSeries}, {Label: "b", Text: "5", Value: 5}, {Label: "c"}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	got = newChart(lang.English, tableOf(t, `[{"k":"a","n":-20.5},{"k":"b","n":-5}]`)).Chart
	if bars := got.(chart.Bars); bars[0].Series != 0 || bars[1].Series != 0 {
		t.Errorf("got %+v, want the first color for negative numbers only", bars)
	}
}

// Lines have the order and color of their first rows, and their points that of time.
func TestLines(t *testing.T) {
	rows := tableOf(t, `[{"k":"b","at":"2026-02","n":3},{"k":"a","at":"2026-03","n":-1},{"k":"b","at":"2026-01","n":2},{"k":"a","at":"2026-01","n":null}]`)
	got := newChart(lang.English, rows).Chart.(*chart.Plot)
	want := []chart.Series{
		{Name: "b", Points: []chart.Point{{X: 0, Y: 2, XText: "2026-01", YText: "2"}, {X: 1, Y: 3, XText: "2026-02", YText: "3"}}},
		{Name: "a", Points: []chart.Point{{X: 2, Y: -1, XText: "2026-03", YText: "−1"}}},
	}
	if !reflect.DeepEqual(got.Series, want) || !got.Legend {
		t.Errorf("got %+v, want %+v", got.Series, want)
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
	const series, bars = `{"k":"k%[1]d","at":"2026-01","n":1},{"k":"k%[1]d","at":"2026-02","n":2}`, `{"k":"k%d","n":1}`
	for body, want := range map[string]string{
		rows(8, series): "", rows(9, series): "The chart shows 8 of 9 series.", rows(40, bars): "", rows(601, bars): "The chart shows 40 of 601 rows.",
	} {
		c := newChart(lang.English, tableOf(t, body))
		if c.Note != want {
			t.Errorf("%.40s: got note %q, want %q", body, c.Note, want)
		}
		if plot, ok := c.Chart.(*chart.Plot); ok && (len(plot.Series) != chart.MaxSeries || len(plot.Series[7].Points) != 2) {
			t.Errorf("%.40s: got series %+v, want 8 of two points", body, plot.Series)
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
		if err != nil {
			t.Fatal(err)
		}
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
		c := newChart(lang.English, shown)
		if c == nil {
			t.Fatal("got no chart, want one")
		}
		page, err := templates.Render("query", page.Content{Data: &queryPage{
			View:  &saved.View{Title: evil, Description: evil, Text: evil, Address: "/q/a/b"},
			Owner: evil, Problem: evil, Share: evil, Snippet: evil, Table: shown, Chart: c, Fields: []field{{Name: evil, Value: evil, Preset: evil}, {Name: "e", Values: []string{evil}}},
		}})
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(page), "<script>alert") || strings.Contains(string(page), `"' onload=x`) || !strings.Contains(string(page), "&lt;script&gt;alert") {
			t.Errorf("got a page with unescaped texts, want none:\n%s", page)
		}
	}
}
