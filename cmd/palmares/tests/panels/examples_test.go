package panels_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"palmares/graph"
	"palmares/graph/graphtest"
	"palmares/internal/catalog/feed/feedtest"
	"palmares/internal/core/store"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
	"palmares/internal/web/apidocs"
)

// examples are the expected responses of further examples, by their titles.
var examples = map[string]struct {
	variables object
	want      func(*world) any
}{
	"Alternatives to the best tools": {nil, func(w *world) any {
		best := w.slugs(func(tool) bool { return true })
		slices.SortStableFunc(best, func(a, b string) int { return w.newest().tools[b].score - w.newest().tools[a].score })
		var items list
		for _, slug := range best[:3] {
			t := w.newest().tools[slug]
			item := object{"name": "Outil " + slug, "score": hundredths(t.score * 10), "monthlyPrice": hundredths(t.monthly()), "alternatives": list{}}
			for _, other := range w.alternatives(slug, 5) {
				o := w.newest().tools[other]
				item["alternatives"] = append(item["alternatives"].(list), object{"slug": other, "name": "Outil " + other, "score": hundredths(o.score * 10), "monthlyPrice": hundredths(o.monthly())})
			}
			items = append(items, item)
		}
		return object{"tools": object{"items": items}}
	}},
	"Percentiles of prices and scores by category": {nil, func(w *world) any {
		groups := map[[2]string][]tool{}
		for _, t := range w.newest().tools {
			groups[[2]string{t.category}] = append(groups[[2]string{t.category}], t)
		}
		return object{"toolGroups": rows(groups, func(k [2]string, tools []tool) object {
			prices, scores := prices(tools), scores(tools)
			return object{"key": k[0], "count": len(tools), "avgDaysSinceUpdate": mean(daysSince(tools, w.newest().date)),
				"p25MonthlyPrice": percentile(25, prices), "medianMonthlyPrice": median(prices), "p75MonthlyPrice": percentile(75, prices), "p90MonthlyPrice": percentile(90, prices),
				"p25Score": percentile(25, scores), "medianScore": median(scores), "p75Score": percentile(75, scores), "p90Score": percentile(90, scores)}
		})}
	}},
	"Retirements by month, with months without any": {object{"since": "2026-03-10"}, func(w *world) any {
		counts, first, last := map[string]int{}, "9999", w.newest().date
		for _, d := range w.newest().retired {
			first, last = min(first, d.at), max(last, d.at)
			if d.at >= "2026-03-10" {
				counts[d.at[:7]]++
			}
		}
		groups := list{}
		for month, _ := time.Parse("2006-01", max(first, "2026-03")[:7]); month.Format("2006-01") <= last[:7]; month = month.AddDate(0, 1, 0) {
			name := month.Format("2006-01")
			groups = append(groups, object{"period": name, "start": name + "-01", "end": month.AddDate(0, 1, -1).Format(time.DateOnly), "count": counts[name]})
		}
		return object{"retirementGroups": groups}
	}},
}

// alternatives returns the nearest tools of the same category. A tenth of a point is as
// far as a euro: 100 cents.
func (w *world) alternatives(slug string, limit int) []string {
	t := w.newest().tools[slug]
	others := w.slugs(func(other tool) bool { return other.category == t.category })
	others = slices.DeleteFunc(others, func(other string) bool { return other == slug })
	distance := func(slug string) (lacks, far int) {
		other := w.newest().tools[slug]
		for _, values := range [][2]int{{t.score * 100, other.score * 100}, {t.monthly(), other.monthly()}} {
			switch {
			case values[0] >= 0 && values[1] >= 0:
				far += max(values[0]-values[1], values[1]-values[0])
			case values[0] >= 0:
				lacks++
			}
		}
		return lacks, far
	}
	slices.SortStableFunc(others, func(a, b string) int {
		lacksA, farA := distance(a)
		lacksB, farB := distance(b)
		return cmp.Or(lacksA-lacksB, farA-farB, strings.Compare(a, b))
	})
	return others[:min(limit, len(others))]
}

func TestExamples(t *testing.T) {
	for _, seed := range []uint64{5, 6} {
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
					if known, ok := examples[example.Title]; ok {
						tested++
						checkResponse(t, e, example.Query, known.variables, known.want(w))
					}
				}
				check.Equal(t, tested, len(examples), "examples")
				checkIncreases(t, e, w)
				var items list
				for _, slug := range w.slugs(func(tool) bool { return true }) {
					nearest := list{}
					for _, other := range w.alternatives(slug, 20) {
						nearest = append(nearest, object{"slug": other})
					}
					items = append(items, object{"slug": slug, "alternatives": nearest})
				}
				checkResponse(t, e, "{tools(limit: 40, sort: name_asc) {items {slug alternatives(limit: 20) {slug}}}}", nil, object{"tools": object{"items": items}})
			})
		})
	}
}

// checkIncreases filters tools by the number of their price increases.
func checkIncreases(t *testing.T, e *graph.Executor, w *world) {
	t.Helper()
	for _, since := range []string{"2026-01-01", "2026-04-12"} {
		for least := 1; least <= 3; least++ {
			found := list{}
			for _, slug := range w.slugs(func(tool) bool { return true }) {
				rises := 0
				for _, change := range w.prices[slug] {
					if change.direction == "up" && change.day >= since {
						rises++
					}
				}
				if rises >= least {
					found = append(found, object{"slug": slug})
				}
			}
			query := fmt.Sprintf("{tools(limit: 200, sort: name_asc, filter: {priceIncreases: {min: %d, since: %q}}) {items {slug}}}", least, since)
			checkResponse(t, e, query, nil, object{"tools": object{"items": found}})
		}
	}
}
