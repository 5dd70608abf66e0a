package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"palmares/auth"
	"palmares/graph"
	"palmares/internal/core/cache"
	"palmares/internal/core/store"
	"palmares/internal/dev/testkit"
)

// The part about prices: thousands of generated queries, each executed cold,
// and the CPU time that each takes for its cost. The queries depend on the seed
// alone.
//
// BENCH_QUERIES is how many of them are measured on each catalog (3000),
// BENCH_SEED where they start (1), and BENCH_TOOLS the one size to measure. BENCH_KEEP names a folder for the catalogs:
// later runs find them there and, on PostgreSQL, in databases named after their
// size, and import nothing.

const (
	cheapCost  = 1_000 // what costs no more than this,
	cheapGoal  = 100 * time.Millisecond
	anyGoal    = 1500 * time.Millisecond
	worstShown = 5
	// suspicious is from where on a query is measured three times: the least of
	// them is without the garbage of those before.
	suspicious = 30 * time.Millisecond
	// noticeable is the CPU time from which the time per unit of cost is
	// meaningful: every query takes a fraction of a millisecond.
	noticeable = 10 * time.Millisecond
)

// priced is one query that was measured.
type priced struct {
	query string
	cost  int
	cpu   time.Duration // of both
	own   time.Duration // of this process, which is the server's part
}

func (p priced) perUnit() time.Duration { return p.cpu / time.Duration(max(p.cost, 1)) }

// priceList is what was measured on one catalog.
type priceList struct {
	database string
	tools    int
	refused  int
	queries  []priced
}

func (b *bench) prices(ctx context.Context) error {
	ctx = auth.WithCaller(ctx, auth.Caller{Plan: auth.Pro})
	count, err := numberFrom("BENCH_QUERIES", 3_000)
	if err != nil {
		return err
	}
	seed, err := numberFrom("BENCH_SEED", 1)
	if err != nil {
		return err
	}
	only, err := numberFrom("BENCH_TOOLS", 0)
	if err != nil {
		return err
	}
	for _, tools := range []int{5_000, 100_000} {
		if only != 0 && only != tools {
			continue
		}
		for _, database := range []string{"SQLite", "PostgreSQL"} {
			list := priceList{database: database, tools: tools}
			if err := b.measurePrices(ctx, &list, count, uint64(seed)); err != nil {
				return err
			}
			if err := list.print(os.Stdout); err != nil {
				return err
			}
		}
	}
	return nil
}

func numberFrom(name string, otherwise int) (int, error) {
	text := os.Getenv(name)
	if text == "" {
		return otherwise, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		return 0, fmt.Errorf("%s: %q is not a whole number", name, text)
	}
	return n, nil
}

func (b *bench) measurePrices(ctx context.Context, list *priceList, count int, seed uint64) error {
	cfg, drop, err := b.catalogOf(ctx, list.database, list.tools)
	if err != nil {
		return err
	}
	defer func() { _ = drop() }()
	fmt.Fprintf(os.Stderr, "%s, prices in a catalog of %d tools\n", list.database, list.tools)
	s, err := store.Open(ctx, cfg)
	if err != nil {
		return err
	}
	defer s.Close()
	clock := &cpuClock{}
	if cfg.DatabaseURL != "" {
		if clock.backends, err = sql.Open("postgres", cfg.DatabaseURL); err != nil {
			return err
		}
		defer clock.backends.Close()
		clock.backends.SetMaxOpenConns(1)
	}
	limits := graph.DefaultLimits
	limits.Time = time.Minute // to see how long the worst would take
	clock.cached = cache.New(16*megabyte, nil, slog.New(slog.DiscardHandler))
	e := graph.NewExecutor(graph.Config{Catalog: s, Limits: limits, Cache: clock.cached, Log: slog.New(slog.DiscardHandler), Tools: func() int { return list.tools }})
	generator, err := newQueryGenerator(ctx, s, rand.New(rand.NewPCG(seed, uint64(list.tools))))
	if err != nil {
		return err
	}
	for len(list.queries) < count {
		query := generator.next()
		p, err := clock.price(ctx, e, query)
		switch {
		case errors.Is(err, errRefused):
			list.refused++
			continue
		case err != nil:
			return fmt.Errorf("%w\n%s", err, query)
		}
		for range 2 {
			if p.cpu < suspicious && (p.cpu < noticeable || p.perUnit() < cheapGoal/cheapCost) {
				break
			}
			again, err := clock.price(ctx, e, query)
			if err != nil {
				return fmt.Errorf("%w\n%s", err, query)
			}
			if again.cpu < p.cpu {
				p = again
			}
		}
		list.queries = append(list.queries, p)
	}
	return nil
}

