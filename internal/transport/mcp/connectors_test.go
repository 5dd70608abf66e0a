package mcp

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"palmares/internal/core/store"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
)

func TestSearch(t *testing.T) {
	testkit.EachInFull(t, func(t *testing.T, s *store.Store) {
		c := newCatalog(t, s)
		for _, e := range []struct {
			query string
			first []string // the IDs of the first results
		}{
			{"Plume", []string{"tool:plume"}},
			{"plume vs écritoire", []string{"tool:ecritoire-cie", "comparatif:plume-vs-ecritoire-cie"}},
			{"Which tool is best to clean podcasts, balados?", []string{"tool:voix-ardoise"}},
			{"vigie", []string{"cimetiere:vigie-3"}},
			{"Which one of all the tools that you have in the list would be the best for me if I make balados?", []string{"tool:voix-ardoise"}},
			{strings.Repeat("x", 300), nil},
			{"zzzzzz", nil},
		} {
			var found struct {
				Results []hit
				Hint    string
			}
			check.OK(t, json.Unmarshal(c.tool(t, "search", `{"query":"`+e.query+`"}`).StructuredContent, &found))
			var ids []string
			for _, h := range found.Results {
				ids = append(ids, h.ID)
				if h.Title == "" || !strings.HasPrefix(h.URL, "https://") {
					t.Errorf("%s: got %+v, want a title and a URL", e.query, h)
				}
			}
			if len(ids) < len(e.first) || len(ids) > maxHits || !slices.Equal(ids[:len(e.first)], e.first) || (len(e.first) == 0) != strings.Contains(found.Hint, "Categories: agents") {
				t.Errorf("%s: got %v and the hint %q, want %v first, or a hint", e.query, ids, found.Hint, e.first)
			}
			for _, id := range ids {
				got := c.tool(t, "fetch", `{"id":"`+id+`"}`)
				var p page
				if json.Unmarshal([]byte(got.text()), &p) != nil || p.ID != id || p.Title == "" || p.URL == "" || !strings.Contains(p.Text, credit) || len(p.Metadata) < 2 {
					t.Errorf("fetch %s: got %+v, want the whole result", id, p)
				}
			}
		}
	})
}

func TestUnknownIDs(t *testing.T) {
	c := onSQLite(t)
	for id, want := range map[string]string{
		"plume":                         `id must be tool:, comparatif: or cimetiere: and a slug (got "plume"). Did you mean tool:plume?`,
		"tool:plmue":                    `id: there is no "tool:plmue". Did you mean tool:plume?`,
		"comparatif:plume-vs-ecritoire": `Did you mean comparatif:plume-vs-ecritoire-cie?`,
		"tool:zzzzzzzzzz":               `Call search to find it.`,
		"vigie-3":                       `Did you mean cimetiere:vigie-3?`,
		"":                              `id must not be empty.`,
	} {
		if got := c.tool(t, "fetch", `{"id":"`+id+`"}`); !got.IsError || !strings.Contains(got.text(), want) {
			t.Errorf("%s: got %s, want an error with %q", id, got.text(), want)
		}
	}
	retired := c.tool(t, "fetch", `{"id":"tool:vigie-3"}`)
	check.Contains(t, retired.text(), `"id":"cimetiere:vigie-3"`, "a retired tool: want it with its own ID")
}

func TestReviewResource(t *testing.T) {
	c := onSQLite(t)
	read := func(slug string, headers ...string) string {
		return c.post(`{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"palmares://reviews/`+slug+`"}}`, headers...).Body.String()
	}
	check.Contains(t, read("plume"), "Embeddings require an account.", "without a key: want an error")
	if got := read("plume", "Authorization", "Bearer x"); !strings.Contains(got, `# Plume\n\n## verdict\n\n`) || !strings.Contains(got, credit) {
		t.Errorf("with a key: got %s, want the review", got)
	}
	check.Contains(t, read("trame-72", "Authorization", "Bearer x"), `There is no review of \"trame-72\"`, "a tool without a review: want an error")
}

func TestCompareThreeTools(t *testing.T) {
	c := onSQLite(t)
	var three, two map[string]json.RawMessage
	check.OK(t, json.Unmarshal(c.tool(t, "compare_tools", `{"a":"plume","b":"enclume-8","c":"ecritoire-cie"}`).StructuredContent, &three))
	check.OK(t, json.Unmarshal(c.tool(t, "compare_tools", `{"a":"plume","b":"ecritoire-cie"}`).StructuredContent, &two))
	if !strings.Contains(string(three["c"]), `"slug":"ecritoire-cie"`) || !strings.Contains(string(three["published_ac"]), "plume-vs-ecritoire-cie") || string(three["published_bc"]) != `{"items":[]}` {
		t.Errorf("got %s, want three tools and the comparison of two of them", three)
	}
	check.Must(t, len(two), 3, "want only a, b and published")
	check.Contains(t, string(two["published"]), "plume-vs-ecritoire-cie", "want only a, b and published")
	if got := c.tool(t, "compare_tools", `{"a":"plume","b":"enclume-8","c":"ecritoire"}`); !got.IsError || !strings.Contains(got.text(), `c: no tool has the slug "ecritoire". Did you mean ecritoire-cie`) {
		t.Errorf("got %s, want an error", got.text())
	}
}

func TestEmptyListsHelp(t *testing.T) {
	c := onSQLite(t)
	for _, e := range []struct{ name, arguments, want string }{
		{"search_tools", `{"category":"code","score_min":10}`, "No tool matches all conditions. Omit or relax one of: category, score_min."},
		{"search_tools", `{"search":"vigie-3"}`, "Retired tools with similar names, for get_tool: vigie-3."},
		{"retired_tools", `{"reason":"mort","category":"agents"}`, "No retired tool matches all conditions. Omit or relax one of: category, reason."},
		{"retired_tools", `{"search":"vigie-4"}`, "Retired tools with similar names: vigie-3."},
		{"price_changes", `{"slug":"plmue"}`, `No tool has the slug "plmue". Did you mean plume? The latest releases: 8 (2026-11-10), `},
		{"whats_new", `{"since":"2999-01-01"}`, "No change matches all conditions. Omit or relax one of: since. The latest releases: 8 (2026-11-10), "},
	} {
		if got := c.tool(t, e.name, e.arguments); got.IsError || !strings.Contains(got.text(), e.want) {
			t.Errorf("%s %s: got %s, want the hint %q", e.name, e.arguments, got.text(), e.want)
		}
	}
}
