package main

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"time"

	"palmares/auth"
	"palmares/graph"
	"palmares/internal/core/cache"
	"palmares/internal/core/store"
	"palmares/internal/dev/load"
	"palmares/internal/dev/testkit/wait"
)

const (
	cheapCost  = 1_000 // queries of up to this cost have a goal of their own
	cheapGoal  = 100 * time.Millisecond
	anyGoal    = 1500 * time.Millisecond
	worstShown = 5
	// A query that takes longer than this is measured three times. The minimum
	// excludes garbage collections of earlier queries.
	suspicious = 30 * time.Millisecond
	// Below this, the CPU time per unit of cost is meaningless: every query
	// takes a fraction of a millisecond.
	noticeable = 10 * time.Millisecond
)

// measuredQuery is a query with its cost and CPU time.
type measuredQuery struct {
	text string
	cost int
	cpu  time.Duration
	own  time.Duration // the part of this process, which stands for the server
}

func (q measuredQuery) perUnit() time.Duration { return q.cpu / time.Duration(max(q.cost, 1)) }

// prices measures the CPU time of thousands of generated queries, uncached, in
// relation to their cost. BENCH_QUERIES is their number for each catalog (3000),
// BENCH_SEED makes others (1), and BENCH_TOOLS limits it to one size of catalog.
func (b *bench) prices(ctx context.Context) error {
	ctx = auth.WithCaller(ctx, auth.Caller{Plan: auth.Pro})
	var settings [3]int
	for i, s := range []struct{ name, value string }{{"BENCH_QUERIES", "3000"}, {"BENCH_SEED", "1"}, {"BENCH_TOOLS", "0"}} {
		n, err := strconv.Atoi(cmp.Or(os.Getenv(s.name), s.value))
		if err != nil {
			return fmt.Errorf("%s must be an integer", s.name)
		}
		settings[i] = n
	}
	count, seed, only := settings[0], settings[1], settings[2]
	for _, tools := range []int{5_000, 100_000} {
		for _, kind := range kinds {
			if only != 0 && only != tools {
				continue
			}
			progress("%s, prices in a catalog of %d tools", kind, tools)
			db, err := b.newDatabase(ctx, kind)
			if err != nil {
				return err
			}
			if _, err := b.importFeed(db, tools); err != nil {
				return err
			}
			queries, rejected, err := measurePrices(ctx, db, tools, count, uint64(seed))
			if err != nil {
				return err
			}
			if err := printPrices(kind, tools, queries, rejected); err != nil {
				return err
			}
		}
	}
	return nil
}

func measurePrices(ctx context.Context, db database, tools, count int, seed uint64) (queries []measuredQuery, rejected int, err error) {
	s, err := store.Open(ctx, db.Config)
	if err != nil {
		return nil, 0, err
	}
	defer s.Close()
	m := &meter{cache: cache.New(16*megabyte, nil, slog.New(slog.DiscardHandler))}
	if db.DatabaseURL != "" {
		if m.postgres, err = openPostgres(ctx, db.DatabaseURL); err != nil {
			return nil, 0, err
		}
		defer m.postgres.Close()
	}
	limits := graph.DefaultLimits
	limits.Time = time.Minute // to measure slow queries to their end
	m.executor = graph.NewExecutor(graph.Config{Catalog: s, Limits: limits, Cache: m.cache, Log: slog.New(slog.DiscardHandler), Tools: func() int { return tools }})
	generator, err := newQueryGenerator(ctx, s, rand.New(rand.NewPCG(seed, uint64(tools))))
	if err != nil {
		return nil, 0, err
	}
	for len(queries) < count {
		text := generator.next()
		q, err := m.measure(ctx, text)
		if errors.Is(err, errRejected) {
			rejected++
			continue
		}
		for range 2 {
			if err != nil || q.cpu < suspicious && (q.cpu < noticeable || q.perUnit() < cheapGoal/cheapCost) {
				break
			}
			var again measuredQuery
			if again, err = m.measure(ctx, text); again.cpu < q.cpu {
				q = again
			}
		}
		if err != nil {
			return nil, 0, fmt.Errorf("%w\n%s", err, text)
		}
		queries = append(queries, q)
	}
	return queries, rejected, nil
}

