package main

import (
	"cmp"
	"database/sql"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"palmares/internal/account/billing"
	"palmares/internal/core/store"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
	"palmares/internal/dev/testkit/blackbox"
	"palmares/internal/dev/testkit/wait"
)

// examined is the output of palmares doctor, with the state and message of each check.
type examined struct {
	blackbox.Result
	states, lines map[string]string
}

// examine runs palmares doctor with variables and flags.
func examine(t *testing.T, cfg store.Config, given ...string) examined {
	t.Helper()
	cfg.DataDir = cmp.Or(cfg.DataDir, "data")
	cmd := blackbox.Command(t, cfg, "doctor")
	cmd.Env = append(cmd.Env, "PALMARES_LISTEN=127.0.0.1:0")
	for _, setting := range given {
		if strings.HasPrefix(setting, "--") {
			cmd.Args = append(cmd.Args, setting)
		} else {
			cmd.Env = append(cmd.Env, setting)
		}
	}
	e := examined{blackbox.Run(t, cmd), map[string]string{}, map[string]string{}}
	for line := range strings.Lines(e.Out) {
		state, rest, _ := strings.Cut(line, "  ")
		name, text, found := strings.Cut(strings.TrimSpace(rest), "  ")
		check.MustTrue(t, found, "got line %q, want three columns", line)
		e.states[name], e.lines[name] = state, strings.TrimSpace(text)
	}
	want := 0
	for name, state := range e.states {
		if state == "wrong" {
			want = 1
		}
		check.True(t, state == "ok" || strings.Count(e.lines[name], ".") >= 2,
			"%s: got %s, want advice after the finding", name, e.lines[name])
	}
	check.Equal(t, e.Code, want, "exit code")
	for _, leak := range []string{"s3cret", "dial tcp", "pq:", "EOF", "connection refused", "i/o timeout", "context"} {
		check.True(t, !strings.Contains(e.Out+e.Err, leak),
			"got %q in the output, want no secrets or internal errors:\n%s%s", leak, e.Out, e.Err)
	}
	return e
}

// want checks the state and the message of one check.
func (e examined) want(t *testing.T, name, state, text string) {
	t.Helper()
	check.Equal(t, e.states[name], state, name)
	check.Contains(t, e.lines[name], text, name)
}

func TestDoctorWithoutProblems(t *testing.T) {
	t.Parallel()
	testkit.Each(t, func(t *testing.T, cfg store.Config) { testDoctorWithoutProblems(t, cfg, "") })
}

func TestDoctorWithRedis(t *testing.T) {
	t.Parallel()
	testDoctorWithoutProblems(t, testkit.Postgres(t), testkit.StartRedis(t).URL)
}

func testDoctorWithoutProblems(t *testing.T, cfg store.Config, redis string) {
	t.Helper()
	smtp, trust := startEncryptedSMTP(t)
	stripe := startFakeStripe(t, http.StatusOK)
	blackbox.ImportDemo(t, cfg)
	e := examine(t, cfg, "REDIS_URL="+redis, "SMTP_URL="+smtp, trust,
		"STRIPE_SECRET_KEY=sk_live_s3cret123", "STRIPE_WEBHOOK_SECRET=whsec_s3cret", "--stripe-api-base="+stripe)
	want := []string{"settings", "about page", "security.txt", "database", "migrations", "catalog", "redis", "mail", "stripe", "price", "tax", "customer portal", "public url", "oauth", "proxies", "server"}
	if cfg.DatabaseURL == "" {
		want = append(want, "data folder", "disk")
	} else {
		want = append(want, "encoding", "database clock", "connections")
	}
	if redis != "" {
		want = append(want, "redis memory", "redis clock")
	}
	for _, name := range want {
		e.want(t, name, "ok", "")
	}
	check.Equal(t, len(e.states), len(want))
	check.Equal(t, e.Err, "")
	e.want(t, "catalog", "ok", "release 1 (feed date 2026-11-10), imported just now")
	e.want(t, "mail", "ok", "an encrypted connection and the password")
}

