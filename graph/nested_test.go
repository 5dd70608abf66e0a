package graph_test

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"palmares/auth"
	"palmares/ent"
	"palmares/ent/comparison"
	"palmares/ent/tool"
	"palmares/graph"
	"palmares/internal/catalog/feed/demo"
	"palmares/internal/catalog/feed/feedtest"
	"palmares/internal/catalog/feed/synth"
	"palmares/internal/catalog/record"
	"palmares/internal/core/store"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
)

// expected has all items of connections, derived from the tables.
type expected struct {
	comparisons, changes, tools map[string][]string // IDs by slug of the tool or category
}

func cursorOf(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }

func expectedConnections(t *testing.T, s *store.Store, release int) expected {
	t.Helper()
	want := expected{map[string][]string{}, map[string][]string{}, map[string][]string{}}
	comparisons := s.Read.Comparison.Query().Where(comparison.Published(true)).AllX(t.Context())
	slices.SortFunc(comparisons, func(a, b *ent.Comparison) int {
		return cmp.Or(strings.Compare(b.UpdatedAt, a.UpdatedAt), strings.Compare(a.ID, b.ID))
	})
	for _, c := range comparisons {
		for _, slug := range []string{c.ToolASlug, c.ToolBSlug} {
			want.comparisons[slug] = append(want.comparisons[slug], "comparison/"+c.ID)
		}
	}
	for _, e := range slices.Backward(allEvents(t, s)) {
		if e.AboutTool() && e.Release <= release {
			want.changes[e.Slug] = append(want.changes[e.Slug], e.ID())
		}
	}
	all := s.Read.Tool.Query().Where(tool.RetiredAtIsNil()).AllX(t.Context())
	for _, slug := range sorted(all, sorts["name_desc"]) {
		category := all[slices.IndexFunc(all, func(t *ent.Tool) bool { return t.ID == slug })].CategorySlug
		want.tools[category] = append(want.tools[category], "tool/"+slug)
	}
	return want
}

// Each nested connection returns the same part for all parents, forwards and
// backwards, whatever the parents are reached through, and also when the release
// is an earlier one.
func TestNestedConnections(t *testing.T) {
	type compared struct {
		Slug                          string
		ComparisonConnection, Changes connectionOf
	}
	type response struct {
		Tools, RetiredTools struct{ Items []compared }
		Comparisons         struct {
			Items []struct{ ToolA, Winner compared }
		}
		Categories []struct {
			Slug           string
			ToolConnection connectionOf
		}
		Nodes []compared
	}
	verify := func(t *testing.T, e *graph.Executor, want expected, directive string, random *rand.Rand) {
		t.Helper()
		parents, categories := []string{"t0", "t1", "t2", "t3"}, []string{"code", "voix"}
		about := parents[random.IntN(len(parents))]
		category := categories[random.IntN(len(categories))]
		events := randomRelay(random, want.changes[about])
		tools, comparisons := randomRelay(random, nil), randomRelay(random, nil)
		size := []int{0, 1, 2, 5}[random.IntN(4)]
		for _, p := range []*relay{&tools, &comparisons} {
			if p.first, p.last = size, -1; random.IntN(2) == 0 {
				p.first, p.last = -1, size
			}
		}
		fragment := "fragment T on ComparedTool {slug comparisonConnection(" + comparisons.arguments() + ") " + partFields + " totalCount} changes(" + events.arguments() + ") " + partFields + "}}"
		query := directive + `{tools(limit: 200) {items {...T}} retiredTools {items {...T}} comparisons(limit: 200) {items {toolA {...T} winner {...T}}}
			categories {slug toolConnection(sort: name_desc ` + tools.arguments() + ") " + partFields + ` totalCount}}
			nodes(ids: ["tool/t0", "category/` + category + `", "tool/t1"]) {...T}} ` + fragment
		got := decode[response](t, unpinned(mustExecute(t, e, query)))
		all := slices.Concat(got.Tools.Items, got.RetiredTools.Items)
		for _, c := range got.Comparisons.Items {
			all = append(all, c.ToolA, c.Winner)
		}
		all = append(all, got.Nodes[0], got.Nodes[2])
		for _, c := range all {
			expect(t, c.Slug+" total", c.ComparisonConnection.TotalCount, len(want.comparisons[c.Slug]))
			c.ComparisonConnection.check(t, c.Slug+" "+query, want.comparisons[c.Slug], comparisons)
			checkEvents(t, c.Changes, c.Slug+" "+query, want.changes[c.Slug], events)
		}
		for _, c := range got.Categories {
			expect(t, c.Slug+" total", c.ToolConnection.TotalCount, len(want.tools[c.Slug]))
			c.ToolConnection.check(t, c.Slug+" "+query, want.tools[c.Slug], tools)
		}
	}
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		limits := graph.DefaultLimits
		limits.Cost, limits.Response = 1_000_000, 100_000_000
		e := newExecutorWith(s, limits)
		var wanted []expected
		publishRandom(t, s, 3, func(release int) { wanted = append(wanted, expectedConnections(t, s, release)) })
		for i := range 40 {
			verify(t, e, wanted[randomReleases-1], "", rand.New(rand.NewPCG(uint64(i), 1)))
			release := 1 + i%randomReleases
			verify(t, e, wanted[release-1], fmt.Sprintf("query @asOf(release: %d) ", release), rand.New(rand.NewPCG(uint64(i), 1)))
		}
	})
}

