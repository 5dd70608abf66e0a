package release

import (
	"fmt"
	"time"
)

// Period is a week, month or quarter. Days have the form YYYY-MM-DD.
type Period struct {
	Name       string
	start, end string // the first and the last day
}

// PeriodOf returns the period of a day.
func PeriodOf(day string, interval string) Period {
	date, err := time.Parse(time.DateOnly, day)
	if err != nil {
		return Period{Name: day, start: day, end: day} // imports and arguments are checked
	}
	year, month := date.Year(), date.Month()
	var name string
	var start, next time.Time
	switch interval {
	case Week:
		start = date.AddDate(0, 0, -(int(date.Weekday())+6)%7)
		next = start.AddDate(0, 0, 7)
		year, week := date.ISOWeek()
		name = fmt.Sprintf("%04d-W%02d", year, week)
	case Month:
		start = time.Date(year, month, 1, 0, 0, 0, 0, time.UTC)
		next = start.AddDate(0, 1, 0)
		name = fmt.Sprintf("%04d-%02d", year, month)
	case Quarter:
		quarter := (month - 1) / 3
		start = time.Date(year, quarter*3+1, 1, 0, 0, 0, 0, time.UTC)
		next = start.AddDate(0, 3, 0)
		name = fmt.Sprintf("%04d-Q%d", year, quarter+1)
	}
	return Period{name, start.Format(time.DateOnly), next.AddDate(0, 0, -1).Format(time.DateOnly)}
}

// next returns the period that follows.
func (p Period) next(interval string) Period {
	end, _ := time.Parse(time.DateOnly, p.end)
	return PeriodOf(end.AddDate(0, 0, 1).Format(time.DateOnly), interval)
}

// The lengths of periods.
const (
	Week    = "week"
	Month   = "month"
	Quarter = "quarter"
)
