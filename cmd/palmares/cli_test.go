package main

import (
	"bytes"
	"context"
	"io"
	"log"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"

	"palmares/cmd/palmares/commands"
	"palmares/internal/catalog/feed"
	"palmares/internal/catalog/feed/synth"
	"palmares/internal/catalog/folder"
	"palmares/internal/catalog/record"
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
			check.True(t, r.Code == 2 && r.Err == c.want+"\n" && r.Out == "",
				"got exit code %d, %q, %q, want 2, %q", r.Code, r.Err, r.Out, c.want)
			check.True(t, !strings.Contains(r.Err, "s3cret"), "got an error with the password, want it hidden: %s", r.Err)
		})
	}
}

// parseSettings returns valid settings, and all flags.
func parseSettings(t *testing.T, args ...string) (*settings, []*kong.Flag) {
	t.Helper()
	var s settings
	parser := kong.Must(&s, enums)
	check.Try(parser.Parse(args)).OK(t)
	check.OK(t, s.check(parser.Model.Flags))
	return &s, parser.Model.Flags
}

func TestValidSettings(t *testing.T) {
	t.Parallel()
	s, flags := parseSettings(t, "--listen=:8080", "--data-dir=d", "--service-name=n", "--trusted-proxies= 10.1.2.3/8, ::1 ,192.0.2.7", "--drain-delay=1ms", "--graphql-time=1ms", "--graphql-cost=1")
	check.True(t, len(s.proxies) == 3 && s.proxies[0].String() == "10.0.0.0/8" && s.proxies[1].String() == "::1/128",
		"got proxies %v, want 10.0.0.0/8, ::1/128 and 192.0.2.7/32", s.proxies)
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
			check.True(t, !slices.Contains(strings.Fields(d.names), name),
				"got %s among the dropped settings, want it supported or dropped", name)
		}
	}
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

// knownSettings returns the environment variables of all settings.
func knownSettings(t *testing.T) []string {
	t.Helper()
	parser := check.Try(kong.New(&commandLine{}, kong.Name("palmares"), enums)).OK(t)
	names := settingNames(parser.Model.Flags)
	check.MustTrue(t, len(names) >= 20 && len(names) <= 25 && slices.Contains(names, "DATABASE_URL"),
		"got %d settings, want 20 to 25: %v", len(names), names)
	return names
}

// The schemas are written to a new or an existing folder, as the server serves them.
func TestSchemasCommand(t *testing.T) {
	t.Parallel()
	s := blackbox.Serve(t, blackbox.Demo(t), "--demo")
	dir := filepath.Join(t.TempDir(), "new", "schemas")
	for _, what := range []string{"a new folder", "an existing folder"} {
		r := blackbox.MustRun(t, blackbox.Command(t, store.Config{DataDir: "none"}, "schemas", dir))
		files := strings.Fields(r.Out)
		check.Equal(t, len(files), 5, "%s: %q", what, r.Out)
		for _, file := range files {
			written, err := os.ReadFile(file)
			check.OK(t, err)
			response := s.Call(t, http.MethodGet, "/schemas/feed/"+filepath.Base(file), "")
			served, err := io.ReadAll(response.Body)
			check.True(t, err == nil && response.StatusCode == 200 && bytes.Equal(served, written),
				"%s: got %d %s, want 200 and what was written", file, response.StatusCode, served)
		}
	}
}

func TestInterruptedCommands(t *testing.T) {
	t.Parallel()
	feed, err := os.ReadFile(blackbox.SynthFile(t, synth.Options{Tools: 300, Seed: 1}))
	check.MustTrue(t, err == nil && len(feed) >= 256<<10,
		"got a feed of %d bytes, %v, want more than a pipe holds", len(feed), err)
	for name, args := range map[string][]string{
		"import from an endless pipe": {"import", "-"},
		"generate":                    {"generate", "--tools", "5000000"},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := blackbox.Command(t, testkit.SQLite(t), args...)
			reader, writer, err := os.Pipe()
			check.OK(t, err)
			defer reader.Close()
			defer writer.Close()
			cmd.Stdin = reader
			out, err := cmd.StdoutPipe()
			check.OK(t, err)
			check.OK(t, cmd.Start())
			// Wait until the process reads or writes.
			if args[0] == "import" {
				_, err = writer.Write(feed)
			} else {
				_, err = io.ReadFull(out, make([]byte, 1000))
			}
			check.OK(t, err)
			go func() { _, _ = io.Copy(io.Discard, out) }() // so that the process does not block
			_ = cmd.Process.Signal(os.Interrupt)
			_ = cmd.Wait()
			check.Equal(t, cmd.ProcessState.ExitCode(), 1, "exit code")
		})
	}
}

