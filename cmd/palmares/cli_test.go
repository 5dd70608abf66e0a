package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"io"
	"log"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"palmares/cmd/palmares/commands"
	"palmares/internal/catalog/feed/demo"
	"palmares/internal/catalog/feed/synth"
	"palmares/internal/core/store"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
	"palmares/internal/dev/testkit/blackbox"
)

const notARoot = `palmares: PUBLIC_URL: must have only a scheme and a host, as in https://palmares.example, without a path, query, fragment or user`

func TestInvalidSettings(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		env  string
		want string
	}{
		"listen without a port":      {"PALMARES_LISTEN=localhost", `palmares: PALMARES_LISTEN: must have the form host:port (got "localhost")`},
		"listen on a name":           {"PALMARES_LISTEN=:http-alt", `palmares: PALMARES_LISTEN: must have a port from 0 to 65535 (got "http-alt")`},
		"listen port too high":       {"PALMARES_LISTEN=:70000", `palmares: PALMARES_LISTEN: must have a port from 0 to 65535 (got "70000")`},
		"blank data directory":       {"PALMARES_DATA_DIR= ", `palmares: PALMARES_DATA_DIR: must not be blank`},
		"unsupported database":       {"DATABASE_URL=mysql://u:s3cret@h/db", `palmares: DATABASE_URL: must have the form postgres://user:password@host:port/database`},
		"malformed database":         {"DATABASE_URL=postgres://u:s3cret@h:p%zz/db", `palmares: DATABASE_URL: must have the form postgres://user:password@host:port/database`},
		"invalid database parameter": {"DATABASE_URL=postgres://h/db?sslmode=disablepassword=s3cret", `palmares: DATABASE_URL: has an invalid port or parameter`},
		"database port too high":     {"DATABASE_URL=postgres://u:s3cret@h:99999/db", `palmares: DATABASE_URL: has an invalid port or parameter`},
		"no database name":           {"DATABASE_URL=postgres://u:s3cret@h", `palmares: DATABASE_URL: must name a database, as in postgres://host:port/database`},
		"blank service name":         {"SERVICE_NAME=  ", `palmares: SERVICE_NAME: must not be blank`},
		"service without a scheme":   {"SERVICE_URL=palmares.example", `palmares: SERVICE_URL: must be an absolute http or https URL (got "palmares.example")`},
		"public URL with ftp":        {"PUBLIC_URL=ftp://palmares.example", `palmares: PUBLIC_URL: must be an absolute http or https URL (got "ftp://palmares.example")`},
		"public URL with a path":     {"PUBLIC_URL=https://palmares.example/api", notARoot},
		"public URL with a query":    {"PUBLIC_URL=https://palmares.example/?x=1", notARoot},
		"public URL with a ?":        {"PUBLIC_URL=https://palmares.example/?", notARoot},
		"public URL with a fragment": {"PUBLIC_URL=https://palmares.example#x", notARoot},
		"public URL with a user":     {"PUBLIC_URL=https://u:s3cret@palmares.example", notARoot},
		"malformed redis":            {"REDIS_URL=redis://user:secret@host:port/0", `palmares: REDIS_URL: must be a URL of the form redis://user:password@host:port/number`},
		"metrics without a port":     {"PALMARES_METRICS_LISTEN=metrics", `palmares: PALMARES_METRICS_LISTEN: must have the form host:port (got "metrics")`},
		"no cache":                   {"PALMARES_CACHE_MB=0", `palmares: PALMARES_CACHE_MB: must be from 1 to 1048576 (got 0)`},
		"mail without a scheme":      {"SMTP_URL=user:s3cret@mail.example:587", `palmares: SMTP_URL: must have the form smtp://user:password@host:587 or smtps://user:password@host:465; percent-encode special characters in the user name and password, such as %2F for a slash`},
		"malformed sender":           {"MAIL_FROM=palmares", `palmares: MAIL_FROM: must have the form name@example.com or Name <name@example.com>`},
		"malformed contact":          {"CONTACT_EMAIL=palmares", `palmares: CONTACT_EMAIL: must have the form name@example.com (got "palmares")`},
		"webhook secret alone":       {"STRIPE_WEBHOOK_SECRET=whsec_s3cret", `palmares: STRIPE_WEBHOOK_SECRET: has no effect without STRIPE_SECRET_KEY; set both`},
		"purge header alone":         {"PALMARES_PURGE_HEADER=X: s3cret", `palmares: PALMARES_PURGE_HEADER: has no effect without PALMARES_PURGE_URL; set both`},
		"listen on nothing":          {"PALMARES_LISTEN=", `palmares: PALMARES_LISTEN: must have the form host:port (got "")`},
		"too many files":             {"PALMARES_FILES_MB=1048577", `palmares: PALMARES_FILES_MB: must be from 1 to 1048576 (got 1048577)`},
		"a delay of 1 ns":            {"PALMARES_DRAIN_DELAY=1ns", `palmares: PALMARES_DRAIN_DELAY: must be from 1ms to 1m (got 1ns)`},
		"a long delay":               {"PALMARES_DRAIN_DELAY=61s", `palmares: PALMARES_DRAIN_DELAY: must be from 1ms to 1m (got 1m1s)`},
		"operations of 1 ns":         {"PALMARES_GRAPHQL_TIME=1ns", `palmares: PALMARES_GRAPHQL_TIME: must be at least 1ms (got 1ns)`},
		"operations without a cost":  {"PALMARES_GRAPHQL_COST=0", `palmares: PALMARES_GRAPHQL_COST: must be at least 1 (got 0)`},
		"proxy by name":              {"TRUSTED_PROXIES=10.0.0.0/8,proxy", `palmares: TRUSTED_PROXIES: must be addresses or networks such as 10.0.0.0/8, separated by commas (got "proxy")`},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := blackbox.Command(t, store.Config{DataDir: "data"}, "version")
			cmd.Env = append(cmd.Env, c.env)
			r := blackbox.Run(t, cmd)
			if r.Code != 2 || r.Err != c.want+"\n" || r.Out != "" {
				t.Errorf("got exit code %d, %q, %q, want 2, %q", r.Code, r.Err, r.Out, c.want)
			}
			if strings.Contains(r.Err, "s3cret") {
				t.Errorf("got an error with the password, want it hidden: %s", r.Err)
			}
		})
	}
}

