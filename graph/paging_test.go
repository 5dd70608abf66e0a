package graph_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"palmares/auth"
	"palmares/ent"
	"palmares/ent/tool"
	"palmares/graph"
	"palmares/internal/catalog/feed"
	"palmares/internal/catalog/feed/feedtest"
	"palmares/internal/catalog/feed/synth"
	"palmares/internal/catalog/publish"
	"palmares/internal/core/store"
	"palmares/internal/core/text"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
)

// onSyntheticCatalog runs a test with a catalog in which many tools have equal
// values, and with all its active tools.
func onSyntheticCatalog(t *testing.T, test func(t *testing.T, e *graph.Executor, all []*ent.Tool)) {
	t.Helper()
	data := feedtest.Synthetic(t, synth.Options{Tools: 330, Seed: 3})
	testkit.EachInFull(t, func(t *testing.T, s *store.Store) {
		feedtest.Publish(t, s, data)
		test(t, newExecutor(s), s.Read.Tool.Query().Where(tool.RetiredAtIsNil()).AllX(t.Context()))
	})
}

// sorts are independent implementations of the sort orders.
var sorts = map[string]func(a, b *ent.Tool) int{
	"score_desc":   func(a, b *ent.Tool) int { return scores(a, b, -1) },
	"score_asc":    func(a, b *ent.Tool) int { return scores(a, b, 1) },
	"name_asc":     func(a, b *ent.Tool) int { return strings.Compare(a.NameKey, b.NameKey) },
	"name_desc":    func(a, b *ent.Tool) int { return strings.Compare(b.NameKey, a.NameKey) },
	"updated_desc": func(a, b *ent.Tool) int { return strings.Compare(b.UpdatedAt, a.UpdatedAt) },
	"updated_asc":  func(a, b *ent.Tool) int { return strings.Compare(a.UpdatedAt, b.UpdatedAt) },
	"price_asc":    func(a, b *ent.Tool) int { return cmp.Compare(a.PriceAmount, b.PriceAmount) },
	"price_desc":   func(a, b *ent.Tool) int { return cmp.Compare(b.PriceAmount, a.PriceAmount) },
}

// scores orders tools without a score last in both directions.
func scores(a, b *ent.Tool, direction int) int {
	switch {
	case a.Score == nil && b.Score == nil:
		return 0
	case a.Score == nil:
		return 1
	case b.Score == nil:
		return -1
	}
	return direction * cmp.Compare(*a.Score, *b.Score)
}

// sorted returns the slugs of all tools in an order, with ties by slug.
func sorted(all []*ent.Tool, by func(a, b *ent.Tool) int) []string {
	tools := slices.Clone(all)
	slices.SortFunc(tools, func(a, b *ent.Tool) int { return cmp.Or(by(a, b), strings.Compare(a.ID, b.ID)) })
	var slugs []string
	for _, t := range tools {
		slugs = append(slugs, t.ID)
	}
	return slugs
}

type slugItem struct{ Slug string }

func slugsOf(items []slugItem) []string {
	var slugs []string
	for _, item := range items {
		slugs = append(slugs, item.Slug)
	}
	return slugs
}

// connection is a Relay connection as a client sees it.
type connection struct {
	ToolConnection struct {
		TotalCount int
		Nodes      []slugItem
		Edges      []struct {
			Cursor string
			Node   slugItem
		}
		PageInfo struct {
			HasNextPage, HasPreviousPage bool
			StartCursor, EndCursor       string
		}
	}
}

const connectionFields = `{totalCount nodes {slug} edges {cursor node {slug}} pageInfo {hasNextPage hasPreviousPage startCursor endCursor}}`

func TestEveryOrderByCursor(t *testing.T) {
	onSyntheticCatalog(t, func(t *testing.T, e *graph.Executor, all []*ent.Tool) {
		for sort, by := range sorts {
			want := sorted(all, by)
			var forward []string
			after := ""
			for more := true; more; {
				c := decode[connection](t, mustExecute(t, e, fmt.Sprintf(`{toolConnection(sort: %s, first: 47%s) %s}`, sort, after, connectionFields))).ToolConnection
				forward = append(forward, slugsOf(c.Nodes)...)
				expect(t, "total", c.TotalCount, 330)
				expect(t, "previous", c.PageInfo.HasPreviousPage, after != "")
				expect(t, "cursors", []string{c.PageInfo.StartCursor, c.PageInfo.EndCursor}, []string{c.Edges[0].Cursor, c.Edges[len(c.Edges)-1].Cursor})
				after, more = fmt.Sprintf(`, after: "%s"`, c.PageInfo.EndCursor), c.PageInfo.HasNextPage
			}
			expect(t, sort+" forward", forward, want)

			var backward []string
			before := ""
			for more := true; more; {
				c := decode[connection](t, mustExecute(t, e, fmt.Sprintf(`{toolConnection(sort: %s, last: 47%s) %s}`, sort, before, connectionFields))).ToolConnection
				backward = append(slugsOf(c.Nodes), backward...)
				before, more = fmt.Sprintf(`, before: "%s"`, c.PageInfo.StartCursor), c.PageInfo.HasPreviousPage
			}
			expect(t, sort+" backward", backward, want)
		}
	})
}

