package mcp

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"palmares/auth"
	"palmares/graph"
	"palmares/graph/graphtest"
	"palmares/internal/catalog/feed/feedtest"
	"palmares/internal/core/cache"
	"palmares/internal/core/problem"
	"palmares/internal/core/store"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
	"palmares/rest"
)

var update = flag.Bool("update", false, "rewrite the golden file")

const (
	publicURL = "https://palmares.example"
	credit    = "Source : palmares (https://palmares.example)"
)

// catalog is a server on a database with the demo catalog.
type catalog struct {
	*Server
	store    *store.Store
	executor *graph.Executor
	counted  atomic.Int64
	quota    int64
	free     int // messages that were not counted
	limit    int // of those
}

func newCatalog(t testing.TB, s *store.Store) *catalog {
	t.Helper()
	release := feedtest.PublishDemo(t, s)
	log := slog.New(slog.DiscardHandler)
	c := &catalog{store: s, quota: 1_000_000, limit: 1_000_000, executor: graphtest.New(graph.Config{Catalog: s, Log: log})}
	responses := cache.New(4<<20, nil, log)
	responses.Publish(release)
	c.Server = check.Try(New(Config{
		Executor: c.executor, Cache: responses, PublicURL: publicURL, ServiceName: "palmares", ServiceURL: publicURL, Credit: credit,
		Schema: "type Query", Guides: []Guide{{Name: "paging", Title: "Paging", Summary: "Pages.", Markdown: "# Paging"}}, MaxBody: 100_000, Log: log,
		Count: func(w http.ResponseWriter, _ *http.Request) error {
			w.Header().Set("X-RateLimit-Tier", "free")
			if c.counted.Add(1) > c.quota {
				return problem.New(problem.QuotaSpent, "The daily quota is used up.")
			}
			return nil
		},
		Limit: func(*http.Request) bool {
			c.free++
			return c.free <= c.limit
		},
	})).OK(t)
	return c
}

func onSQLite(t testing.TB) *catalog {
	t.Helper()
	return newCatalog(t, testkit.Open(t, testkit.SQLite(t)))
}

// post sends a body to a server, with headers in pairs.
func (c *catalog) post(body string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, Path, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	for i := 0; i < len(headers); i += 2 {
		r.Header.Del(headers[i])
		if headers[i+1] != "" {
			r.Header.Set(headers[i], headers[i+1])
		}
		if headers[i] == "Authorization" {
			r = r.WithContext(auth.WithCaller(r.Context(), auth.Caller{Plan: auth.Developer, Key: "x"}))
		}
	}
	w := httptest.NewRecorder()
	c.ServeHTTP(w, r)
	return w
}

// called is the result of a call.
type called struct {
	IsError bool
	Content []struct{ Type, Text string }
	// StructuredContent is compared as JSON.
	StructuredContent json.RawMessage
}

func (c called) text() string {
	if len(c.Content) == 0 {
		return ""
	}
	return c.Content[0].Text
}

