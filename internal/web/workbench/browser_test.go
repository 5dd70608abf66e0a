package workbench

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"palmares/internal/dev/testkit"
	"palmares/internal/dev/testkit/browser"
	"palmares/internal/web/page"
)

var everyLook = []browser.Look{{}, {Width: 360, Dark: true}}

// start starts a server with the pages and the shared assets.
func start(t *testing.T, pages *http.ServeMux, schema http.HandlerFunc) string {
	t.Helper()
	mux := http.NewServeMux()
	mux.Handle("/", pages)
	mux.HandleFunc("/favicon.ico", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	mux.Handle("GET "+page.AssetsPath, page.ServeAssets(page.SharedAssets, Assets))
	mux.Handle("GET "+page.AssetsPath+"workbench/", pages)
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
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		data, err := os.ReadFile(filepath.Join(folder, name.Name()))
		if err != nil {
			t.Fatal(err)
		}
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

func TestPagesWithoutAssetsInBrowser(t *testing.T) {
	t.Parallel()
	address := start(t, newHandler(withoutAssets, ""), nil)
	chrome := browser.Start(t)
	for _, look := range everyLook {
		p := chrome.Open(t, look, address+ReferencePath)
		checkPage(t, p, "docs-without-assets", look)
		p.Go(address + ExplorerPath)
		checkPage(t, p, "explorer-without-assets", look)
		var padding string
		if p.Eval("getComputedStyle(document.querySelector('pre')).paddingLeft", &padding); padding == "0px" {
			t.Error("got no padding around the schema, want some")
		}
	}
}

// The explorer shows that it is loading, and an error if its schema is invalid.
func TestExplorerLoading(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	address := start(t, newHandler(currentAssets(t), ""), func(w http.ResponseWriter, r *http.Request) {
		<-release
		fmt.Fprint(w, "type Query {")
	})
	p := browser.Start(t).Open(t, browser.Look{}, address+ExplorerPath)
	p.WaitForText("#explorer .loading", "Loading the explorer… You can also read the schema")
	close(release)
	p.WaitForText("#explorer .loading", "The explorer could not load its schema.")
	checkPage(t, p, "explorer-failed", browser.Look{})
}

// The loading message stays if the scripts are empty, and is not shown without
// JavaScript.
func TestPagesWithoutScripts(t *testing.T) {
	t.Parallel()
	files := currentAssets(t)
	for name := range files {
		if strings.HasPrefix(name, "built/explorer-") && strings.HasSuffix(name, ".js") || strings.HasPrefix(name, "built/reference-") && strings.HasSuffix(name, ".js") {
			files[name] = &fstest.MapFile{}
		}
	}
	address := start(t, newHandler(files, ""), nil)
	chrome := browser.Start(t)
	for path, selector := range map[string]string{ExplorerPath: "#explorer .loading", ReferencePath: "#reference .loading"} {
		for _, look := range everyLook {
			p := chrome.Open(t, look, address+path)
			p.WaitForText(selector, "Loading the")
			checkPage(t, p, "loading"+strings.ReplaceAll(path, "/", "-"), look)
		}
		p := chrome.Open(t, browser.Look{NoScript: true}, address+path)
		p.WaitForText("main", "requires JavaScript")
		if strings.Contains(p.Text("main"), "Loading") {
			t.Errorf("%s without JavaScript: got a loading message, want none", path)
		}
	}
}
