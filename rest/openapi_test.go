package rest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"

	"palmares/internal/dev/testkit"
	"palmares/rest"
)

func document(t testing.TB) []byte {
	t.Helper()
	data, err := rest.Describe(config)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func loaded(t testing.TB) *openapi3.T {
	t.Helper()
	doc, err := openapi3.NewLoader().LoadFromData(document(t))
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

func TestDocument(t *testing.T) {
	golden(t, "testdata/openapi.json", append(document(t), '\n'))
	doc := loaded(t)
	if err := doc.Validate(t.Context(), openapi3.EnableExamplesValidation()); err != nil {
		t.Error(err)
	}
	// Who tries a path sends what is filled in, and would be told that nothing changed.
	if tag := doc.Components.Parameters["If-None-Match"].Value; tag.Example != nil || tag.Schema.Value.Example != nil {
		t.Error("If-None-Match has an example")
	}
	if doc.Components.Headers["ETag"].Value.Example == nil {
		t.Error("ETag has no example")
	}
	for path, item := range doc.Paths.Map() {
		for status, response := range item.Get.Responses.Map() {
			content := response.Value.Content["application/json"]
			if status != "304" && (content == nil || content.Example == nil) {
				t.Errorf("%s: %s has no example", path, status)
			}
		}
	}
}

// The document is served as any other answer is.
func TestDocumentIsServed(t *testing.T) {
	onDemo(t, func(t *testing.T, handler http.Handler) {
		got := get(handler, "/api/v1/openapi.json?whatever=1")
		if got.Code != 200 || !bytes.Equal(got.Body.Bytes(), document(t)) {
			t.Errorf("%d: %s", got.Code, got.Body)
		}
		if date := got.Header().Get("X-Service-Updated-At"); date != "2026-11-10" {
			t.Errorf("of %q", date)
		}
		again := get(handler, "/api/v1/openapi.json", "If-None-Match", got.Header().Get("ETag"))
		if again.Code != 304 || again.Body.Len() > 0 {
			t.Errorf("again: %d", again.Code)
		}
	})
}

func TestLinters(t *testing.T) {
	node := nodeTools(t)
	file := filepath.Join(t.TempDir(), "openapi.json")
	if err := os.WriteFile(file, document(t), 0o600); err != nil {
		t.Fatal(err)
	}
	if out := node("redocly", "lint", "--config", "redocly.yaml", file); !strings.Contains(out, "Your API description is valid") || strings.Contains(out, "warning") {
		t.Error(out)
	}
	if out := node("spectral", "lint", "--ruleset", "spectral.yaml", "--fail-severity", "hint", file); !strings.Contains(out, "No results") {
		t.Error(out)
	}
}

// A typed client that is generated from the document compiles, and reads.
func TestTypeScriptClient(t *testing.T) {
	node := nodeTools(t)
	server := listen(t, onSQLite(t))
	file := filepath.Join(t.TempDir(), "openapi.json")
	if err := os.WriteFile(file, document(t), 0o600); err != nil {
		t.Fatal(err)
	}
	node("openapi-typescript", file, "--output", "client/schema.d.ts")
	node("tsc", "--project", "client")
	if out := node("node", "client/built/read.js", server); strings.TrimSpace(out) != "48 tools, the first Bosco & Matelots, plume 8.1, 404" {
		t.Error(out)
	}
}

// So does one in Go. It is a module of its own: what generates it is no part
// of the program.
func TestGoClient(t *testing.T) {
	server := listen(t, onSQLite(t))
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(filepath.Join("testdata", "goclient"))); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "catalog"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "openapi.json"), document(t), 0o600); err != nil {
		t.Fatal(err)
	}
	run := func(args ...string) string {
		cmd := exec.CommandContext(t.Context(), "go", args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GOFLAGS=-mod=mod", "CGO_ENABLED=0")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, out)
		}
		return string(out)
	}
	run("tool", "oapi-codegen", "-generate", "types,client", "-package", "catalog", "-o", "catalog/catalog.go", "openapi.json")
	run("build", "-o", "read", ".")
	out, err := exec.CommandContext(t.Context(), filepath.Join(dir, "read"), server).CombinedOutput()
	if err != nil || string(out) != "48 tools, the first Bosco & Matelots, plume 8.1, No tool has the slug nobody.\n" {
		t.Errorf("%v: %s", err, out)
	}
}

// nodeTools runs what comes from npm, installed where the lock file is.
func nodeTools(t *testing.T) func(name string, args ...string) string {
	t.Helper()
	dir, err := filepath.Abs(filepath.Join("testdata", "node"))
	if err != nil {
		t.Fatal(err)
	}
	testkit.NPM(t, dir)
	run := func(name string, args ...string) string {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		defer cancel()
		cmd := exec.CommandContext(ctx, name, args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "REDOCLY_TELEMETRY=off", "REDOCLY_SUPPRESS_UPDATE_NOTICE=true", "SCARF_ANALYTICS=false")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
		}
		return string(out)
	}
	return func(name string, args ...string) string {
		if name != "node" {
			name = filepath.Join(dir, "node_modules", ".bin", name)
		}
		return run(name, args...)
	}
}

// Every property says what it is, as every field of the schema does.
func TestEverythingIsDescribed(t *testing.T) {
	for name, schema := range loaded(t).Components.Schemas {
		if schema.Value.Description == "" {
			t.Errorf("%s is not described", name)
		}
		for property, value := range schema.Value.Properties {
			if value.Ref == "" && value.Value.Description == "" {
				t.Errorf("%s.%s is not described", name, property)
			}
		}
		if len(schema.Value.Required) != len(schema.Value.Properties) {
			t.Errorf("%s: %d of %d properties are always there", name, len(schema.Value.Required), len(schema.Value.Properties))
		}
	}
	if !json.Valid(document(t)) {
		t.Error("it is no JSON")
	}
}
