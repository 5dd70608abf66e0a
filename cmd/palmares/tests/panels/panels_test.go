package panels_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"palmares/auth"
	"palmares/graph"
	"palmares/graph/graphtest"
	"palmares/internal/catalog/feed/feedtest"
	"palmares/internal/core/store"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
	"palmares/internal/web/apidocs"
)

// object and list are what JSON decodes to.
type (
	object = map[string]any
	list   = []any
)

// maxCost is what a panel may cost in a catalog of 5,000 tools.
const maxCost = 2_000

// panels are the expected responses of the explorer's panels, by the start of their
// titles.
var panels = map[string]struct {
	variables object
	want      func(*world) any
}{
	"score-movers": {object{"from": "2026-03-02"}, func(w *world) any {
		return object{"movers": w.movers(2, 7, func(t tool) int { return t.score * 10 }, false, "before", "after", "change", "slug", "tool")}
	}},
	"price-drops": {object{"from": "2026-02-01"}, func(w *world) any {
		return object{"movers": w.movers(0, 7, tool.monthly, true, "before", "after", "change", "percent", "slug", "tool")}
	}},
	"scores-by-category-and-month": {nil, func(w *world) any {
		return object{"series": w.series(monthly, "mean_score", func(t tool) string { return t.category }, "key", "period", "value")}
	}},
	"scores-by-pricing": {nil, func(w *world) any {
		return object{"free": w.histogram("gratuit"), "freemium": w.histogram("freemium"), "paid": w.histogram("payant")}
	}},
	"retirements": {nil, func(w *world) any {
		counts := map[[2]string]int{}
		for _, d := range w.newest().retired {
			var month int
			fmt.Sscanf(d.at[5:7], "%d", &month)
			counts[[2]string{fmt.Sprintf("%s-Q%d", d.at[:4], (month+2)/3), d.reason}]++
		}
		return object{"retirementGroups": rows(counts, func(k [2]string, n int) object {
			return object{"period": k[0], "reason": k[1], "count": n}
		})}
	}},
	"good-and-affordable": {nil, func(w *world) any {
		slugs := w.slugs(func(t tool) bool {
			free := t.pricing == "gratuit" || t.cents == 0 // whatever the period of the price
			return (free || t.monthly() >= 0 && t.monthly() <= 2000) && t.score >= 80
		})
		price := func(slug string) int { // missing ones last
			if cents := w.newest().tools[slug].monthly(); cents >= 0 {
				return cents
			}
			return math.MaxInt
		}
		slices.SortStableFunc(slugs, func(a, b string) int { return cmp.Compare(price(a), price(b)) })
		var items list
		for _, slug := range slugs {
			t := w.newest().tools[slug]
			billing := map[string]string{"mois": "month", "an": "year", "poste / mois": "seat_month", "heure": "hour", "requête": "use", "lune": "other"}[t.period]
			items = append(items, object{"slug": slug, "name": "Outil " + slug, "score": hundredths(t.score * 10), "price": t.price(),
				"monthlyPrice": hundredths(t.monthly()), "billingPeriod": billing})
		}
		return object{"tools": object{"meta": object{"total": len(slugs)}, "items": firstOf(items, 20)}}
	}},
	"compared-with": {object{"tool": "t03"}, func(w *world) any {
		var items list
		for _, slug := range w.duelSlugs(func(d duel) bool { return d.a == "t03" || d.b == "t03" }) {
			d := w.newest().duels[slug]
			items = append(items, object{"slug": slug, "toolA": w.compared(d.a), "toolB": w.compared(d.b), "winnerName": "Outil " + d.winner})
		}
		return object{"comparisons": object{"meta": object{"total": len(items)}, "items": firstOf(items, 20)}}
	}},
	"win-rates": {nil, func(w *world) any {
		count, wins := map[string]int{}, map[string]int{}
		for _, d := range w.newest().duels {
			count[d.a]++
			count[d.b]++
			wins[d.winner]++
		}
		rate := func(slug string) int { return (2*wins[slug]*10_000 + count[slug]) / (2 * count[slug]) }
		slugs := slices.SortedFunc(maps.Keys(count), func(a, b string) int { return cmp.Or(rate(b)-rate(a), strings.Compare(a, b)) })
		var groups list
		for _, slug := range slugs {
			groups = append(groups, object{"key": slug, "count": count[slug], "wins": wins[slug], "winRate": float64(rate(slug)) / 10_000})
		}
		return object{"comparisonGroups": firstOf(groups, 50)}
	}},
	"newest-tools": {nil, func(w *world) any {
		var nodes list
		for _, slug := range slices.Backward(w.created) {
			var tool any
			if t, active := w.newest().tools[slug]; active {
				tool = object{"name": "Outil " + slug, "score": hundredths(t.score * 10), "category": object{"label": "Catégorie " + t.category}, "monthlyPrice": hundredths(t.monthly())}
			}
			nodes = append(nodes, object{"slug": slug, "tool": tool})
		}
		return object{"changes": object{"nodes": firstOf(nodes, 10)}}
	}},
	"price-increases": {nil, func(w *world) any {
		counts := map[[2]string]int{}
		for slug, changes := range w.prices {
			for _, change := range changes {
				if t, active := w.newest().tools[slug]; active && change.direction == "up" {
					counts[[2]string{change.day[:7], t.category}]++
				}
			}
		}
		return object{"priceChangeCounts": rows(counts, func(k [2]string, n int) object { return object{"month": k[0], "category": k[1], "count": n} })}
	}},
	"key-figures": {object{"from": "2026-10-01"}, func(w *world) any {
		var all list
		for _, metric := range []string{"count", "tested", "mean_score", "mean_monthly_price", "additions", "retirements"} {
			for _, s := range w.series(monthly, metric, func(tool) string { return "" }, "metric", "period", "value") {
				points := s.(object)["points"].(list)
				s.(object)["points"] = points[len(points)-2:] // October and November
				all = append(all, s)
			}
		}
		return object{"series": all}
	}},
	"category-by-pricing": {nil, func(w *world) any {
		groups := map[[2]string][]tool{}
		for _, t := range w.newest().tools {
			key := [2]string{t.category, t.pricing}
			groups[key] = append(groups[key], t)
		}
		return object{"toolGroups": rows(groups, func(k [2]string, tools []tool) object {
			return object{"key": k[0], "thenKey": k[1], "count": len(tools), "avgScore": mean(scores(tools))}
		})}
	}},
	"not-updated": {object{"before": "2026-07-01"}, func(w *world) any {
		slugs := w.slugs(func(t tool) bool { return t.updatedAt < "2026-07-01" })
		slices.SortStableFunc(slugs, func(a, b string) int {
			return strings.Compare(w.newest().tools[a].updatedAt, w.newest().tools[b].updatedAt)
		})
		var items list
		for _, slug := range slugs {
			items = append(items, object{"slug": slug, "name": "Outil " + slug, "updatedAt": w.newest().tools[slug].updatedAt, "score": hundredths(w.newest().tools[slug].score * 10)})
		}
		return object{"tools": object{"meta": object{"total": len(slugs)}, "items": firstOf(items, 20)}}
	}},
	"monthly-prices": {nil, func(w *world) any {
		groups := map[[2]string][]tool{}
		for _, t := range w.newest().tools {
			groups[[2]string{t.category}] = append(groups[[2]string{t.category}], t)
		}
		return object{"toolGroups": rows(groups, func(k [2]string, tools []tool) object {
			prices := prices(tools)
			group := object{"key": k[0], "minMonthlyPrice": nil, "avgMonthlyPrice": mean(prices), "medianMonthlyPrice": median(prices), "maxMonthlyPrice": nil}
			if len(prices) > 0 {
				group["minMonthlyPrice"], group["maxMonthlyPrice"] = hundredths(slices.Min(prices)), hundredths(slices.Max(prices))
			}
			return group
		})}
	}},
	"growth": {nil, func(w *world) any {
		var all list
		for _, metric := range []string{"count", "additions", "retirements"} {
			all = append(all, w.series(byRelease, metric, func(tool) string { return "" }, "metric", "period", "start", "value")...)
		}
		return object{"series": all}
	}},
}

