package cache

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"palmares/internal/core/problem"
	"palmares/internal/dev/check"
)

type callerKey struct{}

// A new release is served immediately, with the most requested responses
// already cached.
func TestNewRelease(t *testing.T) {
	c := newCache()
	var times, release atomic.Int64
	release.Store(1)
	for i := range 10 {
		q := Key{Operation: "tools", Variables: fmt.Sprint(i)}
		for range 1 + 10*i {
			check.Try(c.Get(t.Context(), q, executing(&times, &release))).OK(t)
		}
	}
	check.Must(t, times.Load(), 10, "executions")
	release.Store(2)
	c.renewLimit = 3
	check.OK(t, c.Renew(2))
	check.Equal(t, times.Load(), 13, "renewed responses: %d", times.Load()-10)
	for i := range 10 {
		got := check.Try(c.Get(t.Context(), Key{Operation: "tools", Variables: fmt.Sprint(i)}, executing(&times, &release))).OK(t, "query %d", i)
		check.Equal(t, body(got), "release 2", "query %d", i)
	}
	check.Equal(t, times.Load(), 20, "more executions: %d", times.Load()-13)
	// A response that started on an old release does not bring it back.
	c.Publish(1)
	check.Equal(t, c.Newest(), 2, "release")
	for key := range c.items.All() {
		check.Equal(t, key.edition.release(), 2, "cached response of release")
	}
}

// Once any request sees a newer release, the old one is no longer served.
func TestMissFindsNewRelease(t *testing.T) {
	c := newCache()
	var times, release atomic.Int64
	release.Store(1)
	check.Try(c.Get(t.Context(), tools, executing(&times, &release))).OK(t)
	release.Store(2)
	check.Try(c.Get(t.Context(), Key{Operation: "stats"}, executing(&times, &release))).OK(t)
	got, _ := c.Get(t.Context(), tools, executing(&times, &release))
	check.Equal(t, body(got), "release 2")
}

// A "not found" response from a newer release also retires the old one.
func TestNotFoundInNewRelease(t *testing.T) {
	c := newCache()
	var times, release atomic.Int64
	release.Store(1)
	check.Try(c.Get(t.Context(), tools, executing(&times, &release))).OK(t)
	release.Store(2)
	missing := func(context.Context) (*Entry, int, error) { return nil, 2, problem.New(problem.NotFound, "missing") }
	_, err := c.Get(t.Context(), Key{Operation: "tool"}, missing)
	check.Equal(t, problem.Of(err).Code, problem.NotFound)
	got := check.Try(c.Get(t.Context(), tools, executing(&times, &release))).OK(t)
	check.Equal(t, body(got), "release 2")
}

// Responses are renewed without the permissions of the caller who saw the
// release first.
func TestRenewedWithoutACaller(t *testing.T) {
	c := newCache()
	release, named := 1, false
	work := func(ctx context.Context) (*Entry, int, error) {
		named = named || release == 2 && ctx.Value(callerKey{}) != nil
		return NewEntry([]byte("x"), nil), release, nil
	}
	check.Try(c.Get(t.Context(), tools, work)).OK(t)
	release = 2
	caller := context.WithValue(t.Context(), callerKey{}, "somebody")
	other := func(context.Context) (*Entry, int, error) { return NewEntry([]byte("y"), nil), 2, nil }
	check.Try(c.Get(caller, Key{Operation: "stats"}, other)).OK(t)
	check.Equal(t, named, false)
	check.Equal(t, c.Newest(), 2)
}

// If the database fails when a release is published, cached responses are still
// served, no matter how the release was detected.
func TestDatabaseFailsDuringRenewal(t *testing.T) {
	c := newCache()
	var release atomic.Int64
	var down atomic.Bool
	work := func(context.Context) (*Entry, int, error) {
		if down.Load() {
			return nil, 0, problem.New(problem.Unavailable, "down")
		}
		return NewEntry([]byte(fmt.Sprint("release ", release.Load())), nil), int(release.Load()), nil
	}
	wantCached := func(want string) {
		t.Helper()
		if got, err := c.Get(t.Context(), tools, work); err != nil || body(got) != want {
			t.Errorf("got %s and %v, want %s", body(got), err, want)
		}
	}
	release.Store(1)
	wantCached("release 1")

	down.Store(true)
	release.Store(2)
	check.Fails(t, c.Renew(2))
	check.Equal(t, c.Newest(), 1)
	wantCached("release 1")
	// One query of the new release still succeeds.
	succeeds := func(context.Context) (*Entry, int, error) { return NewEntry([]byte("release 2"), nil), 2, nil }
	check.Try(c.Get(t.Context(), Key{Operation: "stats"}, succeeds)).Fails(t)
	wantCached("release 1")

	down.Store(false)
	check.Equal(t, c.Renew(2), nil)
	wantCached("release 2")
}

