package mcp

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"palmares/internal/catalog/feed"
	"palmares/internal/catalog/feed/demo"
	"palmares/internal/catalog/publish"
	"palmares/internal/core/store"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
)

// A repeated call gets the same reply with its own ID until the next release.
func TestRepeatedCalls(t *testing.T) {
	c := onSQLite(t)
	call := func(id string) string {
		return c.post(`{"jsonrpc":"2.0","id":` + id + `,"method":"tools/call","params":{"name":"catalog_stats","arguments":{}}}`).Body.String()
	}
	first := call("1")
	for i, id := range []string{"2", `"a-1"`, "0", `"é\n"`, "1.5", "-3"} {
		want := strings.Replace(first, `"id":1,`, `"id":`+id+`,`, 1)
		got := call(id)
		check.True(t, got == want || id == "1.5", "id %s: got %s, want %s", id, got, want)
		check.Equal(t, c.counted.Load(), int64(i+2), "counted calls")
	}
	editions := check.Try(demo.Editions()).OK(t)
	last := strings.Replace(string(editions[len(editions)-1].Feed), `"updated_at":"`+editions[len(editions)-1].Date, `"updated_at":"2027-01-01`, 1)
	check.Try(publish.Import(t.Context(), c.store, feed.NewLines(strings.NewReader(last)), publish.Options{})).OK(t)
	c.cfg.Cache.Publish(len(editions) + 1)
	check.Contains(t, call("1"), "Release 9 of 2027-01-01", "want the new release")
}

func TestQuota(t *testing.T) {
	c := onSQLite(t)
	c.quota = 3
	call := `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"catalog_stats","arguments":{}}}`
	c.post(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
	c.post(`{"jsonrpc":"2.0","id":1,"method":"ping"}`)
	check.Equal(t, c.counted.Load(), 0, "counted requests")
	read := `{"jsonrpc":"2.0","id":3,"method":"resources/read","params":{"uri":"palmares://schema"}}`
	for i, body := range []string{fmt.Sprintf(call, 1), fmt.Sprintf(call, 2), read} {
		w := c.post(body)
		if got := c.counted.Load(); got != int64(i+1) || !strings.Contains(w.Body.String(), `"result"`) || w.Header().Get("X-RateLimit-Tier") != "free" {
			t.Errorf("got %d counted calls, %v and %s, want %d, quota headers and a result", got, w.Header(), w.Body, i+1)
		}
	}
	for range 2 {
		w := c.post(fmt.Sprintf(call, 4))
		got := w.Body.String()
		check.Equal(t, w.Code, http.StatusOK, "over the quota")
		check.Contains(t, got, `"isError":true`, "over the quota")
		check.Contains(t, got, "quota is used up", "over the quota")
	}
	check.Contains(t, c.post(read).Body.String(), `"code":-32000`, "over the quota: want an error")
}

// Messages that do not count against the quota have a limit of their own.
func TestFreeMessagesAreLimited(t *testing.T) {
	c := onSQLite(t)
	c.limit = 4
	list, call := `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"catalog_stats","arguments":{}}}`
	for i, step := range []struct {
		body string
		want int
	}{
		{list, 200}, {"[" + list + "," + call + "]", 400}, {call, 200}, {`{"jsonrpc":"2.0","method":"tools/call"}`, 400},
		{`{"jsonrpc":"2.0","id":1,"method":"ping"}`, 200}, {list, 429}, {"[" + call + "]", 429}, {call, 200},
	} {
		w := c.post(step.body, "Mcp-Protocol-Version", "2025-03-26")
		if w.Code != step.want || w.Code == 429 && (w.Header().Get("Retry-After") == "" || !strings.Contains(w.Body.String(), `"code":-32000`)) {
			t.Errorf("message %d: got %d %v %s, want %d", i, w.Code, w.Header(), w.Body, step.want)
		}
	}
}

// Requests over the limit are refused before anything in them is decoded, and objects with
// thousands of members are never decoded.
func TestRefusedRequestsAreNotDecoded(t *testing.T) {
	c := onSQLite(t)
	var members strings.Builder
	for i := range 9_500 {
		fmt.Fprintf(&members, `,"k%d":0`, i)
	}
	for _, head := range []string{`{"jsonrpc":"2.0","id":1,"method":"tools/list"`, `{"jsonrpc":"2.0","id":1,"method":"tools/call"`} {
		body := head + members.String() + "}"
		for limit, want := range map[int]int{1_000_000: 400, 0: 429} {
			c.limit, c.free = limit, 0
			var w *httptest.ResponseRecorder
			allocations := testing.AllocsPerRun(1, func() { w = c.post(body) })
			check.True(t, w.Code == want && allocations <= 500, "%.50s: got %d after %v allocations, want %d after at most 500", body, w.Code, allocations, want)
		}
	}
}

// Bad requests get a JSON-RPC error.
func TestBadRequests(t *testing.T) {
	c := onSQLite(t)
	call := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"catalog_stats","arguments":{}}}`
	for name, e := range map[string]struct {
		body    string
		headers []string
		status  int
		code    int
	}{
		"not JSON":         {`{`, nil, 400, -32700},
		"empty":            {``, nil, 400, -32700},
		"no message":       {`{"a":1}`, nil, 400, -32600},
		"a batch":          {"[" + call + "]", []string{"Mcp-Protocol-Version", "2025-03-26"}, 400, -32600},
		"a name twice":     {strings.Replace(call, `"id"`, `"method":"ping","id"`, 1), nil, 400, -32700},
		"unknown method":   {`{"jsonrpc":"2.0","id":1,"method":"tools/run","params":{}}`, nil, 400, -32601},
		"unknown revision": {call, []string{"Mcp-Protocol-Version", "2020-01-01"}, 400, -32600},
		"revision of the future": {`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2099-01-01","io.modelcontextprotocol/clientCapabilities":{}}}}`,
			[]string{"Mcp-Protocol-Version", "2099-01-01", "Mcp-Method", "tools/list"}, 400, -32022},
		"missing headers of a revision": {call, []string{"Mcp-Protocol-Version", "2026-07-28"}, 400, -32602},
		"10 MB of arguments":            {`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"get_tool","arguments":{"slug":"` + strings.Repeat("a", 10_000_000) + `"}}}`, nil, 413, -32600},
		"wrong type of params":          {`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":5}`, nil, 200, -32602},
		"unknown guide":                 {`{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"palmares://guides/x"}}`, nil, 200, -32602},
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
		check.OK(t, json.Unmarshal(w.Body.Bytes(), &got), name)
		check.Equal(t, w.Code, e.status, "%s: %.300s", name, w.Body)
		check.Equal(t, got.Error.Code, e.code, "%s: %.300s", name, w.Body)
		check.True(t, got.Error.Message != "", "%s: got %d %.300s, want %d and the code %d", name, w.Code, w.Body, e.status, e.code)
	}
	check.Equal(t, c.post(call, "Mcp-Session-Id", "never-issued").Code, http.StatusOK, "with a session ID: want it ignored")
	r := httptest.NewRequest(http.MethodGet, Path, nil)
	w := httptest.NewRecorder()
	c.ServeHTTP(w, r)
	check.Equal(t, w.Code, http.StatusMethodNotAllowed, "GET")
	check.Equal(t, w.Header().Get("Allow"), "POST", "GET")
}

