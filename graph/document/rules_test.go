package document_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"

	"palmares/graph"
	"palmares/graph/document"
	"palmares/internal/core/cache"
	"palmares/internal/core/problem"
	"palmares/internal/dev/check"
)

func newParser(limits document.Limits) *document.Parser {
	return document.NewParser(graph.Schema(), limits, cache.New(1<<20, nil, slog.New(slog.DiscardHandler)))
}

// TestCalculate has what TestCosts in package graph, which reads a catalog, does not.
func TestCalculate(t *testing.T) {
	catalog := document.Size{Tools: document.ReferenceTools, Categories: 8, Points: func(every, from, to string) int { return len(every) + len(from) + len(to) }}
	empty := document.Size{Points: func(string, string, string) int { return 0 }, Periods: func(string, string, string, string) int { return 0 }}
	for _, c := range []struct {
		query   string
		catalog document.Size
		want    int
	}{
		// Lists without a limit have an expected length.
		{`{tool(slug: "a") {priceHistory {price}}}`, catalog, 1 + (1 + 4) + 5 + 5},
		{`{tool(slug: "a") {sources {url}}}`, catalog, 1 + (1 + 4) + 5 + 5},
		{`{tool(slug: "a") {history {score}}}`, catalog, 1 + (1 + 12) + 5 + 5},
		{`{embeddings(slug: "a") {chunks {text}}}`, catalog, 1 + (1 + 6) + 5},
		{`{tool(slug: "a") {verifiability obsolescence}}`, catalog, 1 + 2 + 5},
		{`{tool(slug: "a") {versions(limit: 3) {__typename}}}`, catalog, 1 + (1 + 3) + 5 + 5 + 10},
		{`{toolVersions(slug: "a", limit: 3) {__typename}}`, catalog, 1 + 1 + 5 + 10},
		{`{retiredTools(limit: 1, search: "a") {items {slug}}}`, catalog, 1 + 1 + 1 + 5 + 2_200},
		// Reviews are stored with their tools, and read by a statement.
		{`{tool(slug: "a") {slug verdict}}`, catalog, 1 + 1 + 1 + 5 + 5},
		{`{comparison(slug: "a") {verdict: title}}`, catalog, 1 + 1 + 5},
		// Fragments cost what they contain, each time.
		{"{feed {...F ...F}} fragment F on Feed {release updatedAt}", catalog, 1 + 2*2},
		{"{a: tools(limit: 2) {...P} b: tools(limit: 3) {...P}} fragment P on ToolPage {items {slug}}", catalog, 2 + (1 + 2) + (1 + 3) + 2*5},
		{"{feed {... on Feed {release}}}", catalog, 1 + 1},
		{"{__schema {types {name}} __typename}", catalog, 1 + (1+120)/100 + 1 + 1},
		// Series have as many points as their range.
		{`{series(metrics: [count], every: month, from: "2026-01-01") {points {value}}}`, catalog, 1 + 1 + 15 + 5 + 5 + 1000},
		{`{series(metrics: [count], every: month) {points {value}}}`, empty, 1 + 1 + 1 + 5 + 5 + 10},
		{`{series(metrics: [count], every: month) {points {value}}}`, document.Size{}, 1 + 1 + 50 + 5 + 5 + 10},
		{`{series(metrics: [], every: month) {key}}`, catalog, 1 + 1 + 5 + 1000},
		// An empty catalog has at least one group.
		{"{toolGroups(by: category) {key}}", empty, 1 + 1 + 5 + 7},
		{"{retirementGroups(every: quarter, includeEmpty: true) {count}}", empty, 1 + 1 + 5 + 2},
		{"{retirementGroups(by: [category], every: quarter, includeEmpty: true) {count}}", document.Size{Periods: func(string, string, string, string) int { return 4 }}, 1 + 4 + 5 + 2},
		{`{priceChangeCounts(includeEmpty: true) {count}}`, document.Size{Periods: func(string, string, string, string) int { return 3 }}, 1 + 3 + 5 + 10},
		{"{tools(limit: 0) {items {slug}}}", catalog, 1 + 1 + 0 + 5},
		{"{tools(limit: 200) {items {slug}}}", catalog, 1 + 1 + 200 + 5},
		{"{tools(limit: 2000) {items {slug}}}", catalog, 1 + 1 + 200 + 5},
		{"{changes(first: 2, last: 3) {nodes {id}}}", catalog, 1 + 1 + 2 + 5},
		{`{comparisonGroups(by: tool, limit: 3) {key}}`, catalog, 1 + 3 + 5 + 400},
		{`{embeddingsSync(limit: 3) {items {__typename}}}`, catalog, 1 + 1 + 3 + 5 + 100},
		{`{embeddingsSync(limit: 3, sync: "a") {items {__typename}}}`, catalog, 1 + 1 + 3 + 5 + 100 + 200},
		// Below 1,000 tools, the catalog is not the larger part of the work.
		{`{tools(limit: 1, filter: {search: "a"}) {items {slug}}}`, document.Size{Tools: 1_000}, 1 + 1 + 1 + 5 + (100+2_200)/100},
		{`{tools(limit: 1, filter: {search: "a"}) {items {slug}}}`, document.Size{Tools: 999}, 1 + 1 + 1 + 5 + (100+2_200)/100},
		{`{tools(limit: 1, filter: {search: "a"}) {items {slug}}}`, document.Size{Tools: 2_000}, 1 + 1 + 1 + 5 + (100+2_200)/50},
		{"{feed {release}}", document.Size{Tools: 1_000, Earlier: 1}, 2 + 100},
		{"{feed {release}}", document.Size{Tools: 1_000, Earlier: 2_000}, 2 + 200},
		{"{feed {release}}", document.Size{Tools: 1_000}, 2},
	} {
		doc, errs := newParser(graph.DefaultLimits).Parse(c.query)
		if len(errs) > 0 {
			t.Errorf("%s: got %v, want no errors", c.query, errs)
			continue
		}
		_, variables, p := document.Variables(graph.Schema(), doc.Operations[0], nil)
		check.Must(t, p, nil)
		got := document.Calculate(doc.Operations[0], variables, c.catalog)
		check.Equal(t, got.Total, c.want, c.query)
		check.Equal(t, got.NeedsKey, strings.Contains(c.query, "embeddings"), c.query)
		check.Equal(t, document.NeedsKey(doc.Operations[0]), got.NeedsKey, c.query)
	}
}

