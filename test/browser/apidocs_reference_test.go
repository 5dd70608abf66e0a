package browser_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"palmares/internal/catalog/feed/synth"
	"palmares/internal/core/lang"
	"palmares/internal/core/store"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
	"palmares/internal/dev/testkit/blackbox"
	"palmares/internal/dev/testkit/browser"
	"palmares/internal/dev/testkit/wait"
	"palmares/internal/web/apidocs"
	"palmares/rest"
)

// documentedPath is a path of the OpenAPI document with the URL of its example.
type documentedPath struct {
	Tag, Path, Target string
	Keyed             bool
}

// documentedPaths returns all paths of the OpenAPI document of a server.
func documentedPaths(t *testing.T, s *blackbox.Server) []documentedPath {
	t.Helper()
	var document struct {
		Paths map[string]struct {
			Get struct {
				Tags       []string
				Parameters []struct{ Name, Example string }
				Security   []any
			}
		}
	}
	check.OK(t, json.Unmarshal([]byte(blackbox.ReadAll(t, s.Call(t, http.MethodGet, "/api/v1/openapi.json", "").Body)), &document))
	var all []documentedPath
	for path, item := range document.Paths {
		one := documentedPath{Tag: item.Get.Tags[0], Path: path, Target: path, Keyed: item.Get.Security != nil}
		for _, p := range item.Get.Parameters {
			if p.Example != "" {
				one.Target = strings.Replace(one.Target, "{"+p.Name+"}", p.Example, 1)
			}
		}
		all = append(all, one)
	}
	slices.SortFunc(all, func(a, b documentedPath) int { return strings.Compare(a.Path, b.Path) })
	check.Must(t, len(all), pathCount(), "paths")
	return all
}

func pathCount() int {
	open, keyed := rest.Paths()
	return len(open) + len(keyed)
}

const client = "[role=dialog][aria-label='API Client']" // of Scalar

// openReference opens Scalar.
func openReference(p *browser.Page) { p.Click(".bench [data-open]") }

// The reference can send an example request without further input, except for a key
// where one is required.
func TestReferenceSendsRequests(t *testing.T) {
	t.Parallel()
	cfg := testkit.SQLite(t)
	key := blackbox.NewKey(t, cfg, "developer")
	s := startAPIDocsOn(t, cfg)
	base := "http://" + s.Address
	p := browser.Start(t).Open(t, browser.Look{}, base+"/docs")
	openReference(p)
	p.WaitForText("#reference", "/api/v1/tools/{slug}")
	p.WaitForText("main .bench", "Guides")
	all := documentedPaths(t, s)
	plain := slices.IndexFunc(all, func(p documentedPath) bool { return !p.Keyed })
	keyed := slices.IndexFunc(all, func(p documentedPath) bool { return p.Keyed })
	for _, one := range []documentedPath{all[plain], all[keyed]} {
		here := "tag/" + one.Tag + "/GET" + one.Path
		p.Eval(fmt.Sprintf("location.hash = %q", here), nil)
		button := fmt.Sprintf("[id='api-1/%s'] .show-api-client-button", here)
		p.Text(button)
		p.Eval(fmt.Sprintf("document.querySelector(%q).click()", button), nil) // independent of the scroll position
		p.WaitForText(client, "Send get request to "+base+one.Path)
		if one.Keyed {
			p.Fill(client+" input[placeholder=Token]", key)
		}
		p.Eval("performance.clearResourceTimings()", nil)
		p.Click(client + " .address-bar-bg-states button.scalar-button-solid")
		check.Equal(t, statusOf(t, p, base+one.Target), 200, one.Path)
		p.WaitForText(client, "200 OK")
	}
	// Wait for the animation to end.
	p.Eval("Promise.allSettled(document.getAnimations().filter(({effect}) => effect.getComputedTiming().endTime < 10_000).map(({finished}) => finished)).then(() => 0)", nil)
	checkPage(t, p, "docs-tried")
}

// statusOf returns the status of the page's request to exactly this URL: a request that
// visitors have not changed has no parameters.
func statusOf(t *testing.T, p *browser.Page, address string) (status int) {
	t.Helper()
	wait.Until(t, "the page has requested "+address, func() bool {
		p.Eval(fmt.Sprintf("performance.getEntriesByType('resource').find(({name}) => name === %q)?.responseStatus ?? 0", address), &status)
		return status != 0
	})
	return status
}

