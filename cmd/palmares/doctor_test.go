package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"palmares/internal/catalog/feed/demo"
	"palmares/internal/core/store"
	"palmares/internal/dev/testkit"
)

// examined is what the doctor says: a state and a sentence for each check.
type examined struct {
	result
	states, lines map[string]string
}

func examine(t *testing.T, cfg store.Config, env ...string) examined {
	t.Helper()
	cfg.DataDir = cmp.Or(cfg.DataDir, "data")
	cmd := palmares(t, cfg, "doctor")
	cmd.Env = append(append(cmd.Env, "PALMARES_LISTEN=127.0.0.1:0"), env...)
	e := examined{runs(t, cmd), map[string]string{}, map[string]string{}}
	for line := range strings.Lines(e.out) {
		state, rest, _ := strings.Cut(line, "  ")
		check, said, found := strings.Cut(strings.TrimSpace(rest), "  ")
		if !found {
			t.Fatalf("the line %q has no three columns", line)
		}
		e.states[check], e.lines[check] = state, strings.TrimSpace(said)
	}
	wants := 0
	for check, state := range e.states {
		if state == "wrong" {
			wants = 1
		}
		if state != "ok" && strings.Count(e.lines[check], ".") < 2 {
			t.Errorf("%s: it is not said what to do: %s", check, e.lines[check])
		}
	}
	if e.code != wants {
		t.Errorf("exit %d:\n%s%s", e.code, e.out, e.err)
	}
	for _, leak := range []string{"geheim", "dial tcp", "pq:", "EOF", "connection refused", "i/o timeout", "context"} {
		if strings.Contains(e.out+e.err, leak) {
			t.Errorf("it says %q:\n%s%s", leak, e.out, e.err)
		}
	}
	return e
}

// is checks one line.
func (e examined) is(t *testing.T, check, state, text string) {
	t.Helper()
	if e.states[check] != state || !strings.Contains(e.lines[check], text) {
		t.Errorf("%s is %q: %q\n%s", check, e.states[check], e.lines[check], e.out)
	}
}

// fill imports the demo catalog.
func fill(t *testing.T, cfg store.Config) {
	t.Helper()
	succeeds(t, palmares(t, cfg, "import", writeFile(t, "demo.ndjson", demo.Catalog)))
}

func TestDoctorFindsAllWell(t *testing.T) {
	t.Parallel()
	smtp, trust := encryptedSMTP(t)
	shop := startShop(t, http.StatusOK)
	testkit.Each(t, func(t *testing.T, cfg store.Config) {
		fill(t, cfg)
		e := examine(t, cfg, "REDIS_URL="+testkit.StartRedis(t).URL, "SMTP_URL="+smtp, trust,
			"STRIPE_SECRET_KEY=sk_live_geheim123", "STRIPE_WEBHOOK_SECRET=whsec_geheim", "STRIPE_API_BASE="+shop)
		want := []string{"settings", "database", "migrations", "catalog", "redis", "redis memory", "redis clock", "mail", "stripe", "price", "tax", "managing", "public url", "proxies", "server"}
		if cfg.DatabaseURL == "" {
			want = append(want, "data folder", "disk")
		} else {
			want = append(want, "encoding", "database clock", "connections")
		}
		for _, check := range want {
			e.is(t, check, "ok", "")
		}
		if len(e.states) != len(want) || e.err != "" {
			t.Errorf("%d checks, not %d:\n%s%s", len(e.states), len(want), e.out, e.err)
		}
		e.is(t, "catalog", "ok", "release 1, of 2026-11-10, imported just now")
		e.is(t, "mail", "ok", "encrypted, and our password")
	})
}

func TestDoctorForMachines(t *testing.T) {
	t.Parallel()
	cfg := testkit.SQLite(t)
	fill(t, cfg)
	for args, code := range map[string]int{"--json": 1, "--json --verbose": 1} {
		cmd := palmares(t, cfg, append([]string{"doctor", "--listen", "127.0.0.1:0", "--redis-url", "redis://:geheim@" + freeAddress(t)}, strings.Fields(args)...)...)
		r := runs(t, cmd)
		var told struct {
			State  string
			Checks []struct{ Check, State, Message, Advice, Cause string }
		}
		if err := json.Unmarshal([]byte(r.out), &told); err != nil || r.code != code || told.State != "wrong" || strings.Contains(r.out, "geheim") {
			t.Fatalf("exit %d, %v:\n%s", r.code, err, r.out)
		}
		for _, check := range told.Checks {
			if check.Check == "redis" && (check.State != "wrong" || check.Advice == "" || (check.Cause != "") != strings.Contains(args, "verbose")) {
				t.Errorf("%s: %+v", args, check)
			}
		}
	}
}

