package release_test

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"palmares/ent"
	"palmares/internal/catalog/feed/feedtest"
	"palmares/internal/catalog/feed/synth"
	"palmares/internal/catalog/pricing"
	"palmares/internal/catalog/record"
	"palmares/internal/catalog/release"
	"palmares/internal/core/store"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
)

// exact returns the decimal number that a number was written as.
func exact(number float64) *big.Rat {
	exact, _ := new(big.Rat).SetString(strconv.FormatFloat(number, 'f', -1, 64))
	return exact
}

// rounded rounds to two decimals, and halves away from zero.
func rounded(number *big.Rat) float64 {
	hundredths := new(big.Rat).Mul(new(big.Rat).Abs(number), big.NewRat(100, 1))
	hundredths.Add(hundredths, big.NewRat(1, 2))
	whole := new(big.Int).Quo(hundredths.Num(), hundredths.Denom())
	result, _ := new(big.Rat).SetFrac(whole, big.NewInt(100)).Float64()
	if number.Sign() < 0 {
		return -result
	}
	return result
}

// growing publishes releases that add, change and remove tools, and returns a catalog.
func growing(t testing.TB, s *store.Store) *release.Catalog {
	t.Helper()
	for i, tools := range []int{120, 150, 140, 165} {
		feedtest.Publish(t, s, feedtest.Synthetic(t, synth.Options{Tools: tools, Seed: 4, Revision: 20 * i}))
	}
	return newCatalog(s)
}

func monthlyPrice(row *ent.Tool) float64 {
	return pricing.Monthly(row.PriceAmount, pricing.Period(row.PricePeriod))
}

// naiveMeasures are the numbers that metrics describe, or NaN.
var naiveMeasures = map[string]func(row *ent.Tool, date string) float64{
	"score":         func(row *ent.Tool, _ string) float64 { return orNaN(row.Score) },
	"monthly_price": func(row *ent.Tool, _ string) float64 { return monthlyPrice(row) },
	"verifiability": func(row *ent.Tool, _ string) float64 { return orNaN(row.Verifiability) },
	"obsolescence":  func(row *ent.Tool, _ string) float64 { return orNaN(row.Obsolescence) },
	"days_since_update": func(row *ent.Tool, date string) float64 {
		then, _ := time.Parse(time.DateOnly, row.UpdatedAt)
		now, _ := time.Parse(time.DateOnly, date)
		return now.Sub(then).Hours() / 24
	},
}

func orNaN(number *float64) float64 {
	if number == nil {
		return math.NaN()
	}
	return *number
}

// naiveStatistic computes a statistic of sorted numbers with fractions.
func naiveStatistic(name string, numbers []float64) any {
	if len(numbers) == 0 {
		return nil
	}
	percents := map[string]int64{"median": 50, "p25": 25, "p75": 75, "p90": 90}
	switch name {
	case "min":
		return numbers[0]
	case "max":
		return numbers[len(numbers)-1]
	case "mean":
		sum := new(big.Rat)
		for _, number := range numbers {
			sum.Add(sum, exact(number))
		}
		return rounded(sum.Quo(sum, big.NewRat(int64(len(numbers)), 1)))
	}
	place := big.NewRat(percents[name]*int64(len(numbers)-1), 100)
	below := int(new(big.Int).Quo(place.Num(), place.Denom()).Int64())
	low, high := exact(numbers[below]), exact(numbers[min(below+1, len(numbers)-1)])
	share := place.Sub(place, big.NewRat(int64(below), 1))
	return rounded(low.Add(low, share.Mul(share, high.Sub(high, low))))
}

// statisticNames are the names of all metrics that describe numbers.
func statisticNames() (names []string) {
	for _, statistic := range []string{"min", "mean", "median", "p25", "p75", "p90", "max"} {
		for measure := range naiveMeasures {
			names = append(names, statistic+"_"+measure)
		}
	}
	return names
}

// naiveMetric computes a metric for some rows of a release.
func naiveMetric(name string, rows []*ent.Tool, date string) any {
	statistic, measure, _ := strings.Cut(name, "_")
	var numbers []float64
	for _, row := range rows {
		if number := naiveMeasures[measure](row, date); !math.IsNaN(number) {
			numbers = append(numbers, number)
		}
	}
	slices.Sort(numbers)
	return naiveStatistic(statistic, numbers)
}

func valueOf(number *float64) any {
	if number == nil {
		return nil
	}
	return *number
}

func metricsNamed(t testing.TB, names []string) (metrics []release.Metric) {
	t.Helper()
	for _, name := range names {
		metric, ok := release.MetricNamed(name)
		check.MustTrue(t, ok, "got no metric %s, want one", name)
		metrics = append(metrics, metric)
	}
	return metrics
}

