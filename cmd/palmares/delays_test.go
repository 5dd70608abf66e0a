package main

import (
	"slices"
	"testing"
	"time"
)

// delays are how long things took to be seen, one after the other. What holds
// within a time is held to it for most of them: a busy machine may stop for a
// moment.
type delays []time.Duration

// until waits for something to be so, and notes how long that took.
func (d *delays) until(t *testing.T, what string, so func() bool) {
	t.Helper()
	begun := time.Now()
	for !so() {
		if time.Since(begun) > 20*time.Second {
			t.Fatalf("waited in vain for %s", what)
		}
		time.Sleep(20 * time.Millisecond)
	}
	*d = append(*d, time.Since(begun))
}

// mostlyWithin fails where more than a third took longer.
func (d delays) mostlyWithin(t *testing.T, limit time.Duration) {
	t.Helper()
	slices.Sort(d)
	if two := d[(len(d)*2-1)/3]; two > limit {
		t.Errorf("two in three took up to %s, not %s: %v", two, limit, d)
	}
}
