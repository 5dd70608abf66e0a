package main

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"palmares/auth"
	"palmares/graph"
	"palmares/graph/graphtest"
	"palmares/internal/catalog/feed/synth"
	"palmares/internal/core/cache"
	"palmares/internal/core/store"
	"palmares/internal/dev/check"
	"palmares/internal/dev/load"
	"palmares/internal/dev/testkit"
	"palmares/internal/dev/testkit/blackbox"
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
	// costReleases is the number of releases of the catalog, each of which
	// changes one tool in twenty.
	costReleases = 11
	unitGoal     = 150 * time.Microsecond // of the server, per unit of cost
)

// measuredQuery is a query with its cost and CPU time.
type measuredQuery struct {
	text string
	cost int
	cpu  time.Duration
	own  time.Duration // the part of this process, which stands for the server
}

func (q measuredQuery) perUnit() time.Duration { return q.cpu / time.Duration(max(q.cost, 1)) }

// costs measures the CPU time of thousands of generated queries, uncached, in
// relation to their cost. BENCH_QUERIES is their number for each catalog (3000),
// BENCH_SEED (1) selects different ones, and BENCH_TOOLS selects one catalog size.
func costs(t testing.TB) {
	setting := func(name, value string) int {
		n, err := strconv.Atoi(cmp.Or(os.Getenv(name), value))
		if err != nil {
			t.Fatalf("%s must be an integer (got %q)", name, os.Getenv(name))
		}
		return n
	}
	count, seed, only := setting("BENCH_QUERIES", "3000"), setting("BENCH_SEED", "1"), setting("BENCH_TOOLS", "0")
	for _, tools := range []int{5_000, 100_000} {
		for _, kind := range kinds {
			if only == 0 || only == tools {
				progress("%s, costs in a catalog of %d tools", kind, tools)
				cfg := newCatalog(t, kind, tools)
				for revision := 1; revision < costReleases; revision++ {
					importFeed(t, cfg, blackbox.SynthFile(t, synth.Options{Tools: tools, Seed: 1, Revision: revision}))
				}
				queries, rejected := measureCosts(t, cfg, tools, count, uint64(seed))
				printCosts(kind, tools, queries, rejected)
			}
		}
	}
}

func measureCosts(t testing.TB, cfg store.Config, tools, count int, seed uint64) (queries []measuredQuery, rejected int) {
	ctx := auth.WithCaller(t.Context(), auth.Caller{Plan: auth.Pro})
	s := testkit.Open(t, cfg)
	m := &meter{t: t, cache: cache.New(16*megabyte, nil, slog.New(slog.DiscardHandler))}
	if cfg.DatabaseURL != "" {
		m.postgres = openPostgres(t, cfg.DatabaseURL)
	}
	limits := graph.DefaultLimits
	limits.Time = time.Minute // to measure slow queries to their end
	m.executor = graphtest.New(graph.Config{Catalog: s, Limits: limits, Cache: m.cache, Tools: func() int { return tools }})
	generator := newQueryGenerator(t, s, rand.New(rand.NewPCG(seed, uint64(tools))))
	expensive := expensiveQueries()
	for len(queries) < count+len(expensive) {
		text := ""
		if len(queries) < len(expensive) {
			text = expensive[len(queries)]
		} else {
			text = generator.next()
		}
		q, accepted := m.measure(ctx, text)
		if !accepted {
			rejected++
			continue
		}
		for range 2 {
			if strings.Contains(text, "@asOf") {
				break // the release is in memory now
			}
			if q.cpu < suspicious && (q.cpu < noticeable || q.perUnit() < cheapGoal/cheapCost) {
				break
			}
			if again, _ := m.measure(ctx, q.text); again.cpu < q.cpu {
				q = again
			}
		}
		queries = append(queries, q)
	}
	return queries, rejected
}