var errRejected = errors.New("the query is rejected")

// meter measures the CPU time of this process, and that of the PostgreSQL
// backends of its database.
type meter struct {
	executor *graph.Executor
	cache    *cache.Cache
	postgres *sql.DB // nil with SQLite
}

func (m *meter) measure(ctx context.Context, text string) (q measuredQuery, err error) {
	m.cache.Restart(0) // so that counts are not cached either
	backends, err := m.backendTime(ctx)
	if err != nil {
		return q, err
	}
	own := wait.CPU()
	result := m.executor.Execute(ctx, graph.Request{Query: text})
	q = measuredQuery{text: text, cost: result.Cost, own: wait.CPU() - own}
	after, err := m.backendTime(ctx)
	if err != nil {
		return q, err
	}
	q.cpu = q.own + after - backends
	if p := result.Problem(); p != nil {
		switch p.Code {
		case "RESPONSE_TOO_LARGE":
		case "QUERY_TOO_COMPLEX", "BAD_USER_INPUT":
			return q, errRejected
		default:
			return q, fmt.Errorf("%s: %s", p.Code, p.Message)
		}
	}
	return q, nil
}

// backendTime adds up the CPU time of the database's backends, except for our
// own.
func (m *meter) backendTime(ctx context.Context) (sum time.Duration, err error) {
	if m.postgres == nil {
		return 0, nil
	}
	rows, err := m.postgres.QueryContext(ctx, "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()")
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
			continue // it has ended
		}
		var nanoseconds int64
		if _, err := fmt.Sscan(string(text), &nanoseconds); err != nil {
			return 0, err
		}
		sum += time.Duration(nanoseconds)
	}
	return sum, rows.Err()
}

// openPostgres turns off parallel workers, which have ended before their CPU
// time can be read, and JIT compilation, and vacuums like PostgreSQL does in
// time.
func openPostgres(ctx context.Context, url string) (*sql.DB, error) {
	db, err := sql.Open("postgres", url)
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	for _, statement := range []string{
		"DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET max_parallel_workers_per_gather = 0', current_database()); END $$",
		"DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET jit = off', current_database()); END $$",
		"VACUUM ANALYZE",
	} {
		if _, err := db.ExecContext(ctx, statement); err != nil {
			return nil, errors.Join(err, db.Close())
		}
	}
	return db, nil
}

func printPrices(kind string, tools int, queries []measuredQuery, rejected int) error {
	var total time.Duration
	for _, q := range queries {
		total += q.cpu
	}
	sorted := func(by func(measuredQuery) time.Duration, keep func(measuredQuery) bool) []measuredQuery {
		some := slices.DeleteFunc(slices.Clone(queries), func(q measuredQuery) bool { return !keep(q) })
		slices.SortFunc(some, func(a, b measuredQuery) int { return cmp.Compare(by(b), by(a)) })
		return some[:min(worstShown, len(some))]
	}
	cpu := func(q measuredQuery) time.Duration { return q.cpu }
	fmt.Printf("%s, %d tools: %d queries accepted, %d rejected, %s of CPU time on average\n\n", kind, tools,
		len(queries), rejected, (total / time.Duration(max(len(queries), 1))).Round(10*time.Microsecond))
	table := load.NewTable("worst", "goal", "CPU", "of which ours", "cost", "per unit of cost", "query")
	for _, part := range []struct {
		name, goal string
		queries    []measuredQuery
	}{
		{fmt.Sprintf("of cost up to %d", cheapCost), cheapGoal.String(), sorted(cpu, func(q measuredQuery) bool { return q.cost <= cheapCost })},
		{"of all", anyGoal.String(), sorted(cpu, func(measuredQuery) bool { return true })},
		{"for its cost", "", sorted(measuredQuery.perUnit, func(q measuredQuery) bool { return q.cpu >= noticeable })},
	} {
		for _, q := range part.queries {
			table.Add(part.name, part.goal, q.cpu.Round(100*time.Microsecond), q.own.Round(100*time.Microsecond), q.cost, q.perUnit().Round(time.Microsecond), fmt.Sprintf("`%.400s`", q.text))
		}
	}
	return table.Print(os.Stdout)
}