// tool calls a tool over HTTP.
func (c *catalog) tool(t testing.TB, name, arguments string, headers ...string) called {
	t.Helper()
	w := c.post(fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":%q,"arguments":%s}}`, name, arguments), headers...)
	var response struct{ Result *called }
	check.OK(t, json.Unmarshal(w.Body.Bytes(), &response), "%s %s", name, arguments)
	check.MustTrue(t, response.Result != nil, "%s %s: got %d %s, want a result", name, arguments, w.Code, w.Body)
	check.Must(t, w.Code, http.StatusOK, "%s %s: %s", name, arguments, w.Body)
	return *response.Result
}

// examples calls every tool.
var examples = map[string][]string{
	"search":          {`{"query":"plume"}`, `{"query":"nothing-like-it"}`},
	"fetch":           {`{"id":"tool:plume"}`, `{"id":"comparatif:plume-vs-ecritoire-cie"}`, `{"id":"cimetiere:vigie-3"}`},
	"search_tools":    {`{}`, `{"search":"ecrit","category":["redaction","code"],"pricing":["payant"],"icp":"mixte","score_min":5,"price_max":"50","billing_period":"month","sort":"price_asc","limit":2,"page":1}`},
	"get_tool":        {`{"slug":"plume"}`, `{"slug":"vigie-3"}`},
	"compare_tools":   {`{"a":"plume","b":"ecritoire-cie"}`, `{"a":"ecritoire-cie","b":"plume"}`, `{"a":"plume","b":"enclume-8"}`, `{"a":"plume","b":"enclume-8","c":"ecritoire-cie"}`},
	"list_categories": {`{}`, `{"as_of":"2026-05-31"}`},
	"price_changes":   {`{}`, `{"since":"2020-01-01","category":"redaction","slug":"plume","limit":1}`},
	"whats_new":       {`{}`, `{"since_release":7,"types":["tool_created","tool_updated"],"limit":3}`, `{"since":"2000-01-01","category":"code"}`},
	"retired_tools":   {`{}`, `{"reason":"mort","search":"a","limit":3}`},
	"catalog_stats":   {`{}`, `{"as_of":2}`},
	"graphql_schema":  {`{"search":"price"}`},
	"graphql_query":   {`{"query":"query ($n: Int!) {tools(limit: $n) {items {slug}}}","variables":{"n":2}}`},
}

func TestEveryTool(t *testing.T) {
	testkit.EachInFull(t, func(t *testing.T, s *store.Store) {
		c := newCatalog(t, s)
		var list struct {
			Result struct {
				Tools []struct {
					Name, Title, Description string
					InputSchema              any
					OutputSchema             any
					Annotations              struct{ ReadOnlyHint, OpenWorldHint *bool }
				}
			}
		}
		check.OK(t, json.Unmarshal(c.post(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`).Body.Bytes(), &list))
		check.Equal(t, len(list.Result.Tools), len(examples), "tools")
		for _, tool := range list.Result.Tools {
			if a := tool.Annotations; tool.Title == "" || tool.Description == "" || a.ReadOnlyHint == nil || !*a.ReadOnlyHint || a.OpenWorldHint == nil || *a.OpenWorldHint {
				t.Errorf("%s: got %+v, want a title, a description, readOnlyHint true and openWorldHint false", tool.Name, tool)
			}
			check.True(t, len(examples[tool.Name]) != 0, "%s: got no example, want one", tool.Name)
			check.Equal(t, (tool.OutputSchema == nil), (tool.Name == "graphql_query"), "%s: output schema: %v", tool.Name, tool.OutputSchema)
			for _, arguments := range examples[tool.Name] {
				validate(t, tool.Name+" input", tool.InputSchema, arguments, tool.Name == "search_tools" || strings.Contains(arguments, `"as_of":2`))
				for _, headers := range [][]string{nil, {"Authorization", "Bearer x"}} {
					got := c.tool(t, tool.Name, arguments, headers...)
					if tool.Name == "search" || tool.Name == "fetch" {
						var structured, text any
						check.OK(t, json.Unmarshal(got.StructuredContent, &structured))
						if json.Unmarshal([]byte(got.text()), &text) != nil || !reflect.DeepEqual(text, structured) || got.IsError || len(got.Content) != 1 {
							t.Errorf("%s %s: got %v, want one text with the same JSON as %s", tool.Name, arguments, got.Content, got.StructuredContent)
						}
					} else if got.IsError || !strings.Contains(got.text(), dataNotice) && tool.Name != "graphql_schema" || !strings.Contains(got.text(), credit+"\n"+publicURL) {
						t.Errorf("%s %s: got %s, want a result that ends with the credit line and links", tool.Name, arguments, got.text())
					}
					if tool.OutputSchema != nil {
						validate(t, tool.Name+" output", tool.OutputSchema, string(got.StructuredContent), false)
					}
				}
			}
		}
	})
}

// validate checks JSON against a schema. If it is lenient, a mismatch is allowed:
// models send values that schemas do not allow, and tools accept them.
func validate(t *testing.T, name string, schema any, text string, lenient bool) {
	t.Helper()
	compiler := jsonschema.NewCompiler()
	check.OK(t, compiler.AddResource("schema.json", schema))
	compiled := check.Try(compiler.Compile("schema.json")).OK(t)
	value := check.Try(jsonschema.UnmarshalJSON(strings.NewReader(text))).OK(t)
	err := compiled.Validate(value)
	check.True(t, err == nil || lenient, "%s: got %s, which its schema does not allow: %v", name, text, err)
}

// The list of tools is in the context of every conversation, so changes to its
// size must be visible.
func TestToolList(t *testing.T) {
	c := onSQLite(t)
	var got bytes.Buffer
	check.OK(t, json.Indent(&got, c.post(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`).Body.Bytes(), "", " "))
	if *update {
		check.OK(t, os.WriteFile("testdata/tools.json", got.Bytes(), 0o644))
	}
	want := check.Try(os.ReadFile("testdata/tools.json")).OK(t)
	check.Equal(t, got.String(), string(want), "list of tools that differs from testdata/tools.json; to update it, run go test -update ./internal/transport/mcp")
}

func TestErrorsHelp(t *testing.T) {
	testkit.EachInFull(t, func(t *testing.T, s *store.Store) {
		c := newCatalog(t, s)
		for _, e := range []struct{ name, arguments, want string }{
			{"get_tool", `{"slug":"plmue"}`, `slug: no tool has the slug "plmue". Did you mean plume?`},
			{"get_tool", `{"slug":"zzzzzzzzzz"}`, `Call search_tools to find it.`},
			{"get_tool", `{}`, `slug is required.`},
			{"get_tool", `{"slug":null}`, `slug is required.`},
			{"get_tool", `{"slug":{"a":1}}`, `slug must be a string (got "{\"a\":1}").`},
			{"get_tool", `{"slug":"a\u0000b"}`, `slug contains a NUL character or invalid UTF-8.`},
			{"get_tool", `{"slug":"plume","as_of":"99"}`, `Release 99 is not available. Available releases: 1 (`},
			{"get_tool", `{"slug":"plume","as_of":"soon"}`, `as_of must be a release number (1 or higher) or a date in the form YYYY-MM-DD (got "soon").`},
			{"search_tools", `{"category":"cod"}`, `category: there is no category "cod". Did you mean code? The categories are: agents, `},
			{"search_tools", `{"category":["code","x"]}`, `category: there is no category "x". The categories are: agents, `},
			{"search_tools", `{"limit":1000}`, `limit must be an integer from 1 to 200 (got "1000").`},
			{"search_tools", `{"limit":[1]}`, `limit must be a number (got "[1]").`},
			{"search_tools", `{"score_min":11}`, `score_min must be a number from 0 to 10 (got 11).`},
			{"search_tools", `{"sort":"best"}`, `sort must be one of score_desc, `},
			{"search_tools", `{"pricing":["free"]}`, `pricing must be one of gratuit, freemium, payant (got "free").`},
			{"search_tools", `{"serch":"x"}`, `search_tools has no argument "serch". Did you mean search? Its arguments are: search, category, `},
			{"whats_new", `{"since":"yesterday"}`, `since must be a valid date in the form YYYY-MM-DD (got "yesterday").`},
			{"whats_new", `{"since_release":-1}`, `since_release must be an integer from 0 to 999999999 (got "-1").`},
			{"price_changes", `{"after":"x"}`, `after must be an event ID, such as evt_42.`},
			{"graphql_schema", `{}`, `search is required`},
			{"graphql_schema", `{"search":"Tol"}`, `Did you mean Tool`},
			{"graphql_query", `{}`, `query is required`},
			{"graphql_query", `{"query":"{tols {slug}}"}`, `Did you mean "tools"`},
			{"graphql_query", `{"query":"{stats {tools}}"}`, `Its fields: toolsTotal, toolsTested, `},
			{"graphql_query", `{"query":"{movers(metric: score, since: \"2026-06-01\") {slug}}"}`, `Its arguments: metric, from, to, `},
			{"graphql_query", `{"query":"{feed {release}}","variables":[]}`, `variables must be a JSON object (got "[]").`},
			{"graphql_query", `{"query":"{tool(slug: \"plume\") {embeddings {hash}}}"}`, `Embeddings require an account. Send an API key as a bearer token in the Authorization header, or sign in with OAuth.`},
			{"graphql_query", `{"query":"{tools(limit: 200) {items {comparisons(limit: 200) {title toolA {comparisons(limit: 200) {title}}}}}}"}`, `which exceeds the limit of 20000`},
			{"graphql_query", `{"query":"subscription {catalogPublished {release}}"}`, `stream`},
		} {
			got := c.tool(t, e.name, e.arguments)
			check.Equal(t, got.IsError, true, "%s %s", e.name, e.arguments)
			check.Contains(t, got.text(), e.want, "%s %s", e.name, e.arguments)
		}
	})
}

// The result of a tool is what REST returns for the same request.
func TestSameAsREST(t *testing.T) {
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		c := newCatalog(t, s)
		api := check.Try(rest.NewHandler(rest.Config{PublicURL: publicURL}, c.executor, cache.New(1<<20, nil, slog.New(slog.DiscardHandler)))).OK(t)
		for _, e := range []struct{ name, arguments, path string }{
			{"search_tools", `{}`, "/api/v1/tools?limit=10"},
			{"search_tools", `{"search":"ecrit","sort":"score_desc","limit":3}`, "/api/v1/tools?search=ecrit&sort=score_desc&limit=3"},
			{"search_tools", `{"category":"code","score_min":7,"sort":"name_asc","page":2,"limit":2,"as_of":"3"}`, "/api/v1/tools?category=code&score_min=7&sort=name_asc&page=2&limit=2&as_of=3"},
			{"list_categories", `{}`, "/api/v1/categories"},
			{"retired_tools", `{"reason":"mort"}`, "/api/v1/cimetiere?reason=mort&limit=10"}, // and more
			{"catalog_stats", `{"as_of":"2026-05-31"}`, "/api/v1/stats?as_of=2026-05-31"},
		} {
			w := httptest.NewRecorder()
			api.ServeHTTP(w, httptest.NewRequest(http.MethodGet, e.path, nil))
			var got, want any
			check.OK(t, json.Unmarshal(c.tool(t, e.name, e.arguments).StructuredContent, &got))
			check.OK(t, json.Unmarshal(w.Body.Bytes(), &want))
			check.True(t, contains(want, got) || contains(got, want), "%s %s: got %v, want the same values as %s: %v", e.name, e.arguments, got, e.path, want)
		}
	})
}

// contains reports whether all values of one result are in the other. Tools
// leave out some fields, and have some that REST does not have.
func contains(whole, part any) bool {
	switch part := part.(type) {
	case map[string]any:
		whole, ok := whole.(map[string]any)
		for name, value := range part {
			if other, has := whole[name]; !slices.Contains([]string{"meta", "monthly_price", "obsolescence"}, name) || has {
				ok = ok && has && contains(other, value)
			}
		}
		return ok
	case []any:
		whole, ok := whole.([]any)
		if !ok || len(whole) != len(part) {
			return false
		}
		for i := range part {
			ok = ok && contains(whole[i], part[i])
		}
		return ok
	}
	return reflect.DeepEqual(whole, part)
}

func TestReviewsRequireKey(t *testing.T) {
	c := onSQLite(t)
	for range 2 { // the second time from the cache
		got := c.tool(t, "get_tool", `{"slug":"plume"}`)
		check.Lacks(t, string(got.StructuredContent), `"review"`, "without a key: the review")
		got = c.tool(t, "get_tool", `{"slug":"plume"}`, "Authorization", "Bearer x")
		check.Contains(t, string(got.StructuredContent), `"review":{"chunks":[{"text":"`, "a key")
	}
}

func TestLargeResultsSayWhatToLower(t *testing.T) {
	c := onSQLite(t)
	got := c.tool(t, "search_tools", `{"limit":48}`).text()
	check.MustTrue(t, strings.HasPrefix(got, "This result is "), "got %.100s, want how to make it smaller", got)
	check.Contains(t, got[:110], "reduce `limit`", "%.100s", got)
	if got := c.tool(t, "search_tools", `{}`); strings.HasPrefix(got.text(), "This result") || strings.Count(got.text(), "https://palmares.example/outils/") != 10 {
		t.Errorf("got %s, want 10 tools", got.text())
	}
}

// A mistake in the table or an operation is an error at start-up.
func TestInvalidTools(t *testing.T) {
	operation := func(text string) map[string]*graph.Operation {
		o := check.Try(graph.NewOperation(text)).OK(t)
		return map[string]*graph.Operation{"x": o}
	}
	described := `"""Tools.""" `
	for _, e := range []struct {
		row        row
		operations map[string]*graph.Operation
		want       string
	}{
		{row{name: "x"}, nil, "an operation is missing"},
		{row{name: "x"}, operation(`query x {stats {toolsTotal}}`), "its operation has no description"},
		{row{name: "x", withKey: "y"}, operation(described + `query x {stats {toolsTotal}}`), "an operation is missing"},
		{row{name: "x", sizeArgument: "limit"}, operation(described + `query x {stats {toolsTotal}}`), "no argument limit to reduce"},
		{row{name: "x"}, operation(described + `query x($f: ToolFilter) {tools(filter: $f) {meta {total}}}`), "$f has the type ToolFilter"},
		{row{name: "x"}, operation(described + `query x($b: Boolean!) {stats {toolsTotal @include(if: $b)}}`), "$b has no description"},
	} {
		_, err := buildTools([]row{e.row}, e.operations)
		check.Contains(t, fmt.Sprint(err), e.want)
	}
}

// registrySchema has the registry's rules of 2025-12-11 for the members that we use, in
// our own words. It allows no others, which the registry would not check.
const registrySchema = `{
	"type": "object", "additionalProperties": false, "required": ["$schema", "name", "description", "version", "remotes"],
	"properties": {
		"$schema": {"const": "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json"},
		"name": {"type": "string", "minLength": 3, "maxLength": 200, "pattern": "^[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+$"},
		"title": {"type": "string", "minLength": 1, "maxLength": 100},
		"description": {"type": "string", "minLength": 1, "maxLength": 100},
		"version": {"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[^\\^~><=*]+$"},
		"websiteUrl": {"type": "string", "pattern": "^https?://"},
		"remotes": {"type": "array", "minItems": 1, "items": {
			"type": "object", "additionalProperties": false, "required": ["type", "url"],
			"properties": {
				"type": {"const": "streamable-http"},
				"url": {"type": "string", "pattern": "^https?://[^\\s]+$"},
				"headers": {"type": "array", "items": {
					"type": "object", "additionalProperties": false, "required": ["name"],
					"properties": {
						"name": {"type": "string"}, "description": {"type": "string"}, "placeholder": {"type": "string"},
						"isRequired": {"type": "boolean"}, "isSecret": {"type": "boolean"}
					}
				}}
			}
		}}
	}
}`

func TestRegistryEntry(t *testing.T) {
	c := onSQLite(t)
	schema := check.Try(jsonschema.UnmarshalJSON(strings.NewReader(registrySchema))).OK(t)
	for _, e := range []struct{ publicURL, service, name string }{
		{"https://palmares.example", "palmares", "example.palmares/palmares"},
		{"https://api.palmares.example:8443", "Le Palmarès d'été", "example.palmares.api/le-palmares-d-ete"},
		{"http://127.0.0.1:8080", strings.Repeat("é", 150), "127.0.0.1/" + strings.Repeat("e", 150)},
		{"http://[::1]:8080", "palmares", "1/palmares"},
	} {
		c.cfg.PublicURL, c.cfg.ServiceName, c.cfg.Version = e.publicURL, e.service, "v1.2.0-3-gabc"
		entry := check.Try(c.RegistryEntry()).OK(t)
		body := string(entry.Body())
		check.Contains(t, body, `"name":"`+e.name+`"`)
		check.Contains(t, body, `"url":"`+e.publicURL+`/mcp"`)
		validate(t, "server.json", schema, body, false)
	}
}

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
		got := c.tool(t, "search_tools", `{"search":"plume"}`)
		check.Lacks(t, string(got.StructuredContent), `"hint"`, "results")
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
			check.True(t, i == 0 || importance(i) >= importance(i-1), "got %+v at %d, want the more important first", item, i)
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
		got := c.tool(t, "graphql_schema", fmt.Sprintf(`{"search":%q}`, phrase))
		check.Equal(t, got.IsError, false, phrase)
		check.Contains(t, got.text(), want, phrase)
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
		query := check.Try(json.Marshal(line[strings.Index(line, "{") : strings.LastIndex(line, "}")+1])).OK(t)
		got := c.tool(t, "graphql_query", `{"query":`+string(query)+`}`)
		check.Equal(t, got.IsError, false, string(query))
		check.Lacks(t, got.text(), ": []", string(query))
		tried++
	}
	check.True(t, tried >= 5, "got %d examples, want at least 5", tried)
}

