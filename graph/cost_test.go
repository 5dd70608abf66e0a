package graph_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/vektah/gqlparser/v2/ast"

	"palmares/graph"
	"palmares/graph/document"
	"palmares/graph/graphtest"
	"palmares/internal/catalog/feed/demo"
	"palmares/internal/catalog/feed/feedtest"
	"palmares/internal/catalog/feed/synth"
	"palmares/internal/catalog/release"
	"palmares/internal/core/cache"
	"palmares/internal/core/store"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
	"palmares/internal/dev/testkit/wait"
)

func TestCosts(t *testing.T) {
	s := testkit.Open(t, testkit.SQLite(t))
	feedtest.Publish(t, s, demo.Catalog())
	e := newExecutor(s)
	check.OK(t, e.Preload(t.Context()))
	for query, want := range map[string]int{
		"{feed {release}}":                                               2,
		"{tools(limit: 3) {items {slug}}}":                               1 + 1 + 3 + 5,
		"{tools(limit: 3, filter: {}) {items {slug}}}":                   1 + 1 + 3 + 5,
		"{tools(limit: 3, filter: {icps: null}) {items {slug}}}":         1 + 1 + 3 + 5,
		"{tools(limit: 3, page: 9) {items {slug}}}":                      1 + 1 + 3 + 5,
		"{tools(limit: 3, filter: {not: {scoreMin: 8}}) {items {slug}}}": 1 + 1 + 3 + 5 + 200,
		"{tools(limit: 3, filter: {icps: [mixte], anyOf: [{scoreMin: 8}, {not: {tiers: 1, search: \"e\"}}]}) {items {slug}}}": 1 + 1 + 3 + 5 + 400 + 2_200,
		"{toolGroups(by: category) {key}}":                                     1 + 8 + 5 + 700,
		"{toolGroups(by: category, limit: 2) {key}}":                           1 + 2 + 5 + 700,
		"{tools(limit: 200, page: 7) {items {slug}}}":                          1 + 1 + 200 + 5,
		"{tools(limit: 200, page: 1000000) {items {slug}}}":                    1 + 1 + 200 + 5,
		`{tools(limit: 3, filter: {categories: ["code"]}) {items {slug}}}`:     1 + 1 + 3 + 5 + 100,
		"{tools(limit: 3, filter: {icps: [mixte]}) {items {slug}}}":            1 + 1 + 3 + 5 + 100,
		`{tools(limit: 3, filter: {search: "a"}) {items {slug}}}`:              1 + 1 + 3 + 5 + 100 + 2_200,
		"{tools(limit: 200, page: 7, filter: {icps: [mixte]}) {items {slug}}}": 1 + 1 + 200 + 5 + 100,
		// One statement reads the categories of all tools, so it counts once.
		"{tools(limit: 100) {items {category {slug}}}}":                           1 + 1 + 100*2 + 5 + 5,
		"{categories {a: tools(limit: 1) {slug} b: tools(limit: 1) {slug}}}":      1 + 20*4 + 3*5 + 2*200,
		"{toolGroups(by: tier) {key}}":                                            1 + 3 + 5 + 700,
		"{toolGroups(by: tier, thenBy: pricing) {key}}":                           1 + 9 + 5 + 700,
		"{scoreHistogram {count}}":                                                1 + 10 + 5 + 200,
		"{scoreHistogram(filter: {tierless: 1}) {count}}":                         0, // rejected before its cost is computed
		"{scoreHistogram(filter: {scoreMin: 1, search: \"e\"}) {count}}":          1 + 10 + 5 + 200 + 100 + 2_200,
		"{toolGroups(by: billing_period) {key}}":                                  1 + 7 + 5 + 700,
		"{tools(limit: 3, filter: {priceIncreases: {}}) {items {slug}}}":          1 + 1 + 3 + 5 + 100 + 1000,
		"{toolGroups(by: tier) {p90Score avgObsolescence medianDaysSinceUpdate}}": 1 + 3*3 + 5 + 700 + 2*100,
		"{series(metrics: [count, p25_score, mean_verifiability]) {key}}":         1 + 3 + 5 + 1000 + 400,
		// A group for each period and reason, and a count for each month and category.
		"{retirementGroups(every: quarter) {count}}":                                                 1 + 100 + 5 + 200,
		"{retirementGroups(every: quarter, includeEmpty: true) {count}}":                             1 + 5*10 + 5 + 200,
		"{retirementGroups(by: [], every: quarter, includeEmpty: true) {count}}":                     1 + 10 + 5 + 200,
		"{retirementGroups(by: [category], every: quarter, includeEmpty: true) {count}}":             1 + 8*10 + 5 + 200,
		`{retirementGroups(every: quarter, retiredSince: "2026-07-01", includeEmpty: true) {count}}`: 1 + 5*2 + 5 + 200 + 100,
		`{priceChangeCounts(since: "2026-09-09", includeEmpty: true) {count}}`:                       1 + 8*3 + 5 + 1000,
		// Comparing a tool with all others is work for each tool.
		"{tools(limit: 10) {items {alternatives(limit: 3) {slug}}}}":                           1 + 1 + 10*(1+1+50+3) + 5 + 5,
		`{priceChangeCounts(limit: 1, includeRetired: true) {count}}`:                          1 + 1 + 5 + 1000 + 500,
		`{movers(metric: score, from: "2026-01-01", first: 1) {slug}}`:                         1 + 1 + 5 + 1800,
		`{toolGroups(by: tier) {change(from: "2026-01-01") {count}}}`:                          1 + 3*2 + 2*5 + 700 + 12_000,
		"{categories {formerSlugs}}":                                                           1 + 20 + 2*5 + 1000,
		"{priceChangeCounts {count}}":                                                          1 + 100 + 5 + 1000,
		`{comparisons(limit: 1, category: "code") {items {slug}}}`:                             1 + 1 + 1 + 5 + 100,
		`{changes(first: 1, category: "code") {nodes {id}}}`:                                   1 + 1 + 1 + 5 + 1500,
		`{changes(first: 1, types: [tool_created, price_changed, tool_created]) {nodes {id}}}`: 1 + 1 + 1 + 5 + 2000,
		`{retiredTools(limit: 1, category: "code") {items {slug}}}`:                            1 + 1 + 1 + 5 + 100,
		`{changes(first: 1, fields: ["price"]) {nodes {id}}}`:                                  1 + 1 + 1 + 5 + 5000,
		`{changes(first: 1, release: 1, since: "2026-01-01") {nodes {id}}}`:                    1 + 1 + 1 + 5,
		`{changes(first: 1, slug: "a", fields: ["price"]) {nodes {id}}}`:                       1 + 1 + 1 + 5,
		`{changes(first: 1, slug: "a", types: [tool_created, price_changed]) {nodes {id}}}`:    1 + 1 + 1 + 5 + 2*5,
		`{changes(first: 1, slug: null, types: [tool_created]) {nodes {id}}}`:                  1 + 1 + 1 + 5 + 1000,
		`{node(id: "tool/a") {id ... on Tool {name category {slug}}}}`:                         1 + 2 + 2 + 5 + 5,
		`{nodes(ids: ["tool/a", "tool/b", "tool/a"]) {id ... on Tool {name category {slug}}}}`: 1 + 3*(2+2) + 5 + 5,
		`{nodes(ids: []) {id}}`:       1 + 5,
		`{nodes(ids: "tool/a") {id}}`: 1 + 1 + 5,
		// A hundred fields that describe the schema cost 1.
		"{__schema {__typename}}": 2,
		"{__schema {types {fields {args {name}} inputFields {name} enumValues {name} interfaces {name} possibleTypes {name}}}}": 1 + (1+120*(1+15*2+15+9+2+6)+99)/100,
		"{__schema {directives {" + repeated(60, "a%d: args {name} ") + "}}}":                                                   1 + (1+12*60*2+99)/100,
		// Nested connections are multiplied by their parents, and so is the work of
		// finding the changes of each tool.
		"{tools(limit: 10) {items {comparisonConnection(first: 3) {totalCount nodes {slug}}}}}":               1 + 1 + 10*(1+1+1+3) + 5 + 5,
		"{tools(limit: 10) {items {comparisonConnection {edges {node {slug}}}}}}":                             1 + 1 + 10*(1+1+50*2) + 5 + 5,
		"{changes(first: 10) {events nextCursor}}":                                                            1 + (1 + 10*8) + 1 + 5 + 5 + 5,
		"{tools(limit: 10) {items {changes(last: 3, types: [tool_created, tool_updated]) {nodes {id}}}}}":     1 + 1 + 10*(1+20+1+3) + 5 + 5,
		`{comparisons(limit: 2) {items {toolA {changes(first: 1) {nodes {id}}}}}}`:                            1 + 1 + 2*(1+1+20+1+1) + 5 + 5 + 5,
		"{categories {toolConnection(first: 2) {nodes {slug}}}}":                                              1 + 20*(1+1+2) + 5 + 5 + 200,
		`{category(slug: "a") {toolConnection(first: 2) {nodes {changes(first: 2) {nodes {tool {slug}}}}}}}`:  1 + 1 + 1 + 2*(1+20+1+2*2) + 5 + 5 + 200 + 5 + 5,
		"{tools(limit: 200) {items {changes(first: 200) {nodes {tool {changes(first: 200) {nodes {id}}}}}}}}": 1_000_000,
		// An earlier release may have to be derived, regardless of what is read. It is
		// small here, but its tools have to be found among all others.
		"query @asOf(release: 1) {feed {release}}":                                        2 + 1_000,
		`query @asOf(date: "2099-01-01") {a: feed {release} b: feed {release}}`:           4 + 1_000,
		`query @asOf(release: 1) {tools(limit: 3, filter: {search: "a"}) {items {slug}}}`: 1 + 1 + 3 + 5 + 100 + 2_200 + 1_000,
		`query @asOf(release: 9) {feed {release}}`:                                        2 + 10_000, // there is none
	} {
		check.Equal(t, execute(t, e, "", query).Cost, want, query)
	}
	// In a catalog of 5,000 tools, a filter costs a twentieth.
	small := graphtest.New(graph.Config{Catalog: s, Tools: func() int { return 5_000 }})
	check.Equal(t, execute(t, small, "", "{tools(limit: 3, filter: {icps: [mixte]}) {items {slug}}}").Cost, 1+1+3+5+5, "5,000 tools")
	// A filter in a variable costs the same as a literal one.
	const query = "query ($f: ToolFilter) {tools(limit: 3, filter: $f) {items {slug}}}"
	for cost, filter := range map[int]any{10: nil, 110: map[string]any{"categories": []any{"code"}}, 2_310: map[string]any{"search": "code"}} {
		check.Equal(t, execute(t, e, "", query, map[string]any{"f": filter}).Cost, cost, filter)
	}
}