// Groups have the numbers that a scan of the rows gives.
func TestGroupsMatchScan(t *testing.T) {
	s := testkit.Open(t, testkit.SQLite(t))
	newest := load(t, growing(t, s))
	rows := scanRelease(t, s, newest.Number()).tools
	names := statisticNames()
	for by, keyOf := range map[string]func(*ent.Tool) string{
		"category": func(row *ent.Tool) string { return row.CategorySlug }, "pricing": func(row *ent.Tool) string { return string(row.Pricing) },
		"icp": func(row *ent.Tool) string { return string(row.Icp) }, "tier": func(row *ent.Tool) string { return fmt.Sprint(row.Tier) },
		"billing_period": func(row *ent.Tool) string { return pricing.Period(row.PricePeriod) },
	} {
		want := map[[2]string][]*ent.Tool{}
		for _, row := range rows {
			if row.RetiredAt == "" {
				key := [2]string{keyOf(row), fmt.Sprint(row.Tier)}
				want[key] = append(want[key], row)
			}
		}
		groups := newest.GroupTools(newest.Sorted(release.ByScore), metricsNamed(t, names), release.Key(by), release.Key("tier"))
		check.Equal(t, len(groups), len(want), "%s: groups", by)
		for i, g := range groups {
			of, tested := want[g.Keys], 0
			for _, row := range of {
				if row.Score != nil {
					tested++
				}
			}
			if g.Count != len(of) || g.Tested != tested || i > 0 && slices.Compare(groups[i-1].Keys[:], g.Keys[:]) >= 0 {
				t.Errorf("%s %q: got %d tools, %d tested, want %d and %d, after %v", by, g.Keys, g.Count, g.Tested, len(of), tested, groups[max(0, i-1)].Keys)
			}
			for m, name := range names {
				check.Equal(t, valueOf(g.Values[m]), naiveMetric(name, of, newest.Info.FeedDate), "%s %q: %s", by, g.Keys, name)
			}
		}
	}
	for _, name := range []string{"mean", "mean_price", "p50_score", "score", ""} {
		_, ok := release.MetricNamed(name)
		check.True(t, !ok, "got a metric %q, want none", name)
	}
}

// Series have the numbers that scans of all releases give.
func TestSeriesMatchScan(t *testing.T) {
	s := testkit.Open(t, testkit.SQLite(t))
	newest := load(t, growing(t, s))
	names := append(statisticNames(), "count", "tested", "additions", "retirements")
	active := map[int]map[string]*ent.Tool{}
	for _, info := range newest.All {
		active[info.ID] = map[string]*ent.Tool{}
		for _, row := range scanRelease(t, s, info.ID).tools {
			if row.RetiredAt == "" {
				active[info.ID][row.ID] = row
			}
		}
	}
	for _, interval := range []string{release.Week, release.Month, release.Quarter, release.ByRelease} {
		points := check.Try(release.Points(newest.Readable(), interval, "", "")).OK(t)
		for _, firstImport := range []bool{false, true} {
			series := newest.Series(points, metricsNamed(t, names), release.Key("category"), nil, firstImport)
			check.MustTrue(t, len(series) != 0 && len(series)%len(names) == 0, "%s: got %d series, want some for each of %d metrics", interval, len(series), len(names))
			for _, one := range series {
				before := 0
				for i, p := range points {
					want := naivePoint(names[one.Metric], active, before, newest.Numbered(p.Release), one.Key, firstImport)
					if got := valueOf(one.Values[i]); got != want {
						t.Errorf("%s %s of %s: got %v in %s, want %v", interval, names[one.Metric], one.Key, got, p.Name, want)
					}
					before = p.Release
				}
			}
		}
	}
}

// naivePoint computes a metric at a release, for the active tools of each release.
func naivePoint(name string, active map[int]map[string]*ent.Tool, before int, now *ent.Release, category string, firstImport bool) any {
	var rows []*ent.Tool
	tested, added := 0, 0
	for _, row := range active[now.ID] {
		if row.CategorySlug == category {
			if rows = append(rows, row); row.Score != nil {
				tested++
			}
		}
	}
	for number := before + 1; number <= now.ID; number++ {
		for slug, row := range active[number] {
			if _, was := active[number-1][slug]; !was && row.CategorySlug == category && (number > 1 || firstImport) {
				added++
			}
		}
	}
	switch name {
	case "count":
		return float64(len(rows))
	case "tested":
		return float64(tested)
	case "additions":
		return float64(added)
	case "retirements":
		return 0.0 // these catalogs only remove tools
	}
	return naiveMetric(name, rows, now.FeedDate)
}