// The program does not start with a schema whose prices are wrong.
func TestPricesAreChecked(t *testing.T) {
	for _, c := range []struct{ wrong, want string }{
		{`type Query {a: Int @cost(once: "many")}`, `Query.a: @cost(once: "many") is not a number of 0 or more`},
		{`type Query {a(b: Int @cost(weight: "-1")): Int}`, `Query.a: @cost(weight: "-1") is not a number of 0 or more`},
		{`enum E {a @cost(once: "")} type Query {a: E}`, `E.a: @cost(once: "") is not a number of 0 or more`},
		{`type Query {a: [Int] @listSize(slicingArguments: ["n"])}`, "Query.a: @listSize names n, which is not an argument"},
		{`type Query {a: Page @listSize(sizedFields: ["items"])} type Page {nodes: [Int]}`, "Query.a: @listSize names items, which Page does not have"},
		{`type Query {a: Secret} type Secret @requiresKey {a: Int}`, "Query.a: Secret requires a key, so the field needs @requiresKey"},
		{`interface I {a: Int @cost(once: "5")} type Query implements I {a: Int}`, "Query.a: the field has other directives in I"},
		{`interface I {a: Int @cost(once: "5")} type Query implements I {a: Int @cost(once: "5") b: Secret @requiresKey} type Secret @requiresKey {a: Int}`, "<nil>"},
	} {
		definitions := check.Try(os.ReadFile("../schema/cost.graphql")).OK(t)
		schema := gqlparser.MustLoadSchema(&ast.Source{Input: string(definitions) + c.wrong})
		check.Equal(t, fmt.Sprint(document.CheckPrices(schema)), c.want, c.wrong)
	}
}

// nested returns a selection within a number of inline fragments.
func nested(levels int, selection string) string {
	return strings.Repeat("...{", levels) + selection + strings.Repeat("}", levels)
}