func TestOrigins(t *testing.T) {
	c := onSQLite(t)
	for origin, want := range map[string]int{
		"": 200, publicURL: 200, "HTTPS://palmares.example": 200, "https://evil.example": 403, "null": 403, "http://localhost": 403, "https://palmares.example.evil.example": 403,
	} {
		check.Equal(t, c.post(`{"jsonrpc":"2.0","id":1,"method":"ping"}`, "Origin", origin).Code, want, origin)
	}
	local := newOrigins("http://127.0.0.1:8080", "https://palmares.example")
	for origin, want := range map[string]bool{"http://localhost:6274": true, "http://[::1]:1": true, "https://palmares.example": true, "http://192.168.0.1": false} {
		check.Equal(t, local.allow([]string{origin}), want, "%s on a local server", origin)
	}
}

// FuzzHandler checks that no MCP message causes a server error, and that every response is
// JSON or a stream.
func FuzzHandler(f *testing.F) {
	c := onSQLite(f)
	for name, all := range examples {
		for _, arguments := range all {
			f.Add(fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":%q,"arguments":%s}}`, name, arguments), "2025-06-18")
		}
	}
	f.Add(`[{"jsonrpc":"2.0","id":1,"method":"ping"}]`, "2025-03-26")
	f.Add(`{"jsonrpc":"2.0","id":"a","method":"resources/read","params":{"uri":"palmares://tools/plume","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}`, "2026-07-28")
	f.Add(`{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{}}`, "2025-06-18")
	f.Fuzz(func(t *testing.T, body, revision string) {
		for range 2 { // the second time as a repeated call
			w := c.post(body, "Mcp-Protocol-Version", revision)
			isJSON := w.Body.Len() == 0 || json.Valid(w.Body.Bytes()) || w.Header().Get("Content-Type") == "text/event-stream"
			check.True(t, w.Code < 500, "got %d %s, want valid JSON and no server error", w.Code, w.Body)
			check.Equal(t, isJSON, true, "%d %s", w.Code, w.Body)
		}
	})
}

// TestChallenges checks that clients are asked to sign in exactly when an account would
// help, and that errors stay as they are if nobody can.
func TestChallenges(t *testing.T) {
	const call, read = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"%s","arguments":%s}}`, `{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"palmares://%s"}}`
	for _, test := range []struct {
		name, body string
		quota      int64
		account    bool
		want       int
	}{
		{"catalog", fmt.Sprintf(call, "list_categories", "{}"), 10, false, 200},
		{"reviews in GraphQL", fmt.Sprintf(call, "graphql_query", `{"query":"{tool(slug: \"plume\") {embeddings {hash}}}"}`), 10, false, 401},
		{"review", fmt.Sprintf(read, "reviews/plume"), 10, false, 401},
		{"review with an account", fmt.Sprintf(read, "reviews/plume"), 10, true, 200},
		{"call over the quota", fmt.Sprintf(call, "list_categories", "{}"), 0, false, 401},
		{"resource over the quota", fmt.Sprintf(read, "tools/plume"), 0, false, 401},
		{"call over the quota of an account", fmt.Sprintf(call, "list_categories", "{}"), 0, true, 200},
	} {
		c := onSQLite(t)
		c.quota = test.quota
		var headers []string
		if test.account {
			headers = []string{"Authorization", "Bearer x"}
		}
		if got := c.post(test.body, headers...); got.Code != 200 || got.Header().Get("WWW-Authenticate") != "" {
			t.Errorf("%s without OAuth: got %d %v, want 200", test.name, got.Code, got.Header())
		}
		c.cfg.Challenge = func(*http.Request) string { return "Bearer x" }
		c.counted.Store(0)
		got := c.post(test.body, headers...)
		check.Equal(t, got.Code, test.want, "%s: %v", test.name, got.Header())
		check.Equal(t, got.Header().Get("WWW-Authenticate") == "Bearer x", test.want == 401, "%s: %v", test.name, got.Header())
	}
}

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
				check.True(t, h.Title != "" && strings.HasPrefix(h.URL, "https://"), "%s: got %+v, want a title and a URL", e.query, h)
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
		got := c.tool(t, "fetch", `{"id":"`+id+`"}`)
		check.Equal(t, got.IsError, true, id)
		check.Contains(t, got.text(), want, id)
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
	got := read("plume", "Authorization", "Bearer x")
	check.Contains(t, got, `# Plume\n\n## verdict\n\n`, "a key")
	check.Contains(t, got, credit, "a key")
	check.Contains(t, read("trame-72", "Authorization", "Bearer x"), `There is no review of \"trame-72\"`, "a tool without a review: want an error")
}

