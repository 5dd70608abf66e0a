package workbench

import (
	"context"
	"encoding/json"
	"errors"
	"html"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"

	"palmares/internal/core/cache"
	"palmares/internal/core/problem"
)

// bare is what a plain `go build` carries, and dressed what `make assets` adds.
var (
	bare    = fstest.MapFS{"built/README.md": {Data: []byte("nothing")}}
	dressed = fstest.MapFS{
		"built/README.md":               {Data: []byte("nothing")},
		"built/explorer-AAAAAAAA.js":    {Data: []byte("import './chunk-BBBBBBBB.js'")},
		"built/chunk-BBBBBBBB.js":       {Data: []byte("1")},
		"built/explorer-CCCCCCCC.css":   {Data: []byte("a{}")},
		"built/reference-DDDDDDDD.js":   {Data: []byte("2")},
		"built/jitless-DDDDDDDD.js":     {Data: []byte("2")},
		"built/reference-EEEEEEEE.css":  {Data: []byte("b{}")},
		"built/json.worker-FFFFFFFF.js": {Data: []byte("3")},
		"built/codicon-GGGGGGGG.ttf":    {Data: []byte("font")},
		"built/manifest.json": {Data: []byte(`{"explorer.js": "explorer-AAAAAAAA.js", "explorer.css": "explorer-CCCCCCCC.css", "reference.js": "reference-DDDDDDDD.js",
			"jitless.js": "jitless-DDDDDDDD.js", "reference.css": "reference-EEEEEEEE.css", "json.worker.js": "json.worker-FFFFFFFF.js"}`)},
	}
)

func serving(files fstest.MapFS, key string) *http.ServeMux {
	log := slog.New(slog.DiscardHandler)
	return servingSamples(files, key, cache.New(1<<20, nil, log), func(context.Context) (map[string]string, int, error) {
		return map[string]string{"/api/v1/tools/{slug}": "/api/v1/tools/bosco"}, 1, nil
	})
}

func servingSamples(files fstest.MapFS, key string, answers *cache.Cache, samples func(context.Context) (map[string]string, int, error)) *http.ServeMux {
	mux := http.NewServeMux()
	newWorkbench(Config{
		Answers: answers, Samples: samples,
		PublicURL: "https://palmares.example", ServiceName: "palmares", Credit: "Source : palmares (https://palmares.example)",
		Schema: "type Query { \"<Tools> & more\" tools: Int }", Document: "/api/v1/openapi.json",
		Operations: []Operation{{Path: "/api/v1/tools/{slug}", Summary: "One tool", Example: "/api/v1/tools/plume", Query: "query tool { a }", Parameters: []Parameter{{Name: "slug", InPath: true}}}},
		Explain: func(target string) (string, map[string]any, error) {
			switch target {
			case "/api/v1/tools/plume":
				return "query tool { a }", map[string]any{"slug": "<plume> & co"}, nil
			case "/broken":
				return "", nil, errors.New("secret cause")
			}
			return "", nil, problem.New(problem.BadInput, "limit: \"<b>\" is not an integer.")
		},
		Key: func(*http.Request) string { return key },
		Log: slog.New(slog.DiscardHandler),
	}, files).Register(mux)
	return mux
}

func get(t *testing.T, handler http.Handler, path string, headers ...string) *httptest.ResponseRecorder {
	t.Helper()
	return ask(t, handler, http.MethodGet, path, headers...)
}

func ask(t *testing.T, handler http.Handler, method, path string, headers ...string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequest(method, path, nil)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	got := httptest.NewRecorder()
	handler.ServeHTTP(got, r)
	return got
}

var script = regexp.MustCompile(`(?s)<script type="application/json" id="workbench">(.*?)</script>`)

// handed is what a page hands to its script.
func handed(t *testing.T, page string) (e explorer) {
	t.Helper()
	found := script.FindStringSubmatch(page)
	if found == nil {
		t.Fatalf("nothing is handed over:\n%s", page)
	}
	if err := json.Unmarshal([]byte(found[1]), &e); err != nil {
		t.Fatal(err)
	}
	return e
}