// A unit of cost stands for at most 150 µs. At 20,000 tools, these took the CPU time beside
// them.
func TestCostsCoverWork(t *testing.T) {
	s := testkit.Open(t, testkit.SQLite(t))
	e := graphtest.New(graph.Config{Catalog: s, Tools: func() int { return 20_000 }})
	const introspection = "__schema {types {fields {type {ofType {fields {args {name}}}}}}} "
	together := ""
	for i := range 48 {
		together += fmt.Sprintf("a%d: %s", i, introspection)
	}
	for query, took := range map[string]time.Duration{
		"{" + introspection + "}": 7900 * time.Microsecond, "{" + together + "}": 377 * time.Millisecond,
		`{tools(limit: 1, filter: {search: "e"}) {items {slug}}}`: 66 * time.Millisecond,
		`{movers(metric: score, from: "2026-01-01") {slug}}`:      35 * time.Millisecond,
	} {
		cost, _, _ := e.Cost(t.Context(), graph.Request{Query: query})
		check.True(t, took/time.Duration(cost) <= 150*time.Microsecond, "%.80s: got a cost of %d for %v, want at least %d", query, cost, took, took/(150*time.Microsecond))
	}
	// Tools that read the whole schema still can.
	cost, limit, err := e.Cost(t.Context(), graph.Request{Query: wholeSchema})
	check.True(t, err == nil && cost <= limit/4, "got a cost of %d (%v) for the whole schema, want at most a quarter of %d", cost, err, limit)
}

