package graph_test

import (
	"testing"

	"palmares/graph"
	"palmares/internal/catalog/feed/feedtest"
	"palmares/internal/catalog/record"
	"palmares/internal/core/store"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
)

func checkResponses(t *testing.T, e *graph.Executor, responses map[string]string) {
	t.Helper()
	for query, want := range responses {
		check.Equal(t, mustExecute(t, e, query), want, query)
	}
}

func newDuel(a, b, winner, day string) *record.Comparison {
	return &record.Comparison{Slug: a + "-" + b, Title: a + b, ToolA: a, ToolB: b, Winner: winner, WinnerNote: "Plus net.", Published: true,
		UpdatedAt: day, CanonicalURL: "https://palmares.example/duel/" + a + b}
}

func newRetired(slug, reason, day string) *record.Retired {
	return &record.Retired{Slug: slug, Name: "Ancien " + slug, Category: "voix", Reason: reason, RetiredAt: day, Note: "Fermé."}
}

func newTool(slug, price string, score float64, changes ...record.PriceChange) *record.Tool {
	return feedtest.Tool(slug, func(t *record.Tool) { t.Price, t.Score, t.PriceHistory = price, &score, changes })
}

func newPriceChange(day, before, after string) record.PriceChange {
	return record.PriceChange{ChangedAt: day, Pricing: "payant", PreviousPricing: "payant", Price: after, PreviousPrice: before}
}

// Periods have their first and last days. With includeEmpty, those in which nothing
// happened are in the response, up to the date of the release.
func TestPeriodsAreComplete(t *testing.T) {
	testkit.EachInFull(t, func(t *testing.T, s *store.Store) {
		feedtest.Publish(t, s, feedtest.Catalog("2026-04-10",
			newTool("a", "20 €/mois", 8, newPriceChange("2026-02-11", "10 €/mois", "20 €/mois")), newTool("b", "5 €/mois", 7), newRetired("x", "mort", "2025-12-30"), newRetired("y", "acquis", "2026-02-15"),
			newDuel("a", "b", "a", "2026-01-31"), newDuel("b", "x", "b", "2026-03-01")))
		checkResponses(t, newExecutor(s), map[string]string{
			"{retirementGroups(every: week) {period start end count}}": `{"retirementGroups":[{"period":"2026-W01","start":"2025-12-29","end":"2026-01-04","count":1},{"period":"2026-W07","start":"2026-02-09","end":"2026-02-15","count":1}]}`,
			"{retirementGroups(by: [], every: quarter, includeEmpty: true) {period start end count}}": `{"retirementGroups":[{"period":"2025-Q4","start":"2025-10-01","end":"2025-12-31","count":1},` +
				`{"period":"2026-Q1","start":"2026-01-01","end":"2026-03-31","count":1},{"period":"2026-Q2","start":"2026-04-01","end":"2026-06-30","count":0}]}`,
			`{retirementGroups(every: month, retiredSince: "2026-02-01", retiredBefore: "2026-04-01", includeEmpty: true) {period reason count}}`: `{"retirementGroups":[` +
				`{"period":"2026-02","reason":"acquis","count":1},{"period":"2026-03","reason":"acquis","count":0}]}`,
			"{retirementGroups {period start end}}":                                                                                  `{"retirementGroups":[{"period":null,"start":null,"end":null},{"period":null,"start":null,"end":null}]}`,
			"{priceChangeCounts {month start end count}}":                                                                            `{"priceChangeCounts":[{"month":"2026-02","start":"2026-02-01","end":"2026-02-28","count":1}]}`,
			"{priceChangeCounts(includeEmpty: true) {month end count}}":                                                              `{"priceChangeCounts":[{"month":"2026-02","end":"2026-02-28","count":1},{"month":"2026-03","end":"2026-03-31","count":0},{"month":"2026-04","end":"2026-04-30","count":0}]}`,
			"{comparisonGroups(by: month) {key start end count}}":                                                                    `{"comparisonGroups":[{"key":"2026-01","start":"2026-01-01","end":"2026-01-31","count":1},{"key":"2026-03","start":"2026-03-01","end":"2026-03-31","count":1}]}`,
			"{comparisonGroups(by: category) {start end}}":                                                                           `{"comparisonGroups":[{"start":null,"end":null},{"start":null,"end":null}]}`,
			"{series(metrics: [count]) {points {period start end}}}":                                                                 `{"series":[{"points":[{"period":"2026-04","start":"2026-04-01","end":"2026-04-30"}]}]}`,
			"{series(metrics: [count], every: release) {points {end}}}":                                                              `{"series":[{"points":[{"end":"2026-04-10"}]}]}`,
			"{comparisonGroups(by: month, includeEmpty: true, page: 2, limit: 2) {key count wins winRate}}":                          `{"comparisonGroups":[{"key":"2026-03","count":1,"wins":null,"winRate":null},{"key":"2026-04","count":0,"wins":null,"winRate":null}]}`,
			`{comparisonGroups(by: month, includeEmpty: true, updatedSince: "2026-02-01", updatedBefore: "2026-03-01") {key count}}`: `{"comparisonGroups":[{"key":"2026-02","count":0}]}`,
		})
	})
}

