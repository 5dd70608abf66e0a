package graph_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	entsql "entgo.io/ent/dialect/sql"

	"palmares/graph"
	"palmares/internal/catalog/feed/demo"
	"palmares/internal/core/store"
	"palmares/internal/dev/testkit"
)

// recording keeps the last statement that reads tools.
type recording struct {
	*store.Store
	statement string
	args      []any
}

func (r *recording) Select(ctx context.Context, statement string, args ...any) (entsql.ColumnScanner, error) {
	r.statement, r.args = statement, args
	return r.Store.Select(ctx, statement, args...)
}

// plan is how the database runs the last statement of a query.
func (r *recording) plan(t *testing.T, query string) string {
	t.Helper()
	ask(t, newExecutor(r), query)
	explain := "EXPLAIN "
	if r.Describe() != "PostgreSQL" {
		explain = "EXPLAIN QUERY PLAN "
	}
	rows, err := r.Read.QueryContext(t.Context(), explain+r.statement, r.args...)
	if err != nil {
		t.Fatalf("%v\n%s", err, r.statement)
	}
	return planOf(t, rows)
}

// A list in a category, and a page in the middle of a list, come from an index
// of their order, whatever the size of the catalog.
func listsDoNotReadEveryTool(t *testing.T, s *store.Store) {
	r := &recording{Store: s}
	for sort, index := range map[string]string{
		"score_desc": "score", "score_asc": "score_asc", "name_asc": "name", "name_desc": "name_desc",
		"updated_asc": "update_asc", "updated_desc": "update_desc", "price_asc": "price_asc", "price_desc": "price_desc",
	} {
		plan := r.plan(t, fmt.Sprintf("{categories {tools(limit: 1, sort: %s) {slug}}}", sort))
		for _, wrong := range []string{"Seq Scan on tools", "WindowAgg", "SCAN f", "SCAN t", "CO-ROUTINE"} {
			if strings.Contains(plan, wrong) {
				t.Errorf("%s: got %s in\n%s", sort, wrong, plan)
			}
		}
		if !strings.Contains(plan, "tools_by_category_"+index) {
			t.Errorf("%s: want the index of the category's order in\n%s", sort, plan)
		}
		// From here on the list is read backward if its other end is nearer.
		plan = r.plan(t, fmt.Sprintf("{tools(page: 150, limit: 10, sort: %s) {items {name}}}", sort))
		if strings.Contains(plan, "Seq Scan on tools") || strings.Contains(plan, "SCAN tools\n") || !strings.Contains(plan, "tools_by_") {
			t.Errorf("%s: want a page from an index of the order in\n%s", sort, plan)
		}
	}
}

// A cursor leads to its place in an order by score, which has tools with and
// without one: nothing before it is stepped over.
func cursorsLeadToTheirPlace(t *testing.T, s *store.Store) {
	r := &recording{Store: s}
	for list, want := range map[string][]string{
		"sort: score_desc, first: 5, after":   {"untested=? AND score<?", "(score <= "},
		"sort: score_asc, last: 5, before":    {"untested=? AND score<?", "(score <= "},
		"sort: score_asc, first: 5, after":    {"untested=? AND score>?", "(score >= "},
		"sort: updated_desc, first: 5, after": {"updated_at<?", "(updated_at <= "},
	} {
		sort, _, _ := strings.Cut(list, ",")
		cursor := decoded[struct {
			ToolConnection struct{ PageInfo struct{ EndCursor string } }
		}](t, ask(t, newExecutor(s), "{toolConnection("+sort+", first: 200) {pageInfo {endCursor}}}")).ToolConnection.PageInfo.EndCursor
		plan := r.plan(t, fmt.Sprintf("{toolConnection(%s: %q) {nodes {slug}}}", list, cursor))
		if !strings.Contains(plan, want[0]) && !strings.Contains(plan, want[1]) || !strings.Contains(plan, "tools_by_") {
			t.Errorf("%s: want a search in an index in\n%s", list, plan)
		}
	}
}

// SQLite goes through the table for what no index has, and not through an
// index of something else.
func TestFiltersReadTheTableInItsOrder(t *testing.T) {
	s := testkit.Open(t, testkit.SQLite(t))
	publish(t, s, demo.Catalog)
	r := &recording{Store: s}
	for arguments, want := range map[string]string{
		"filter: {verifiabilityMin: 1}":                               "SCAN tools\n",
		`filter: {categories: ["code", "voix"]}, sort: name_asc`:      "SCAN tools\n",
		`filter: {categories: ["code"]}, sort: updated_asc`:           "tools_by_category_update_asc",
		"filter: {scoreMin: 5}":                                       "tools_by_score_desc (untested=? AND score>?)",
		`filter: {updatedSince: "2026-01-01"}, sort: updated_asc`:     "tools_by_update_asc (updated_at>?)",
		`filter: {updatedSince: "2020-01-01"}, sort: score_asc`:       "SCAN tools\n",
		`filter: {pricings: [gratuit], priceMax: 1}, sort: price_asc`: "SCAN tools\n",
	} {
		for _, list := range []string{"tools(%s) {items {slug}}", "toolConnection(%s) {nodes {slug}}"} {
			if plan := r.plan(t, "{"+fmt.Sprintf(list, arguments)+"}"); !strings.Contains(plan, want) {
				t.Errorf("%s: got\n%swant %s", fmt.Sprintf(list, arguments), plan, want)
			}
		}
	}
}

