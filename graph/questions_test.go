package graph_test

import (
	"testing"

	"palmares/graph"
	"palmares/internal/catalog/feed/feedtest"
	"palmares/internal/catalog/record"
	"palmares/internal/core/store"
	"palmares/internal/dev/testkit"
)

func wantData(t *testing.T, e *graph.Executor, query, want string) {
	t.Helper()
	expect(t, query, mustExecute(t, e, query), want)
}

func retiredTool(slug, day string) *record.Retired {
	return &record.Retired{Slug: slug, Name: "Outil " + slug, Category: "code", Reason: "mort", RetiredAt: day, Note: "Fermé."}
}

func TestLifetimesAndRanks(t *testing.T) {
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		e := newExecutor(s)
		step := func(date string, records ...any) { feedtest.Publish(t, s, feedtest.Catalog(date, records...)) }
		tool := func(slug string, score float64) any { return feedtest.Tool(slug, withScore(score)) }
		early := retiredTool("early", "2026-10-01")
		step("2026-11-01", tool("a", 9), tool("b", 8), tool("c", 7), early)
		step("2026-11-03", tool("a", 9), tool("b", 9), tool("c", 7), tool("d", 9.5), feedtest.Tool("e", withoutScore), early)
		wantData(t, e, `{tools(sort: name_asc) {items {slug addedAt rank {position of previous} all: rank(in: all) {position}}}}`,
			`{"tools":{"items":[{"slug":"a","addedAt":"2026-11-01","rank":{"position":2,"of":4,"previous":1},"all":{"position":2}},`+
				`{"slug":"b","addedAt":"2026-11-01","rank":{"position":2,"of":4,"previous":2},"all":{"position":2}},`+
				`{"slug":"c","addedAt":"2026-11-01","rank":{"position":4,"of":4,"previous":3},"all":{"position":4}},`+
				`{"slug":"d","addedAt":"2026-11-03","rank":{"position":1,"of":4,"previous":null},"all":{"position":1}},`+
				`{"slug":"e","addedAt":"2026-11-03","rank":null,"all":null}]}}`)
		step("2026-11-05", retiredTool("a", "2026-11-04"), tool("b", 9), early)
		step("2026-11-06", retiredTool("a", "2026-11-04"), tool("c", 7), tool("b", 9), early)
		wantData(t, e, `{retiredTools {items {slug addedAt lifetimeDays}} tool(slug: "c") {addedAt rank {previous}}}`,
			`{"retiredTools":{"items":[{"slug":"a","addedAt":"2026-11-01","lifetimeDays":3},{"slug":"early","addedAt":"2026-11-01","lifetimeDays":null}]},`+
				`"tool":{"addedAt":"2026-11-01","rank":{"previous":null}}}`) // c was removed and came back
		wantData(t, e, `query @asOf(release: 2) {tool(slug: "a") {addedAt rank {position previous}}}`,
			`{"tool":{"addedAt":"2026-11-01","rank":{"position":2,"previous":1}}}`)
	})
}
