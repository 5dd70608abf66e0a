// Package wait lets tests wait for conditions without asserting how long they
// take. It imports nothing of ours, so that every package's tests can use it.
package wait

import (
	"context"
	"syscall"
	"testing"
	"time"
)

// Limit is when waiting is given up. It only ends tests that would hang, so it
// is far beyond what a busy machine needs.
const Limit = 5 * time.Minute

const interval = 5 * time.Millisecond

// Until polls a condition until it holds. It fails the test with what was
// waited for if that takes longer than Limit.
func Until(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(Limit); !holds(); time.Sleep(interval) {
		if time.Now().After(deadline) {
			t.Fatalf("waited %s in vain: %s", Limit, what)
		}
	}
}

// Receive returns what comes from a channel, which may be closed. It fails the
// test with what was waited for if nothing comes within Limit.
func Receive[T any](t testing.TB, what string, from <-chan T) T {
	t.Helper()
	timer := time.NewTimer(Limit)
	defer timer.Stop()
	select {
	case value := <-from:
		return value
	case <-timer.C:
		t.Fatalf("waited %s in vain: %s", Limit, what)
		panic("unreachable")
	}
}

// Context is the test's, and ends after Limit.
func Context(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), Limit)
	t.Cleanup(cancel)
	return ctx
}

// CPU is the processor time that this process has used. Unlike the clock, it
// does not advance while other programs have the processor. Tests that compare
// it must not be parallel.
func CPU() time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		panic(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