// wholeSchema is the query with which tools read a schema.
const wholeSchema = `query IntrospectionQuery {
  __schema { queryType { name } mutationType { name } subscriptionType { name } types { ...FullType } directives { name description locations args { ...InputValue } } }
}
fragment FullType on __Type {
  kind name description
  fields(includeDeprecated: true) { name description args { ...InputValue } type { ...TypeRef } isDeprecated deprecationReason }
  inputFields { ...InputValue } interfaces { ...TypeRef } enumValues(includeDeprecated: true) { name description isDeprecated deprecationReason } possibleTypes { ...TypeRef }
}
fragment InputValue on __InputValue { name description type { ...TypeRef } defaultValue }
fragment TypeRef on __Type { kind name ofType { kind name ofType { kind name ofType { kind name ofType { kind name ofType { kind name ofType { kind name ofType { kind name } } } } } } } }`

// The lists that describe the schema are not longer than their prices assume: on average, as
// fields lead to them.
// A relative date is resolved after the price is known, so it must not make anything cheaper.
func TestCostsOfRelativeDates(t *testing.T) {
	s := testkit.Open(t, testkit.SQLite(t))
	for _, date := range []string{"2024-01-05", "2026-11-01"} {
		feedtest.Publish(t, s, feedtest.Catalog(date, feedtest.Tool("a")))
	}
	e := graphtest.New(graph.Config{Catalog: s})
	for _, query := range []string{
		`query ($day: Date) {series(metrics: [count], every: week, to: $day) {points {value}}}`,
		`query ($day: Date) {series(metrics: [count], every: week, from: $day) {points {value}}}`,
		`query ($day: Date) {retirementGroups(by: [], every: month, retiredBefore: $day, includeEmpty: true) {count}}`,
	} {
		execute(t, e, "", query) // loads the catalog, on which prices depend
		want := execute(t, e, "", query).Cost
		for _, day := range []string{"-1d", "latest"} {
			got := execute(t, e, "", query, map[string]any{"day": day}).Cost
			check.True(t, got >= want, "%s with %s: got %d, want at least %d", query, day, got, want)
		}
	}
}

func TestIntrospectionSizes(t *testing.T) {
	schema := graph.Schema()
	count, args, fields, weighted := map[string]int{"types": len(schema.Types), "directives": len(schema.Directives)}, 0, 0, 0
	inputs, values, enums, objects := 0, 0, 0, 0
	for _, definition := range schema.Types {
		switch definition.Kind {
		case ast.Object, ast.Interface:
			fields += len(definition.Fields)
			weighted += len(definition.Fields) * len(definition.Fields)
			for _, f := range definition.Fields {
				args += len(f.Arguments)
			}
		case ast.InputObject:
			inputs += len(definition.Fields)
			objects++
		case ast.Enum:
			values += len(definition.EnumValues)
			enums++
		}
	}
	count["args"], count["fields"], count["inputFields"], count["enumValues"] = (args+fields-1)/fields, weighted/fields, inputs/objects, values/enums
	for list, length := range count {
		priced := document.IntrospectionSizes[list]
		check.True(t, length <= priced && length*10 >= priced, "%s: got a price for %d, want about %d", list, priced, length)
	}
}

