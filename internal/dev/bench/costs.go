package main

import (
	"cmp"
	"context"
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

// measuredQuery is the cost and the CPU time of a query.
type measuredQuery struct {
	cost int
	cpu  time.Duration
}

func (q measuredQuery) perUnit() time.Duration { return q.cpu / time.Duration(max(q.cost, 1)) }

// costs measures the CPU time of thousands of generated queries, uncached, in
// relation to their cost, with an embedded database: the catalog is in memory. BENCH_QUERIES is their number for each catalog (3000),
// BENCH_SEED (1) selects different ones, and BENCH_TOOLS selects one catalog size.
func costs(b *bed) {
	if b.kind != "SQLite" {
		return
	}
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
	m := &meter{bed: b, cache: cache.New(16*megabyte, nil, slog.New(slog.DiscardHandler))}
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
	b.Add(fmt.Sprintf("%d tools", tools), n, rejected, milli(total/time.Duration(n)),
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

// meter measures the CPU time of this process.
type meter struct {
	*bed
	executor *graph.Executor
	cache    *cache.Cache
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
	before := wait.CPU()
	result := m.executor.Execute(ctx, graph.Request{Query: text})
	q = measuredQuery{cost: result.Cost, cpu: wait.CPU() - before}
	if p := result.Problem(); p != nil && p.Code != "RESPONSE_TOO_LARGE" {
		isLong := strings.Contains(p.Message, "token limit") // nested filters add up
		check.MustTrue(m, p.Code == "QUERY_TOO_COMPLEX" || p.Code == "BAD_USER_INPUT" || isLong, "%s: %s\n%s", p.Code, p.Message, text)
		return q, false
	}
	return q, true
}
