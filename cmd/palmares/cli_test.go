package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"io"
	"log"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"palmares/internal/catalog/feed/demo"
	"palmares/internal/catalog/feed/synth"
	"palmares/internal/core/store"
	"palmares/internal/dev/testkit"
)

const notARoot = `palmares: PUBLIC_URL: must be a scheme and a host alone, as in https://palmares.example, without a path, a query, a fragment or a user`

func TestWrongSettings(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		env  string
		want string
	}{
		"listen without a port":    {"PALMARES_LISTEN=localhost", `palmares: PALMARES_LISTEN: "localhost" is not an address of the form host:port`},
		"listen on a word":         {"PALMARES_LISTEN=:http-alt", `palmares: PALMARES_LISTEN: "http-alt" is not a port from 0 to 65535`},
		"listen past the ports":    {"PALMARES_LISTEN=:70000", `palmares: PALMARES_LISTEN: "70000" is not a port from 0 to 65535`},
		"blank data directory":     {"PALMARES_DATA_DIR= ", `palmares: PALMARES_DATA_DIR: is blank`},
		"another database":         {"DATABASE_URL=mysql://u:geheim@h/db", `palmares: DATABASE_URL: is not an address of the form postgres://user:password@host:port/database`},
		"a broken database":        {"DATABASE_URL=postgres://u:geheim@h:p%zz/db", `palmares: DATABASE_URL: is not an address of the form postgres://user:password@host:port/database`},
		"a wrong parameter":        {"DATABASE_URL=postgres://h/db?sslmode=disablepassword=geheim", `palmares: DATABASE_URL: has a part that is not understood`},
		"a port past the ports":    {"DATABASE_URL=postgres://u:geheim@h:99999/db", `palmares: DATABASE_URL: has a part that is not understood`},
		"a replica of nothing":     {"DATABASE_READ_URL=postgres://u:geheim@h/db", `palmares: DATABASE_READ_URL: is a replica of nothing, without DATABASE_URL`},
		"no replica named":         {"DATABASE_READ_URL=postgres://u:geheim@h", `palmares: DATABASE_READ_URL: names no database, as in postgres://host:port/database`},
		"no database named":        {"DATABASE_URL=postgres://u:geheim@h", `palmares: DATABASE_URL: names no database, as in postgres://host:port/database`},
		"blank service name":       {"SERVICE_NAME=  ", `palmares: SERVICE_NAME: is blank`},
		"service without a scheme": {"SERVICE_URL=palmares.example", `palmares: SERVICE_URL: "palmares.example" is not an absolute http or https address`},
		"public by ftp":            {"PUBLIC_URL=ftp://palmares.example", `palmares: PUBLIC_URL: "ftp://palmares.example" is not an absolute http or https address`},
		"public below a path":      {"PUBLIC_URL=https://palmares.example/api", notARoot},
		"public with a query":      {"PUBLIC_URL=https://palmares.example/?x=1", notARoot},
		"public with a mark":       {"PUBLIC_URL=https://palmares.example/?", notARoot},
		"public with a fragment":   {"PUBLIC_URL=https://palmares.example#x", notARoot},
		"public with a user":       {"PUBLIC_URL=https://u:geheim@palmares.example", notARoot},
		"redis with a secret":      {"REDIS_URL=redis://user:secret@host:port/0", `palmares: REDIS_URL: must be a URL of the form redis://user:password@host:port/number`},
		"a metrics port of words":  {"PALMARES_METRICS_LISTEN=metrics", `palmares: PALMARES_METRICS_LISTEN: "metrics" is not an address of the form host:port`},
		"no cache at all":          {"PALMARES_CACHE_MB=0", `palmares: PALMARES_CACHE_MB: 0 is not from 1 to 1048576`},
		"mail without a scheme":    {"SMTP_URL=user:geheim@mail.example:587", `palmares: SMTP_URL: must have the form smtp://user:password@host:587 or smtps://user:password@host:465; percent-encode special characters in the user name and password, such as %2F for a slash`},
		"mail from nobody":         {"MAIL_FROM=palmares", `palmares: MAIL_FROM: must have the form name@example.com or Name <name@example.com>`},
		"events without a key":     {"STRIPE_WEBHOOK_SECRET=whsec_geheim", `palmares: STRIPE_WEBHOOK_SECRET: does nothing without STRIPE_SECRET_KEY`},
		"a price without a key":    {"STRIPE_PRICE=price_1", `palmares: STRIPE_PRICE: does nothing without STRIPE_SECRET_KEY`},
		"proxies by name":          {"TRUSTED_PROXIES=10.0.0.0/8,proxy", `palmares: TRUSTED_PROXIES: "proxy" is neither an address nor a network such as 10.0.0.0/8`},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := palmares(t, store.Config{DataDir: "data"}, "version")
			cmd.Env = append(cmd.Env, c.env)
			r := runs(t, cmd)
			if r.code != 2 || r.err != c.want+"\n" || r.out != "" {
				t.Errorf("exit %d: %q %q", r.code, r.err, r.out)
			}
			if strings.Contains(r.err, "geheim") {
				t.Error("it shows the password")
			}
		})
	}
}