// The first import adds no tools to the catalog, unless it is asked for.
func TestAdditionsOfFirstImport(t *testing.T) {
	testkit.EachInFull(t, func(t *testing.T, s *store.Store) {
		feedtest.Publish(t, s, feedtest.Catalog("2026-01-10", feedtest.Tool("a"), feedtest.Tool("b")))
		feedtest.Publish(t, s, feedtest.Catalog("2026-01-20", feedtest.Tool("a"), feedtest.Tool("b"), feedtest.Tool("c")))
		feedtest.Publish(t, s, feedtest.Catalog("2026-02-20", feedtest.Tool("a"), feedtest.Tool("c"), feedtest.Tool("d")))
		feedtest.Publish(t, s, feedtest.Catalog("2026-03-20", feedtest.Tool("a"), feedtest.Tool("b")))
		checkResponses(t, newExecutor(s), map[string]string{
			"{series(metrics: [additions]) {points {value}}}":                           `{"series":[{"points":[{"value":1},{"value":1},{"value":1}]}]}`,
			"{series(metrics: [additions], includeFirstImport: true) {points {value}}}": `{"series":[{"points":[{"value":3},{"value":1},{"value":1}]}]}`,
		})
	})
}

// Groups of comparisons are read by page, with their tools.
func TestComparisonGroupsByPage(t *testing.T) {
	testkit.EachInFull(t, func(t *testing.T, s *store.Store) {
		feedtest.Publish(t, s, feedtest.Catalog("2026-04-10", newTool("a", "20 €/mois", 8), newTool("b", "5 €/mois", 7), newTool("c", "5 €/mois", 7), newRetired("x", "mort", "2025-12-30"),
			newDuel("a", "b", "a", "2026-01-31"), newDuel("b", "x", "b", "2026-03-01"), newDuel("c", "b", "c", "2026-03-01")))
		checkResponses(t, newExecutor(s), map[string]string{
			"{comparisonGroups(by: tool, limit: 2) {key count}}":                                 `{"comparisonGroups":[{"key":"a","count":1},{"key":"b","count":3}]}`,
			"{comparisonGroups(by: tool, limit: 2, page: 2) {key count}}":                        `{"comparisonGroups":[{"key":"c","count":1},{"key":"x","count":1}]}`,
			"{comparisonGroups(by: tool, limit: 2, page: 3) {key count}}":                        `{"comparisonGroups":[]}`,
			"{comparisonGroups(by: tool, minCount: 2) {key count}}":                              `{"comparisonGroups":[{"key":"b","count":3}]}`,
			"{comparisonGroups(by: tool, sort: win_rate_desc, limit: 1, page: 3) {key winRate}}": `{"comparisonGroups":[{"key":"b","winRate":0.3333}]}`,
			"{comparisonGroups(by: category) {key tool {name}}}":                                 `{"comparisonGroups":[{"key":"code","tool":null},{"key":"voix","tool":null}]}`,
			"{comparisonGroups(by: tool, limit: 1, page: 4) {tool {__typename name slug}}}":      `{"comparisonGroups":[{"tool":{"__typename":"RetiredTool","name":"Ancien x","slug":"x"}}]}`,
			"{comparisonGroups(by: tool, limit: 1) {tool {name ... on Tool {canonicalUrl}}}}":    `{"comparisonGroups":[{"tool":{"name":"Outil a","canonicalUrl":"https://palmares.example/a"}}]}`,
			`{comparisonGroups(by: tool, winner: "b") {key tool {id category {label}} count}}`:   `{"comparisonGroups":[{"key":"b","tool":{"id":"tool/b","category":{"label":"Code"}},"count":1},{"key":"x","tool":{"id":"tool/x","category":{"label":"Voix"}},"count":1}]}`,
		})
	})
}

