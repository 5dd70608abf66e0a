package graph_test

import (
	"fmt"
	"strings"
	"testing"

	"palmares/graph"
	"palmares/internal/catalog/feed/demo"
	"palmares/internal/catalog/feed/feedtest"
	"palmares/internal/catalog/publish"
	"palmares/internal/catalog/record"
	"palmares/internal/core/store"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
)

func TestInvalidDashboardArguments(t *testing.T) {
	slugs := make([]string, 201)
	for i := range slugs {
		slugs[i] = fmt.Sprintf("%q", fmt.Sprint("t", i))
	}
	onDemoCatalog(t, func(t *testing.T, e *graph.Executor) {
		for query, want := range map[string]string{
			`{series(metrics: [count], from: "2026-03-02", to: "2026-03-01") {key}}`:                 "from must be before to (got 2026-03-02 and 2026-03-01).",
			`{series(metrics: [count], from: "2026-03-02", to: "2026-03-02") {key}}`:                 "from must be before to (got 2026-03-02 and 2026-03-02).",
			`{series(metrics: [count], from: "1700-01-01", to: "2200-01-01") {key}}`:                 "from and to must be at most 100 years apart (got 1700-01-01 and 2200-01-01).",
			`{series(metrics: []) {key}}`:                                                            "metrics must not be empty.",
			`{series(metrics: [count, count]) {key}}`:                                                "metrics must not contain duplicates (got count more than once).",
			`{series(metrics: [count], filter: {search: "a"}) {key}}`:                                "filter.search is not supported here. Search a release with @asOf instead.",
			`{series(metrics: [count], filter: {tiers: [4]}) {key}}`:                                 "filter.tiers must be an integer from 1 to 3",
			`{movers(metric: score, from: "2026-03-02", to: "2026-03-01") {slug}}`:                   "from must be before to (got 2026-03-02 and 2026-03-01).",
			`{movers(metric: score, from: "2026-03-02", to: "2026-03-02") {slug}}`:                   "from must be before to (got 2026-03-02 and 2026-03-02).",
			`{movers(metric: price, from: "1500-03-02", to: "2026-03-02") {slug}}`:                   "from and to must be at most 100 years apart (got 1500-03-02 and 2026-03-02).",
			`{movers(metric: price, from: "2026-03-02", first: 0) {slug}}`:                           "first must be an integer from 1 to 200",
			`{movers(metric: price, from: "2026-03-02", first: 201) {slug}}`:                         "first must be an integer from 1 to 200",
			`{toolGroups(by: tier, thenBy: tier) {key}}`:                                             "by and thenBy must be different (got tier for both).",
			`{retirementGroups(by: [reason, category, reason]) {count}}`:                             "by must be reason, category or both, without duplicates (got reason, category, reason).",
			`{retirementGroups(by: [reason, reason]) {count}}`:                                       "by must be reason, category or both, without duplicates (got reason, reason).",
			`{comparisonGroups(by: tool, limit: 201) {key}}`:                                         "limit must be an integer from 1 to 200",
			`{comparisonGroups(by: tool, tool: "\u0000") {key}}`:                                     "tool must not contain NUL characters.",
			`{comparisonGroups(by: tool, page: 0) {key}}`:                                            "page must be an integer from 1 to 1000000 (got 0).",
			`{comparisonGroups(by: tool, includeEmpty: true) {key}}`:                                 "includeEmpty requires by: month (got tool).",
			`{retirementGroups(includeEmpty: true) {count}}`:                                         "includeEmpty requires every.",
			`{movers(metric: price, from: "2026-03-02", minChange: -1) {slug}}`:                      "minChange must be a number from 0 to 1000000000 (got -1).",
			`{series(metrics: [count], filter: {not: {priceIncreases: {}}}) {key}}`:                  "filter.priceIncreases is not supported here. Use movers",
			`{movers(metric: price, from: "2026-03-02", filter: {anyOf: [{search: "a"}]}) {slug}}`:   "filter.search is not supported here.",
			`{tools(filter: {not: {not: {not: {not: {}}}}}) {meta {total}}}`:                         "filter: anyOf and not must be nested at most 3 deep.",
			`{tools(filter: {anyOf: [{tiers: [4]}]}) {meta {total}}}`:                                "filter.tiers must be an integer from 1 to 3",
			`{tools(filter: {domains: []}) {meta {total}}}`:                                          "filter.domains must have 1 to 200 values (got 0).",
			`{comparisons(slugs: []) {meta {total}}}`:                                                "slugs must have 1 to 200 values (got 0).",
			`{toolGroups(by: tier, limit: 0) {key}}`:                                                 "limit must be an integer from 1 to 1000 (got 0).",
			`{tools(filter: {priceIncreases: {min: 0}}) {meta {total}}}`:                             "filter.priceIncreases.min must be an integer from 1 to 1000 (got 0).",
			`{tool(slug: "plume") {alternatives(limit: 51) {slug}}}`:                                 "limit must be an integer from 1 to 50 (got 51).",
			`{tools(filter: {slugs: []}) {meta {total}}}`:                                            "filter.slugs must have 1 to 200 values (got 0).",
			`{tools(filter: {slugs: ["plume", "plume"]}) {meta {total}}}`:                            `filter.slugs must not contain duplicates (got "plume" more than once).`,
			`{tools(filter: {slugs: [` + strings.Join(slugs, " ") + `]}) {meta {total}}}`:            "The document must not contain a list of more than 200 values.",
			`{tools(filter: {categories: [` + strings.Join(slugs[:101], " ") + `]}) {meta {total}}}`: "filter.categories must have at most 100 values (got 101).",
			`{retiredTools(search: "a b c d e f g h i j k l m n o p q") {meta {total}}}`:             "The search must have at most 16 different words.",
		} {
			got := execute(t, e, "", query)
			check.True(t, len(got.Errors) == 1 && strings.HasPrefix(got.Errors[0].Message, want) && got.Errors[0].Extensions["code"] == "BAD_USER_INPUT", "%s: got %v, want %q", query, got.Errors, want)
		}
		mustExecute(t, e, `{tools(filter: {slugs: [`+strings.Join(slugs[:200], " ")+`]}) {meta {total}}}`)
	})
}