func TestExplorerOpensWhatTheAddressAsksFor(t *testing.T) {
	handler := serving(dressed, "")
	for _, c := range []struct{ name, query, wantQuery, wantVariables, wantNote string }{
		{"nothing", "", "", "", ""},
		{"a path", "path=" + url.QueryEscape("/api/v1/tools/plume"), "query tool { a }", "{\n  \"slug\": \"<plume> & co\"\n}", ""},
		{"a bad path", "path=%2Fapi%2Fv1%2Ftools%3Flimit%3Dx", "", "", `This path cannot be opened here. limit: "<b>" is not an integer.`},
		{"a broken one", "path=%2Fbroken", "", "", "This path cannot be opened here."},
		{"a query", "query=" + url.QueryEscape("{ stats { toolsTotal } }") + "&variables=" + url.QueryEscape(`{"a":1}`), "{ stats { toolsTotal } }", "{\n  \"a\": 1\n}", ""},
		{"bad variables", "query=%7Ba%7D&variables=%7Boops", "{a}", "{oops", "The variables in this address are no JSON."},
		{"an attack", "query=" + url.QueryEscape(`</script><script>alert(1)</script><!--`), `</script><script>alert(1)</script><!--`, "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := get(t, handler, "/explorer?"+c.query)
			page := got.Body.String()
			if got.Code != 200 || got.Header().Get("Cache-Control") != "private, no-cache" {
				t.Errorf("%d, %s", got.Code, got.Header().Get("Cache-Control"))
			}
			if e := handed(t, page); e.Query != c.wantQuery || e.Variables != c.wantVariables || e.Headers != "" {
				t.Errorf("it opens %q with %q and %q", e.Query, e.Variables, e.Headers)
			}
			if c.wantNote != "" && !strings.Contains(page, html.EscapeString(c.wantNote)) && !strings.Contains(html.UnescapeString(page), c.wantNote) {
				t.Errorf("it does not say %q", c.wantNote)
			}
			if strings.Contains(page, "<script>alert") || strings.Contains(page, "<b>") || strings.Contains(page, "secret cause") {
				t.Errorf("it holds what it must not:\n%s", page)
			}
		})
	}
}

func TestExplorerHoldsTheVisitorsKey(t *testing.T) {
	got := get(t, serving(dressed, "pal_</script>"), "/explorer")
	e := handed(t, got.Body.String())
	if e.Headers != "{\n  \"Authorization\": \"Bearer pal_</script>\"\n}" {
		t.Errorf("the headers are %s", e.Headers)
	}
	if got.Header().Get("Cache-Control") != "no-store" || got.Header().Get("ETag") != "" {
		t.Errorf("it may be kept: %v", got.Header())
	}
	// How small it can be made would tell a key beside what an address says.
	if packed := get(t, serving(dressed, "pal_secret"), "/explorer", "Accept-Encoding", "br, gzip"); packed.Header().Get("Content-Encoding") != "" {
		t.Errorf("a key is packed: %v", packed.Header())
	}
	if docs := get(t, serving(dressed, "pal_secret"), "/docs").Body.String(); strings.Contains(docs, "pal_secret") {
		t.Error("the reference holds a key")
	}
}

func TestPolicy(t *testing.T) {
	handler := serving(dressed, "")
	for _, path := range []string{"/explorer", "/docs"} {
		got := get(t, handler, path)
		policy := got.Header().Get("Content-Security-Policy")
		for _, part := range []string{"default-src 'none'", "script-src 'self';", "connect-src 'self';", "worker-src 'self';", "font-src 'self';", "frame-ancestors 'none'"} {
			if !strings.Contains(policy, part) {
				t.Errorf("%s: no %s in %s", path, part, policy)
			}
		}
		if strings.Contains(policy, "unsafe-eval") || strings.Contains(policy, "http") || got.Header().Get("Strict-Transport-Security") == "" {
			t.Errorf("%s: %v", path, got.Header())
		}
		for _, tag := range regexp.MustCompile(`<script[^>]*>`).FindAllString(got.Body.String(), -1) {
			if !strings.Contains(tag, "src=") && !strings.Contains(tag, "application/json") {
				t.Errorf("%s has a script within: %s", path, tag)
			}
		}
	}
}

var everything = []string{ExplorerPath, ReferencePath, MarkdownPath, SchemaPath}

