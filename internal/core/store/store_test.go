package store_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"palmares/ent"
	"palmares/ent/savedquery"
	"palmares/ent/usage"
	"palmares/internal/core/store"
	"palmares/internal/dev/check"
	"palmares/internal/dev/drift"
	"palmares/internal/dev/testkit"
)

func TestMigrationsMatchSchema(t *testing.T) {
	testkit.EachNew(t, func(t *testing.T, cfg store.Config) {
		testkit.Open(t, cfg)
		statements := check.Try(drift.Statements(t.Context(), cfg)).OK(t)
		check.Equal(t, statements, "", "drift from the ent schema")
	})
}

func TestDriftFindsDifferences(t *testing.T) {
	for name, statement := range map[string]string{
		"index":  `DROP INDEX comparisons_by_tool_a`,
		"column": `ALTER TABLE releases ADD COLUMN stray integer`,
		"table":  `DROP TABLE journal_entries`,
		// A column of a table is also one of its history.
		"column of the history": `ALTER TABLE tools_versions DROP COLUMN tagline`,
		"index of the history":  `DROP INDEX toolversion_until_release`,
		// These tables have no ent entity.
		"words":        `ALTER TABLE tool_search ADD COLUMN stray integer`,
		"applications": `DROP INDEX oauth_grants_client_id`,
	} {
		t.Run(name, func(t *testing.T) {
			testkit.EachNew(t, func(t *testing.T, cfg store.Config) {
				check.Try(testkit.Open(t, cfg).Write.ExecContext(t.Context(), statement)).OK(t)
				statements := check.Try(drift.Statements(t.Context(), cfg)).OK(t)
				check.True(t, statements != "", "got drift %q and no error, want some drift", statements)
			})
		})
	}
}

// A database at migration 25 keeps its rows, and ends up like a new one.
func TestUpgrade(t *testing.T) {
	testkit.EachNew(t, func(t *testing.T, cfg store.Config) {
		s := open(t, cfg)
		schema := check.Try(os.ReadFile(filepath.Join("testdata", "0025_"+strings.TrimSuffix(s.Dialect(), "3")+".sql"))).OK(t)
		exec(t, s, string(schema))
		exec(t, s, `INSERT INTO accounts (id, email, plan, plan_by_hand, created_at) VALUES (1, 'ana@example.com', 'pro', true, '2026-11-15')`)
		exec(t, s, `INSERT INTO customers (id, noticed_at, created_at) VALUES ('c', '2026-11-16 00:00:00+00:00', '2026-11-15')`)
		exec(t, s, `INSERT INTO endpoints (id, account_id, url, types, categories, secret, position, created_at, why, untold)
			VALUES (1, 1, 'https://hooks.example', '[]', '["code","tools/plume"]', 'secret', 0, '2026-11-15', 'It failed', true)`)
		exec(t, s, `INSERT INTO attempts (endpoint_id, delivered, event, type, number, at, status, took_ms, answer) VALUES (1, true, 1, 'x', 1, '2026-11-15', 200, 0, 'Thanks.')`)
		exec(t, s, `INSERT INTO minutes (id, requests, failed) VALUES (1, 30, 2)`)
		exec(t, s, `INSERT INTO tool_search (id, slug, words) VALUES (1, 'plume', 'agent plume')`)
		for i, description := range []string{"Best\n{\"kind\":\"bar\"}\nOne\n\ntwo", "\n{}\n", "Only\n{a}", "é\n{}\nx"} {
			exec(t, s, fmt.Sprintf(`INSERT INTO saved_queries (id, account_id, name, hash, description, public, created_at, updated_at)
				VALUES (%[1]d, 1, 'q%[1]d', 'h', '%[2]s', true, '2026-11-15', '2026-11-15')`, i, description))
		}
		exec(t, s, `INSERT INTO usages (account_id, day, requests) VALUES (1, '2026-11-14', 9), (1, '2026-11-15', 6), (1, '2026-11-16', 3)`)
		exec(t, s, `INSERT INTO key_usages (account_id, day, key, endpoint, requests) VALUES (1, '2026-11-15', 'k', '/mcp', 1), (1, '2026-11-15', '', '/mcp', 3), (1, '2026-11-16', 'k', '/mcp', 3)`)
		markMigrated(t, s, 25)

		done := check.Try(s.Migrate(t.Context())).OK(t)
		check.MustTrue(t, len(done) != 0, "got migrations %v, want 26 first", done)
		check.Must(t, done[0].Version, 26)
		statements := check.Try(drift.Statements(t.Context(), cfg)).OK(t)
		check.Equal(t, statements, "")
		ctx, e := t.Context(), s.Read.Endpoint.GetX(t.Context(), 1)
		got := fmt.Sprint(s.Read.Account.GetX(ctx, 1).ManualPlan, s.Read.Customer.GetX(ctx, "c").NotifiedAt.UTC().Day(), e.DisabledReason, e.Categories, e.Tools,
			s.Read.Attempt.Query().OnlyX(ctx).Response, s.Read.Minute.GetX(ctx, 1).Checks, s.Read.Notice.Query().OnlyX(ctx).Text)
		want := fmt.Sprint(true, 16, "It failed", []string{"code"}, []string{"plume"}, "Thanks.", 30, "Your webhook endpoint https://hooks.example was disabled: It failed.")
		check.True(t, got == want, "got %s, want %s", got, want)
		usages := ""
		for _, u := range s.Read.Usage.Query().Where(usage.Subject(2<<32|1)).Order(usage.ByDay(), usage.ByEndpoint(), usage.ByKey()).AllX(ctx) {
			usages += fmt.Sprintf("%s %q %q %d, ", u.Day, u.Key, u.Endpoint, u.Requests)
		}
		check.Equal(t, usages, `2026-11-14 "" "" 9, 2026-11-15 "" "" 2, 2026-11-15 "" "/mcp" 3, 2026-11-15 "k" "/mcp" 1, 2026-11-16 "k" "/mcp" 3, `, "usage")
		texts := ""
		for _, q := range s.Read.SavedQuery.Query().Order(savedquery.ByID()).AllX(ctx) {
			texts += fmt.Sprintf("%q %q %q ", q.Title, q.Chart, q.Description)
		}
		check.Equal(t, texts, `"Best" "{\"kind\":\"bar\"}" "One\n\ntwo" "" "{}" "" "" "" "Only\n{a}" "é" "{}" "x" `, "saved queries")
		done = check.Try(s.Migrate(ctx)).OK(t, "second run")
		check.Equal(t, len(done), 0, "second run: migrations %v", done)
	})
}

