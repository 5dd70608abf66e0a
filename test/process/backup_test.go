package process_test

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"palmares/internal/catalog/feed/synth"
	"palmares/internal/core/store"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
	"palmares/internal/dev/testkit/blackbox"
	"palmares/internal/dev/testkit/repo"
	"palmares/internal/dev/testkit/wait"
)

// deployReadme returns deploy/README.md.
func deployReadme(t *testing.T) string {
	t.Helper()
	text := check.Try(os.ReadFile(filepath.Join(repo.Root(t), "deploy", "README.md"))).OK(t)
	return string(text)
}

// commandBlock returns the code block in deploy/README.md whose first command
// starts with a word.
func commandBlock(t *testing.T, first string) string {
	t.Helper()
	var found []string
	for _, block := range regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(deployReadme(t), -1) {
		if strings.HasPrefix(block[1], first+" ") {
			found = append(found, block[1])
		}
	}
	check.Must(t, len(found), 1, first)
	return found[0]
}

// runDocumented runs commands with palmares and the PostgreSQL tools in PATH.
func runDocumented(t *testing.T, cfg store.Config, commands string, env ...string) {
	t.Helper()
	tools := testkit.PostgreSQL.Ensure(t)
	here := t.TempDir()
	check.OK(t, os.Symlink(blackbox.Path(t), filepath.Join(here, "palmares")))
	sh := exec.Command("sh", "-eu", "-c", commands)
	sh.Env = append(blackbox.Command(t, cfg).Env, append(env, "PATH="+here+":"+tools+":"+os.Getenv("PATH"))...)
	out, err := sh.CombinedOutput()
	check.MustTrue(t, err == nil, "%s: got %v, want success\n%s", commands, err, out)
}

// backUp backs up a database with the documented command.
func backUp(t *testing.T, cfg store.Config) (file string) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "backup")
	program := "palmares"
	if cfg.DatabaseURL != "" {
		program = "pg_dump"
	}
	commands := ""
	for line := range strings.Lines(deployReadme(t)) {
		if strings.HasPrefix(line, program+" ") && strings.Contains(line, `"$BACKUP"`) {
			commands += line
		}
	}
	check.Must(t, strings.Count(commands, "\n"), 1, "commands: %q", commands)
	runDocumented(t, cfg, commands, "BACKUP="+file)
	return file
}

func restore(t *testing.T, like store.Config, file string) store.Config {
	t.Helper()
	if like.DatabaseURL != "" {
		cfg := testkit.Postgres(t)
		runDocumented(t, cfg, commandBlock(t, "pg_restore"), "BACKUP="+file, "RESTORED_URL="+cfg.DatabaseURL)
		return cfg
	}
	cfg := testkit.SQLite(t)
	runDocumented(t, cfg, commandBlock(t, "rm"), "BACKUP="+file)
	return cfg
}