func TestPanels(t *testing.T) {
	for _, seed := range []uint64{1, 2, 3} {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			w := randomWorld(seed)
			testkit.EachInFull(t, func(t *testing.T, s *store.Store) {
				for _, c := range w.releases {
					feedtest.Publish(t, s, c.feed())
				}
				e := graphtest.New(graph.Config{Catalog: s, Tools: func() int { return 5_000 }})
				tested := 0
				for _, example := range apidocs.Examples {
					if name, isPanel := strings.CutPrefix(example.Name, "panel-"); isPanel {
						tested++
						checkPanel(t, e, w, name, example.Query)
					}
				}
				check.Equal(t, tested, len(panels), "panels")
			})
		})
	}
}

// Every interval, group and metric of series, with and without a filter.
func TestSeries(t *testing.T) {
	groups := map[string]func(tool) string{
		"none":     func(tool) string { return "" },
		"category": func(t tool) string { return t.category },
		"pricing":  func(t tool) string { return t.pricing },
		"icp":      func(t tool) string { return t.icp },
		"tier":     func(t tool) string { return strconv.Itoa(t.tier) },
		"billing_period": func(t tool) string {
			return map[string]string{"mois": "month", "an": "year", "poste / mois": "seat_month", "heure": "hour", "requête": "use", "lune": "other"}[t.period]
		},
	}
	metrics := []string{"count", "tested", "mean_score", "median_score", "mean_monthly_price", "median_monthly_price", "additions", "retirements",
		"p25_score", "p75_score", "p90_score", "p25_monthly_price", "p75_monthly_price", "p90_monthly_price", "mean_days_since_update", "median_days_since_update"}
	w := randomWorld(4)
	testkit.EachInFull(t, func(t *testing.T, s *store.Store) {
		for _, c := range w.releases {
			feedtest.Publish(t, s, c.feed())
		}
		e := graphtest.New(graph.Config{Catalog: s})
		for _, every := range []interval{weekly, monthly, quarterly, byRelease} {
			for by, keyOf := range groups {
				for _, metric := range metrics {
					query := fmt.Sprintf("{series(metrics: [%s], by: %s, every: %s) {key points {period start end value}}}", metric, by, every)
					want := w.series(every, metric, keyOf, "key", "period", "start", "end", "value")
					if by == "none" {
						want[0].(object)["key"] = nil
					}
					checkResponse(t, e, query, nil, object{"series": want})
				}
			}
		}
		// Earlier releases show the same points up to their own date.
		for release := range len(w.releases) {
			then := &world{releases: w.releases[:release+1]}
			query := fmt.Sprintf("query @asOf(release: %d) {series(metrics: [count], every: release) {points {period start value}}}", release+1)
			checkResponse(t, e, query, nil, object{"series": then.series(byRelease, "count", groups["none"], "period", "start", "value")})
		}
	})
}