func TestGuarded(t *testing.T) {
	for _, files := range []fstest.MapFS{bare, dressed} {
		for _, path := range everything {
			for _, method := range []string{"GET", "POST"} {
				header := ask(t, serving(files, ""), method, path).Header()
				for _, name := range []string{"Strict-Transport-Security", "Content-Security-Policy", "X-Content-Type-Options", "X-Frame-Options", "Referrer-Policy"} {
					if len(header[name]) != 1 {
						t.Errorf("%s %s: %s is %q", method, path, name, header[name])
					}
				}
			}
		}
	}
}

func TestOnlyForReading(t *testing.T) {
	handler := serving(dressed, "")
	handler.Handle("/", http.NotFoundHandler()) // as the whole program has one
	for _, path := range everything {
		for _, method := range []string{"POST", "PUT", "PATCH", "DELETE", "OPTIONS"} {
			got := ask(t, handler, method, path)
			var body struct{ Error string }
			if err := json.Unmarshal(got.Body.Bytes(), &body); err != nil || got.Code != 405 || got.Header().Get("Allow") != "GET, HEAD" || body.Error == "" {
				t.Errorf("%s %s: %d %v %s", method, path, got.Code, got.Header(), got.Body)
			}
		}
		if got := ask(t, handler, "HEAD", path); got.Code != 200 || got.Body.Len() > 0 {
			t.Errorf("HEAD %s: %d %s", path, got.Code, got.Body)
		}
	}
}

func TestPackedAndKnownAgain(t *testing.T) {
	for name, files := range map[string]fstest.MapFS{"bare": bare, "dressed": dressed} {
		handler := serving(files, "")
		for _, path := range []string{"/explorer", "/explorer?path=%2Fapi%2Fv1%2Ftools%2Fplume", "/docs"} {
			plain := get(t, handler, path)
			got := get(t, handler, path, "Accept-Encoding", "gzip")
			if got.Header().Get("Content-Encoding") != "gzip" || got.Body.Len() >= plain.Body.Len() || !strings.Contains(got.Header().Get("Vary"), "Accept-Encoding") ||
				got.Header().Get("Content-Type") != "text/html; charset=utf-8" {
				t.Errorf("%s %s: %d of %d bytes, %v", name, path, got.Body.Len(), plain.Body.Len(), got.Header())
			}
			tag := got.Header().Get("ETag")
			if again := get(t, handler, path, "Accept-Encoding", "gzip", "If-None-Match", tag); tag == "" || again.Code != 304 || again.Body.Len() > 0 {
				t.Errorf("%s %s: %q then %d", name, path, tag, again.Code)
			}
		}
	}
	tag := get(t, serving(dressed, ""), "/explorer").Header().Get("ETag")
	if got := get(t, serving(dressed, "pal_secret"), "/explorer", "If-None-Match", tag); got.Code != 200 {
		t.Errorf("who signs in gets %d", got.Code)
	}
}

func TestReferencePointsToItsMarkdown(t *testing.T) {
	for name, files := range map[string]fstest.MapFS{"bare": bare, "dressed": dressed} {
		docs := get(t, serving(files, ""), "/docs").Body.String()
		for _, want := range []string{`<link rel="alternate" type="text/markdown" href="/docs.md">`, `<a href="/docs.md">`} {
			if !strings.Contains(docs, want) {
				t.Errorf("%s: no %s in:\n%s", name, want, docs)
			}
		}
		if page := get(t, serving(files, ""), "/explorer").Body.String(); strings.Contains(page, "text/markdown") {
			t.Errorf("%s: the explorer says that there is Markdown of it", name)
		}
	}
}

func TestAssetsAreServedForEver(t *testing.T) {
	handler := serving(dressed, "")
	for name, kind := range map[string]string{
		"explorer-AAAAAAAA.js": "text/javascript; charset=utf-8", "chunk-BBBBBBBB.js": "text/javascript; charset=utf-8",
		"explorer-CCCCCCCC.css": "text/css; charset=utf-8", "codicon-GGGGGGGG.ttf": "font/ttf",
	} {
		got := get(t, handler, "/assets/workbench/"+name)
		if got.Code != 200 || got.Header().Get("Content-Type") != kind || !strings.Contains(got.Header().Get("Cache-Control"), "immutable") {
			t.Errorf("%s: %d %v", name, got.Code, got.Header())
		}
	}
	for _, name := range []string{"manifest.json", "README.md", "../workbench.go", "nothing.js"} {
		if got := get(t, handler, "/assets/workbench/"+name); got.Code == 200 {
			t.Errorf("%s is served", name)
		}
	}
	e := handed(t, get(t, handler, "/explorer").Body.String())
	if e.Workers["json"] != "/assets/workbench/json.worker-FFFFFFFF.js" || len(e.Operations) != 1 || len(e.Examples) != len(Examples) {
		t.Errorf("it hands over %+v", e)
	}
}

