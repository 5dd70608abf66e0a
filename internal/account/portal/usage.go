package portal

import (
	"math"
	"slices"
	"time"

	"palmares/auth"
	"palmares/ent"
	"palmares/internal/core/quota"
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
	Chart chart
}

func (p *Portal) showUsage(v *visit) error {
	days, err := p.lastDays(v)
	if err != nil {
		return err
	}
	data := usagePage{Today: allowanceOn(days[len(days)-1], v.account), Days: days}
	data.Chart = newChart(days, data.Today.Quota)
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

// chart is a bar chart in the units of the template, which the browser scales.
type chart struct {
	Width, Max int // Max is the value at the upper edge
	Bars       []bar
	Quota      int // requests per day; 0 without a quota
	QuotaY     float64
}

type bar struct {
	X, Y, Height float64
	Day          dayUsage
}

const (
	barDistance = 21
	chartTop    = 12
	chartHeight = 160
)

// newChart draws a bar for each day and a line for the quota, if there is one. A
// single request is visible beside thousands.
func newChart(days []dayUsage, quota int) chart {
	highest := max(1, quota)
	for _, day := range days {
		highest = max(highest, day.Requests)
	}
	c := chart{Width: len(days) * barDistance, Max: roundUp(highest), Quota: quota}
	c.QuotaY = math.Round((chartTop+chartHeight-float64(quota)/float64(c.Max)*chartHeight)*10) / 10
	for i, day := range days {
		height := float64(day.Requests) / float64(c.Max) * chartHeight
		if day.Requests > 0 {
			height = max(height, 2)
		}
		height = math.Round(height*10) / 10
		c.Bars = append(c.Bars, bar{X: float64(i * barDistance), Y: chartTop + chartHeight - height, Height: height, Day: day})
	}
	return c
}

// roundUp returns the next of 1, 2, 5, 10, 20, 50 and so on.
func roundUp(n int) int {
	for step := 1; ; step *= 10 {
		for _, round := range []int{step, 2 * step, 5 * step} {
			if n <= round {
				return round
			}
		}
	}
}