// unpinned removes the release from the identifiers of a response.
func unpinned(text string) string {
	for release := randomReleases; release > 0; release-- {
		text = strings.ReplaceAll(text, fmt.Sprintf(`@%d"`, release), `"`)
	}
	return text
}

// checkEvents is check for cursors that are events of another tool, which represent
// a point in time.
func checkEvents(t *testing.T, c connectionOf, what string, all []string, p relay) {
	t.Helper()
	older := func(a, b string) bool { return len(a) < len(b) || len(a) == len(b) && a < b }
	before := func(id string) bool { return p.before == "" || older(p.before, id) }
	after := func(id string) bool { return p.after == "" || older(id, p.after) }
	within := slices.DeleteFunc(slices.Clone(all), func(id string) bool { return !before(id) || !after(id) })
	limited := relay{first: p.first, last: p.last}
	want, previous, next := limited.apply(within)
	if p.last >= 0 {
		next = p.before != ""
	} else {
		previous = p.after != ""
	}
	var nodes []string
	for _, node := range c.Nodes {
		nodes = append(nodes, node.ID)
	}
	expect(t, what, fmt.Sprint(nodes, c.PageInfo.HasPreviousPage, c.PageInfo.HasNextPage), fmt.Sprint(want, previous, next))
}

// Cursors of nested connections and of those at the root are the same.
func TestNestedCursors(t *testing.T) {
	onDemoCatalog(t, func(t *testing.T, e *graph.Executor) {
		type cursors struct{ PageInfo struct{ EndCursor string } }
		got := decode[struct {
			Tool     struct{ ComparisonConnection, Changes cursors }
			Category struct{ ToolConnection cursors }
		}](t, mustExecute(t, e, `{tool(slug: "plume") {comparisonConnection(first: 1) {pageInfo {endCursor}} changes(first: 1) {pageInfo {endCursor}}}
			category(slug: "voix") {toolConnection(first: 1) {pageInfo {endCursor}}}}`))
		for _, c := range []struct{ cursor, nested, root string }{
			{got.Tool.ComparisonConnection.PageInfo.EndCursor, `tool(slug: "plume") {list: comparisonConnection(after: %q) {nodes {slug}}}`, `comparisonConnection(tool: "plume", after: %q) {nodes {slug}}`},
			{got.Tool.Changes.PageInfo.EndCursor, `tool(slug: "plume") {list: changes(after: %q) {nodes {slug}}}`, `changes(slug: "plume", order: newest_first, after: %q) {nodes {slug}}`},
			{got.Category.ToolConnection.PageInfo.EndCursor, `category(slug: "voix") {list: toolConnection(after: %q) {nodes {slug}}}`, `toolConnection(filter: {categories: ["voix"]}, after: %q) {nodes {slug}}`},
		} {
			nested := mustExecute(t, e, fmt.Sprintf("{parent: "+c.nested+"}", c.cursor))
			root := mustExecute(t, e, fmt.Sprintf("{list: "+c.root+"}", c.cursor))
			expect(t, c.nested, nested, `{"parent":`+root+`}`)
		}
	})
}