// TestLintOf10000Files counts CPU time, which other processes do not extend.
func TestLintOf10000Files(t *testing.T) {
	testkit.FullTier(t, "it writes 10,000 files")
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "catalog")
	var lines bytes.Buffer
	check.OK(t, synth.Write(t.Context(), &lines, synth.Options{Tools: 8000, Seed: 1}))
	files, err := folder.NewWriter(dir, record.Header{Format: record.FormatVersion, UpdatedAt: "2026-11-10"})
	check.OK(t, err)
	_, err = feed.Read(t.Context(), feed.NewLines(bytes.NewReader(lines.Bytes())), func(_ int, rec record.Record) { check.OK(t, files.Write(rec)) })
	check.OK(t, err)
	check.OK(t, files.Close(nil))
	if names, err := filepath.Glob(filepath.Join(dir, "*", "*.md")); err != nil || len(names) < 10_000 {
		t.Fatalf("got %d files, want at least 10,000", len(names))
	}
	cmd := blackbox.Command(t, store.Config{DataDir: "data"}, "lint", dir)
	r := blackbox.Run(t, cmd)
	if used := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(); used > 5*time.Second || r.Code != 0 {
		t.Errorf("got exit code %d after %v of CPU time, want 0 in less than 5 s: %s", r.Code, used, r.Err)
	}
}

// Without the signing secret, anyone could send events on behalf of Stripe.
func TestStripeRequiresWebhookSecret(t *testing.T) {
	t.Parallel()
	r := blackbox.Run(t, blackbox.Command(t, testkit.SQLite(t), "serve", "--listen", "127.0.0.1:0", "--stripe-secret-key", "sk_test_s3cret"))
	if r.Code != 1 || !strings.Contains(r.Err, "STRIPE_WEBHOOK_SECRET: required with STRIPE_SECRET_KEY") || strings.Contains(r.Err, "s3cret") {
		t.Errorf("got exit code %d and %q, want 1 without the key", r.Code, r.Err)
	}
}

// mockWith starts a proxy to the Stripe mock that replaces some responses.
func mockWith(t *testing.T, mock string, responses map[string]string) string {
	t.Helper()
	behind := check.Try(url.Parse(mock)).OK(t)
	mux := http.NewServeMux()
	mux.Handle("/", httputil.NewSingleHostReverseProxy(behind))
	for pattern, body := range responses {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, body)
		})
	}
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server.URL
}

// emptyList is an empty list in the Stripe API.
const emptyList = `{"object":"list","data":[]}`

func TestBillingCommands(t *testing.T) {
	t.Parallel()
	cfg := testkit.SQLite(t)
	without := blackbox.Run(t, blackbox.Command(t, cfg, "billing", "setup"))
	check.Equal(t, without.Code, 1, "without a key")
	check.Equal(t, without.Err, "palmares: STRIPE_SECRET_KEY is not set.\n", "without a key")
	mock := testkit.StartStripeMock(t)
	billing := func(base string, args ...string) blackbox.Result {
		return blackbox.Run(t, blackbox.Command(t, cfg, append([]string{"--stripe-secret-key", "sk_test_123", "--stripe-api-base", base, "billing"}, args...)...))
	}
	// The mock always returns a price in dollars.
	wrong := billing(mock, "setup")
	check.Equal(t, wrong.Code, 1, "price in dollars")
	check.Contains(t, wrong.Err, "is not €99 per month plus VAT. Archive it first", "price in dollars")
	created := billing(mockWith(t, mock, map[string]string{"GET /v1/prices": emptyList, "GET /v1/billing_portal/configurations": emptyList}), "setup")
	for _, want := range []string{"Price created: ", "(€99 per month plus VAT)", "Customer portal created: ", "customer.subscription.updated"} {
		check.Equal(t, created.Code, 0, created.Err)
		check.Contains(t, created.Out, want, created.Err)
	}
	synced := billing(mock, "sync")
	check.True(t, synced.Code == 0, "sync without customers: got exit code %d and %q, want 0", synced.Code, synced.Err)
}

// An account that loses Pro in a sync is notified by email.
func TestBillingSyncSendsEmail(t *testing.T) {
	t.Parallel()
	cfg := testkit.SQLite(t)
	db := testkit.Open(t, cfg)
	ana := db.Write.Account.Create().SetEmail("ana@example.com").SetPlan("pro").SaveX(t.Context())
	db.Write.Customer.Create().SetID("cus_1").SetAccountID(ana.ID).SetEmail(ana.Email).SetStatus("active").ExecX(t.Context())
	smtp := testkit.StartSMTP(t)
	stripe := mockWith(t, testkit.StartStripeMock(t), map[string]string{"GET /v1/subscriptions": emptyList})
	synced := blackbox.Run(t, blackbox.Command(t, cfg, "--stripe-secret-key", "sk_test_123", "--stripe-api-base", stripe, "--smtp-url", smtp.URL, "billing", "sync"))
	check.Equal(t, synced.Code, 0, synced.Err)
	check.Contains(t, synced.Out, "cus_1  ana@example.com", synced.Err)
	check.MustTrue(t, smtp.Count("ana@example.com") != 0, "got no email before the command ended, want one")
	check.Contains(t, smtp.Wait(t, "ana@example.com"), "has ended", "want an email about the end of Pro")
}
