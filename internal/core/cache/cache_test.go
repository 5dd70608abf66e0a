package cache

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"palmares/internal/dev/testkit/wait"
)

func newCache() *Cache {
	c := New(1<<20, nil, slog.New(slog.DiscardHandler))
	c.Publish(1)
	return c
}

var tools = Question{Operation: "tools", Variables: "?limit=2"}

// making answers with the release, and counts how often it had to.
func making(times *atomic.Int64, release *atomic.Int64) Make {
	return func(context.Context) (*Entry, int, error) {
		times.Add(1)
		return NewEntry(fmt.Append(nil, "release ", release.Load()), http.Header{}), int(release.Load()), nil
	}
}

func body(r Response) string { return string(r.forms[identity].body) }

// However many wait for one answer, it is worked out once.
func TestMadeOnce(t *testing.T) {
	c := newCache()
	var times, release atomic.Int64
	release.Store(1)
	goOn := make(chan struct{})
	slow := func(ctx context.Context) (*Entry, int, error) {
		<-goOn
		return making(&times, &release)(ctx)
	}
	var all sync.WaitGroup
	for range 1000 {
		all.Go(func() {
			if got, err := c.Get(t.Context(), tools, slow); err != nil || body(got) != "release 1" {
				t.Errorf("%v", err)
			}
		})
	}
	wait.Until(t, "all wait for the answer", func() bool { return waiting(c) == 1000 })
	close(goOn)
	all.Wait()
	if times.Load() != 1 {
		t.Errorf("it was worked out %d times", times.Load())
	}
	if _, err := c.Get(t.Context(), Question{Operation: "tools", Variables: "?limit=3"}, slow); err != nil || times.Load() != 2 {
		t.Errorf("another question has the same answer: %v", err)
	}
}

// Who goes away does not take the answer from the others.
func TestOneGoesAway(t *testing.T) {
	c := newCache()
	begun, goOn := make(chan struct{}), make(chan struct{})
	slow := func(ctx context.Context) (*Entry, int, error) {
		close(begun)
		<-goOn
		return NewEntry([]byte("x"), nil), 1, ctx.Err()
	}
	ctx, leave := context.WithCancel(t.Context())
	left := make(chan error)
	go func() {
		_, err := c.Get(ctx, tools, slow)
		left <- err
	}()
	<-begun
	stayed := make(chan error)
	go func() {
		_, err := c.Get(t.Context(), tools, slow)
		stayed <- err
	}()
	wait.Until(t, "two wait for the answer", func() bool { return waiting(c) == 2 })
	leave()
	if err := <-left; !errors.Is(err, context.Canceled) {
		t.Errorf("who left: %v", err)
	}
	close(goOn)
	if err := <-stayed; err != nil {
		t.Errorf("who stayed: %v", err)
	}
}

// waiting is how many wait for tools.
func waiting(c *Cache) int {
	c.flightsMu.Lock()
	defer c.flightsMu.Unlock()
	if f := c.flights[key{edition: c.Edition(), question: tools}]; f != nil {
		return f.waiting
	}
	return 0
}

// When all have gone away, nobody works for them any more, and who comes then
// begins anew.
func TestAllGoAway(t *testing.T) {
	c := newCache()
	begun, stopped := make(chan struct{}), make(chan error)
	ctx, leave := context.WithCancel(t.Context())
	go func() {
		<-begun
		leave()
	}()
	_, err := c.Get(ctx, tools, func(ctx context.Context) (*Entry, int, error) {
		close(begun)
		<-ctx.Done()
		stopped <- ctx.Err()
		return nil, 0, ctx.Err()
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("who left: %v", err)
	}
	if entry, err := c.Get(t.Context(), tools, func(context.Context) (*Entry, int, error) { return NewEntry([]byte("x"), nil), 1, nil }); err != nil || entry.Entry == nil {
		t.Errorf("who comes later: %v", err)
	}
	wait.Receive(t, "work for nobody stops", stopped)
}

// Errors and panics are told to all who wait, and not kept.
func TestFailuresAreNotKept(t *testing.T) {
	var said strings.Builder
	c := New(1<<20, nil, slog.New(slog.NewTextHandler(&said, nil)))
	c.Publish(1)
	for _, fails := range []Make{
		func(context.Context) (*Entry, int, error) { return nil, 0, errors.New("no") },
		func(context.Context) (*Entry, int, error) { panic("on purpose") },
	} {
		if _, err := c.Get(t.Context(), tools, fails); err == nil {
			t.Error("it worked")
		}
	}
	if !strings.Contains(said.String(), "on purpose") {
		t.Errorf("the panic is not in the log: %q", said.String())
	}
	var times, release atomic.Int64
	release.Store(1)
	if got, err := c.Get(t.Context(), tools, making(&times, &release)); err != nil || body(got) != "release 1" {
		t.Errorf("afterwards: %v", err)
	}
}

// What is not of any release is never kept for one.
func TestNothingBeforeTheFirstRelease(t *testing.T) {
	c := New(1<<20, nil, slog.New(slog.DiscardHandler))
	var times, release atomic.Int64
	for range 2 {
		if _, err := c.Get(t.Context(), tools, making(&times, &release)); err != nil {
			t.Fatal(err)
		}
	}
	c.Publish(1)
	release.Store(1)
	if got, _ := c.Get(t.Context(), tools, making(&times, &release)); times.Load() != 3 || body(got) != "release 1" {
		t.Errorf("worked out %d times: %s", times.Load(), body(got))
	}
}

func TestWeight(t *testing.T) {
	c := newCache()
	large := strings.Repeat("x", 20_000)
	for i := range 500 {
		work := func(context.Context) (*Entry, int, error) { return NewEntry([]byte(large), nil), 1, nil }
		if _, err := c.Get(t.Context(), Question{Operation: "tools", Variables: fmt.Sprint(i)}, work); err != nil {
			t.Fatal(err)
		}
	}
	c.items.CleanUp()
	if w := c.Weight(); w > 1<<20 || w < 1<<19 {
		t.Errorf("%d bytes are kept", w)
	}
}