func TestRightSettings(t *testing.T) {
	t.Parallel()
	s := settings{Listen: ":8080", DataDir: "d", ServiceName: "n", CacheMB: 1, TrustedProxies: " 10.1.2.3/8, ::1 ,192.0.2.7"}
	s.GraphQL.Body, s.GraphQL.Tokens, s.GraphQL.Depth, s.GraphQL.Fields, s.GraphQL.Cost, s.GraphQL.Response, s.GraphQL.Time = 1, 1, 1, 1, 1, 1, 1
	if err := s.check(); err != nil {
		t.Fatal(err)
	}
	if len(s.proxies) != 3 || s.proxies[0].String() != "10.0.0.0/8" || s.proxies[1].String() != "::1/128" {
		t.Errorf("proxies: %v", s.proxies)
	}
	s.servedAt(&net.TCPAddr{IP: net.IPv6unspecified, Port: 8080})
	if s.PublicURL != "http://localhost:8080" || s.credit() != "Source : n (http://localhost:8080)" {
		t.Errorf("public at %s, credit %s", s.PublicURL, s.credit())
	}
}

// A service may be presented on a page below a path; it is served at a root.
func TestAddressesOfTheService(t *testing.T) {
	t.Parallel()
	cmd := palmares(t, store.Config{DataDir: "data"}, "version")
	cmd.Env = append(cmd.Env, "PUBLIC_URL=https://palmares.example:8443/", "SERVICE_URL=https://palmares.example/about?lang=en#us")
	succeeds(t, cmd)
}

// What net/http logs by itself is JSON, too.
func TestEveryLineIsJSON(t *testing.T) {
	t.Parallel()
	before, flags, output := slog.Default(), log.Flags(), log.Writer()
	t.Cleanup(func() {
		slog.SetDefault(before)
		log.SetFlags(flags)
		log.SetOutput(output)
	})
	ended, end := context.WithCancel(t.Context())
	end()
	s := settings{Listen: "127.0.0.1:0", DataDir: t.TempDir(), ServiceName: "n", CacheMB: 1}
	_ = (&serveCommand{}).Run(ended, &s, terminal{out: io.Discard, err: io.Discard}) // it ends at once
	if _, is := slog.Default().Handler().(*slog.JSONHandler); !is {
		t.Errorf("lines are written by %T", slog.Default().Handler())
	}
}

// The database holds addresses: it is made for its owner alone, whatever the
// folder is. One that is there keeps the mode that it was given.
func TestDatabaseIsPrivate(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	mode := func() os.FileMode {
		succeeds(t, palmares(t, store.Config{DataDir: dir}, "migrate", "up"))
		info, err := os.Stat(filepath.Join(dir, "palmares.db"))
		if err != nil {
			t.Fatal(err)
		}
		return info.Mode().Perm()
	}
	if got := mode(); got != 0o600 {
		t.Errorf("it is made %o", got)
	}
	if err := os.Chmod(filepath.Join(dir, "palmares.db"), 0o640); err != nil {
		t.Fatal(err)
	}
	if got := mode(); got != 0o640 {
		t.Errorf("it is made %o again", got)
	}
}

