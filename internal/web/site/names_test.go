package site

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// reading is a catalog with one tool, named after how often it was read. Each
// time it waits for a turn.
type reading struct {
	turns        chan error
	begun, times atomic.Int64
}

func (r *reading) read(_ context.Context, operation, list string) ([]suggestion, error) {
	if operation != "toolNames" {
		return nil, nil
	}
	r.begun.Add(1)
	err := <-r.turns
	return []suggestion{{Path: list + []string{"first", "second", "third"}[r.times.Add(1)-1]}}, err
}

func TestNamesAreReadOnceForARelease(t *testing.T) {
	synctest.Test(t, testNamesAreReadOnce)
}

func testNamesAreReadOnce(t *testing.T) {
	r := &reading{turns: make(chan error)}
	n := &names{read: r.read}
	found := make(chan *catalogNames)
	for range 5 {
		go func() { found <- n.of(t.Context(), 1) }()
	}
	synctest.Wait()
	r.turns <- nil
	for range 5 {
		if got := <-found; got == nil || got.tools.pages[0].Path != "/tools/first" {
			t.Errorf("found %+v", got)
		}
	}
	if got := n.of(t.Context(), 1); got == nil || r.begun.Load() != 1 {
		t.Errorf("read %d times", r.begun.Load())
	}

	// The names of the next release are read while those from before serve.
	for range 3 {
		if got := n.of(t.Context(), 2); got == nil || got.release != 1 {
			t.Errorf("meanwhile: %+v", got)
		}
	}
	synctest.Wait()
	r.turns <- nil
	synctest.Wait()
	if path := n.of(t.Context(), 2).tools.pages[0].Path; path != "/tools/second" {
		t.Errorf("got %s, want /tools/second", path)
	}
	if r.begun.Load() != 2 {
		t.Errorf("read %d times", r.begun.Load())
	}
}

// Nobody waits for ever, and what fails is tried again.
func TestNamesThatCannotBeRead(t *testing.T) {
	synctest.Test(t, testNamesThatCannotBeRead)
}

func testNamesThatCannotBeRead(t *testing.T) {
	r := &reading{turns: make(chan error)}
	n := &names{read: r.read}
	begin := time.Now()
	if got := n.of(t.Context(), 1); got != nil || time.Since(begin) != namesWait { // on the test's own clock
		t.Errorf("got %+v after %v, want none after %v", got, time.Since(begin), namesWait)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if got := n.of(gone, 1); got != nil {
		t.Errorf("who went away got %+v", got)
	}
	r.turns <- errors.New("the database is away")
	synctest.Wait()
	go func() { r.turns <- nil }()
	if got := n.of(t.Context(), 1); got == nil || got.tools.pages[0].Path != "/tools/second" {
		t.Errorf("found %+v", got)
	}
}