func TestFilters(t *testing.T) {
	over := func(value *float64, least float64) bool { return value != nil && *value >= least }
	under := func(value *float64, most float64) bool { return value != nil && *value <= most }
	onSyntheticCatalog(t, func(t *testing.T, e *graph.Executor, all []*ent.Tool) {
		for filter, matches := range map[string]func(*ent.Tool) bool{
			`{}`:                                           func(*ent.Tool) bool { return true },
			`{categories: ["code", "chat"]}`:               func(t *ent.Tool) bool { return t.CategorySlug == "code" || t.CategorySlug == "chat" },
			`{categories: ["unknown"]}`:                    func(*ent.Tool) bool { return false },
			`{categories: []}`:                             func(*ent.Tool) bool { return false },
			`{pricings: [gratuit]}`:                        func(t *ent.Tool) bool { return t.Pricing == tool.PricingGratuit },
			`{icps: [vibe_coder, mixte]}`:                  func(t *ent.Tool) bool { return t.Icp != tool.IcpAgenticEngineer },
			`{scoreMin: 0}`:                                func(t *ent.Tool) bool { return t.Score != nil },
			`{scoreMin: 4.5, scoreMax: 8}`:                 func(t *ent.Tool) bool { return over(t.Score, 4.5) && under(t.Score, 8) },
			`{verifiabilityMin: 2, verifiabilityMax: 3.1}`: func(t *ent.Tool) bool { return over(t.Verifiability, 2) && under(t.Verifiability, 3.1) },
			`{obsolescenceMax: 5}`:                         func(t *ent.Tool) bool { return under(t.Obsolescence, 5) },
			`{priceMax: 9.5}`:                              func(t *ent.Tool) bool { return t.PriceAmount <= 9.5 },
			`{updatedSince: "2025-07-01"}`:                 func(t *ent.Tool) bool { return t.UpdatedAt >= "2025-07-01" },
			`{search: "ÉCRITOIRE"}`:                        func(t *ent.Tool) bool { return strings.Contains(text.Fold(t.Name), "ecritoire") },
			`{search: "100%_\\"}`:                          func(t *ent.Tool) bool { return strings.Contains(t.Domain, "-100.") },
			`{search: "_"}`:                                func(*ent.Tool) bool { return false },
			`{search: "", pricings: [payant], categories: ["voix"], scoreMin: 5}`: func(t *ent.Tool) bool {
				return t.Pricing == tool.PricingPayant && t.CategorySlug == "voix" && over(t.Score, 5)
			},
		} {
			var matching []*ent.Tool
			for _, t := range all {
				if matches(t) {
					matching = append(matching, t)
				}
			}
			for range 2 { // the second time, the count is cached
				result := decode[struct {
					Tools struct {
						Items []slugItem
						Meta  struct{ Total int }
					}
				}](t, mustExecute(t, e, `{tools(limit: 200, sort: name_asc, filter: `+filter+`) {items {slug} meta {total}}}`))
				expect(t, filter+" total", result.Tools.Meta.Total, len(matching))
				expect(t, filter, slugsOf(result.Tools.Items), sorted(matching, sorts["name_asc"])[:min(200, len(matching))])
			}
		}
	})
}

// Figures are compared with a scan in package release.
func TestScoreHistogram(t *testing.T) {
	onSyntheticCatalog(t, func(t *testing.T, e *graph.Executor, all []*ent.Tool) {
		bins := make([]struct{ Count int }, 10)
		for _, row := range all {
			if row.PriceAmount <= 100 && row.Score != nil {
				bins[min(int(*row.Score), 9)].Count++
			}
		}
		result := decode[struct{ ScoreHistogram []struct{ Count int } }](t, mustExecute(t, e, `{scoreHistogram(filter: {priceMax: 100}) {count}}`))
		expect(t, "bins", result.ScoreHistogram, bins)
	})
}

