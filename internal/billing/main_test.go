package billing

import (
	"context"
	"log"
	"os"
	"testing"

	"palmares/internal/store"
	"palmares/internal/testdb"
)

// stripeMock is where Stripe's own mock of its API listens. It is slow to
// start, and keeps nothing: one does for all tests.
var stripeMock string

// migrated is the folder of an empty embedded database. Copying it takes far
// less than migrating each test's own.
var migrated string

func TestMain(m *testing.M) {
	whole := &wholeRun{}
	stripeMock = testdb.StartStripeMock(whole)
	migrated = whole.migrate()
	code := m.Run()
	for _, end := range whole.ends {
		end()
	}
	os.Exit(code)
}

// wholeRun is all tests as if they were one.
type wholeRun struct {
	testing.TB
	ends []func()
}

func (w *wholeRun) Helper()                         {}
func (w *wholeRun) Cleanup(end func())              { w.ends = append(w.ends, end) }
func (w *wholeRun) Fatal(args ...any)               { log.Fatal(args...) }
func (w *wholeRun) Fatalf(form string, args ...any) { log.Fatalf(form, args...) }

func (w *wholeRun) migrate() string {
	dir, err := os.MkdirTemp("", "palmares-billing-")
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { _ = os.RemoveAll(dir) })
	s, err := store.Open(context.Background(), store.Config{DataDir: dir})
	if err != nil {
		w.Fatal(err)
	}
	if _, err := s.Migrate(context.Background()); err != nil {
		w.Fatal(err)
	}
	if err := s.Close(); err != nil {
		w.Fatal(err)
	}
	return dir
}

func copyMigrated(t *testing.T, to string) {
	t.Helper()
	if err := os.CopyFS(to, os.DirFS(migrated)); err != nil {
		t.Fatal(err)
	}
}