func TestDoctorOnDatabases(t *testing.T) {
	t.Parallel()
	t.Run("down", func(t *testing.T) {
		e := examine(t, store.Config{DatabaseURL: "postgres://palmares:geheim@" + freeAddress(t) + "/palmares"})
		e.is(t, "database", "wrong", "The database cannot be reached. See whether it runs")
	})
	t.Run("silent", func(t *testing.T) {
		e := examine(t, store.Config{DatabaseURL: "postgres://palmares:geheim@" + silent(t) + "/palmares"})
		e.is(t, "database", "wrong", "")
	})
	t.Run("no such", func(t *testing.T) {
		e := examine(t, store.Config{DatabaseURL: inDatabase(t, os.Getenv(testkit.URLVariable), "palmares_nowhere")})
		e.is(t, "database", "wrong", "does not exist. Make it")
	})
	t.Run("wrong password", func(t *testing.T) {
		e := examine(t, store.Config{DatabaseURL: withPasswords(t)})
		e.is(t, "database", "wrong", "refused the user name or password. Correct")
	})
	t.Run("few connections", func(t *testing.T) {
		cfg := testkit.Postgres(t)
		fill(t, cfg)
		onDatabase(t, cfg.DatabaseURL, `DO $$ BEGIN EXECUTE format('ALTER DATABASE %I CONNECTION LIMIT 12', current_database()); END $$`)
		e := examine(t, cfg)
		e.is(t, "connections", "warning", "of 12 are free, and a server takes up to "+fmt.Sprint(store.MostConnections)+". Raise")
	})
	t.Run("another encoding", func(t *testing.T) {
		cluster := os.Getenv(testkit.URLVariable)
		name := fmt.Sprintf("palmares_latin_%d", os.Getpid())
		onDatabase(t, cluster, `CREATE DATABASE `+name+` ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0`)
		t.Cleanup(func() { onDatabase(t, cluster, `DROP DATABASE `+name) })
		e := examine(t, store.Config{DatabaseURL: inDatabase(t, cluster, name)})
		e.is(t, "encoding", "wrong", "does not keep text as UTF-8")
	})
	t.Run("a wrong setting", func(t *testing.T) {
		e := examine(t, store.Config{DatabaseURL: "mysql://u:geheim@h/db"})
		e.is(t, "settings", "wrong", "DATABASE_URL: is not an address")
	})
	t.Run("a misspelt setting", func(t *testing.T) {
		e := examine(t, testkit.SQLite(t), "PALMARES_CACHEMB=9")
		e.is(t, "settings", "warning", "PALMARES_CACHEMB")
		e.is(t, "database", "warning", "no embedded database yet")
	})
	testkit.Each(t, func(t *testing.T, cfg store.Config) {
		fill(t, cfg)
		db := testkit.Open(t, cfg)
		if _, err := db.Write.ExecContext(t.Context(), "DELETE FROM schema_migrations WHERE version = (SELECT max(version) FROM schema_migrations)"); err != nil {
			t.Fatal(err)
		}
		examine(t, cfg).is(t, "migrations", "wrong", "lacks 1 migration(s): run palmares migrate up.")
	})
}

func TestDoctorOnReplicas(t *testing.T) {
	t.Parallel()
	primary, standby := testkit.StartReplicated(t)
	cfg := store.Config{DatabaseURL: primary.URL, DataDir: t.TempDir()}
	fill(t, cfg)
	read := "DATABASE_READ_URL=" + standby.URL
	e := examine(t, cfg, read)
	e.is(t, "replica", "ok", "It follows")
	standby.Pause(t)
	examine(t, cfg, read).is(t, "replica", "warning", "pg_wal_replay_resume")
	standby.Resume(t)
	examine(t, cfg, "DATABASE_READ_URL="+primary.URL).is(t, "replica", "warning", "follows no other database")
	standby.Freeze(t)
	e = examine(t, cfg, read)
	standby.Thaw(t)
	e.is(t, "replica", "wrong", "")
	e.is(t, "database", "ok", "")
}