func TestInvalidNestedArguments(t *testing.T) {
	onDemoCatalog(t, func(t *testing.T, e *graph.Executor) {
		const notThisList = "after must be a cursor from this list in the same sort order."
		for selection, message := range map[string]string{
			`category(slug: "voix") {toolConnection(sort: relevance) {totalCount}}`:                                        "sort: relevance is not supported by the tools of a category. Use tools with filter.categories instead.",
			`category(slug: "voix") {toolConnection(first: 201) {totalCount}}`:                                             "first must be an integer from 0 to 200 (got 201).",
			`category(slug: "voix") {toolConnection(first: 1, last: 1) {totalCount}}`:                                      "first and last cannot be used together.",
			`tool(slug: "plume") {comparisonConnection(last: -1) {totalCount}}`:                                            "last must be an integer from 0 to 200 (got -1).",
			`tool(slug: "plume") {comparisonConnection(after: "x") {totalCount}}`:                                          notThisList,
			`tool(slug: "plume") {changes(before: "x") {nodes {id}}}`:                                                      "before must be an event ID, such as evt_42.",
			`tool(slug: "plume") {changes(first: 201) {nodes {id}}}`:                                                       "first must be an integer from 0 to 200 (got 201).",
			`retiredTools {items {changes(first: 1, last: 2) {nodes {id}}}}`:                                               "first and last cannot be used together.",
			`comparisons {items {toolA {comparisonConnection(after: "x") {totalCount}}}}`:                                  notThisList,
			`tools {items {category {toolConnection(sort: relevance) {totalCount}}}}`:                                      "sort: relevance is not supported by the tools of a category. Use tools with filter.categories instead.",
			`tool(slug: "plume") {category {toolConnection(after: "x") {nodes {slug}}}}`:                                   notThisList,
			`nodes(ids: ["category/voix"]) {... on Category {tools(limit: 51) {slug}}}`:                                    "limit must be an integer from 1 to 50 (got 51).",
			`tool(slug: "plume") {comparisonConnection(before: "` + cursorOf(`{"l":"tools","p":[1]}`) + `") {totalCount}}`: "before must be a cursor from this list in the same sort order.",
		} {
			wantRejected(t, execute(t, e, auth.Developer, "{"+selection+"}"), "BAD_USER_INPUT", message)
		}
	})
}

// The types of a tool's changes can be selected, and a comparison with the same
// slug has its own changes.
func TestTypesOfToolChanges(t *testing.T) {
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		e := newExecutor(s)
		feedtest.Publish(t, s, feedtest.Catalog("2026-11-01", feedtest.Tool("a"), feedtest.Tool("b"), feedtest.Comparison("a", "a", "b")))
		feedtest.Publish(t, s, feedtest.Catalog("2026-11-02", feedtest.Tool("a", updatedOn("2026-11-02", withPrice("15 €/mois"))), feedtest.Tool("b")))
		feedtest.Publish(t, s, feedtest.Catalog("2026-11-03", &record.Retired{Slug: "a", Name: "A", Category: "code", Reason: "mort", RetiredAt: "2026-11-03", Note: "Fermé."}, feedtest.Tool("b")))
		expect(t, "types", mustExecute(t, e, `{retiredTool(slug: "a") {changes {nodes {type fields}} updated: changes(types: tool_updated) {nodes {type}}
			some: changes(types: [price_changed, tool_created, comparatif_published]) {nodes {type tool {slug}}} none: changes(types: []) {nodes {type}} other: changes(types: [comparatif_removed]) {nodes {type}}}}`),
			`{"retiredTool":{"changes":{"nodes":[{"type":"tool_retired","fields":[]},{"type":"price_changed","fields":[]},{"type":"tool_updated","fields":["price","updated_at"]},{"type":"tool_created","fields":[]}]},`+
				`"updated":{"nodes":[{"type":"tool_updated"}]},"some":{"nodes":[{"type":"price_changed","tool":null},{"type":"tool_created","tool":null}]},"none":{"nodes":[]},"other":{"nodes":[]}}}`)
	})
}

