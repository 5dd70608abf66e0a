package graph_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"palmares/auth"
	"palmares/graph"
	"palmares/internal/core/text"
	"palmares/internal/dev/check"
)

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

// The pages and the connection of a search have the same tools in the same order:
// exact names, names that start with the text, names that contain its words, and
// the rest, each group by score.
func TestRelevance(t *testing.T) {
	onDemoCatalog(t, func(t *testing.T, e *graph.Executor) {
		const query = `filter: {search: "a"}`
		type node struct {
			Slug, Name string
			Score      *float64
		}
		all := decode[struct{ Tools struct{ Items []node } }](t, mustExecute(t, e, "{tools("+query+", limit: 200) {items {slug name score}}}")).Tools.Items
		check.MustTrue(t, len(all) >= 10, "got %d tools, want at least 10", len(all))
		rank := func(n node) int {
			switch i := slices.IndexFunc(text.Words(n.Name), func(word string) bool { return strings.HasPrefix(word, "a") }); {
			case i == 0:
				return 1
			case i > 0:
				return 2
			}
			return 3
		}
		for i := range all[1:] {
			if rank(all[i]) > rank(all[i+1]) {
				t.Errorf("got %s before %s, want better matches first", all[i].Name, all[i+1].Name)
			}
			if a, b := all[i].Score, all[i+1].Score; rank(all[i]) == rank(all[i+1]) && (a == nil && b != nil || a != nil && b != nil && *a < *b) {
				t.Errorf("got %s before %s, want higher scores first", all[i].Name, all[i+1].Name)
			}
		}
		var got []string
		for after := ""; ; {
			c := decode[struct {
				ToolConnection struct {
					Nodes    []slugItem
					PageInfo struct {
						HasNextPage bool
						EndCursor   string
					}
				}
			}](t, mustExecute(t, e, "{toolConnection("+query+", first: 7"+after+") {nodes {slug} pageInfo {hasNextPage endCursor}}}")).ToolConnection
			got = append(got, slugsOf(c.Nodes)...)
			if after = fmt.Sprintf(", after: %q", c.PageInfo.EndCursor); !c.PageInfo.HasNextPage {
				break
			}
		}
		var want []string
		for _, n := range all {
			want = append(want, n.Slug)
		}
		expect(t, "connection", got, want)
	})
}