func TestDoctorOnFolders(t *testing.T) {
	t.Parallel()
	t.Run("full", func(t *testing.T) {
		dir := testkit.SmallDisk(t, 8<<20)
		_ = os.WriteFile(filepath.Join(dir, "large"), make([]byte, 16<<20), 0o600) // as much as there is room for
		examine(t, store.Config{DataDir: dir}).is(t, "data folder", "wrong", "is full. Make room")
	})
	t.Run("nearly full", func(t *testing.T) {
		dir := testkit.SmallDisk(t, 32<<20)
		examine(t, store.Config{DataDir: dir}).is(t, "disk", "wrong", "the next import may fail")
	})
	t.Run("for reading", func(t *testing.T) {
		dir := testkit.SmallDisk(t, 32<<20)
		fill(t, store.Config{DataDir: dir})
		testkit.ReadOnly(t, dir)
		examine(t, store.Config{DataDir: dir}).is(t, "data folder", "wrong", "for reading only. Mount it for writing")
	})
	t.Run("no database", func(t *testing.T) {
		dir := t.TempDir()
		if err := os.WriteFile(store.File(dir), []byte(strings.Repeat("no database at all. ", 500)), 0o600); err != nil {
			t.Fatal(err)
		}
		examine(t, store.Config{DataDir: dir}).is(t, "database", "wrong", "damaged")
	})
	// Whoever replaces the file under a server must start it anew.
	t.Run("replaced", func(t *testing.T) {
		cfg := testkit.SQLite(t)
		fill(t, cfg)
		s := startServer(t, cfg)
		examine(t, cfg, "PALMARES_LISTEN="+s.address).is(t, "server", "ok", "is ready, with release 1")
		if r := succeeds(t, palmares(t, cfg, "health", "--listen", s.address)); r.out != "ready, with release 1\n" {
			t.Errorf("health: %q", r.out)
		}
		other := testkit.SQLite(t)
		fill(t, other)
		if err := os.Rename(store.File(other.DataDir), store.File(cfg.DataDir)); err != nil {
			t.Fatal(err)
		}
		e := examine(t, cfg, "PALMARES_LISTEN="+s.address)
		e.is(t, "server", "wrong", "the database file was moved or replaced: restart the server.")
		if r := runs(t, palmares(t, cfg, "health", "--listen", s.address)); r.code != 1 || !strings.Contains(r.err, "moved or replaced") {
			t.Errorf("health: exit %d: %q", r.code, r.err)
		}
	})
}

func TestHealthOfNobody(t *testing.T) {
	t.Parallel()
	at := freeAddress(t)
	if r := runs(t, palmares(t, testkit.SQLite(t), "health", "--listen", at)); r.code != 1 || r.err != "palmares: no server answers on "+at+"\n" {
		t.Errorf("exit %d: %q", r.code, r.err)
	}
}

func TestDoctorOnRedis(t *testing.T) {
	t.Parallel()
	cfg := testkit.SQLite(t)
	fill(t, cfg)
	examine(t, cfg, "REDIS_URL=redis://"+freeAddress(t)).is(t, "redis", "wrong", "cannot be reached. Each server counts alone meanwhile. Start it")
	server := testkit.StartRedis(t)
	redis := "REDIS_URL=" + server.URL
	tell(t, server.URL, "CONFIG SET maxmemory 104857600", "CONFIG SET maxmemory-policy allkeys-lru")
	examine(t, cfg, redis).is(t, "redis memory", "warning", "allkeys-lru). Set its maxmemory-policy to noeviction.")
	tell(t, server.URL, "CONFIG SET maxmemory-policy noeviction")
	examine(t, cfg, redis).is(t, "redis memory", "ok", "of 100 MB")
	server.Freeze()
	examine(t, cfg, redis).is(t, "redis", "wrong", "takes too long")
	server.Thaw()
	tell(t, server.URL, "CONFIG SET requirepass geheim")
	e := examine(t, cfg, strings.Replace(redis, "redis://", "redis://:geheimer@", 1))
	e.is(t, "redis", "wrong", "refuses the user or password")
}

