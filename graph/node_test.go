package graph_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"palmares/auth"
	"palmares/ent"
	"palmares/graph"
	"palmares/internal/catalog/feed/demo"
	"palmares/internal/catalog/feed/feedtest"
	"palmares/internal/catalog/feed/synth"
	"palmares/internal/catalog/record"
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

// countStatements counts the statements of operations that have not ended.
func countStatements(s *store.Store) *atomic.Int64 {
	var statements atomic.Int64
	s.Read.Intercept(ent.InterceptFunc(func(next ent.Querier) ent.Querier {
		return ent.QuerierFunc(func(ctx context.Context, q ent.Query) (ent.Value, error) {
			if ctx.Err() == nil {
				statements.Add(1)
			}
			return next.Query(ctx, q)
		})
	}))
	return &statements
}

// A hundred nodes take as many statements as one. One statement reads the newest
// release, and one checks afterwards that it still exists.
func TestNodesAreReadTogether(t *testing.T) {
	data := feedtest.Synthetic(t, synth.Options{Tools: 300, Seed: 1})
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

func TestToolWithLinks(t *testing.T) {
	onDemoCatalog(t, func(t *testing.T, e *graph.Executor) {
		expect(t, "a tool", mustExecute(t, e, `{tool(slug: "plume") {name icp icpCode pricing price priceAmount pricePeriod
			category {slug label avgScore tools(limit: 1) {slug}}
			comparisons {slug winnerName toolA {slug} toolB {slug __typename}}
			priceHistory {changedAt price previousPrice}}}`),
			`{"tool":{"name":"Plume","icp":"mixte","icpCode":"mixte","pricing":"freemium","price":"19,90 €/mois","priceAmount":19.9,"pricePeriod":"mois",`+
				`"category":{"slug":"redaction","label":"Rédaction","avgScore":7.1,"tools":[{"slug":"ecritoire-cie"}]},`+
				`"comparisons":[{"slug":"plume-vs-ecritoire-cie","winnerName":"Écritoire & Cie","toolA":{"slug":"plume"},"toolB":{"slug":"ecritoire-cie","__typename":"Tool"}},`+
				`{"slug":"plume-vs-relire-svp","winnerName":"Plume","toolA":{"slug":"plume"},"toolB":{"slug":"relire-svp","__typename":"Tool"}}],`+
				`"priceHistory":[{"changedAt":"2026-09-14","price":"19,90 €/mois","previousPrice":"24,90 €/mois"},{"changedAt":"2026-02-02","price":"24,90 €/mois","previousPrice":"14,90 €/mois"},`+
				`{"changedAt":"2025-04-07","price":"14,90 €/mois","previousPrice":"0 €/mois"}]}}`)
	})
}

func TestRetiredToolsInComparisons(t *testing.T) {
	onDemoCatalog(t, func(t *testing.T, e *graph.Executor) {
		cited := decode[struct {
			Comparisons struct {
				Items []struct {
					Slug         string
					ToolA, ToolB struct {
						Typename     string `json:"__typename"`
						Slug, Reason string
						Price        string
					}
				}
			}
		}](t, mustExecute(t, e, `{comparisons {items {slug toolA {...T} toolB {...T}}}} fragment T on ComparedTool {__typename slug ... on RetiredTool {reason} ... on Tool {price}}`))
		expect(t, "published ones", len(cited.Comparisons.Items), 13)
		retired := 0
		for _, c := range cited.Comparisons.Items {
			for _, side := range []struct{ typename, slug, reason, price string }{
				{c.ToolA.Typename, c.ToolA.Slug, c.ToolA.Reason, c.ToolA.Price}, {c.ToolB.Typename, c.ToolB.Slug, c.ToolB.Reason, c.ToolB.Price},
			} {
				check.Equal(t, (side.typename == "RetiredTool"), (side.reason != ""), "%s: %+v", c.Slug, side)
				check.Equal(t, (side.typename == "Tool"), (side.price != ""), "%s: %+v", c.Slug, side)
				if side.reason == "" {
					continue
				}
				retired++
				back := mustExecute(t, e, `query ($slug: String!) {retiredTool(slug: $slug) {comparisons {slug}} tool(slug: $slug) {slug}}`, map[string]any{"slug": side.slug})
				check.True(t, strings.Contains(back, `{"slug":"`+c.Slug+`"}`) && strings.HasSuffix(back, `"tool":null}`), "%s: got %s, want only a retired tool with comparison %s", side.slug, back, c.Slug)
			}
		}
		expect(t, "retired tools cited", retired, 2)
	})
}

func TestUnpublishedComparisonsAreHidden(t *testing.T) {
	onDemoCatalog(t, func(t *testing.T, e *graph.Executor) {
		expect(t, "anywhere", mustExecute(t, e, `{comparison(slug: "lanterne-sourde-vs-glaneuse-aout") {slug} tool(slug: "glaneuse-aout") {comparisons {slug}}}`),
			`{"comparison":null,"tool":{"comparisons":[]}}`)
	})
}

// The same list under several aliases has the fields of each alias.
func TestCategoryToolsWithAliases(t *testing.T) {
	onDemoCatalog(t, func(t *testing.T, e *graph.Executor) {
		expect(t, "aliases", mustExecute(t, e, `{category(slug: "voix") {a: tools(limit: 1) {slug} b: tools(limit: 1) {name} c: tools(limit: 2, sort: name_asc) {slug}}
			tool(slug: "grain-de-gorge") {category {d: tools(limit: 1) {price}}}}`),
			`{"category":{"a":[{"slug":"grain-de-gorge"}],"b":[{"name":"Grain de Gorge"}],"c":[{"slug":"echo-alcove"},{"slug":"grain-de-gorge"}]},`+
				`"tool":{"category":{"d":[{"price":"`+priceOf(t, e, "grain-de-gorge")+`"}]}}}`)
	})
}

// Each list of a category's tools has its own limit, even if the same category is
// selected in several places or nested.
func TestCategoryToolsInSeveralPlaces(t *testing.T) {
	const first, second = `{"slug":"grain-de-gorge"}`, `{"slug":"greffier-8"}`
	onDemoCatalog(t, func(t *testing.T, e *graph.Executor) {
		for query, want := range map[string]string{
			`{tool(slug: "greffier-8") {a: category {tools(limit: 1) {slug}} b: category {tools(limit: 2) {slug}}}}`: `{"tool":{"a":{"tools":[` + first + `]},"b":{"tools":[` + first + `,` + second + `]}}}`,
			`{category(slug: "voix") {tools(limit: 1) {slug category {tools(limit: 1) {slug}}}}}`:                    `{"category":{"tools":[{"slug":"grain-de-gorge","category":{"tools":[` + first + `]}}]}}`,
			`{category(slug: "voix") {tools(limit: 1) {category {tools(limit: 2) {category {tools(limit: 1) {slug}}}}}}}`: `{"category":{"tools":[{"category":{"tools":[` +
				`{"category":{"tools":[` + first + `]}},{"category":{"tools":[` + first + `]}}]}}]}}`,
			`{toolConnection(first: 1, filter: {categories: ["voix"]}) {nodes {category {tools(limit: 1) {slug}}} edges {node {category {tools(limit: 2) {slug}}}}}}`: `{"toolConnection":{"nodes":[{"category":{"tools":[` +
				first + `]}}],"edges":[{"node":{"category":{"tools":[` + first + `,` + second + `]}}}]}}`,
		} {
			expect(t, query, mustExecute(t, e, query), want)
		}
	})
}

func priceOf(t *testing.T, e *graph.Executor, slug string) string {
	return decode[struct{ Tool struct{ Price string } }](t, mustExecute(t, e, `{tool(slug: "`+slug+`") {price}}`)).Tool.Price
}

func TestEmbeddings(t *testing.T) {
	const query = `{embeddings(slug: "plume") {slug name canonicalUrl hash chunkCount chunks {id metadata {section position canonicalUrl tool category score}}}}`
	onDemoCatalog(t, func(t *testing.T, e *graph.Executor) {
		document := decode[struct {
			Embeddings struct {
				Slug, CanonicalURL, Hash string
				ChunkCount               int
				Chunks                   []struct {
					ID       string
					Metadata struct {
						Section, CanonicalURL, Tool, Category string
						Position                              int
						Score                                 float64
					}
				}
			}
		}](t, mustExecute(t, e, query)).Embeddings
		expect(t, "page", document.CanonicalURL, "https://palmares.example/avis/plume")
		check.True(t, document.ChunkCount >= 4, "got %+v, want at least 4 chunks and a hash", document)
		check.Equal(t, len(document.Chunks), document.ChunkCount)
		check.True(t, strings.HasPrefix(document.Hash, "sha256-"), "got %+v, want at least 4 chunks and a hash", document)
		for i, chunk := range document.Chunks {
			expect(t, chunk.ID, []any{chunk.Metadata.Section, chunk.Metadata.Position, chunk.Metadata.CanonicalURL, chunk.Metadata.Tool, chunk.Metadata.Category, chunk.Metadata.Score},
				[]any{chunk.ID, i, "https://palmares.example/avis/plume#" + chunk.ID, "Plume", "redaction", 8.1})
		}
		expect(t, "outside the set", mustExecute(t, e, `{embeddings(slug: "trame-72") {slug} unknown: embeddings(slug: "nobody") {slug}}`), `{"embeddings":null,"unknown":null}`)

		for _, q := range []string{query, `{tools {items {slug embeddings {hash}}}}`, `{tool(slug: "plume") {...F}} fragment F on Tool {embeddings {hash}}`} {
			wantRejected(t, execute(t, e, auth.Anonymous, q), "UNAUTHENTICATED", "Embeddings require an account. Send an API key as a bearer token in the Authorization header, or sign in with OAuth.")
		}
	})
}

// The verdict and the names of the other sections are public, whether or not the
// tool has an embeddings document, and belong to the release.
func TestVerdict(t *testing.T) {
	review := func(sections ...record.Section) func(*record.Tool) {
		return func(tool *record.Tool) { tool.Sections = sections }
	}
	const query = `query ($slug: String!) {tool(slug: $slug) {verdict reviewSections}}`
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		feedtest.Publish(t, s, feedtest.Catalog("2026-11-01",
			feedtest.Tool("full", review(record.Section{Section: "prix", Text: "Juste."}, record.Section{Section: "verdict", Text: "Bien <b>."})),
			feedtest.Tool("none", review()), feedtest.Tool("other", review(record.Section{Section: "limites", Text: "Lent."}))))
		feedtest.Publish(t, s, feedtest.Catalog("2026-11-02",
			feedtest.Tool("full", review(record.Section{Section: "verdict", Text: "Mieux."})), feedtest.Tool("none", review()), feedtest.Tool("other", review())))
		e := newExecutor(s)
		list := `{tools(sort: name_asc) {items {slug verdict reviewSections}}}`
		expect(t, "newest", string(execute(t, e, auth.Anonymous, list).Data),
			`{"tools":{"items":[{"slug":"full","verdict":"Mieux.","reviewSections":["verdict"]},{"slug":"none","verdict":null,"reviewSections":[]},{"slug":"other","verdict":null,"reviewSections":[]}]}}`)
		expect(t, "release 1", string(execute(t, e, auth.Anonymous, "query @asOf(release: 1) "+list).Data),
			`{"tools":{"items":[{"slug":"full","verdict":"Bien <b>.","reviewSections":["prix","verdict"]},{"slug":"none","verdict":null,"reviewSections":[]},{"slug":"other","verdict":null,"reviewSections":["limites"]}]}}`)
		expect(t, "one tool", mustExecute(t, e, query, map[string]any{"slug": "full"}), `{"tool":{"verdict":"Mieux.","reviewSections":["verdict"]}}`)
	})
}

