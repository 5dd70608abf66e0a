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

// listening serves pages with the style of all of them.
func listening(t *testing.T, pages *http.ServeMux, schema http.HandlerFunc) string {
	t.Helper()
	mux := http.NewServeMux()
	mux.Handle("/", pages)
	mux.HandleFunc("/favicon.ico", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	mux.Handle("GET "+page.AssetsPath, page.ServeAssets(page.Own, Assets))
	mux.Handle("GET "+page.AssetsPath+"workbench/", pages)
	if schema != nil {
		mux.Handle(SchemaPath, schema)
	}
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server.URL
}

// built is what `make assets` makes, as it is now.
func built(t *testing.T) fstest.MapFS {
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

func looksRight(t *testing.T, p *browser.Page, name string, look browser.Look) {
	t.Helper()
	p.Axe()
	p.Screenshot(fmt.Sprintf("%s-%d-dark-%v", name, look.Width, look.Dark))
	var wider bool
	if p.Eval("document.documentElement.scrollWidth > document.documentElement.clientWidth", &wider); wider {
		t.Errorf("%s is wider than its window", name)
	}
}

// Built with Go alone, the pages are for everybody, too.
func TestBarePagesAreAccessible(t *testing.T) {
	t.Parallel()
	address := listening(t, serving(bare, ""), nil)
	chrome := browser.Start(t)
	for _, look := range everyLook {
		p := chrome.Open(t, look, address+ReferencePath)
		looksRight(t, p, "docs-bare", look)
		p.Go(address + ExplorerPath)
		looksRight(t, p, "explorer-bare", look)
		var padding string
		if p.Eval("getComputedStyle(document.querySelector('pre')).paddingLeft", &padding); padding == "0px" {
			t.Error("the schema touches its frame")
		}
	}
}

// Until the explorer is there its place says so, and where to go meanwhile; if
// its schema does not come whole, it says that.
func TestExplorerSaysThatItLoads(t *testing.T) {
	t.Parallel()
	held := make(chan struct{})
	address := listening(t, serving(built(t), ""), func(w http.ResponseWriter, r *http.Request) {
		<-held
		fmt.Fprint(w, "type Query {")
	})
	p := browser.Start(t).Open(t, browser.Look{}, address+ExplorerPath)
	says(t, p, "#explorer .loading", "Loading the explorer… Until it is there, the schema says")
	close(held)
	says(t, p, "#explorer .loading", "The explorer cannot start, because its schema did not arrive.")
	looksRight(t, p, "explorer-failed", browser.Look{})
}

// A script that does nothing leaves the note where it is; one that cannot run
// is not waited for.
func TestPagesWithoutTheirPrograms(t *testing.T) {
	t.Parallel()
	files := built(t)
	for name := range files {
		if strings.HasPrefix(name, "built/explorer-") && strings.HasSuffix(name, ".js") || strings.HasPrefix(name, "built/reference-") && strings.HasSuffix(name, ".js") {
			files[name] = &fstest.MapFile{}
		}
	}
	address := listening(t, serving(files, ""), nil)
	chrome := browser.Start(t)
	for path, place := range map[string]string{ExplorerPath: "#explorer .loading", ReferencePath: "#reference .loading"} {
		for _, look := range everyLook {
			p := chrome.Open(t, look, address+path)
			says(t, p, place, "Loading the")
			looksRight(t, p, "loading"+strings.ReplaceAll(path, "/", "-"), look)
		}
		p := chrome.Open(t, browser.Look{NoScript: true}, address+path)
		says(t, p, "main", "is a program that runs in your browser, which does not let it")
		if strings.Contains(p.Text("main"), "Loading") {
			t.Errorf("%s pretends to load without a script", path)
		}
	}
}

// says waits until a visitor can read something.
func says(t *testing.T, p *browser.Page, selector, want string) {
	t.Helper()
	p.Shows(selector, want)
}
