package site

import (
	"cmp"
	"context"
	"strings"
	"time"

	"palmares/internal/web/chart"
	"palmares/internal/web/page"
)

// The graveyard, and the page of a retired tool.

type retiredToolsView struct {
	Feed             feedInfo
	RetiredTools     listOf[tool]
	RetirementGroups []struct {
		Period, Reason, Category string
		Count                    int
	}
	Categories categoryList
	Years      []retiredYear `json:"-"` // the tools of the page
	Chart      *figure       `json:"-"` // nil if there is nothing to draw
	ByMonth    bool          `json:"-"`
}

type retiredYear struct {
	Year  string
	Tools []tool
}

func (v *retiredToolsView) prepare(_ context.Context, _ *Site, r *request) error {
	for _, t := range v.RetiredTools.Items {
		year, _, _ := strings.Cut(t.RetiredAt, "-")
		if len(v.Years) == 0 || v.Years[len(v.Years)-1].Year != year {
			v.Years = append(v.Years, retiredYear{Year: year})
		}
		y := &v.Years[len(v.Years)-1]
		y.Tools = append(y.Tools, t)
	}
	v.prepareChart(r)
	r.figures = []*figure{v.Chart}
	return nil
}

// maxMonths is the longest time that the chart shows by month. Longer ones are
// shown by year.
const maxMonths = 36

// prepareChart counts the retirements that the filters select, by month or by
// year, with the periods that had none, up to the end of the catalog.
func (v *retiredToolsView) prepareChart(r *request) {
	counts := map[string]float64{}
	var first string
	for _, g := range v.RetirementGroups {
		if reason := r.Param("reason"); reason != "" && reason != g.Reason {
			continue
		}
		if category := r.Param("category"); category != "" && category != g.Category {
			continue
		}
		counts[g.Period] += float64(g.Count)
		counts[g.Period[:4]] += float64(g.Count)
		first = cmp.Or(first, g.Period) // they are ordered
	}
	from := parseDay(first + "-01")
	if from.IsZero() {
		return
	}
	to := parseDay(v.Feed.UpdatedAt)
	v.ByMonth = (to.Year()-from.Year())*12+int(to.Month()-from.Month()) < maxMonths
	period, length := r.lang.Text("Year"), len("2006")
	if v.ByMonth {
		period, length = r.lang.Text("Month"), len("2006-01")
	}
	t := chart.Table{Kind: chart.Columns, Unit: chart.Count}
	for text, count := range counts {
		if len(text) == length {
			t.Add(chart.Period(r.lang, text), "", &count)
		}
	}
	v.Chart = newFigure(r, "retirements", "Number of retired tools", period, r.lang.Text("Retired tools"))
	v.Chart.Notes = []string{r.lang.Text("Tools in the graveyard by closing date, including before the first edition; those that became active again or were removed are not counted.")}
	v.Chart.drawTimes(&t, v.Feed.UpdatedAt)
}

// lifetime is how long a retired tool was in the catalog as an active one.
type lifetime struct {
	First, Last string // days
	Months      int
}

// newLifetime returns nil if that is unknown: the tool was retired before the
// first release that has it, or its list of versions is not complete.
func newLifetime(versions []version, retiredAt string) *lifetime {
	if len(versions) == 0 || len(versions) > maxVersions {
		return nil
	}
	oldest := versions[len(versions)-1]
	from, err := time.Parse(time.DateOnly, oldest.Date)
	to, lastErr := time.Parse(time.DateOnly, retiredAt)
	if err != nil || lastErr != nil || oldest.Type != toolCreated || oldest.After["retired_at"] != nil || to.Before(from) {
		return nil
	}
	months := (to.Year()-from.Year())*12 + int(to.Month()-from.Month())
	if to.Day() < from.Day() {
		months--
	}
	return &lifetime{oldest.Date, retiredAt, months}
}

type retiredToolView struct {
	Feed              feedInfo
	RetiredTool, Tool *tool
	Versions          versionHistory `json:"-"`
	Lifetime          *lifetime      `json:"-"` // nil if it is unknown
}

func (v *retiredToolView) prepare(_ context.Context, _ *Site, r *request) error {
	switch {
	case v.RetiredTool != nil:
		v.Versions = newVersionHistory(r, v.RetiredTool)
		v.Lifetime = newLifetime(v.RetiredTool.Versions, v.RetiredTool.RetiredAt)
		r.feeds = []page.Feed{toolFeed(r, v.RetiredTool.Slug, v.RetiredTool.Name)}
		return nil
	case v.Tool != nil:
		return redirect(r.Link("/tools/", v.Tool.Slug))
	}
	return r.notFound("There is no retired tool “%s”.", "There was no retired tool “%s” in this edition.", r.Slug())
}
