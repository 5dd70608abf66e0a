package portal

import (
	"time"

	"palmares/auth"
	"palmares/ent"
	"palmares/internal/core/quota"
)

// shownDays is how far back the page of usage goes.
const shownDays = 30

// dayUse is what was counted on a day.
type dayUse struct {
	Day      time.Time
	Requests int
}

// allowance is what is left of the day's quota.
type allowance struct {
	Requests, Quota int // no quota for no bound
	Carried         int // requests of deleted accounts among them
	ResetsAt        time.Time
}

// Left is how many requests remain.
func (a allowance) Left() int { return max(a.Quota-a.Requests, 0) }

// Spent tells whether the quota's end is reached.
func (a allowance) Spent() bool { return a.Quota > 0 && a.Requests >= a.Quota }

// leftOn is what an account has left of a day.
func leftOn(day dayUse, acc *ent.Account) allowance {
	carried := auth.Carried(acc, quota.DayOf(day.Day).String())
	return allowance{Requests: day.Requests + carried, Carried: carried, Quota: auth.Plan(acc.Plan).Terms().DailyQuota, ResetsAt: day.Day.AddDate(0, 0, 1)}
}

// usagePage is the data of the page of usage.
type usagePage struct {
	Today allowance
	Days  []dayUse // newest first
	Total int
	Chart chart
}

func (p *Portal) showUsage(v *visit) error {
	days, err := p.lastDays(v)
	if err != nil {
		return err
	}
	data := usagePage{Today: leftOn(days[len(days)-1], v.account), Chart: draw(days)}
	for i := len(days) - 1; i >= 0; i-- {
		data.Days = append(data.Days, days[i])
		data.Total += days[i].Requests
	}
	return p.show(v, "usage", data, nil)
}

// lastDays are the latest days, oldest first, also those without a request.
func (p *Portal) lastDays(v *visit) ([]dayUse, error) {
	rows, err := p.accounts.Usage(v.Context(), v.account, shownDays)
	if err != nil {
		return nil, err
	}
	counted := map[string]int{}
	for _, row := range rows {
		counted[row.Day] = row.Requests
	}
	now := p.now().UTC()
	midnight := time.Date(now.Year(), now.Month(), now.Day(), 0, 0, 0, 0, time.UTC)
	var days []dayUse
	for back := shownDays - 1; back >= 0; back-- {
		day := midnight.AddDate(0, 0, -back)
		days = append(days, dayUse{day, counted[quota.DayOf(day).String()]})
	}
	return days, nil
}
