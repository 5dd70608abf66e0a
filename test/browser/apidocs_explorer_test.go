package browser_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
	"palmares/internal/dev/testkit/blackbox"
	"palmares/internal/dev/testkit/browser"
	"palmares/internal/dev/testkit/wait"
)

// The explorer opens the operation of a REST path and shows the path, or the query in
// its address.
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
	text := p.Text(".result-window")
	check.True(t, !strings.Contains(text, "data"), "got a result before any click, want none: %s", text)
	runQuery(p)
	p.WaitForText(inResponse, `"slug": "enclume-8"`)
	p.Screenshot("explorer-path")

	const filtered = "/api/v1/tools?page=2&limit=3&category=code&score_min=7.5&obsolescence_max=4&sort=name_asc"
	p.Go(base + explorerOf(filtered))
	p.WaitForText("#same-call", "GET "+filtered)
	p.Go(base + explorerOf("/api/embeddings/plume"))
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
	openEditor(p)
	p.WaitForText("#same-call", "GET /api/embeddings/plume") // the last element to appear
	p.Text(inResponse)
	p.Click("[data-name=headers]")
	text := p.Text("main")
	check.True(t, !strings.Contains(text, "pal_"), "got a key on the page, want none: %s", text)
	runQuery(p)
	p.WaitForText(inResponse, `"chunk_count": `)
	var stored string
	wait.Until(t, "the editor stores the query", func() bool {
		p.Eval("JSON.stringify(localStorage)", &stored)
		return strings.Contains(stored, "embeddings")
	})
	check.True(t, !strings.Contains(stored, "pal_"), "got %s in the storage of the browser, want no key", stored)
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
	shared := check.Try(url.Parse(p.URL())).OK(t)
	got := shared.Query()
	check.True(t, got.Get("query") == query && strings.Contains(got.Get("variables"), `"limit": 3`), "got link %s, want the query and variables in it", shared)

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
