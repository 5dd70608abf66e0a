package server_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"palmares/internal/core/store"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
	"palmares/internal/server"
	"palmares/internal/server/servertest"
)

// ofImport matches what is different after each import: the numbers of events,
// and when they were published.
var ofImport = regexp.MustCompile(`evt_\d+|"timestamp":"[^"]*"`)

// The whole server responds to every path with the golden file of the REST API, on every
// database.
func TestServesGoldenFiles(t *testing.T) {
	files, err := filepath.Glob("../../rest/testdata/responses/*.http")
	check.MustTrue(t, err == nil && len(files) >= 10, "got %d golden files, %v, want at least 10", len(files), err)
	testkit.EachStore(t, func(t *testing.T, db *store.Store) {
		s := servertest.New(t, servertest.On(db), func(c *server.Config) { c.Demo = true })
		for _, file := range files {
			recorded := check.Try(os.ReadFile(file)).OK(t)
			request, rest, _ := strings.Cut(string(recorded), "\n\n")
			head, body, _ := strings.Cut(rest, "\n\n")
			path := strings.TrimPrefix(request, "GET ")
			if strings.HasPrefix(path, "/api/embeddings") {
				continue // requires a key
			}
			got := s.Get(path)
			if status, _, _ := strings.Cut(head, "\n"); fmt.Sprint(got.Code) != status || ofImport.ReplaceAllString(got.Body.String()+"\n", "") != ofImport.ReplaceAllString(body, "") {
				t.Errorf("%s: got %d %s, want %s %s", path, got.Code, got.Body, status, body)
			}
			check.True(t, got.Header().Get("X-Request-Id") != "" && got.Header().Get("Access-Control-Allow-Origin") == "*",
				"%s: got %v, want a request ID and CORS headers", path, got.Header())
		}
		for path, want := range map[string]int{
			"/api/embeddings": 401, "/api/embeddings/plume": 401, "/api/v1//tools": 404, "/api/v1/tools/../stats": 404, "/api": 404, "/api/": 404,
		} {
			check.Equal(t, s.Get(path).Code, want, path)
		}
	})
}