func TestOlderDatabaseIsRejected(t *testing.T) {
	testkit.EachNew(t, func(t *testing.T, cfg store.Config) {
		s := open(t, cfg)
		markMigrated(t, s, 24)
		const want = "the database is at migration 24, but this version of palmares upgrades only from 25: first run palmares migrate up with the last version that has migration 25"
		_, err := s.Migrate(t.Context())
		check.Equal(t, fmt.Sprint(err), want, "migrate")
		check.Equal(t, fmt.Sprint(s.CheckMigrated(t.Context())), want, "check")
	})
}

// markMigrated records migrations that no longer exist.
func markMigrated(t *testing.T, s *store.Store, newest int) {
	t.Helper()
	exec(t, s, `CREATE TABLE schema_migrations (version integer PRIMARY KEY, name text NOT NULL, applied_at text NOT NULL)`)
	for version := 1; version <= newest; version++ {
		exec(t, s, fmt.Sprintf(`INSERT INTO schema_migrations VALUES (%d, 'earlier', 'then')`, version))
	}
}

func exec(t *testing.T, s *store.Store, statement string) {
	t.Helper()
	check.Try(s.Write.ExecContext(t.Context(), statement)).OK(t, statement)
}

func TestMigrateAppliesOnce(t *testing.T) {
	testkit.EachNew(t, func(t *testing.T, cfg store.Config) {
		s := open(t, cfg)
		check.Contains(t, fmt.Sprint(s.CheckMigrated(t.Context())), "run palmares migrate up", "check before migrating")
		done := check.Try(s.Migrate(t.Context())).OK(t, "first run")
		check.MustTrue(t, len(done) != 0, "first run: got migrations %v, want all", done)
		done = check.Try(s.Migrate(t.Context())).OK(t, "second run")
		check.Equal(t, len(done), 0, "second run: migrations %v", done)
		check.Equal(t, s.CheckMigrated(t.Context()), nil, "check after migrating")
	})
}