// The examples in the guides and large everyday queries stay within the limit.
func TestEverydayQueriesAreWithinLimit(t *testing.T) {
	onDemoCatalog(t, func(t *testing.T, e *graph.Executor) {
		for _, query := range []string{
			`{categories: toolGroups(by: category) {key count avgScore maxScore} paid: toolGroups(by: pricing, filter: {scoreMin: 8}) {key count}
				scoreHistogram {from to count} priceChangeCounts(since: "2026-01-01") {month category count}}`,
			"{tools(limit: 200, page: 40, filter: {scoreMin: 1}) {meta {total} items {slug name score tagline category {label} priceHistory {price}}}}",
			"{categories {slug label tools(limit: 10) {slug name score price}}}",
		} {
			mustExecute(t, e, query)
		}
	})
}

// aliased returns a query with n aliases of a root field.
func aliased(n int, field string) string {
	var query strings.Builder
	query.WriteString("{")
	for i := range n {
		fmt.Fprintf(&query, "a%d: %s ", i, field)
	}
	return query.String() + "}"
}

func limitedTo(c release.Database, bytes int64) *graph.Executor {
	limits := graph.DefaultLimits
	limits.Response = bytes
	return graphtest.New(graph.Config{Catalog: c, Credit: credit, Limits: limits})
}

const tooLarge = "The response is larger than %d bytes. Request fewer items or fields, and read the rest page by page."

func TestResponseLimit(t *testing.T) {
	data := feedtest.Synthetic(t, synth.Options{Tools: 300, Seed: 1})
	testkit.EachInFull(t, func(t *testing.T, s *store.Store) {
		feedtest.Publish(t, s, data)
		const field = "changes(first: 200) {nodes {before after}}"
		one := int64(len(mustExecute(t, newExecutor(s), aliased(1, field))))

		result := execute(t, limitedTo(s, 3*one), "", aliased(49, field))
		wantRejected(t, result, "RESPONSE_TOO_LARGE", fmt.Sprintf(tooLarge, 3*one))
		check.True(t, result.Data == nil, "got %d bytes of data, want none", len(result.Data))

		// A response whose size is exactly the limit is sent.
		whole := mustExecute(t, newExecutor(s), aliased(4, field))
		fields := int64(len(whole) - len(`{"a0":,"a1":,"a2":,"a3":}`))
		if result := execute(t, limitedTo(s, fields), "", aliased(4, field)); len(result.Errors) > 0 || string(result.Data) != whole {
			t.Errorf("got %v, want a response of %d bytes", result.Errors, len(whole))
		}
		wantRejected(t, execute(t, limitedTo(s, fields-1), "", aliased(4, field)), "RESPONSE_TOO_LARGE", fmt.Sprintf(tooLarge, fields-1))
	})
}

// Pending fields read nothing once the response is too large.
func TestResponseLimitStopsReading(t *testing.T) {
	data := feedtest.Synthetic(t, synth.Options{Tools: 300, Seed: 1})
	testkit.EachInFull(t, func(t *testing.T, s *store.Store) {
		feedtest.Publish(t, s, data)
		query := aliased(49, "changes(first: 200) {nodes {before after}}")
		execute(t, newExecutor(s), "", query) // loads the release
		statements := countStatements(s)
		execute(t, limitedTo(s, 100_000_000), "", query)
		all := statements.Swap(0)
		execute(t, limitedTo(s, 10_000), "", query)
		few := statements.Load()
		check.True(t, few <= all/2, "got %d statements, want at most half of %d", few, all)
	})
}

// The limit does not apply to the server's own operations.
func TestResponseLimitExemptsOwnOperations(t *testing.T) {
	s := testkit.Open(t, testkit.SQLite(t))
	feedtest.Publish(t, s, demo.Catalog())
	operation := check.Try(graph.NewOperation("{tools {items {slug name tagline}}}")).OK(t)
	result := limitedTo(s, 10).Execute(context.Background(), graph.Request{Operation: operation})
	check.Equal(t, len(result.Errors), 0, "%v and %d bytes", result.Errors, len(result.Data))
	check.True(t, len(result.Data) >= 500, "got %v and %d bytes, want no errors and at least 500 bytes", result.Errors, len(result.Data))
}

// maxRejectTime is the CPU time that rejecting a request may take. The attacks that
// it guards against take seconds or minutes.
const maxRejectTime = 100 * time.Millisecond

// doubled returns nested fragments, each spreading the next one twice.
func doubled(levels int) string {
	var doc strings.Builder
	doc.WriteString("{tools {items {...F0}}}")
	for i := range levels {
		fmt.Fprintf(&doc, " fragment F%d on Tool {...F%d ...F%d}", i, i+1, i+1)
	}
	fmt.Fprintf(&doc, " fragment F%d on Tool {slug}", levels)
	return doc.String()
}

const tooMuchWork = "The document is too complex to validate. Select each field once, and nest fewer fragments."

// nested returns a selection within a number of others.
func nested(levels int, start, selection string) string {
	return strings.Repeat(start, levels) + selection + strings.Repeat("}", levels)
}