// FuzzArguments checks that arguments of a tool that are accepted have the same meaning when
// they are written again, and that others are an error of the caller.
func FuzzArguments(f *testing.F) {
	operations := check.Try(graph.LoadOperations(queries)).OK(f)
	tools := check.Try(buildTools(rows, operations)).OK(f)
	for _, all := range examples {
		for _, arguments := range all {
			f.Add(arguments)
		}
	}
	f.Add(`{"limit":"5","category":["code"],"as_of":"8"}`)
	f.Add(`{"slug":"a\u0000"}`)
	f.Fuzz(func(t *testing.T, arguments string) {
		if !json.Valid([]byte(arguments)) {
			return // the message that contains it is rejected
		}
		for _, tool := range tools {
			variables, asOf, err := tool.read(json.RawMessage(arguments))
			if err != nil {
				p := problem.Of(err)
				check.Equal(t, p.Code, problem.BadInput, "%s %s", tool.name, arguments)
				check.True(t, p.Message != "", "%s %s: got %v, want an error of the caller", tool.name, arguments, err)
				continue
			}
			if asOf != (graph.AsOf{}) {
				variables[graph.AsOfName] = asOf.String()
			}
			written := check.Try(json.Marshal(variables)).OK(t)
			again, asOfAgain, err := tool.read(written)
			delete(variables, graph.AsOfName)
			check.OK(t, err, "%s %s, from %s", tool.name, arguments, string(written))
			check.Equal(t, asOfAgain, asOf, "%s %s, from %s", tool.name, arguments, string(written))
			check.DeepEqual(t, again, variables, "%s %s, from %s", tool.name, arguments, string(written))
		}
	})
}

// FuzzOrigin checks that only pages of the service may call the server, and on a server for
// one machine also other pages of that machine.
func FuzzOrigin(f *testing.F) {
	for _, origin := range []string{"https://palmares.example", "https://palmares.example.evil.example", "null", "http://localhost:1", "http://localhost.evil.example", "http://127.0.0.1@evil.example", "HTTPS://PALMARES.EXAMPLE", "http://[::1]"} {
		f.Add(origin)
	}
	public, local := newOrigins("https://palmares.example", "https://service.example"), newOrigins("http://127.0.0.1:8080")
	f.Fuzz(func(t *testing.T, origin string) {
		known := strings.EqualFold(origin, "https://palmares.example") || strings.EqualFold(origin, "https://service.example")
		check.Equal(t, public.allow([]string{origin}), known, "%q", origin)
		if !local.allow([]string{origin}) {
			return
		}
		u, err := url.Parse(origin)
		if err != nil || u.Hostname() != "localhost" && u.Hostname() != "::1" && !strings.HasPrefix(u.Hostname(), "127.") && !strings.Contains(u.Hostname(), ":") {
			t.Errorf("%q: got it allowed, want only this machine", origin)
		}
	})
}
