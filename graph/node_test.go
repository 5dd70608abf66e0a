package graph_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"palmares/ent"
	"palmares/graph"
	"palmares/internal/catalog/feed/demo"
	"palmares/internal/catalog/feed/feedtest"
	"palmares/internal/catalog/feed/synth"
	"palmares/internal/core/store"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
)

// onTwoReleases runs test with the demo catalog of two days.
func onTwoReleases(t *testing.T, test func(t *testing.T, e *graph.Executor)) {
	t.Helper()
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		feedtest.Publish(t, s, demo.Catalog())
		feedtest.Publish(t, s, []byte(strings.Replace(string(demo.Catalog()), "2026-11-10", "2026-11-11", 1)))
		test(t, newExecutor(s))
	})
}

// everyID selects the identifiers of all types in all places.
const everyID = `{
	tool(slug: "plume") {id category {id tools(limit: 1) {id category {id}} toolConnection(first: 1) {nodes {id}}}
		comparisons(limit: 1) {id toolA {id} toolB {... on Node {id}} winner {id}} comparisonConnection(first: 1) {nodes {id} edges {node {id}}}}
	tools(limit: 1) {items {id}}
	toolConnection(first: 1) {nodes {id} edges {node {id}}}
	retiredTool(slug: "grenier-commun") {id category {id} comparisons(limit: 1) {id}}
	retiredTools(limit: 1) {items {id}}
	retiredToolConnection(first: 1) {nodes {id}}
	categories {id}
	category(slug: "voix") {id}
	comparison(slug: "plume-vs-ecritoire-cie") {id}
	comparisons(limit: 1) {items {id toolA {id}}}
	comparisonConnection(first: 1) {nodes {id}}
	releases {nodes {id} edges {node {id}}}
	node(id: "tool/plume") {id}
	nodes(ids: ["tool/plume", "category/voix", "comparison/plume-vs-ecritoire-cie", "release/1", "tool/grenier-commun"]) {id}
	changes(first: 1) {nodes {tool {id category {id}}}}
}`

// idsIn returns all identifiers of a response, in order.
func idsIn(t *testing.T, data string) (ids []string) {
	t.Helper()
	dec := json.NewDecoder(strings.NewReader(data))
	for isID := false; ; {
		token, err := dec.Token()
		if err != nil {
			return ids
		}
		text, isText := token.(string)
		if isID && isText {
			ids = append(ids, text)
		}
		isID = isText && text == "id" && !isID
	}
}

func TestIdentifiers(t *testing.T) {
	onTwoReleases(t, func(t *testing.T, e *graph.Executor) {
		expect(t, "each type", mustExecute(t, e, `{tool(slug: "plume") {id} retiredTool(slug: "grenier-commun") {id} category(slug: "voix") {id}
			comparison(slug: "plume-vs-ecritoire-cie") {id} releases {nodes {id}}}`),
			`{"tool":{"id":"tool/plume"},"retiredTool":{"id":"tool/grenier-commun"},"category":{"id":"category/voix"},`+
				`"comparison":{"id":"comparison/plume-vs-ecritoire-cie"},"releases":{"nodes":[{"id":"release/2"},{"id":"release/1"}]}}`)
		plain := idsIn(t, mustExecute(t, e, everyID))
		check.True(t, len(plain) >= 42, "got %d identifiers, want at least 42", len(plain))
		for directive, release := range map[string]string{
			`@asOf(release: 2)`: "@2", `@asOf(date: "2026-11-11")`: "@2", `@asOf(date: "2030-01-01")`: "@2", `@asOf(release: 1)`: "@1", `@asOf(date: "2026-11-10")`: "@1",
		} {
			var want []string
			for _, id := range plain {
				if release == "@2" || id != "release/2" {
					want = append(want, id+release)
				}
			}
			expect(t, directive, idsIn(t, mustExecute(t, e, "query "+directive+everyID)), want)
			expect(t, "afterwards, without a release", idsIn(t, mustExecute(t, e, everyID)), plain)
		}
		events := `{changes(first: 5) {nodes {id}}}`
		expect(t, "events", mustExecute(t, e, "query @asOf(release: 1) "+events), mustExecute(t, e, events))
	})
}