// chain returns fragments that spread each other, the last of which has a selection.
func chain(length int, selection string) string {
	var doc strings.Builder
	doc.WriteString("{tools {items {...F0}}}")
	for i := range length {
		fmt.Fprintf(&doc, " fragment F%d on Tool {...F%d}", i, i+1)
	}
	return doc.String() + fmt.Sprintf(" fragment F%d on Tool {%s}", length, selection)
}

func TestHostileDocuments(t *testing.T) {
	e := newExecutor(testkit.Open(t, testkit.SQLite(t)))
	result := execute(t, e, "", chain(35, "slug"))
	check.Equal(t, len(result.Errors), 0, "a short chain of fragments: %v", result.Errors)
	deep := func(levels int) string {
		return `{tool(slug: "x") ` + strings.Repeat(`{category {tools `, levels/2) + `{slug}` + strings.Repeat("}}", levels/2) + "}"
	}
	for name, c := range map[string]struct{ query, code, message string }{
		"doubled fragments":             {doubled(25), "QUERY_TOO_COMPLEX", "The document has more than 500 fields."},
		"identical fields":              {"{tools {items {" + strings.Repeat("slug ", 3000) + "}}}", "QUERY_TOO_COMPLEX", "The document has more than 500 fields."},
		"aliases":                       {"{tools {items {" + aliases(400) + "}}}", "QUERY_TOO_COMPLEX", "The operation costs 20007, which exceeds the limit of 20000. Request fewer items, fields or filtered lists at once."},
		"directives":                    {"{feed {release " + strings.Repeat("@include(if: true) ", 200) + "}}", "GRAPHQL_VALIDATION_FAILED", `The directive "@include" can only be used once at this location.`},
		"depth":                         {deep(14), "QUERY_TOO_COMPLEX", "The operation costs 1000000, which exceeds the limit of 20000. Request fewer items, fields or filtered lists at once."},
		"repeated fields":               {"{tools {items {" + strings.Repeat("slug ", 200) + "}}}", "QUERY_TOO_COMPLEX", tooMuchWork},
		"inline fragments in a row":     {"{tools {items {" + nested(900, "...{", "slug ") + "}}}", "QUERY_TOO_COMPLEX", tooMuchWork},
		"a chain of fragments":          {chain(400, "slug"), "QUERY_TOO_COMPLEX", tooMuchWork},
		"histories":                     {"{tools(limit: 200) {items {a: history {at} b: history {at score} history {at pricing price score} comparisons {toolA {slug ... on Tool {history {at}}}}}}}", "QUERY_TOO_COMPLEX", "The operation costs 47637, which exceeds the limit of 20000. Request fewer items, fields or filtered lists at once."},
		"cost":                          {"{tools(limit: 200) {items {comparisons {toolA {name comparisons {slug title winnerName}} toolB {name comparisons {slug title}}}}}}", "QUERY_TOO_COMPLEX", "The operation costs 112232, which exceeds the limit of 20000. Request fewer items, fields or filtered lists at once."},
		"nested introspection":          {"{__schema {types {fields {type {fields {type {fields {type {fields {name}}}}}}}}}}", "GRAPHQL_VALIDATION_FAILED", "Maximum introspection depth exceeded"},
		"a cycle of fragments":          {"{feed {...A}} fragment A on Feed {...B} fragment B on Feed {...A}", "GRAPHQL_VALIDATION_FAILED", `Cannot spread fragment "A" within itself via "B".`},
		"no operation":                  {"fragment A on Feed {release}", "BAD_USER_INPUT", "The document has no operation."},
		"page 0":                        {"{tools(page: 0) {meta {total}}}", "BAD_USER_INPUT", "page must be an integer from 1 to 1000000 (got 0)."},
		"limit 201":                     {"{tools(limit: 201) {meta {total}}}", "BAD_USER_INPUT", "limit must be an integer from 1 to 200 (got 201)."},
		"first and last":                {"{toolConnection(first: 1, last: 1) {totalCount}}", "BAD_USER_INPUT", "first and last cannot be used together."},
		"an invalid cursor":             {`{toolConnection(after: "%%%") {totalCount}}`, "BAD_USER_INPUT", "after must be a cursor from this list in the same sort order."},
		"a cursor of another list":      {`{toolConnection(after: "` + cursorOf(`{"l":"comparisons","p":["2026-01-01","a"]}`) + `") {totalCount}}`, "BAD_USER_INPUT", "after must be a cursor from this list in the same sort order."},
		"a cursor of another order":     {`{toolConnection(after: "` + cursorOf(`{"l":"tools name_asc","p":["a","a"]}`) + `") {totalCount}}`, "BAD_USER_INPUT", "after must be a cursor from this list in the same sort order."},
		"a cursor of the reverse order": {`{toolConnection(sort: name_desc, after: "` + cursorOf(`{"l":"tools name_asc","p":["a","a"]}`) + `") {totalCount}}`, "BAD_USER_INPUT", "after must be a cursor from this list in the same sort order."},
		"a cursor of other types":       {`{toolConnection(before: "` + cursorOf(`{"l":"tools score_desc","p":[false,"8","a"]}`) + `") {totalCount}}`, "BAD_USER_INPUT", "before must be a cursor from this list in the same sort order."},
		"a cursor with a NUL":           {`{toolConnection(sort: name_asc, before: "` + cursorOf(`{"l":"tools name_asc","p":["a","\u0000"]}`) + `") {totalCount}}`, "BAD_USER_INPUT", "before must be a cursor from this list in the same sort order."},
		"a long search":                 {`{tools(filter: {search: "` + strings.Repeat("é", 201) + `"}) {meta {total}}}`, "BAD_USER_INPUT", "filter.search must have at most 200 characters."},
		"a date that does not exist":    {`{tools(filter: {updatedSince: "2026-02-30"}) {meta {total}}}`, "BAD_USER_INPUT", "A Date must be a valid date in the form YYYY-MM-DD."},
		"the year 0":                    {`{tools(filter: {updatedSince: "0000-01-01"}) {meta {total}}}`, "BAD_USER_INPUT", "A Date must be a valid date in the form YYYY-MM-DD."},
		"an unknown enum value":         {`{tools(sort: best) {meta {total}}}`, "GRAPHQL_VALIDATION_FAILED", "Value \"best\" does not exist in \"ToolSort\" enum. " + allowedSorts},
		"a deeply nested list":          {"{tools(filter: {categories: " + strings.Repeat("[", 200_000), "GRAPHQL_PARSE_FAILED", "exceeded maximum nesting depth of 1000"},
		"an unused fragment":            {"{__typename} fragment F on Tool {" + strings.Repeat("slug:name slug ", 900) + "}", "QUERY_TOO_COMPLEX", "The document has more than 500 fields."},
		"a long name":                   {"{" + strings.Repeat("x", 90_000) + "}", "QUERY_TOO_COMPLEX", "The document has a name of more than 200 characters."},
		"a long argument":               {"{tools(" + strings.Repeat("x", 300) + ": 1) {meta {total}}}", "QUERY_TOO_COMPLEX", "The document has a name of more than 200 characters."},
		"too many tokens":               {"{" + strings.Repeat("feed{release}", 2000) + "}", "GRAPHQL_PARSE_FAILED", "exceeded token limit of 4000"},
	} {
		t.Run(name, func(t *testing.T) {
			start := wait.CPU()
			result := execute(t, e, "", c.query)
			used := wait.CPU() - start
			check.True(t, used <= maxRejectTime, "got %v of CPU time, want at most %v", used, maxRejectTime)
			wantRejected(t, result, c.code, c.message)
		})
	}
}