func TestConcurrentMigrations(t *testing.T) {
	testkit.EachNew(t, func(t *testing.T, cfg store.Config) {
		var all sync.WaitGroup
		var mu sync.Mutex
		applied := 0
		for range 10 {
			all.Go(func() {
				s, err := store.Open(t.Context(), cfg)
				if err != nil {
					t.Error(err)
					return
				}
				defer s.Close()
				done, err := s.Migrate(t.Context())
				check.Equal(t, err, nil)
				mu.Lock()
				defer mu.Unlock()
				applied += len(done)
			})
		}
		all.Wait()
		steps := check.Try(open(t, cfg).Migrations(t.Context())).OK(t)
		check.Equal(t, applied, len(steps))
	})
}

func TestNewerDatabaseIsRejected(t *testing.T) {
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		steps := check.Try(s.Migrations(t.Context())).OK(t)
		newest := steps[len(steps)-1].Version
		check.Try(s.Write.ExecContext(t.Context(), `INSERT INTO schema_migrations VALUES ($1, 'future', 'tomorrow')`, newest+3)).OK(t)
		want := fmt.Sprintf("the database is at migration %d, but this version of palmares supports only up to %d: upgrade palmares", newest+3, newest)
		_, err := s.Migrate(t.Context())
		check.Equal(t, fmt.Sprint(err), want, "migrate")
		check.Equal(t, fmt.Sprint(s.CheckMigrated(t.Context())), want, "check")
		// A running server keeps serving until it is upgraded.
		check.Equal(t, s.Ready(t.Context()), nil, "ready")
	})
}

func TestFailedMigrationChangesNothing(t *testing.T) {
	testkit.EachNew(t, func(t *testing.T, cfg store.Config) {
		s := open(t, cfg)
		// The first migration creates other tables before this one.
		check.Try(s.Write.ExecContext(t.Context(), `CREATE TABLE sections (x integer)`)).OK(t)
		_, err := s.Migrate(t.Context())
		var databaseErr *store.Error
		check.MustTrue(t, errors.As(err, &databaseErr), "got %v, want a store.Error that does not name the table", err)
		check.Lacks(t, err.Error(), "sections")
		check.Try(s.Write.ExecContext(t.Context(), `SELECT * FROM categories`)).Fails(t)
	})
}

func TestSQLiteSettings(t *testing.T) {
	cfg := testkit.SQLite(t)
	s := testkit.Open(t, cfg)
	for pragma, want := range map[string]string{"journal_mode": "wal", "foreign_keys": "1", "synchronous": "2", "busy_timeout": "10000"} {
		check.Equal(t, pragmaOf(t, s.Write, pragma), want, pragma)
	}
	check.Equal(t, pragmaOf(t, s.Read, "query_only"), "1", "query_only of readers")
	_, err := s.Read.Category.Create().SetID("x").SetLabel("X").SetFingerprint("").Save(t.Context())
	check.Fails(t, err, "write by a reader")
	info := check.Try(os.Stat(filepath.Join(cfg.DataDir, "palmares.db"))).OK(t)
	check.True(t, info.Size() != 0, "got an empty file, want a database")
}

func pragmaOf(t *testing.T, client *ent.Client, name string) string {
	t.Helper()
	rows := check.Try(client.QueryContext(t.Context(), "PRAGMA "+name)).OK(t)
	defer rows.Close()
	var value string
	for rows.Next() {
		check.OK(t, rows.Scan(&value))
	}
	return value
}

// Readers are not blocked by a writer, and see its changes once it commits.
func TestReadersSeeCommittedChanges(t *testing.T) {
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		count := func() int { return s.Read.Category.Query().CountX(t.Context()) }
		err := s.Exclusive(t.Context(), func(tx *ent.Tx) error {
			tx.Category.Create().SetID("x").SetLabel("X").SetFingerprint("").SaveX(t.Context())
			check.Equal(t, count(), 0, "categories of an uncommitted change")
			return nil
		})
		check.OK(t, err, "after the commit")
		check.Equal(t, count(), 1, "after the commit")

		err = s.Snapshot(t.Context(), func(db *ent.Client, _ *ent.Release) error {
			before := db.Category.Query().CountX(t.Context())
			s.Write.Category.Create().SetID("y").SetLabel("Y").SetFingerprint("").SaveX(t.Context())
			check.Equal(t, db.Category.Query().CountX(t.Context()), before, "categories later in a snapshot")
			return nil
		})
		check.OK(t, err, "after the snapshot")
		check.Equal(t, count(), 2, "after the snapshot")
	})
}