// naivePeriod returns the name, the first and the last day of a period.
func naivePeriod(day, interval string) [3]string {
	name := func(date time.Time) string {
		switch year, week := date.ISOWeek(); interval {
		case release.Week:
			return fmt.Sprintf("%d-W%02d", year, week)
		case release.Quarter:
			return fmt.Sprintf("%d-Q%d", date.Year(), (int(date.Month())+2)/3)
		}
		return date.Format("2006-01")
	}
	date, _ := time.Parse(time.DateOnly, day)
	first, last := date, date
	for name(first.AddDate(0, 0, -1)) == name(date) {
		first = first.AddDate(0, 0, -1)
	}
	for name(last.AddDate(0, 0, 1)) == name(date) {
		last = last.AddDate(0, 0, 1)
	}
	return [3]string{name(date), first.Format(time.DateOnly), last.Format(time.DateOnly)}
}

// naivePeriods returns the periods of all days from the first to the last.
func naivePeriods(first, last, interval string) (periods [][3]string) {
	for date, _ := time.Parse(time.DateOnly, first); date.Format(time.DateOnly) <= last; date = date.AddDate(0, 0, 1) {
		if p := naivePeriod(date.Format(time.DateOnly), interval); !slices.Contains(periods, p) {
			periods = append(periods, p)
		}
	}
	return periods
}

// dated is something that is counted by its day and its group.
type dated struct{ day, group string }

// naiveCounts counts what happened in each period, with a zero for each period without
// any, in order.
func naiveCounts(all []dated, interval, since, before, releaseDate string, empty bool) (counts []string) {
	days, groups, periods := []string{}, map[string]bool{}, [][3]string{}
	number := map[string]int{}
	for _, one := range all {
		days = append(days, one.day)
		if (since == "" || one.day >= since) && (before == "" || one.day < before) {
			groups[one.group] = true
			p := naivePeriod(one.day, interval)
			number[p[0]+one.group]++
			if !slices.Contains(periods, p) {
				periods = append(periods, p)
			}
		}
	}
	if empty {
		last := max(slices.Max(days), releaseDate)
		if before != "" {
			date, _ := time.Parse(time.DateOnly, before)
			last = min(last, date.AddDate(0, 0, -1).Format(time.DateOnly))
		}
		periods = naivePeriods(max(slices.Min(days), since), last, interval)
	}
	slices.SortFunc(periods, func(a, b [3]string) int { return strings.Compare(a[1], b[1]) })
	for _, p := range periods {
		for _, group := range slices.Sorted(maps.Keys(groups)) {
			if n := number[p[0]+group]; n > 0 || empty {
				counts = append(counts, fmt.Sprint(p, group, n))
			}
		}
	}
	return counts
}

// Retirements, price changes and comparisons are counted by period as in a scan, with
// and without periods in which there was nothing.
func TestCountsByPeriodMatchScan(t *testing.T) {
	s := testkit.Open(t, testkit.SQLite(t))
	newest := load(t, growing(t, s))
	rows, date := scanRelease(t, s, newest.Number()), newest.Info.FeedDate
	var retirements, prices, comparisons []dated
	for _, row := range rows.tools {
		if row.RetiredAt != "" {
			retirements = append(retirements, dated{row.RetiredAt, string(row.RetiredReason)})
			continue
		}
		for _, change := range rows.prices[row.ID] {
			prices = append(prices, dated{change.ChangedAt, row.CategorySlug})
		}
	}
	for _, row := range rows.comparisons {
		comparisons = append(comparisons, dated{row.UpdatedAt, ""})
	}
	compare := func(what string, got []string, want []string) {
		t.Helper()
		check.Slices(t, got, want, what)
		check.True(t, len(want) != 0, "%s:\ngot  %q\nwant %q", what, got, want)
	}
	shown := func(p release.Period, group string, n int) string {
		return fmt.Sprint([3]string{p.Name, p.Start, p.End}, group, n)
	}
	for _, empty := range []bool{false, true} {
		periods := func(of, interval, since, before string) []release.Period {
			if !empty {
				return nil
			}
			return check.Try(newest.Periods(of, interval, since, before)).OK(t)
		}
		for _, interval := range []string{release.Week, release.Month, release.Quarter} {
			for _, limits := range [][2]string{{"", ""}, {"2023-03-05", ""}, {"1999-01-01", "2023-09-04"}} {
				since, before := limits[0], limits[1]
				filter := release.RetiredFilter{}
				if since != "" {
					filter.Since = &since
				}
				if before != "" {
					filter.Before = &before
				}
				var got []string
				for _, c := range release.CountRetirements(newest.MatchingRetired(filter), interval, []string{"reason"},
					periods(release.Retirements, interval, since, before)) {
					got = append(got, shown(c.Period, c.Reason, c.Count))
				}
				compare(fmt.Sprint("retirements by ", interval, " ", limits), got, naiveCounts(retirements, interval, since, before, date, empty))
			}
		}
		for _, since := range []string{"", "2024-06-15"} {
			var got []string
			for _, c := range newest.CountPriceChanges(nil, func(c *release.PriceChange) bool { return c.ChangedAt >= since },
				periods(release.PriceChanges, release.Month, since, ""), false) {
				got = append(got, shown(c.Month, c.Category, c.Count))
			}
			compare("price changes since "+since, got, naiveCounts(prices, release.Month, since, "", date, empty))
		}
		var got []string
		for _, c := range release.GroupComparisons(newest.Comparisons, "month", "key_asc", 0, periods(release.ComparisonUpdates, release.Month, "", "")) {
			got = append(got, shown(c.Period, "", c.Count))
			check.Equal(t, c.Key, c.Period.Name, "key")
		}
		compare("comparisons", got, naiveCounts(comparisons, release.Month, "", "", date, empty))
	}
	_, err := newest.Periods(release.Retirements, release.Week, "", "")
	check.Equal(t, err, nil)
}