// parseSettings returns valid settings, and all flags.
func parseSettings(t *testing.T, args ...string) (*settings, []*kong.Flag) {
	t.Helper()
	var s settings
	parser := kong.Must(&s, enums)
	_, err := parser.Parse(args)
	check.OK(t, err)
	check.OK(t, s.check(parser.Model.Flags))
	return &s, parser.Model.Flags
}

func TestValidSettings(t *testing.T) {
	t.Parallel()
	s, flags := parseSettings(t, "--listen=:8080", "--data-dir=d", "--service-name=n", "--trusted-proxies= 10.1.2.3/8, ::1 ,192.0.2.7", "--drain-delay=1ms", "--graphql-time=1ms", "--graphql-cost=1")
	if len(s.proxies) != 3 || s.proxies[0].String() != "10.0.0.0/8" || s.proxies[1].String() != "::1/128" {
		t.Errorf("got proxies %v, want 10.0.0.0/8, ::1/128 and 192.0.2.7/32", s.proxies)
	}
	for _, flag := range flags {
		if name := flag.Tag.Get("check"); name != "" && checks[name] == nil {
			t.Errorf("--%s: got the unknown check %s, want one of checks", flag.Name, name)
		}
	}
	cfg, err := s.server(nil).Resolved()
	if err != nil || cfg.PublicURL != "http://localhost:8080" || cfg.Credit() != "Source : n (http://localhost:8080)" {
		t.Errorf("got public URL %q, credit %q and %v, want http://localhost:8080 in both", cfg.PublicURL, cfg.Credit(), err)
	}
}

// notHere is an address that no machine has. Servers that listen on it end.
const notHere = "192.0.2.1:1"

