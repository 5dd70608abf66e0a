package lookup

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"palmares/internal/core/cache"
	"palmares/internal/dev/check"
)

var errDown = errors.New("the database is down")

// database is what a table reads. All of it may be changed between reads.
type database struct {
	*Table[string]
	values map[string]string
	fault  error
	delay  time.Duration
	reads  atomic.Int64
	during func() // called by reads
}

func newDatabase(size int64) *database {
	d := &database{values: map[string]string{"a": "1"}, during: func() {}}
	d.Table = New(cache.New(size, nil, slog.New(slog.DiscardHandler)), "test", func(ctx context.Context, id, _ string) (string, int, error) {
		d.reads.Add(1)
		value, found := d.values[id]
		d.during()
		select {
		case <-ctx.Done():
			return "", 0, ctx.Err()
		case <-time.After(d.delay):
		}
		switch {
		case d.fault != nil:
			return "", 0, d.fault
		case !found:
			return "", 0, ErrNotFound
		}
		return value, 100, nil
	})
	return d
}

// want checks the value of an id and how many reads it took.
func (d *database) want(t *testing.T, id, want string, wantErr error, reads int64) {
	t.Helper()
	d.reads.Store(0)
	got, err := d.GetFresh(t.Context(), id)
	check.Equal(t, got, want, id)
	check.Is(t, err, wantErr, id)
	check.Equal(t, d.reads.Load(), reads, id)
}

func TestValuesSurviveOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDatabase(1 << 20)
		d.want(t, "a", "1", nil, 1)
		d.want(t, "a", "1", nil, 0)
		time.Sleep(FreshFor)
		d.values["a"] = "2"
		d.want(t, "a", "2", nil, 1)

		for name, outage := range map[string]func(){
			"down": func() { d.fault = errDown }, "frozen": func() { d.delay = time.Hour }, "broken": func() { d.during = func() { panic("test") } },
		} {
			outage()
			time.Sleep(FreshFor)
			d.want(t, "a", "2", nil, 1)
			d.want(t, "a", "2", nil, 0) // no other read at once
			got, err := d.GetFresh(t.Context(), name)
			check.Fails(t, err, "unknown while %s: %q", name, got)
			check.True(t, !errors.Is(err, ErrNotFound), "unknown while %s: got %q, %v, want an error", name, got, err)
			d.fault, d.delay, d.during = nil, 0, func() {}
		}
		delete(d.values, "a")
		time.Sleep(FreshFor)
		d.want(t, "a", "", ErrNotFound, 1)
		d.fault = errDown
		time.Sleep(FreshFor)
		d.want(t, "a", "", errDown, 1) // nothing that was deleted before the outage
	})
}

func TestMissingValues(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDatabase(1 << 20)
		d.want(t, "b", "", ErrNotFound, 1)
		d.want(t, "b", "", ErrNotFound, 1)
		d.CacheMissing()
		d.want(t, "b", "", ErrNotFound, 1)
		d.want(t, "b", "", ErrNotFound, 0)
		d.values["b"] = "1"
		d.want(t, "b", "", ErrNotFound, 0)
		time.Sleep(FreshFor)
		d.want(t, "b", "1", nil, 1)
		got, err := d.Get(cache.WithCachedOnly(t.Context()), "c")
		check.Is(t, err, ErrNotFound, "cached only: %q", got)
		check.Equal(t, d.reads.Load(), 1, "cached only: %q", got)
	})
}

// Values in constant use are read again without waiting.
func TestBackgroundRefresh(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDatabase(1 << 20)
		d.want(t, "a", "1", nil, 1)
		time.Sleep(FreshFor)
		d.values["a"], d.delay = "2", time.Millisecond
		d.reads.Store(0)
		for range 10 {
			got, err := d.Get(t.Context(), "a")
			check.Equal(t, got, "1")
			check.Equal(t, err, nil)
		}
		time.Sleep(2 * d.delay)
		got, err := d.Get(t.Context(), "a")
		check.Equal(t, got, "2")
		check.OK(t, err)
		check.Equal(t, d.reads.Load(), 1)
		d.values["a"] = "3"
		time.Sleep(2 * time.Second) // every server must refuse a revoked key then
		got, err = d.Get(t.Context(), "a")
		check.Equal(t, got, "3", "after 2 s")
		check.OK(t, err)
	})
}

// Concurrent requests share a read, which goes on if the first is canceled.
func TestSharedReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDatabase(1 << 20)
		d.delay = 100 * time.Millisecond
		canceled, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		for i := range 10 {
			ctx := t.Context()
			if i == 0 {
				ctx = canceled
			}
			all.Go(func() {
				got, err := d.Get(ctx, "a")
				check.Equal(t, got, "1")
				check.Equal(t, err, nil)
			})
			synctest.Wait()
		}
		cancel()
		all.Wait()
		check.Equal(t, d.reads.Load(), 1, "reads")
	})
}

func TestForget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDatabase(1 << 20)
		d.values["b"] = "1"
		d.want(t, "a", "1", nil, 1)
		d.want(t, "b", "1", nil, 1)
		d.values["b"] = "2"
		d.want(t, "b", "1", nil, 0)
		d.Forget(func(value string) bool { return value == "2" })
		d.want(t, "b", "1", nil, 0)
		d.Forget(func(value string) bool { return value == "1" })
		d.want(t, "b", "2", nil, 1)
		// A value that was read before a change is not stored after it.
		d.values["d"] = "old"
		d.during = func() { d.Forget(func(string) bool { return false }) }
		d.want(t, "d", "old", nil, 1)
		d.during = func() {}
		d.values["d"] = "new"
		d.want(t, "d", "new", nil, 1)
	})
}

// A value from the time before a change of the clock is not fresh for years.
func TestClockSetBack(t *testing.T) {
	d := newDatabase(1 << 20)
	now := time.Now()
	d.Now = func() time.Time { return now }
	d.want(t, "a", "1", nil, 1)
	now = now.Add(-time.Hour)
	d.want(t, "a", "1", nil, 1)
}

// Ids without a value do not evict others, and take a limited amount of memory.
func TestMissingValuesDoNotEvictOthers(t *testing.T) {
	d := newDatabase(1 << 20)
	d.CacheMissing()
	now := time.Now()
	d.Now = func() time.Time { return now }
	d.want(t, "a", "1", nil, 1)
	const ids = 20_000
	for range 2 {
		d.reads.Store(0)
		for i := range ids {
			_, err := d.Get(t.Context(), fmt.Sprint("missing ", i))
			check.MustTrue(t, errors.Is(err, ErrNotFound), "got %v", err)
		}
		n := d.reads.Load()
		check.True(t, n >= ids/2, "got %d reads of %d ids, want most of them evicted before", n, ids)
	}
	d.want(t, "a", "1", nil, 0)
}