func TestWrongCommandLines(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{}, {"bogus"}, {"import"}, {"--bogus", "version"}, {"generate", "--tools", "0"}, {"generate", "--tools", "many"}, {"migrate"}} {
		r := runs(t, palmares(t, store.Config{DataDir: "data"}, args...))
		if r.code != 2 || strings.Count(r.err, "\n") != 1 || !strings.HasPrefix(r.err, "palmares: ") {
			t.Errorf("%v: exit %d: %s", args, r.code, r.err)
		}
	}
	if r := runs(t, palmares(t, store.Config{DataDir: "data"}, "--help")); r.code != 0 || !strings.Contains(r.out, "PALMARES_LISTEN") {
		t.Errorf("help: exit %d: %s", r.code, r.out)
	}
}

func TestVersion(t *testing.T) {
	t.Parallel()
	if r := succeeds(t, palmares(t, store.Config{DataDir: "data"}, "version")); !strings.HasPrefix(r.out, "palmares development (go1.") {
		t.Errorf("got %q", r.out)
	}
}

func TestImportAndExport(t *testing.T) {
	t.Parallel()
	const report = "" +
		"               created  updated  unchanged  retired  removed\n" +
		"   categories        8        0          0        -        0\n" +
		"        tools       48        0          0       10        0\n" +
		"  comparisons       14        0          0        -        0\n" +
		"price changes: 24\n" +
		"release: 1, of 2026-11-10\n"
	file := writeFile(t, "demo.ndjson", demo.Catalog)
	testkit.Each(t, func(t *testing.T, cfg store.Config) {
		dry := succeeds(t, palmares(t, cfg, "import", "--dry-run", file))
		if want := strings.Replace(report, "release: 1, of 2026-11-10", "release: would be 1, of 2026-11-10 (dry run: nothing was imported)", 1); dry.out != want {
			t.Errorf("dry run:\n%s", dry.out)
		}
		if r := runs(t, palmares(t, cfg, "export")); r.code != 1 || r.err != "palmares: the catalog is empty: nothing has been imported yet\n" {
			t.Errorf("export of nothing: exit %d: %s", r.code, r.err)
		}

		first := succeeds(t, palmares(t, cfg, "import", file))
		if first.out != report || first.err != "checking\nwriting tools\nwriting comparisons\n" {
			t.Errorf("first import:\n%s%s", first.out, first.err)
		}
		if r := succeeds(t, palmares(t, cfg, "export")); r.out != string(demo.Catalog) {
			t.Error("the export is not what was imported")
		}
		out := filepath.Join(t.TempDir(), "catalog.ndjson.gz")
		succeeds(t, palmares(t, cfg, "export", out))
		again := succeeds(t, palmares(t, cfg, "import", out))
		if !strings.HasSuffix(again.out, "price changes: 0\nrelease: none, nothing changed\n") {
			t.Errorf("import of the export:\n%s", again.out)
		}
	})
}

func TestImportFromAPipe(t *testing.T) {
	t.Parallel()
	var compressed bytes.Buffer
	w := gzip.NewWriter(&compressed)
	_, _ = w.Write(demo.Catalog)
	_ = w.Close()
	for name, data := range map[string][]byte{"plain": demo.Catalog, "compressed": compressed.Bytes()} {
		t.Run(name, func(t *testing.T) {
			cmd := palmares(t, testkit.SQLite(t), "import", "-")
			cmd.Stdin = io.MultiReader(bytes.NewReader(data)) // not a file: a pipe
			if r := succeeds(t, cmd); !strings.Contains(r.out, "release: 1, of 2026-11-10") {
				t.Errorf("got %s", r.out)
			}
		})
	}
}