// Tools can be filtered and grouped by how they are billed, and filtered by the increases
// of their prices.
func TestFiltersByPrice(t *testing.T) {
	testkit.EachInFull(t, func(t *testing.T, s *store.Store) {
		free := newTool("d", "0 €/heure", 6)
		gratis := feedtest.Tool("e", func(t *record.Tool) { t.Price, t.Pricing = "3 €/image", "gratuit" })
		feedtest.Publish(t, s, feedtest.Catalog("2026-04-10",
			newTool("a", "120 €/an", 8, newPriceChange("2026-02-11", "10 €/mois", "130 €/an"), newPriceChange("2025-02-11", "9 €/mois", "10 €/mois"), newPriceChange("2026-03-11", "130 €/an", "120 €/an")),
			newTool("b", "12 €/mois", 7, newPriceChange("2025-12-01", "10 €/mois", "12 €/mois")), newTool("c", "1 €/heure", 7, newPriceChange("2026-01-01", "0.5 €/heure", "1 €/heure")), free, gratis))
		e := newExecutor(s)
		for filter, want := range map[string]string{
			"monthlyCostMax: 10": "a e d", "monthlyCostMax: 0": "e d", "monthlyCostMax: 12": "a e b d", "monthlyPriceMax: 10": "a",
			"billingPeriods: [year, hour]": "a c d", "billingPeriods: [use]": "e", "billingPeriods: []": "",
			"priceIncreases: {}": "a b c", "priceIncreases: {min: 2}": "a", `priceIncreases: {since: "2026-01-01"}`: "a c", `priceIncreases: {min: 2, since: "2026-01-01"}`: "",
		} {
			checkSlugsOf(t, e, "tools(filter: {"+filter+"})", want)
		}
		checkResponses(t, e, map[string]string{
			"{toolGroups(by: billing_period) {key count avgMonthlyPrice}}":                             `{"toolGroups":[{"key":"hour","count":2,"avgMonthlyPrice":null},{"key":"month","count":1,"avgMonthlyPrice":12},{"key":"use","count":1,"avgMonthlyPrice":null},{"key":"year","count":1,"avgMonthlyPrice":10}]}`,
			"{toolGroups(by: pricing, thenBy: billing_period, filter: {scoreMin: 7.2}) {key thenKey}}": `{"toolGroups":[{"key":"gratuit","thenKey":"use"},{"key":"payant","thenKey":"year"}]}`,
			"{series(metrics: [count], by: billing_period) {key points {value}}}":                      `{"series":[{"key":"hour","points":[{"value":2}]},{"key":"month","points":[{"value":1}]},{"key":"use","points":[{"value":1}]},{"key":"year","points":[{"value":1}]}]}`,
			"{priceChangeCounts(filter: {priceIncreases: {min: 2}}) {month}}":                          `{"priceChangeCounts":[{"month":"2025-02"},{"month":"2026-02"},{"month":"2026-03"}]}`,
		})
	})
}

// Changes are compared exactly: 0.7 − 0.5 and 0.3 − 0.1 are the same, although not as
// floating-point numbers.
func TestMoversAreExact(t *testing.T) {
	testkit.EachInFull(t, func(t *testing.T, s *store.Store) {
		feedtest.Publish(t, s, feedtest.Catalog("2026-01-01", newTool("a", "16 €/mois", 0.1), newTool("b", "2 €/mois", 0.7), newTool("c", "2 €/mois", 8), newTool("d", "2 €/mois", 5)))
		feedtest.Publish(t, s, feedtest.Catalog("2026-02-01", newTool("a", "9,50 €/mois", 0.3), newTool("b", "2 €/mois", 0.5), newTool("c", "2 €/mois", 8.1), newTool("d", "2,50 €/mois", 2)))
		checkResponses(t, newExecutor(s), map[string]string{
			`{movers(metric: score, from: "2026-01-01") {slug change}}`:                          `{"movers":[{"slug":"d","change":-3},{"slug":"a","change":0.2},{"slug":"b","change":-0.2},{"slug":"c","change":0.1}]}`,
			`{movers(metric: score, from: "2026-01-01", minChange: 0.2) {slug}}`:                 `{"movers":[{"slug":"d"},{"slug":"a"},{"slug":"b"}]}`,
			`{movers(metric: score, from: "2026-01-01", minChange: 0.2, direction: up) {slug}}`:  `{"movers":[{"slug":"a"}]}`,
			`{movers(metric: price, from: "2026-01-01", minChange: 0.51) {slug change percent}}`: `{"movers":[{"slug":"a","change":-6.5,"percent":-40.63}]}`, // −40.625
			`{movers(metric: price, from: "2026-01-01", minChange: 6.51) {slug}}`:                `{"movers":[]}`,
		})
	})
}