// A series may have at most 1,000 points.
func TestSeriesIsLimited(t *testing.T) {
	testkit.EachInFull(t, func(t *testing.T, s *store.Store) {
		feedtest.Publish(t, s, feedtest.Catalog("1980-01-01", feedtest.Tool("a")))
		feedtest.Publish(t, s, feedtest.Catalog("2026-01-01", feedtest.Tool("a"), feedtest.Tool("b")))
		e := newExecutor(s)
		mustExecute(t, e, "{feed {release}}") // costs depend on the releases
		got := execute(t, e, "", "{series(metrics: [count], every: week) {key}}")
		check.Must(t, len(got.Errors), 1, got.Errors)
		check.True(t, strings.HasPrefix(got.Errors[0].Message, "The series would have more than 1000 points"), "got %v, want an error", got.Errors)
		if got := execute(t, e, "", "{series(metrics: [count], every: month) {points {value}}}"); len(got.Errors) > 0 || got.Cost < 553 {
			t.Errorf("got %v and a cost of %d, want 553 points", got.Errors, got.Cost)
		}
	})
}

// Series have no points without a release, and none for releases that were pruned.
func TestSeriesStartWithTheHistory(t *testing.T) {
	testkit.EachInFull(t, func(t *testing.T, s *store.Store) {
		e := newExecutor(s)
		const query = `{series(metrics: [count, additions], every: release) {metric points {release value}} movers(metric: score, from: "2020-01-01") {slug}}`
		check.Equal(t, mustExecute(t, e, query), `{"series":[],"movers":[]}`)
		better := func(score float64) *record.Tool { return feedtest.Tool("a", func(t *record.Tool) { t.Score = &score }) }
		feedtest.Publish(t, s, feedtest.Catalog("2026-01-01", better(5)))
		feedtest.Publish(t, s, feedtest.Catalog("2026-01-02", better(6), feedtest.Tool("b")))
		feedtest.Publish(t, s, feedtest.Catalog("2026-01-03", better(8), feedtest.Tool("b"), feedtest.Tool("c")))
		const change = `"movers":[{"slug":"a"}]}`
		check.Equal(t, mustExecute(t, e, query), `{"series":[{"metric":"count","points":[{"release":1,"value":1},{"release":2,"value":2},{"release":3,"value":3}]},`+
			`{"metric":"additions","points":[{"release":1,"value":0},{"release":2,"value":1},{"release":3,"value":1}]}],`+change)
		check.Try(publish.Prune(t.Context(), s, 2)).OK(t)
		e = newExecutor(s)
		check.Equal(t, mustExecute(t, e, query), `{"series":[{"metric":"count","points":[{"release":2,"value":2},{"release":3,"value":3}]},`+
			`{"metric":"additions","points":[{"release":2,"value":0},{"release":3,"value":1}]}],`+change)
	})
}

