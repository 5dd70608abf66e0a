package graph_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"

	entsql "entgo.io/ent/dialect/sql"

	"palmares/ent"
	"palmares/graph"
	"palmares/internal/catalog/feed/synth"
	"palmares/internal/core/cache"
	"palmares/internal/core/store"
	"palmares/internal/dev/testkit"
)

// spyingCatalog records what is read, and can do something before an earlier
// release is read.
type spyingCatalog struct {
	*store.Store
	before     func()
	statements []string
}

func (c *spyingCatalog) WithEarlierRelease(ctx context.Context, earlier *ent.Release, read func(context.Context) error) error {
	if before := c.before; before != nil {
		c.before = nil
		before()
	}
	return c.Store.WithEarlierRelease(ctx, earlier, read)
}

func (c *spyingCatalog) Select(ctx context.Context, statement string, args ...any) (entsql.ColumnScanner, error) {
	c.statements = append(c.statements, strings.Join(strings.Fields(statement), " "))
	return c.Store.Select(ctx, statement, args...)
}

// readsWhole reports whether all tools of a release were read.
func (c *spyingCatalog) readsWhole() bool {
	for _, statement := range c.statements {
		if strings.HasSuffix(statement, "FROM tools") || strings.HasSuffix(statement, "FROM price_changes") {
			return true
		}
	}
	return false
}

// readEarlier returns everything that an index holds of a release.
func readEarlier(t testing.TB, e *graph.Executor, release int) string {
	t.Helper()
	var all strings.Builder
	for _, selection := range []string{
		`{tools(limit: 40) {meta {total} items ` + allOfTools + `} retiredTools(limit: 200) {items {slug note}}}`,
		`{a: tools(sort: score_asc, limit: 200) {items {slug}} b: tools(sort: name_asc, limit: 200) {items {slug}} c: tools(sort: name_desc, limit: 200) {items {slug}}}`,
		`{a: tools(sort: updated_asc, limit: 200) {items {slug}} b: tools(sort: updated_desc, limit: 200) {items {slug}}}`,
		`{a: tools(sort: price_asc, limit: 200) {items {slug}} b: tools(sort: price_desc, limit: 200) {items {slug}}}`,
		`{categories {slug label toolCount tools(limit: 3) {slug}} comparisons(limit: 100) {items {slug title winnerName toolA {slug} toolB {slug}}}}`,
		`{tools(filter: {search: "lanterne"}) {items {slug}} priceChangeCounts {month category count} releases {nodes {number}}}`,
	} {
		all.WriteString(mustExecute(t, e, fmt.Sprintf("query @asOf(release: %d) %s", release, selection)) + "\n")
	}
	return all.String()
}

// The index of an earlier release is derived from the newest one and shares the
// tools that have not changed.
func TestEarlierReleasesShareTools(t *testing.T) {
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		const releases = 4
		want := map[int]string{}
		for release := 1; release <= releases; release++ {
			publish(t, s, syntheticFeed(t, synth.Options{Tools: 120, Seed: 8, Revision: release}))
			want[release] = readEarlier(t, newExecutor(s), release)
		}
		catalog := &spyingCatalog{Store: s}
		e := newExecutor(catalog)
		if err := e.Preload(t.Context()); err != nil {
			t.Fatal(err)
		}
		var rows atomic.Int64
		s.Read.Tool.Intercept(ent.InterceptFunc(func(next ent.Querier) ent.Querier {
			return ent.QuerierFunc(func(ctx context.Context, q ent.Query) (ent.Value, error) {
				value, err := next.Query(ctx, q)
				if tools, ok := value.([]*ent.Tool); ok {
					rows.Add(int64(len(tools)))
				}
				return value, err
			})
		}))
		for release := releases - 1; release >= 1; release-- {
			catalog.statements = nil
			rows.Store(0)
			if got := readEarlier(t, e, release); got != want[release] {
				t.Errorf("release %d: got\n%.500s\nwant\n%.500s", release, got, want[release])
			}
			if catalog.readsWhole() {
				t.Errorf("release %d: got %q, want only statements for what differs", release, catalog.statements)
			}
			if most := int64((releases - release) * 10); rows.Load() == 0 || rows.Load() > most {
				t.Errorf("release %d: got %d tools read, want up to %d: those that changed", release, rows.Load(), most)
			}
		}
	})
}

// A release is published between choosing an earlier one and reading it: then the
// newest index no longer matches the database. Meanwhile, indexes of other releases
// are dropped, because the memory suffices only for a few.
func TestEarlierReleaseWhileAnotherIsPublished(t *testing.T) {
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		catalog := &spyingCatalog{Store: s}
		log := slog.New(slog.DiscardHandler)
		e := graph.NewExecutor(graph.Config{Catalog: catalog, Credit: credit, Limits: graph.DefaultLimits, Log: log, Cache: cache.New(300_000, nil, log)})
		want := map[int]string{}
		publishNext := func() {
			publish(t, s, syntheticFeed(t, synth.Options{Tools: 120, Seed: 8, Revision: len(want)}))
			want[len(want)+1] = readEarlier(t, newExecutor(s), len(want)+1)
		}
		publishNext()
		publishNext()
		for range 3 {
			release := len(want) - 1
			mustExecute(t, e, `{feed {release}}`)
			catalog.before, catalog.statements = publishNext, nil
			if got := readEarlier(t, e, release); got != want[release] {
				t.Errorf("release %d: got\n%.500s\nwant\n%.500s", release, got, want[release])
			}
			if !catalog.readsWhole() {
				t.Errorf("release %d: got %q, want all tools to be read", release, catalog.statements)
			}
			for release, want := range want {
				if got := readEarlier(t, e, release); got != want {
					t.Errorf("release %d later: got\n%.500s\nwant\n%.500s", release, got, want)
				}
			}
		}
	})
}