func TestDoctorOnMail(t *testing.T) {
	t.Parallel()
	cfg := testkit.SQLite(t)
	fill(t, cfg)
	says := func(address, state, text string, env ...string) {
		t.Helper()
		examine(t, cfg, append(env, "SMTP_URL="+address)...).is(t, "mail", state, text)
	}
	plain := testkit.StartSMTP(t)
	says(plain.URL, "ok", "without encryption")
	says(strings.Replace(plain.URL, "smtp://", "smtp://mailer:geheim@", 1), "warning", "the password is not sent")
	// Another machine has to offer encryption; this address is not known to be ours.
	says(strings.Replace(plain.URL, "127.0.0.1", "0.0.0.0", 1), "wrong", "offers no encryption")
	says("smtp://"+freeAddress(t), "wrong", "does not answer")
	says("smtp://"+greeting(t, "554 go away"), "wrong", "does not talk to us")
	says("smtp://"+silent(t), "wrong", "took too long")
	encrypted, trust := encryptedSMTP(t)
	says(encrypted, "wrong", "certificate is not to be trusted")
	says(strings.Replace(encrypted, "geheim", "geheimer", 1), "wrong", "does not accept our user and password", trust)
	says("", "warning", "nobody can sign in", "PUBLIC_URL=https://palmares.example.invalid", "TRUSTED_PROXIES=127.0.0.1")
}

func TestDoctorOnStripe(t *testing.T) {
	t.Parallel()
	cfg := testkit.SQLite(t)
	fill(t, cfg)
	ask := func(base string, env ...string) examined {
		return examine(t, cfg, append([]string{"STRIPE_SECRET_KEY=sk_test_geheim123", "STRIPE_WEBHOOK_SECRET=whsec_geheim", "STRIPE_API_BASE=" + base}, env...)...)
	}
	ask(startShop(t, http.StatusUnauthorized)).is(t, "stripe", "wrong", "refuses the key")
	ask(startShop(t, http.StatusForbidden)).is(t, "stripe", "wrong", "may not read prices")
	ask("http://"+freeAddress(t)).is(t, "stripe", "wrong", "does not answer")
	ask(startShop(t, http.StatusOK), "STRIPE_WEBHOOK_SECRET=").is(t, "stripe secret", "wrong", "without it no server starts")
	// Stripe's own mock has one price, in dollars.
	mock := testkit.StartStripeMock(t)
	ask(mock).is(t, "price", "wrong", "not 99 EUR a month before tax")
	ask(mock, "STRIPE_PRICE=price_1").is(t, "price", "warning", "unless that is meant")
	ask(mockWith(t, mock, map[string]string{"GET /v1/billing_portal/configurations": noneThere})).is(t, "managing", "wrong", "no page for cards, invoices and cancelling")

	public := []string{"PUBLIC_URL=https://palmares.example.invalid", "TRUSTED_PROXIES=127.0.0.1"}
	e := ask(startShop(t, http.StatusOK), public...)
	e.is(t, "stripe", "warning", "for tests: nobody pays")
	e.is(t, "events", "ok", "every event")
	e.is(t, "public url", "warning", "Nobody answers")
	ask(mock, public...).is(t, "events", "warning", "sends no events to https://palmares.example.invalid/billing/stripe")
}

func TestDoctorOnAddresses(t *testing.T) {
	t.Parallel()
	cfg := testkit.SQLite(t)
	fill(t, cfg)
	e := examine(t, cfg, "PUBLIC_URL=http://palmares.example.invalid")
	e.is(t, "public url", "wrong", "not https")
	e.is(t, "proxies", "wrong", "all callers without a key share one quota")
	e = examine(t, cfg, "PALMARES_LISTEN=:0", "TRUSTED_PROXIES=0.0.0.0/0")
	e.is(t, "proxies", "wrong", "TRUSTED_PROXIES has 0.0.0.0/0")
	e.is(t, "public url", "warning", "PUBLIC_URL is not set")
	s := startServer(t, cfg)
	examine(t, cfg, "PUBLIC_URL=http://"+s.address).is(t, "public url", "ok", "with release 1")
	other := httptest.NewServer(http.NotFoundHandler())
	defer other.Close()
	e = examine(t, cfg, "PUBLIC_URL="+other.URL, "PALMARES_LISTEN="+strings.TrimPrefix(other.URL, "http://"))
	e.is(t, "public url", "warning", "is no palmares")
	e.is(t, "server", "wrong", "Something else than palmares")
}