func TestPricesAsNumbers(t *testing.T) {
	testkit.EachInFull(t, func(t *testing.T, s *store.Store) {
		priced := func(slug, price string, history ...record.PriceChange) *record.Tool {
			return feedtest.Tool(slug, func(t *record.Tool) { t.Price, t.PriceHistory = price, history })
		}
		was := func(day, before, after string) record.PriceChange {
			return record.PriceChange{ChangedAt: day, Pricing: "payant", PreviousPricing: "payant", Price: after, PreviousPrice: before}
		}
		feedtest.Publish(t, s, feedtest.Catalog("2026-01-01",
			priced("a", "100 €/an", was("2025-01-01", "10 €/mois", "90 €/an"), was("2025-02-01", "90 €/an", "100 €/an"), was("2024-01-01", "0 €/mois", "10 €/mois")),
			priced("b", "9 €/poste / mois"), priced("c", "0,02 €/image", was("2025-03-01", "0,04 €/image", "0,02 €/image"), was("2025-04-01", "1 €/mois", "0,04 €/image")),
			priced("d", "1 €/heure"), priced("e", "2 €/seconde"), priced("f", "5 €/lune"), priced("g", "9999999999 €/mois")))
		e := newExecutor(s)
		for query, want := range map[string]string{
			"{tools(sort: monthly_price_asc) {items {slug billingPeriod monthlyPrice}}}": `{"tools":{"items":[{"slug":"a","billingPeriod":"year","monthlyPrice":8.33},{"slug":"b","billingPeriod":"seat_month","monthlyPrice":9},` +
				`{"slug":"c","billingPeriod":"use","monthlyPrice":null},{"slug":"d","billingPeriod":"hour","monthlyPrice":null},{"slug":"e","billingPeriod":"second","monthlyPrice":null},` +
				`{"slug":"f","billingPeriod":"other","monthlyPrice":null},{"slug":"g","billingPeriod":"month","monthlyPrice":null}]}}`,
			"{tools(sort: monthly_price_desc, limit: 3) {items {slug}}}": `{"tools":{"items":[{"slug":"b"},{"slug":"a"},{"slug":"c"}]}}`,
			"{tools(filter: {monthlyPriceMin: 8.34}) {items {slug}}}":    `{"tools":{"items":[{"slug":"b"}]}}`,
			"{tools(filter: {monthlyPriceMax: 8.33}) {items {slug}}}":    `{"tools":{"items":[{"slug":"a"}]}}`,
			`{tool(slug: "a") {priceHistory {amount previousAmount billingPeriod previousBillingPeriod monthlyPrice previousMonthlyPrice direction percent}}}`: `{"tool":{"priceHistory":[` +
				`{"amount":100,"previousAmount":90,"billingPeriod":"year","previousBillingPeriod":"year","monthlyPrice":8.33,"previousMonthlyPrice":7.5,"direction":"up","percent":11.07},` +
				`{"amount":90,"previousAmount":10,"billingPeriod":"year","previousBillingPeriod":"month","monthlyPrice":7.5,"previousMonthlyPrice":10,"direction":"down","percent":-25},` +
				`{"amount":10,"previousAmount":0,"billingPeriod":"month","previousBillingPeriod":"month","monthlyPrice":10,"previousMonthlyPrice":0,"direction":"up","percent":null}]}}`,
			`{tool(slug: "c") {priceHistory {direction percent}}}`:                                                        `{"tool":{"priceHistory":[{"direction":null,"percent":null},{"direction":"down","percent":-50}]}}`,
			"{priceChangeCounts(direction: down) {month count}}":                                                          `{"priceChangeCounts":[{"month":"2025-01","count":1},{"month":"2025-03","count":1}]}`,
			"{toolGroups(by: category) {minMonthlyPrice avgMonthlyPrice medianMonthlyPrice maxMonthlyPrice medianScore}}": `{"toolGroups":[{"minMonthlyPrice":8.33,"avgMonthlyPrice":8.67,"medianMonthlyPrice":8.67,"maxMonthlyPrice":9,"medianScore":7.5}]}`,
		} {
			check.Equal(t, mustExecute(t, e, query), want, query)
		}
	})
}