// The response to an invalid document is short, however many errors it has.
func TestErrorsAreTruncated(t *testing.T) {
	e := newExecutor(testkit.Open(t, testkit.SQLite(t)))
	for name, query := range map[string]string{
		"fields that conflict": "{tools {items {" + strings.Repeat("slug:name ", 40) + strings.Repeat("slug ", 400) + "}}}",
		"unknown arguments":    "{feed {release(" + strings.Repeat("x:1 ", 500) + ")}}",
		"a long name":          "{" + strings.Repeat("x", 90_000) + "}",
	} {
		start := wait.CPU()
		result := execute(t, e, "", query)
		used := wait.CPU() - start
		text, err := json.Marshal(result.Errors)
		if err != nil || len(result.Errors) == 0 || len(text) > 10_000 || used > maxRejectTime {
			t.Errorf("%s: got %d errors in %d bytes, %v of CPU time and %v, want some errors in at most 10,000 bytes and %v",
				name, len(result.Errors), len(text), used, err, maxRejectTime)
		}
	}
}

func TestNullForNonNullArguments(t *testing.T) {
	e := newExecutor(testkit.Open(t, testkit.SQLite(t)))
	for query, message := range map[string]string{
		`query ($s: ToolSort) {category(slug: "code") {tools(sort: $s) {slug}}}`:                             "sort must not be null.",
		`query ($s: Int) {tools(limit: $s) {meta {total}}}`:                                                  "limit must not be null.",
		`query ($s: Int) {tools {...P}} fragment P on ToolPage {items {category {tools(limit: $s) {slug}}}}`: "limit must not be null.",
	} {
		wantRejected(t, execute(t, e, "", query, map[string]any{"s": nil}), "BAD_USER_INPUT", message)
	}
}

// An omitted variable costs the same as its default.
func TestCostOfDefaults(t *testing.T) {
	e := newExecutor(testkit.Open(t, testkit.SQLite(t)))
	costs := map[string]int{}
	for name, query := range map[string]string{
		"omitted": `query ($l: Int) {categories {tools(limit: $l) {slug name}}}`, "explicit": `{categories {tools(limit: 10) {slug name}}}`,
	} {
		costs[name] = execute(t, e, "", query).Cost
	}
	check.Equal(t, costs["omitted"], costs["explicit"])
	check.True(t, costs["omitted"] >= 400, "got costs %v, want equal ones of at least 400", costs)
}

func aliases(n int) string {
	var fields strings.Builder
	for i := range n {
		fmt.Fprintf(&fields, "a%d:slug ", i)
	}
	return fields.String()
}

const allowedSorts = "Allowed: score_desc, score_asc, name_asc, name_desc, updated_desc, updated_asc, price_asc, price_desc, " +
	"monthly_price_asc, monthly_price_desc, value_desc, relevance."