var errRefused = errors.New("the query is refused")

// cpuClock measures the CPU time of this process, which stands for the server,
// and that of the PostgreSQL backends that it is connected to.
type cpuClock struct {
	backends *sql.DB
	cached   *cache.Cache // of the server
}

func (c *cpuClock) price(ctx context.Context, e *graph.Executor, query string) (priced, error) {
	c.cached.Restart(0) // counts, too, are to be cold
	own, others, err := c.read(ctx)
	if err != nil {
		return priced{}, err
	}
	answer := e.Execute(ctx, graph.Request{Query: query})
	ownAfter, othersAfter, err := c.read(ctx)
	if err != nil {
		return priced{}, err
	}
	if problem := answer.Problem(); problem != nil && problem.Code != "RESPONSE_TOO_LARGE" {
		switch problem.Code {
		case "QUERY_TOO_COMPLEX", "BAD_USER_INPUT":
			return priced{}, errRefused
		}
		return priced{}, fmt.Errorf("%s: %s", problem.Code, problem.Message)
	}
	p := priced{query: query, cost: answer.Cost, own: ownAfter - own}
	p.cpu = p.own + othersAfter - others
	return p, nil
}

func (c *cpuClock) read(ctx context.Context) (own, others time.Duration, err error) {
	if c.backends != nil {
		if others, err = c.backendTime(ctx); err != nil {
			return 0, 0, err
		}
	}
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0, 0, err
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano()), others, nil
}

// backendTime adds up the time on a CPU of every backend of the database, but
// for the one that asks. There are no parallel workers: see withoutWorkers.
func (c *cpuClock) backendTime(ctx context.Context) (sum time.Duration, err error) {
	rows, err := c.backends.QueryContext(ctx,
		"SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()")
	if err != nil {
		return 0, err
	}
	defer rows.Close()
	for rows.Next() {
		var pid int
		if err := rows.Scan(&pid); err != nil {
			return 0, err
		}
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/schedstat", pid))
		if err != nil {
			continue // it ended
		}
		var nanoseconds int64
		if _, err := fmt.Sscan(string(text), &nanoseconds); err != nil {
			return 0, err
		}
		sum += time.Duration(nanoseconds)
	}
	return sum, rows.Err()
}

// catalogOf imports a catalog, or finds one that was kept.
func (b *bench) catalogOf(ctx context.Context, database string, tools int) (store.Config, func() error, error) {
	kept := os.Getenv("BENCH_KEEP")
	nothing := func() error { return nil }
	if database == "SQLite" {
		dir := filepath.Join(b.dir, fmt.Sprintf("prices-%d", tools))
		if kept != "" {
			dir = filepath.Join(kept, fmt.Sprintf("prices-%d", tools))
		}
		cfg := store.Config{DataDir: dir}
		if _, err := os.Stat(store.File(dir)); err == nil {
			return cfg, nothing, nil
		}
		return cfg, nothing, b.importPriced([]string{"PALMARES_DATA_DIR=" + dir}, tools)
	}
	address, drop, err := keptDatabase(ctx, kept, tools)
	if err != nil {
		return store.Config{}, nothing, err
	}
	db, err := sql.Open("postgres", address)
	if err != nil {
		return store.Config{}, drop, err
	}
	defer db.Close()
	var there sql.NullString
	if err := db.QueryRowContext(ctx, "SELECT to_regclass('releases')").Scan(&there); err != nil {
		return store.Config{}, drop, err
	}
	if !there.Valid {
		if err := b.importPriced([]string{"DATABASE_URL=" + address}, tools); err != nil {
			return store.Config{}, drop, err
		}
	}
	return store.Config{DatabaseURL: address}, drop, withoutWorkers(ctx, db)
}

