package store_test

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	neturl "net/url"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/lib/pq"

	"palmares/ent"
	"palmares/internal/core/store"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
	"palmares/internal/dev/testkit/wait"
)

// release stores release number n and announces it.
func release(t *testing.T, s *store.Store, n int) {
	t.Helper()
	err := s.Exclusive(t.Context(), func(tx *ent.Tx) error {
		tx.Release.Create().SetID(n).SetFeedDate("2026-11-01").SetToolsTotal(0).SetToolsTested(0).
			SetToolsRetired(0).SetComparisonsTotal(0).SaveX(t.Context())
		return s.NotifyRelease(t.Context(), tx, n)
	})
	check.OK(t, err)
}

// watch collects the releases that a store sees until the test ends; 0 for none.
func watch(t *testing.T, s *store.Store) <-chan int {
	t.Helper()
	seen := make(chan int, 10)
	ctx, cancel := context.WithCancel(context.Background())
	var watching sync.WaitGroup
	watching.Go(func() {
		s.Watch(ctx, slog.New(slog.DiscardHandler), func(r *ent.Release) bool {
			seen <- cmp.Or(r, &ent.Release{}).ID
			return true
		})
	})
	t.Cleanup(func() {
		cancel()
		watching.Wait()
	})
	return seen
}

func wantSeen(t *testing.T, seen <-chan int, want int) {
	t.Helper()
	check.Equal(t, wait.Receive(t, fmt.Sprintf("release %d is seen", want), seen), want, "release")
}

// With polls an hour apart, only a notification wakes Watch.
func TestNotificationWakesWatch(t *testing.T) {
	cfg := testkit.Postgres(t)
	cfg.PollEvery = time.Hour
	s := testkit.Open(t, cfg)
	seen := watch(t, s)
	for listening := 0; listening == 0; time.Sleep(10 * time.Millisecond) {
		rows, err := s.Write.QueryContext(t.Context(), "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND query ILIKE 'listen %' AND state = 'idle'")
		check.OK(t, err)
		for rows.Next() {
			err = errors.Join(err, rows.Scan(&listening))
		}
		err = errors.Join(err, rows.Close())
		check.OK(t, err)
	}
	for n := 1; n <= 3; n++ {
		release(t, s, n)
		wantSeen(t, seen, n)
	}
}

func TestWatchSurvivesLostConnection(t *testing.T) {
	s := testkit.Open(t, testkit.Postgres(t))
	seen := watch(t, s)
	release(t, s, 1)
	wantSeen(t, seen, 1)
	if _, err := s.Write.ExecContext(t.Context(),
		"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"); err != nil {
		t.Fatal(err)
	}
	release(t, s, 2)
	wantSeen(t, seen, 2)
}

// After a backup is restored, the newest release has a lower number, or there is none.
func TestWatchSeesRestoredRelease(t *testing.T) {
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		seen := watch(t, s)
		release(t, s, 7)
		wantSeen(t, seen, 7)
		check.Try(s.Write.Release.Delete().Exec(t.Context())).OK(t)
		wantSeen(t, seen, 0)
		release(t, s, 3)
		wantSeen(t, seen, 3)
	})
}

// If the connection ends during the commit, its outcome is unknown.
func TestLostCommitHasUnknownOutcome(t *testing.T) {
	cfg := testkit.Postgres(t)
	s, other := testkit.Open(t, cfg), open(t, cfg)
	err := s.Exclusive(t.Context(), func(*ent.Tx) error {
		_, err := other.Write.ExecContext(t.Context(),
			"SELECT pg_terminate_backend(pid, 20000) FROM pg_locks WHERE locktype = 'advisory' AND database = (SELECT oid FROM pg_database WHERE datname = current_database())")
		return err
	})
	var databaseErr *store.Error
	check.MustTrue(t, errors.As(err, &databaseErr), "got %v, want a store.Error with an unknown outcome", err)
	check.Equal(t, databaseErr.CommitUnknown, true)
}