func TestDoctorJSON(t *testing.T) {
	t.Parallel()
	cfg := testkit.SQLite(t)
	blackbox.ImportDemo(t, cfg)
	for args, code := range map[string]int{"--json": 1, "--json --verbose": 1} {
		cmd := blackbox.Command(t, cfg, append([]string{"doctor", "--listen", "127.0.0.1:0", "--redis-url", "redis://:s3cret@" + testkit.FreeAddress(t)}, strings.Fields(args)...)...)
		r := blackbox.Run(t, cmd)
		var output struct {
			State  string
			Checks []struct{ Check, State, Message, Advice, Cause string }
		}
		if err := json.Unmarshal([]byte(r.Out), &output); err != nil || r.Code != code || output.State != "wrong" || strings.Contains(r.Out, "s3cret") {
			t.Fatalf("got exit code %d and %v, want %d and state wrong:\n%s", r.Code, err, code, r.Out)
		}
		for _, name := range output.Checks {
			if name.Check == "redis" && (name.State != "wrong" || name.Advice == "" || (name.Cause != "") != strings.Contains(args, "verbose")) {
				t.Errorf("%s: got %+v, want wrong with advice, and a cause only if verbose", args, name)
			}
		}
	}
}

func TestDoctorOnDatabases(t *testing.T) {
	t.Parallel()
	t.Run("down", func(t *testing.T) {
		e := examine(t, store.Config{DatabaseURL: "postgres://palmares:s3cret@" + testkit.FreeAddress(t) + "/palmares"})
		e.want(t, "database", "wrong", "The database cannot be reached. Check that")
	})
	t.Run("silent", func(t *testing.T) {
		e := examine(t, store.Config{DatabaseURL: "postgres://palmares:s3cret@" + startSilent(t) + "/palmares"})
		e.want(t, "database", "wrong", "")
	})
	t.Run("missing", func(t *testing.T) {
		e := examine(t, store.Config{DatabaseURL: databaseURL(t, testkit.ServerURL(t), "palmares_nowhere")})
		e.want(t, "database", "wrong", "does not exist. Create it")
	})
	t.Run("wrong password", func(t *testing.T) {
		e := examine(t, store.Config{DatabaseURL: startWithPasswords(t)})
		e.want(t, "database", "wrong", "rejected the user name or password. Correct")
	})
	t.Run("few connections", func(t *testing.T) {
		cfg := testkit.Postgres(t)
		blackbox.ImportDemo(t, cfg)
		execute(t, cfg.DatabaseURL, `DO $$ BEGIN EXECUTE format('ALTER DATABASE %I CONNECTION LIMIT 12', current_database()); END $$`)
		e := examine(t, cfg)
		e.want(t, "connections", "warning", "of 12 connections are free; a server uses up to "+fmt.Sprint(store.MaxConnections)+". Raise")
	})
	t.Run("another encoding", func(t *testing.T) {
		cluster := testkit.ServerURL(t)
		name := fmt.Sprintf("palmares_latin_%d", os.Getpid())
		execute(t, cluster, `CREATE DATABASE `+name+` ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0`)
		t.Cleanup(func() { execute(t, cluster, `DROP DATABASE `+name) })
		e := examine(t, store.Config{DatabaseURL: databaseURL(t, cluster, name)})
		e.want(t, "encoding", "wrong", "does not store text as UTF-8")
	})
	t.Run("an invalid setting", func(t *testing.T) {
		e := examine(t, store.Config{DatabaseURL: "mysql://u:s3cret@h/db"})
		e.want(t, "settings", "wrong", "DATABASE_URL: must have the form")
	})
	t.Run("a misspelled setting", func(t *testing.T) {
		e := examine(t, testkit.SQLite(t), "DATABSE_URL=x", "PALMARES_CACHEMB=9")
		e.want(t, "settings", "warning", "Unknown environment variables: DATABSE_URL, PALMARES_CACHEMB. Correct")
		e.want(t, "database", "warning", "does not exist yet")
	})
	testkit.Each(t, func(t *testing.T, cfg store.Config) {
		blackbox.ImportDemo(t, cfg)
		db := testkit.Open(t, cfg)
		check.Try(db.Write.ExecContext(t.Context(), "DELETE FROM schema_migrations WHERE version = (SELECT max(version) FROM schema_migrations)")).OK(t)
		examine(t, cfg).want(t, "migrations", "wrong", "1 migration(s) are pending: run palmares migrate up.")
	})
}

