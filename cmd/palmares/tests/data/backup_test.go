package data_test

import (
	"database/sql"
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

	"palmares/internal/catalog/feed/demo"
	"palmares/internal/catalog/feed/synth"
	"palmares/internal/core/store"
	"palmares/internal/dev/testkit"
	"palmares/internal/dev/testkit/blackbox"
	"palmares/internal/dev/testkit/wait"
)

// operatorsPage is what operators read.
func operatorsPage(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(testkit.Root(t), "deploy", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// documented are the commands of the page for operators that begin with a word.
func documented(t *testing.T, first string) string {
	t.Helper()
	var found []string
	for _, block := range regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(operatorsPage(t), -1) {
		if strings.HasPrefix(block[1], first+" ") {
			found = append(found, block[1])
		}
	}
	if len(found) != 1 {
		t.Fatalf("%d blocks of commands begin with %s", len(found), first)
	}
	return found[0]
}

// doAs runs documented commands as an operator would, with palmares and the
// tools of PostgreSQL in PATH.
func doAs(t *testing.T, cfg store.Config, commands string, env ...string) {
	t.Helper()
	tools, err := testkit.PostgreSQL.Ensure()
	if err != nil {
		t.Fatal(err)
	}
	here := t.TempDir()
	if err := os.Symlink(blackbox.Path(t), filepath.Join(here, "palmares")); err != nil {
		t.Fatal(err)
	}
	sh := exec.Command("sh", "-eu", "-c", commands)
	sh.Env = append(blackbox.Command(t, cfg).Env, append(env, "PATH="+here+":"+tools+":"+os.Getenv("PATH"))...)
	if out, err := sh.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", commands, err, out)
	}
}

// backUp makes a backup of a database, and restore a new database from it.
func backUp(t *testing.T, cfg store.Config) (file string) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "backup")
	how := "palmares"
	if cfg.DatabaseURL != "" {
		how = "pg_dump"
	}
	commands := ""
	for line := range strings.Lines(operatorsPage(t)) {
		if strings.HasPrefix(line, how+" ") && strings.Contains(line, `"$BACKUP"`) {
			commands += line
		}
	}
	if strings.Count(commands, "\n") != 1 {
		t.Fatalf("not one command is documented: %q", commands)
	}
	doAs(t, cfg, commands, "BACKUP="+file)
	return file
}

func restore(t *testing.T, like store.Config, file string) store.Config {
	t.Helper()
	if like.DatabaseURL != "" {
		cfg := testkit.Postgres(t)
		doAs(t, cfg, documented(t, "pg_restore"), "BACKUP="+file, "RESTORED_URL="+cfg.DatabaseURL)
		return cfg
	}
	cfg := testkit.SQLite(t)
	doAs(t, cfg, documented(t, "rm"), "BACKUP="+file)
	return cfg
}

// A backup that is restored has everything, and goes on from there.
func TestBackupHasEverything(t *testing.T) {
	t.Parallel()
	testkit.Each(t, func(t *testing.T, cfg store.Config) {
		in := blackbox.NewInbox(t)
		key := fillWithEverything(t, cfg, in)
		before := contents(t, cfg)
		for _, table := range []string{"accounts", "api_keys", "sessions", "customers", "endpoints", "deliveries", "attempts", "journal_entries", "price_changes", "usages", "tools", "sections", "comparisons", "releases", "schema_migrations"} {
			if before[table] == "" {
				t.Errorf("%s is empty, or there is none: that proves nothing", table)
			}
		}
		export := blackbox.Succeeds(t, blackbox.Command(t, cfg, "export")).Out

		restored := restore(t, cfg, backUp(t, cfg))
		after := contents(t, restored)
		for table, rows := range before {
			if after[table] != rows {
				t.Errorf("%s is not what it was:\n%.2000s\n%.2000s", table, rows, after[table])
			}
		}
		if len(after) != len(before) {
			t.Errorf("%d tables became %d", len(before), len(after))
		}
		if blackbox.Succeeds(t, blackbox.Command(t, restored, "export")).Out != export {
			t.Error("the catalog is another")
		}

		had := len(in.All())
		s := blackbox.Serve(t, restored)
		if got := s.Call(t, http.MethodGet, "/api/embeddings/"+anEmbedding(t, s), "", "Authorization", "Bearer "+key); got.StatusCode != 200 {
			t.Errorf("the key: %d", got.StatusCode)
		}
		first := newestEvent(t, s)
		blackbox.Succeeds(t, blackbox.Command(t, restored, "import", blackbox.SynthFile(t, synth.Options{Tools: 40, Seed: 1, Revision: 6})))
		last := first
		wait.Until(t, "the release is served", func() bool { last = newestEvent(t, s); return last != first })
		wait.Until(t, "its last event has come", func() bool {
			return slices.ContainsFunc(in.All()[had:], func(h http.Header) bool { return h.Get("webhook-id") == last })
		})
		for _, header := range in.All()[had:] {
			if id := header.Get("webhook-id"); number(t, id) <= number(t, first) {
				t.Errorf("%s is told again, after %s", id, first)
			}
		}
	})
}