// repeatedNames joins n numbered copies of a format.
func repeatedNames(format string, n int) string {
	var text strings.Builder
	for i := range n {
		fmt.Fprintf(&text, format, i)
	}
	return text.String()
}

// Each limit allows as much as it says, wherever it is in a document.
func TestSizes(t *testing.T) {
	limits := document.Limits{Tokens: 100_000, Fields: 60}
	repeated := strings.Repeat("slug ", 50)
	const tooMuch = "too complex to validate"
	for _, c := range []struct{ query, want string }{
		{"{tools {items {slug}}}", ""},
		{"{tools {items {" + repeated + strings.Repeat("name ", 8) + "}}}", ""},
		{"{tools {items {" + repeated + strings.Repeat("name ", 9) + "}}}", "more than 60 fields"},
		{"{tools {items {...F}}} fragment F on Tool {" + repeated + strings.Repeat("name ", 9) + "}", "more than 60 fields"},
		{"{feed {release}} fragment F on Tool {" + repeated + strings.Repeat("name ", 9) + "}", "more than 60 fields"},
		{"{a: __type(name: \"A\") {fields {type {interfaces {possibleTypes {name}}}}}}", "Maximum introspection depth"},
		{"{__type(name: \"A\") {fields {type {interfaces {possibleTypes {inputFields {name}}}}}}}", "Maximum introspection depth"},
		{"{__type(name: \"A\") {inputFields {type {inputFields {type {inputFields {type {inputFields {name}}}}}}}}}", "Maximum introspection depth"},
		{"{__type(name: \"A\") {interfaces {interfaces {interfaces {interfaces {name}}}}}}", "Maximum introspection depth"},
		{"{__type(name: \"A\") {possibleTypes {possibleTypes {possibleTypes {possibleTypes {name}}}}}}", "Maximum introspection depth"},
		{"{__type(name: \"A\") {ofType {ofType {ofType {ofType {ofType {name}}}}}}}", ""},
		{"{__type(name: \"A\") {...F}} fragment F on __Type {ofType {ofType {ofType {ofType {name}}}}}", ""},
		// Fields are compared with all others of their name, for each inline fragment around them.
		{"{" + strings.Repeat("feed {release} ", 30) + "}", ""},
		{"{feed {" + strings.Repeat("release ", 59) + "}}", ""},
		{"{feed {" + nested(1, strings.Repeat("release ", 60)) + "}}", "more than 60 fields"},
		{"{feed {" + nested(4, strings.Repeat("release ", 59)) + "}}", ""},
		{"{feed {" + nested(5, strings.Repeat("release ", 59)) + "}}", tooMuch},
		{"{" + nested(5, "feed {"+strings.Repeat("release ", 59)+"}") + "}", tooMuch},
		{"{feed {" + nested(10, repeatedNames("a%d: release ", 59)) + "}}", ""},
		{"{feed {" + nested(140, "release") + "}}", tooMuch},
		{"{feed {..." + strings.Repeat("@a ", 10_000) + "{release}}}", tooMuch},
		// Fragments are visited again from each operation and fragment.
		{"{feed {" + strings.Repeat("...F ", 59) + "}} fragment F on Feed {release}", ""},
		{"{feed {" + strings.Repeat("...F ", 141) + "}} fragment F on Feed {...F}", tooMuch},
		{"{feed {...F}} fragment F on Feed {release " + strings.Repeat("@a ", 4_990) + "}", "Unknown directive"},
		{"{feed {...F}} fragment F on Feed {release " + strings.Repeat("@a ", 5_000) + "}", tooMuch},
		{"{feed {...F}} fragment F on Feed {release(a: [" + strings.Repeat("[1] ", 199) + "])}", "Unknown argument"},
		{"{feed {...F}} fragment F on Feed {release(a: [" + strings.Repeat("["+strings.Repeat("1 ", 30)+"] ", 199) + "])}", tooMuch},
		{"query " + strings.Repeat("@a ", 9_998) + "{feed {release}}", "Unknown directive"},
		{"query " + strings.Repeat("@a ", 9_999) + "{feed {release}}", tooMuch},
		{"query " + strings.Repeat("@a(b: 1) ", 4_999) + "{feed {release}}", "Unknown directive"},
		{"query " + strings.Repeat("@a(b: 1) ", 5_000) + "{feed {release}}", tooMuch},
		{"{a: feed {...F} b: feed {...F}} fragment F on Feed {release " + strings.Repeat("@a ", 3_400) + "}", tooMuch},
		{"query (" + strings.Repeat("$a: Int ", 10_000) + ") {feed {release}}", tooMuch},
		{"{feed {release}} fragment F on Feed " + strings.Repeat("@a ", 10_000) + "{release}", tooMuch},
		{"{feed {...F " + strings.Repeat("@a ", 10_000) + "}} fragment F on Feed {release}", tooMuch},
	} {
		_, errs := newParser(limits).Parse(c.query)
		check.Equal(t, len(errs) > 0, c.want != "", "%.120s", c.query)
		check.Contains(t, fmt.Sprint(errs), c.want, "%.120s", c.query)
	}
}

