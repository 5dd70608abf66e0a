package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"palmares/auth"
	"palmares/graph"
	"palmares/internal/catalog/feed"
	"palmares/internal/catalog/feed/demo"
	"palmares/internal/core/cache"
	"palmares/internal/core/problem"
	"palmares/internal/core/store"
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
}

func newCatalog(t testing.TB, s *store.Store) *catalog {
	t.Helper()
	editions, err := demo.Editions()
	testkit.Check(t, err)
	for _, edition := range editions {
		_, err := feed.Import(t.Context(), s, bytes.NewReader(edition.Feed), feed.Options{})
		testkit.Check(t, err)
	}
	log := slog.New(slog.DiscardHandler)
	c := &catalog{store: s, quota: 1_000_000, executor: graph.NewExecutor(graph.Config{Catalog: s, Limits: graph.DefaultLimits, Log: log})}
	responses := cache.New(4<<20, nil, log)
	responses.Publish(len(editions))
	c.Server, err = New(Config{
		Executor: c.executor, Cache: responses, PublicURL: publicURL, ServiceName: "palmares", ServiceURL: publicURL, Credit: credit,
		Schema: "type Query", Guides: []Guide{{Name: "paging", Title: "Paging", Summary: "Pages.", Markdown: "# Paging"}}, MaxBody: 100_000, Log: log,
		Count: func(w http.ResponseWriter, _ *http.Request) error {
			w.Header().Set("X-RateLimit-Tier", "free")
			if c.counted.Add(1) > c.quota {
				return problem.New(problem.QuotaSpent, "The daily quota is used up.")
			}
			return nil
		},
	})
	testkit.Check(t, err)
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

// call calls a tool over HTTP.
func (c *catalog) tool(t testing.TB, name, arguments string, headers ...string) called {
	t.Helper()
	w := c.post(fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":%q,"arguments":%s}}`, name, arguments), headers...)
	var response struct{ Result *called }
	if err := json.Unmarshal(w.Body.Bytes(), &response); err != nil || response.Result == nil || w.Code != http.StatusOK {
		t.Fatalf("%s %s: got %d %s, want a result", name, arguments, w.Code, w.Body)
	}
	return *response.Result
}

// examples calls every tool.
var examples = map[string][]string{
	"search_tools":    {`{}`, `{"search":"ecrit","category":["redaction","code"],"pricing":["payant"],"icp":"mixte","score_min":5,"monthly_price_max":"50","sort":"price_asc","limit":2,"page":1}`},
	"get_tool":        {`{"slug":"plume"}`, `{"slug":"vigie-3"}`},
	"compare_tools":   {`{"a":"plume","b":"ecritoire-cie"}`, `{"a":"ecritoire-cie","b":"plume"}`, `{"a":"plume","b":"enclume-8"}`},
	"list_categories": {`{}`, `{"as_of":"2026-05-31"}`},
	"price_changes":   {`{}`, `{"since":"2020-01-01","category":"redaction","slug":"plume","limit":1}`},
	"whats_new":       {`{}`, `{"since_release":7,"types":["tool_created","tool_updated"],"limit":3}`, `{"since":"2000-01-01","category":"code"}`},
	"retired_tools":   {`{}`, `{"reason":"mort","search":"a","limit":3}`},
	"catalog_stats":   {`{}`, `{"as_of":2}`},
	"graphql_schema":  {`{"search":"price"}`},
	"graphql_query":   {`{"query":"query ($n: Int!) {tools(limit: $n) {items {slug}}}","variables":{"n":2}}`},
}

func TestEveryTool(t *testing.T) {
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
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
		testkit.Check(t, json.Unmarshal(c.post(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`).Body.Bytes(), &list))
		if len(list.Result.Tools) != len(examples) {
			t.Errorf("got %d tools, want %d", len(list.Result.Tools), len(examples))
		}
		for _, tool := range list.Result.Tools {
			if a := tool.Annotations; tool.Title == "" || tool.Description == "" || a.ReadOnlyHint == nil || !*a.ReadOnlyHint || a.OpenWorldHint == nil || *a.OpenWorldHint {
				t.Errorf("%s: got %+v, want a title, a description, readOnlyHint true and openWorldHint false", tool.Name, tool)
			}
			if len(examples[tool.Name]) == 0 {
				t.Errorf("%s: got no example, want one", tool.Name)
			}
			if (tool.OutputSchema == nil) != (tool.Name == "graphql_query") {
				t.Errorf("%s: got the output schema %v", tool.Name, tool.OutputSchema)
			}
			for _, arguments := range examples[tool.Name] {
				validate(t, tool.Name+" input", tool.InputSchema, arguments, tool.Name == "search_tools" || strings.Contains(arguments, `"as_of":2`))
				for _, headers := range [][]string{nil, {"Authorization", "Bearer x"}} {
					got := c.tool(t, tool.Name, arguments, headers...)
					if got.IsError || !strings.Contains(got.text(), credit+"\n"+publicURL) {
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
// models write values that schemas do not allow, and tools accept them.
func validate(t *testing.T, name string, schema any, text string, lenient bool) {
	t.Helper()
	compiler := jsonschema.NewCompiler()
	testkit.Check(t, compiler.AddResource("schema.json", schema))
	compiled, err := compiler.Compile("schema.json")
	testkit.Check(t, err)
	value, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	testkit.Check(t, err)
	if err := compiled.Validate(value); err != nil && !lenient {
		t.Errorf("%s: got %s, which its schema does not allow: %v", name, text, err)
	}
}

// The list of tools is in the context of every conversation, so changes of its
// size must be seen.
func TestToolList(t *testing.T) {
	c := onSQLite(t)
	var got bytes.Buffer
	testkit.Check(t, json.Indent(&got, c.post(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`).Body.Bytes(), "", " "))
	if *update {
		testkit.Check(t, os.WriteFile("testdata/tools.json", got.Bytes(), 0o644))
	}
	want, err := os.ReadFile("testdata/tools.json")
	testkit.Check(t, err)
	if got.String() != string(want) {
		t.Errorf("got another list of tools than testdata/tools.json; run go test -update ./internal/transport/mcp")
	}
}

func TestErrorsHelp(t *testing.T) {
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		c := newCatalog(t, s)
		for _, e := range []struct{ name, arguments, want string }{
			{"get_tool", `{"slug":"plmue"}`, `slug: no tool has the slug "plmue". Did you mean plume?`},
			{"get_tool", `{"slug":"zzzzzzzzzz"}`, `Call search_tools to find it.`},
			{"get_tool", `{}`, `slug is required.`},
			{"get_tool", `{"slug":null}`, `slug is required.`},
			{"get_tool", `{"slug":{"a":1}}`, `slug must be a string (got "{\"a\":1}").`},
			{"get_tool", `{"slug":"a\u0000b"}`, `slug contains a NUL character or invalid UTF-8.`},
			{"get_tool", `{"slug":"plume","as_of":"99"}`, `Release 99 is not available. Available releases: 1 (`},
			{"get_tool", `{"slug":"plume","as_of":"soon"}`, `as_of must be a release number (1 or higher) or a day in the form YYYY-MM-DD (got "soon").`},
			{"compare_tools", `{"a":"plume","b":"vigie-3"}`, `b: the tool "vigie-3" is retired. Call get_tool for the reason.`},
			{"search_tools", `{"category":"cod"}`, `category: there is no category "cod". Did you mean code? The categories are: agents, `},
			{"search_tools", `{"category":["code","x"]}`, `category: there is no category "x". The categories are: agents, `},
			{"search_tools", `{"limit":1000}`, `limit must be an integer from 1 to 200 (got "1000").`},
			{"search_tools", `{"limit":[1]}`, `limit must be a number (got "[1]").`},
			{"search_tools", `{"score_min":11}`, `score_min must be a number from 0 to 10 (got 11).`},
			{"search_tools", `{"sort":"best"}`, `sort must be one of score_desc, `},
			{"search_tools", `{"pricing":["free"]}`, `pricing must be one of gratuit, freemium, payant (got "free").`},
			{"search_tools", `{"serch":"x"}`, `search_tools has no argument "serch". Did you mean search? Its arguments are: search, category, `},
			{"whats_new", `{"since":"yesterday"}`, `since must be an existing day, YYYY-MM-DD (got "yesterday").`},
			{"whats_new", `{"since_release":-1}`, `since_release must be an integer from 0 to 999999999 (got "-1").`},
			{"price_changes", `{"after":"x"}`, `after must be an event ID, such as evt_42.`},
			{"graphql_schema", `{}`, `search is required`},
			{"graphql_schema", `{"search":"Tol"}`, `Did you mean Tool`},
			{"graphql_query", `{}`, `query is required`},
			{"graphql_query", `{"query":"{tols {slug}}"}`, `Did you mean "tools"`},
			{"graphql_query", `{"query":"{feed {release}}","variables":[]}`, `variables must be a JSON object (got "[]").`},
			{"graphql_query", `{"query":"{tool(slug: \"plume\") {embeddings {hash}}}"}`, `Embeddings require an API key.`},
			{"graphql_query", `{"query":"{tools(limit: 200) {items {comparisons(limit: 200) {title toolA {comparisons(limit: 200) {title}}}}}}"}`, `more than the limit of 20000`},
			{"graphql_query", `{"query":"subscription {catalogPublished {release}}"}`, `stream`},
		} {
			if got := c.tool(t, e.name, e.arguments); !got.IsError || !strings.Contains(got.text(), e.want) {
				t.Errorf("%s %s: got %q, want an error with %q", e.name, e.arguments, got.text(), e.want)
			}
		}
	})
}