// expensiveQueries are those that a caller would choose to keep the server busy: the
// searches that match most, alone and together, and earlier releases. Only one of these
// fits into the budget, so each has to be derived again.
func expensiveQueries() (queries []string) {
	together := ""
	for i, letter := range strings.Split("a e i o s n r t l u c d m p g b f h v q j", " ") {
		list := fmt.Sprintf(`s%d: tools(limit: 1, filter: {search: %q}) {items {slug}} `, i, letter)
		queries = append(queries, "{"+list+"}")
		together += list
	}
	queries = append(queries, "{"+together+"}")
	for release := 1; release < costReleases; release++ {
		queries = append(queries, fmt.Sprintf(`query @asOf(release: %d) {tools(limit: 1, sort: name_desc) {items {slug}}}`, release),
			fmt.Sprintf(`query @asOf(release: %d) {tools(limit: 1, filter: {search: "e"}) {items {slug}}}`, costReleases-release))
	}
	return queries
}

// meter measures the CPU time of this process, and that of the PostgreSQL
// backends of its database.
type meter struct {
	t        testing.TB
	executor *graph.Executor
	cache    *cache.Cache
	postgres *sql.DB // nil with SQLite
}

func (m *meter) measure(ctx context.Context, text string) (q measuredQuery, accepted bool) {
	m.cache.Restart(0) // so that counts are not cached either
	backends, own := m.backendTime(ctx), wait.CPU()
	result := m.executor.Execute(ctx, graph.Request{Query: text})
	q = measuredQuery{text: text, cost: result.Cost, own: wait.CPU() - own}
	q.cpu = q.own + m.backendTime(ctx) - backends
	if p := result.Problem(); p != nil && p.Code != "RESPONSE_TOO_LARGE" {
		isLong := strings.Contains(p.Message, "token limit") // nested filters add up
		if p.Code != "QUERY_TOO_COMPLEX" && p.Code != "BAD_USER_INPUT" && !isLong {
			m.t.Fatalf("%s: %s\n%s", p.Code, p.Message, text)
		}
		return q, false
	}
	return q, true
}

// backendTime adds up the CPU time of the database's backends, except for our
// own.
func (m *meter) backendTime(ctx context.Context) (sum time.Duration) {
	if m.postgres == nil {
		return 0
	}
	rows, err := m.postgres.QueryContext(ctx, "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()")
	check.OK(m.t, err)
	defer rows.Close()
	for rows.Next() {
		var pid int
		check.OK(m.t, rows.Scan(&pid))
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/schedstat", pid))
		if err != nil {
			continue // it has ended
		}
		var nanoseconds int64
		_, err = fmt.Sscan(string(text), &nanoseconds)
		check.OK(m.t, err)
		sum += time.Duration(nanoseconds)
	}
	check.OK(m.t, rows.Err())
	return sum
}

// openPostgres turns off JIT compilation, and parallel workers, which exit before
// their CPU time can be read. It also vacuums, as autovacuum would eventually.
func openPostgres(t testing.TB, url string) *sql.DB {
	db, err := sql.Open("postgres", url)
	check.OK(t, err)
	t.Cleanup(func() { _ = db.Close() })
	db.SetMaxOpenConns(1)
	for _, statement := range []string{
		"DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET max_parallel_workers_per_gather = 0', current_database()); END $$",
		"DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET jit = off', current_database()); END $$",
		"VACUUM ANALYZE",
	} {
		_, err := db.ExecContext(t.Context(), statement)
		check.OK(t, err)
	}
	return db
}

func printCosts(kind string, tools int, queries []measuredQuery, rejected int) {
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
		{"for its cost", unitGoal.String() + " of ours", sorted(measuredQuery.perUnit, func(q measuredQuery) bool { return q.cpu >= noticeable })},
	} {
		for _, q := range part.queries {
			table.Add(part.name, part.goal, q.cpu.Round(100*time.Microsecond), q.own.Round(100*time.Microsecond), q.cost, q.perUnit().Round(time.Microsecond), fmt.Sprintf("`%.400s`", q.text))
		}
	}
	table.Print(os.Stdout)
}