// A field of a fragment may have other subfields in each place that spreads it.
func TestFragmentsWithMoreFields(t *testing.T) {
	const query = `{a: tool(slug: "plume") {...T category {tools(limit: 1) {category {label}}}} b: tool(slug: "plume") {...T}
		c: tool(slug: "plume") {...T comparisonConnection(first: 1) {nodes {toolB {name}}}}}
		fragment T on Tool {category {tools(limit: 1) {slug}} comparisonConnection(first: 1) {nodes {slug}}}`
	const tools, comparison = `"tools":[{"slug":"ecritoire-cie"`, `"comparisonConnection":{"nodes":[{"slug":"plume-vs-ecritoire-cie"`
	onDemoCatalog(t, func(t *testing.T, e *graph.Executor) {
		expect(t, "each place", mustExecute(t, e, query), `{"a":{"category":{`+tools+`,"category":{"label":"Rédaction"}}]},`+comparison+`}]}},`+
			`"b":{"category":{`+tools+`}]},`+comparison+`}]}},"c":{"category":{`+tools+`}]},`+comparison+`,"toolB":{"name":"Écritoire & Cie"}}]}}}`)
	})
}

// Nested connections of 200 tools take as many statements as those of 100.
func TestNestedConnectionsAreReadTogether(t *testing.T) {
	const part = `comparisonConnection(first: 3) {totalCount nodes {slug toolA {...T}}} changes(first: 2) {edges {node {id before tool {slug}}}}`
	const query = `query ($n: Int!) {tools(limit: $n) {items {slug ` + part + ` category {toolConnection(first: 3) {nodes {slug}}}}}} fragment T on ComparedTool {changes(last: 1) {nodes {type}}}`
	data := feedtest.Synthetic(t, synth.Options{Tools: 300, Seed: 1})
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		feedtest.Publish(t, s, data)
		statements := countStatements(s)
		limits := graph.DefaultLimits
		limits.Cost = 1_000_000
		e := newExecutorWith(s, limits)
		mustExecute(t, e, `{tools(limit: 200) {items {slug comparisons {toolA {slug} toolB {slug}}}}}`) // reads the tools
		var counts []int64
		for _, n := range []int{100, 200} {
			statements.Store(0)
			mustExecute(t, e, query, map[string]any{"n": n})
			counts = append(counts, statements.Load())
		}
		// For changes of tools, and of compared tools that are active or retired: their
		// numbers, events and releases. Two more check the release.
		check.Equal(t, counts[0], counts[1])
		check.True(t, counts[0] <= 3*3+2, "got %v statements, want the same and at most 11", counts)
	})
}

// Long reviews lead to shorter nested connections, and no change is lost.
func TestToolChangesWithLongReviews(t *testing.T) {
	const tools, releases, long = 4, 5, 900_000
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		for release := range releases {
			var records []any
			for i := range tools {
				records = append(records, feedtest.Tool(fmt.Sprint("t", i), func(t *record.Tool) { t.Tagline = strings.Repeat(fmt.Sprint(release), long) }))
			}
			feedtest.Publish(t, s, feedtest.Catalog(fmt.Sprintf("2026-11-%02d", 1+release), records...))
		}
		limits := graph.DefaultLimits
		limits.Response = 100_000_000
		e, want := newExecutorWith(s, limits), expectedConnections(t, s, releases)
		type page struct {
			Tools struct {
				Items []struct {
					Slug    string
					Changes connectionOf
				}
			}
		}
		got := decode[page](t, mustExecute(t, e, `{tools {items {slug changes {nodes {id fields} pageInfo {hasNextPage endCursor}}}}}`))
		shorter := 0
		for _, item := range got.Tools.Items {
			all := want.changes[item.Slug]
			expect(t, "a part", fmt.Sprint(len(item.Changes.Nodes) > 0, item.Changes.Nodes[len(item.Changes.Nodes)-1].ID), fmt.Sprint(true, *item.Changes.PageInfo.EndCursor))
			expect(t, "more", item.Changes.PageInfo.HasNextPage, len(item.Changes.Nodes) < len(all))
			if item.Changes.PageInfo.HasNextPage {
				shorter++
			}
			for i, node := range item.Changes.Nodes {
				expect(t, "in order", node.ID, all[i])
			}
		}
		check.True(t, shorter != 0, "got all changes, want shorter lists")
		short := decode[page](t, mustExecute(t, e, `{tools {items {slug changes {nodes {id}}}}}`))
		for _, item := range short.Tools.Items {
			expect(t, "without texts", len(item.Changes.Nodes), len(want.changes[item.Slug]))
		}
	})
}

