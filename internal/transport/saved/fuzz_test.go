package saved

import (
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"testing"

	"palmares/internal/core/params"
	"palmares/internal/core/problem"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
)

// FuzzQuery checks that a text is rejected as an error of its author, or has a table or two
// lists that prevent one, and samples that its own parameters accept.
func FuzzQuery(f *testing.F) {
	for _, text := range []string{
		"{tools {items {slug priceHistory {price}}}}", "query ($n: Int!, $s: [String!]) {tools(limit: $n, filter: {categories: $s}) {items {slug}}}",
		"{a: toolGroups(by: category) {key} b: toolGroups(by: pricing) {key count}}", "query ($format: String) {feed {credit}}", "{toolConnection {edges {node {slug}}}}", "subscription {released {release}}", "{",
	} {
		f.Add(text)
	}
	queries, _ := newQueries(f, testkit.Open(f, testkit.SQLite(f)))
	f.Fuzz(func(t *testing.T, text string) {
		q, err := newQuery(queries.Executor, text)
		if err != nil {
			if p := problem.Of(err); p.Code.Status() != http.StatusBadRequest || p.Message == "" {
				t.Errorf("%q: got %v, want a 400", text, err)
			}
			return
		}
		check.Equal(t, (q.table == nil), (q.independent[0] != ""), "%q: %v %q", text, q.table, q.independent)
		check.Equal(t, q.table == nil, (q.checkTable() != nil), "%q: %v %q", text, q.table, q.independent)
		check.Equal(t, len(q.describe().Parameters), len(q.parameters)+len(common)-1, "%q: parameters", text)
		samples := q.samples()
		if _, _, err := q.read(params.Canonical(q.parameters, samples)); err != nil {
			t.Errorf("%q: got %v for the samples %v, want no error", text, err, samples)
		}
	})
}

// FuzzQueryParameters checks that the parameters of a saved query have the types of their
// variables, that their canonical form has the same values and is its own canonical form,
// whatever the order and with unknown ones, that repeated ones are refused, and that others
// are a 400.
func FuzzQueryParameters(f *testing.F) {
	queries, _ := newQueries(f, testkit.Open(f, testkit.SQLite(f)))
	q, err := newQuery(queries.Executor, `query ($n: Int = 5, $x: Float, $s: ToolSort, $q: String, $all: Boolean = true, $from: Date, $c: [String!]) {
		tools(limit: $n, sort: $s, filter: {scoreMin: $x, search: $q, categories: $c, updatedSince: $from}) {items {slug name @include(if: $all)}}}`)
	check.OK(f, err)
	for _, query := range []string{"n=3&x=7.5", "c=a&c=b&c=a", "s=name_asc&all=false&from=2026-11-10", "format=csv&dialect=excel&as_of=8", "n=x", "c=", "q=%00", "token=qt_x", "n=1&n=2", "N=1"} {
		f.Add(query)
	}
	all := append(q.parameters[:len(q.parameters):len(q.parameters)], common...)
	known := map[string]bool{}
	for _, p := range all {
		known[p.Name] = true
	}
	types := map[string]reflect.Kind{
		"n": reflect.Int64, "x": reflect.Float64, "s": reflect.String, "q": reflect.String, "all": reflect.Bool, "from": reflect.String, "c": reflect.Slice,
	}
	// canonical reads a query string and writes what was read, without defaults.
	canonical := func(query string) (string, map[string]any, error) {
		variables, others, err := q.read(query)
		values := map[string]any{}
		for _, p := range all {
			if value := variables[p.Name]; value != nil && !reflect.DeepEqual(value, p.Default) {
				values[p.Name] = value
			} else if others[p.Name] != nil {
				values[p.Name] = others[p.Name]
			}
		}
		return params.Canonical(all, values), values, err
	}
	f.Fuzz(func(t *testing.T, query string) {
		given, parseErr := url.ParseQuery(query)
		text, values, err := canonical(query)
		if err != nil {
			if p := problem.Of(err); p.Code != problem.BadInput || p.Message == "" {
				t.Errorf("%q: got %v, want a 400", query, err)
			}
			return
		}
		for name, of := range given {
			if known[name] && len(of) > 1 && types[name] != reflect.Slice {
				t.Errorf("%q: got %v, want %s with %q refused", query, values, name, of)
			}
		}
		for name, value := range values {
			if kind := reflect.TypeOf(value).Kind(); types[name] != 0 && kind != types[name] {
				t.Errorf("%q: got a %s for %s, want a %s", query, kind, name, types[name])
			}
			if given[name] == nil && parseErr == nil {
				t.Errorf("%q: got %s=%v, want only what is given", query, name, value)
			}
		}
		again, same, err := canonical(text)
		if err != nil || again != text || !reflect.DeepEqual(same, values) {
			t.Errorf("%q: got %v, %q and %v from %q, want %v", query, same, again, err, text, values)
		}
		if parseErr != nil { // in a part that is ignored
			return
		}
		if sorted, same, err := canonical(given.Encode()); err != nil || sorted != text || !reflect.DeepEqual(same, values) {
			t.Errorf("%q: got %v and %v from %q, want %v", query, same, err, given.Encode(), values)
		}
	})
}

// FuzzChart checks that an accepted chart shows different columns that exist, with numbers on
// the vertical axis, that others are a 400, and that a suggested chart is accepted.
func FuzzChart(f *testing.F) {
	for _, c := range []Chart{{}, {Kind: Line, X: "name", Y: "score"}, {Kind: Bar, X: "slug", Y: "score", Series: "name"}, {Kind: Bar, X: "score", Y: "score"}, {Kind: "pie"}, {Kind: Tiles, X: "\x00"}} {
		f.Add(c.Kind, c.X, c.Y, c.Series, "{tools {items {name slug score}}}")
	}
	f.Add(Line, "start", "value", "key", "{series(metrics: [count], every: month) {key points {start value}}}")
	queries, _ := newQueries(f, testkit.Open(f, testkit.SQLite(f)))
	f.Fuzz(func(t *testing.T, kind, x, y, series, text string) {
		chart := Chart{kind, x, y, series}
		q, err := newQuery(queries.Executor, text)
		if err != nil {
			return
		}
		columns := q.columns(q.samples())
		if suggested := q.suggestChart(); suggested.check(columns) != nil {
			t.Errorf("%q: got %v from its own suggestion %v, want no error", text, suggested.check(columns), suggested)
		}
		if err := chart.check(columns); err != nil {
			if p := problem.Of(err); p.Code != problem.BadInput || p.Message == "" {
				t.Errorf("%v: got %v, want a 400", chart, err)
			}
			return
		}
		if !slices.Contains([]string{"", Line, Bar, Tiles, Table}, kind) {
			t.Errorf("got the chart %q, want an error", kind)
		}
		if !chart.hasAxes() {
			return
		}
		numbers := map[string]bool{}
		for _, c := range columns {
			numbers[c.Name] = numbers[c.Name] || c.IsNumber()
		}
		_, hasX := numbers[x]
		_, hasSeries := numbers[series]
		if !hasX || !numbers[y] || series != "" && !hasSeries || x == y || series == x || series == y {
			t.Errorf("%v with columns %s: got no error, want one", chart, namesOf(columns))
		}
	})
}