// A slow response does not delay a release if other responses show that the
// database works.
func TestSlowResponseDoesNotDelayTheRelease(t *testing.T) {
	c := newCache()
	var release atomic.Int64
	release.Store(1)
	hang := make(chan struct{})
	defer close(hang)
	for name, work := range map[string]func() error{
		"hangs":     func() error { <-hang; return nil },
		"times out": func() error { return problem.New(problem.Timeout, "slow") },
		"responds":  func() error { return nil },
	} {
		check.Try(c.Get(t.Context(), Key{Operation: name}, func(context.Context) (*Entry, int, error) {
			if release.Load() > 1 {
				if err := work(); err != nil {
					return nil, 0, err
				}
			}
			return NewEntry([]byte("x"), nil), int(release.Load()), nil
		})).OK(t)
	}
	release.Store(2)
	check.OK(t, c.Renew(2))
	check.Equal(t, c.Newest(), 2)
}

// When release numbers are reused, no response that was cached before is served.
func TestReleaseNumbersRestart(t *testing.T) {
	c := newCache()
	var times, release atomic.Int64
	release.Store(5)
	check.Try(c.Get(t.Context(), tools, executing(&times, &release))).OK(t)
	release.Store(2)
	c.Restart(2)
	for range 2 {
		got := check.Try(c.Get(t.Context(), tools, executing(&times, &release))).OK(t)
		check.Equal(t, body(got), "release 2")
	}
	check.Equal(t, times.Load(), 2, "executions")
}

// A query that was executing when a backup was restored is not mistaken for a
// newer one.
func TestExecutionEndsAfterRestart(t *testing.T) {
	c := newCache()
	c.Publish(7)
	started, proceed, landed := make(chan struct{}), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(landed)
		_, _ = c.Get(t.Context(), tools, func(context.Context) (*Entry, int, error) {
			close(started)
			<-proceed
			return NewEntry([]byte("old"), nil), 7, nil
		})
	}()
	<-started
	c.Restart(5)
	close(proceed)
	<-landed
	for _, release := range []int{5, 7} { // release 7 is published again
		c.Publish(release)
		work := func(context.Context) (*Entry, int, error) {
			return NewEntry([]byte(fmt.Sprint("new ", release)), nil), release, nil
		}
		if got, err := c.Get(t.Context(), tools, work); err != nil || body(got) != fmt.Sprint("new ", release) || c.Newest() != release {
			t.Errorf("got %s of release %d and %v, want new %[4]d of release %[4]d", body(got), c.Newest(), err, release)
		}
	}
}

// Only requests that count against a quota decide what is renewed: nobody can replace
// popular responses for free.
func TestOnlyCountedRequestsSteerRenewal(t *testing.T) {
	c := newCache()
	var times, release atomic.Int64
	release.Store(1)
	request := func(variables string, counted bool, headers ...string) {
		t.Helper()
		response := check.Try(c.Get(t.Context(), Key{Operation: "tools", Variables: variables}, executing(&times, &release))).OK(t)
		var w http.ResponseWriter = httptest.NewRecorder()
		if counted {
			w = wrapped{&executions{ResponseWriter: w}}
		}
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		if len(headers) > 0 {
			r.Header.Set("If-None-Match", headers[0])
		}
		check.OK(t, response.Write(w, r))
	}
	for range 3 {
		request("popular", true)
	}
	for range 100 {
		request("page", false)
		request("free", true, `"unknown"`)
	}
	c.renewLimit = 1
	found := c.mostRequested()
	check.Must(t, len(found), 1, "%+v", found)
	check.Equal(t, found[0].query.Variables, "popular")
}

// Renewals leave processors to requests: only some run at the same time.
func TestRenewalsAtTheSameTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCache()
		var release, running, most atomic.Int64
		release.Store(1)
		for i := range 3 * renewers {
			check.Try(c.Get(t.Context(), Key{Operation: "tools", Variables: fmt.Sprint(i)}, func(context.Context) (*Entry, int, error) {
				most.Store(max(most.Load(), running.Add(1)))
				time.Sleep(100 * time.Millisecond)
				running.Add(-1)
				return NewEntry([]byte("{}"), http.Header{}), int(release.Load()), nil
			})).OK(t)
		}
		check.Equal(t, most.Load(), 1, "requests one after the other")
		release.Store(2)
		check.OK(t, c.Renew(2))
		check.Equal(t, most.Load(), renewers)
	})
}