func TestImportOfWhatIsNone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	wrong := writeFile(t, "wrong.ndjson", bytes.Replace(demo.Catalog, []byte(`"score":8.6`), []byte(`"score":86`), 1))
	for name, c := range map[string]struct{ file, want string }{
		"no file":     {filepath.Join(dir, "none"), "palmares: " + filepath.Join(dir, "none") + ": there is no such file or folder\n"},
		"a directory": {dir, "palmares: " + dir + ": is a directory\n"},
		"a wrong feed": {wrong, "checking\nline 13: tool \"atelier-nova\": score: 86 is over 10\n" +
			"palmares: nothing was changed: the feed is wrong\n"},
	} {
		t.Run(name, func(t *testing.T) {
			r := runs(t, palmares(t, testkit.SQLite(t), "import", c.file))
			if r.code != 1 || r.err != c.want || r.out != "" {
				t.Errorf("exit %d:\n%s", r.code, r.err)
			}
		})
	}
}

func TestRefusedImport(t *testing.T) {
	t.Parallel()
	cfg := testkit.SQLite(t)
	succeeds(t, palmares(t, cfg, "import", writeFile(t, "demo.ndjson", demo.Catalog)))
	other := synthFile(t, synth.Options{Tools: 20, Seed: 1, Revision: 320})
	r := runs(t, palmares(t, cfg, "import", other))
	if r.code != 1 || !strings.Contains(r.err, "palmares: nothing was changed: the feed would remove or retire 48 of 48 active tools, more than a fifth; use --force to import it anyway") {
		t.Errorf("exit %d: %s", r.code, r.err)
	}
	succeeds(t, palmares(t, cfg, "import", "--force", other))
}

func TestGenerate(t *testing.T) {
	t.Parallel()
	cfg := testkit.SQLite(t)
	generated := succeeds(t, palmares(t, cfg, "generate", "--tools", "300", "--seed", "9"))
	if again := succeeds(t, palmares(t, cfg, "generate", "--tools", "300", "--seed", "9")); again.out != generated.out {
		t.Error("the same seed gives another feed")
	}
	file := filepath.Join(t.TempDir(), "feed.gz")
	succeeds(t, palmares(t, cfg, "generate", "--tools", "300", "--seed", "9", file))
	if r := succeeds(t, palmares(t, cfg, "import", file)); !strings.Contains(r.out, "tools      300") {
		t.Errorf("got %s", r.out)
	}
}

func TestMigrateCommands(t *testing.T) {
	t.Parallel()
	testkit.Each(t, func(t *testing.T, cfg store.Config) {
		status := func() string {
			return strings.Join(strings.Fields(succeeds(t, palmares(t, cfg, "migrate", "status")).out), " ")
		}
		if got := status(); !strings.HasPrefix(got, "0001 catalog pending 0002 ") || strings.Contains(got, "applied") {
			t.Errorf("before: %s", got)
		}
		if r := runs(t, palmares(t, cfg, "export")); r.code != 1 || !strings.Contains(r.err, "run palmares migrate up") {
			t.Errorf("export: exit %d: %s", r.code, r.err)
		}
		if got := succeeds(t, palmares(t, cfg, "migrate", "up")).out; !strings.HasPrefix(got, "applied 0001 catalog\n") {
			t.Errorf("up: %s", got)
		}
		if got := succeeds(t, palmares(t, cfg, "migrate", "up")).out; got != "nothing to do: every migration is in\n" {
			t.Errorf("up again: %s", got)
		}
		if got := status(); !strings.HasPrefix(got, "0001 catalog applied 20") || strings.Contains(got, "pending") {
			t.Errorf("after: %s", got)
		}
	})
}

// An export is all or nothing: what was there before stays until it is whole.
func TestFailedExportLeavesTheOldFile(t *testing.T) {
	t.Parallel()
	file := writeFile(t, "catalog.ndjson", []byte("old"))
	if r := runs(t, palmares(t, testkit.SQLite(t), "export", file)); r.code != 1 {
		t.Fatalf("exit %d", r.code)
	}
	if data, _ := os.ReadFile(file); string(data) != "old" {
		t.Errorf("it now holds %q", data)
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(file), ".palmares-*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}
