package apidocs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"

	"palmares/internal/core/cache"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
	"palmares/internal/dev/testkit/repo"
	"palmares/internal/web/page"
	"palmares/rest"
)

func TestReferenceLinksToMarkdown(t *testing.T) {
	for name, files := range map[string]fstest.MapFS{"without assets": withoutAssets, "with assets": withAssets} {
		docs := get(t, newHandler(files, ""), "/docs").Body.String()
		for _, want := range []string{`<link rel="alternate" type="text/markdown" href="/docs.md">`, `<a href="/docs.md">`} {
			check.Contains(t, docs, want, name)
		}
	}
	for _, c := range []struct{ path, accept string }{{"/explorer.md", ""}, {"/explorer", "text/markdown"}} {
		got := get(t, newHandler(withAssets, ""), c.path, "Accept", c.accept)
		check.Equal(t, got.Header().Get("Content-Type"), page.MarkdownType, "%s: %s", c.path, got.Body)
		check.Equal(t, strings.Count(got.Body.String(), "```graphql"), len(Examples), "%s: %s", c.path, got.Body)
	}
	check.Contains(t, get(t, newHandler(withAssets, ""), "/explorer").Body.String(), `type="text/markdown" href="/en/explorer.md"`, "link to Markdown in the explorer")
}

// The reference has everything without JavaScript. GraphiQL and Scalar are not
// part of the first load.
func TestReference(t *testing.T) {
	body := get(t, newHandler(withAssets, ""), ReferencePath).Body.String()
	for _, want := range []string{
		"<summary>One tool</summary>", "<h2>One tool</h2>", `<a href="#tag/tools/GET/api/v1/tools/%7bslug%7d">One tool</a>`, `<section id="tag/tools/GET/api/v1/tools/{slug}">`, `data-open="tag/tools/GET/api/v1/tools/{slug}"`,
		"<code>GET /api/v1/tools/{slug}</code>", "Not <code>&lt;b&gt;</code>.", "<dt><code>slug</code></dt>", "Required. Value: text.",
		`Response: <a href="#model/ToolItem"><code>ToolItem</code></a>`, `<h3 id="model/ToolItem">`, "number or null", "<dt><code>404</code></dt>", "in French as the API sends it: <code>Source : palmares (https://palmares.example)", "called a release in the API",
		`href="/api/v1/tools/bosco"`, `href="/en/explorer?path=%2fapi%2fv1%2ftools%2fbosco"`, `"app":{"script":"/assets/workbench/scalar-EEEEEEEE.js","style":"/assets/workbench/scalar-EEEEEEEE.css"}`,
	} {
		check.Contains(t, body, want)
	}
	all := []rest.Operation{{Tag: "tools", Summary: "Tools, as JSON"}, {Tag: "stats", Summary: "Statistics"}, {Tag: "tools", Summary: "One tool"}}
	check.Equal(t, fmt.Sprint(reference{Config: Config{Operations: all}}.Groups()), fmt.Sprint([]group{{"Tools", []rest.Operation{all[0], all[2]}}, {"Statistics", all[1:2]}}))
	prices := group{"Prices", []rest.Operation{{Path: "/p", Summary: "Current prices, by name"}, {Path: "/p.csv", Summary: "Current prices, by name, as CSV"}, {Path: "/p/{slug}", Summary: "One price, with its history"}}}
	for i, want := range []string{"List prices", "CSV", "One price"} {
		check.Equal(t, prices.Short(prices.Operations[i]), want)
	}
	for _, path := range []string{ReferencePath, ExplorerPath} {
		body := get(t, newHandler(withAssets, ""), path).Body.String()
		check.Equal(t, regexp.MustCompile(`<(script|link)[^>]*(graphiql|scalar)-[^>]*>`).FindString(body), "", "%s: want it to be loaded on demand", path)
	}
}

func TestReferenceAsMarkdown(t *testing.T) {
	for _, c := range []struct{ path, accept string }{{MarkdownPath, ""}, {ReferencePath, "text/markdown"}} {
		got := get(t, newHandler(withAssets, ""), c.path, "Accept", c.accept)
		check.Equal(t, got.Code, 200, "%s: want Markdown", c.path)
		check.Equal(t, got.Header().Get("Content-Type"), "text/markdown; charset=utf-8", "%s: want Markdown", c.path)
		for _, text := range []string{"# palmares API reference", "## GET /api/v1/tools/{slug}", "- `slug` (text, required):", "Response: `ToolItem`", "### ToolItem", "- `score` (number or null): From 0 to 10.", "- 404: Nothing has this slug.",
			"```graphql\n# Search for tools", "\"answer\": 42", "type Query {", "a cost of 20000", "Source : palmares (https://palmares.example)", "Example: https://palmares.example/api/v1/tools/bosco\n"} {
			check.Contains(t, got.Body.String(), text, c.path)
		}
	}
}

func TestLLMs(t *testing.T) {
	handler := newHandler(withAssets, "")
	got := get(t, handler, LLMsPath)
	text := got.Body.String()
	check.Equal(t, got.Code, 200, got.Header())
	check.Equal(t, got.Header().Get("Content-Type"), "text/plain; charset=utf-8", got.Header())
	if !regexp.MustCompile(`\A# palmares\n\n> [^\n]+\n\n(- [^\n]+\n)+\n## Guides\n\n- \[`).MatchString(text) {
		t.Errorf("got %s, want the form of llmstxt.org", text)
	}
	for _, want := range []string{"Source : palmares (", "search=", "`agents`, `code`.", "https://palmares.example/mcp ", "\n## REST\n\n- [OpenAPI document](https://palmares.example/api/v1/openapi.json): ", "- [/api/v1/tools/{slug}](https://palmares.example/api/v1/openapi.json): One tool.\n", "guides/caching.md): Cache.", "\n## Optional\n"} {
		check.Contains(t, text, want)
	}
	full := get(t, handler, LLMsFullPath).Body.String()
	for _, want := range []string{"# palmares\n", "# Caching\n", "# palmares API reference\n", "type Query {"} {
		check.Contains(t, full, want)
	}
}