func TestDoctorOnFolders(t *testing.T) {
	t.Parallel()
	t.Run("full", func(t *testing.T) {
		dir := testkit.SmallDisk(t, 8<<20)
		_ = os.WriteFile(filepath.Join(dir, "large"), make([]byte, 16<<20), 0o600) // fills the disk
		examine(t, store.Config{DataDir: dir}).want(t, "data folder", "wrong", "is full. Free some disk space")
	})
	t.Run("nearly full", func(t *testing.T) {
		dir := testkit.SmallDisk(t, 32<<20)
		examine(t, store.Config{DataDir: dir}).want(t, "disk", "wrong", "the next import may fail")
	})
	t.Run("read-only", func(t *testing.T) {
		dir := testkit.SmallDisk(t, 32<<20)
		blackbox.ImportDemo(t, store.Config{DataDir: dir})
		check.OK(t, exec.Command("mount", "-o", "remount,ro", dir).Run())
		examine(t, store.Config{DataDir: dir}).want(t, "data folder", "wrong", "is mounted read-only. Mount it read-write")
	})
	t.Run("not a database", func(t *testing.T) {
		dir := t.TempDir()
		check.OK(t, os.WriteFile(store.File(dir), []byte(strings.Repeat("not a database. ", 500)), 0o600))
		examine(t, store.Config{DataDir: dir}).want(t, "database", "wrong", "damaged")
	})
	// A server must be restarted after its database file was replaced.
	t.Run("replaced", func(t *testing.T) {
		cfg := testkit.SQLite(t)
		blackbox.ImportDemo(t, cfg)
		s := blackbox.Serve(t, cfg)
		wait.Until(t, "the server is ready", func() bool {
			code, _ := s.Get(t, "/readyz")
			return code == 200
		})
		examine(t, cfg, "PALMARES_LISTEN="+s.Address).want(t, "server", "ok", "is ready, with release 1")
		if r := blackbox.MustRun(t, blackbox.Command(t, cfg, "health", "--listen", s.Address)); r.Out != "ready, serving release 1\n" {
			t.Errorf("health: got %q, want ready, serving release 1", r.Out)
		}
		other := testkit.SQLite(t)
		blackbox.ImportDemo(t, other)
		check.OK(t, os.Rename(store.File(other.DataDir), store.File(cfg.DataDir)))
		e := examine(t, cfg, "PALMARES_LISTEN="+s.Address)
		e.want(t, "server", "wrong", "the database file was moved or replaced: restart the server.")
		if r := blackbox.Run(t, blackbox.Command(t, cfg, "health", "--listen", s.Address)); r.Code != 1 || !strings.Contains(r.Err, "moved or replaced") {
			t.Errorf("health: got exit code %d and %q, want 1 and moved or replaced", r.Code, r.Err)
		}
	})
}

func TestHealthWithoutServer(t *testing.T) {
	t.Parallel()
	address := testkit.FreeAddress(t)
	want := "palmares: no server is listening on " + address + "\n"
	r := blackbox.Run(t, blackbox.Command(t, testkit.SQLite(t), "health", "--listen", address))
	check.True(t, r.Code == 1 && r.Err == want, "got exit code %d and %q, want 1 and %q", r.Code, r.Err, want)
}

func TestDoctorOnEdge(t *testing.T) {
	t.Parallel()
	cfg := testkit.SQLite(t)
	blackbox.MustRun(t, blackbox.Command(t, cfg, "migrate", "up"))
	status := http.StatusOK
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }))
	t.Cleanup(server.Close)
	variable := "PALMARES_PURGE_URL=" + server.URL
	examine(t, cfg, variable).want(t, "edge", "ok", "The edge accepts purges.")
	status = http.StatusForbidden
	examine(t, cfg, variable).want(t, "edge", "wrong", "refused a purge with status 403. Check the URL and PALMARES_PURGE_HEADER.")
	server.Close()
	examine(t, cfg, variable).want(t, "edge", "wrong", "PALMARES_PURGE_URL is unreachable")
}

func TestDoctorWithoutRedis(t *testing.T) {
	t.Parallel()
	cfg := testkit.SQLite(t)
	blackbox.ImportDemo(t, cfg)
	examine(t, cfg, "REDIS_URL=redis://"+testkit.FreeAddress(t)).want(t, "redis", "wrong", "is unreachable. Until it is available, each server counts requests on its own. Start it")
}

func TestDoctorOnProblemsWithRedis(t *testing.T) {
	t.Parallel()
	cfg := testkit.SQLite(t)
	blackbox.ImportDemo(t, cfg)
	server := testkit.StartRedis(t)
	redis := "REDIS_URL=" + server.URL
	sendRedis(t, server.URL, "CONFIG SET maxmemory 104857600", "CONFIG SET maxmemory-policy allkeys-lru")
	examine(t, cfg, redis).want(t, "redis memory", "warning", "allkeys-lru). Set its maxmemory-policy to noeviction.")
	sendRedis(t, server.URL, "CONFIG SET maxmemory-policy noeviction")
	examine(t, cfg, redis).want(t, "redis memory", "ok", "of 100 MB")
	server.Freeze()
	examine(t, cfg, redis).want(t, "redis", "wrong", "took too long")
	server.Thaw()
	sendRedis(t, server.URL, "CONFIG SET requirepass s3cret")
	e := examine(t, cfg, strings.Replace(redis, "redis://", "redis://:s3creter@", 1))
	e.want(t, "redis", "wrong", "rejected the user, the password")
}