// fillWithEverything lets a server and commands write to every part of the
// database, and ends when nobody writes any more.
func fillWithEverything(t *testing.T, cfg store.Config, in *blackbox.Inbox) (key string) {
	t.Helper()
	smtp := testkit.StartSMTP(t)
	s := blackbox.Serve(t, cfg, "--smtp-url", smtp.URL, "--mail-from", "palmares <hello@example.com>", "--stripe-secret-key", "sk_test_123",
		"--stripe-webhook-secret", "whsec_test", "--stripe-price", "price_123", "--stripe-api-base", testkit.StartStripeMock(t))
	blackbox.Succeeds(t, blackbox.Command(t, cfg, "accounts", "create", "pro@example.com", "--plan", "pro"))
	key = strings.TrimSpace(blackbox.Succeeds(t, blackbox.Command(t, cfg, "keys", "create", "pro@example.com", "--name", "laptop")).Out)
	blackbox.Succeeds(t, blackbox.Command(t, cfg, "import", blackbox.SynthFile(t, synth.Options{Tools: 40, Seed: 1})))
	blackbox.Succeeds(t, blackbox.Command(t, cfg, "webhooks", "add", "pro@example.com", in.URL))
	// What one does not take waits to be sent again.
	blackbox.Succeeds(t, blackbox.Command(t, cfg, "webhooks", "add", "pro@example.com", "http://"+blackbox.FreeAddress(t)))
	blackbox.Succeeds(t, blackbox.Command(t, cfg, "import", blackbox.SynthFile(t, synth.Options{Tools: 40, Seed: 1, Revision: 3})))
	in.Wait(t, 5)

	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	visitor := &http.Client{Jar: jar, Timeout: wait.Limit}
	post := func(path string, form url.Values) {
		t.Helper()
		got, err := visitor.PostForm("http://"+s.Address+path, form)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, got.Body)
		got.Body.Close()
	}
	post("/login", url.Values{"email": {"paul@example.com"}})
	post("/login/code", url.Values{"code": {regexp.MustCompile(`\b\d{6}\b`).FindString(smtp.Wait(t, "paul@example.com"))}})
	post("/account/plan/subscribe", nil) // which makes a customer
	visitor.CloseIdleConnections()
	for range 5 {
		s.Call(t, http.MethodGet, "/api/v1/stats", "", "Authorization", "Bearer "+key)
	}
	http.DefaultClient.CloseIdleConnections()
	_ = s.Cmd.Process.Signal(syscall.SIGTERM)
	s.Ends(t)
	return key
}