func checkPanel(t *testing.T, e *graph.Executor, w *world, name, query string) {
	t.Helper()
	panel, known := panels[name]
	if !known {
		t.Errorf("%s: got no entry in panels, want one", name)
		return
	}
	if cost := checkResponse(t, e, query, panel.variables, panel.want(w)); cost >= maxCost {
		t.Errorf("%s: got a cost of %d, want less than %d", name, cost, maxCost)
	}
}

// checkResponse executes a query, compares its response and returns its cost.
func checkResponse(t *testing.T, e *graph.Executor, query string, variables object, want any) int {
	t.Helper()
	got := e.Execute(auth.WithCaller(t.Context(), auth.Caller{Plan: auth.Anonymous}), graph.Request{Query: query, Variables: variables})
	if len(got.Errors) > 0 {
		t.Errorf("%s: %v", query, got.Errors)
		return 0
	}
	var found, wanted any
	data, err := json.Marshal(want)
	check.OK(t, cmp.Or(err, json.Unmarshal(got.Data, &found), json.Unmarshal(data, &wanted)))
	if dropKeys(found, "id", "publishedAt"); !reflect.DeepEqual(found, wanted) {
		found, _ := json.Marshal(found)
		t.Errorf("%s:\ngot  %s\nwant %s", query, found, data)
	}
	return got.Cost
}

// dropKeys removes values that the feeds do not determine.
func dropKeys(value any, keys ...string) {
	switch v := value.(type) {
	case object:
		for _, key := range keys {
			delete(v, key)
		}
		for _, member := range v {
			dropKeys(member, keys...)
		}
	case list:
		for _, item := range v {
			dropKeys(item, keys...)
		}
	}
}