func TestCompareThreeTools(t *testing.T) {
	c := onSQLite(t)
	var three, two map[string]json.RawMessage
	check.OK(t, json.Unmarshal(c.tool(t, "compare_tools", `{"a":"plume","b":"enclume-8","c":"ecritoire-cie"}`).StructuredContent, &three))
	check.OK(t, json.Unmarshal(c.tool(t, "compare_tools", `{"a":"plume","b":"ecritoire-cie"}`).StructuredContent, &two))
	check.Contains(t, string(three["c"]), `"slug":"ecritoire-cie"`)
	check.Contains(t, string(three["published_ac"]), "plume-vs-ecritoire-cie")
	check.Equal(t, string(three["published_bc"]), `{"items":[]}`)
	check.Must(t, len(two), 3, "want only a, b and published")
	check.Contains(t, string(two["published"]), "plume-vs-ecritoire-cie", "want only a, b and published")
	got := c.tool(t, "compare_tools", `{"a":"plume","b":"enclume-8","c":"ecritoire"}`)
	check.Equal(t, got.IsError, true)
	check.Contains(t, got.text(), `c: no tool has the slug "ecritoire". Did you mean ecritoire-cie`)
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
		got := c.tool(t, e.name, e.arguments)
		check.Equal(t, got.IsError, false, "%s %s", e.name, e.arguments)
		check.Contains(t, got.text(), e.want, "%s %s", e.name, e.arguments)
	}
}
