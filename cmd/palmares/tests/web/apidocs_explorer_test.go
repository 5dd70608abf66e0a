package web_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
	"palmares/internal/dev/testkit/blackbox"
	"palmares/internal/dev/testkit/browser"
	"palmares/internal/dev/testkit/wait"
	"palmares/internal/web/apidocs"
)

func TestExplorerBuildsQueries(t *testing.T) {
	t.Parallel()
	s := startAPIDocs(t)
	p := browser.Start(t).Open(t, browser.Look{}, "http://"+s.Address+"/explorer")
	openEditor(p)
	p.WaitForText(inQuery, "query BestTools")
	if text := p.Text(".result-window"); strings.Contains(text, "data") {
		t.Errorf("got a result before any click, want none: %s", text)
	}
	p.Click("button[aria-label='Show Build a query']")
	p.Click(".graphiql-tab-add")
	field := func(path ...string) {
		t.Helper()
		selector := ""
		for _, name := range path {
			selector += ".graphiql-explorer-" + name + " "
		}
		p.Click(selector + "> [data-field-name=" + path[len(path)-1] + "]")
	}
	field("stats")
	field("stats", "toolsTotal")
	field("categories")
	field("categories", "label")
	p.WaitForText(inQuery, "toolsTotal")
	p.WaitForText(inQuery, "label")
	runQuery(p)
	p.WaitForText(inResponse, `"toolsTotal": `)
	p.WaitForText(inResponse, `"label": `)
	p.Screenshot("explorer-built")
}

func TestExplorerOpensExamples(t *testing.T) {
	t.Parallel()
	s := startAPIDocs(t)
	p := browser.Start(t).Open(t, browser.Look{}, "http://"+s.Address+"/explorer")
	openEditor(p)
	p.WaitForText(inQuery, "query BestTools")
	p.Fill("#example", "2")
	p.Click("#examples button")
	p.WaitForText(inQuery, "scoreHistogram {")
	p.WaitForText(".graphiql-tab-button", "ScoreHistogram") // until then, the editor would run an operation named BestTools
	runQuery(p)
	p.WaitForText(inResponse, `"scoreHistogram": [`)
	if !p.Exists("#same[hidden]") {
		t.Errorf("got an equivalent REST call, want none: %s", p.Text("#same"))
	}
	p.Screenshot("explorer-example")
}

// All examples of the explorer run without changes.
func TestExamplesRun(t *testing.T) {
	t.Parallel()
	s := blackbox.Serve(t, testkit.SQLite(t), "--demo") // which publishes all editions
	for _, example := range apidocs.Examples {
		query, err := json.Marshal(map[string]string{"query": example.Query})
		check.OK(t, err)
		got := s.Call(t, http.MethodPost, "/graphql", string(query), "Content-Type", "application/json")
		body, err := io.ReadAll(got.Body)
		if err != nil || got.StatusCode != 200 || bytes.Contains(body, []byte(`"errors"`)) || len(body) < 100 {
			t.Errorf("%s: got %d %s %v, want 200", example.Title, got.StatusCode, body, err)
		}
	}
}

// The explorer opens the operation of each REST path, and shows the path.
func TestExplorerOpensPaths(t *testing.T) {
	t.Parallel()
	s := startAPIDocs(t)
	base := "http://" + s.Address
	p := browser.Start(t).Open(t, browser.Look{}, base+explorerOf("/api/v1/tools?category=code"))
	openEditor(p)
	p.WaitForText(inQuery, "query tools(")
	p.WaitForText(inVariables, `"category": [`)
	p.WaitForText("#same-call", "GET /api/v1/tools?category=code")
	p.WaitForText("#same-curl", "curl '"+base+"/api/v1/tools?category=code'")
	if text := p.Text(".result-window"); strings.Contains(text, "data") {
		t.Errorf("got a result before any click, want none: %s", text)
	}
	runQuery(p)
	p.WaitForText(inResponse, `"slug": "enclume-8"`)
	p.Screenshot("explorer-path")

	for _, path := range []string{
		"/api/v1/tools", "/api/v1/tools?page=2&limit=3&category=code&score_min=7.5&obsolescence_max=4&sort=name_asc", "/api/v1/tools/plume", "/api/v1/comparatifs?limit=2",
		"/api/v1/comparatifs/plume-vs-ecritoire-cie", "/api/v1/pricing", "/api/v1/pricing/plume", "/api/v1/cimetiere?reason=mort", "/api/v1/categories", "/api/v1/stats",
		"/api/embeddings/plume",
	} {
		p.Go(base + explorerOf(path))
		p.WaitForText("#same-call", "GET "+path)
	}
	p.WaitForText("#same-curl", `curl -H "Authorization: Bearer $API_KEY" '`+base+"/api/embeddings/plume'")

	p.Go(base + explorerOf("/api/v1/tools?limit=many"))
	p.WaitForText("main .warning", `limit must be an integer from 1 to 200 (got "many")`)
	p.Go(base + "/explorer?query=" + url.QueryEscape("query ToolName($slug: String!) { tool(slug: $slug) { name } }") + "&variables=" + url.QueryEscape(`{"slug":"plume"}`))
	openEditor(p)
	p.WaitForText(inQuery, "query ToolName(")
	p.WaitForText(inVariables, `"slug": "plume"`)
	runQuery(p)
	p.WaitForText(inResponse, `"name": "Plume"`)
}

