package saved

import (
	"net/http"
	"net/url"
	"reflect"
	"testing"

	"palmares/internal/core/params"
	"palmares/internal/core/problem"
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
		if (q.table == nil) != (q.independent[0] != "") || q.table == nil != (q.checkTable() != nil) {
			t.Errorf("%q: got table %v and lists %q, want one of them", text, q.table, q.independent)
		}
		if described := q.describe(); len(described.Parameters) != len(q.parameters)+len(common)-1 {
			t.Errorf("%q: got %d parameters, want all", text, len(described.Parameters))
		}
		samples := q.samples()
		if _, _, err := q.read(params.Canonical(q.parameters, samples)); err != nil {
			t.Errorf("%q: got %v for the samples %v, want no error", text, err, samples)
		}
	})
}

// FuzzQueryParameters checks that the parameters of a saved query are read again from their
// canonical form, and that others are a 400.
func FuzzQueryParameters(f *testing.F) {
	queries, _ := newQueries(f, testkit.Open(f, testkit.SQLite(f)))
	q, err := newQuery(queries.Executor, `query ($n: Int = 5, $x: Float, $s: ToolSort, $q: String, $all: Boolean = true, $from: Date, $c: [String!]) {
		tools(limit: $n, sort: $s, filter: {scoreMin: $x, search: $q, categories: $c, updatedSince: $from}) {items {slug name @include(if: $all)}}}`)
	testkit.Check(f, err)
	for _, query := range []string{"n=3&x=7.5", "c=a&c=b&c=a", "s=name_asc&all=false&from=2026-11-10", "format=csv&dialect=excel&as_of=8", "n=x", "c=", "q=%00", "token=qt_x"} {
		f.Add(query)
	}
	all := append(q.parameters[:len(q.parameters):len(q.parameters)], common...)
	f.Fuzz(func(t *testing.T, query string) {
		variables, others, err := q.read(query)
		if err != nil {
			if p := problem.Of(err); p.Code != problem.BadInput || p.Message == "" {
				t.Errorf("%q: got %v, want a 400", query, err)
			}
			return
		}
		values := map[string]any{}
		for _, p := range all {
			if value := variables[p.Name]; value != nil && !reflect.DeepEqual(value, p.Default) {
				values[p.Name] = value
			} else if others[p.Name] != nil {
				values[p.Name] = others[p.Name]
			}
		}
		canonical := params.Canonical(all, values)
		again, othersAgain, err := q.read(canonical)
		for name, value := range values {
			if err != nil || !reflect.DeepEqual(again[name], value) && !reflect.DeepEqual(othersAgain[name], value) {
				t.Errorf("%q: got %v, %v and %v from %q, want %v", query, again, othersAgain, err, canonical, values)
			}
		}
	})
}

// FuzzToken checks that the token of a URL is the one that standard parsers read, and that
// only tokens that could have been issued are looked up.
func FuzzToken(f *testing.F) {
	const token = "qt_ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	for _, query := range []string{"token=" + token, "a=b&token=dt_" + token[3:], "token=&token=" + token, "xtoken=" + token, "token=qt_%41", "token=" + token + "%0a"} {
		f.Add(query)
	}
	f.Fuzz(func(t *testing.T, query string) {
		got := tokenOf(&http.Request{URL: &url.URL{RawQuery: query}})
		values, err := url.ParseQuery(query)
		issued := tokenPattern.MatchString(got)
		if issued && (len(got) != len(token) || url.QueryEscape(got) != got) {
			t.Errorf("%q: got %q, want a token that could have been issued", query, got)
		}
		if issued && err == nil && (len(values["token"]) == 0 || values["token"][0] != got) {
			t.Errorf("%q: got %q, want the first token of %q", query, got, values["token"])
		}
		if err == nil && got == "" && tokenPattern.MatchString(values.Get("token")) && query == values.Encode() {
			t.Errorf("%q: got no token, want %q", query, values.Get("token"))
		}
	})
}
