package billing

import (
	"log"
	"os"
	"testing"

	"palmares/internal/dev/testkit"
)

// stripeMock is where Stripe's own mock of its API listens. It is slow to
// start, and keeps nothing: one does for all tests.
var stripeMock string

func TestMain(m *testing.M) {
	whole := &wholeRun{}
	stripeMock = testkit.StartStripeMock(whole)
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
