package store_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"palmares/ent"
	"palmares/internal/core/store"
	"palmares/internal/dev/testkit"
)

// heard is what a Watch was told.
type heard struct {
	mu           sync.Mutex
	said         []string
	begun, ended int
	failed       error
}

func (h *heard) watch(_ context.Context, pool, text string) func(error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.begun++
	h.said = append(h.said, pool+": "+text)
	return func(err error) {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.ended++
		h.failed = err
	}
}

// has tells whether a statement was heard of, and forgets what was.
func (h *heard) has(t *testing.T, pool, text string) {
	t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	all := strings.Join(h.said, "\n")
	if !strings.Contains(all, pool+": "+text) || h.begun != h.ended {
		t.Errorf("no %s: %s, or %d are not ended:\n%s", pool, text, h.begun-h.ended, all)
	}
	if strings.Contains(all, "geheim") {
		t.Errorf("arguments are told: %s", all)
	}
	h.said = nil
}

func TestWatch(t *testing.T) {
	testkit.Each(t, func(t *testing.T, cfg store.Config) {
		h := &heard{}
		cfg.Watch = h.watch
		s := testkit.Open(t, cfg)
		h.said = nil
		err := s.Update(t.Context(), func(tx *ent.Tx) error {
			if err := tx.Category.Create().SetID("geheim").SetLabel("geheim").SetFingerprint("geheim").Exec(t.Context()); err != nil {
				return err
			}
			_, err := tx.ExecContext(t.Context(), "UPDATE categories SET label = label")
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		h.has(t, "writer", "COMMIT")
		if _, err := s.Read.Category.Get(t.Context(), "geheim"); err != nil {
			t.Fatal(err)
		}
		h.has(t, "reader", "SELECT ")
		for range 2 { // in a transaction, and without one
			err = s.Reading(t.Context(), func(ctx context.Context, _ *ent.Release) error {
				rows, err := s.Select(ctx, "SELECT slug FROM categories")
				if err != nil {
					return err
				}
				defer rows.Close()
				return rows.Err()
			})
			if err != nil {
				t.Fatal(err)
			}
			h.has(t, "reader", "SELECT slug FROM categories")
		}
		rows, err := s.Current().QueryContext(t.Context(), "SELECT 7")
		if err != nil {
			t.Fatal(err)
		}
		_ = rows.Close()
		h.has(t, "reader", "SELECT 7")
		if _, err := s.Read.QueryContext(t.Context(), "SELECT FROM nowhere"); err == nil || fmt.Sprint(h.failed) != fmt.Sprint(err) {
			t.Errorf("a failure is not told: %v, %v", err, h.failed)
		}
		if pools := s.Pools(); len(pools) != 3 || pools["keys"] == nil || pools["reader"] == nil || pools["writer"] == nil {
			t.Errorf("%v", pools)
		}
	})
}