func TestFiltersOfComparisonsAndRetiredTools(t *testing.T) {
	testkit.EachInFull(t, func(t *testing.T, s *store.Store) {
		duel := func(slug, a, b, winner, day string) *record.Comparison {
			return &record.Comparison{Slug: slug, Title: slug, ToolA: a, ToolB: b, Winner: winner, WinnerNote: "Plus net.", Published: true, UpdatedAt: day,
				CanonicalURL: "https://palmares.example/duel/" + slug}
		}
		gone := func(slug, name, reason, day, note string) *record.Retired {
			return &record.Retired{Slug: slug, Name: name, Category: "voix", Reason: reason, RetiredAt: day, Note: note}
		}
		feedtest.Publish(t, s, feedtest.Catalog("2026-06-01", feedtest.Tool("a"), feedtest.Tool("b"), feedtest.Tool("c", func(t *record.Tool) { t.Category = "voix" }),
			duel("a-b", "a", "b", "a", "2026-01-01"), duel("b-c", "b", "c", "c", "2026-02-01"), duel("c-a", "c", "a", "a", "2026-03-01"),
			gone("x", "Éclair", "mort", "2026-01-15", "Racheté par l'américain Foo."), gone("y", "Vieux-Bot", "acquis", "2026-02-15", "Fermé."), gone("z", "Écho", "mort", "2026-04-15", "Fermé aussi.")))
		e := newExecutor(s)
		for arguments, want := range map[string]string{
			`tool: "a"`: "c-a a-b", `winner: "a"`: "c-a a-b", `tool: "c", winner: "a"`: "c-a", `tool: "a", otherTool: "c"`: "c-a", `tool: "b", otherTool: "a"`: "a-b", `tool: "b", category: "voix"`: "b-c",
			`updatedSince: "2026-02-01"`: "c-a b-c", `updatedBefore: "2026-02-01"`: "a-b", `tool: "missing"`: "",
		} {
			checkSlugsOf(t, e, "comparisons("+arguments+")", want)
		}
		for arguments, want := range map[string]string{
			`reason: mort`: "z x", `retiredSince: "2026-02-15"`: "z y", `retiredBefore: "2026-02-15"`: "x", `search: "ferme"`: "z y",
			`search: "AUSSI fermé"`: "z", `search: "ech"`: "z", `search: "americain"`: "x", `search: "bot"`: "y", `search: "…"`: "", `search: " "`: "z y x",
			`search: "ferme", reason: acquis, category: "voix"`: "y", `search: "ferme", category: "code"`: "",
		} {
			checkSlugsOf(t, e, "retiredTools("+arguments+")", want)
		}
		for query, want := range map[string]string{
			"{comparisonGroups(by: category) {key count wins winRate}}":                               `{"comparisonGroups":[{"key":"code","count":3,"wins":2,"winRate":0.6667},{"key":"voix","count":2,"wins":1,"winRate":0.5}]}`,
			"{comparisonGroups(by: month, limit: 2) {key count wins winRate}}":                        `{"comparisonGroups":[{"key":"2026-01","count":1,"wins":null,"winRate":null},{"key":"2026-02","count":1,"wins":null,"winRate":null}]}`,
			`{comparisonGroups(by: tool, winner: "a", sort: wins_desc) {key wins}}`:                   `{"comparisonGroups":[{"key":"a","wins":2},{"key":"b","wins":0},{"key":"c","wins":0}]}`,
			"{retirementGroups(by: [category, reason], every: month) {period category reason count}}": `{"retirementGroups":[{"period":"2026-01","category":"voix","reason":"mort","count":1},{"period":"2026-02","category":"voix","reason":"acquis","count":1},{"period":"2026-04","category":"voix","reason":"mort","count":1}]}`,
			`{retirementGroups(by: [], retiredSince: "2026-02-01") {period category reason count}}`:   `{"retirementGroups":[{"period":null,"category":null,"reason":null,"count":2}]}`,
			`{retirementGroups(every: week, retiredBefore: "2026-02-01") {period count}}`:             `{"retirementGroups":[{"period":"2026-W03","count":1}]}`,
		} {
			check.Equal(t, mustExecute(t, e, query), want, query)
		}
	})
}

