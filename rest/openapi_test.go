package rest_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/vektah/gqlparser/v2/ast"
	"go.yaml.in/yaml/v3"

	"palmares/auth"
	"palmares/graph"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
	"palmares/rest"
)

func document(t testing.TB) []byte {
	t.Helper()
	return check.Try(rest.Describe(config)).OK(t)
}

func load(t testing.TB, document []byte) *openapi3.T {
	t.Helper()
	return check.Try(openapi3.NewLoader().LoadFromData(document)).OK(t)
}

type documentedPath struct{ operation, example string }

// documentedPaths returns the paths of a document, each with the request whose
// response is its example.
func documentedPaths(t *testing.T, document []byte) []documentedPath {
	t.Helper()
	var paths []documentedPath
	for path, item := range load(t, document).Paths.Map() {
		for _, ref := range item.Get.Parameters {
			switch ref.Value.Name {
			case "slug":
				path = strings.Replace(path, "{slug}", fmt.Sprint(ref.Value.Example), 1)
			case "limit":
				path += "?limit=2"
			}
		}
		if strings.Contains(path, "/changes") { // the first events are about categories
			path += "&types=tool.updated,price.changed"
		}
		graphQL, ok := item.Get.Extensions["x-graphql"].(map[string]any)
		if !ok { // a download
			continue
		}
		name := regexp.MustCompile(`^query (\w+)`).FindStringSubmatch(graphQL["query"].(string))
		paths = append(paths, documentedPath{name[1], path})
	}
	return paths
}

func TestOpenAPIDocument(t *testing.T) {
	handler := onSQLite(t)
	for _, path := range documentedPaths(t, document(t)) {
		var indented bytes.Buffer
		check.OK(t, json.Indent(&indented, get(handler, path.example).Body.Bytes(), "", "  "))
		golden(t, "examples/"+path.operation+".json", append(stable(indented.Bytes()), '\n'))
	}
	golden(t, "testdata/openapi.json", append(document(t), '\n')) // contains the examples
	doc := load(t, document(t))
	check.Equal(t, doc.Validate(t.Context(), openapi3.EnableExamplesValidation()), nil)
	// API consoles would send an example of this header, and receive a 304.
	tag := doc.Components.Parameters["If-None-Match"].Value
	check.Equal(t, tag.Example, nil, "If-None-Match")
	check.Equal(t, tag.Schema.Value.Example, nil, "If-None-Match")
	check.True(t, doc.Components.Headers["ETag"].Value.Example != nil, "ETag: got no example, want one")
	for path, item := range doc.Paths.Map() {
		for status, response := range item.Get.Responses.Map() {
			content := response.Value.Content["application/json"]
			check.True(t, status == "304" || status == "200" && isDownload(path) || content != nil && content.Example != nil, "%s, status %s: got no example, want one", path, status)
		}
	}
}

func isDownload(path string) bool {
	return strings.HasSuffix(path, ".csv") || strings.HasSuffix(path, ".ndjson")
}

// Each response has one media type: generated clients have a union type for the body
// otherwise. format= is served, but not documented.
func TestOpenAPIHasOneMediaTypePerResponse(t *testing.T) {
	downloads := 0
	for path, item := range load(t, document(t)).Paths.Map() {
		want := "application/json"
		if isDownload(path) {
			downloads++
			want = map[string]string{".csv": "text/csv", ".ndjson": "application/x-ndjson"}[filepath.Ext(path)]
		}
		if content := item.Get.Responses.Status(200).Value.Content; len(content) != 1 || content[want] == nil {
			t.Errorf("%s: got the media types %v, want %s alone", path, slices.Collect(maps.Keys(content)), want)
		}
		for _, p := range item.Get.Parameters {
			check.True(t, p.Value.Name != "format" && (!isDownload(path) || p.Value.Name != "page" && p.Value.Name != "limit"), "%s: got the parameter %s, want it undocumented", path, p.Value.Name)
		}
	}
	check.Equal(t, downloads, 10, "downloads")
}