// Misspelled variables are named when a server starts, but not those of Kubernetes, of
// tests, of other programs and of earlier versions.
func TestUnknownVariables(t *testing.T) {
	t.Parallel()
	want := []string{"DATABASEURL", "DATABSE_URL", "PALMARES_CACHEMB", "PALMARES_COLOR", "REDIS_URI", "SMPT_URL", "STRIPE_SECRET_KEYS", "STRIP_WEBHOOK_SECRETS", "URL_PUBLIC"}
	others := strings.Fields(`PALMARES_SERVICE_HOST PALMARES_SERVICE_PORT PALMARES_SERVICE_PORT_HTTP PALMARES_PORT PALMARES_PORT_8080_TCP PALMARES_TEST_X
		MAIL SMTP_SSL SMTP_USER SMTP_HOST REDIS_SSL DATABASE_SSL DATABASE HTTP_URL AMQP_URL HOSTNAME POSTGRES_PASSWORD STRIPE_PRICE PUBLISHER_NAME`)
	known := knownSettings(t)
	var environment []string
	for _, name := range slices.Concat(want, others, known) {
		environment = append(environment, name+"=x")
	}
	check.Slices(t, unknownVariables(slices.Concat(known, []string{"STRIPE_PRICE"}), environment), want)
	cmd := blackbox.Command(t, store.Config{DataDir: "data"}, "serve", "--listen", notHere)
	cmd.Env = append(cmd.Env, "DATABSE_URL=x", "PALMARES_PORT=x", "STRIPE_PRICE=")
	const warning = `"level":"WARN","msg":"unknown environment variables","names":["DATABSE_URL"]`
	if r := blackbox.Run(t, cmd); r.Code != 1 || strings.Count(r.Err, warning) != 1 {
		t.Errorf("got exit code %d and %s, want 1 and %s", r.Code, r.Err, warning)
	}
}

// Settings that only a server needs stop it with one sentence. Doctor reports them, and
// other commands work.
func TestInvalidServerSettings(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	file := filepath.Join(folder, "facts.yml")
	check.OK(t, os.WriteFile(file, []byte("publisher-nam: Ana"), 0o600))
	cases := map[string]string{
		"DATABASE_READ_URL=postgres://u:s3cret@h/db": "DATABASE_READ_URL: no longer supported; remove it, and add servers to scale reads: they hold the catalog in memory",
		"STRIPE_PRICE=price_1":                       "STRIPE_PRICE: no longer supported; remove it: the price is the one that palmares billing setup creates",
		"PALMARES_GRAPHQL_DEPTH=9":                   "PALMARES_GRAPHQL_DEPTH: no longer supported; remove it: of the limits on GraphQL, only",
		"PUBLISHER_NAME=Ana HOSTING_NAME=Host":       "PUBLISHER_NAME, HOSTING_NAME: no longer supported; write publisher-name, hosting-name in facts.yml in the folder of PALMARES_PAGES_DIR",
		"PALMARES_PAGES_DIR=" + folder:               file + ": publisher-nam: no fact has this name; use one of publisher-name,",
	}
	for _, d := range dropped {
		cases[strings.Fields(d.names)[0]+"=x"] = strings.Fields(d.names)[0] + ": no longer supported; "
	}
	for variables, want := range cases {
		run := func(args ...string) blackbox.Result {
			cmd := blackbox.Command(t, store.Config{DataDir: "data"}, args...)
			cmd.Env = append(cmd.Env, strings.Fields(variables)...)
			return blackbox.Run(t, cmd)
		}
		if r := run("serve", "--listen", notHere); r.Code != 2 || !strings.HasPrefix(r.Err, "palmares: "+want) || strings.Count(r.Err, "\n") != 1 || strings.Contains(r.Err, "s3cret") {
			t.Errorf("%s: got exit code %d and %q, want 2 and %q", variables, r.Code, r.Err, want)
		}
		if r := run("doctor"); r.Code != 1 || !strings.HasPrefix(r.Out, "wrong  settings  "+want) {
			t.Errorf("doctor with %s: got exit code %d and %q, want 1 and %q", variables, r.Code, r.Out, want)
		}
		if r := run("version"); r.Code != 0 || r.Err != "" {
			t.Errorf("version with %s: got exit code %d and %q, want 0", variables, r.Code, r.Err)
		}
	}
	for _, name := range knownSettings(t) {
		for _, d := range dropped {
			if slices.Contains(strings.Fields(d.names), name) {
				t.Errorf("got %s among the dropped settings, want it supported or dropped", name)
			}
		}
	}
}

