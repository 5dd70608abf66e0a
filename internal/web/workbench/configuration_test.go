package workbench

import (
	"encoding/json"
	"os/exec"
	"reflect"
	"testing"

	"palmares/internal/dev/testkit"
)

// What Scalar has that would leave this host, or that nobody asked for, is
// switched off.
func TestScalarIsToldToStay(t *testing.T) {
	node, err := testkit.Node.Ensure()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), node, "--input-type=module", "--eval", `
		import { configuration } from "./src/configuration.js";
		console.log(JSON.stringify(configuration({ url: "/document", server: "https://here.example", dark: true })));`)
	cmd.Dir = "web"
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var told map[string]any
	if err := json.Unmarshal(out, &told); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for name, want := range map[string]any{
		"url":                  "/document",
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
		if !reflect.DeepEqual(told[name], want) {
			t.Errorf("%s is %v, not %v", name, told[name], want)
		}
	}
	for _, name := range []string{"proxyUrl", "plugins", "customCss"} {
		if told[name] != nil {
			t.Errorf("%s is %v", name, told[name])
		}
	}
}