// An operator's database settings do not change what is read and written.
func TestUnusualServerSettings(t *testing.T) {
	for _, setting := range []string{
		"extra_float_digits = 0", "default_transaction_isolation = 'serializable'", "timezone = 'Asia/Kathmandu'", "datestyle = 'German'",
	} {
		t.Run(setting, func(t *testing.T) {
			cfg := testkit.Postgres(t)
			admin := open(t, cfg)
			u, _ := neturl.Parse(cfg.DatabaseURL)
			check.Try(admin.Write.ExecContext(t.Context(), "ALTER DATABASE "+u.Path[1:]+" SET "+setting)).OK(t)
			var all sync.WaitGroup
			for range 4 {
				s := open(t, cfg)
				all.Go(func() {
					_, err := s.Migrate(t.Context())
					check.Equal(t, err, nil, errors.Unwrap(err))
				})
			}
			all.Wait()
			s := open(t, cfg)
			const score = 7.123456789012345
			s.Write.Category.Create().SetID("x").SetLabel("X").SetFingerprint("").SetAvgScore(score).SaveX(t.Context())
			check.Equal(t, *s.Read.Category.GetX(t.Context(), "x").AvgScore, score)
		})
	}
}

func TestReplacedFileIsNotReady(t *testing.T) {
	for name, replace := range map[string]func(t *testing.T, file string){
		"moved": func(t *testing.T, file string) { check.OK(t, os.Rename(file, file+".old")) },
		"overwritten by a backup": func(t *testing.T, file string) {
			backup, err := os.ReadFile(file)
			check.OK(t, errors.Join(err, os.Remove(file+"-wal"), os.Remove(file+"-shm"), os.WriteFile(file, backup, 0o600)))
		},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := testkit.SQLite(t)
			s := testkit.Open(t, cfg)
			release(t, s, 1)
			check.OK(t, s.Ready(t.Context()))
			replace(t, store.File(cfg.DataDir))
			testkit.Open(t, cfg) // another process creates missing files
			const want = "the database file was moved or replaced: restart the server"
			check.Equal(t, fmt.Sprint(s.Ready(t.Context())), want)
		})
	}
}

// freezable returns the URL of a database whose connections can be frozen.
func freezable(t *testing.T) (url string, freeze, restore func()) {
	t.Helper()
	cfg := testkit.Postgres(t)
	testkit.Open(t, cfg)
	p := testkit.StartToxiproxy(t)
	return p.Between("database", cfg.DatabaseURL), func() { p.Interrupt("database") }, p.Restore
}

func TestFrozenDatabaseIsReportedInTime(t *testing.T) {
	url, freeze, _ := freezable(t)
	s := open(t, store.Config{DatabaseURL: url})
	check.OK(t, s.Ready(t.Context()))
	freeze()
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	failed := make(chan error)
	go func() { failed <- s.Ready(ctx) }()
	// The error must arrive while the database is still frozen.
	const want = "the database cannot be reached"
	check.Equal(t, fmt.Sprint(wait.Receive(t, "a frozen database is reported", failed)), want)
}

// Whatever waits for a frozen database returns when its context ends, although its
// connection would wait for hours, and the connection is not used again.
func TestContextEndsWhileDatabaseIsFrozen(t *testing.T) {
	url, freeze, restore := freezable(t)
	for name, blocked := range map[string]func(ctx context.Context, db *sql.DB, freeze func()) error{
		"new connection": func(ctx context.Context, db *sql.DB, freeze func()) error {
			freeze()
			_, err := db.ExecContext(ctx, "SELECT 1")
			return err
		},
		"statement": func(ctx context.Context, db *sql.DB, freeze func()) error {
			check.OK(t, db.PingContext(ctx))
			freeze()
			_, err := db.ExecContext(ctx, "SELECT 1")
			return err
		},
		"query": func(ctx context.Context, db *sql.DB, freeze func()) error {
			check.OK(t, db.PingContext(ctx))
			freeze()
			_, err := db.QueryContext(ctx, "SELECT 1")
			return err
		},
		"rows": func(ctx context.Context, db *sql.DB, freeze func()) error {
			rows := check.Try(db.QueryContext(ctx, "SELECT repeat('x', 100000) FROM generate_series(1, 1000)")).OK(t)
			defer rows.Close()
			freeze()
			for rows.Next() {
			}
			return rows.Err()
		},
		"begin": func(ctx context.Context, db *sql.DB, freeze func()) error {
			check.OK(t, db.PingContext(ctx))
			freeze()
			_, err := db.BeginTx(ctx, nil)
			return err
		},
		"commit": func(ctx context.Context, db *sql.DB, freeze func()) error {
			tx := check.Try(db.BeginTx(ctx, nil)).OK(t)
			freeze()
			return tx.Commit()
		},
		"rollback": func(ctx context.Context, db *sql.DB, freeze func()) error {
			tx := check.Try(db.BeginTx(ctx, nil)).OK(t)
			freeze()
			return tx.Rollback()
		},
	} {
		t.Run(name, func(t *testing.T) {
			db := check.Try(store.PostgresPool(url+"&connect_timeout=3600", "test", nil, time.Hour, 1)).OK(t)
			defer db.Close()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			err := blocked(ctx, db, func() {
				freeze()
				time.AfterFunc(50*time.Millisecond, cancel)
			})
			check.Is(t, err, context.Canceled)
			restore()
			_, err = db.ExecContext(t.Context(), "SELECT 1")
			check.Equal(t, err, nil, "afterwards")
		})
	}
}