// SERVICE_URL may have a path; PUBLIC_URL may not.
func TestServiceURLWithPath(t *testing.T) {
	t.Parallel()
	cmd := blackbox.Command(t, store.Config{DataDir: "data"}, "version")
	cmd.Env = append(cmd.Env, "PUBLIC_URL=https://palmares.example:8443/", "SERVICE_URL=https://palmares.example/about?lang=en#us")
	blackbox.MustRun(t, cmd)
}

// Lines that net/http logs are JSON as well.
func TestAllLogLinesAreJSON(t *testing.T) {
	t.Parallel()
	before, flags, output := slog.Default(), log.Flags(), log.Writer()
	t.Cleanup(func() {
		slog.SetDefault(before)
		log.SetFlags(flags)
		log.SetOutput(output)
	})
	ended, end := context.WithCancel(t.Context())
	end()
	s := settings{Listen: "127.0.0.1:0", DataDir: t.TempDir(), ServiceName: "n", CacheMB: 1, FilesMB: 1}
	_ = (&serveCommand{}).Run(ended, &s, commands.Terminal{Out: io.Discard, Err: io.Discard}) // stops immediately
	if _, is := slog.Default().Handler().(*slog.JSONHandler); !is {
		t.Errorf("got a default log handler of type %T, want JSON", slog.Default().Handler())
	}
}

// The database contains personal data, so only its owner can read it, regardless
// of the folder's mode. An existing file keeps its mode.
func TestDatabaseIsPrivate(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	check.OK(t, os.Mkdir(dir, 0o755))
	mode := func() os.FileMode {
		blackbox.MustRun(t, blackbox.Command(t, store.Config{DataDir: dir}, "migrate", "up"))
		info, err := os.Stat(filepath.Join(dir, "palmares.db"))
		check.OK(t, err)
		return info.Mode().Perm()
	}
	check.Equal(t, mode(), 0o600, "new database: mode")
	check.OK(t, os.Chmod(filepath.Join(dir, "palmares.db"), 0o640))
	check.Equal(t, mode(), 0o640, "existing database: mode")
}

func TestInvalidCommandLines(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{}, {"bogus"}, {"import"}, {"--bogus", "version"}, {"generate", "--tools", "0"}, {"generate", "--tools", "many"}, {"migrate"}} {
		r := blackbox.Run(t, blackbox.Command(t, store.Config{DataDir: "data"}, args...))
		if r.Code != 2 || strings.Count(r.Err, "\n") != 1 || !strings.HasPrefix(r.Err, "palmares: ") {
			t.Errorf("%v: got exit code %d and %q, want 2 and one line", args, r.Code, r.Err)
		}
	}
}

// Only the help of palmares and of serve lists the settings.
func TestHelp(t *testing.T) {
	t.Parallel()
	for args, hasSettings := range map[string]bool{"--help": true, "serve --help": true, "import --help": false, "webhooks --help": false, "keys create --help": false} {
		r := blackbox.Run(t, blackbox.Command(t, store.Config{DataDir: "data"}, strings.Fields(args)...))
		check.Equal(t, r.Code, 0, "%s: %s", args, r.Out)
		check.Equal(t, strings.Contains(r.Out, "PALMARES_LISTEN"), hasSettings, "%s: %s", args, r.Out)
	}
}