// A restored backup has all data, and a server continues from it.
func TestRestoredBackup(t *testing.T) {
	t.Parallel()
	testkit.Each(t, func(t *testing.T, cfg store.Config) {
		in := newInbox(t)
		key := fillAllTables(t, cfg, in)
		before := allRows(t, cfg)
		for _, table := range []string{"accounts", "api_keys", "sessions", "customers", "endpoints", "deliveries", "attempts", "journal_entries", "price_changes", "usages", "tools", "sections", "comparisons", "tools_versions", "sections_versions", "tool_search", "releases", "schema_migrations"} {
			check.True(t, before[table] != "", "%s: got no rows, want some to compare", table)
		}
		export := blackbox.MustRun(t, blackbox.Command(t, cfg, "export")).Out
		first := blackbox.MustRun(t, blackbox.Command(t, cfg, "export", "--as-of", "1")).Out

		restored := restore(t, cfg, backUp(t, cfg))
		after := allRows(t, restored)
		for table, rows := range before {
			check.Equal(t, after[table], rows, table)
		}
		check.Equal(t, len(after), len(before), "tables")
		check.Equal(t, blackbox.MustRun(t, blackbox.Command(t, restored, "export")).Out, export, "another catalog")
		check.Equal(t, blackbox.MustRun(t, blackbox.Command(t, restored, "export", "--as-of", "1")).Out, first, "release 1")

		had := len(in.all())
		s := blackbox.Serve(t, restored)
		check.Equal(t, s.Call(t, http.MethodGet, "/api/embeddings/"+slugWithEmbeddings(t, s), "", "Authorization", "Bearer "+key).StatusCode, 200, "restored key")
		newest := newestEvent(t, s)
		blackbox.MustRun(t, blackbox.Command(t, restored, "import", blackbox.SynthFile(t, synth.Options{Tools: 40, Seed: 1, Revision: 6})))
		// /readyz can be polled because it does not count against a quota.
		wait.Until(t, "the release is served", func() bool {
			_, body := s.Get(t, "/readyz")
			return body["release"] == 3.0
		})
		last := newestEvent(t, s)
		wait.Until(t, "its last event is delivered", func() bool {
			return slices.ContainsFunc(in.all()[had:], func(h http.Header) bool { return h.Get("webhook-id") == last })
		})
		for _, release := range []string{"1", "2"} {
			if got := s.Call(t, http.MethodGet, "/api/v1/stats?as_of="+release, "", "Authorization", "Bearer "+key); got.StatusCode != 200 || got.Header.Get("X-Service-Release") != release {
				t.Errorf("release %s after a restore and an import: got %d with release %s, want 200", release, got.StatusCode, got.Header.Get("X-Service-Release"))
			}
		}
		for _, header := range in.all()[had:] {
			id := header.Get("webhook-id")
			check.True(t, eventNumber(t, id) > eventNumber(t, newest), "got %s again, want only events after %s", id, newest)
		}
	})
}

// fillAllTables has a server and commands write to all tables. When it returns,
// the server has stopped.
func fillAllTables(t *testing.T, cfg store.Config, in *inbox) (key string) {
	t.Helper()
	smtp := testkit.StartSMTP(t)
	s := blackbox.Serve(t, cfg, "--smtp-url", smtp.URL, "--mail-from", "palmares <hello@example.com>", "--stripe-secret-key", "sk_test_123",
		"--stripe-webhook-secret", "whsec_test", "--stripe-api-base", testkit.StartStripeMock(t))
	blackbox.MustRun(t, blackbox.Command(t, cfg, "accounts", "create", "pro@example.com", "--plan", "pro"))
	key = strings.TrimSpace(blackbox.MustRun(t, blackbox.Command(t, cfg, "keys", "create", "pro@example.com", "--name", "laptop")).Out)
	blackbox.MustRun(t, blackbox.Command(t, cfg, "import", blackbox.SynthFile(t, synth.Options{Tools: 40, Seed: 1})))
	blackbox.MustRun(t, blackbox.Command(t, cfg, "webhooks", "add", "pro@example.com", in.URL))
	// Deliveries to an unreachable endpoint stay pending.
	blackbox.MustRun(t, blackbox.Command(t, cfg, "webhooks", "add", "pro@example.com", "http://"+testkit.FreeAddress(t)))
	blackbox.MustRun(t, blackbox.Command(t, cfg, "import", blackbox.SynthFile(t, synth.Options{Tools: 40, Seed: 1, Revision: 3})))
	in.wait(t, 5)

	jar := check.Try(cookiejar.New(nil)).OK(t)
	visitor := &http.Client{Jar: jar, Timeout: wait.Limit}
	post := func(path string, form url.Values) {
		t.Helper()
		got := check.Try(visitor.PostForm("http://"+s.Address+path, form)).OK(t)
		_, _ = io.Copy(io.Discard, got.Body)
		got.Body.Close()
	}
	post("/login", url.Values{"email": {"paul@example.com"}})
	post("/login/code", url.Values{"code": {regexp.MustCompile(`\b\d{6}\b`).FindString(smtp.Wait(t, "paul@example.com"))}})
	post("/account/plan/subscribe", nil) // creates a customer
	visitor.CloseIdleConnections()
	for range 5 {
		s.Call(t, http.MethodGet, "/api/v1/stats", "", "Authorization", "Bearer "+key)
	}
	http.DefaultClient.CloseIdleConnections()
	_ = s.Cmd.Process.Signal(syscall.SIGTERM)
	s.WaitForExit(t)
	return key
}