// If the context ends during the commit, its outcome is unknown.
func TestInterruptedCommitHasUnknownOutcome(t *testing.T) {
	url, freeze, _ := freezable(t)
	s := open(t, store.Config{DatabaseURL: url})
	ctx, cancel := context.WithCancel(t.Context())
	err := s.Update(ctx, func(*ent.Tx) error {
		freeze()
		time.AfterFunc(50*time.Millisecond, cancel)
		return nil
	})
	databaseErr, found := errors.AsType[*store.Error](err)
	check.Equal(t, found, true)
	check.Equal(t, databaseErr.CommitUnknown, true)
}

// The database stops working for a caller that is gone.
func TestContextCancelsStatement(t *testing.T) {
	cfg := testkit.Postgres(t)
	s, other := testkit.Open(t, cfg), open(t, cfg)
	ctx, cancel := context.WithCancel(t.Context())
	failed := make(chan error, 1)
	go func() {
		_, err := s.Write.ExecContext(ctx, "SELECT pg_sleep(600)")
		failed <- err
	}()
	running := func() bool {
		found := false
		check.OK(t, store.ScanRows(t.Context(), other.Read, func(rows *sql.Rows) error { return rows.Scan(&found) },
			"SELECT count(*) > 0 FROM pg_stat_activity WHERE query = 'SELECT pg_sleep(600)' AND state = 'active' AND datname = current_database()"))
		return found
	}
	wait.Until(t, "the statement runs", running)
	cancel()
	check.Is(t, wait.Receive(t, "the caller has an error", failed), context.Canceled)
	wait.Until(t, "the statement was canceled", func() bool { return !running() })
}

// A driver may report a canceled statement as a database error.
func TestCanceledQueryIsNotAStoreError(t *testing.T) {
	s := testkit.Open(t, testkit.Postgres(t))
	for name, fails := range map[string]error{
		"canceled statement": &pq.Error{Code: "57014"},
		"rolled back":        sql.ErrTxDone,
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			err := s.Update(ctx, func(*ent.Tx) error {
				cancel()
				return fails
			})
			check.Is(t, err, context.Canceled, "canceled")
			err = s.Update(t.Context(), func(*ent.Tx) error { return fails })
			databaseErr := (*store.Error)(nil)
			check.True(t, errors.As(err, &databaseErr), "not canceled: got %v, want a store.Error", err)
		})
	}
}

// Clients return a store.Error without further conversion.
func TestClientsReturnStoreErrors(t *testing.T) {
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		release(t, s, 1)
		again := s.Write.Release.Create().SetID(1).SetFeedDate("2026-11-01").SetToolsTotal(0).SetToolsTested(0).
			SetToolsRetired(0).SetComparisonsTotal(0).Exec(t.Context())
		check.True(t, ent.IsConstraintError(again), "got %v, want a constraint error", again)
		check.Try(s.Write.ExecContext(t.Context(), "DROP TABLE minutes")).OK(t)
		_, read := s.Read.Minute.Query().All(t.Context())
		_, counted := s.Read.Minute.Query().Count(t.Context())
		_, keys := s.Keys.Minute.Query().IDs(t.Context())
		_, deleted := s.Write.Minute.Delete().Exec(t.Context())
		for name, err := range map[string]error{
			"again": again, "read": read, "counted": counted, "keys": keys, "deleted": deleted,
			"created": s.Write.Minute.Create().SetID(1).SetChecks(1).SetFailed(0).Exec(t.Context()),
			"rows":    store.ScanRows(t.Context(), s.Keys, func(*sql.Rows) error { return nil }, "SELECT id FROM minutes"),
		} {
			databaseErr := (*store.Error)(nil)
			check.MustTrue(t, errors.As(err, &databaseErr), "%s: got %v, want a store.Error with its cause", name, err)
			check.Fails(t, databaseErr.Cause, name)
		}
	})
}
