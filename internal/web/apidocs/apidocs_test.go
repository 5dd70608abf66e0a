package apidocs

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
	"palmares/internal/core/lang"
	"palmares/internal/core/params"
	"palmares/internal/core/problem"
	"palmares/internal/dev/check"
	"palmares/internal/web/page"
	"palmares/internal/web/prose"
	"palmares/rest"
)

var (
	withoutAssets = fstest.MapFS{"built/README.md": {Data: []byte("nothing")}}
	withAssets    = fstest.MapFS{
		"built/README.md":               {Data: []byte("nothing")},
		"built/explorer-AAAAAAAA.js":    {Data: []byte("import './chunk-BBBBBBBB.js'")},
		"built/chunk-BBBBBBBB.js":       {Data: []byte("1")},
		"built/graphiql-CCCCCCCC.js":    {Data: []byte("1")},
		"built/graphiql-CCCCCCCC.css":   {Data: []byte("a{}")},
		"built/reference-DDDDDDDD.js":   {Data: []byte("2")},
		"built/scalar-EEEEEEEE.js":      {Data: []byte("2")},
		"built/scalar-EEEEEEEE.css":     {Data: []byte("b{}")},
		"built/json.worker-FFFFFFFF.js": {Data: []byte("3")},
		"built/codicon-GGGGGGGG.ttf":    {Data: []byte("font")},
		"built/manifest.json": {Data: []byte(`{"explorer.js": "explorer-AAAAAAAA.js", "graphiql.js": "graphiql-CCCCCCCC.js", "graphiql.css": "graphiql-CCCCCCCC.css",
			"reference.js": "reference-DDDDDDDD.js", "scalar.js": "scalar-EEEEEEEE.js", "scalar.css": "scalar-EEEEEEEE.css", "json.worker.js": "json.worker-FFFFFFFF.js"}`)},
	}
)

func newHandler(files fstest.MapFS, key string) http.Handler {
	log := slog.New(slog.DiscardHandler)
	return newHandlerWithSamples(files, key, cache.New(1<<20, nil, log), func(context.Context) (*rest.Samples, error) {
		return &rest.Samples{Paths: map[string]string{"/api/v1/tools/{slug}": "/api/v1/tools/bosco"}, Categories: []string{"agents", "code"}, Release: 1}, nil
	})
}

func newHandlerWithSamples(files fstest.MapFS, key string, responses *cache.Cache, samples func(context.Context) (*rest.Samples, error)) http.Handler {
	return newPages(Config{
		Cache: responses, Samples: samples,
		Cost: func(_ context.Context, query string, _ map[string]any) (int, int, error) {
			if query == "bad" {
				return 0, 0, problem.New(problem.BadInput, "No such field.")
			}
			return len(query), 20_000, nil
		},
		Run:     func(context.Context, string) ([]byte, error) { return []byte(`{"answer":42}`), nil },
		Objects: []rest.Object{{Name: "ToolItem", Description: "A tool.", Fields: []rest.Field{{Name: "score", Type: "number or null", Description: "From 0 to 10."}}}},
		Limits:  "a cost of 20000",
		Errors:  []rest.Field{{Name: "404", Description: "Nothing has this slug."}},
		Guides:  []*prose.Guide{{Title: "Caching", Summary: "Cache.", URL: "https://palmares.example/guides/caching.md", Markdown: "# Caching\n\nCache.\n"}},
		Service: page.Service{PublicURL: "https://palmares.example", ServiceName: "palmares", Credit: "Source : palmares (https://palmares.example)", Log: slog.New(slog.DiscardHandler)},
		Schema:  "type Query { \"<Tools> & more\" tools: Int }", Document: "/api/v1/openapi.json",
		Operations: []rest.Operation{{Path: "/api/v1/tools/{slug}", Tag: "tools", Summary: "One tool", Details: "Not `<b>`.", Example: "/api/v1/tools/plume", Query: "query tool { a }", Parameters: []rest.Parameter{{Param: params.Param{Name: "slug"}, InPath: true}}, Response: "`ToolItem`"}},
		Explain: func(target string) (string, map[string]any, error) {
			switch target {
			case "/api/v1/tools/plume":
				return "query tool { a }", map[string]any{"slug": "<plume> & co"}, nil
			case "/broken":
				return "", nil, errors.New("secret cause")
			}
			return "", nil, problem.New(problem.BadInput, "limit must be an integer (got \"<b>\").")
		},
		Key: func(*http.Request) string { return key },
	}, files)
}

