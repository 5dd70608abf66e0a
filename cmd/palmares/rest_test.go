package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"palmares/internal/core/store"
	"palmares/internal/dev/testkit"
)

// The server returns the golden file of every path, on every database.
func TestServesGoldenFiles(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../../rest/testdata/responses/*.http")
	if err != nil || len(files) < 10 {
		t.Fatalf("got %d golden files, %v, want at least 10", len(files), err)
	}
	testkit.Each(t, func(t *testing.T, cfg store.Config) {
		s := startServer(t, cfg, "--demo")
		for _, file := range files {
			recorded, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			request, rest, _ := strings.Cut(string(recorded), "\n\n")
			head, body, _ := strings.Cut(rest, "\n\n")
			path := strings.TrimPrefix(request, "GET ")
			if strings.HasPrefix(path, "/api/embeddings/") {
				continue // requires a key
			}
			response, err := http.Get("http://" + s.address + path)
			if err != nil {
				t.Fatal(err)
			}
			got, _ := io.ReadAll(response.Body)
			response.Body.Close()
			if status, _, _ := strings.Cut(head, "\n"); fmt.Sprint(response.StatusCode) != status || string(got)+"\n" != body {
				t.Errorf("%s: got %d %s, want %s %s", path, response.StatusCode, got, status, body)
			}
			if response.Header.Get("X-Request-Id") == "" || response.Header.Get("Access-Control-Allow-Origin") != "*" {
				t.Errorf("%s: got %v, want a request id and CORS headers", path, response.Header)
			}
		}
		for path, want := range map[string]int{
			"/api/embeddings/plume": 401, "/api/v1//tools": 404, "/api/v1/tools/../stats": 404, "/api": 404, "/api/": 404,
		} {
			response, err := http.Get("http://" + s.address + path)
			if err != nil {
				t.Fatal(err)
			}
			response.Body.Close()
			if response.StatusCode != want {
				t.Errorf("%s: got %d, want %d", path, response.StatusCode, want)
			}
		}
	})
}

// The command prints what a server without a catalog serves.
func TestOpenAPICommand(t *testing.T) {
	t.Parallel()
	cfg := testkit.SQLite(t)
	s := startServer(t, cfg)
	response, err := http.Get("http://" + s.address + "/api/v1/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	served := readAll(t, response.Body)
	printed := succeeds(t, palmares(t, cfg, "openapi", "--listen", s.address)).out
	if printed != served+"\n" {
		t.Errorf("got %d bytes, want the %d that the server serves", len(printed), len(served))
	}
	if elsewhere := succeeds(t, palmares(t, cfg, "openapi", "--public-url", "https://data.example/")).out; !strings.Contains(elsewhere, `"url": "https://data.example"`) {
		t.Errorf("got %s, want the public URL", elsewhere)
	}
}
