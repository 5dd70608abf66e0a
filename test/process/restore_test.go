package process_test

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"net/http"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"palmares/internal/catalog/feed/synth"
	"palmares/internal/core/store"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
	"palmares/internal/dev/testkit/blackbox"
	"palmares/internal/dev/testkit/wait"
)

// restoreOver replaces the content of a database that servers use with a backup.
func restoreOver(t *testing.T, cfg store.Config, backup string) {
	t.Helper()
	if cfg.DatabaseURL != "" {
		program := filepath.Join(testkit.PostgreSQL.Ensure(t), "pg_restore")
		wait.Until(t, "pg_restore succeeds", func() bool { // it may deadlock with the server, and then changes nothing
			return exec.Command(program, "--clean", "--if-exists", "--no-owner", "--exit-on-error", "--single-transaction",
				"--dbname="+cfg.DatabaseURL, backup).Run() == nil
		})
		return
	}
	db := check.Try(sql.Open("sqlite", "file:"+store.File(cfg.DataDir)+"?_txlock=immediate&_pragma=busy_timeout(30000)")).OK(t)
	defer db.Close()
	db.SetMaxOpenConns(1) // the attached database belongs to a connection
	check.Try(db.ExecContext(t.Context(), "ATTACH ? AS backup", backup)).OK(t)
	tables := queryStrings(t, db, "SELECT name FROM backup.sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")
	tx := check.Try(db.BeginTx(t.Context(), nil)).OK(t)
	for _, table := range tables {
		check.Try(tx.ExecContext(t.Context(), fmt.Sprintf(`DELETE FROM main."%[1]s"; INSERT INTO main."%[1]s" SELECT * FROM backup."%[1]s"`, table))).OK(t)
	}
	check.OK(t, tx.Commit())
}

// A server continues with the content of a backup that is restored under it, and with
// the releases that are published then, even if they have the numbers of lost ones. It
// does not return anything of the lost releases.
func TestRestoreUnderServer(t *testing.T) {
	t.Parallel()
	testkit.Each(t, func(t *testing.T, cfg store.Config) {
		t.Parallel()
		publish := func(seed uint64) {
			blackbox.MustRun(t, blackbox.Command(t, cfg, "import", "--force", blackbox.SynthFile(t, synth.Options{Tools: 40, Seed: seed})))
		}
		key := blackbox.NewKey(t, cfg, "pro")
		empty := backUp(t, cfg)
		publish(1)
		publish(2)
		second := backUp(t, cfg)
		s := blackbox.Serve(t, cfg)
		get := func(path string, headers ...string) (code int, body string, header http.Header) {
			got := s.Call(t, http.MethodGet, path, "", append(headers, "Authorization", "Bearer "+key)...)
			return got.StatusCode, blackbox.ReadAll(t, got.Body), got.Header
		}
		waitFor := func(release int) {
			t.Helper()
			wait.Until(t, fmt.Sprintf("release %d is served", release), func() bool {
				_, body := s.Get(t, "/readyz")
				return body["release"] == float64(release)
			})
		}
		token := func() string {
			_, body, _ := get("/api/embeddings?limit=100")
			return regexp.MustCompile(`"next_sync":"([^"]+)"`).FindStringSubmatch(body)[1]
		}
		wantCode := func(when, path string, want int, headers ...string) {
			t.Helper()
			code, body, _ := get(path, headers...)
			check.True(t, code == want, "%s, %s: got %d %.300s, want %d", when, path, code, body, want)
		}
		waitFor(2)
		oldToken := token()
		publish(3)
		publish(4)
		waitFor(4)
		lostToken := token()
		paths := []string{"/api/v1/tools?limit=200", "/api/v1/tools?limit=200&as_of=3", "/api/v1/stats", "/api/v1/tools?format=ndjson", "/en/tools"}
		lost, tags := map[string]string{}, map[string]string{}
		for _, path := range paths {
			var header http.Header
			_, lost[path], header = get(path)
			tags[path] = header.Get("ETag")
		}

		restoreOver(t, cfg, second)
		waitFor(2)
		wantCode("restored", "/api/v1/tools?as_of=3", 404)
		wantCode("restored", "/api/embeddings?sync="+lostToken, 410)
		wantCode("restored", "/api/embeddings?sync="+oldToken, 200)
		publish(5)
		publish(6)
		waitFor(4)
		wantCode("published again", "/api/embeddings?sync="+lostToken, 410)
		wantCode("published again", "/api/embeddings?sync="+oldToken, 200)
		for _, path := range paths {
			wantCode("published again", path, 200, "If-None-Match", tags[path])
			_, body, header := get(path)
			check.True(t, body != lost[path] && header.Get("ETag") != tags[path], "%s: got the response of a lost release, want one of the new release", path)
		}

		restoreOver(t, cfg, empty)
		waitFor(0)
		wantCode("empty", "/api/v1/tools?as_of=2", 404)
		wantCode("empty", "/api/embeddings?sync="+oldToken, 410)
		for _, path := range []string{"/api/v1/tools?limit=200", "/api/embeddings"} {
			var body struct{ Data []json.RawMessage }
			code, text, _ := get(path)
			check.True(t, code == 200 && json.Unmarshal([]byte(text), &body) == nil && len(body.Data) == 0, "empty, %s: got %d %.300s, want an empty list", path, code, text)
		}
		publish(1)
		waitFor(1)
		wantCode("first release", "/api/embeddings?sync="+oldToken, 410)
		log := s.Log.String()
		check.True(t, !strings.Contains(log, "panic"), "got a panic, want none\n%s", log)
	})
}