// Without a format, generated clients read numbers with 32 bits, and 9.3 as
// 9.300000190734863. Without names, each of them invents its own for lists and
// enums.
func TestOpenAPISchemasSuitGenerators(t *testing.T) {
	text := string(document(t))
	numbers, doubles := strings.Count(text, `"type": "number"`), strings.Count(text, `"format": "double"`)
	check.True(t, numbers != 0, "got %d numbers, %d of them double, want all", numbers, doubles)
	check.Equal(t, numbers, doubles)
	doc := load(t, document(t))
	for _, name := range []string{"ToolList", "ComparisonList", "PriceList", "RetiredToolList", "CategoryList", "VersionList", "Icp", "Pricing", "RetirementReason", "ToolSort"} {
		check.True(t, doc.Components.Schemas[name] != nil, "got no schema %s, want one", name)
	}
	for path, item := range doc.Paths.Map() {
		if isDownload(path) {
			continue
		}
		schema := item.Get.Responses.Status(200).Value.Content["application/json"].Schema
		check.True(t, schema.Ref != "", "%s: got an unnamed response, want a component", path)
	}
	for name, schema := range doc.Components.Schemas {
		for property, value := range schema.Value.Properties {
			check.True(t, value.Ref != "" || len(value.Value.Enum) <= 1, "%s.%s: got an unnamed enum, want a component", name, property)
		}
	}
	for _, name := range []string{"Price", "PriceItem", "PriceList"} {
		check.Contains(t, strings.ToLower(doc.Components.Schemas[name].Value.Description), "price", name)
	}
}

func TestOpenAPIAsYAML(t *testing.T) {
	handler := onSQLite(t)
	asJSON, asYAML := get(handler, "/api/v1/openapi.json"), get(handler, "/api/v1/openapi.yaml")
	check.Must(t, asYAML.Code, 200, "%v %.200s", asYAML.Header(), asYAML.Body)
	check.Must(t, asYAML.Header().Get("Content-Type"), "application/yaml", "%v %.200s", asYAML.Header(), asYAML.Body)
	check.MustTrue(t, strings.HasPrefix(asYAML.Body.String(), "openapi: 3.0.3\n"), "got %d %v %.200s, want YAML", asYAML.Code, asYAML.Header(), asYAML.Body)
	var want, got any
	check.OK(t, json.Unmarshal(asJSON.Body.Bytes(), &want))
	check.OK(t, yaml.Unmarshal(asYAML.Body.Bytes(), &got))
	again := check.Try(json.Marshal(got)).OK(t)
	check.OK(t, json.Unmarshal(again, &got))
	check.DeepEqual(t, got, want)
	for _, name := range []string{"Cache-Control", "Vary", "X-Service-Release", "X-Service-Updated-At"} {
		check.Equal(t, asYAML.Header().Get(name), asJSON.Header().Get(name), name)
	}
	check.Equal(t, asJSON.Body.String(), string(document(t)))
	check.Equal(t, asJSON.Header().Get("X-Service-Updated-At"), "2026-11-10", "date")
	for path, got := range map[string]*httptest.ResponseRecorder{"/api/v1/openapi.yaml": asYAML, "/api/v1/openapi.json?whatever=1": asJSON} {
		check.Equal(t, get(handler, path, "If-None-Match", got.Header().Get("ETag")).Code, 304, "%s with If-None-Match", path)
	}
}

func TestOpenAPIWithNodeLinters(t *testing.T) {
	node := nodeTools(t)
	file := filepath.Join(t.TempDir(), "openapi.json")
	check.OK(t, os.WriteFile(file, document(t), 0o600))
	out := node("redocly", "lint", "--config", "redocly.yaml", file)
	check.Contains(t, out, "Your API description is valid", "redocly")
	check.Lacks(t, out, "warning", "redocly")
	check.Contains(t, node("spectral", "lint", "--ruleset", "spectral.yaml", "--fail-severity", "hint", file), "No results", "spectral: want no results")
}

// Typed clients generated from the document compile without casts, and work.
func TestTypeScriptClientsWithNode(t *testing.T) {
	node := nodeTools(t)
	server := listenWithKeys(t)
	file := filepath.Join(t.TempDir(), "openapi.json")
	check.OK(t, os.WriteFile(file, document(t), 0o600))
	t.Setenv("DOCUMENT", file)
	t.Setenv("SERVER", server)
	node("openapi-typescript", file, "--output", "client/schema.d.ts")
	node("orval", "--config", "orval.config.cjs")
	node("openapi-ts", "--file", "heyapi.config.mjs")
	node("tsc", "--project", "client")
	withColumns := clientOutput + " " + toolColumns(t, server)
	for client, want := range map[string]string{"openapi-fetch": withColumns, "heyapi": withColumns, "orval": clientOutput} {
		check.Equal(t, strings.TrimSpace(node("node", "client/built/"+client+".js", server)), want, client)
	}
}