var exampleLine = regexp.MustCompile(`(?m)^Example: http://[^/]+(/.*)$`)

// The examples in the OpenAPI document, the reference and the explorer exist in
// any catalog.
func TestExamplesExist(t *testing.T) {
	t.Parallel()
	testkit.Each(t, func(t *testing.T, cfg store.Config) {
		blackbox.MustRun(t, blackbox.Command(t, cfg, "import", blackbox.SynthFile(t, synth.Options{Tools: 300, Seed: 1})))
		key := blackbox.NewKey(t, cfg, "pro")
		s := blackbox.Serve(t, cfg)
		respondsOK := func(path string) {
			t.Helper()
			got := s.Call(t, http.MethodGet, path, "", "Authorization", "Bearer "+key)
			body, _ := io.ReadAll(got.Body)
			check.True(t, got.StatusCode == 200, "%s: got %d %s, want 200", path, got.StatusCode, body)
		}
		check.Must(t, s.Call(t, http.MethodGet, "/api/v1/tools/bosco-et-matelots", "").StatusCode, 404, "tool of the demo catalog")
		for _, one := range documentedPaths(t, s) {
			respondsOK(one.Target)
		}
		lines := exampleLine.FindAllStringSubmatch(blackbox.ReadAll(t, s.Call(t, http.MethodGet, "/docs.md", "").Body), -1)
		check.Equal(t, len(lines), pathCount(), "examples")
		for _, line := range lines {
			respondsOK(line[1])
		}
		for _, example := range apidocs.Examples {
			query := check.Try(json.Marshal(map[string]string{"query": example.Query})).OK(t)
			body := blackbox.ReadAll(t, s.Call(t, http.MethodPost, "/graphql", string(query), "Authorization", "Bearer "+key).Body)
			var response struct {
				Data   map[string]any
				Errors []any
			}
			err := json.Unmarshal([]byte(body), &response)
			check.True(t, err == nil && len(response.Errors) == 0, "%s: got %s, want data", example.Title, body)
			for name, value := range response.Data {
				check.True(t, value != nil, "%s: got null for %s, want data", example.Title, name)
			}
		}
	})
}

// The reference and the explorer work without the database.
func TestAPIDocsWithoutDatabase(t *testing.T) {
	t.Parallel()
	cfg := testkit.Postgres(t)
	proxies := testkit.StartToxiproxy(t)
	cfg.DatabaseURL = proxies.Between("database", cfg.DatabaseURL)
	s := blackbox.Serve(t, cfg, "--demo")
	proxies.Cut("database")
	for path, want := range map[string]string{
		"/docs": "API reference", "/docs.md": "Example: http://" + s.Address + "/api/v1/tools/bosco-et-matelots\n", "/explorer": "GraphQL explorer", "/explorer?path=%2Fapi%2Fv1%2Ftools%2Fplume": "GraphQL explorer",
		"/explorer/schema.graphql": "type Query", "/api/v1/openapi.json": `"example": "bosco-et-matelots"`,
		"/guides": "Quick start", "/guides/quick-start": "Quick start", "/guides/webhooks.md": "# Webhooks", "/llms.txt": "# palmares", "/llms-full.txt": "# Caching",
	} {
		got := s.Call(t, http.MethodGet, path, "")
		body := blackbox.ReadAll(t, got.Body)
		check.True(t, got.StatusCode == 200 && strings.Contains(body, want), "%s: got %d %s, want 200 with %q", path, got.StatusCode, body, want)
	}
}

// The reference fills in the key of the signed-in account.
func TestReferenceUsesAccountKey(t *testing.T) {
	t.Parallel()
	s := startAPIDocs(t)
	p := browser.Start(t).Open(t, browser.Look{}, "http://"+s.Address+"/")
	signIn(t, s, p, lang.English, "kay@example.com")
	p.Go("http://" + s.Address + "/docs")
	openReference(p)
	p.WaitForText("#reference", "Test Request")
	wait.Until(t, "the reference has the key", func() bool {
		var found bool
		p.Eval(`[...document.querySelectorAll("#reference input")].some(input => input.value.startsWith("pal_")) || document.getElementById("reference").textContent.includes("pal_")`, &found)
		return found
	})
}