// An error names the field that caused it.
func TestErrorsBelowRoot(t *testing.T) {
	s := testkit.Open(t, testkit.SQLite(t))
	feedtest.Publish(t, s, demo.Catalog())
	e := newExecutor(s)
	for query, want := range map[string]string{
		`{tools(limit: 0) {items {slug}}}`:                                                                  `["tools"] [{"line":1,"column":2}]`,
		`{tools(limit: 2) {items {comparisons(limit: 0) {slug}}}}`:                                          `["tools","items",0,"comparisons"] [{"line":1,"column":26}]`,
		`{x: tools(limit: 2) {items {slug y: comparisons(limit: 999) {slug}}}}`:                             `["x","items",0,"y"] [{"line":1,"column":34}]`,
		"{tool(slug: \"plume\") {\n  category {tools(limit: 51) {slug}}}}":                                  `["tool","category","tools"] [{"line":2,"column":13}]`,
		`{tools {items {slug}} tools {items {comparisons(limit: 0) {slug}}}}`:                               `["tools","items",0,"comparisons"] [{"line":1,"column":37}]`,
		`{tools {__typename items {__typename category {slug}} items {category {tools(limit: 0) {slug}}}}}`: `["tools","items",0,"category","tools"] [{"line":1,"column":72}]`,
		`{categories {tools(sort: relevance) {slug}}}`:                                                      `["categories",0,"tools"] [{"line":1,"column":14}]`,
		`{categories {toolConnection(first: -1) {totalCount}}}`:                                             `["categories",0,"toolConnection"] [{"line":1,"column":14}]`,
		`{tools {items {...F}}} fragment F on Tool {... {changes(first: 201) {nodes {id}}}}`:                `["tools","items",0,"changes"] [{"line":1,"column":49}]`,
		`{tools {items {comparisonConnection(first: 1, last: 1) {totalCount}}}}`:                            `["tools","items",0,"comparisonConnection"] [{"line":1,"column":16}]`,
		`{comparison(slug: "plume-vs-ecritoire-cie") {toolA {... on Tool {versions(limit: 201) {date}}}}}`:  `["comparison","toolA","versions"] [{"line":1,"column":66}]`,
		`{nodes(ids: ["release/1", "tool/plume"]) {... on Tool {comparisons(limit: 0) {slug}}}}`:            `["nodes",1,"comparisons"] [{"line":1,"column":56}]`,
		`{tools {items {category {tools(limit: 3) {comparisons(limit: 0) {slug}}}}}}`:                       `["tools","items",0,"category","tools",0,"comparisons"] [{"line":1,"column":43}]`,
	} {
		result := execute(t, e, auth.Developer, query)
		if len(result.Errors) != 1 || result.Errors[0].Extensions["code"] != "BAD_USER_INPUT" {
			t.Errorf("%s: got %v, want one error of the caller", query, result.Errors)
			continue
		}
		path := check.Try(json.Marshal(result.Errors[0].Path)).OK(t)
		locations := check.Try(json.Marshal(result.Errors[0].Locations)).OK(t)
		check.Equal(t, string(path)+" "+string(locations), want, query)
	}
}