func TestInvalidVariables(t *testing.T) {
	e := newExecutor(testkit.Open(t, testkit.SQLite(t)))
	many := make([]any, 70_000)
	for i := range many {
		many[i] = "code"
	}
	const query = `query ($page: Int!, $filter: ToolFilter) {tools(page: $page, filter: $filter) {meta {total}}}`
	wantRejected(t, execute(t, e, "", query, map[string]any{}), "BAD_USER_INPUT", "$page is required.")
	wantRejected(t, execute(t, e, "", `query ($sort: ToolSort!) {tools(sort: $sort) {meta {total}}}`, map[string]any{"sort": "best"}), "BAD_USER_INPUT", "$sort must be of type ToolSort!. "+allowedSorts)
	for name, variables := range map[string]map[string]any{
		"text":                {"page": "1"},
		"past 32 bits":        {"page": json.Number("4294967296")},
		"half":                {"page": json.Number("1.5")},
		"null":                {"page": nil},
		"an invalid date":     {"page": json.Number("1"), "filter": map[string]any{"updatedSince": "yesterday"}},
		"a boolean in a list": {"page": json.Number("1"), "filter": map[string]any{"categories": []any{"code", true}}},
		"unknown field":       {"page": json.Number("1"), "filter": map[string]any{"colour": "red"}},
		"more than 65,535":    {"page": json.Number("1"), "filter": map[string]any{"categories": many}},
		"a number too high":   {"page": json.Number("1"), "filter": map[string]any{"scoreMin": json.Number("1e999")}},
	} {
		t.Run(name, func(t *testing.T) {
			result := execute(t, e, "", query, variables)
			check.MustTrue(t, len(result.Errors) != 0, "got %s %v, want BAD_USER_INPUT", result.Data, result.Errors)
			check.Equal(t, result.Errors[0].Extensions["code"], "BAD_USER_INPUT", "%s %v", result.Data, result.Errors)
		})
	}
}

// cpuTime returns the CPU time that do takes on this thread.
func cpuTime(t *testing.T, do func()) time.Duration {
	t.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	now := func() time.Duration {
		const threadCPUTime = 3 // CLOCK_THREAD_CPUTIME_ID
		var spent syscall.Timespec
		_, _, failed := syscall.Syscall(syscall.SYS_CLOCK_GETTIME, threadCPUTime, uintptr(unsafe.Pointer(&spent)), 0)
		check.Must(t, failed, 0)
		return time.Duration(spent.Nano())
	}
	start := now()
	do()
	return now() - start
}

// repeated joins n numbered copies of a format.
func repeated(n int, format string) string {
	var text strings.Builder
	for i := range n {
		fmt.Fprintf(&text, format, i)
	}
	return text.String()
}

// ring returns fragments that each spread the following ones at some distances.
func ring(length int, on string, distances ...int) string {
	var text strings.Builder
	for i := range length {
		fmt.Fprintf(&text, "fragment F%d on %s {", i, on)
		for _, distance := range distances {
			fmt.Fprintf(&text, "...F%d ", (i+distance)%length)
		}
		text.WriteString("} ")
	}
	return text.String()
}