// Example requests are looked up once per release. If that fails, those of the
// demo catalog are shown.
func TestSamples(t *testing.T) {
	for path, files := range map[string]fstest.MapFS{MarkdownPath: withAssets, ReferencePath: withoutAssets} {
		lookups, release, failure := 0, 1, error(nil)
		responses := cache.New(1<<20, nil, slog.New(slog.DiscardHandler))
		handler := newHandlerWithSamples(files, "", responses, func(context.Context) (*rest.Samples, error) {
			lookups++
			return &rest.Samples{Paths: map[string]string{"/api/v1/tools/{slug}": "/api/v1/tools/of-" + string(rune('0'+release))}, Release: release}, failure
		})
		expect := func(want string, wantLookups int) {
			t.Helper()
			for range 2 {
				if got := get(t, handler, path); got.Code != 200 || !strings.Contains(got.Body.String(), want) {
					t.Errorf("%s: got %d %s, want %s", path, got.Code, got.Body, want)
				}
			}
			check.Equal(t, lookups, wantLookups, "%s: lookups", path)
		}
		expect("/api/v1/tools/of-1", 1)
		release = 2
		expect("/api/v1/tools/of-1", 1)
		if err := responses.Renew(release); err != nil { // looks the samples up again
			t.Fatal(err)
		}
		expect("/api/v1/tools/of-2", 2)
		failure = errors.New("unavailable")
		expect("/api/v1/tools/of-2", 2) // cached
		responses.Publish(3)
		expect("/api/v1/tools/plume", 4)
	}
}

// Features of Scalar that contact other hosts are turned off.
func TestScalarConfigurationWithNode(t *testing.T) {
	repo.Read(t, "internal/web/apidocs/web/src")
	cmd := exec.CommandContext(t.Context(), testkit.Node.Ensure(t), "--input-type=module", "--eval", `
		import { configuration, plain } from "./src/configuration.js";
		const content = plain({ paths: { "/a": { get: { parameters: [{ in: "query", name: "a", schema: { type: "integer", minimum: 1 } }, { in: "query", name: "b", required: true }, { in: "path", name: "c" }, { $ref: "#/d" }] } }, "/e": { get: {} } } });
		console.log(JSON.stringify(configuration({ content, server: "https://here.example", dark: true })));`)
	cmd.Dir = "web"
	out, err := cmd.Output()
	check.OK(t, err)
	var got map[string]any
	if err := json.Unmarshal(out, &got); err != nil {
		t.Fatalf("got %v for %s, want valid JSON", err, out)
	}
	for name, want := range map[string]any{
		"content": map[string]any{"paths": map[string]any{"/a": map[string]any{"get": map[string]any{"parameters": []any{
			map[string]any{"in": "query", "name": "a", "example": "", "schema": map[string]any{"type": "integer", "exclusiveMinimum": 0.0}}, map[string]any{"in": "query", "name": "b", "required": true}, map[string]any{"in": "path", "name": "c"}, map[string]any{"$ref": "#/d"},
		}}}, "/e": map[string]any{"get": map[string]any{}}}},
		"servers":              []any{map[string]any{"url": "https://here.example", "description": "This server."}},
		"forceDarkModeState":   "dark",
		"theme":                "none",
		"withDefaultFonts":     false,
		"telemetry":            false,
		"agent":                map[string]any{"disabled": true, "hideAddApi": true},
		"mcp":                  map[string]any{"disabled": true},
		"showDeveloperTools":   "never",
		"hideClientButton":     true,
		"persistAuth":          false,
		"documentDownloadType": "none",
	} {
		if !reflect.DeepEqual(got[name], want) {
			t.Errorf("%s: got %v, want %v", name, got[name], want)
		}
	}
	for _, name := range []string{"proxyUrl", "plugins", "customCss"} {
		check.Equal(t, got[name], nil, name)
	}
}

func TestDeprecatedPaths(t *testing.T) {
	const sentence = "Deprecated since 2026-11-16, to be removed on 2027-06-30."
	log := slog.New(slog.DiscardHandler)
	pages := newPages(Config{
		Cache: cache.New(1<<20, nil, log), Key: func(*http.Request) string { return "" },
		Samples:    func(context.Context) (*rest.Samples, error) { return &rest.Samples{Release: 1}, nil },
		Run:        func(context.Context, string) ([]byte, error) { return []byte("{}"), nil },
		Operations: []rest.Operation{{Path: "/api/v1/old", Summary: "Old", Query: "query old { a }", Deprecated: sentence}},
		Explain:    func(string) (string, map[string]any, error) { return "query old { a }", nil, nil },
	}, withoutAssets)
	for _, path := range []string{ReferencePath, MarkdownPath} {
		check.Contains(t, get(t, pages, path).Body.String(), sentence, path)
	}
	if _, _, note := pages.queryToOpen(httptest.NewRequest(http.MethodGet, ExplorerPath+"?path=/api/v1/old", nil)); !strings.Contains(note, sentence) {
		t.Errorf("explorer: got note %q, want %s", note, sentence)
	}
}
