package process_test

import (
	"bytes"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"palmares/internal/catalog/feed/demo"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
	"palmares/internal/dev/testkit/blackbox"
	"palmares/internal/dev/testkit/repo"
	"palmares/internal/dev/testkit/wait"
)

// unshared is the first migration that came after the oldest program which can share a
// database with this one, until there is a tag.
const unshared = "internal/core/store/migrations/postgres/0029_count_requests.sql"

// While servers are replaced one by one, those of the previous version and of this one
// share a database: both serve the newest release and accept each other's keys. The
// previous version does not start again on the migrated database.
func TestRollingUpgrade(t *testing.T) {
	testkit.FullTier(t, "it compiles the previous version")
	previous := buildPrevious(t)
	cfg := testkit.Postgres(t)
	older := func(args ...string) *exec.Cmd {
		cmd := blackbox.Command(t, cfg, args...)
		cmd.Path = previous
		return cmd
	}
	older1 := blackbox.ServeCommand(t, older("serve", "--demo", "--listen", "127.0.0.1:0"))
	const owner = "ana@example.com"
	blackbox.MustRun(t, older("accounts", "create", owner))
	first := strings.TrimSpace(blackbox.MustRun(t, older("keys", "create", owner)).Out)
	newer := blackbox.Serve(t, cfg) // it migrates the database
	second := strings.TrimSpace(blackbox.MustRun(t, blackbox.Command(t, cfg, "keys", "create", owner)).Out)
	accepted := func(s *blackbox.Server, key string) bool {
		response := s.Call(t, http.MethodGet, "/api/embeddings/plume", "", "Authorization", "Bearer "+key)
		blackbox.ReadAll(t, response.Body)
		return response.StatusCode == http.StatusOK
	}
	for name, s := range map[string]*blackbox.Server{"previous": older1, "new": newer} {
		for _, key := range []string{first, second} {
			check.True(t, accepted(s, key), "%s server: got a refused key, want both versions to accept it", name)
		}
	}
	changed := bytes.ReplaceAll(demo.Catalog(), []byte(`"Plume"`), []byte(`"Plume d’Or"`))
	blackbox.MustRun(t, blackbox.Command(t, cfg, "import", "--force", blackbox.WriteFile(t, "changed.ndjson", changed)))
	for name, s := range map[string]*blackbox.Server{"previous": older1, "new": newer} {
		wait.Until(t, "the "+name+" server shows the release", func() bool {
			_, body := s.Get(t, "/api/v1/tools/plume")
			return body["name"] == "Plume d’Or"
		})
		code, _ := s.Get(t, "/readyz")
		check.True(t, code == http.StatusOK, "%s server: got status %d, want it to be ready", name, code)
	}
	older1.Kill()
	got := blackbox.Run(t, older("serve", "--listen", "127.0.0.1:0"))
	check.True(t, got.Code == 1 && strings.Contains(got.Err, "upgrade palmares"), "got %+v, want the previous version to refuse the newer database", got)
	check.True(t, accepted(newer, second), "got a refused key, want the new server to go on")
}

// buildPrevious builds the program of the previous tag.
func buildPrevious(t *testing.T) string {
	root, folder := repo.Root(t), t.TempDir()
	git := func(args ...string) []byte {
		cmd := exec.Command("git", args...)
		cmd.Dir = root
		out, err := cmd.Output()
		if err != nil {
			return nil
		}
		return out
	}
	revision := strings.TrimSpace(string(git("describe", "--tags", "--abbrev=0", "--match", "v*", "HEAD^")))
	if revision == "" {
		revision = strings.TrimSpace(string(git("log", "-1", "--diff-filter=A", "--format=%H^", "--", unshared)))
	}
	sources := git("archive", revision)
	check.MustTrue(t, sources != nil || git("rev-parse", "HEAD^") == nil, "got no sources of %s, want those of the previous version", revision)
	if sources == nil {
		testkit.SkipUnsupported(t, "the repository has no history: "+revision)
	}
	unpack := exec.Command("tar", "-x", "-C", folder)
	unpack.Stdin = bytes.NewReader(sources)
	check.OK(t, unpack.Run())
	program := filepath.Join(folder, "previous")
	build := exec.Command("go", "build", "-o", program, "./cmd/palmares")
	build.Dir = folder
	out, err := build.CombinedOutput()
	check.MustTrue(t, err == nil, "%s: %v\n%s", revision, err, out)
	return program
}