func TestVersion(t *testing.T) {
	t.Parallel()
	if r := blackbox.MustRun(t, blackbox.Command(t, store.Config{DataDir: "data"}, "version")); !strings.HasPrefix(r.Out, "palmares development (commit unknown, go1.") {
		t.Errorf("got %q, want palmares development and the Go version", r.Out)
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
	file := blackbox.WriteFile(t, "demo.ndjson", demo.Catalog())
	testkit.Each(t, func(t *testing.T, cfg store.Config) {
		dry := blackbox.MustRun(t, blackbox.Command(t, cfg, "import", "--dry-run", file))
		check.Equal(t, dry.Out, strings.Replace(report, "release: 1, of 2026-11-10", "release: would be 1, of 2026-11-10 (dry run: nothing was imported)", 1), "dry run")
		if r := blackbox.Run(t, blackbox.Command(t, cfg, "export")); r.Code != 1 || r.Err != "palmares: the catalog is empty: nothing has been imported yet\n" {
			t.Errorf("export of an empty catalog: got exit code %d and %q, want 1", r.Code, r.Err)
		}

		first := blackbox.MustRun(t, blackbox.Command(t, cfg, "import", file))
		check.Equal(t, first.Out, report, "first import")
		check.Equal(t, first.Err, "checking\nwriting tools\nwriting comparisons\n", "first import")
		check.Equal(t, blackbox.MustRun(t, blackbox.Command(t, cfg, "export")).Out, string(demo.Catalog()))
		out := filepath.Join(t.TempDir(), "catalog.ndjson.gz")
		blackbox.MustRun(t, blackbox.Command(t, cfg, "export", out))
		again := blackbox.MustRun(t, blackbox.Command(t, cfg, "import", out))
		if !strings.HasSuffix(again.Out, "price changes: 0\nrelease: none, nothing changed\n") {
			t.Errorf("import of the export: got\n%s\nwant no changes", again.Out)
		}
	})
}

// TestFolders exports a release as a folder, publishes the folder on each database, and
// exports it again.
func TestFolders(t *testing.T) {
	t.Parallel()
	testkit.Each(t, func(t *testing.T, cfg store.Config) {
		blackbox.MustRun(t, blackbox.Command(t, cfg, "import", blackbox.WriteFile(t, "demo.ndjson", demo.Catalog())))
		blackbox.MustRun(t, blackbox.Command(t, cfg, "import", blackbox.WriteFile(t, "next.ndjson", bytes.Replace(demo.Catalog(), []byte("2026-11-10"), []byte("2026-11-11"), 1))))
		dir := filepath.Join(t.TempDir(), "catalog")
		blackbox.MustRun(t, blackbox.Command(t, cfg, "export", "--to", dir, "--as-of", "1"))
		if r := blackbox.Run(t, blackbox.Command(t, cfg, "export", "--to", dir)); r.Code != 1 || r.Err != "palmares: "+dir+": is not empty; name a new folder\n" {
			t.Errorf("export into a folder with files: got exit code %d and %q, want 1", r.Code, r.Err)
		}
		testkit.EachNew(t, func(t *testing.T, empty store.Config) {
			check.Contains(t, blackbox.MustRun(t, blackbox.Command(t, empty, "import", dir)).Out, "release: 1, of 2026-11-10", "want release 1")
			check.Equal(t, blackbox.MustRun(t, blackbox.Command(t, empty, "export")).Out, string(demo.Catalog()))
			tool := filepath.Join(dir, "tools", "plume.md")
			text, err := os.ReadFile(tool)
			check.OK(t, err)
			check.OK(t, os.WriteFile(tool, bytes.Replace(text, []byte("score: 8.1"), []byte("score: 81"), 1), 0o644))
			r := blackbox.Run(t, blackbox.Command(t, empty, "import", dir))
			check.OK(t, os.WriteFile(tool, text, 0o644))
			if want := "checking\ntools/plume.md:8:8: score: must be at most 10 (got 81)\npalmares: nothing was changed: the feed is invalid\n"; r.Code != 1 || r.Err != want {
				t.Errorf("import of an invalid folder: got exit code %d and\n%s\nwant 1 and\n%s", r.Code, r.Err, want)
			}
		})
	})
}

func TestImportFromPipe(t *testing.T) {
	t.Parallel()
	var compressed bytes.Buffer
	w := gzip.NewWriter(&compressed)
	_, _ = w.Write(demo.Catalog())
	_ = w.Close()
	for name, data := range map[string][]byte{"plain": demo.Catalog(), "compressed": compressed.Bytes()} {
		t.Run(name, func(t *testing.T) {
			cmd := blackbox.Command(t, testkit.SQLite(t), "import", "-")
			cmd.Stdin = io.MultiReader(bytes.NewReader(data)) // a pipe instead of a file
			check.Contains(t, blackbox.MustRun(t, cmd).Out, "release: 1, of 2026-11-10", "want release 1")
		})
	}
}

func TestImportOfInvalidFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	invalid := blackbox.WriteFile(t, "invalid.ndjson", bytes.Replace(demo.Catalog(), []byte(`"score":8.6`), []byte(`"score":86`), 1))
	for name, c := range map[string]struct{ file, want string }{
		"no file":     {filepath.Join(dir, "none"), "palmares: " + filepath.Join(dir, "none") + ": no such file or directory\n"},
		"a directory": {dir, "palmares: " + dir + ": is not a catalog folder: it has no catalog.yml; name a folder that palmares export --to wrote\n"},
		"an invalid feed": {invalid, "checking\nline 13: tool \"atelier-nova\": score: must be at most 10 (got 86)\n" +
			"palmares: nothing was changed: the feed is invalid\n"},
	} {
		t.Run(name, func(t *testing.T) {
			r := blackbox.Run(t, blackbox.Command(t, testkit.SQLite(t), "import", c.file))
			if r.Code != 1 || r.Err != c.want || r.Out != "" {
				t.Errorf("got exit code %d and %q, want 1 and %q", r.Code, r.Err, c.want)
			}
		})
	}
}

