package panels_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

func (w *world) newest() catalog { return w.releases[len(w.releases)-1] }

// slugs returns the tools of the newest release that satisfy a condition.
func (w *world) slugs(matches func(tool) bool) (found []string) {
	for slug, t := range w.newest().tools {
		if matches(t) {
			found = append(found, slug)
		}
	}
	slices.Sort(found)
	return found
}

// duelSlugs returns comparisons, most recently updated first.
func (w *world) duelSlugs(matches func(duel) bool) (found []string) {
	duels := w.newest().duels
	for slug, d := range duels {
		if matches(d) {
			found = append(found, slug)
		}
	}
	slices.SortFunc(found, func(a, b string) int {
		if c := strings.Compare(duels[b].updatedAt, duels[a].updatedAt); c != 0 {
			return c
		}
		return strings.Compare(a, b)
	})
	return found
}

func (w *world) compared(slug string) object {
	score := any(nil)
	if t, active := w.newest().tools[slug]; active {
		score = hundredths(t.score * 10)
	}
	return object{"slug": slug, "name": "Outil " + slug, "score": score}
}

func (w *world) histogram(pricing string) (bins list) {
	for bin := range 10 {
		count := 0
		for _, t := range w.newest().tools {
			if t.pricing == pricing && t.score >= 0 && min(t.score/10, 9) == bin {
				count++
			}
		}
		bins = append(bins, object{"from": bin, "to": bin + 1, "count": count})
	}
	return bins
}

// movers compares two releases, numbered from 0. Values are in hundredths, and
// negative for none.
func (w *world) movers(from, to int, value func(tool) int, onlyDrops bool, fields ...string) (movers list) {
	type mover struct {
		slug          string
		before, after int
	}
	var all []mover
	for slug, then := range w.releases[from].tools {
		now, active := w.releases[to].tools[slug]
		before, after := value(then), value(now)
		if active && before >= 0 && after >= 0 && before != after && (!onlyDrops || after < before) {
			all = append(all, mover{slug, before, after})
		}
	}
	size := func(m mover) int { return max(m.after-m.before, m.before-m.after) }
	slices.SortFunc(all, func(a, b mover) int {
		if c := size(b) - size(a); c != 0 {
			return c
		}
		return strings.Compare(a.slug, b.slug)
	})
	for _, m := range all {
		tool := object{"name": "Outil " + m.slug}
		if t, active := w.newest().tools[m.slug]; active && !onlyDrops {
			tool["category"] = object{"label": "Catégorie " + t.category}
		}
		values := object{"slug": m.slug, "before": hundredths(m.before), "after": hundredths(m.after), "change": float64(m.after-m.before) / 100,
			"percent": nil, "tool": tool}
		if m.before > 0 {
			values["percent"] = float64(divide((m.after-m.before)*10_000, m.before)) / 100
		}
		movers = append(movers, only(values, fields))
	}
	return firstOf(movers, 10)
}

// interval is how often a series has a point.
type interval string

const (
	weekly    interval = "week"
	monthly   interval = "month"
	quarterly interval = "quarter"
	byRelease interval = "release"
)

// name returns the period of a day.
func (every interval) name(day time.Time) string {
	switch year, week := day.ISOWeek(); every {
	case weekly:
		return fmt.Sprintf("%d-W%02d", year, week)
	case quarterly:
		return fmt.Sprintf("%d-Q%d", day.Year(), (int(day.Month())+2)/3)
	}
	return day.Format("2006-01")
}

// point is a period with its release and the one of the period before, numbered
// from 0; -1 for none.
type point struct {
	period, start, end string
	before, release    int
}

// points goes through all days from the first to the last feed's, and on to the
// end of the last period.
func (w *world) points(every interval) (points []point) {
	if every == byRelease {
		for i, c := range w.releases {
			points = append(points, point{fmt.Sprint(i + 1), c.date, c.date, i - 1, i})
		}
		return points
	}
	first, _ := time.Parse(time.DateOnly, slices.Min(dates))
	last, _ := time.Parse(time.DateOnly, slices.Max(dates))
	start := first
	for every.name(start.AddDate(0, 0, -1)) == every.name(first) {
		start = start.AddDate(0, 0, -1)
	}
	release := -1
	for day := start; !day.After(last) || every.name(day) == every.name(last); day = day.AddDate(0, 0, 1) {
		if len(points) == 0 || points[len(points)-1].period != every.name(day) {
			points = append(points, point{every.name(day), day.Format(time.DateOnly), "", release, -1})
		}
		for i, c := range w.releases {
			if c.date <= day.Format(time.DateOnly) {
				release = max(release, i)
			}
		}
		points[len(points)-1].end, points[len(points)-1].release = day.Format(time.DateOnly), release
	}
	return points
}

