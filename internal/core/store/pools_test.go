package store_test

import (
	"context"
	"database/sql"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"

	"palmares/ent"
	"palmares/internal/core/store"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
)

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