func TestImportThatRemovesTooMuch(t *testing.T) {
	t.Parallel()
	cfg := testkit.SQLite(t)
	blackbox.MustRun(t, blackbox.Command(t, cfg, "import", blackbox.WriteFile(t, "demo.ndjson", demo.Catalog())))
	other := blackbox.SynthFile(t, synth.Options{Tools: 20, Seed: 1, Revision: 320})
	r := blackbox.Run(t, blackbox.Command(t, cfg, "import", other))
	check.Equal(t, r.Code, 1)
	check.Contains(t, r.Err, "palmares: nothing was changed: the feed would remove or retire 48 of 48 active tools, more than a fifth; use --force to import it anyway")
	blackbox.MustRun(t, blackbox.Command(t, cfg, "import", "--force", other))
}

func TestGenerate(t *testing.T) {
	t.Parallel()
	cfg := testkit.SQLite(t)
	generated := blackbox.MustRun(t, blackbox.Command(t, cfg, "generate", "--tools", "300", "--seed", "9"))
	check.Equal(t, blackbox.MustRun(t, blackbox.Command(t, cfg, "generate", "--tools", "300", "--seed", "9")).Out, generated.Out, "same seed: another feed")
	file := filepath.Join(t.TempDir(), "feed.gz")
	blackbox.MustRun(t, blackbox.Command(t, cfg, "generate", "--tools", "300", "--seed", "9", file))
	check.Contains(t, blackbox.MustRun(t, blackbox.Command(t, cfg, "import", file)).Out, "tools      300")
}

func TestMigrateCommands(t *testing.T) {
	t.Parallel()
	testkit.EachNew(t, func(t *testing.T, cfg store.Config) {
		status := func() string {
			return strings.Join(strings.Fields(blackbox.MustRun(t, blackbox.Command(t, cfg, "migrate", "status")).Out), " ")
		}
		if got := status(); !strings.HasPrefix(got, "0026 baseline pending") || strings.Contains(got, "applied") {
			t.Errorf("before: got %s, want all pending", got)
		}
		if r := blackbox.Run(t, blackbox.Command(t, cfg, "export")); r.Code != 1 || !strings.Contains(r.Err, "run palmares migrate up") {
			t.Errorf("export: got exit code %d and %q, want 1 and a hint to run migrate up", r.Code, r.Err)
		}
		if got := blackbox.MustRun(t, blackbox.Command(t, cfg, "migrate", "up")).Out; !strings.HasPrefix(got, "applied 0026 baseline\n") {
			t.Errorf("up: got %s, want all applied", got)
		}
		check.Equal(t, blackbox.MustRun(t, blackbox.Command(t, cfg, "migrate", "up")).Out, "no pending migrations\n", "up again: want no pending migrations")
		if got := status(); !strings.HasPrefix(got, "0026 baseline applied 20") || strings.Contains(got, "pending") {
			t.Errorf("after: got %s, want all applied", got)
		}
	})
}

// An export replaces a file only once it is complete.
func TestFailedExportKeepsOldFile(t *testing.T) {
	t.Parallel()
	file := blackbox.WriteFile(t, "catalog.ndjson", []byte("old"))
	check.Must(t, blackbox.Run(t, blackbox.Command(t, testkit.SQLite(t), "export", file)).Code, 1, "exit code")
	if data, _ := os.ReadFile(file); string(data) != "old" {
		t.Errorf("got %q, want old", data)
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(file), ".palmares-*")); len(left) > 0 {
		t.Errorf("got temporary files %v, want none", left)
	}
}