func TestFeedAndStatistics(t *testing.T) {
	const query = `{feed {release updatedAt credit} stats {toolsTotal toolsTested toolsAvgScore toolsAvgScoreOrZero toolsRetired comparisonsTotal} tools {meta {total pages}}}`
	testkit.EachInFull(t, func(t *testing.T, s *store.Store) {
		expect(t, "before the first import", mustExecute(t, newExecutor(s), query),
			`{"feed":{"release":0,"updatedAt":null,"credit":"`+credit+`"},"stats":{"toolsTotal":0,"toolsTested":0,"toolsAvgScore":null,"toolsAvgScoreOrZero":0,"toolsRetired":0,"comparisonsTotal":0},"tools":{"meta":{"total":0,"pages":0}}}`)
	})
	onDemoCatalog(t, func(t *testing.T, e *graph.Executor) {
		expect(t, "demo", mustExecute(t, e, query),
			`{"feed":{"release":1,"updatedAt":"2026-11-10","credit":"`+credit+`"},"stats":{"toolsTotal":48,"toolsTested":42,"toolsAvgScore":6.99,"toolsAvgScoreOrZero":6.99,"toolsRetired":10,"comparisonsTotal":13},"tools":{"meta":{"total":48,"pages":1}}}`)
	})
}

// Each place that selects a tool's comparisons has its own limit.
func TestComparisonsLimit(t *testing.T) {
	onDemoCatalog(t, func(t *testing.T, e *graph.Executor) {
		expect(t, "three places", mustExecute(t, e, `query ($n: Int!) {tool(slug: "plume") {one: comparisons(limit: 1) {slug} two: comparisons(limit: $n) {slug} comparisons {slug}}}`, map[string]any{"n": 2.0}),
			`{"tool":{"one":[{"slug":"plume-vs-ecritoire-cie"}],"two":[{"slug":"plume-vs-ecritoire-cie"},{"slug":"plume-vs-relire-svp"}],"comparisons":[{"slug":"plume-vs-ecritoire-cie"},{"slug":"plume-vs-relire-svp"}]}}`)
		wantRejected(t, execute(t, e, "", `{tool(slug: "plume") {comparisons(limit: 201) {slug}}}`), "BAD_USER_INPUT", "limit must be an integer from 1 to 200 (got 201).")
		wantRejected(t, execute(t, e, "", `{tools {items {comparisons(limit: 0) {slug}}}}`), "BAD_USER_INPUT", "limit must be an integer from 1 to 200 (got 0).")
	})
}