// contents are all rows of all tables, as text.
func contents(t *testing.T, cfg store.Config) map[string]string {
	t.Helper()
	driver, address := "sqlite", store.File(cfg.DataDir)
	tables, rows := `SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'`, `SELECT * FROM "%s"`
	if cfg.DatabaseURL != "" {
		driver, address = "postgres", cfg.DatabaseURL
		tables, rows = `SELECT tablename FROM pg_tables WHERE schemaname = 'public'`, `SELECT x::text FROM "%s" x`
	}
	db, err := sql.Open(driver, address)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	all := map[string]string{}
	for _, table := range texts(t, db, tables) {
		found := texts(t, db, fmt.Sprintf(rows, table))
		slices.Sort(found)
		all[table] = strings.Join(found, "\n")
	}
	// Values that are drawn from when the next row comes belong to it, too.
	if cfg.DatabaseURL != "" {
		all["sequences"] = strings.Join(texts(t, db, `SELECT sequencename || ' ' || coalesce(last_value, 0) FROM pg_sequences ORDER BY 1`), "\n")
	}
	return all
}

func texts(t *testing.T, db *sql.DB, query string) (all []string) {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), query)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		t.Fatal(err)
	}
	for rows.Next() {
		values, into := make([]any, len(columns)), make([]any, len(columns))
		for i := range values {
			into[i] = &values[i]
		}
		if err := rows.Scan(into...); err != nil {
			t.Fatal(err)
		}
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
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

// anEmbedding is a slug that only a key opens.
func anEmbedding(t *testing.T, s *blackbox.Server) string {
	t.Helper()
	page := blackbox.ReadAll(t, s.Call(t, http.MethodGet, "/api/v1/tools?limit=1", "").Body)
	slug := regexp.MustCompile(`"slug":\s*"([^"]+)"`).FindStringSubmatch(page)
	if slug == nil {
		t.Fatalf("no tool: %s", page)
	}
	return slug[1]
}

// newestEvent is the id of the last that was told.
func newestEvent(t *testing.T, s *blackbox.Server) string {
	t.Helper()
	answer := blackbox.ReadAll(t, s.Call(t, http.MethodPost, "/graphql", `{"query":"{changes(first: 1, order: newest_first) {nodes {id}}}"}`).Body)
	id := regexp.MustCompile(`evt_\w+`).FindString(answer)
	if id == "" {
		t.Fatalf("no event: %s", answer)
	}
	return id
}

// number is what is counted in an event's id.
func number(t *testing.T, id string) (n int) {
	t.Helper()
	if _, err := fmt.Sscanf(regexp.MustCompile(`\d+`).FindString(id), "%d", &n); err != nil {
		t.Fatalf("%q has no number", id)
	}
	return n
}

// While a server counts and imports go on, a backup is of one moment.
func TestBackupWhileAllWrite(t *testing.T) {
	t.Parallel()
	feeds, exports := twoCatalogs(t, 300)
	testkit.Each(t, func(t *testing.T, cfg store.Config) {
		blackbox.Succeeds(t, blackbox.Shipped(t, cfg, "import", feeds[0]))
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
					if r := blackbox.Runs(t, blackbox.Shipped(t, cfg, "import", "--force", feeds[i%2])); r.Code != 0 {
						t.Errorf("an import beside a backup: %s", r.Err)
					}
				}
			}
		})
		writing.Go(func() {
			for {
				select {
				case <-end:
					return
				case <-time.After(5 * time.Millisecond):
					if got := s.Call(t, http.MethodGet, "/api/v1/stats", "", "Authorization", "Bearer "+key); got.StatusCode != 200 {
						t.Errorf("a request beside a backup: %d", got.StatusCode)
					}
				}
			}
		})
		for i := range 2 {
			// What was there before it began is in it, wherever it was kept.
			latest := fmt.Sprintf("latest-%d@example.com", i)
			blackbox.Succeeds(t, blackbox.Command(t, cfg, "accounts", "create", latest))
			restored := restore(t, cfg, backUp(t, cfg))
			blackbox.Succeeds(t, blackbox.Command(t, restored, "accounts", "show", latest))
			got := blackbox.Succeeds(t, blackbox.Shipped(t, restored, "export")).Out
			if withoutHistory(got) != withoutHistory(exports[0]) && withoutHistory(got) != withoutHistory(exports[1]) {
				t.Error("the catalog is neither of the two")
			}
			blackbox.Succeeds(t, blackbox.Command(t, restored, "doctor", "--listen", "127.0.0.1:0"))
		}
		close(end)
		writing.Wait()
	})
}