// The result of a tool is what REST returns for the same request.
func TestSameAsREST(t *testing.T) {
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		c := newCatalog(t, s)
		api, err := rest.NewHandler(rest.Config{PublicURL: publicURL}, c.executor, cache.New(1<<20, nil, slog.New(slog.DiscardHandler)))
		testkit.Check(t, err)
		for _, e := range []struct{ name, arguments, path string }{
			{"search_tools", `{}`, "/api/v1/tools?limit=10"},
			{"search_tools", `{"search":"ecrit","sort":"score_desc","limit":3}`, "/api/v1/tools?search=ecrit&sort=score_desc&limit=3"},
			{"search_tools", `{"category":"code","score_min":7,"sort":"name_asc","page":2,"limit":2,"as_of":"3"}`, "/api/v1/tools?category=code&score_min=7&sort=name_asc&page=2&limit=2&as_of=3"},
			{"list_categories", `{}`, "/api/v1/categories"},
			{"retired_tools", `{"reason":"mort"}`, "/api/v1/cimetiere?reason=mort&limit=10"},
			{"catalog_stats", `{"as_of":"2026-05-31"}`, "/api/v1/stats?as_of=2026-05-31"},
		} {
			w := httptest.NewRecorder()
			api.ServeHTTP(w, httptest.NewRequest(http.MethodGet, e.path, nil))
			var got, want any
			testkit.Check(t, json.Unmarshal(c.tool(t, e.name, e.arguments).StructuredContent, &got))
			testkit.Check(t, json.Unmarshal(w.Body.Bytes(), &want))
			if !contains(want, got) {
				t.Errorf("%s %s: got %v, want the same values as %s: %v", e.name, e.arguments, got, e.path, want)
			}
		}
	})
}