// Groups and series have percentiles, and averages of all ratings.
func TestStatisticsOfGroupsAndSeries(t *testing.T) {
	rated := func(slug, price string, score float64, verifiability, obsolescence *float64, day string) *record.Tool {
		t := newTool(slug, price, score)
		t.Verifiability, t.Obsolescence, t.UpdatedAt = verifiability, obsolescence, day
		return t
	}
	number := func(n float64) *float64 { return &n }
	testkit.EachInFull(t, func(t *testing.T, s *store.Store) {
		feedtest.Publish(t, s, feedtest.Catalog("2026-03-01", rated("a", "1 €/mois", 2, number(3), nil, "2026-02-28"), rated("b", "2 €/mois", 4, number(4.25), nil, "2026-02-27"),
			rated("c", "3 €/mois", 5.5, nil, nil, "2026-02-20"), rated("d", "10 €/mois", 9, nil, nil, "2025-03-01")))
		checkResponses(t, newExecutor(s), map[string]string{
			"{toolGroups(by: tier) {p25Score medianScore p75Score p90Score p25MonthlyPrice p75MonthlyPrice p90MonthlyPrice}}": `{"toolGroups":[{"p25Score":3.5,"medianScore":4.75,"p75Score":6.38,"p90Score":7.95,"p25MonthlyPrice":1.75,"p75MonthlyPrice":4.75,"p90MonthlyPrice":7.9}]}`,
			"{toolGroups(by: tier) {avgVerifiability avgObsolescence avgDaysSinceUpdate medianDaysSinceUpdate}}":              `{"toolGroups":[{"avgVerifiability":3.63,"avgObsolescence":null,"avgDaysSinceUpdate":94.25,"medianDaysSinceUpdate":5.5}]}`,
			"{series(metrics: [p25_score, p75_score, p90_score, p25_monthly_price, p75_monthly_price, p90_monthly_price]) {points {value}}}": `{"series":[{"points":[{"value":3.5}]},{"points":[{"value":6.38}]},{"points":[{"value":7.95}]},` +
				`{"points":[{"value":1.75}]},{"points":[{"value":4.75}]},{"points":[{"value":7.9}]}]}`,
			"{series(metrics: [mean_verifiability, mean_obsolescence, mean_days_since_update, median_days_since_update]) {metric points {value}}}": `{"series":[{"metric":"mean_verifiability","points":[{"value":3.63}]},` +
				`{"metric":"mean_obsolescence","points":[{"value":null}]},{"metric":"mean_days_since_update","points":[{"value":94.25}]},{"metric":"median_days_since_update","points":[{"value":5.5}]}]}`,
		})
	})
}

func TestAlternatives(t *testing.T) {
	testkit.EachInFull(t, func(t *testing.T, s *store.Store) {
		untested := feedtest.Tool("u", func(t *record.Tool) { t.Score, t.Price = nil, "20 €/mois" })
		elsewhere := feedtest.Tool("v", func(t *record.Tool) { t.Category = "voix" })
		retired := &record.Retired{Slug: "x", Name: "X", Category: "code", Reason: "mort", RetiredAt: "2026-01-01", Note: "Fermé.", Score: new(6.9)}
		feedtest.Publish(t, s, feedtest.Catalog("2026-04-10", newTool("a", "20 €/mois", 8), newTool("b", "20 €/mois", 7), newTool("c", "10 €/mois", 8), newTool("d", "240 €/an", 8.5), newTool("e", "1 €/heure", 8),
			untested, elsewhere, retired))
		checkResponses(t, newExecutor(s), map[string]string{
			`{tool(slug: "a") {alternatives {slug}}}`:                       `{"tool":{"alternatives":[{"slug":"d"},{"slug":"b"},{"slug":"c"},{"slug":"e"},{"slug":"u"}]}}`,
			`{tool(slug: "u") {alternatives(limit: 3) {slug}}}`:             `{"tool":{"alternatives":[{"slug":"a"},{"slug":"b"},{"slug":"d"}]}}`,
			`{tool(slug: "v") {alternatives {slug}}}`:                       `{"tool":{"alternatives":[]}}`,
			`{retiredTool(slug: "x") {alternatives(limit: 2) {slug name}}}`: `{"retiredTool":{"alternatives":[{"slug":"b","name":"Outil b"},{"slug":"a","name":"Outil a"}]}}`,
			`{tools(filter: {slugs: ["a", "b"]}) {items {one: alternatives(limit: 1) {slug alternatives(limit: 1) {slug}} two: alternatives(limit: 2) {slug}}}}`: `{"tools":{"items":[` +
				`{"one":[{"slug":"d","alternatives":[{"slug":"a"}]}],"two":[{"slug":"d"},{"slug":"b"}]},{"one":[{"slug":"a","alternatives":[{"slug":"d"}]}],"two":[{"slug":"a"},{"slug":"d"}]}]}}`,
		})
	})
}
