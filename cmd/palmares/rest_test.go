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

// Every path of the interface is served by the program itself, with the bytes
// of its golden file: the same on every database.
func TestServesEveryPath(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../../rest/testdata/answers/*.http")
	if err != nil || len(files) < 10 {
		t.Fatalf("%d golden files, %v", len(files), err)
	}
	testkit.Each(t, func(t *testing.T, cfg store.Config) {
		s := startServer(t, cfg, "--demo")
		for _, file := range files {
			recorded, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			asked, rest, _ := strings.Cut(string(recorded), "\n\n")
			head, body, _ := strings.Cut(rest, "\n\n")
			path := strings.TrimPrefix(asked, "GET ")
			if strings.HasPrefix(path, "/api/embeddings/") {
				continue // asks for a key
			}
			response, err := http.Get("http://" + s.address + path)
			if err != nil {
				t.Fatal(err)
			}
			got, _ := io.ReadAll(response.Body)
			response.Body.Close()
			if status, _, _ := strings.Cut(head, "\n"); fmt.Sprint(response.StatusCode) != status || string(got)+"\n" != body {
				t.Errorf("%s: %d %s", path, response.StatusCode, got)
			}
			if response.Header.Get("X-Request-Id") == "" || response.Header.Get("Access-Control-Allow-Origin") != "*" {
				t.Errorf("%s: %v", path, response.Header)
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
				t.Errorf("%s: %d", path, response.StatusCode)
			}
		}
	})
}

// What is printed is what is served, where there is no catalog to take examples
// from.
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
		t.Errorf("served %d bytes, printed %d", len(served), len(printed))
	}
	if elsewhere := succeeds(t, palmares(t, cfg, "openapi", "--public-url", "https://data.example/")).out; !strings.Contains(elsewhere, `"url": "https://data.example"`) {
		t.Error("it does not tell where it is served")
	}
}
