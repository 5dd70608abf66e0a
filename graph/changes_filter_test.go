package graph_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"palmares/graph"
	"palmares/internal/catalog/journal"
	"palmares/internal/core/store"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
)

// changesFilter is a random combination of the conditions on changes.
type changesFilter struct {
	arguments string
	matches   func(*journal.Event) bool
}

func randomFilter(random *rand.Rand) changesFilter {
	var arguments strings.Builder
	var conditions []func(*journal.Event) bool
	add := func(condition func(*journal.Event) bool, format string, values ...any) {
		fmt.Fprintf(&arguments, " "+format, values...)
		conditions = append(conditions, condition)
	}
	some := func(values []string) (chosen []string) {
		for range 1 + random.IntN(4) {
			chosen = append(chosen, values[random.IntN(len(values))])
		}
		return chosen
	}
	maybe := func() bool { return random.IntN(4) == 0 }
	if maybe() {
		types := some(journal.Events)
		add(func(e *journal.Event) bool { return slices.Contains(types, e.Type) }, "types: [%s]", strings.ReplaceAll(strings.Join(types, " "), ".", "_"))
	}
	if maybe() {
		category := []string{"code", "voix", "vide"}[random.IntN(3)]
		add(func(e *journal.Event) bool { return e.Category == category || e.OtherCategory == category }, "category: %q", category)
	}
	if maybe() {
		slug := []string{"t0", "t1", "t5", "c3", "vide"}[random.IntN(5)]
		add(func(e *journal.Event) bool { return e.Slug == slug }, "slug: %q", slug)
	}
	if maybe() {
		day := fmt.Sprintf("2026-03-%02d", random.IntN(16))
		add(func(e *journal.Event) bool { return e.At.UTC().Format("2006-01-02") >= day }, "since: %q", strings.Replace(day, "-00", "-01", 1))
	}
	if maybe() {
		day := fmt.Sprintf("2026-03-%02d", 1+random.IntN(16))
		add(func(e *journal.Event) bool { return e.At.UTC().Format("2006-01-02") < day }, "until: %q", day)
	}
	if maybe() {
		release := 1 + random.IntN(randomReleases+2)
		add(func(e *journal.Event) bool { return e.Release == release }, "release: %d", release)
		add(func(e *journal.Event) bool { return e.Release > release }, "afterRelease: %d", release)
	}
	if maybe() {
		fields := some(journal.FieldNames)
		add(func(e *journal.Event) bool {
			return slices.ContainsFunc(e.Fields, func(name string) bool { return slices.Contains(fields, name) })
		}, `fields: ["%s"]`, strings.Join(fields, `" "`))
	}
	return changesFilter{arguments.String(), func(e *journal.Event) bool {
		return !slices.ContainsFunc(conditions, func(matches func(*journal.Event) bool) bool { return !matches(e) })
	}}
}

// All conditions can be combined with each other, with both orders and with all
// parts of a connection, in each release.
func TestChangesFilters(t *testing.T) {
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		publishRandom(t, s, 7, nil)
		e, random, all := newExecutor(s), rand.New(rand.NewPCG(5, 5)), allEvents(t, s)
		found := 0
		for range 400 {
			filter, release, order := randomFilter(random), randomReleases, "oldest_first"
			var ids []string
			directive := ""
			if random.IntN(2) == 0 {
				release = 1 + random.IntN(randomReleases)
				directive = fmt.Sprintf("query @asOf(release: %d) ", release)
			}
			for _, event := range all {
				if filter.matches(event) && event.Release <= release {
					ids = append(ids, event.ID())
				}
			}
			if random.IntN(2) == 0 {
				order = "newest_first"
				slices.Reverse(ids)
			}
			part := randomRelay(random, ids)
			query := directive + "{changes(order: " + order + filter.arguments + part.arguments() + ") " + partFields + "}}"
			decode[struct{ Changes connectionOf }](t, mustExecute(t, e, query)).Changes.check(t, query, ids, part)
			found += len(ids)
		}
		check.True(t, found >= 2000, "got %d events, want at least 2000", found)
	})
}

// Lists with no values match nothing, and so do days and releases without events.
func TestChangesThatCannotMatch(t *testing.T) {
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		e := newExecutor(s)
		none := `{"changes":{"nodes":[],"pageInfo":{"hasNextPage":false,"hasPreviousPage":false,"endCursor":null}}}`
		cannot := func(arguments string) {
			t.Helper()
			expect(t, arguments, mustExecute(t, e, `{changes(`+arguments+`) {nodes {id} pageInfo {hasNextPage hasPreviousPage endCursor}}}`), none)
		}
		cannot(`first: 3`) // before the first import
		publishRandom(t, s, 7, nil)
		for _, arguments := range []string{
			`types: []`, `fields: []`, `slug: ""`, `category: ""`, `release: 99`, `afterRelease: 99`, `release: 2, afterRelease: 2`, `since: "2026-05-01"`, `until: "2026-03-01"`,
			`since: "2026-03-05", until: "2026-03-05"`, `fields: ["price"], types: [tool_created]`, `fields: ["title"], types: [tool_updated]`,
		} {
			cannot(arguments)
		}
	})
}

// Some clients send an empty cursor instead of none.
func TestEmptyCursors(t *testing.T) {
	onDemoCatalog(t, func(t *testing.T, e *graph.Executor) {
		for _, list := range []string{
			`toolConnection(first: 3%s) ` + partFields + ` totalCount}`,
			`comparisonConnection(last: 3%s) ` + partFields + `}`,
			`retiredToolConnection(first: 3%s) ` + partFields + `}`,
			`releases(first: 3%s) {nodes {id} pageInfo {hasNextPage hasPreviousPage}}`,
			`changes(last: 3%s) ` + partFields + `}`,
			`tool(slug: "plume") {comparisonConnection(first: 1%s) ` + partFields + `}}`,
			`tool(slug: "plume") {changes(first: 1%s) ` + partFields + `}}`,
			`category(slug: "voix") {toolConnection(last: 1%s) ` + partFields + `}}`,
		} {
			expect(t, list, mustExecute(t, e, fmt.Sprintf("{"+list+"}", `, after: "", before: ""`)), mustExecute(t, e, fmt.Sprintf("{"+list+"}", "")))
		}
	})
}
