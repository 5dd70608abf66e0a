package graph_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"palmares/graph"
)

// The other connections, read by cursor from both ends, give what their pages give.
func TestOtherConnections(t *testing.T) {
	onDemo(t, func(t *testing.T, e *graph.Executor) {
		for pages, connection := range map[string]string{
			`comparisons(limit: 200)`:                   `comparisonConnection(%s)`,
			`comparisons(limit: 200, category: "code")`: `comparisonConnection(category: "code", %s)`,
			`retiredTools(limit: 200)`:                  `retiredToolConnection(%s)`,
			`retiredTools(limit: 200, reason: mort)`:    `retiredToolConnection(reason: mort, %s)`,
		} {
			want := slugsOf(decoded[map[string]struct{ Items []slugged }](t, ask(t, e, `{list: `+pages+` {items {slug}}}`))["list"].Items)
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
		var answer map[string]struct {
			TotalCount int
			Edges      []struct{ Node slugged }
			PageInfo   struct {
				HasNextPage, HasPreviousPage bool
				StartCursor, EndCursor       *string
			}
		}
		data := ask(t, e, `{list: `+fmt.Sprintf(connection, arguments)+` {totalCount edges {node {slug}} pageInfo {hasNextPage hasPreviousPage startCursor endCursor}}}`)
		if err := json.Unmarshal([]byte(data), &answer); err != nil {
			t.Fatal(err)
		}
		list := answer["list"]
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
			if list.TotalCount != len(all) {
				t.Errorf("%s: %d of %d", connection, len(all), list.TotalCount)
			}
			return all
		}
		arguments = fmt.Sprintf(`%s: 2, %s: "%s"`, size, from, *cursor)
	}
}