func TestNodes(t *testing.T) {
	onTwoReleases(t, func(t *testing.T, e *graph.Executor) {
		event := decode[changesPage](t, mustExecute(t, e, `{changes(slug: "plume", types: [tool_created]) {nodes {id}}}`)).Changes.Nodes[0].ID
		future := decode[changesPage](t, mustExecute(t, e, `{changes(release: 2, last: 1) {nodes {id}}}`)).Changes.Nodes[0].ID
		const query = `query ($ids: [ID!]!) {nodes(ids: $ids) {__typename ... on ComparedTool {name} ... on Tool {priceHistory {changedAt} versions(limit: 1) {type}}
			... on RetiredTool {reason} ... on Category {label tools(limit: 1) {slug}} ... on Comparison {winnerName toolA {slug}} ... on Release {number stats {toolsTotal}}
			... on Change {type fields tool {slug}}}}`
		ids := func(ids ...string) map[string]any {
			list := []any{}
			for _, id := range ids {
				list = append(list, id)
			}
			return map[string]any{"ids": list}
		}
		all := `[{"__typename":"Tool","name":"Plume","priceHistory":[{"changedAt":"2026-09-14"},{"changedAt":"2026-02-02"},{"changedAt":"2025-04-07"}],"versions":[{"type":"tool_created"}]},` +
			`null,{"__typename":"RetiredTool","name":"Grenier Commun","reason":"absorbe"},{"__typename":"Category","label":"Voix","tools":[{"slug":"grain-de-gorge"}]},` +
			`{"__typename":"Comparison","winnerName":"Écritoire & Cie","toolA":{"slug":"plume"}},{"__typename":"Release","number":1,"stats":{"toolsTotal":48}},` +
			`{"__typename":"Change","type":"tool_created","fields":[],"tool":{"slug":"plume"}}]`
		variables := ids("tool/plume", "tool/nobody", "tool/grenier-commun", "category/voix", "comparison/plume-vs-ecritoire-cie", "release/1", event)
		expect(t, "all types", mustExecute(t, e, query, variables), `{"nodes":`+all+`}`)
		expect(t, "in an earlier release", mustExecute(t, e, strings.Replace(query, "{nodes", "@asOf(release: 1) {nodes", 1), variables), `{"nodes":`+all+`}`)
		expect(t, "none", mustExecute(t, e, query, ids()), `{"nodes":[]}`)
		expect(t, "twice", mustExecute(t, e, `{nodes(ids: ["category/voix", "tool/plume", "category/voix"]) {id ... on Category {slug}}}`),
			`{"nodes":[{"id":"category/voix","slug":"voix"},{"id":"tool/plume"},{"id":"category/voix","slug":"voix"}]}`)
		expect(t, "unknown", mustExecute(t, e, query, ids("category/x", "comparison/x", "release/9", "evt_1", "tool/Été", "comparison/lanterne-sourde-vs-glaneuse-aout")), `{"nodes":[null,null,null,null,null,null]}`)
		expect(t, "one", mustExecute(t, e, `{node(id: "tool/plume") {... on ComparedTool {slug} ... on Category {label}} none: node(id: "tool/x") {id}}`), `{"node":{"slug":"plume"},"none":null}`)

		asOf := func(release, id string) string {
			return mustExecute(t, e, `query @asOf(`+release+`) {node(id: "`+id+`") {id}}`)
		}
		expect(t, "pinned", asOf("release: 1", "tool/plume@1"), `{"node":{"id":"tool/plume@1"}}`)
		expect(t, "pinned by date", asOf(`date: "2026-11-10"`, "tool/plume@1"), `{"node":{"id":"tool/plume@1"}}`)
		expect(t, "pinned to the newest", asOf(`release: 2`, "release/1@2"), `{"node":{"id":"release/1@2"}}`)
		expect(t, "without a suffix", asOf("release: 1", "tool/plume"), `{"node":{"id":"tool/plume@1"}}`)
		expect(t, "a release of the future", asOf("release: 1", "release/2"), `{"node":null}`)
		expect(t, "an event of the future", asOf("release: 1", future), `{"node":null}`)
		expect(t, "an event of the past", asOf("release: 2", event), `{"node":{"id":"`+event+`"}}`)
	})
}