func TestDoctorOnMail(t *testing.T) {
	t.Parallel()
	cfg := testkit.SQLite(t)
	blackbox.ImportDemo(t, cfg)
	examine := func(address, state, text string, env ...string) {
		t.Helper()
		examine(t, cfg, append(env, "SMTP_URL="+address)...).want(t, "mail", state, text)
	}
	plain := testkit.StartSMTP(t)
	examine(plain.URL, "ok", "accepts unencrypted connections")
	examine(strings.Replace(plain.URL, "smtp://", "smtp://mailer:s3cret@", 1), "warning", "the password is not sent")
	// Other machines must offer encryption, and this address does not count as local.
	examine(strings.Replace(plain.URL, "127.0.0.1", "0.0.0.0", 1), "wrong", "does not support encryption")
	examine("smtp://"+testkit.FreeAddress(t), "wrong", "cannot be reached")
	examine("smtp://"+startGreeting(t, "554 go away"), "wrong", "rejected the connection")
	examine("smtp://"+startSilent(t), "wrong", "took too long")
	encrypted, trust := startEncryptedSMTP(t)
	examine(encrypted, "wrong", "certificate of the mail server is not valid")
	examine(strings.Replace(encrypted, "s3cret", "s3creter", 1), "wrong", "rejected the user name or password", trust)
	examine("", "warning", "nobody can sign in", "PUBLIC_URL=https://palmares.example.invalid", "TRUSTED_PROXIES=127.0.0.1")
}

func TestDoctorOnStripe(t *testing.T) {
	t.Parallel()
	cfg := testkit.SQLite(t)
	blackbox.ImportDemo(t, cfg)
	examine := func(base string, env ...string) examined {
		return examine(t, cfg, append([]string{"STRIPE_SECRET_KEY=sk_test_s3cret123", "STRIPE_WEBHOOK_SECRET=whsec_s3cret", "--stripe-api-base=" + base}, env...)...)
	}
	examine(startFakeStripe(t, http.StatusUnauthorized)).want(t, "stripe", "wrong", "rejected the key")
	examine(startFakeStripe(t, http.StatusForbidden)).want(t, "stripe", "wrong", "no permission to read prices")
	examine("http://"+testkit.FreeAddress(t)).want(t, "stripe", "wrong", "does not respond")
	examine(startFakeStripe(t, http.StatusOK), "STRIPE_WEBHOOK_SECRET=").want(t, "stripe secret", "wrong", "the server does not start without it")
	// Stripe's own mock has one price, in dollars.
	mock := testkit.StartStripeMock(t)
	examine(mock).want(t, "price", "wrong", "differs from the advertised price, €99 per month plus VAT")
	examine(mockWith(t, mock, map[string]string{"GET /v1/billing_portal/configurations": emptyList})).want(t, "customer portal", "wrong", "cannot change their card, see invoices or cancel")

	public := []string{"PUBLIC_URL=https://palmares.example.invalid", "TRUSTED_PROXIES=127.0.0.1"}
	e := examine(startFakeStripe(t, http.StatusOK), public...)
	e.want(t, "stripe", "warning", "a test key: no payments")
	e.want(t, "events", "ok", "all required events")
	e.want(t, "public url", "warning", "PUBLIC_URL is unreachable")
	examine(mock, public...).want(t, "events", "warning", "sends no events to https://palmares.example.invalid/billing/stripe")
}

// publisherFacts are what the About page of every publisher needs.
const publisherFacts = `publisher-name: Ana Martin
publisher-address: 1 rue X, Paris
publisher-phone: +33 1
publication-director: Ana Martin
hosting-name: Host
hosting-address: 2 rue Y, Paris
hosting-phone: +33 2
`

