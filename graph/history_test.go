package graph_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"palmares/auth"
	"palmares/ent"
	"palmares/graph"
	"palmares/internal/catalog/feed/feedtest"
	"palmares/internal/catalog/feed/synth"
	"palmares/internal/catalog/record"
	"palmares/internal/core/store"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
)

func historyOf(t *testing.T, e *graph.Executor, slug string) string {
	t.Helper()
	type moment struct {
		At, Pricing, Price string
		Score              *float64
	}
	text := ""
	for _, m := range decode[struct{ Tool struct{ History []moment } }](t, mustExecute(t, e, `{tool(slug: "`+slug+`") {history {at pricing price score}}}`)).Tool.History {
		score := "untested"
		if m.Score != nil {
			score = fmt.Sprint(*m.Score)
		}
		text += fmt.Sprintf("%s %s %s %s; ", m.At, m.Pricing, m.Price, score)
	}
	return text
}

func TestHistory(t *testing.T) {
	early := record.PriceChange{ChangedAt: "2026-05-01", Pricing: "payant", Price: "20 €/mois", PreviousPricing: "gratuit", PreviousPrice: "0 €/mois"}
	late := record.PriceChange{ChangedAt: "2026-11-05", Pricing: "payant", Price: "17 €/mois", PreviousPricing: "payant", PreviousPrice: "15 €/mois"}
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		e := newExecutor(s)
		other := feedtest.Tool("b", withoutScore)
		step := func(date string, records ...any) {
			feedtest.Publish(t, s, feedtest.Catalog(date, append(records, other)...))
		}
		step("2026-11-01", feedtest.Tool("a", func(t *record.Tool) { t.PriceHistory = []record.PriceChange{early} }))
		step("2026-11-02", feedtest.Tool("a", updatedOn("2026-11-02", func(t *record.Tool) { t.Tagline = "Autre." })))
		step("2026-11-03", feedtest.Tool("a", updatedOn("2026-11-03", func(t *record.Tool) { t.Price = "15 €/mois"; withScore(8)(t) })))
		step("2026-11-04", feedtest.Tool("a", updatedOn("2026-11-03", func(t *record.Tool) { t.Price = "15 €/mois"; withoutScore(t) }))) // its date is unchanged
		want := "2026-05-01 payant 20 €/mois untested; 2026-11-01 payant 20 €/mois 7.5; 2026-11-03 payant 15 €/mois 8; 2026-11-04 payant 15 €/mois untested; "
		expect(t, "a", historyOf(t, e, "a"), want)
		step("2026-11-06", feedtest.Tool("a", updatedOn("2026-11-06", func(t *record.Tool) {
			t.Price, t.Pricing, t.PriceHistory = "18 €/mois", "freemium", []record.PriceChange{late}
			withoutScore(t)
		})))
		want += "2026-11-05 payant 17 €/mois untested; 2026-11-06 freemium 18 €/mois untested; "
		expect(t, "with a late price change", historyOf(t, e, "a"), want)
		expect(t, "nothing ever changed", historyOf(t, e, "b"), "2026-11-01 payant 20 €/mois untested; ")

		step("2026-11-07", &record.Retired{Slug: "a", Name: "Outil a", Category: "code", Reason: "mort", RetiredAt: "2026-11-07", Note: "Fermé."})
		step("2026-11-08", feedtest.Tool("a", updatedOn("2026-11-08", func(t *record.Tool) { t.Price = "5 €/mois" })))
		expect(t, "back from retirement", historyOf(t, e, "a"), want+"2026-11-08 payant 5 €/mois 7.5; ")
	})
}

// Even if the price history contradicts the price, the last entry is the current
// state.
func TestHistoryEndsWithCurrentState(t *testing.T) {
	odd := record.PriceChange{ChangedAt: "2026-12-24", Pricing: "gratuit", Price: "0 €/mois", PreviousPricing: "payant", PreviousPrice: "20 €/mois"}
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		feedtest.Publish(t, s, feedtest.Catalog("2026-11-01", feedtest.Tool("a", func(t *record.Tool) { t.PriceHistory = []record.PriceChange{odd} })))
		expect(t, "a history that contradicts the price", historyOf(t, newExecutor(s), "a"), "2026-11-01 payant 20 €/mois 7.5; ")
	})
}

// The histories of 200 tools take as many statements as those of 10, and the
// largest possible query is within the cost limit.
func TestHistoryOfManyTools(t *testing.T) {
	data := syntheticFeed(t, synth.Options{Tools: 300, Seed: 1})
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		feedtest.Publish(t, s, data)
		var statements atomic.Int64
		const query = `query ($n: Int!) {tools(limit: $n) {items {slug price history {at pricing price score}}} changes(first: $n) {nodes {id tool {history {at score}}}}}`
		mustExecute(t, newExecutor(s), query, map[string]any{"n": 1})
		s.Read.Intercept(ent.InterceptFunc(func(next ent.Querier) ent.Querier {
			return ent.QuerierFunc(func(ctx context.Context, q ent.Query) (ent.Value, error) {
				statements.Add(1)
				return next.Query(ctx, q)
			})
		}))
		var counts []int64
		for _, n := range []int{10, 200} {
			statements.Store(0)
			mustExecute(t, newExecutor(s), query, map[string]any{"n": n})
			counts = append(counts, statements.Load())
		}
		check.Equal(t, counts[0], counts[1])
		check.True(t, counts[0] <= 16, "got %v statements for 10 and 200 tools, want equal numbers of at most 16", counts)
		wantRejected(t, execute(t, newExecutor(s), auth.Developer, `{tools(limit: 200) {items {a: history {at} b: history {at score} history {at pricing price score} comparisons {toolA {slug ... on Tool {history {at}}}}}}}`),
			"QUERY_TOO_COMPLEX", "The operation costs 47637, which exceeds the limit of 20000. Request fewer items, fields or filtered lists at once.")
	})
}