// allRows returns all rows of each table as text.
func allRows(t *testing.T, cfg store.Config) map[string]string {
	t.Helper()
	driver, address := "sqlite", store.File(cfg.DataDir)
	tables, rows := `SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'`, `SELECT * FROM "%s"`
	if cfg.DatabaseURL != "" {
		driver, address = "postgres", cfg.DatabaseURL
		tables, rows = `SELECT tablename FROM pg_tables WHERE schemaname = 'public'`, `SELECT x::text FROM "%s" x`
	}
	db := check.Try(sql.Open(driver, address)).OK(t)
	defer db.Close()
	all := map[string]string{}
	for _, table := range queryStrings(t, db, tables) {
		found := queryStrings(t, db, fmt.Sprintf(rows, table))
		slices.Sort(found)
		all[table] = strings.Join(found, "\n")
	}
	// Sequences are part of the data too.
	if cfg.DatabaseURL != "" {
		all["sequences"] = strings.Join(queryStrings(t, db, `SELECT sequencename || ' ' || coalesce(last_value, 0) FROM pg_sequences ORDER BY 1`), "\n")
	}
	return all
}

func queryStrings(t *testing.T, db *sql.DB, query string) (all []string) {
	t.Helper()
	rows := check.Try(db.QueryContext(t.Context(), query)).OK(t)
	defer rows.Close()
	columns := check.Try(rows.Columns()).OK(t)
	for rows.Next() {
		values, into := make([]any, len(columns)), make([]any, len(columns))
		for i := range values {
			into[i] = &values[i]
		}
		check.OK(t, rows.Scan(into...))
		for i, value := range values {
			if text, is := value.([]byte); is {
				values[i] = string(text)
			}
		}
		if len(values) == 1 {
			all = append(all, fmt.Sprint(values[0]))
		} else {
			all = append(all, fmt.Sprint(values...))
		}
	}
	check.OK(t, rows.Err())
	return all
}

// slugWithEmbeddings returns the slug of a tool with embeddings.
func slugWithEmbeddings(t *testing.T, s *blackbox.Server) string {
	t.Helper()
	page := blackbox.ReadAll(t, s.Call(t, http.MethodGet, "/api/v1/tools?limit=1", "").Body)
	slug := regexp.MustCompile(`"slug":\s*"([^"]+)"`).FindStringSubmatch(page)
	check.MustTrue(t, slug != nil, "got %s, want a tool", page)
	return slug[1]
}

// newestEvent returns the ID of the newest event in the journal.
func newestEvent(t *testing.T, s *blackbox.Server) string {
	t.Helper()
	body := blackbox.ReadAll(t, s.Call(t, http.MethodPost, "/graphql", `{"query":"{changes(first: 1, order: newest_first) {nodes {id}}}"}`).Body)
	id := regexp.MustCompile(`evt_\w+`).FindString(body)
	check.MustTrue(t, id != "", "got %s, want an event", body)
	return id
}

// eventNumber returns the number in an event ID.
func eventNumber(t *testing.T, id string) (n int) {
	t.Helper()
	_, err := fmt.Sscanf(regexp.MustCompile(`\d+`).FindString(id), "%d", &n)
	check.MustTrue(t, err == nil, "got %q, want an ID with a number", id)
	return n
}