func get(t *testing.T, handler http.Handler, path string, headers ...string) *httptest.ResponseRecorder {
	t.Helper()
	return send(t, handler, http.MethodGet, path, headers...)
}

func send(t *testing.T, handler http.Handler, method, path string, headers ...string) *httptest.ResponseRecorder {
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

// scriptData returns the data that a page passes to its script.
func scriptData(t *testing.T, page string) (e explorer) {
	t.Helper()
	found := script.FindStringSubmatch(page)
	if found == nil {
		t.Fatalf("got no data for the script, want some:\n%s", page)
	}
	check.OK(t, json.Unmarshal([]byte(found[1]), &e))
	return e
}

func TestExplorerOpensQueryFromURL(t *testing.T) {
	handler := newHandler(withAssets, "")
	for _, c := range []struct{ name, query, wantQuery, wantVariables, wantNote string }{
		{"nothing", "", "", "", ""},
		{"a path", "path=" + url.QueryEscape("/api/v1/tools/plume"), "query tool { a }", `{"slug":"<plume> & co"}`, ""},
		{"a bad path", "path=%2Fapi%2Fv1%2Ftools%3Flimit%3Dx", "", "", `This path cannot be opened in the explorer. limit must be an integer (got "<b>").`},
		{"a broken one", "path=%2Fbroken", "", "", "This path cannot be opened in the explorer."},
		{"a query", "query=" + url.QueryEscape("{ stats { toolsTotal } }") + "&variables=" + url.QueryEscape(`{"a":1}`), "{ stats { toolsTotal } }", `{"a":1}`, ""},
		{"deep variables", "query=%7Ba%7D&variables=" + strings.Repeat("[", 5000) + strings.Repeat("]", 5000), "{a}", strings.Repeat("[", 5000) + strings.Repeat("]", 5000), ""},
		{"bad variables", "query=%7Ba%7D&variables=%7Boops", "{a}", "{oops", "The variables in the URL are not valid JSON."},
		{"an attack", "query=" + url.QueryEscape(`</script><script>alert(1)</script><!--`), `</script><script>alert(1)</script><!--`, "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := get(t, handler, "/explorer?"+c.query)
			page := got.Body.String()
			check.Equal(t, got.Code, 200)
			check.Equal(t, got.Header().Get("Cache-Control"), "private, no-cache")
			if e := scriptData(t, page); e.Query != c.wantQuery || e.Variables != c.wantVariables || e.Key != "" {
				t.Errorf("got query %q, variables %q, key %q, want %q, %q and none", e.Query, e.Variables, e.Key, c.wantQuery, c.wantVariables)
			}
			if c.wantNote != "" && !strings.Contains(page, html.EscapeString(c.wantNote)) && !strings.Contains(html.UnescapeString(page), c.wantNote) {
				t.Errorf("got %s, want the note %q", page, c.wantNote)
			}
			if strings.Contains(page, "<script>alert") || strings.Contains(page, "<b>") || strings.Contains(page, "secret cause") {
				t.Errorf("got unescaped or internal text, want none:\n%s", page)
			}
		})
	}
}

func TestExplorerHasUserKey(t *testing.T) {
	got := get(t, newHandler(withAssets, "pal_</script>"), "/explorer")
	e := scriptData(t, got.Body.String())
	check.Equal(t, e.Key, "pal_</script>", "key")
	check.Equal(t, got.Header().Get("Cache-Control"), "no-store", got.Header())
	check.Equal(t, got.Header().Get("ETag"), "", got.Header())
	// The size of a compressed page would leak the key (BREACH).
	if compressed := get(t, newHandler(withAssets, "pal_secret"), "/explorer", "Accept-Encoding", "br, gzip"); compressed.Header().Get("Content-Encoding") != "" {
		t.Errorf("got %v, want no compression", compressed.Header())
	}
	docs := get(t, newHandler(withAssets, "pal_secret"), "/docs", "Accept-Encoding", "br, gzip")
	if !strings.Contains(docs.Body.String(), `"key":"pal_secret"`) || docs.Header().Get("Cache-Control") != "no-store" || docs.Header().Get("Content-Encoding") != "" {
		t.Errorf("got reference %v, want the key, and neither cached nor compressed", docs.Header())
	}
}