func (b *bench) importPriced(env []string, tools int) error {
	fmt.Fprintf(os.Stderr, "importing %d tools\n", tools)
	if _, err := os.Stat(b.feed(tools)); err != nil {
		if err := b.generate(tools); err != nil {
			return err
		}
	}
	_, err := b.process(env, "import", b.feed(tools))
	return err
}

// keptDatabase is one of its own or, where catalogs are kept, of a fixed name.
func keptDatabase(ctx context.Context, kept string, tools int) (address string, drop func() error, err error) {
	if kept == "" {
		return testkit.Scratch(ctx)
	}
	server := os.Getenv("TEST_DATABASE_URL")
	name := fmt.Sprintf("prices_%d", tools)
	db, err := sql.Open("postgres", server)
	if err != nil {
		return "", nil, err
	}
	defer db.Close()
	if _, err := db.ExecContext(ctx, "CREATE DATABASE "+name); err != nil && !strings.Contains(err.Error(), "already exists") {
		return "", nil, err
	}
	place, query, _ := strings.Cut(server, "?")
	return place[:strings.LastIndex(place, "/")+1] + name + "?" + query, func() error { return nil }, nil
}

// withoutWorkers leaves a statement to its own backend, whose time can be
// read; workers are gone by then. It also vacuums, as PostgreSQL does in time.
func withoutWorkers(ctx context.Context, db *sql.DB) error {
	var name string
	if err := db.QueryRowContext(ctx, "SELECT current_database()").Scan(&name); err != nil {
		return err
	}
	for _, statement := range []string{
		`ALTER DATABASE "` + name + `" SET max_parallel_workers_per_gather = 0`,
		`ALTER DATABASE "` + name + `" SET jit = off`, // whose compiling is no work of the query
		"VACUUM ANALYZE",
	} {
		if _, err := db.ExecContext(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}

func (l *priceList) print(w io.Writer) error {
	var total time.Duration
	cheap := l.queries[:0:0]
	for _, p := range l.queries {
		total += p.cpu
		if p.cost <= cheapCost {
			cheap = append(cheap, p)
		}
	}
	byTime := func(a, b priced) int { return int(b.cpu - a.cpu) }
	byUnit := func(a, b priced) int { return int(b.perUnit() - a.perUnit()) }
	slices.SortFunc(cheap, byTime)
	worst := slices.SortedFunc(slices.Values(l.queries), byTime)
	dearest := slices.DeleteFunc(slices.SortedFunc(slices.Values(l.queries), byUnit), func(p priced) bool { return p.cpu < noticeable })
	measured := "CPU of the server's process"
	if l.database == "PostgreSQL" {
		measured = "CPU of the server's process and of its PostgreSQL backends, without parallel workers"
	}
	fmt.Fprintf(w, "\n%s, %d tools: %d queries accepted, %d refused, %s on average (%s)\n\n", l.database, l.tools,
		len(l.queries), l.refused, (total / time.Duration(max(len(l.queries), 1))).Round(10*time.Microsecond), measured)
	table := tabwriter.NewWriter(w, 0, 0, 1, ' ', 0)
	fmt.Fprintln(table, "| worst\t| goal\t| CPU\t| of which ours\t| cost\t| per unit of cost\t| query\t|")
	fmt.Fprintln(table, "|---\t|---\t|---\t|---\t|---\t|---\t|---\t|")
	for _, part := range []struct {
		what, goal string
		queries    []priced
	}{
		{fmt.Sprintf("of cost up to %d", cheapCost), cheapGoal.String(), cheap},
		{"of all", anyGoal.String(), worst},
		{"for its cost", "", dearest},
	} {
		for _, p := range part.queries[:min(worstShown, len(part.queries))] {
			fmt.Fprintf(table, "| %s\t| %s\t| %s\t| %s\t| %d\t| %s\t| `%s`\t|\n", part.what, part.goal,
				p.cpu.Round(100*time.Microsecond), p.own.Round(100*time.Microsecond), p.cost, p.perUnit().Round(time.Microsecond), shortened(p.query))
		}
	}
	return table.Flush()
}

func shortened(query string) string {
	const most = 400
	if full := os.Getenv("BENCH_FULL"); full == "" && len(query) > most {
		return query[:most] + "…"
	}
	return query
}
