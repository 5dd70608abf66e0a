package cache

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"palmares/internal/core/problem"
)

type askerKey struct{}

// A new release is served at once, and the busiest answers are there before
// their readers.
func TestNewRelease(t *testing.T) {
	c := newCache()
	var times, release atomic.Int64
	release.Store(1)
	for i := range 10 {
		q := Question{Operation: "tools", Variables: fmt.Sprint(i)}
		for range 1 + 10*i {
			if _, err := c.Get(t.Context(), q, making(&times, &release)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if times.Load() != 10 {
		t.Fatalf("worked out %d times", times.Load())
	}
	release.Store(2)
	c.renewed = 3
	if err := c.Renew(2); err != nil {
		t.Fatal(err)
	}
	if times.Load() != 13 {
		t.Errorf("%d answers were worked out again, not 3", times.Load()-10)
	}
	for i := range 10 {
		got, err := c.Get(t.Context(), Question{Operation: "tools", Variables: fmt.Sprint(i)}, making(&times, &release))
		if err != nil || body(got) != "release 2" {
			t.Errorf("%d: %s, %v", i, body(got), err)
		}
	}
	if times.Load() != 20 {
		t.Errorf("then %d more, not 7", times.Load()-13)
	}
	// An answer that was begun on an old release does not bring it back.
	c.Publish(1)
	if c.Newest() != 2 {
		t.Errorf("release %d is served", c.Newest())
	}
	for key := range c.items.Keys() {
		if key.edition.release() != 2 {
			t.Errorf("release %d takes room", key.edition.release())
		}
	}
}

// Whoever sees a newer release first ends the old one for all.
func TestAMissTellsOfTheRelease(t *testing.T) {
	c := newCache()
	var times, release atomic.Int64
	release.Store(1)
	if _, err := c.Get(t.Context(), tools, making(&times, &release)); err != nil {
		t.Fatal(err)
	}
	release.Store(2)
	if _, err := c.Get(t.Context(), Question{Operation: "stats"}, making(&times, &release)); err != nil {
		t.Fatal(err)
	}
	if got, _ := c.Get(t.Context(), tools, making(&times, &release)); body(got) != "release 2" {
		t.Errorf("%s after a newer one", body(got))
	}
}

// That something is gone is news of a release as well: what is kept of the one
// before is not shown after it.
func TestErrorOfANewRelease(t *testing.T) {
	c := newCache()
	var times, release atomic.Int64
	release.Store(1)
	if _, err := c.Get(t.Context(), tools, making(&times, &release)); err != nil {
		t.Fatal(err)
	}
	release.Store(2)
	gone := func(context.Context) (*Entry, int, error) { return nil, 2, problem.New(problem.NotFound, "gone") }
	if _, err := c.Get(t.Context(), Question{Operation: "tool"}, gone); problem.Of(err).Code != problem.NotFound {
		t.Error(err)
	}
	if got, err := c.Get(t.Context(), tools, making(&times, &release)); err != nil || body(got) != "release 2" {
		t.Errorf("%s, %v", body(got), err)
	}
}

// What is worked out again for all is not worked out in the name of who
// happened to see the release first.
func TestRenewedForNobody(t *testing.T) {
	c := newCache()
	release, named := 1, false
	work := func(ctx context.Context) (*Entry, int, error) {
		named = named || release == 2 && ctx.Value(askerKey{}) != nil
		return NewEntry([]byte("x"), nil), release, nil
	}
	if _, err := c.Get(t.Context(), tools, work); err != nil {
		t.Fatal(err)
	}
	release = 2
	asker := context.WithValue(t.Context(), askerKey{}, "somebody")
	other := func(context.Context) (*Entry, int, error) { return NewEntry([]byte("y"), nil), 2, nil }
	if _, err := c.Get(asker, Question{Operation: "stats"}, other); err != nil {
		t.Fatal(err)
	}
	if named || c.Newest() != 2 {
		t.Errorf("in somebody's name: %v, release %d", named, c.Newest())
	}
}

// A database that fails just as a release comes out takes nothing away: what
// is kept goes on, whichever way the release was heard of.
func TestTheDatabaseFailsWithTheNews(t *testing.T) {
	c := newCache()
	var release atomic.Int64
	var away atomic.Bool
	work := func(context.Context) (*Entry, int, error) {
		if away.Load() {
			return nil, 0, problem.New(problem.Unavailable, "away")
		}
		return NewEntry([]byte(fmt.Sprint("release ", release.Load())), nil), int(release.Load()), nil
	}
	keptIs := func(want string) {
		t.Helper()
		if got, err := c.Get(t.Context(), tools, work); err != nil || body(got) != want {
			t.Errorf("kept: %s, %v", body(got), err)
		}
	}
	release.Store(1)
	keptIs("release 1")

	away.Store(true)
	release.Store(2)
	if err := c.Renew(2); err == nil || c.Newest() != 1 {
		t.Errorf("release %d is served, %v", c.Newest(), err)
	}
	keptIs("release 1")
	// One answer of it still came through.
	through := func(context.Context) (*Entry, int, error) { return NewEntry([]byte("release 2"), nil), 2, nil }
	if _, err := c.Get(t.Context(), Question{Operation: "stats"}, through); err == nil {
		t.Error("a newer release is shown, and an older one after it")
	}
	keptIs("release 1")

	away.Store(false)
	if err := c.Renew(2); err != nil {
		t.Error(err)
	}
	keptIs("release 2")
}

// An answer that takes long, or too long, holds up no release: others show that
// the database is there.
func TestSlowAnswerHoldsUpNobody(t *testing.T) {
	c := newCache()
	var release atomic.Int64
	release.Store(1)
	hang := make(chan struct{})
	defer close(hang)
	for name, work := range map[string]func() error{
		"hangs":     func() error { <-hang; return nil },
		"times out": func() error { return problem.New(problem.Timeout, "slow") },
		"answers":   func() error { return nil },
	} {
		_, err := c.Get(t.Context(), Question{Operation: name}, func(context.Context) (*Entry, int, error) {
			if release.Load() > 1 {
				if err := work(); err != nil {
					return nil, 0, err
				}
			}
			return NewEntry([]byte("x"), nil), int(release.Load()), nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	release.Store(2)
	if err := c.Renew(2); err != nil || c.Newest() != 2 {
		t.Errorf("release %d is served, %v", c.Newest(), err)
	}
}

// Where numbers begin anew, nothing of before is served.
func TestRestart(t *testing.T) {
	c := newCache()
	var times, release atomic.Int64
	release.Store(5)
	if _, err := c.Get(t.Context(), tools, making(&times, &release)); err != nil {
		t.Fatal(err)
	}
	release.Store(2)
	c.Restart(2)
	for range 2 {
		if got, err := c.Get(t.Context(), tools, making(&times, &release)); err != nil || body(got) != "release 2" {
			t.Errorf("%s, %v", body(got), err)
		}
	}
	if times.Load() != 2 {
		t.Errorf("worked out %d times", times.Load())
	}
}

// What was still worked out when numbers began anew is not taken for newer.
func TestLateFlightAfterRestart(t *testing.T) {
	c := newCache()
	c.Publish(7)
	begun, goOn, landed := make(chan struct{}), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(landed)
		_, _ = c.Get(t.Context(), tools, func(context.Context) (*Entry, int, error) {
			close(begun)
			<-goOn
			return NewEntry([]byte("old"), nil), 7, nil
		})
	}()
	<-begun
	c.Restart(5)
	close(goOn)
	<-landed
	for _, release := range []int{5, 7} { // which comes again
		c.Publish(release)
		work := func(context.Context) (*Entry, int, error) {
			return NewEntry([]byte(fmt.Sprint("new ", release)), nil), release, nil
		}
		if got, err := c.Get(t.Context(), tools, work); err != nil || body(got) != fmt.Sprint("new ", release) || c.Newest() != release {
			t.Errorf("release %d: %s of %d, %v", release, body(got), c.Newest(), err)
		}
	}
}
