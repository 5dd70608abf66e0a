package portal

import (
	"slices"
	"time"

	"palmares/auth"
	"palmares/ent"
	"palmares/internal/core/lang"
	"palmares/internal/core/quota"
	"palmares/internal/web/chart"
)

const shownDays = 30

type dayUsage struct {
	Day      time.Time
	Requests int
}

// allowance is an account's quota for a day and how much of it was used.
type allowance struct {
	Requests, Quota int // a quota of 0 means unlimited
	ResetsAt        time.Time
}

// Left returns how many requests remain.
func (a allowance) Left() int { return max(a.Quota-a.Requests, 0) }

// Spent reports whether the quota is used up.
func (a allowance) Spent() bool { return a.Quota > 0 && a.Requests >= a.Quota }

func allowanceOn(day dayUsage, acc *ent.Account) allowance {
	return allowance{Requests: day.Requests, Quota: auth.Plan(acc.Plan).Terms().DailyQuota, ResetsAt: day.Day.AddDate(0, 0, 1)}
}

type usagePage struct {
	Today allowance
	Days  []dayUsage // newest first
	Total int
	Chart *chart.Chart
}

func (p *Portal) showUsage(v *visit) error {
	days, err := p.lastDays(v)
	if err != nil {
		return err
	}
	data := usagePage{Today: allowanceOn(days[len(days)-1], v.account), Days: days}
	data.Chart = newChart(lang.Of(v.Context()), days, data.Today.Quota)
	for _, day := range days {
		data.Total += day.Requests
	}
	slices.Reverse(data.Days)
	return p.show(v, "usage", data)
}

// lastDays returns the latest days, oldest first, including those without requests.
func (p *Portal) lastDays(v *visit) ([]dayUsage, error) {
	rows, err := p.accounts.Usage(v.Context(), v.account, shownDays)
	if err != nil {
		return nil, err
	}
	requests := map[string]int{}
	for _, row := range rows {
		requests[row.Day] = row.Requests
	}
	today := p.now().UTC().Truncate(24 * time.Hour)
	var days []dayUsage
	for back := shownDays - 1; back >= 0; back-- {
		day := today.AddDate(0, 0, -back)
		days = append(days, dayUsage{day, requests[quota.DayOf(day).String()]})
	}
	return days, nil
}

// newChart shows the requests of each day, and the quota, if there is one.
func newChart(l lang.Language, days []dayUsage, quota int) *chart.Chart {
	shown := &chart.Chart{Title: l.Text("Requests per day in the last 30 days; the table has the same data"), Half: true}
	t, values := chart.Table{Kind: chart.Columns, Unit: chart.Count}, []float64{float64(quota)}
	for _, day := range days {
		requests := float64(day.Requests)
		t.Add(chart.Slot{From: chart.Time(day.Day), To: chart.Time(day.Day.AddDate(0, 0, 1)), Text: l.Day(day.Day)}, "", &requests)
		values = append(values, requests)
	}
	t.SetTimes(l, days[len(days)-1].Day)
	plots, _ := t.Plots(l)
	if plots[0].Y = chart.Numbers(l, chart.Count, values, true, 4); quota > 0 {
		plots[0].Level = chart.Remark{X: float64(quota), Text: l.Text("quota: %d", quota)}
		shown.Title = l.Text("Requests per day in the last 30 days, with a line at the quota of %d; the table has the same data", quota)
	}
	shown.Content = plots
	return shown
}