// Connections have the same items as pages, whichever end they are read from.
func TestConnectionsMatchPages(t *testing.T) {
	onDemoCatalog(t, func(t *testing.T, e *graph.Executor) {
		for pages, connection := range map[string]string{
			`comparisons(limit: 200)`:                   `comparisonConnection(%s)`,
			`comparisons(limit: 200, category: "code")`: `comparisonConnection(category: "code", %s)`,
			`retiredTools(limit: 200)`:                  `retiredToolConnection(%s)`,
			`retiredTools(limit: 200, reason: mort)`:    `retiredToolConnection(reason: mort, %s)`,
			`tools(limit: 200, filter: {search: "a"})`:  `toolConnection(filter: {search: "a"}, %s)`, // by relevance
		} {
			want := slugsOf(decode[map[string]struct{ Items []slugItem }](t, mustExecute(t, e, `{list: `+pages+` {items {slug}}}`))["list"].Items)
			expect(t, pages+" forward", walk(t, e, connection, "first", "after"), want)
			expect(t, pages+" backward", walk(t, e, connection, "last", "before"), want)
		}
	})
}

// walk reads a connection two items at a time, in its own order.
func walk(t *testing.T, e *graph.Executor, connection, size, from string) []string {
	t.Helper()
	var all []string
	arguments := size + ": 2"
	for {
		var result map[string]struct {
			TotalCount int
			Edges      []struct{ Node slugItem }
			PageInfo   struct {
				HasNextPage, HasPreviousPage bool
				StartCursor, EndCursor       *string
			}
		}
		data := mustExecute(t, e, `{list: `+fmt.Sprintf(connection, arguments)+` {totalCount edges {node {slug}} pageInfo {hasNextPage hasPreviousPage startCursor endCursor}}}`)
		check.OK(t, json.Unmarshal([]byte(data), &result))
		list := result["list"]
		var slugs []string
		for _, edge := range list.Edges {
			slugs = append(slugs, edge.Node.Slug)
		}
		more, cursor := list.PageInfo.HasNextPage, list.PageInfo.EndCursor
		if all = append(all, slugs...); from == "before" {
			all = append(slugs, all[:len(all)-len(slugs)]...)
			more, cursor = list.PageInfo.HasPreviousPage, list.PageInfo.StartCursor
		}
		if !more {
			check.Equal(t, list.TotalCount, len(all), "%s: items", connection)
			return all
		}
		arguments = fmt.Sprintf(`%s: 2, %s: "%s"`, size, from, *cursor)
	}
}

// A scan returns the same pages, even after a new release, and allocates positions
// only for the first one.
func TestScanFiltersOnce(t *testing.T) {
	testkit.EachInFull(t, func(t *testing.T, s *store.Store) {
		feedtest.Publish(t, s, feedtest.Synthetic(t, synth.Options{Tools: 1_500, Seed: 4}))
		e := newExecutor(s)
		check.OK(t, e.Preload(t.Context()))
		type pages struct {
			list  string
			items uint64 // at least
			op    *graph.Operation
			scan  *graph.Scan
		}
		lists := []*pages{{list: "tools(filter: {priceMax: 1000000}, page: $page, limit: 1)", items: 1_000}, {list: "comparisons(page: $page, limit: 1)", items: 250}, {list: "retiredTools(page: $page, limit: 1)", items: 50}}
		read := func(p *pages, page int, scan *graph.Scan) (data string, allocated uint64) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			result := e.Execute(t.Context(), graph.Request{Operation: p.op, Variables: map[string]any{"page": int64(page)}, Scan: scan})
			runtime.ReadMemStats(&after)
			return string(result.Data), after.TotalAlloc - before.TotalAlloc
		}
		for _, p := range lists {
			p.op = check.Try(graph.NewOperation("query ($page: Int!) {" + p.list + " {items {slug} meta {total}}}")).OK(t)
			p.scan = &graph.Scan{}
			read(p, 1, p.scan)
			want, alone := read(p, 2, nil)
			got, scanned := read(p, 2, p.scan)
			check.Equal(t, got, want, p.list)
			check.Contains(t, got, `"slug"`, p.list)
			positions := p.items * 8
			check.True(t, scanned+positions <= alone, "%s: got %d bytes allocated in a scan and %d without, want at least %d fewer", p.list, scanned, alone, positions)
		}
		feedtest.Publish(t, s, feedtest.Synthetic(t, synth.Options{Tools: 300, Seed: 5}))
		for _, p := range lists {
			want, _ := read(p, 2, nil)
			got, _ := read(p, 2, p.scan)
			check.Equal(t, got, want, "%s of the next release", p.list)
			check.Contains(t, got, `"slug"`, "%s of the next release", p.list)
		}
	})
}