func TestBackupCommand(t *testing.T) {
	t.Parallel()
	cfg := testkit.SQLite(t)
	file := filepath.Join(t.TempDir(), "backup.db")
	if r := blackbox.Runs(t, blackbox.Command(t, cfg, "backup", file)); r.Code != 1 || !strings.Contains(r.Err, "there is no database in") {
		t.Errorf("of nothing: exit %d: %s", r.Code, r.Err)
	}
	blackbox.Succeeds(t, blackbox.Command(t, cfg, "import", blackbox.WriteFile(t, "demo.ndjson", demo.Catalog)))
	for range 2 { // the second replaces the first
		blackbox.Succeeds(t, blackbox.Command(t, cfg, "backup", file))
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("others may read it: %v %v", info.Mode(), err)
	}
	if r := blackbox.Runs(t, blackbox.Command(t, cfg, "backup", store.File(cfg.DataDir))); r.Code != 1 || !strings.Contains(r.Err, "cannot be put there") {
		t.Errorf("onto itself: exit %d: %s", r.Code, r.Err)
	}
	small := testkit.SmallDisk(t, 128<<10)
	if r := blackbox.Runs(t, blackbox.Command(t, cfg, "backup", filepath.Join(small, "backup.db"))); r.Code != 1 || !strings.Contains(r.Err, "full") {
		t.Errorf("to a full disk: exit %d: %s", r.Code, r.Err)
	}
	if left, _ := os.ReadDir(small); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	if r := blackbox.Runs(t, blackbox.Command(t, testkit.Postgres(t), "backup", file)); r.Code != 1 || !strings.Contains(r.Err, "use pg_dump") {
		t.Errorf("of PostgreSQL: exit %d: %s", r.Code, r.Err)
	}
}

// An export is the catalog: in another database, of the other kind, too, it
// gives the same answers.
func TestExportIsTheCatalog(t *testing.T) {
	t.Parallel()
	testkit.Each(t, func(t *testing.T, cfg store.Config) {
		for _, revision := range []int{0, 3} { // with a history
			blackbox.Succeeds(t, blackbox.Command(t, cfg, "import", blackbox.SynthFile(t, synth.Options{Tools: 60, Seed: 1, Revision: revision})))
		}
		other := testkit.SQLite(t)
		if cfg.DatabaseURL == "" {
			other = testkit.Postgres(t)
		}
		lines := strings.SplitAfter(documented(t, "palmares export")+"", "\n")
		file := filepath.Join(t.TempDir(), "catalog.ndjson.gz")
		doAs(t, cfg, lines[0], "CATALOG="+file)
		doAs(t, other, lines[1], "CATALOG="+file)
		if a, b := blackbox.Succeeds(t, blackbox.Command(t, cfg, "export")).Out, blackbox.Succeeds(t, blackbox.Command(t, other, "export")).Out; a != b {
			t.Error("the exports differ")
		}
		one, two := blackbox.Serve(t, cfg), blackbox.Serve(t, other)
		for _, path := range []string{"/api/v1/tools", "/api/v1/tools?page=2&limit=7&sort=name_asc", "/api/v1/pricing", "/api/v1/comparatifs", "/api/v1/cimetiere", "/api/v1/categories", "/api/v1/stats"} {
			a, b := blackbox.ReadAll(t, one.Call(t, http.MethodGet, path, "").Body), blackbox.ReadAll(t, two.Call(t, http.MethodGet, path, "").Body)
			b = strings.ReplaceAll(b, two.Address, one.Address)
			if a != b || len(a) < 50 {
				t.Errorf("%s:\n%.500s\n%.500s", path, a, b)
			}
		}
	})
}