func TestCost(t *testing.T) {
	handler := newHandler(withAssets, "")
	post := func(body string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest("POST", CostPath, strings.NewReader(body)))
		return w
	}
	if got := post(`{"query":"{ a }","variables":{"n":2}}`); got.Code != 200 || got.Body.String() != `{"cost":5,"limit":20000}`+"\n" {
		t.Errorf("got %d %s, want the cost", got.Code, got.Body)
	}
	for _, body := range []string{"", "[]", `{"query":1}`, `{"query":"` + strings.Repeat("x", maxCostBody) + `"}`} {
		if got := post(body); got.Code != 400 {
			t.Errorf("%.20s: got %d %s, want 400", body, got.Code, got.Body)
		}
	}
	if got := post(`{"query":"bad"}`); got.Code != 200 || !strings.Contains(got.Body.String(), `"error":"No such field."`) {
		t.Errorf("invalid query: got %d %s, want the reason", got.Code, got.Body)
	}
	limited := false
	for range 3 * costsPerSecond {
		limited = limited || post(`{"query":"{ a }"}`).Code == 429
	}
	if !limited {
		t.Error("got no 429 for many requests at once, want some")
	}
}

func TestPolicy(t *testing.T) {
	handler := newHandler(withAssets, "")
	for _, path := range []string{"/explorer", "/docs"} {
		got := get(t, handler, path)
		policy := got.Header().Get("Content-Security-Policy")
		for _, part := range []string{"default-src 'none'", "script-src 'self';", "connect-src 'self';", "worker-src 'self';", "font-src 'self';", "frame-ancestors 'none'"} {
			check.Contains(t, policy, part, "%s: policy", path)
		}
		if strings.Contains(policy, "unsafe-eval") || strings.Contains(policy, "http") || got.Header().Get("Strict-Transport-Security") == "" {
			t.Errorf("%s: got %v, want a strict policy and HSTS", path, got.Header())
		}
		for _, tag := range regexp.MustCompile(`<script[^>]*>`).FindAllString(got.Body.String(), -1) {
			if !strings.Contains(tag, "src=") && !strings.Contains(tag, "application/json") {
				t.Errorf("%s: got inline script %s, want none", path, tag)
			}
		}
	}
}

var allPaths = []string{ExplorerPath, ReferencePath, MarkdownPath, SchemaPath, LLMsPath, LLMsFullPath}

func TestMethods(t *testing.T) {
	handler := newHandler(withAssets, "")
	for _, path := range allPaths {
		for _, method := range []string{"POST", "PUT", "PATCH", "DELETE", "OPTIONS"} {
			got := send(t, handler, method, path)
			var body struct{ Error string }
			if err := json.Unmarshal(got.Body.Bytes(), &body); err != nil || got.Code != 405 || got.Header().Get("Allow") != "GET, HEAD" || body.Error == "" {
				t.Errorf("%s %s: got %d %v %s, want 405 as JSON", method, path, got.Code, got.Header(), got.Body)
			}
			for _, name := range []string{"Strict-Transport-Security", "Content-Security-Policy", "X-Content-Type-Options", "X-Frame-Options", "Referrer-Policy"} {
				check.Equal(t, len(got.Header()[name]), 1, "%s %s: %s", method, path, name)
			}
		}
		got := send(t, handler, "HEAD", path)
		check.Equal(t, len(got.Header()["Content-Security-Policy"]), 1, "HEAD %s: policy", path)
		if got.Code != 200 || got.Body.Len() > 0 {
			t.Errorf("HEAD %s: got %d %s, want 200 without a body", path, got.Code, got.Body)
		}
	}
}

func TestETags(t *testing.T) {
	handler := newHandler(withAssets, "")
	for _, path := range []string{"/explorer", "/docs"} {
		tag := get(t, handler, path).Header().Get("ETag")
		check.Equal(t, get(t, handler, path, "If-None-Match", tag).Code, 304, path)
		check.Equal(t, get(t, newHandler(withAssets, "pal_secret"), path, "If-None-Match", tag).Code, 200, "signed in: "+path)
	}
}