// Each response comes from one release, however fast new ones are published.
func TestOperationsReadOneRelease(t *testing.T) {
	var feeds [2][]byte
	for i := range feeds {
		feeds[i] = feedtest.Synthetic(t, synth.Options{Tools: 40 + 20*i, Seed: 9, Revision: i})
	}
	const query = `{feed {updatedAt} stats {toolsTotal} tools(limit: 200, filter: {priceMax: 100000}) {items {slug} meta {total}} again: tools(limit: 200, sort: name_asc) {items {slug}} toolGroups(by: tier) {count}}`
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		feedtest.Publish(t, s, feeds[0])
		e := newExecutor(s)
		ctx, stop := context.WithCancel(t.Context())
		var releases atomic.Int64
		var all sync.WaitGroup
		defer all.Wait()
		defer stop()
		all.Go(func() {
			for i := 1; ctx.Err() == nil; i++ {
				if _, err := publish.Import(t.Context(), s, feed.NewLines(bytes.NewReader(feeds[i%2])), publish.Options{Force: true}); err != nil {
					t.Error(err)
					return
				}
				releases.Add(1)
			}
		})
		for responses := 0; responses < 20 || releases.Load() < 5; responses++ {
			if t.Failed() {
				return // imports have ended
			}
			a := decode[struct {
				Stats struct{ ToolsTotal int }
				Tools struct {
					Items []slugItem
					Meta  struct{ Total int }
				}
				Again      struct{ Items []slugItem }
				ToolGroups []struct{ Count int }
			}](t, mustExecute(t, e, query))
			grouped := 0
			for _, g := range a.ToolGroups {
				grouped += g.Count
			}
			n := a.Stats.ToolsTotal
			got := []int{len(a.Tools.Items), a.Tools.Meta.Total, len(a.Again.Items), grouped}
			check.MustTrue(t, got[0] == n && got[1] == n && got[2] == n && got[3] == n, "got %v tools, want %d everywhere", got, n)
		}
	})
}

// A search ignores order, case and accents, and is ordered by relevance unless
// another order is selected.
func TestSearch(t *testing.T) {
	onDemoCatalog(t, func(t *testing.T, e *graph.Executor) {
		found := func(arguments string) []string {
			return slugsOf(decode[struct{ Tools struct{ Items []slugItem } }](t, mustExecute(t, e, "{tools("+arguments+") {items {slug}}}")).Tools.Items)
		}
		got := found(`filter: {search: "plume"}`)
		check.MustTrue(t, len(got) != 0, "exact name: got %v, want plume first", got)
		check.Equal(t, got[0], "plume", "exact name")
		both := found(`filter: {search: "code agent"}`)
		if len(both) == 0 || !slices.Equal(both, found(`filter: {search: "AGENT  d'Côde"}`)) {
			t.Errorf("got %v and %v, want the same tools for the same words", both, found(`filter: {search: "AGENT  d'Côde"}`))
		}
		if got, want := found(`filter: {search: "plmue"}`), found(`filter: {search: "plume"}`); len(got) == 0 || got[0] != want[0] {
			t.Errorf("typo: got %v, want the first of %v", got, want)
		}
		sorted := found(`filter: {search: "code agent"}, sort: name_asc`)
		slices.Sort(both)
		slices.Sort(sorted)
		check.Slices(t, sorted, both, "sorted by name")
		check.Equal(t, len(found(`filter: {search: "code", categories: ["voix"], scoreMin: 10}`)), 0, "with other filters")
		for _, text := range []string{"🙂", "…!?", "%", "_", `\\\"`, "NEAR(a b)", "a* OR b", "שלום", strings.Repeat("x", 200)} {
			execute(t, e, auth.Developer, `query ($q: String) {tools(filter: {search: $q}) {items {slug}}}`, map[string]any{"q": text})
			mustExecute(t, e, `query ($q: String) {tools(filter: {search: $q}) {meta {total}} toolGroups(by: category, filter: {search: $q}) {count}}`, map[string]any{"q": text})
		}
		var words []string
		for i := range 17 {
			words = append(words, fmt.Sprintf("w%d", i+10))
		}
		wantRejected(t, execute(t, e, auth.Developer, `{tools(filter: {search: "`+strings.Join(words, " ")+`"}) {meta {total}}}`), "BAD_USER_INPUT", "The search must have at most 16 different words.")
		wantRejected(t, execute(t, e, auth.Developer, `{tools(filter: {search: "`+strings.Repeat("x", 201)+`"}) {meta {total}}}`), "BAD_USER_INPUT", "filter.search must have at most 200 characters.")
		wantRejected(t, execute(t, e, auth.Developer, `{tools(sort: relevance) {meta {total}}}`), "BAD_USER_INPUT", "sort: relevance requires filter.search.")
		wantRejected(t, execute(t, e, auth.Developer, `{categories {tools(sort: relevance) {slug}}}`), "BAD_USER_INPUT", "sort: relevance is not supported by the tools of a category. Use tools with filter.categories instead.")
	})
}
