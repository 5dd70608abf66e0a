package apidocs

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
	"palmares/internal/dev/testkit/browser"
	"palmares/internal/dev/testkit/wait"
)

func TestMain(m *testing.M) { browser.Main(m) }

var everyLook = []browser.Look{{}, {Width: 360, Dark: true}}

// start starts a server with the pages and the shared assets.
func start(t *testing.T, pages http.Handler, schema http.HandlerFunc) string {
	t.Helper()
	mux := http.NewServeMux()
	mux.Handle("/", pages)
	mux.HandleFunc("/favicon.ico", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	if schema != nil {
		mux.Handle(SchemaPath, schema)
	}
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server.URL
}

// currentAssets returns the files that `make assets` builds.
func currentAssets(t *testing.T) fstest.MapFS {
	t.Helper()
	folder := testkit.Assets(t)
	files := fstest.MapFS{}
	names, err := os.ReadDir(folder)
	check.OK(t, err)
	for _, name := range names {
		data, err := os.ReadFile(filepath.Join(folder, name.Name()))
		check.OK(t, err)
		files["built/"+name.Name()] = &fstest.MapFile{Data: data}
	}
	return files
}

func checkPage(t *testing.T, p *browser.Page, name string, look browser.Look) {
	t.Helper()
	p.Axe()
	p.Screenshot(fmt.Sprintf("%s-%d-dark-%v", name, look.Width, look.Dark))
	var wider bool
	if p.Eval("document.documentElement.scrollWidth > document.documentElement.clientWidth", &wider); wider {
		t.Errorf("%s: got a page wider than its window, want it to fit", name)
	}
}

func TestPagesWithoutAssetsWithChromium(t *testing.T) {
	testkit.FullTier(t, "it needs Chromium")
	t.Parallel()
	address := start(t, newHandler(withoutAssets, ""), nil)
	chrome := browser.Start(t)
	for _, look := range everyLook {
		p := chrome.Open(t, look, address+ReferencePath)
		checkPage(t, p, "docs-without-assets", look)
		checkFolds(t, p)
		p.Go(address + ExplorerPath)
		checkPage(t, p, "explorer-without-assets", look)
		var padding string
		if p.Eval("getComputedStyle(document.querySelector('pre')).paddingLeft", &padding); padding == "0px" {
			t.Error("got no padding around the schema, want some")
		}
	}
}

// checkFolds checks that parameters and fields are folded on phones only.
func checkFolds(t *testing.T, p *browser.Page) {
	t.Helper()
	for _, width := range []int{390, 1_280} {
		p.Change(browser.Look{Width: width})
		var has struct{ Folds, Visible int }
		p.Eval(`(all => ({folds: all.length, visible: all.filter(list => list.checkVisibility({contentVisibilityAuto: true})).length}))([...document.querySelectorAll(".phone-fold dl")])`, &has)
		if want := map[int]int{1_280: has.Folds}[width]; has.Folds == 0 || has.Visible != want {
			t.Errorf("at %d: got %+v, want %d visible", width, has, want)
		}
	}
}

// The plain editor stays if the full one cannot be loaded.
func TestExplorerLoadingWithChromium(t *testing.T) {
	testkit.FullTier(t, "it needs Chromium")
	t.Parallel()
	release := make(chan struct{})
	address := start(t, newHandler(currentAssets(t), ""), func(w http.ResponseWriter, r *http.Request) {
		<-release
		fmt.Fprint(w, "type Query {")
	})
	chrome := browser.Start(t)
	var pages []*browser.Page
	var before []string
	place := func(p *browser.Page) (place string) {
		p.Eval(`["#query", "#variables", "#result"].map(id => JSON.stringify(document.querySelector(id).getBoundingClientRect())).join()`, &place)
		return place
	}
	for _, look := range everyLook {
		p := chrome.Open(t, look, address+ExplorerPath)
		p.WaitForText("#status", "Loading the full editor…")
		pages, before = append(pages, p), append(before, place(p))
	}
	close(release)
	for i, p := range pages {
		p.WaitForText("#status", "The full editor could not be loaded.")
		check.Equal(t, place(p), before[i], "place of the editor after another message, in look %d", i)
		p.Eval(`document.getElementById("status").textContent = ""`, nil)
		check.Equal(t, place(p), before[i], "place of the editor without a message, in look %d", i)
		p.Eval(`document.getElementById("cost").textContent = "A message that is much longer than a line. ".repeat(9)`, nil)
		check.Equal(t, place(p), before[i], "place of the editor below its cost, in look %d", i)
		p.Click("#query") // still there
		checkPage(t, p, "explorer-failed", everyLook[i])
	}
}

// Visitors meet the full editor, with what they did before it was loaded. Its history has
// every run.
func TestExplorerOpensFullEditorWithChromium(t *testing.T) {
	testkit.FullTier(t, "it needs Chromium")
	t.Parallel()
	release := make(chan struct{})
	pages := http.NewServeMux()
	pages.Handle("/", newHandler(currentAssets(t), "pal_key"))
	pages.HandleFunc("POST /graphql", func(w http.ResponseWriter, r *http.Request) {
		check.Equal(t, r.Header.Get("Authorization"), "Bearer pal_key", "key")
		fmt.Fprint(w, `{"data": {"tools": 42}}`)
	})
	address := start(t, pages, func(w http.ResponseWriter, r *http.Request) {
		<-release
		fmt.Fprint(w, "type Query { tools(limit: Int): Int }")
	})
	p := browser.Start(t).Open(t, browser.Look{}, address+ExplorerPath)
	p.WaitForText("#status", "Loading the full editor…")
	p.Fill("#query", "query Mine($limit: Int) { tools(limit: $limit) }")
	p.Fill("#variables", "{oops")
	p.Click("#plain .row button")
	p.WaitForText("#status", "The variables must be valid JSON.")
	p.Fill("#variables", "")
	p.Click("#plain .row button")
	p.WaitForText("#result", `"tools": 42`)
	p.Fill("#variables", `{"limit": 3}`)
	p.Click("#query")
	close(release)
	p.WaitForText(".graphiql-query-editor .view-lines", "query Mine(")
	p.WaitForText(".graphiql-editor-tool", `"limit": 3`)
	p.WaitForText(".result-window .view-lines", `"tools": 42`)
	wait.Until(t, "the full editor has the focus", func() (focused bool) {
		p.Eval("document.activeElement.closest('.graphiql-query-editor') !== null", &focused)
		return focused
	})
	if p.Exists("#plain") {
		t.Error("got both editors, want only the full one")
	}
	var runs int
	for range 2 { // the second one repeats the first
		p.Click(".graphiql-execute-button")
		wait.Until(t, "the history has both runs", func() bool {
			p.Eval(`JSON.parse(localStorage["graphiql:queries"]).queries.length`, &runs)
			return runs == 2
		})
	}
	p.Click("button[aria-label='Show History']")
	p.Eval(`document.querySelectorAll(".graphiql-history-item").length`, &runs)
	check.Equal(t, runs, 2, "runs in the history")
}

// Without JavaScript, queries are sent as a form, and the reference can be read.
func TestPagesWithoutScriptsWithChromium(t *testing.T) {
	testkit.FullTier(t, "it needs Chromium")
	t.Parallel()
	pages := http.NewServeMux()
	pages.Handle("/", newHandler(currentAssets(t), ""))
	pages.HandleFunc("GET /graphql", func(w http.ResponseWriter, r *http.Request) { fmt.Fprintf(w, "%q", r.URL.Query()) })
	address := start(t, pages, nil)
	p := browser.Start(t).Open(t, browser.Look{NoScript: true}, address+ReferencePath)
	p.WaitForText("#operations", "GET /api/v1/tools/{slug}")
	p.Go(address + ExplorerPath)
	for _, text := range []string{p.Text("main"), p.Text("#plain")} {
		if strings.Contains(text, "full editor") || strings.Contains(text, "Share") {
			t.Errorf("got %s, want no controls that need JavaScript", text)
		}
	}
	p.Fill("#query", "{ a }")
	p.Follow("#plain button")
	p.WaitForText("body", `map["query":["{ a }"] "variables":[""]]`)
}
