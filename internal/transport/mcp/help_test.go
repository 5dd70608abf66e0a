package mcp

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"palmares/internal/core/store"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
)

func TestEmptySearchHelps(t *testing.T) {
	testkit.EachInFull(t, func(t *testing.T, s *store.Store) {
		c := newCatalog(t, s)
		for _, e := range []struct {
			arguments string
			want      []string
		}{
			{`{"search":"spaceship agent"}`, []string{"Reviews are in French", "Words that match alone: agent (", "Categories: agents ("}},
			{`{"search":"plue"}`, []string{"Reviews are in French", "Tools with similar names: plume"}},
			{`{"search":"plume","score_min":10}`, []string{"No tool matches all arguments. Without the others, search matches"}},
		} {
			for range 2 { // the second time from the cache
				got := c.tool(t, "search_tools", e.arguments)
				var structured struct {
					Data []any
					Hint string
				}
				check.OK(t, json.Unmarshal(got.StructuredContent, &structured))
				for _, want := range e.want {
					if len(structured.Data) > 0 || !strings.Contains(structured.Hint, want) || !strings.HasPrefix(got.text(), structured.Hint) {
						t.Errorf("%s: got %s and %s, want no tools and the hint %q in both", e.arguments, got.StructuredContent, got.text(), want)
					}
				}
			}
		}
		if got := c.tool(t, "search_tools", `{"search":"plume"}`); strings.Contains(string(got.StructuredContent), `"hint"`) {
			t.Errorf("with results: got %s, want no hint", got.StructuredContent)
		}
	})
}

func TestNews(t *testing.T) {
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		c := newCatalog(t, s)
		var page struct{ Data []change }
		got := c.tool(t, "whats_new", `{"limit":200}`)
		check.OK(t, json.Unmarshal(got.StructuredContent, &page))
		importance := func(i int) int { return page.Data[i].importance() }
		seen := map[int]bool{}
		for i, item := range page.Data {
			seen[importance(i)] = true
			if i > 0 && importance(i) < importance(i-1) {
				t.Errorf("got %+v after %+v, want the more important first", item, page.Data[i-1])
			}
			switch names := slices.Sorted(maps.Keys(item.Old)); {
			case item.Type == "price_changed" && !slices.Equal(names, []string{"price", "pricing"}),
				item.Type == "tool_updated" && !slices.Equal(names, slices.Sorted(slices.Values(item.Fields))),
				item.Type == "tool_created" && (item.New["name"] == nil || len(item.New) != 3):
				t.Errorf("got %+v, want what changed, and no more", item)
			}
		}
		check.Equal(t, len(seen), 5, "changes of the importances")
	})
}

func TestCompletions(t *testing.T) {
	c := onSQLite(t)
	for _, e := range []struct{ ref, argument, value, want string }{
		{`{"type":"ref/resource","uri":"palmares://tools/{slug}"}`, "slug", "plum", `{"total":1,"values":["plume"]}`},
		{`{"type":"ref/resource","uri":"palmares://tools/{slug}"}`, "slug", "no such", `{"values":[]}`},
		{`{"type":"ref/prompt","name":"what_changed"}`, "since", "2026-05", `{"total":1,"values":["2026-05-`},
		{`{"type":"ref/resource","uri":"palmares://reviews/{slug}"}`, "slug", "plum", `{"total":1,"values":["plume"]}`},
		{`{"type":"ref/prompt","name":"choose_tool"}`, "task", "", `{"values":[]}`},
		{`{"type":"ref/prompt","name":"choose_tool"}`, "category", "ag", `{"total":1,"values":["agents"]}`},
	} {
		got := c.post(fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"completion/complete","params":{"ref":%s,"argument":{"name":%q,"value":%q}}}`,
			e.ref, e.argument, e.value)).Body.String()
		check.Contains(t, got, `"completion":`+e.want, "%s %q", e.ref, e.value)
	}
}

func TestPhrasesFindTypes(t *testing.T) {
	c := onSQLite(t)
	for phrase, want := range map[string]string{
		"number of retirements in each month": "retirementGroups(",
		"prices of tools over time as series": "series(",
		"which tools changed score most":      "movers(",
	} {
		if got := c.tool(t, "graphql_schema", fmt.Sprintf(`{"search":%q}`, phrase)); got.IsError || !strings.Contains(got.text(), want) {
			t.Errorf("%s: got %s, want %s", phrase, got.text(), want)
		}
	}
}

// The examples in the instructions work.
func TestInstructions(t *testing.T) {
	c := onSQLite(t)
	tried := 0
	for line := range strings.Lines(instructions) {
		if !strings.HasPrefix(line, "- ") {
			continue
		}
		query, err := json.Marshal(line[strings.Index(line, "{") : strings.LastIndex(line, "}")+1])
		check.OK(t, err)
		if got := c.tool(t, "graphql_query", `{"query":`+string(query)+`}`); got.IsError || strings.Contains(got.text(), ": []") {
			t.Errorf("%s: got %s, want a result", query, got.text())
		}
		tried++
	}
	if tried < 5 {
		t.Errorf("got %d examples, want at least 5", tried)
	}
}