// The explorer restores its tabs and variables, and starts afresh if the stored
// state is unreadable.
func TestExplorerRestoresTabs(t *testing.T) {
	t.Parallel()
	s := startAPIDocs(t)
	base := "http://" + s.Address
	for _, c := range []struct {
		name   string
		before []string
	}{
		{"one tab", []string{explorerOf("/api/v1/tools?category=code")}},
		{"a later tab", []string{"/explorer", explorerOf("/api/v1/tools?category=code")}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := browser.Start(t).Open(t, browser.Look{}, base+"/docs")
			for i, path := range c.before {
				p.Go(base + path)
				openEditor(p)
				p.WaitForText(inQuery, "query ")
				waitForTabs(t, p, i+1, "query ")
			}
			for range 2 {
				p.Go(base + "/explorer")
				p.WaitForText(inQuery, "query tools(")
				p.WaitForText(inVariables, `"category": [`)
				p.WaitForText("#same-call", "GET /api/v1/tools?category=code")
				runQuery(p)
				p.WaitForText(inResponse, `"slug": "enclume-8"`)
				var tabs int
				if p.Eval("document.querySelectorAll('.graphiql-tab').length", &tabs); tabs != len(c.before) {
					t.Errorf("got %d tabs, want %d", tabs, len(c.before))
				}
				waitForTabs(t, p, len(c.before), "query tools(")
			}
			p.Click(".graphiql-tab-add")
			waitForTabs(t, p, len(c.before)+1, "")
			p.Go(base + "/explorer")
			p.Text(inResponse)
			if text := p.Text(inQuery); strings.TrimSpace(text) != "" {
				t.Errorf("got %q in a new tab, want nothing", text)
			}
			for _, content := range []string{"{oops", "7", `{"activeTabIndex": 3, "tabs": [null]}`, `{"activeTabIndex": 0, "tabs": [{"query": 7, "variables": {}}]}`} {
				p.Go(base + "/docs") // where GraphiQL does not overwrite the stored state
				p.Eval("localStorage.setItem('graphiql:tabState', "+strconv.Quote(content)+")", nil)
				p.Go(base + "/explorer")
				openEditor(p)
				p.WaitForText(inQuery, "query BestTools")
			}
		})
	}
}

// The explorer uses the key of the signed-in account. No editor shows it, and the browser
// does not store it.
func TestExplorerUsesAccountKey(t *testing.T) {
	t.Parallel()
	s := startAPIDocs(t)
	base := "http://" + s.Address
	p := browser.Start(t).Open(t, browser.Look{}, base+"/login")
	p.Fill("#email", "kay@example.com")
	p.Follow("main button")
	link, _ := s.WaitForEmail(t, "kay@example.com", 0)
	p.Go(link)
	p.Follow("main button")
	p.Go(base + explorerOf("/api/embeddings/plume"))
	p.Click("#plain .row button")
	p.WaitForText("#result", `"chunk_count": `) // the plain editor sends the key, too
	openEditor(p)
	p.WaitForText("#same-call", "GET /api/embeddings/plume") // the last element to appear
	p.Text(inResponse)
	p.Click("[data-name=headers]")
	if text := p.Text("main"); strings.Contains(text, "pal_") {
		t.Errorf("got a key on the page, want none: %s", text)
	}
	runQuery(p)
	p.WaitForText(inResponse, `"chunk_count": `)
	waitForTabs(t, p, 1, "query embeddings(")
	// The history lacks a query whose response arrives before the page is rendered.
	wait.Until(t, "the query is in the history", func() bool {
		var history string
		if p.Eval(`localStorage.getItem("graphiql:queries") ?? ""`, &history); strings.Contains(history, "embeddings") {
			return true
		}
		runQuery(p)
		p.WaitForText(inResponse, `"chunk_count": `)
		return false
	})
	var content string
	if p.Eval("JSON.stringify(localStorage)", &content); strings.Contains(content, "pal_") || !strings.Contains(content, "embeddings") {
		t.Errorf("got %s in the storage of the browser, want no key", content)
	}
	// Queries from the history run with the current key.
	p.Go(base + "/explorer")
	p.WaitForText(inQuery, "query embeddings(")
	p.Click("button[aria-label='Show History']")
	p.WaitForText(".graphiql-history", "embeddings")
	p.Click(".graphiql-history-item-label")
	runQuery(p)
	p.WaitForText(inResponse, `"chunk_count": `)
}