// What takes more work costs more.
func TestCosts(t *testing.T) {
	s := testkit.Open(t, testkit.SQLite(t))
	publish(t, s, demo.Catalog)
	e := newExecutor(s)
	for query, want := range map[string]int{
		"{feed {release}}":                                                     2,
		"{tools(limit: 3) {items {slug}}}":                                     1 + 1 + 3 + 5,
		"{tools(limit: 3, filter: {}) {items {slug}}}":                         1 + 1 + 3 + 5,
		"{tools(limit: 3, filter: {icps: null}) {items {slug}}}":               1 + 1 + 3 + 5,
		"{tools(limit: 3, page: 9) {items {slug}}}":                            1 + 1 + 3 + 5,
		"{tools(limit: 200, page: 7) {items {slug}}}":                          1 + 1 + 200 + 5 + 300,
		"{tools(limit: 200, page: 1000000) {items {slug}}}":                    1 + 1 + 200 + 5 + 300,
		`{tools(limit: 3, filter: {categories: ["code"]}) {items {slug}}}`:     1 + 1 + 3 + 5 + 100,
		"{tools(limit: 3, filter: {icps: [mixte]}) {items {slug}}}":            1 + 1 + 3 + 5 + 2000,
		`{tools(limit: 3, filter: {search: "a"}) {items {slug}}}`:              1 + 1 + 3 + 5 + 2000 + 1500,
		"{tools(limit: 200, page: 7, filter: {icps: [mixte]}) {items {slug}}}": 1 + 1 + 200 + 5 + 2000 + 2000,
		// A statement reads for all tools at once, so it is not multiplied.
		"{tools(limit: 100) {items {category {slug}}}}":                                        1 + 1 + 100*2 + 5 + 5,
		"{categories {a: tools(limit: 1) {slug} b: tools(limit: 1) {slug}}}":                   1 + 20*4 + 3*5,
		"{toolGroups(by: tier) {key}}":                                                         1 + 20 + 5 + 2500,
		"{scoreHistogram {count}}":                                                             1 + 10 + 5 + 600,
		"{scoreHistogram(filter: {tierless: 1}) {count}}":                                      0, // refused before it is priced
		"{scoreHistogram(filter: {scoreMin: 1, search: \"e\"}) {count}}":                       1 + 10 + 5 + 2500 + 1500,
		"{priceChangeCounts {count}}":                                                          1 + 100 + 5 + 6500,
		`{comparisons(limit: 1, category: "code") {items {slug}}}`:                             1 + 1 + 1 + 5 + 600,
		`{changes(first: 1, category: "code") {nodes {id}}}`:                                   1 + 1 + 1 + 5 + 1500,
		`{changes(first: 1, types: [tool_created, price_changed, tool_created]) {nodes {id}}}`: 1 + 1 + 1 + 5 + 2000,
		`{retiredTools(limit: 1, category: "code") {items {slug}}}`:                            1 + 1 + 1 + 5 + 100,
	} {
		if got := execute(t, e, "", query).Cost; got != want {
			t.Errorf("%s: got %d, want %d", query, got, want)
		}
	}
	// A catalog of 5,000 tools takes a twentieth of the work.
	small := graph.NewExecutor(graph.Config{Catalog: s, Limits: graph.DefaultLimits, Log: slog.New(slog.DiscardHandler), Tools: func() int { return 5_000 }})
	if got, want := execute(t, small, "", "{tools(limit: 3, filter: {icps: [mixte]}) {items {slug}}}").Cost, 1+1+3+5+100; got != want {
		t.Errorf("5,000 tools: got %d, want %d", got, want)
	}
	// A filter from a variable costs what it holds.
	const query = "query ($f: ToolFilter) {tools(limit: 3, filter: $f) {items {slug}}}"
	for cost, filter := range map[int]any{10: nil, 110: map[string]any{"categories": []any{"code"}}, 2010: map[string]any{"categories": []any{"code", "voix"}}} {
		if got := execute(t, e, "", query, map[string]any{"f": filter}).Cost; got != cost {
			t.Errorf("%v: got %d, want %d", filter, got, cost)
		}
	}
}

// The examples in the guides and the largest of everyday queries stay within
// the limit.
func TestEverydayQueriesAreAffordable(t *testing.T) {
	onDemo(t, func(t *testing.T, e *graph.Executor) {
		for _, query := range []string{
			`{categories: toolGroups(by: category) {key count avgScore maxScore} paid: toolGroups(by: pricing, filter: {scoreMin: 8}) {key count}
				scoreHistogram {from to count} priceChangeCounts(since: "2026-01-01") {month category count}}`,
			"{tools(limit: 200, page: 40, filter: {scoreMin: 1}) {meta {total} items {slug name score tagline category {label} priceHistory {price}}}}",
			"{categories {slug label tools(limit: 10) {slug name score price}}}",
		} {
			ask(t, e, query)
		}
	})
}
