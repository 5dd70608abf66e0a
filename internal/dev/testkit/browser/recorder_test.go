package browser_test

import (
	"fmt"
	"os"
	"runtime"
	"testing"
)

// recorder is a test that fails without failing the one it is part of.
type recorder struct {
	testing.TB
	failures []string
	cleanups []func()
}

// failures runs a test to its end, and returns how it failed.
func failures(t *testing.T, test func(t testing.TB)) []string {
	t.Helper()
	if os.Getenv("TEST_OUTPUT") == "" { // what fails on purpose is not kept
		t.Setenv("TEST_OUTPUT", t.TempDir())
	}
	r := &recorder{TB: t}
	over := make(chan struct{})
	go func() {
		defer close(over)
		defer func() {
			for i := len(r.cleanups) - 1; i >= 0; i-- {
				r.cleanups[i]()
			}
		}()
		test(r)
	}()
	<-over
	return r.failures
}

func (r *recorder) Failed() bool { return len(r.failures) > 0 }

func (r *recorder) Cleanup(f func()) { r.cleanups = append(r.cleanups, f) }

func (r *recorder) Error(args ...any) { r.failures = append(r.failures, fmt.Sprint(args...)) }

func (r *recorder) Errorf(format string, args ...any) { r.Error(fmt.Sprintf(format, args...)) }

func (r *recorder) Fatal(args ...any) {
	r.Error(args...)
	runtime.Goexit()
}

func (r *recorder) Fatalf(format string, args ...any) { r.Fatal(fmt.Sprintf(format, args...)) }