// doctor and serve say which facts the About page lacks; the demo invents them.
func TestMissingFacts(t *testing.T) {
	t.Parallel()
	cfg := testkit.SQLite(t)
	blackbox.ImportDemo(t, cfg)
	const public = "PUBLIC_URL=https://palmares.example.invalid"
	folder := filepath.Dir(blackbox.WriteFile(t, "facts.yml", []byte(publisherFacts)))
	const contact = "CONTACT_EMAIL=ana@palmares.example"
	examine(t, cfg).want(t, "about page", "ok", "missing: publisher-name,")
	examine(t, cfg, public).want(t, "about page", "warning", "missing: publisher-name, publisher-address, publisher-phone, publication-director, hosting-name, hosting-address, hosting-phone, CONTACT_EMAIL. Write")
	examine(t, cfg, public, "PALMARES_PAGES_DIR="+folder).want(t, "about page", "warning", "missing: CONTACT_EMAIL. Write")
	complete := examine(t, cfg, public, "PALMARES_PAGES_DIR="+folder, contact)
	complete.want(t, "about page", "ok", "is complete")
	complete.want(t, "security.txt", "warning", "There is no /.well-known/security.txt")

	const incomplete = `"level":"WARN","msg":"about page incomplete","missing":["publisher-name",`
	address := testkit.FreeAddress(t)
	s := (*blackbox.Server)(testkit.StartAt(t, blackbox.Command(t, cfg, "serve", "--listen", address, "--public-url", "https://palmares.example.invalid"), address))
	wait.Until(t, "the log has the warning", func() bool { return strings.Contains(s.Log.String(), "about page incomplete") })
	check.Contains(t, s.Log.String(), incomplete)
	if page := blackbox.ReadAll(t, s.Call(t, http.MethodGet, "/fr/about", "").Body); !strings.Contains(page, "n’a pas encore fourni") || strings.Contains(page, "Éditeur") {
		t.Errorf("got %s, want no facts", page)
	}
	shown := blackbox.Serve(t, testkit.SQLite(t), "--demo")
	if page := blackbox.ReadAll(t, shown.Call(t, http.MethodGet, "/en/about", "").Body); !strings.Contains(page, "This is a demo") || !strings.Contains(page, "Director of publication") || strings.Contains(shown.Log.String(), "about page") {
		t.Errorf("got %s and %s, want the facts of the demo and no warning", page, shown.Log.String())
	}
	named := blackbox.Serve(t, testkit.SQLite(t), "--demo", "--pages-dir", folder)
	if page := blackbox.ReadAll(t, named.Call(t, http.MethodGet, "/en/about", "").Body); strings.Contains(page, "This is a demo") || !strings.Contains(page, "Ana Martin") {
		t.Errorf("got %s, want the publisher", page)
	}
}

func TestDoctorOnAddresses(t *testing.T) {
	t.Parallel()
	cfg := testkit.SQLite(t)
	blackbox.ImportDemo(t, cfg)
	e := examine(t, cfg, "PUBLIC_URL=http://palmares.example.invalid")
	e.want(t, "oauth", "warning", "because PUBLIC_URL does not use https")
	examine(t, cfg, "PUBLIC_URL=https://palmares.example.invalid").want(t, "oauth", "warning", "because nobody can sign in without SMTP_URL")
	examine(t, cfg, "PUBLIC_URL=http://192.168.1.2:8080").want(t, "oauth", "ok", "because PUBLIC_URL does not use https")
	e.want(t, "public url", "wrong", "does not use https")
	e.want(t, "proxies", "wrong", "all callers without a key share one quota")
	e = examine(t, cfg, "PALMARES_LISTEN=:0", "TRUSTED_PROXIES=0.0.0.0/0")
	e.want(t, "proxies", "wrong", "TRUSTED_PROXIES contains 0.0.0.0/0")
	e.want(t, "public url", "warning", "PUBLIC_URL is not set")
	s := blackbox.Serve(t, cfg)
	wait.Until(t, "the server is ready", func() bool { code, _ := s.Get(t, "/readyz"); return code == 200 })
	examine(t, cfg, "PUBLIC_URL=http://"+s.Address).want(t, "public url", "ok", "with release 1")
	other := httptest.NewServer(http.NotFoundHandler())
	defer other.Close()
	e = examine(t, cfg, "PUBLIC_URL="+other.URL, "PALMARES_LISTEN="+strings.TrimPrefix(other.URL, "http://"))
	e.want(t, "public url", "warning", "is not palmares")
	e.want(t, "server", "wrong", "Another program is listening")
}

// startSilent accepts connections and never responds.
func startSilent(t *testing.T) string { return startGreeting(t, "") }