// series computes a metric for each group from the catalogs themselves.
// A group has a series if it had a tool at any point, or one was added or retired
// in between.
func (w *world) series(every interval, metric string, keyOf func(tool) string, fields ...string) (series list) {
	keys, all := map[string]bool{}, w.points(every)
	for i, c := range w.releases {
		for slug, t := range c.tools {
			was := false
			if i > 0 {
				_, was = w.releases[i-1].tools[slug]
			}
			shown := slices.ContainsFunc(all, func(p point) bool { return p.release == i })
			leaves := false
			if i+1 < len(w.releases) {
				_, leaves = w.releases[i+1].retired[slug]
			}
			if shown || !was && i > 0 || leaves {
				keys[keyOf(t)] = true
			}
		}
	}
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		var points list
		for _, p := range all {
			values := object{"period": p.period, "start": p.start, "end": p.end, "value": w.metric(metric, p, func(t tool) bool { return keyOf(t) == key })}
			points = append(points, only(values, fields))
		}
		values := only(object{"key": key, "metric": metric}, fields)
		values["points"] = points
		series = append(series, values)
	}
	return series
}

func (w *world) metric(metric string, p point, matches func(tool) bool) any {
	var tools []tool
	for _, t := range w.releases[p.release].tools {
		if matches(t) {
			tools = append(tools, t)
		}
	}
	switch metric {
	case "count":
		return len(tools)
	case "tested":
		return len(scores(tools))
	case "mean_score":
		return mean(scores(tools))
	case "median_score":
		return median(scores(tools))
	case "mean_monthly_price":
		return mean(prices(tools))
	case "median_monthly_price":
		return median(prices(tools))
	case "p25_score", "p75_score", "p90_score":
		return percentile(percents[metric[:3]], scores(tools))
	case "p25_monthly_price", "p75_monthly_price", "p90_monthly_price":
		return percentile(percents[metric[:3]], prices(tools))
	case "mean_days_since_update":
		return mean(daysSince(tools, w.releases[p.release].date))
	case "median_days_since_update":
		return median(daysSince(tools, w.releases[p.release].date))
	}
	count := 0
	for i := p.before + 1; i <= p.release; i++ {
		if i == 0 && metric == "additions" {
			continue // the first import
		}
		var before catalog
		if i > 0 {
			before = w.releases[i-1]
		}
		if metric == "additions" {
			for slug, t := range w.releases[i].tools {
				if _, was := before.tools[slug]; !was && matches(t) {
					count++
				}
			}
			continue
		}
		for slug := range w.releases[i].retired {
			if t, was := before.tools[slug]; was && matches(t) {
				count++
			}
		}
	}
	return count
}

// scores and prices return the values of tools that have one, in hundredths.
func scores(tools []tool) (found []int) {
	for _, t := range tools {
		if t.score >= 0 {
			found = append(found, t.score*10)
		}
	}
	return found
}

func prices(tools []tool) (found []int) {
	for _, t := range tools {
		if t.monthly() >= 0 {
			found = append(found, t.monthly())
		}
	}
	return found
}

var percents = map[string]int{"p25": 25, "p75": 75, "p90": 90}

// daysSince returns hundredths of the days from the update of tools to a date. Releases
// may be dated before the tools that they have from an earlier one.
func daysSince(tools []tool, date string) (found []int) {
	now, _ := time.Parse(time.DateOnly, date)
	for _, t := range tools {
		then, _ := time.Parse(time.DateOnly, t.updatedAt)
		found = append(found, int(now.Sub(then).Hours()/24)*100)
	}
	return found
}

func mean(values []int) any {
	if len(values) == 0 {
		return nil
	}
	sum := 0
	for _, v := range values {
		sum += v
	}
	return float64(divide(sum, len(values))) / 100
}

func median(values []int) any { return percentile(50, values) }

// percentile interpolates between the two nearest values.
func percentile(percent int, values []int) any {
	if len(values) == 0 {
		return nil
	}
	slices.Sort(values)
	low, share := percent*(len(values)-1)/100, percent*(len(values)-1)%100
	return float64(divide(values[low]*(100-share)+values[min(low+1, len(values)-1)]*share, 100)) / 100
}

// divide rounds halves away from zero.
func divide(a, b int) int {
	if a < 0 {
		return -divide(-a, b)
	}
	return (2*a + b) / (2 * b)
}

func hundredths(n int) any {
	if n < 0 {
		return nil
	}
	return float64(n) / 100
}

func firstOf(items list, n int) list { return append(list{}, items[:min(n, len(items))]...) }

// only returns the named members of an object.
func only(values object, names []string) object {
	found := object{}
	for name, value := range values {
		if slices.Contains(names, name) {
			found[name] = value
		}
	}
	return found
}

// rows returns an object for each key, in order.
func rows[V any](groups map[[2]string]V, row func(key [2]string, value V) object) list {
	found := list{}
	for _, key := range slices.SortedFunc(maps.Keys(groups), func(a, b [2]string) int { return slices.Compare(a[:], b[:]) }) {
		found = append(found, row(key, groups[key]))
	}
	return found
}
