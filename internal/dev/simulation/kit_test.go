// Package simulation runs the parts of the service that depend on time against a
// clock, a database, a Redis and webhook receivers that are all in this process. A
// seed determines what happens in a simulated hour, so a failure can be replayed.
package simulation

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"entgo.io/ent/dialect"
	entsql "entgo.io/ent/dialect/sql"

	"palmares/ent"
	"palmares/internal/core/store"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
)

const (
	fewSeeds  = 2
	manySeeds = 1_000
	// length is how much time a seed simulates.
	length = time.Hour
)

// parts are simulated apart from each other.
var parts = []struct {
	name string
	run  func(*world)
}{
	{"quotas", simulateQuotas},
	{"webhooks", simulateWebhooks},
}

func TestSimulation(t *testing.T) { simulate(t, fewSeeds) }
func TestSimulationWithManySeeds(t *testing.T) {
	testkit.FullTier(t, "it simulates many hours")
	simulate(t, manySeeds)
}

// simulate runs the seeds from 1, or the one in the variable SEED.
func simulate(t *testing.T, seeds uint64) {
	testkit.Open(t, testkit.SQLite(t)) // migrated once, and copied for each seed
	percent := debug.SetGCPercent(400) // most garbage is that of short queries
	t.Cleanup(func() { debug.SetGCPercent(percent) })
	first, last := uint64(1), seeds
	if seed, ok := testkit.GivenSeed(t); ok {
		first, last = seed, seed
	}
	for _, part := range parts {
		t.Run(part.name, func(t *testing.T) {
			t.Parallel()
			for seed := first; seed <= last && !t.Failed(); seed++ {
				w := runSeed(t, seed, part.run)
				if first == last {
					t.Log("\n" + w.events.String())
				}
			}
		})
	}
}

// A seed can be replayed: it determines what happens, and when. Because the delays of
// webhook retries are random, one of two runs may end a step earlier.
func TestReplay(t *testing.T) {
	const seed = 1
	for _, part := range parts {
		first, second := runSeed(t, seed, part.run).plan.String(), runSeed(t, seed, part.run).plan.String()
		check.True(t, first != "" && (strings.HasPrefix(first, second) || strings.HasPrefix(second, first)), "%s: got two plans for one seed:\n%s\n%s", part.name, first, second)
	}
}

func runSeed(t *testing.T, seed uint64, run func(*world)) (w *world) {
	t.Run(fmt.Sprint(seed), func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w = &world{T: t, Rand: rand.New(rand.NewPCG(seed, 0)), seed: seed}
			// Every other hour has a midnight.
			start := w.upTo(20 * time.Hour)
			if seed%2 == 0 {
				start = 24*time.Hour - w.upTo(length)
			}
			time.Sleep(400*24*time.Hour + start)
			run(w)
			time.Sleep(time.Minute) // whatever still runs must end
		})
	})
	return w
}

// world is where one part of one seed happens. Only the goroutine that directs it
// draws random numbers.
type world struct {
	*testing.T
	*rand.Rand
	seed  uint64
	start time.Time // of the hour

	mu     sync.Mutex
	plan   strings.Builder // what the seed determines
	events strings.Builder // the plan, and what came of it
}

// begin starts the hour, after the preparations.
func (w *world) begin() { w.start = time.Now() }

func (w *world) left() time.Duration { return time.Until(w.start.Add(length)) }

// upTo returns a random time.
func (w *world) upTo(most time.Duration) time.Duration { return time.Duration(w.Int64N(int64(most))) }

func (w *world) oneIn(n int) bool { return w.IntN(n) == 0 }

// planned records a decision of the seed.
func (w *world) planned(format string, args ...any) {
	line := fmt.Sprintf(format, args...)
	w.mu.Lock()
	fmt.Fprintln(&w.plan, line)
	w.mu.Unlock()
	w.happened("%s", line)
}

// happened records an event.
func (w *world) happened(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	fmt.Fprintf(&w.events, "%s %s\n", time.Now().Format("15:04:05.000"), fmt.Sprintf(format, args...))
}