func TestInvalidIdentifiers(t *testing.T) {
	onTwoReleases(t, func(t *testing.T, e *graph.Executor) {
		for _, id := range []string{"", "plume", "tool", "tool/", "Tool/plume", "tools/plume", "/plume", "tool/plume@", "tool/plume@x", "tool/plume@01", "tool/plume@1@1", "release/x", "release/0",
			"release/01", "release/-1", "evt_", "evt_0", "evt_x", "evt_42@1", "VG9vbDpwbHVtZQ=="} {
			message := fmt.Sprintf("id: %q is not an identifier. Valid identifiers are tool/<slug>, category/<slug>, comparison/<slug>, release/<number> and evt_<number>.", id)
			wantRejected(t, execute(t, e, "", `query ($id: ID!) {node(id: $id) {id}}`, map[string]any{"id": id}), "BAD_USER_INPUT", message)
			wantRejected(t, execute(t, e, "", `query ($id: ID!) {nodes(ids: ["tool/plume", $id]) {id}}`, map[string]any{"id": id}), "BAD_USER_INPUT", "ids"+message[2:])
		}
		pinned := func(id, release string) string {
			return fmt.Sprintf("id: %q is an object of release %s. Add @asOf(release: %[2]s) to the operation, or remove @%[2]s from the identifier.", id, release)
		}
		for query, message := range map[string]string{
			`{node(id: "tool/plume@1") {id}}`:                               pinned("tool/plume@1", "1"),
			`{node(id: "tool/plume@2") {id}}`:                               pinned("tool/plume@2", "2"), // even if it is the newest
			`query @asOf(release: 1) {node(id: "category/x@2") {id}}`:       pinned("category/x@2", "2"),
			`{node(id: "tool/a\u0000") {id}}`:                               "id must not contain NUL characters.",
			`{nodes(ids: [` + strings.Repeat(`"tool/a" `, 101) + `]) {id}}`: "ids must have at most 100 identifiers (got 101).",
		} {
			wantRejected(t, execute(t, e, "", query), "BAD_USER_INPUT", message)
		}
	})
	testkit.EachInFull(t, func(t *testing.T, s *store.Store) {
		expect(t, "before the first import", mustExecute(t, newExecutor(s), `{nodes(ids: ["tool/a", "category/a", "comparison/a", "release/1", "evt_1"]) {id}}`), `{"nodes":[null,null,null,null,null]}`)
	})
}

// countStatements counts the statements of operations.
func countStatements(s *store.Store) *atomic.Int64 {
	var statements atomic.Int64
	s.Read.Intercept(ent.InterceptFunc(func(next ent.Querier) ent.Querier {
		return ent.QuerierFunc(func(ctx context.Context, q ent.Query) (ent.Value, error) {
			statements.Add(1)
			return next.Query(ctx, q)
		})
	}))
	return &statements
}

// A hundred nodes take as many statements as one. One statement reads the newest
// release, and one checks afterwards that it still exists.
func TestNodesAreReadTogether(t *testing.T) {
	data := syntheticFeed(t, synth.Options{Tools: 300, Seed: 1})
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		feedtest.Publish(t, s, data)
		statements := countStatements(s)
		ids := map[string][]any{}
		for _, event := range allEvents(t, s) {
			switch event.Type {
			case "tool.created":
				ids["tool"] = append(ids["tool"], "tool/"+event.Slug)
				ids["event"] = append(ids["event"], event.ID())
			case "comparatif.published":
				ids["comparison"] = append(ids["comparison"], "comparison/"+event.Slug)
			}
		}
		for kind, most := range map[string]int64{"tool": 1, "event": 4, "comparison": 1} {
			e := newExecutor(s)
			mustExecute(t, e, `{feed {release}}`) // reads the index
			for i, n := range []int{1, 50} {
				statements.Store(0)
				mustExecute(t, e, `query ($ids: [ID!]!) {nodes(ids: $ids) {id __typename}}`, map[string]any{"ids": ids[kind][5*i:][:n]})
				got := statements.Load()
				check.True(t, got <= most, "%d nodes of type %s: got %d statements, want at most %d", n, kind, got, most)
			}
		}
	})
}