// startGreeting accepts connections and sends one line.
func startGreeting(t *testing.T, line string) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check.OK(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			if line != "" {
				_, _ = io.WriteString(conn, line+"\r\n")
			}
			t.Cleanup(func() { _ = conn.Close() })
		}
	}()
	return listener.Addr().String()
}

// startEncryptedSMTP starts a mail server that requires a password, and returns
// the environment variable that makes a process trust its certificate.
func startEncryptedSMTP(t *testing.T) (address, trust string) {
	t.Helper()
	web := httptest.NewTLSServer(nil) // for its certificate, which is valid for 127.0.0.1
	t.Cleanup(web.Close)
	file := blackbox.WriteFile(t, "ca.pem", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: web.Certificate().Raw}))
	tls := web.TLS.Clone()
	tls.NextProtos = nil
	server := testkit.StartSMTPWith(t, testkit.SMTPOptions{TLS: tls, User: "mailer", Password: "s3cret"})
	return strings.Replace(server.URL, "smtp://", "smtp://mailer:s3cret@", 1), "SSL_CERT_FILE=" + file
}

// startFakeStripe starts a fake Stripe API with a correctly configured account,
// or one that returns the same error status for every request. A request that
// would change anything fails the test.
func startFakeStripe(t *testing.T, status int) string {
	t.Helper()
	stripe := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		check.Equal(t, r.Method, http.MethodGet, r.URL.Path)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		if status != http.StatusOK {
			fmt.Fprint(w, `{"error":{"type":"invalid_request_error","message":"s3cret"}}`)
			return
		}
		switch r.URL.Path {
		case "/v1/prices":
			fmt.Fprint(w, `{"object":"list","data":[{"id":"price_9","object":"price","active":true,"currency":"eur","unit_amount":9900,"tax_behavior":"exclusive","recurring":{"interval":"month","interval_count":1}}]}`)
		case "/v1/tax/settings":
			fmt.Fprint(w, `{"object":"tax.settings","status":"active"}`)
		case "/v1/billing_portal/configurations":
			fmt.Fprint(w, `{"object":"list","data":[{"id":"bpc_1","object":"billing_portal.configuration","active":true,"is_default":true}]}`)
		case "/v1/webhook_endpoints":
			events, _ := json.Marshal(billing.Events)
			fmt.Fprintf(w, `{"object":"list","data":[{"id":"we_1","status":"enabled","url":"https://palmares.example.invalid/billing/stripe","enabled_events":%s}]}`, events)
		default:
			t.Errorf("got a request for %s, want none", r.URL.Path)
		}
	}))
	t.Cleanup(stripe.Close)
	return stripe.URL
}

// startWithPasswords starts a PostgreSQL server that requires passwords, and
// returns its URL with a wrong one.
func startWithPasswords(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "palmares-hba-") // readable by the user of the PostgreSQL server
	check.OK(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	file := filepath.Join(dir, "pg_hba.conf")
	check.OK(t, os.WriteFile(file, []byte("host all palmares 127.0.0.1/32 trust\nhost all all 127.0.0.1/32 scram-sha-256\n"), 0o644))
	check.OK(t, os.Chmod(dir, 0o755))
	cluster := testkit.StartCluster(t, "fsync=off", "hba_file="+file)
	execute(t, cluster.URL, `CREATE ROLE guest LOGIN PASSWORD 'right'`)
	return strings.Replace(cluster.URL, "palmares@", "guest:s3cret@", 1)
}

func execute(t *testing.T, address, statement string) {
	t.Helper()
	db := check.Try(sql.Open("postgres", address)).OK(t)
	defer db.Close()
	check.Try(db.Exec(statement)).OK(t)
}

func databaseURL(t *testing.T, cluster, name string) string {
	t.Helper()
	u := check.Try(url.Parse(cluster)).OK(t)
	u.Path = "/" + name
	return u.String()
}

// sendRedis sends commands to a Redis server.
func sendRedis(t *testing.T, address string, commands ...string) {
	t.Helper()
	u, err := url.Parse(address)
	check.OK(t, err)
	conn, err := net.Dial("tcp", u.Host)
	check.OK(t, err)
	defer conn.Close()
	for _, command := range commands {
		fmt.Fprintf(conn, "%s\r\n", command)
		reply := make([]byte, 100)
		if n, err := conn.Read(reply); err != nil || !strings.HasPrefix(string(reply[:n]), "+OK") {
			t.Fatalf("%s: got %s, %v, want +OK", command, reply[:n], err)
		}
	}
}