// violated reports that an invariant does not hold.
func (w *world) violated(format string, args ...any) {
	w.happened("VIOLATION: "+format, args...)
	w.Errorf(format+" (at %s; replay with make simulate SEED=%d)", append(args, time.Now().Format(time.StampMilli), w.seed)...)
}

func (w *world) check(err error) {
	w.Helper()
	if err != nil {
		w.Fatalf("%v (replay with make simulate SEED=%d)", err, w.seed)
	}
}

// Log discards what the service logs: faults are part of the plan.
var discard = slog.New(slog.DiscardHandler)

// machine runs one start of a server. Whatever it does has its context, so that
// it can be cut off from the world like a process that was killed.
type machine struct {
	name string
	context.Context
	cancel context.CancelFunc

	dead        atomic.Bool
	storeDown   atomic.Bool
	loseCommits atomic.Int32 // how many commits take effect without a response
}

type machineKey struct{}

func newMachine(name string) *machine {
	m := &machine{name: name}
	m.Context, m.cancel = context.WithCancel(context.WithValue(context.Background(), machineKey{}, m))
	return m
}

// kill ends a machine without a chance to write, send or receive anything.
func (m *machine) kill() {
	m.dead.Store(true)
	m.cancel()
}

// openStore opens a database in memory whose statements fail when those of a machine
// have to.
func (w *world) openStore() *store.Store {
	parent := "/dev/shm" // in memory
	if _, err := os.Stat(parent); err != nil {
		parent = ""
	}
	dir, err := os.MkdirTemp(parent, "simulation")
	w.check(err)
	w.Cleanup(func() { _ = os.RemoveAll(dir) })
	s := testkit.Open(w, store.Config{DataDir: dir})
	for name, client := range map[string]**ent.Client{"reader": &s.Read, "writer": &s.Write, "keys": &s.Keys} {
		*client = ent.NewClient(ent.Driver(faultyDriver{entsql.OpenDB(s.Dialect(), s.Pools()[name])}))
	}
	return s
}

// fault returns the error of a statement.
func fault(ctx context.Context) error {
	if m, ok := ctx.Value(machineKey{}).(*machine); ok && (m.dead.Load() || m.storeDown.Load()) {
		return driver.ErrBadConn
	}
	return ctx.Err()
}

// faultyDriver is ent's driver, with faults.
type faultyDriver struct{ *entsql.Driver }

func (d faultyDriver) Exec(ctx context.Context, query string, args, v any) error {
	if err := fault(ctx); err != nil {
		return err
	}
	return d.Driver.Exec(ctx, query, args, v)
}

func (d faultyDriver) Query(ctx context.Context, query string, args, v any) error {
	if err := fault(ctx); err != nil {
		return err
	}
	return d.Driver.Query(ctx, query, args, v)
}

func (d faultyDriver) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	if err := fault(ctx); err != nil {
		return nil, err
	}
	return d.Driver.QueryContext(ctx, query, args...)
}

func (d faultyDriver) Tx(ctx context.Context) (dialect.Tx, error) { return d.BeginTx(ctx, nil) }

func (d faultyDriver) BeginTx(ctx context.Context, opts *sql.TxOptions) (dialect.Tx, error) {
	if err := fault(ctx); err != nil {
		return nil, err
	}
	tx, err := d.Driver.BeginTx(ctx, opts)
	if err != nil {
		return nil, err
	}
	return faultyTx{tx.(*entsql.Tx), ctx}, nil
}

type faultyTx struct {
	*entsql.Tx
	ctx context.Context
}

func (t faultyTx) Commit() error {
	if err := fault(t.ctx); err != nil {
		_ = t.Tx.Rollback()
		return err
	}
	err := t.Tx.Commit()
	if m, ok := t.ctx.Value(machineKey{}).(*machine); ok && err == nil && m.loseCommits.Load() > 0 {
		m.loseCommits.Add(-1)
		return driver.ErrBadConn
	}
	return err
}