func TestExclusiveTransactions(t *testing.T) {
	testkit.EachNew(t, func(t *testing.T, cfg store.Config) {
		testkit.Open(t, cfg)
		var inside, overlaps atomic.Int32
		var all sync.WaitGroup
		for range 4 {
			s := open(t, cfg) // as another process would
			all.Go(func() {
				for range 20 {
					err := s.Exclusive(t.Context(), func(tx *ent.Tx) error {
						overlaps.Add(inside.Add(1) - 1)
						defer inside.Add(-1)
						_, err := tx.Category.Query().Count(t.Context())
						return err
					})
					check.Equal(t, err, nil)
				}
			})
		}
		all.Wait()
		check.Equal(t, overlaps.Load(), 0, "concurrent transactions")
	})
}

func TestWatchSeesOtherProcesses(t *testing.T) {
	testkit.EachNew(t, func(t *testing.T, cfg store.Config) {
		server, importer := testkit.Open(t, cfg), open(t, cfg)
		seen := make(chan int, 10)
		ctx, cancel := context.WithCancel(t.Context())
		var watching sync.WaitGroup
		watching.Go(func() {
			server.Watch(ctx, slog.New(slog.DiscardHandler), func(r *ent.Release) bool { seen <- r.ID; return true })
		})
		defer watching.Wait()
		defer cancel()
		for number := 1; number <= 3; number++ {
			err := importer.Exclusive(t.Context(), func(tx *ent.Tx) error {
				tx.Release.Create().SetID(number).SetFeedDate("2026-11-01").SetToolsTotal(0).SetToolsTested(0).
					SetToolsRetired(0).SetComparisonsTotal(0).SaveX(t.Context())
				return importer.NotifyRelease(t.Context(), tx, number)
			})
			check.OK(t, err)
			wantSeen(t, seen, number)
		}
	})
}

func TestErrorMessages(t *testing.T) {
	notADatabase := testkit.SQLite(t)
	check.OK(t, os.WriteFile(filepath.Join(notADatabase.DataDir, "palmares.db"), []byte(strings.Repeat("not a database ", 100)), 0o600))
	file := filepath.Join(t.TempDir(), "file")
	check.OK(t, os.WriteFile(file, nil, 0o600))
	missing := testkit.Postgres(t)
	missing.DatabaseURL = strings.Replace(missing.DatabaseURL, "/palmares_scratch", "/no_such_database", 1)

	for name, c := range map[string]struct {
		cfg  store.Config
		want string
	}{
		"not a database":          {notADatabase, "the database file is damaged, or is not a palmares database"},
		"a file as the directory": {store.Config{DataDir: file}, "cannot create the data directory " + file},
		"connection refused":      {store.Config{DatabaseURL: "postgres://u:secret@127.0.0.1:1/x"}, "the database cannot be reached"},
		"no such database":        {missing, "the database in DATABASE_URL does not exist"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := store.Open(t.Context(), c.cfg)
			check.Equal(t, fmt.Sprint(err), c.want)
		})
	}
}

func open(t *testing.T, cfg store.Config) *store.Store {
	t.Helper()
	s := check.Try(store.Open(t.Context(), cfg)).OK(t)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// recorder records statements.
type recorder struct {
	mu             sync.Mutex
	statements     []string
	started, ended int
	failed         error
}

func (r *recorder) hook(_ context.Context, pool, statement string) func(error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.started++
	r.statements = append(r.statements, pool+": "+statement)
	return func(err error) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.ended++
		r.failed = err
	}
}