const clientOutput = "48 tools, the first Bosco & Matelots, plume 8.1, No tool has the slug nobody."

// toolColumns returns the first line of the download of tools, which clients print too.
func toolColumns(t *testing.T, server string) string {
	t.Helper()
	r := check.Try(http.NewRequestWithContext(t.Context(), http.MethodGet, server+"/api/v1/tools.csv", nil)).OK(t)
	r.Header.Set("Authorization", "Bearer key")
	response := check.Try(http.DefaultClient.Do(r)).OK(t)
	defer response.Body.Close()
	columns := check.Try(bufio.NewReader(response.Body).ReadString('\n')).OK(t)
	return strings.TrimSpace(columns)
}

// listenWithKeys serves the demo catalog. Every key is valid.
func listenWithKeys(t *testing.T) string {
	t.Helper()
	handler := onSQLite(t)
	return listen(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		caller := auth.Caller{Plan: auth.Anonymous}
		if r.Header.Get("Authorization") == "Bearer key" {
			caller.Plan = auth.Developer
		}
		handler.ServeHTTP(w, r.WithContext(auth.WithCaller(r.Context(), caller)))
	}))
}

// The Go client is a separate module, which has the generator as a tool.
func TestGoClient(t *testing.T) {
	testkit.FullTier(t, "it compiles a program")
	server := listenWithKeys(t)
	dir := t.TempDir()
	check.OK(t, os.CopyFS(dir, os.DirFS(filepath.Join("testdata", "goclient"))))
	check.OK(t, os.Mkdir(filepath.Join(dir, "catalog"), 0o700))
	check.OK(t, os.WriteFile(filepath.Join(dir, "openapi.json"), document(t), 0o600))
	run := func(args ...string) string {
		cmd := exec.CommandContext(t.Context(), "go", args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GOFLAGS=-mod=mod")
		out, err := cmd.CombinedOutput()
		check.MustTrue(t, err == nil, "go %s: got %v, want success\n%s", strings.Join(args, " "), err, out)
		return string(out)
	}
	run("tool", "oapi-codegen", "-generate", "types,client", "-package", "catalog", "-o", "catalog/catalog.go", "openapi.json")
	run("build", "-o", "read", ".")
	out, err := exec.CommandContext(t.Context(), filepath.Join(dir, "read"), server).CombinedOutput()
	want := clientOutput + " " + toolColumns(t, server) + "\n"
	check.OK(t, err)
	check.Equal(t, string(out), want)
}

// nodeTools installs npm packages and returns a function that runs them.
func nodeTools(t *testing.T) func(name string, args ...string) string {
	t.Helper()
	dir := check.Try(filepath.Abs(filepath.Join("testdata", "node"))).OK(t)
	testkit.NPM(t, dir)
	run := func(name string, args ...string) string {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		defer cancel()
		cmd := exec.CommandContext(ctx, name, args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "REDOCLY_TELEMETRY=off", "REDOCLY_SUPPRESS_UPDATE_NOTICE=true", "SCARF_ANALYTICS=false")
		out, err := cmd.CombinedOutput()
		check.MustTrue(t, err == nil, "%s %s: got %v, want success\n%s", name, strings.Join(args, " "), err, out)
		return string(out)
	}
	return func(name string, args ...string) string {
		if name != "node" {
			name = filepath.Join(dir, "node_modules", ".bin", name)
		}
		return run(name, args...)
	}
}

func TestOpenAPISchemasAreDescribed(t *testing.T) {
	for name, schema := range load(t, document(t)).Components.Schemas {
		check.True(t, schema.Value.Description != "", "%s: got no description, want one", name)
		for property, value := range schema.Value.Properties {
			check.True(t, value.Ref != "" || value.Value.Description != "", "%s.%s: got no description, want one", name, property)
		}
		check.Equal(t, len(schema.Value.Required), len(schema.Value.Properties), "%s: required properties", name)
	}
}

// registerDownloads makes the library read the bodies of downloads, which it does not know.
func registerDownloads() {
	openapi3filter.RegisterBodyDecoder("text/csv", openapi3filter.FileBodyDecoder)
	openapi3filter.RegisterBodyDecoder("application/x-ndjson", openapi3filter.FileBodyDecoder)
}

// validateResponse compares a response with the document: status, headers and body.
func validateResponse(request *openapi3filter.RequestValidationInput, got *httptest.ResponseRecorder) error {
	err := openapi3filter.ValidateResponse(request.Request.Context(), &openapi3filter.ResponseValidationInput{
		RequestValidationInput: request, Status: got.Code, Header: got.Header(), Body: io.NopCloser(bytes.NewReader(got.Body.Bytes())),
		Options: &openapi3filter.Options{IncludeResponseStatus: true, MultiError: true},
	})
	if err != nil {
		return err
	}
	described := request.Route.Operation.Responses.Status(got.Code).Value.Headers
	for name := range got.Header() {
		if strings.HasPrefix(name, "X-") && name != "X-Content-Type-Options" && !slices.ContainsFunc(slices.Collect(maps.Keys(described)), func(known string) bool { return strings.EqualFold(known, name) }) {
			return fmt.Errorf("the header %s is not documented", name)
		}
	}
	return nil
}

const deprecationLink = `</changelog>; rel="deprecation"; type="text/html"`

func TestDeprecatedPath(t *testing.T) {
	defer rest.AddDeprecated("/api/v1/old", "stats", "2026-11-16", "2027-06-30")()
	handler := onSQLite(t)
	tag := get(handler, "/api/v1/old").Header().Get("ETag")
	current := get(handler, "/api/v1/stats") // the same operation, which is cached by now
	for _, c := range []struct {
		target string
		code   int
		tag    string
	}{{"/api/v1/old", 200, ""}, {"/api/v1/old", 304, tag}, {"/api/v1/old?as_of=1", 200, ""}, {"/api/v1/old?as_of=x", 400, ""}} {
		got := get(handler, c.target, "If-None-Match", c.tag)
		header := got.Header()
		if got.Code != c.code || header.Get("Deprecation") != "@1794787200" || header.Get("Sunset") != "Wed, 30 Jun 2027 00:00:00 GMT" || !slices.Contains(header["Link"], deprecationLink) {
			t.Errorf("%s: got %d %v, want %d with Deprecation, Sunset and Link", c.target, got.Code, header, c.code)
		}
	}
	for _, got := range []string{current.Header().Get("Deprecation"), get(handler, "/api/v1/stats").Header().Get("Deprecation"), get(handler, "/api/v1/openapi.json").Header().Get("Deprecation")} {
		check.Equal(t, got, "", "Deprecation on another path")
	}
	operation := load(t, document(t)).Paths.Value("/api/v1/old").Get
	check.Equal(t, operation.Deprecated, true)
	check.Contains(t, operation.Description, "Deprecated since 2026-11-16, to be removed on 2027-06-30.")
	check.True(t, operation.Responses.Status(200).Value.Headers["Sunset"] != nil, "got %+v, want a deprecated operation with its dates and headers", operation)
	check.True(t, !load(t, document(t)).Paths.Value("/api/v1/stats").Get.Deprecated, "got /api/v1/stats deprecated, want only the old path")
	demo, _ := handlerOver(t, nil)
	operations := demo.Operations()
	old := operations[len(operations)-1]
	check.Equal(t, old.Path, "/api/v1/old")
	check.True(t, old.Deprecated != "", "got %+v, want it deprecated for the reference", old)
	check.Equal(t, operations[0].Deprecated, "")
}

func TestDeprecatedFieldOfAResponse(t *testing.T) {
	field := graph.Schema().Types["Statistics"].Fields.ForName("toolsTested")
	defer func(before ast.DirectiveList) { field.Directives = before }(field.Directives)
	field.Directives = ast.DirectiveList{{Name: "deprecated", Arguments: ast.ArgumentList{{
		Name: "reason", Value: &ast.Value{Kind: ast.StringValue, Raw: "It is useless. Deprecated since 2026-11-16."},
	}}}}
	header := get(onSQLite(t), "/api/v1/stats").Header()
	check.Equal(t, header.Get("Deprecation"), "@1794787200", header)
	check.Equal(t, header.Get("Sunset"), "", header)
	check.True(t, slices.Contains(header["Link"], deprecationLink), "got %v, want Deprecation and Link, and no Sunset", header)
	doc := load(t, document(t))
	properties := doc.Components.Schemas["Statistics"].Value.Properties
	check.Equal(t, properties["tools_tested"].Value.Deprecated, true)
	check.Equal(t, properties["tools_total"].Value.Deprecated, false)
	check.True(t, !doc.Paths.Value("/api/v1/stats").Get.Deprecated, "got the path deprecated, want only its field")
}
