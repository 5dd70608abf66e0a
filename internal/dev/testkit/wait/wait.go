// Package wait lets tests wait for conditions without asserting durations. It
// imports no other package of ours, so that all tests can use it.
package wait

import (
	"context"
	"syscall"
	"testing"
	"time"
)

// Limit is the longest time to wait. It only ends tests that hang, so it is
// far longer than a busy machine needs.
const Limit = time.Minute

const interval = 5 * time.Millisecond

// Until polls a condition until it is true, and fails the test after Limit.
func Until(t testing.TB, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(Limit); !condition(); time.Sleep(interval) {
		if time.Now().After(deadline) {
			t.Fatalf("still not true after %s: %s", Limit, what)
		}
	}
}

// Receive receives from a channel, which may be closed, and fails the test after
// Limit.
func Receive[T any](t testing.TB, what string, from <-chan T) T {
	t.Helper()
	timer := time.NewTimer(Limit)
	defer timer.Stop()
	select {
	case value := <-from:
		return value
	case <-timer.C:
		t.Fatalf("nothing received after %s: %s", Limit, what)
		panic("unreachable")
	}
}

// Context returns the test's context with a timeout of Limit.
func Context(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), Limit)
	t.Cleanup(cancel)
	return ctx
}

// CPU returns the CPU time that this process has used, which other processes on
// a busy machine do not affect. Tests that compare it must not be parallel.
func CPU() time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		panic(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