// contains reports whether all values of one result are in the other. Tools
// leave out some fields, and have meta where REST has none.
func contains(whole, part any) bool {
	switch part := part.(type) {
	case map[string]any:
		whole, ok := whole.(map[string]any)
		for name, value := range part {
			if other, has := whole[name]; name != "meta" || has {
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

func TestReviewsNeedAKey(t *testing.T) {
	c := onSQLite(t)
	for range 2 { // the second time from the cache
		if got := c.tool(t, "get_tool", `{"slug":"plume"}`); strings.Contains(string(got.StructuredContent), `"review"`) {
			t.Error("without a key: got the review, want none")
		}
		if got := c.tool(t, "get_tool", `{"slug":"plume"}`, "Authorization", "Bearer x"); !strings.Contains(string(got.StructuredContent), `"review":{"chunks":[{"text":"`) {
			t.Errorf("with a key: got %s, want the review", got.StructuredContent)
		}
	}
}

func TestLargeResultsSayWhatToLower(t *testing.T) {
	c := onSQLite(t)
	if got := c.tool(t, "search_tools", `{"limit":48}`).text(); !strings.HasPrefix(got, "This result has ") || !strings.Contains(got[:100], "lower limit") {
		t.Errorf("got %.100s, want how to make it smaller", got)
	}
	if got := c.tool(t, "search_tools", `{}`); strings.HasPrefix(got.text(), "This result") || strings.Count(got.text(), "https://palmares.example/outils/") != 10 {
		t.Errorf("got %s, want 10 tools", got.text())
	}
}

// A repeated call has the same reply with its own id, until the next release.
func TestRepeatedCalls(t *testing.T) {
	c := onSQLite(t)
	call := func(id string) string {
		return c.post(`{"jsonrpc":"2.0","id":` + id + `,"method":"tools/call","params":{"name":"catalog_stats","arguments":{}}}`).Body.String()
	}
	first := call("1")
	for i, id := range []string{"2", `"a-1"`, "0", `"é\n"`, "1.5", "-3"} {
		want := strings.Replace(first, `"id":1,`, `"id":`+id+`,`, 1)
		if got := call(id); got != want && id != "1.5" {
			t.Errorf("id %s: got %s, want %s", id, got, want)
		}
		if got := c.counted.Load(); got != int64(i+2) {
			t.Errorf("got %d counted calls, want %d", got, i+2)
		}
	}
	if key := readMessage([]byte(`{"id":5,"method":"tools/call"}`)); string(key.id) != "5" || key.start != 6 || key.end != 7 {
		t.Errorf("got the id %s from %d to %d, want 5 from 6 to 7", key.id, key.start, key.end)
	}
	editions, err := demo.Editions()
	testkit.Check(t, err)
	last := strings.Replace(string(editions[len(editions)-1].Feed), `"updated_at":"`+editions[len(editions)-1].Date, `"updated_at":"2027-01-01`, 1)
	_, err = feed.Import(t.Context(), c.store, strings.NewReader(last), feed.Options{})
	testkit.Check(t, err)
	c.cfg.Cache.Publish(len(editions) + 1)
	if got := call("1"); !strings.Contains(got, "Release 9 of 2027-01-01") {
		t.Errorf("got %s, want the new release", got)
	}
}

func TestQuota(t *testing.T) {
	c := onSQLite(t)
	c.quota = 3
	call := `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"catalog_stats","arguments":{}}}`
	c.post(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
	c.post(`{"jsonrpc":"2.0","id":1,"method":"ping"}`)
	if got := c.counted.Load(); got != 0 {
		t.Errorf("got %d counted requests, want none for lists and pings", got)
	}
	batch := c.post("["+fmt.Sprintf(call, 1)+","+fmt.Sprintf(call, 2)+`,{"jsonrpc":"2.0","id":3,"method":"resources/read","params":{"uri":"palmares://schema"}}]`, "Mcp-Protocol-Version", "2025-03-26")
	if got := c.counted.Load(); got != 3 || strings.Count(batch.Body.String(), `"result"`) != 3 {
		t.Errorf("got %d counted calls and %s, want 3 and results", got, batch.Body)
	}
	if batch.Header().Get("X-RateLimit-Tier") != "free" {
		t.Error("got no quota headers, want some")
	}
	for range 2 {
		w := c.post(fmt.Sprintf(call, 4))
		if got := w.Body.String(); w.Code != http.StatusOK || !strings.Contains(got, `"isError":true`) || !strings.Contains(got, "quota is used up") {
			t.Errorf("over the quota: got %s, want an error", got)
		}
	}
	if got := c.post(`{"jsonrpc":"2.0","id":3,"method":"resources/read","params":{"uri":"palmares://schema"}}`).Body.String(); !strings.Contains(got, `"code":-32000`) {
		t.Errorf("over the quota: got %s, want an error", got)
	}
}

// Bad requests get an error of the protocol.
func TestBadRequests(t *testing.T) {
	c := onSQLite(t)
	call := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"catalog_stats","arguments":{}}}`
	for name, e := range map[string]struct {
		body    string
		headers []string
		status  int
		code    int
	}{
		"not JSON":                    {`{`, nil, 400, -32700},
		"empty":                       {``, nil, 400, -32700},
		"no message":                  {`{"a":1}`, nil, 400, -32600},
		"empty batch":                 {`[]`, nil, 400, -32600},
		"a batch that is too long":    {"[" + strings.Repeat(`{"jsonrpc":"2.0","id":1,"method":"tools/list"},`, 20) + call + "]", []string{"Mcp-Protocol-Version", "2025-03-26"}, 400, -32600},
		"a batch of a later revision": {"[" + call + "]", []string{"Mcp-Protocol-Version", "2025-06-18"}, 400, -32600},
		"unknown method":              {`{"jsonrpc":"2.0","id":1,"method":"tools/run","params":{}}`, nil, 400, -32601},
		"unknown revision":            {call, []string{"Mcp-Protocol-Version", "2020-01-01"}, 400, -32600},
		"revision of the future": {`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2099-01-01","io.modelcontextprotocol/clientCapabilities":{}}}}`,
			[]string{"Mcp-Protocol-Version", "2099-01-01", "Mcp-Method", "tools/list"}, 400, -32022},
		"missing headers of a revision": {call, []string{"Mcp-Protocol-Version", "2026-07-28"}, 400, -32602},
		"10 MB of arguments":            {`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"get_tool","arguments":{"slug":"` + strings.Repeat("a", 10_000_000) + `"}}}`, nil, 413, -32600},
		"wrong type of params":          {`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":5}`, nil, 200, -32602},
		"wrong type of a name":          {`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":5}}`, nil, 200, -32602},
		"unknown tool":                  {`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x"}}`, nil, 200, -32602},
		"unknown resource":              {`{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"palmares://tools/plmue"}}`, nil, 200, -32602},
		"unknown guide":                 {`{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"palmares://guides/x"}}`, nil, 200, -32602},
		"prompt without an argument":    {`{"jsonrpc":"2.0","id":1,"method":"prompts/get","params":{"name":"choose_tool"}}`, nil, 200, -32602},
		"another content type":          {call, []string{"Content-Type", "text/plain"}, 415, -32600},
		"no Accept":                     {call, []string{"Accept", ""}, 400, -32600},
	} {
		w := c.post(e.body, e.headers...)
		var got struct {
			Error struct {
				Code    int
				Message string
			}
		}
		if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || w.Code != e.status || got.Error.Code != e.code || got.Error.Message == "" {
			t.Errorf("%s: got %d %.300s, want %d and the code %d", name, w.Code, w.Body, e.status, e.code)
		}
	}
	if w := c.post(call, "Mcp-Session-Id", "never-issued"); w.Code != http.StatusOK {
		t.Errorf("with a session id: got %d, want it ignored", w.Code)
	}
	r := httptest.NewRequest(http.MethodGet, Path, nil)
	w := httptest.NewRecorder()
	c.ServeHTTP(w, r)
	if w.Code != http.StatusMethodNotAllowed || w.Header().Get("Allow") != "POST" {
		t.Errorf("GET: got %d, want 405", w.Code)
	}
}

func TestOrigins(t *testing.T) {
	c := onSQLite(t)
	for origin, want := range map[string]int{
		"": 200, publicURL: 200, "HTTPS://palmares.example": 200, "https://evil.example": 403, "null": 403, "http://localhost": 403, "https://palmares.example.evil.example": 403,
	} {
		if w := c.post(`{"jsonrpc":"2.0","id":1,"method":"ping"}`, "Origin", origin); w.Code != want {
			t.Errorf("%s: got %d, want %d", origin, w.Code, want)
		}
	}
	local := newOrigins("http://127.0.0.1:8080", "https://palmares.example")
	for origin, want := range map[string]bool{"http://localhost:6274": true, "http://[::1]:1": true, "https://palmares.example": true, "http://192.168.0.1": false} {
		if got := local.allow([]string{origin}); got != want {
			t.Errorf("%s on a local server: got %t, want %t", origin, got, want)
		}
	}
}

// A panic in a call does not end the process.
func TestPanics(t *testing.T) {
	c := onSQLite(t)
	c.addTool("panic", "Panic", "Panics.", map[string]any{"type": "object"}, nil, func(context.Context, json.RawMessage) (*result, error) { panic("mistake") })
	w := c.post(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"panic"}}`)
	if got := w.Body.String(); !strings.Contains(got, `"code":-32603`) || strings.Contains(got, "mistake") {
		t.Errorf("got %s, want an internal error without its cause", got)
	}
}

// A mistake in the table or an operation is an error at start-up.
func TestMistakes(t *testing.T) {
	operation := func(text string) map[string]*graph.Operation {
		o, err := graph.NewOperation(text)
		testkit.Check(t, err)
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
		{row{name: "x", lower: "limit"}, operation(described + `query x {stats {toolsTotal}}`), "no argument limit to lower"},
		{row{name: "x"}, operation(described + `query x($f: ToolFilter) {tools(filter: $f) {meta {total}}}`), "$f has the type ToolFilter"},
		{row{name: "x"}, operation(described + `query x($b: Boolean!) {stats {toolsTotal @include(if: $b)}}`), "$b has no description"},
	} {
		if _, err := buildTools([]row{e.row}, e.operations); err == nil || !strings.Contains(err.Error(), e.want) {
			t.Errorf("got %v, want an error with %q", err, e.want)
		}
	}
}

// The official Go client goes through a whole conversation, with the newest
// revision and an older one, and over standard streams.
func TestGoClient(t *testing.T) {
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		c := newCatalog(t, s)
		server := httptest.NewServer(c)
		defer server.Close()
		c.origins.local = true
		transports := map[string]func() sdk.Transport{
			"HTTP":           func() sdk.Transport { return &sdk.StreamableClientTransport{Endpoint: server.URL} },
			"standard input": func() sdk.Transport { return overStreams(t, c.Server) },
		}
		for name, transport := range transports {
			client := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil)
			session, err := client.Connect(t.Context(), transport(), nil)
			testkit.Check(t, err)
			tools, err := session.ListTools(t.Context(), nil)
			testkit.Check(t, err)
			found, err := session.CallTool(t.Context(), &sdk.CallToolParams{Name: "search_tools", Arguments: map[string]any{"search": "plume", "limit": 1}})
			testkit.Check(t, err)
			if text := found.Content[0].(*sdk.TextContent).Text; len(tools.Tools) != len(examples) || found.IsError || !strings.Contains(text, "plume | Plume") {
				t.Errorf("%s: got %d tools and %s, want Plume", name, len(tools.Tools), text)
			}
			resources, err := session.ListResources(t.Context(), nil)
			testkit.Check(t, err)
			if i := slices.IndexFunc(resources.Resources, func(r *sdk.Resource) bool { return r.URI == "palmares://guides/paging" }); i < 0 || len(resources.Resources) != 2 {
				t.Errorf("%s: got %d resources, want the schema and the guide", name, len(resources.Resources))
			}
			for uri, want := range map[string]string{"palmares://tools/plume": `"slug":"plume"`, "palmares://guides/paging": "# Paging", "palmares://schema": "type Query"} {
				read, err := session.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: uri})
				testkit.Check(t, err)
				if !strings.Contains(read.Contents[0].Text, want) {
					t.Errorf("%s: %s: got %s, want %s", name, uri, read.Contents[0].Text, want)
				}
			}
			prompt, err := session.GetPrompt(t.Context(), &sdk.GetPromptParams{Name: "what_changed", Arguments: map[string]string{"since": "release 7"}})
			testkit.Check(t, err)
			if text := prompt.Messages[0].Content.(*sdk.TextContent).Text; !strings.Contains(text, "since release 7?") {
				t.Errorf("%s: got %s, want a prompt", name, text)
			}
			testkit.Check(t, session.Close())
		}
	})
}

// overStreams runs a server on pipes until the client closes them.
func overStreams(t *testing.T, s *Server) sdk.Transport {
	client, server := sdk.NewInMemoryTransports()
	go func() {
		_ = s.server.Run(auth.WithCaller(context.WithoutCancel(t.Context()), auth.Caller{Plan: auth.Pro}), server)
	}()
	return client
}

func FuzzHandler(f *testing.F) {
	c := onSQLite(f)
	for name, all := range examples {
		for _, arguments := range all {
			f.Add(fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":%q,"arguments":%s}}`, name, arguments), "2025-06-18")
		}
	}
	f.Add(`[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","method":"notifications/initialized"}]`, "2025-03-26")
	f.Add(`{"jsonrpc":"2.0","id":"a","method":"resources/read","params":{"uri":"palmares://tools/plume","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}`, "2026-07-28")
	f.Add(`{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{}}`, "2025-06-18")
	f.Fuzz(func(t *testing.T, body, revision string) {
		for range 2 { // the second time as a repeated call
			w := c.post(body, "Mcp-Protocol-Version", revision)
			isJSON := w.Body.Len() == 0 || json.Valid(w.Body.Bytes()) || w.Header().Get("Content-Type") == "text/event-stream"
			if w.Code >= 500 || !isJSON {
				t.Errorf("got %d %s, want valid JSON and no server error", w.Code, w.Body)
			}
		}
	})
}
