package browser_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"

	"palmares/internal/core/lang"
	"palmares/internal/core/store"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
	"palmares/internal/dev/testkit/blackbox"
	"palmares/internal/dev/testkit/browser"
)

// startAPIDocs starts a server with the current explorer and reference.
func startAPIDocs(t *testing.T) *blackbox.Server {
	t.Helper()
	return startAPIDocsOn(t, blackbox.Demo(t))
}

func startAPIDocsOn(t *testing.T, cfg store.Config) *blackbox.Server {
	t.Helper()
	return withAssets(t, func() *blackbox.Server { return blackbox.Serve(t, cfg, "--demo") })
}

// withAssets builds the assets and starts a server that contains them.
func withAssets(t *testing.T, start func() *blackbox.Server) *blackbox.Server {
	t.Helper()
	manifest := check.Try(os.ReadFile(filepath.Join(testkit.Assets(t), "manifest.json"))).OK(t)
	var built map[string]string
	check.OK(t, json.Unmarshal(manifest, &built))
	s := start()
	for page, scripts := range map[string][]string{"/explorer": {built["explorer.js"], built["graphiql.js"]}, "/docs": {built["reference.js"], built["scalar.js"]}} {
		body := check.Try(io.ReadAll(s.Call(t, http.MethodGet, page, "").Body)).OK(t)
		check.MustTrue(t, bytes.Contains(body, []byte(scripts[0])) && bytes.Contains(body, []byte(scripts[1])), "got assets that were rebuilt after the server was compiled: run make test-full")
	}
	return s
}

const (
	inQuery     = ".graphiql-query-editor .view-lines"
	inVariables = ".graphiql-editor-tool"
	inResponse  = ".result-window .view-lines"
	runButton   = ".graphiql-execute-button"
)

// openEditor waits for GraphiQL, which opens by itself.
func openEditor(p *browser.Page) { p.Text(runButton) }

// runQuery waits for the result pane, and runs the query in the editor.
func runQuery(p *browser.Page) {
	p.Text(inResponse)
	p.Click(runButton)
}

func explorerOf(path string) string { return "/explorer?path=" + url.QueryEscape(path) }

func TestAPIDocsIsAccessible(t *testing.T) {
	t.Parallel()
	s := startAPIDocs(t)
	chrome := browser.Start(t)
	for _, view := range views {
		t.Run(view.String(), func(t *testing.T) {
			p := chrome.Open(t, view.Look, "http://"+s.Address+view.Path(explorerOf("/api/v1/tools?category=code")))
			p.WaitForText("#same-call", "GET /api/v1/tools?category=code")
			openEditor(p)
			runQuery(p)
			p.WaitForText(inResponse, `"slug"`)
			checkPage(t, p, "explorer-"+view.String())
			build := map[lang.Language]string{lang.English: "Show Build a query", lang.French: "Show Construire une requête"}[view.Language]
			for _, label := range []string{"Show Documentation Explorer", "Show History", build, "Open short keys dialog", "Open settings dialog"} {
				p.Click(fmt.Sprintf("button[aria-label=%q]", label))
				p.Axe()
				p.Screenshot("explorer-" + strings.ReplaceAll(strings.ToLower(label), " ", "-") + "-" + view.String())
				if strings.HasSuffix(label, "dialog") {
					p.Press(kb.Escape)
				}
			}
			p.Go("http://" + s.Address + view.Path("/docs"))
			p.WaitForText("#operations", "/api/v1/tools/{slug}")
			checkPage(t, p, "docs-plain-"+view.String())
			openReference(p)
			p.WaitForText("#reference", "/api/v1/tools/{slug}")
			p.WaitForText("#reference", "Test Request")
			p.WaitForText("#reference", "Free to reuse") // the last element to appear
			checkPage(t, p, "docs-"+view.String())
		})
	}
}

// A visitor can use both pages before GraphiQL and Scalar are loaded, because what they
// need of their own is small.
func TestAPIDocsFirstLoad(t *testing.T) {
	t.Parallel()
	s := startAPIDocs(t)
	base := "http://" + s.Address
	chrome := browser.Start(t)
	// load returns the files of a page and their size as transferred.
	load := func(p *browser.Page) (size int, files string) {
		t.Helper()
		var loaded []struct {
			Name string
			Size int
		}
		p.Eval(`["navigation", "resource"].flatMap(type => performance.getEntriesByType(type)).map(({name, transferSize}) => ({name, size: transferSize}))`, &loaded)
		for _, file := range loaded {
			size += file.Size
			files += fmt.Sprintf("%s %d\n", file.Name, file.Size)
		}
		return size, files
	}
	const limit = 100_000
	docs := chrome.Open(t, browser.Look{}, base+"/docs")
	docs.WaitForText("#operations", "/api/v1/tools/{slug}")
	if size, files := load(docs); size == 0 || size > limit {
		t.Errorf("reference: got %d bytes, want at most %d:\n%s", size, limit, files)
	}

	p := chrome.Open(t, browser.Look{}, base+"/explorer")
	openEditor(p)
	p.WaitForText("#cost", "Cost: ")
	runQuery(p)
	p.WaitForText(inResponse, `"name": `)
	p.WaitForText("#cost", "last run: ")
	p.Fill("#example", "2")
	p.Click("#examples button")
	p.WaitForText(inQuery, "query ScoreHistogram")
	// Measured here, so that the page would have had time to load more.
	var own int
	p.Eval(`(all => all.filter(({startTime}) => startTime < all.find(({name}) => name.includes("graphiql")).startTime).reduce((sum, {transferSize}) => sum + transferSize, 0))(["navigation", "resource"].flatMap(type => performance.getEntriesByType(type)))`, &own)
	size, files := load(p)
	check.True(t, own != 0 && own <= limit, "explorer: got %d bytes before the full editor, want at most %d:\n%s", own, limit, files)
	check.True(t, size >= 5*limit, "got %d bytes with the full editor, want more than before:\n%s", size, files)
}

func TestAPIDocsAssetsAreCompressed(t *testing.T) {
	t.Parallel()
	s := withAssets(t, func() *blackbox.Server { return blackbox.Serve(t, blackbox.Demo(t), "--demo") })
	folder := testkit.Assets(t)
	files := check.Try(filepath.Glob(filepath.Join(folder, "*.[jc]s*"))).OK(t)
	sent := 0
	for _, file := range files {
		name := filepath.Base(file)
		if name == "manifest.json" {
			continue
		}
		got := s.Call(t, http.MethodGet, "/assets/workbench/"+name, "", "Accept-Encoding", "br")
		body, err := io.ReadAll(got.Body)
		check.True(t, err == nil && got.StatusCode == 200 && strings.Contains(got.Header.Get("Cache-Control"), "immutable"), "%s: got %d %v, want 200", name, got.StatusCode, err)
		sent += len(body)
		if text, err := os.ReadFile(file); err != nil || bytes.Contains(text, []byte("sourceMappingURL=")) {
			t.Errorf("%s: got a source map or %v, want neither", name, err)
		}
	}
	check.True(t, sent != 0 && sent <= 4<<20, "got %d bytes of assets, want at most %d", sent, 4<<20)
}