// A backup is consistent while a server and imports write.
func TestBackupDuringWrites(t *testing.T) {
	t.Parallel()
	feeds, exports := twoCatalogs(t, 100)
	testkit.Each(t, func(t *testing.T, cfg store.Config) {
		blackbox.MustRun(t, blackbox.Command(t, cfg, "import", feeds[0]))
		s := blackbox.Serve(t, cfg)
		key := blackbox.NewKey(t, cfg, "pro")
		end := make(chan struct{})
		var writing sync.WaitGroup
		writing.Go(func() {
			for i := 1; ; i++ {
				select {
				case <-end:
					return
				default:
					r := blackbox.Run(t, blackbox.Command(t, cfg, "import", "--force", feeds[i%2]))
					check.True(t, r.Code == 0, "import during a backup: got %s, want success", r.Err)
				}
			}
		})
		writing.Go(func() {
			for {
				select {
				case <-end:
					return
				case <-time.After(5 * time.Millisecond):
					status, _, _ := s.Try(t, http.MethodGet, "/api/v1/stats", "", "Authorization", "Bearer "+key)
					check.Equal(t, status, 200, "request during a backup")
				}
			}
		})
		for i := range 2 {
			// The backup includes everything that was committed before it started.
			latest := fmt.Sprintf("latest-%d@example.com", i)
			blackbox.MustRun(t, blackbox.Command(t, cfg, "accounts", "create", latest))
			restored := restore(t, cfg, backUp(t, cfg))
			blackbox.MustRun(t, blackbox.Command(t, restored, "accounts", "show", latest))
			got := blackbox.MustRun(t, blackbox.Command(t, restored, "export")).Out
			check.True(t, withoutHistory(got) == withoutHistory(exports[0]) || withoutHistory(got) == withoutHistory(exports[1]), "got a mix of catalogs, want one of the two")
			blackbox.MustRun(t, blackbox.Command(t, restored, "doctor", "--listen", "127.0.0.1:0"))
		}
		close(end)
		writing.Wait()
	})
}

// A backup that fails leaves nothing behind.
func TestBackupToFullDisk(t *testing.T) {
	t.Parallel()
	small := testkit.SmallDisk(t, 128<<10)
	if r := blackbox.Run(t, blackbox.Command(t, blackbox.Demo(t), "backup", filepath.Join(small, "backup.db"))); r.Code != 1 || !strings.Contains(r.Err, "full") {
		t.Errorf("got exit code %d and %q, want 1", r.Code, r.Err)
	}
	left, _ := os.ReadDir(small)
	check.True(t, len(left) == 0, "got temporary files %v, want none", left)
}

// A catalog that is exported from one kind of database and imported into the other
// gives the same responses.
func TestExportToOtherDatabase(t *testing.T) {
	t.Parallel()
	testkit.Each(t, func(t *testing.T, cfg store.Config) {
		for _, revision := range []int{0, 3} { // so that there is a price history
			blackbox.MustRun(t, blackbox.Command(t, cfg, "import", blackbox.SynthFile(t, synth.Options{Tools: 60, Seed: 1, Revision: revision})))
		}
		other := testkit.SQLite(t)
		if cfg.DatabaseURL == "" {
			other = testkit.Postgres(t)
		}
		lines := strings.SplitAfter(commandBlock(t, "palmares export")+"", "\n")
		file := filepath.Join(t.TempDir(), "catalog.ndjson.gz")
		runDocumented(t, cfg, lines[0], "CATALOG="+file)
		runDocumented(t, other, lines[1], "CATALOG="+file)
		check.Equal(t, blackbox.MustRun(t, blackbox.Command(t, cfg, "export")).Out, blackbox.MustRun(t, blackbox.Command(t, other, "export")).Out, "different exports")
		one, two := blackbox.Serve(t, cfg), blackbox.Serve(t, other)
		for _, path := range []string{"/api/v1/tools", "/api/v1/tools?page=2&limit=7&sort=name_asc", "/api/v1/pricing", "/api/v1/comparatifs", "/api/v1/cimetiere", "/api/v1/categories", "/api/v1/stats"} {
			a, b := blackbox.ReadAll(t, one.Call(t, http.MethodGet, path, "").Body), blackbox.ReadAll(t, two.Call(t, http.MethodGet, path, "").Body)
			b = strings.ReplaceAll(b, two.Address, one.Address)
			check.True(t, a == b && len(a) >= 50, "%s: got\n%.500s\nwant\n%.500s", path, b, a)
		}
	})
}

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
