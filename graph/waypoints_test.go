package graph_test

import (
	"fmt"
	"slices"
	"testing"

	"palmares/graph"
)

// Deep in a long list, pages show what reading on from cursor to cursor does.
func deepPages(t *testing.T, e *graph.Executor) {
	for _, list := range []string{"sort: score_desc", "sort: score_asc", "sort: name_desc", "sort: price_asc", "sort: updated_desc", `sort: name_asc, filter: {verifiabilityMin: 1}`} {
		var want []string
		for after := "null"; after != ""; {
			slice := decoded[struct {
				ToolConnection struct {
					Nodes    []slugged
					PageInfo struct {
						HasNextPage bool
						EndCursor   string
					}
				}
			}](t, ask(t, e, fmt.Sprintf(`{toolConnection(%s, first: 200, after: %s) {nodes {slug} pageInfo {hasNextPage endCursor}}}`, list, after))).ToolConnection
			want = append(want, slugsOf(slice.Nodes)...)
			after = ""
			if slice.PageInfo.HasNextPage {
				after = fmt.Sprintf("%q", slice.PageInfo.EndCursor)
			}
		}
		if len(want) < 2200 {
			t.Fatalf("%s: only %d tools", list, len(want))
		}
		for _, limit := range []int{200, 73} {
			var got []string
			for page := 1; (page-1)*limit < len(want); page++ {
				got = append(got, slugsOf(decoded[struct{ Tools struct{ Items []slugged } }](t,
					ask(t, e, fmt.Sprintf(`{tools(%s, page: %d, limit: %d) {items {slug}}}`, list, page, limit))).Tools.Items)...)
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s, limit %d: %d tools by page, %d by cursor, or in another order", list, limit, len(got), len(want))
			}
		}
	}
}
