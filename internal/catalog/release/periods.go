package release

import (
	"fmt"
	"slices"
	"time"
)

// Period is a week, month or quarter, from its first to its last day. Days have the
// form YYYY-MM-DD.
type Period struct{ Name, Start, End string }

// PeriodOf returns the period of a day.
func PeriodOf(day string, interval string) Period {
	date, err := time.Parse(time.DateOnly, day)
	if err != nil {
		return Period{day, day, day} // imports and arguments are checked
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
	end, _ := time.Parse(time.DateOnly, p.End)
	return PeriodOf(end.AddDate(0, 0, 1).Format(time.DateOnly), interval)
}

// The lengths of periods.
const (
	Week    = "week"
	Month   = "month"
	Quarter = "quarter"
)

// What happens on a day and is counted by period.
const (
	Retirements       = "retirements"
	PriceChanges      = "price changes"
	ComparisonUpdates = "comparison updates"
)

// Periods returns the periods from the first occurrence to the date of the release, or
// to the last occurrence if that is later. Only periods with a day from since on, and
// before before, are returned; both may be empty.
func (r *Release) Periods(of, interval, since, before string) (periods []Period, err error) {
	first, last := r.span(of)
	if first == "" {
		return nil, nil
	}
	first, last = max(first, since), max(last, r.Info.FeedDate)
	if before != "" {
		last = min(last, dayBefore(before))
	}
	for p := PeriodOf(first, interval); p.Start <= last; p = p.next(interval) {
		if len(periods) == MaxPoints {
			return nil, ErrTooManyPoints
		}
		periods = append(periods, p)
	}
	return periods, nil
}

// CountPeriods returns the number of Periods, or 0 if there are too many.
func (r *Release) CountPeriods(of, interval, since, before string) int {
	periods, _ := r.Periods(of, interval, since, before)
	return len(periods)
}

// priceSpan has the days of the first and the last price change.
type priceSpan struct{ first, last string }

// span returns the days of the first and the last occurrence, which are empty if there
// is none.
func (r *Release) span(of string) (first, last string) {
	switch of {
	case Retirements:
		if retired := r.Sorted(ByRetirement); len(retired) > 0 {
			return retired[len(retired)-1].RetiredAt, retired[0].RetiredAt
		}
	case ComparisonUpdates:
		if n := len(r.Comparisons); n > 0 {
			return r.Comparisons[n-1].UpdatedAt, r.Comparisons[0].UpdatedAt
		}
	case PriceChanges:
		span := Derived(r, func(r *Release) (span priceSpan) {
			var days []string
			for _, v := range r.history.prices {
				if v.has(r.Number()) {
					days = append(days, v.value.ChangedAt)
				}
			}
			if len(days) > 0 {
				span = priceSpan{slices.Min(days), slices.Max(days)}
			}
			return span
		})
		return span.first, span.last
	}
	return "", ""
}