// Built with Go alone, the pages show in plain words what they would.
func TestWithoutAssets(t *testing.T) {
	handler := serving(bare, "pal_secret")
	explorer, docs := get(t, handler, "/explorer?path=%2Fapi%2Fv1%2Ftools").Body.String(), get(t, handler, "/docs").Body.String()
	for page, wants := range map[string][]string{
		explorer: {"make assets", "type Query { &#34;&lt;Tools&gt; &amp; more&#34; tools: Int }", SchemaPath},
		docs:     {"make assets", "/api/v1/tools/{slug}", "One tool", `href="/api/v1/tools/bosco"`, "/api/v1/openapi.json", "/guides", "/explorer"},
	} {
		for _, want := range wants {
			if !strings.Contains(page, want) {
				t.Errorf("no %s in:\n%s", want, page)
			}
		}
		if strings.Contains(page, "/workbench/") || strings.Contains(page, "pal_secret") {
			t.Errorf("it needs what there is not, or tells a key:\n%s", page)
		}
	}
	if policy := get(t, handler, "/docs").Header().Get("Content-Security-Policy"); strings.Contains(policy, "unsafe") {
		t.Errorf("the policy is %s", policy)
	}
}

func TestSchemaIsServed(t *testing.T) {
	got := get(t, serving(bare, ""), SchemaPath)
	if got.Code != 200 || !strings.HasPrefix(got.Body.String(), "type Query") || got.Header().Get("ETag") == "" {
		t.Errorf("%d %v %s", got.Code, got.Header(), got.Body)
	}
}

func TestExamplesHaveTitles(t *testing.T) {
	titles := map[string]bool{}
	for _, example := range Examples {
		if example.Title == "" || strings.Contains(example.Title, "{") || titles[example.Title] {
			t.Errorf("%q is no title of its own", example.Title)
		}
		titles[example.Title] = true
	}
	if len(Examples) < 10 {
		t.Errorf("there are only %d", len(Examples))
	}
}

// Where packages come from is the business of whoever installs them.
func TestLockNamesNoRegistry(t *testing.T) {
	text, err := os.ReadFile("web/package-lock.json")
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(text), `"resolved"`) {
		t.Error("the lock file tells where packages were downloaded: npm install --omit-lockfile-registry-resolved")
	}
	var project struct{ Dependencies map[string]string }
	text, err = os.ReadFile("web/package.json")
	if err == nil {
		err = json.Unmarshal(text, &project)
	}
	if err != nil {
		t.Fatal(err)
	}
	for name, version := range project.Dependencies {
		if !regexp.MustCompile(`^\d+\.\d+\.\d+$`).MatchString(version) {
			t.Errorf("%s is not pinned: %s", name, version)
		}
	}
}

// The reference is there as Markdown, too: at its address, and for who asks.
func TestReferenceAsMarkdown(t *testing.T) {
	for _, ask := range []struct{ path, accept string }{{MarkdownPath, ""}, {ReferencePath, "text/markdown"}} {
		got := get(t, serving(dressed, ""), ask.path, "Accept", ask.accept)
		if got.Code != 200 || got.Header().Get("Content-Type") != "text/markdown; charset=utf-8" {
			t.Errorf("%s: %d %s", ask.path, got.Code, got.Header().Get("Content-Type"))
		}
		for _, text := range []string{"# API reference of palmares", "## GET /api/v1/tools/{slug}", "- `slug`:", "Source : palmares (https://palmares.example)", "Example: https://palmares.example/api/v1/tools/bosco\n"} {
			if !strings.Contains(got.Body.String(), text) {
				t.Errorf("%s does not say %q: %s", ask.path, text, got.Body)
			}
		}
	}
}