// wantStatement checks that a statement was seen and that all have ended, and
// clears the recorder.
func (r *recorder) wantStatement(t *testing.T, pool, statement string) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	all := strings.Join(r.statements, "\n")
	check.Contains(t, all, pool+": "+statement, "%d", r.started-r.ended)
	check.Equal(t, r.started, r.ended, "%d", r.started-r.ended)
	check.Lacks(t, all, "secret", "arguments in the statements")
	r.statements = nil
}

func TestHookSeesEveryStatement(t *testing.T) {
	testkit.EachNew(t, func(t *testing.T, cfg store.Config) {
		r := &recorder{}
		cfg.OnStatement = r.hook
		s := testkit.Open(t, cfg)
		r.statements = nil
		err := s.Update(t.Context(), func(tx *ent.Tx) error {
			if err := tx.Category.Create().SetID("secret").SetLabel("secret").SetFingerprint("secret").Exec(t.Context()); err != nil {
				return err
			}
			_, err := tx.ExecContext(t.Context(), "UPDATE categories SET label = label")
			return err
		})
		check.OK(t, err)
		r.wantStatement(t, "writer", "COMMIT")
		check.Try(s.Read.Category.Get(t.Context(), "secret")).OK(t)
		r.wantStatement(t, "reader", "SELECT ")
		err = s.Snapshot(t.Context(), func(db *ent.Client, _ *ent.Release) error {
			rows, err := db.QueryContext(t.Context(), "SELECT slug FROM categories")
			if err != nil {
				return err
			}
			defer rows.Close()
			return rows.Err()
		})
		check.OK(t, err)
		r.wantStatement(t, "reader", "SELECT slug FROM categories")
		rows := check.Try(s.Read.QueryContext(t.Context(), "SELECT 7")).OK(t)
		_ = rows.Close()
		r.wantStatement(t, "reader", "SELECT 7")
		_, err = s.Read.QueryContext(t.Context(), "SELECT FROM nowhere")
		check.Fails(t, err, r.failed)
		check.Equal(t, fmt.Sprint(r.failed), fmt.Sprint(err), r.failed)
		// The hook also sees transactions that bypass ent.
		err = s.Exclusive(t.Context(), func(tx *ent.Tx) error {
			_, err := tx.ExecContext(t.Context(), "UPDATE tools SET name = name")
			return err
		})
		check.OK(t, err)
		r.wantStatement(t, "writer", "UPDATE tools")
		pools := s.Pools()
		check.Equal(t, len(pools), 3, "pools %v", pools)
		check.True(t, pools["keys"] != nil && pools["reader"] != nil && pools["writer"] != nil, "got pools %v, want reader, writer and keys", pools)
	})
}

// A hook hides nothing that the drivers offer to database/sql.
func TestHookKeepsFeaturesOfDrivers(t *testing.T) {
	testkit.EachNew(t, func(t *testing.T, cfg store.Config) {
		plain := testkit.Open(t, cfg).Pools()["reader"]
		r := &recorder{}
		cfg.OnStatement = r.hook
		hooked := testkit.Open(t, cfg).Pools()["reader"]
		scanType := func(db *sql.DB) reflect.Type {
			rows := check.Try(db.QueryContext(t.Context(), "SELECT label FROM categories")).OK(t)
			defer rows.Close()
			types := check.Try(rows.ColumnTypes()).OK(t)
			return types[0].ScanType()
		}
		check.Equal(t, scanType(hooked), scanType(plain), "type")
		if cfg.DatabaseURL == "" {
			return
		}
		var found bool
		check.OK(t, hooked.QueryRowContext(t.Context(), "SELECT 'b' = ANY($1)", []string{"a", "b"}).Scan(&found), "slice as an argument")
		check.Equal(t, found, true, "slice as an argument")
		tx := check.Try(hooked.BeginTx(t.Context(), &sql.TxOptions{ReadOnly: true})).OK(t)
		check.Try(tx.ExecContext(t.Context(), "UPDATE tools SET name = name")).Fails(t, "write in a read-only transaction")
		_ = tx.Rollback()
		rows := check.Try(hooked.QueryContext(t.Context(), "SELECT 1 / (2 - i) FROM generate_series(1, 2) i")).OK(t)
		for rows.Next() {
		}
		check.Fails(t, rows.Err())
		check.Fails(t, r.failed)
		check.Equal(t, r.started, r.ended)
	})
}