// Prices from and to zero count, without a percentage of nothing. The other figures of
// movers are compared with SQL in test/properties/panels.
func TestMoversToAndFromFree(t *testing.T) {
	s := testkit.Open(t, testkit.SQLite(t))
	for _, prices := range [][2]string{{"20 €/mois", "0 €/mois"}, {"0 €/mois", "5 €/mois"}} {
		tools := []any{}
		for i, slug := range []string{"a", "b"} {
			tools = append(tools, feedtest.Tool(slug, func(t *record.Tool) { t.Price = prices[i] }))
		}
		feedtest.Publish(t, s, feedtest.Catalog("2026-11-01", tools...))
	}
	var got []string
	for _, m := range load(t, newCatalog(s)).Movers(1, 2, "price", 0, nil) {
		got = append(got, fmt.Sprint(m.Slug, m.Change, valueOf(m.Percent)))
	}
	check.Slices(t, got, []string{"a-20 -100", "b5 <nil>"})
}

// Groups can be in the order of their wins.
func TestOrderOfWins(t *testing.T) {
	a, b, c := &release.Tool{Slug: "a"}, &release.Tool{Slug: "b"}, &release.Tool{Slug: "c"}
	duels := []*release.Comparison{{A: a, B: b, Best: b}, {A: a, B: c, Best: c}, {A: b, B: c, Best: c}}
	groups := release.GroupComparisons(duels, "tool", "wins_desc", 0, nil)
	check.Equal(t, groups[0].Key+groups[1].Key+groups[2].Key, "cba")
	check.Equal(t, (release.Wins{Count: 160, Wins: 3}).Rate(), 0.0188, "rate of for 3 of 160")
}

// Alternatives are the nearest tools of a scan.
func TestAlternativesMatchScan(t *testing.T) {
	s := testkit.Open(t, testkit.SQLite(t))
	newest := load(t, growing(t, s))
	rows := scanRelease(t, s, newest.Number()).tools
	distance := func(a, b float64) *big.Rat {
		if math.IsNaN(a) || math.IsNaN(b) {
			return new(big.Rat)
		}
		return new(big.Rat).Abs(new(big.Rat).Sub(exact(a), exact(b)))
	}
	found := 0
	for _, row := range rows {
		price := monthlyPrice(row)
		if row.RetiredAt != "" {
			price = math.NaN()
		}
		lacks := func(other *ent.Tool) (n int) {
			if row.Score != nil && other.Score == nil {
				n++
			}
			if !math.IsNaN(price) && math.IsNaN(monthlyPrice(other)) {
				n++
			}
			return n
		}
		far := func(other *ent.Tool) *big.Rat {
			euros := distance(price, monthlyPrice(other))
			return euros.Add(euros.Mul(euros, big.NewRat(1, 10)), distance(orNaN(row.Score), orNaN(other.Score)))
		}
		others := slices.DeleteFunc(slices.Clone(rows), func(other *ent.Tool) bool {
			return other.ID == row.ID || other.CategorySlug != row.CategorySlug || other.RetiredAt != ""
		})
		slices.SortFunc(others, func(a, b *ent.Tool) int {
			return cmp.Or(lacks(a)-lacks(b), far(a).Cmp(far(b)), strings.Compare(a.ID, b.ID))
		})
		for _, limit := range []int{1, 5, 50} {
			var want []string
			for _, other := range others[:min(limit, len(others))] {
				want = append(want, other.ID)
			}
			check.Slices(t, slugsOf(newest.Alternatives(newest.Tool(row.ID), limit)), want, "%d alternatives to %s", limit, row.ID)
			found += len(want)
		}
	}
	check.True(t, found != 0, "got no alternatives at all, want some")
}