// Tools, categories, comparisons and prices are read from the database once, and
// the number of statements does not depend on the number of tools. Reviews are
// read each time, between two statements that check the release.
func TestStatementCount(t *testing.T) {
	const query = `query ($limit: Int!) {tools(limit: $limit) {meta {total} items {slug name category {label}
		comparisons {title toolA {name score} toolB {name score}} priceHistory {changedAt price} verdict reviewSections embeddings {chunks {id text}}}}}`
	const histories = `query ($limit: Int!) {tools(limit: $limit) {items {slug price history {at pricing price score}}} changes(first: $limit) {nodes {id tool {history {at score}}}}}`
	data := feedtest.Synthetic(t, synth.Options{Tools: 300, Seed: 1})
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		feedtest.Publish(t, s, data)
		statements := countStatements(s)
		for _, query := range []string{query, histories} {
			for _, limit := range []int{10, 190} {
				e := newExecutor(s)
				mustExecute(t, e, query, map[string]any{"limit": limit})
				first := statements.Swap(0)
				mustExecute(t, e, query, map[string]any{"limit": limit})
				second := statements.Swap(0)
				check.True(t, first <= 16 && second == 5, "limit %d: got %d and %d statements, want at most 16 and 5", limit, first, second)
			}
		}
	})
}
