package web_test

import (
	"encoding/json"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"palmares/internal/catalog/feed/synth"
	"palmares/internal/core/store"
	"palmares/internal/dev/testkit"
	"palmares/internal/dev/testkit/blackbox"
	"palmares/internal/web/workbench"
)

var exampleLine = regexp.MustCompile(`(?m)^Example: http://[^/]+(/.*)$`)

// The examples in the OpenAPI document, the reference and the explorer exist in
// any catalog.
func TestExamplesExist(t *testing.T) {
	t.Parallel()
	testkit.Each(t, func(t *testing.T, cfg store.Config) {
		blackbox.Succeeds(t, blackbox.Command(t, cfg, "import", blackbox.SynthFile(t, synth.Options{Tools: 300, Seed: 1})))
		key := blackbox.NewKey(t, cfg, "pro")
		s := blackbox.Serve(t, cfg)
		answers := func(path string) {
			t.Helper()
			got := s.Call(t, http.MethodGet, path, "", "Authorization", "Bearer "+key)
			if body, _ := io.ReadAll(got.Body); got.StatusCode != 200 {
				t.Errorf("%s: got %d %s, want 200", path, got.StatusCode, body)
			}
		}
		if got := s.Call(t, http.MethodGet, "/api/v1/tools/bosco-et-matelots", ""); got.StatusCode != 404 {
			t.Fatal("got a catalog with tools of the demo, want another")
		}
		for _, one := range triedBy(t, s) {
			answers(one.Target)
		}
		lines := exampleLine.FindAllStringSubmatch(blackbox.ReadAll(t, s.Call(t, http.MethodGet, "/docs.md", "").Body), -1)
		if len(lines) != 10 {
			t.Errorf("got %d examples, want more", len(lines))
		}
		for _, line := range lines {
			answers(line[1])
		}
		for _, example := range workbench.Examples {
			query, err := json.Marshal(map[string]string{"query": example.Query})
			if err != nil {
				t.Fatal(err)
			}
			body := blackbox.ReadAll(t, s.Call(t, http.MethodPost, "/graphql", string(query), "Authorization", "Bearer "+key).Body)
			var answer struct {
				Data   map[string]any
				Errors []any
			}
			if err := json.Unmarshal([]byte(body), &answer); err != nil || len(answer.Errors) > 0 {
				t.Errorf("%s: got %s, want data", example.Title, body)
			}
			for name, value := range answer.Data {
				if value == nil {
					t.Errorf("%s: got no %s", example.Title, name)
				}
			}
		}
	})
}

// The reference and the explorer work without the database.
func TestWorkbenchWithoutDatabase(t *testing.T) {
	t.Parallel()
	cfg := testkit.Postgres(t)
	line := blackbox.NewLine(t, cfg.DatabaseURL)
	cfg.DatabaseURL = line.URL
	s := blackbox.Serve(t, cfg, "--demo")
	line.Cut()
	for path, want := range map[string]string{
		"/docs": "API reference", "/docs.md": "Example: http://" + s.Address + "/api/v1/tools/bosco-et-matelots\n", "/explorer": "GraphQL explorer", "/explorer?path=%2Fapi%2Fv1%2Ftools%2Fplume": "GraphQL explorer",
		"/explorer/schema.graphql": "type Query", "/api/v1/openapi.json": `"example": "bosco-et-matelots"`,
		"/guides": "Quick start", "/guides/quick-start": "Quick start", "/guides/webhooks.md": "# Webhooks", "/llms.txt": "# palmares", "/llms-full.txt": "# Caching",
	} {
		got := s.Call(t, http.MethodGet, path, "")
		if body := blackbox.ReadAll(t, got.Body); got.StatusCode != 200 || !strings.Contains(body, want) {
			t.Errorf("%s: got %d without %q", path, got.StatusCode, want)
		}
	}
}
