package graph_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/vektah/gqlparser/v2/ast"

	"palmares/ent"
	"palmares/graph"
	"palmares/graph/document"
	"palmares/graph/graphtest"
	"palmares/internal/catalog/feed/demo"
	"palmares/internal/catalog/feed/feedtest"
	"palmares/internal/catalog/feed/synth"
	"palmares/internal/catalog/release"
	"palmares/internal/core/store"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
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
		if cost, _, _ := e.Cost(t.Context(), graph.Request{Query: query}); took/time.Duration(cost) > 150*time.Microsecond {
			t.Errorf("%.80s: got a cost of %d for %v, want at least %d", query, cost, took, took/(150*time.Microsecond))
		}
	}
	// Tools that read the whole schema still can.
	if cost, limit, err := e.Cost(t.Context(), graph.Request{Query: wholeSchema}); err != nil || cost > limit/4 {
		t.Errorf("got a cost of %d (%v) for the whole schema, want at most a quarter of %d", cost, err, limit)
	}
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
		var statements atomic.Int64
		s.Read.Intercept(ent.InterceptFunc(func(next ent.Querier) ent.Querier {
			return ent.QuerierFunc(func(ctx context.Context, q ent.Query) (ent.Value, error) {
				if ctx.Err() == nil {
					statements.Add(1)
				}
				return next.Query(ctx, q)
			})
		}))
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