// checkSlugsOf compares the slugs of a page.
func checkSlugsOf(t *testing.T, e *graph.Executor, field, want string) {
	t.Helper()
	var items []string
	for slug := range strings.FieldsSeq(want) {
		items = append(items, `{"slug":"`+slug+`"}`)
	}
	if got, want := mustExecute(t, e, "{page: "+field+" {items {slug} meta {total}}}"), fmt.Sprintf(`{"page":{"items":[%s],"meta":{"total":%d}}}`, strings.Join(items, ","), len(items)); got != want {
		t.Errorf("%s: got %s, want %s", field, got, want)
	}
}

// Figures of all releases come from memory: after the first use, no field needs a
// statement.
func TestDashboardsNeedNoStatements(t *testing.T) {
	testkit.EachInFull(t, func(t *testing.T, s *store.Store) {
		editions := check.Try(demo.Editions()).OK(t)
		for _, edition := range editions {
			feedtest.Publish(t, s, edition.Feed)
		}
		statements := countStatements(s)
		e := newExecutor(s)
		check.OK(t, e.Preload(t.Context()))
		statements.Store(0)
		for _, query := range []string{
			"{series(metrics: [count, mean_score, median_monthly_price, additions, retirements], by: category, every: release) {points {value}}}",
			`{movers(metric: price, from: "2026-03-01", first: 200) {tool {name category {label} comparisons {title}}}}`,
			"{toolGroups(by: category, thenBy: pricing) {medianMonthlyPrice}}",
			"{comparisonGroups(by: tool, limit: 200) {winRate}}",
			"{comparisonGroups(by: tool, page: 2) {tool {name}}}",
			"{retirementGroups(every: quarter, includeEmpty: true) {count}}",
			"{tools(filter: {priceIncreases: {min: 2}}) {items {alternatives {slug}}}}",
			`{retiredTools(search: "a") {items {name}}}`,
			"{priceChangeCounts(direction: up) {count}}",
			"query @asOf(release: 1) {tools(limit: 40) {meta {total} items " + allOfTools + "}}",
		} {
			mustExecute(t, e, query)
			if got := statements.Swap(0); got > 1 { // to check the release
				t.Errorf("%s: got %d statements, want at most 1", query, got)
			}
		}
	})
}