// A null variable is only an error in an argument that must not be null.
func TestNullArguments(t *testing.T) {
	doc, errs := newParser(graph.DefaultLimits).Parse("query ($s: String = \"a\", $c: String) {tool(slug: $s) {slug} comparisons(category: $c) {items {slug}}}")
	check.Must(t, len(errs), 0, errs)
	for _, c := range []struct {
		variables map[string]any
		want      string
	}{{nil, ""}, {map[string]any{"s": "a", "c": nil}, ""}, {map[string]any{"s": nil, "c": "a"}, "slug"}} {
		check.Equal(t, document.Calculate(doc.Operations[0], c.variables, document.Size{}).NullArgument, c.want, c.variables)
	}
}

// FuzzDocument checks that comments do not change the identity of a document, that converted
// variables are in their final form, and that every accepted operation has a cost.
func FuzzDocument(f *testing.F) {
	for query, variables := range map[string]string{
		"{feed {release}}": `{}`,
		"query ($n: Int! = 2, $f: ToolFilter) {tools(limit: $n, filter: $f) {items {...T}}} fragment T on Tool {slug alternatives {slug}}": `{"n":3,"f":{"categories":["code"],"scoreMin":7}}`,
		"query ($s: [SeriesMetric!]!) {series(metrics: $s, every: month) {points {value}}}":                                                `{"s":"count"}`,
		"{a: tool(slug: \"plume\") @skip(if: false) {slug} ... on Query {stats {toolsTotal}}}":                                             `null`,
		"subscription {released {release}}":       `{"unknown":1}`,
		"{tools(limit: 99999999999) {items}} # x": `{`,
	} {
		f.Add(query, variables)
	}
	parser := document.NewParser(graph.Schema(), graph.DefaultLimits, cache.New(1<<20, nil, slog.New(slog.DiscardHandler)))
	f.Fuzz(func(t *testing.T, query, variables string) {
		doc, errs := parser.Parse(query)
		if len(errs) > 0 {
			check.Equal(t, doc, nil, "%q: %v", query, errs)
			check.True(t, errs[0].Message != "", "%q: got %v, want an error with a message", query, errs)
			return
		}
		if again, errs := parser.Parse("# comment\n,," + query + "\n,# comment"); len(errs) > 0 || again.ID != doc.ID {
			t.Errorf("%q: got %v with comments, want the same document", query, errs)
		}
		var given map[string]any
		decoder := json.NewDecoder(strings.NewReader(variables))
		decoder.UseNumber()
		if decoder.Decode(&given) != nil {
			return
		}
		for _, op := range doc.Operations {
			read, withDefaults, p := document.Variables(graph.Schema(), op, given)
			if p != nil {
				check.Equal(t, p.Code, problem.BadInput, "%q with %q: %v", query, variables, p)
				continue
			}
			if again, _, p := document.Variables(graph.Schema(), op, read); p != nil || !reflect.DeepEqual(again, read) {
				t.Errorf("%q with %q: got %v and %v from %v, want the same", query, variables, again, p, read)
			}
			cost := document.Calculate(op, withDefaults, document.Size{Tools: 100, Categories: 10})
			check.True(t, cost.Total >= 0, "%q with %q: got cost %d, want none below 0", query, variables, cost.Total)
		}
	})
}
