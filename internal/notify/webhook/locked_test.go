package webhook

import (
	"database/sql"
	"slices"
	"testing"
	"time"

	"palmares/internal/core/store"
	"palmares/internal/dev/testkit"
)

// While an import has SQLite's only lock, what was sent is remembered until it
// can be written down: nothing is sent twice.
func TestLockedDatabase(t *testing.T) {
	t.Parallel()
	cfg := testkit.SQLite(t)
	cfg.LockWait = 100 * time.Millisecond
	s := newSite(t, testkit.Open(t, cfg))
	r := newReceiver(t)
	e := s.add(Wish{URL: r.URL})
	first := tell(t, s.Store, 20)
	unlocked := make(chan struct{})
	whileSending(t, s, r, e.ID, func() {
		unlock := lock(t, cfg)
		go func() {
			defer close(unlocked)
			r.wait(t, 21)
			time.Sleep(10 * cfg.LockWait) // which one attempt to write would not survive
			unlock()
		}()
	})
	<-unlocked
	s.sendDue(e)
	if !slices.Equal(r.ids(), ids(first, 21)) || len(s.attempts(e)) != 21 {
		t.Errorf("%d came, %d attempts are known", len(r.all()), len(s.attempts(e)))
	}
}

// lock keeps the database as an import does.
func lock(t *testing.T, cfg store.Config) (unlock func()) {
	db, err := sql.Open("sqlite", store.File(cfg.DataDir))
	if err != nil {
		t.Error(err)
	}
	db.SetMaxOpenConns(1)
	if _, err := db.Exec("BEGIN IMMEDIATE"); err != nil {
		t.Error(err)
	}
	return func() { _ = db.Close() }
}