// The explorer shows what a query costs before and after it runs, puts it into a
// link, and shows code that sends it.
func TestExplorerTools(t *testing.T) {
	t.Parallel()
	for _, need := range []testkit.Need{testkit.Curl, testkit.Node, testkit.Python} {
		need.Ensure(t)
	}
	s := startAPIDocs(t)
	base := "http://" + s.Address
	const query = "query Names($limit: Int! = 2) {\n  # It's a comment\n  tools(limit: $limit, filter: {search: \"poste d'aiguillage\"}) { items { name } }\n}\n"
	p := browser.Start(t).Open(t, browser.Look{}, base+"/explorer?query="+url.QueryEscape(query)+"&variables="+url.QueryEscape(`{"limit": 3}`))
	p.WaitForText("#cost", "Cost: ")
	p.WaitForText("#cost", " of 20,000")
	before := p.Text("#cost")
	openEditor(p)
	runQuery(p)
	p.WaitForText("#cost", "last run: ")
	if cost := strings.Fields(before)[1]; !strings.HasSuffix(p.Text("#cost"), "last run: "+cost) {
		t.Errorf("got %s, want the same cost after the run, %s", p.Text("#cost"), cost)
	}
	p.Go(base + "/explorer?query=" + url.QueryEscape("{ tools { nothing } }"))
	p.WaitForText("#cost", "Cannot be run: ")

	p.Go(base + "/explorer?query=" + url.QueryEscape(query) + "&variables=" + url.QueryEscape(`{"limit": 3}`))
	openEditor(p)
	p.WaitForText(inQuery, "query Names(")
	p.WaitForText("#cost", "Cost: ")
	p.Click("#share")
	shared, err := url.Parse(p.URL())
	check.OK(t, err)
	if got := shared.Query(); got.Get("query") != query || !strings.Contains(got.Get("variables"), `"limit": 3`) {
		t.Errorf("got link %s, want the query and variables in it", shared)
	}

	want := blackbox.ReadAll(t, s.Call(t, http.MethodPost, "/graphql", `{"query":"{ tools(limit: 3, filter: {search: \"poste d'aiguillage\"}) { items { name } } }"}`).Body)
	var response struct{ Data json.RawMessage }
	check.OK(t, json.Unmarshal([]byte(want), &response))
	dir := t.TempDir()
	for language, command := range map[string]string{"curl": "sh code", "fetch": "cp code code.mjs && node code.mjs", "python": "python3 code", "go": "cp code code.go && go run code.go"} {
		p.Fill("#language", language)
		p.Click("#snippets button")
		p.WaitForText("#snippet", "/graphql")
		var code string
		p.Eval("document.getElementById('snippet').textContent", &code)
		check.OK(t, os.WriteFile(filepath.Join(dir, "code"), []byte(code), 0o600))
		run := exec.CommandContext(t.Context(), "sh", "-c", command)
		run.Dir = dir
		out, err := run.CombinedOutput()
		check.OK(t, err, "%s: %s", language, out)
		check.Contains(t, strings.ReplaceAll(string(out), `": `, `":`), string(response.Data), "%s: %s", language, out)
	}
	p.Axe()
	p.Screenshot("explorer-tools")
}

// The documentation in the explorer opens at the top, also if what was in its
// place is scrolled.
func TestExplorerDocumentationOpensAtTop(t *testing.T) {
	t.Parallel()
	s := startAPIDocs(t)
	p := browser.Start(t).Open(t, browser.Look{}, "http://"+s.Address+"/explorer")
	openEditor(p)
	top := func() (top int) {
		p.Eval("document.querySelector('.graphiql-plugin').scrollTop", &top)
		return top
	}
	scroll := func() {
		t.Helper()
		p.Eval("document.querySelector('.graphiql-plugin').scrollTo(0, 1e6)", nil)
		if top() == 0 {
			t.Fatal("got a pane that does not scroll, want one that does")
		}
	}
	p.Click("button[aria-label='Show Build a query']")
	p.WaitForText(".graphiql-plugin", "tools")
	scroll()
	p.Click("button[aria-label='Show Documentation Explorer']")
	p.WaitForText(".graphiql-doc-explorer-title", "Docs")
	check.Equal(t, top(), 0, "documentation scrolled by")
	scroll()
	p.Eval("[...document.querySelectorAll('.graphiql-plugin a')].find(({textContent}) => textContent === 'Query').click()", nil)
	p.WaitForText(".graphiql-doc-explorer-title", "Query")
	check.Equal(t, top(), 0, "type scrolled by")
}