func TestAssetsAreImmutable(t *testing.T) {
	handler := newHandler(withAssets, "")
	for name, kind := range map[string]string{
		"explorer-AAAAAAAA.js": "text/javascript; charset=utf-8", "chunk-BBBBBBBB.js": "text/javascript; charset=utf-8",
		"graphiql-CCCCCCCC.css": "text/css; charset=utf-8", "codicon-GGGGGGGG.ttf": "font/ttf",
	} {
		got := get(t, handler, "/assets/workbench/"+name)
		if got.Code != 200 || got.Header().Get("Content-Type") != kind || !strings.Contains(got.Header().Get("Cache-Control"), "immutable") {
			t.Errorf("%s: got %d %v, want 200, %s and immutable", name, got.Code, got.Header(), kind)
		}
	}
	for _, name := range []string{"manifest.json", "README.md", "../apidocs.go", "nothing.js"} {
		if got := get(t, handler, "/assets/workbench/"+name); got.Code == 200 {
			t.Errorf("%s: got 200, want an error", name)
		}
	}
	e := scriptData(t, get(t, handler, "/explorer").Body.String())
	if (e.Editor != app{"/assets/workbench/graphiql-CCCCCCCC.js", "/assets/workbench/graphiql-CCCCCCCC.css"}) || e.Workers["json"] != "/assets/workbench/json.worker-FFFFFFFF.js" || len(e.Operations) != 1 || len(e.Examples) != len(Examples) {
		t.Errorf("got %+v, want the editor, workers, operations and examples", e)
	}
	r := httptest.NewRequest("GET", "/explorer", nil)
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, r.WithContext(lang.With(r.Context(), lang.French)))
	title := lang.French.Text(lang.Message(Examples[0].Title))
	if got := scriptData(t, w.Body.String()).Examples[0].Query; !strings.HasPrefix(got, "# "+title+"\nquery") || title == Examples[0].Title {
		t.Errorf("got %.80s, want an example with a comment in French", got)
	}
}

// Without `make assets`, the pages show plain lists.
func TestWithoutAssets(t *testing.T) {
	handler := newHandler(withoutAssets, "pal_secret")
	explorer, docs := get(t, handler, "/explorer?path=%2Fapi%2Fv1%2Ftools").Body.String(), get(t, handler, "/docs").Body.String()
	for page, wants := range map[string][]string{
		explorer: {"make assets", "type Query { &#34;&lt;Tools&gt; &amp; more&#34; tools: Int }", SchemaPath},
		docs:     {"make assets", "/api/v1/tools/{slug}", "One tool", `href="/api/v1/tools/bosco"`, "/api/v1/openapi.json", "/guides", "/explorer"},
	} {
		for _, want := range wants {
			check.Contains(t, page, want)
		}
		if strings.Contains(page, "/workbench/") || strings.Contains(page, "pal_secret") {
			t.Errorf("got a built file or a key, want neither:\n%s", page)
		}
	}
	if policy := get(t, handler, "/docs").Header().Get("Content-Security-Policy"); strings.Contains(policy, "unsafe") {
		t.Errorf("got policy %s, want a strict one", policy)
	}
}

func TestSchema(t *testing.T) {
	got := get(t, newHandler(withoutAssets, ""), SchemaPath)
	if got.Code != 200 || !strings.HasPrefix(got.Body.String(), "type Query") || got.Header().Get("ETag") == "" {
		t.Errorf("got %d %v %s, want the schema", got.Code, got.Header(), got.Body)
	}
}

func TestExamplesHaveTitles(t *testing.T) {
	titles := map[string]bool{}
	for _, example := range Examples {
		if example.Title == "" || strings.Contains(example.Title, "{") || titles[example.Title] {
			t.Errorf("got title %q, want a unique one", example.Title)
		}
		titles[example.Title] = true
	}
	if len(Examples) < 10 {
		t.Errorf("got %d examples, want at least 10", len(Examples))
	}
}

// The lock file must not depend on a registry, and versions must be pinned.
func TestPackageLock(t *testing.T) {
	text, err := os.ReadFile("web/package-lock.json")
	check.OK(t, err)
	if strings.Contains(string(text), `"resolved"`) {
		t.Error("got URLs of a registry, want none: use npm install --omit-lockfile-registry-resolved")
	}
	var project struct{ Dependencies map[string]string }
	text, err = os.ReadFile("web/package.json")
	if err == nil {
		err = json.Unmarshal(text, &project)
	}
	check.OK(t, err)
	for name, version := range project.Dependencies {
		if !regexp.MustCompile(`^\d+\.\d+\.\d+$`).MatchString(version) {
			t.Errorf("%s: got version %s, want an exact one", name, version)
		}
	}
}
