package main

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"time"

	"palmares/auth"
	"palmares/graph"
	"palmares/graph/graphtest"
	"palmares/internal/catalog/feed/synth"
	"palmares/internal/core/cache"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
	"palmares/internal/dev/testkit/blackbox"
	"palmares/internal/dev/testkit/wait"
)

const (
	cheapCost = 1_000 // queries of up to this cost have a goal of their own
	cheapGoal = 100 * time.Millisecond
	anyGoal   = 1500 * time.Millisecond
	unitGoal  = 150 * time.Microsecond // of the server, per unit of cost
	// A query that takes longer than this is measured three times. The minimum
	// excludes garbage collections of earlier queries.
	suspicious = 30 * time.Millisecond
	// Below this, the CPU time per unit of cost is meaningless: every query
	// takes a fraction of a millisecond.
	noticeable = 10 * time.Millisecond
	// costReleases is the number of releases of the catalog, each of which
	// changes one tool in twenty.
	costReleases = 11
)

// measuredQuery is a query with its cost and CPU time.
type measuredQuery struct {
	text string
	cost int
	cpu  time.Duration
	own  time.Duration // the part of this process, which stands for the server
}

func (q measuredQuery) perUnit() time.Duration { return q.own / time.Duration(max(q.cost, 1)) }

// costs measures the CPU time of thousands of generated queries, uncached, in
// relation to their cost. BENCH_QUERIES is their number for each catalog (3000),
// BENCH_SEED (1) selects different ones, and BENCH_TOOLS selects one catalog size.
func costs(b *bed) {
	setting := func(name, value string) int {
		return check.Try(strconv.Atoi(cmp.Or(os.Getenv(name), value))).OK(b, name)
	}
	count, seed, only := setting("BENCH_QUERIES", "3000"), setting("BENCH_SEED", "1"), setting("BENCH_TOOLS", "0")
	for _, tools := range []int{5_000, 100_000} {
		if only == 0 || only == tools {
			b.measureCosts(tools, count, uint64(seed))
		}
	}
}

func (b *bed) measureCosts(tools, count int, seed uint64) {
	b.cfg = b.newCatalog(tools)
	for revision := 1; revision < costReleases; revision++ {
		b.importInto(b.cfg, blackbox.SynthFile(b, synth.Options{Tools: tools, Seed: 1, Revision: revision}))
	}
	ctx := auth.WithCaller(b.Context(), auth.Caller{Plan: auth.Pro})
	s := testkit.Open(b, b.cfg)
	m := &meter{bed: b, cache: cache.New(16*megabyte, nil, slog.New(slog.DiscardHandler)), backends: b.openBackends()}
	limits := graph.DefaultLimits
	limits.Time = time.Minute // to measure slow queries to their end
	m.executor = graphtest.New(graph.Config{Catalog: s, Limits: limits, Cache: m.cache, Tools: func() int { return tools }})
	generator := newQueryGenerator(b, s, rand.New(rand.NewPCG(seed, uint64(tools))))
	expensive := expensiveQueries()
	var total time.Duration
	var cheap, worst, unit measuredQuery
	rejected := 0
	for measured := 0; measured < count+len(expensive); {
		var text string
		if measured < len(expensive) {
			text = expensive[measured]
		} else {
			text = generator.next()
		}
		q, accepted := m.measureAgain(ctx, text)
		if !accepted {
			rejected++
			continue
		}
		measured++
		total += q.cpu
		keep := func(worst *measuredQuery, what string, applies, isWorse bool) {
			if applies && isWorse {
				*worst = q
				progress("worst %s: %s, cost %d: %.400s", what, q.cpu, q.cost, text)
			}
		}
		keep(&cheap, "cheap query", q.cost <= cheapCost, q.cpu > cheap.cpu)
		keep(&worst, "query", true, q.cpu > worst.cpu)
		keep(&unit, "unit of cost", q.cpu >= noticeable, q.perUnit() > unit.perUnit())
	}
	n := count + len(expensive)
	b.Add(fmt.Sprintf("%d tools, %s", tools, b.kind), n, rejected, milli(total/time.Duration(n)),
		milli(cheap.cpu), cheapGoal, milli(worst.cpu), anyGoal, unit.perUnit().Round(time.Microsecond), unitGoal)
}

// expensiveQueries are those that a caller would choose to keep the server busy: the
// searches that match most, alone and together, and earlier releases. Only one of these
// fits into the budget, so each has to be derived again.
func expensiveQueries() (queries []string) {
	together := ""
	for i, letter := range strings.Split("aeiosnrtlucdmpgbfhvqj", "") {
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
	*bed
	executor *graph.Executor
	cache    *cache.Cache
	backends *sql.DB // nil with SQLite
}

// measureAgain measures a query, and repeats it if it took suspiciously long.
func (m *meter) measureAgain(ctx context.Context, text string) (q measuredQuery, accepted bool) {
	q, accepted = m.measure(ctx, text)
	for range 2 {
		if !accepted || strings.Contains(text, "@asOf") || // the release is in memory now
			q.cpu < suspicious && (q.cpu < noticeable || q.perUnit() < cheapGoal/cheapCost) {
			break
		}
		if again, _ := m.measure(ctx, text); again.cpu < q.cpu {
			q = again
		}
	}
	return q, accepted
}

func (m *meter) measure(ctx context.Context, text string) (q measuredQuery, accepted bool) {
	m.cache.Restart(0) // so that counts are not cached either
	backends, own := m.backendTime(ctx), wait.CPU()
	result := m.executor.Execute(ctx, graph.Request{Query: text})
	q = measuredQuery{text: text, cost: result.Cost, own: wait.CPU() - own}
	q.cpu = q.own + m.backendTime(ctx) - backends
	if p := result.Problem(); p != nil && p.Code != "RESPONSE_TOO_LARGE" {
		isLong := strings.Contains(p.Message, "token limit") // nested filters add up
		check.MustTrue(m, p.Code == "QUERY_TOO_COMPLEX" || p.Code == "BAD_USER_INPUT" || isLong, "%s: %s\n%s", p.Code, p.Message, text)
		return q, false
	}
	return q, true
}

// backendTime adds up the CPU time of the database's backends, except for our own.
func (m *meter) backendTime(ctx context.Context) (sum time.Duration) {
	if m.backends == nil {
		return 0
	}
	rows := check.Try(m.backends.QueryContext(ctx, "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()")).OK(m)
	defer rows.Close()
	for rows.Next() {
		var pid int
		check.OK(m, rows.Scan(&pid))
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/schedstat", pid))
		if err != nil {
			continue // it has ended
		}
		var nanoseconds time.Duration
		check.Try(fmt.Sscan(string(text), &nanoseconds)).OK(m)
		sum += nanoseconds
	}
	check.OK(m, rows.Err())
	return sum
}

// openBackends turns off JIT compilation, and parallel workers, which exit before
// their CPU time can be read. It also vacuums, as autovacuum would eventually.
func (b *bed) openBackends() *sql.DB {
	if b.kind == "SQLite" {
		return nil
	}
	db := check.Try(sql.Open("postgres", b.cfg.DatabaseURL)).OK(b)
	b.Cleanup(func() { _ = db.Close() })
	db.SetMaxOpenConns(1)
	for _, statement := range []string{
		"DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET max_parallel_workers_per_gather = 0', current_database()); END $$",
		"DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET jit = off', current_database()); END $$",
		"VACUUM ANALYZE",
	} {
		check.Try(db.ExecContext(b.Context(), statement)).OK(b)
	}
	return db
}