// hostileDocuments returns documents of up to 100 kB that are expensive to reject.
func hostileDocuments() map[string]string {
	long := strings.Repeat("x", 190)
	return map[string]string{
		"fragments on unknown types":    "{feed {release}}" + repeated(440, "fragment F%d on "+long+" {x}"),
		"spreads of unknown types":      "{tools {items {" + repeated(400, "... on "+long+"%d {slug} ") + "}}}",
		"unknown fields":                "{tools {items {" + repeated(450, long+"%d ") + "}}}",
		"unknown arguments":             "{tools(" + repeated(450, long+"%d: 1 ") + ") {meta {total}}}",
		"unknown input fields":          "{tools(filter: {" + repeated(450, long+"%d: 1 ") + "}) {meta {total}}}",
		"unknown enum values":           "{tools(filter: {icps: [" + repeated(99, long+"%d ") + "]}) {meta {total}}}",
		"unknown directives":            "{feed {release " + repeated(45, "@"+long+"%d ") + "}}",
		"unknown variable types":        "query (" + repeated(450, "$v%d: "+long+" ") + ") {feed {release}}",
		"undefined variables":           "{tools {items {" + repeated(45, "a%d: comparisons(limit: $"+long+") {slug} ") + "}}}",
		"fields that conflict":          "{tools {items {" + strings.Repeat("slug:name ", 40) + strings.Repeat("slug ", 400) + "}}}",
		"nested fields that conflict":   "{tools {items {" + strings.Repeat("category {tools {slug}} ", 40) + strings.Repeat("category {tools {slug: name}} ", 40) + "}}}",
		"fragments that conflict":       "{tools {items {" + repeated(40, "...F%d ") + "}}}" + repeated(40, "fragment F%d on Tool {slug: name category {slug} ... {slug}}"),
		"fields that hardly conflict":   "{tools {items {" + repeated(2, "a%d: category {"+strings.Repeat("slug ", 25)+strings.Repeat("slug: label ", 24)+"} ") + "}}}",
		"fragments in circles":          "{feed {...F0}}" + repeated(400, "fragment F%[1]d on Feed {...F1 ...F2 ...F3 ...F%[1]d}"),
		"inline fragments":              "{tools {items {" + nested(900, "...{", strings.Repeat("slug ", 50)+strings.Repeat("name ", 50)) + "}}}",
		"conflicts in inline fragments": "{tools {items {" + nested(5, "...{", strings.Repeat("slug ", 25)+strings.Repeat("slug: name ", 24)) + "}}}",
		"conflicts":                     "{tools {items {" + strings.Repeat("slug ", 70) + strings.Repeat("slug: name ", 69) + "}}}",
		"a chain of fragments":          chain(430, "slug"),
		"arguments below a chain":       chain(100, "slug("+repeated(900, "a%d: 1 ")+")"),
		"directives below a chain":      chain(100, "slug "+repeated(1_400, "@a%d ")),
		"fields below a chain":          chain(20, repeated(450, "a%d ")),
		"a ring with chords":            "{tools {items {...F0}}}" + ring(330, "Tool", 1, 7),
		"operations that spread a ring": repeated(300, "query Q%d {...F0} ") + ring(200, "Query", 1),
		"deep fields with long names":   "{tools {items {" + nested(115, strings.Repeat("a", 190)+": category {"+strings.Repeat("b", 190)+": tools {", "slug") + strings.Repeat("}", 115) + "}}}",
		"unused fragments":              "{feed {release}}" + repeated(490, "fragment F%d on Feed {release}"),
		"fragments in a circle":         "{feed {...F0}}" + repeated(400, "fragment F%d on Feed {release ...F0}"),
		"fragments that spread all":     "{tools {items {...F0}}}" + repeated(20, "fragment F%d on Tool {"+repeated(20, "...F%d ")+"}"),
		"list of numbers":               "{tools(filter: {categories: [" + strings.Repeat("1 ", 45_000) + "]}) {meta {total}}}",
		"lists in lists":                "{tools(filter: {categories: " + strings.Repeat("[", 1_900) + strings.Repeat("]", 1_900) + "}) {meta {total}}}",
		"open brackets":                 strings.Repeat("{a", 45_000),
		"one long string":               `{tools(filter: {search: "` + strings.Repeat("x", 99_000) + `"}) {nothing}}`,
		"one long comment":              "#" + strings.Repeat("x", 99_000),
		"many comments":                 strings.Repeat("#\n", 50_000),
		"one long name":                 "{" + strings.Repeat("x", 99_000) + "}",
		"block string with many lines":  `{tools(filter: {search: """` + strings.Repeat("  x\n", 20_000) + `"""}) {nothing}}`,
		"many operations":               repeated(700, "query Q%d {feed {release}} "),
		"many unnamed operations":       strings.Repeat("{feed {release}} ", 700),
		"many equally named operations": strings.Repeat("query Q {feed {release}} ", 600),
		"many variables, all unused":    "query (" + repeated(900, "$v%d: Int ") + ") {feed {release}}",
		"the same variable":             "query (" + strings.Repeat("$v: Int ", 900) + ") {feed {release}}",
		"escapes":                       `{tools(filter: {search: "` + strings.Repeat(`\u00e9`, 16_000) + `"}) {nothing}}`,
	}
}

// Rejecting a document of up to 100 kB takes at most 20 ms of CPU time and leaves
// nothing in the cache.
func TestRejectingIsCheap(t *testing.T) {
	const most = 20 * time.Millisecond
	responses := cache.New(64<<20, nil, slog.New(slog.DiscardHandler))
	e := graphtest.New(graph.Config{
		Catalog: testkit.Open(t, testkit.SQLite(t)), Limits: graph.DefaultLimits, Log: slog.New(slog.DiscardHandler), Cache: responses,
	})
	for name, query := range hostileDocuments() {
		check.MustTrue(t, len(query) <= 100_000, "%s: got a document of %d bytes, want at most 100,000", name, len(query))
		var result *graph.Result
		least := time.Hour
		for range 3 { // the shortest run has no garbage collection
			least = min(least, cpuTime(t, func() { result = execute(t, e, "", query) }))
		}
		check.True(t, result.Rejected(), "%s: got %.100s, want a rejection", name, result.Data)
		check.True(t, least <= most, "%s: got %v of CPU time, want at most %v", name, least, most)
		t.Logf("%-32s %v", name, least)
	}
	check.Equal(t, responses.Entries(), 0, "items in the cache")
}

// The error for a misspelled name in a short document suggests the right one.
func TestSuggestions(t *testing.T) {
	e := newExecutor(testkit.Open(t, testkit.SQLite(t)))
	result := execute(t, e, "", "{tools {items {sluq}}}")
	check.MustTrue(t, len(result.Errors) != 0, "got %v, want a suggestion of slug", result.Errors)
	check.Contains(t, result.Errors[0].Message, `"slug"`)
}

// @defer is not supported, so the schema must not have it.
func TestNoDefer(t *testing.T) {
	onDemoCatalog(t, func(t *testing.T, e *graph.Executor) {
		check.Lacks(t, mustExecute(t, e, "{__schema {directives {name}}}"), "defer")
		wantRejected(t, execute(t, e, "", "{tools {... @defer {items {slug}}}}"), "GRAPHQL_VALIDATION_FAILED", `Unknown directive "@defer".`)
	})
}
