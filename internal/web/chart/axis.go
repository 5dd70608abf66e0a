package chart

import (
	"math"
	"slices"
	"strings"
	"time"

	"palmares/internal/core/lang"
)

// Axis has the range of values of a plot, and those that are labeled.
type Axis struct {
	From, To float64
	Caption  string                    // what it measures; it says if it does not start at zero
	ticks    func(room float64) []tick // those that have room
}

// tick is a labeled value.
type tick struct {
	at   float64
	text string
}

func (a *Axis) fraction(value float64) float64 { return (value - a.From) / (a.To - a.From) }

// Unit is what numbers measure. Numbers of different units never share an axis.
type Unit int

// The units of the catalog's numbers.
const (
	Number     Unit = iota // nothing in particular
	Count                  // whole numbers
	Score                  // from 0 to 10
	Euros                  // per month
	Percent                // a change, with its sign
	Proportion             // from 0 to 1, shown as a percentage
	Days
)

// Format formats a value.
func (u Unit) Format(l lang.Language, n float64) string {
	text, minus := "", ""
	if n < 0 {
		n, minus = -n, "−"
	}
	switch u {
	case Score:
		text = l.Decimal(n, 1, 2)
	case Euros:
		text = l.Euros(math.Round(n*100) / 100)
	case Percent:
		text = strings.TrimPrefix(l.Percent(n), "+")
	case Proportion:
		text = strings.TrimPrefix(l.Percent(100*n), "+")
	default:
		text = l.Decimal(n, 0, 2)
	}
	return minus + text
}

// Numbers returns an axis of round numbers with about as many intervals as given. It
// starts at zero unless all values are far above it and fromZero is false, and then its
// caption says so. Counts have whole ticks.
func Numbers(l lang.Language, u Unit, values []float64, fromZero bool, intervals int) Axis {
	low, high := slices.Min(values), slices.Max(values)
	if fromZero || low == high || low <= high/2 {
		low = min(low, 0)
	}
	if high = max(high, 0); high == low {
		high = low + 1
	}
	step := niceStep((high - low) / float64(intervals))
	if u == Count {
		step = max(step, 1)
	}
	format := func(value float64) string {
		if u == Score || u == Number { // with as many decimals each
			decimals := max(0, -int(math.Floor(math.Log10(step)+1e-9)))
			return strings.Replace(l.Decimal(value, decimals, decimals), "-", "−", 1)
		}
		return u.Format(l, value)
	}
	a := Axis{From: math.Floor(low/step+1e-9) * step, To: math.Ceil(high/step-1e-9) * step}
	switch u { // others have their unit at each tick, or in the title of the chart
	case Score:
		a.Caption = l.Text("out of 10")
	case Days:
		a.Caption = l.Text("days")
	}
	if a.From > 0 {
		a.Caption = Title(a.Caption, l.Text("axis starts at %s", format(a.From)))
	}
	a.ticks = func(float64) (all []tick) {
		for i := range int(math.Round((a.To-a.From)/step)) + 1 {
			value := a.From + float64(i)*step
			all = append(all, tick{value, format(value)})
		}
		return all
	}
	return a
}

// niceStep rounds up to 1, 2 or 5 times a power of ten.
func niceStep(rough float64) float64 {
	power := math.Pow(10, math.Floor(math.Log10(rough)))
	for _, factor := range []float64{1, 2, 5} {
		if rough <= factor*power*(1+1e-9) {
			return factor * power
		}
	}
	return 10 * power
}

// Time returns a time as a value of an axis.
func Time(t time.Time) float64 { return float64(t.Unix()) }

const day = 24 * time.Hour

// Dates returns an axis to scale, with ticks at the starts of years, months, weeks
// (Mondays) or days.
func Dates(l lang.Language, from, to time.Time) Axis {
	if !to.After(from) {
		to = from.Add(day)
	}
	axis := Axis{From: Time(from), To: Time(to)}
	axis.ticks = func(room float64) (all []tick) {
		for _, s := range []struct {
			days, months int
			format       func(time.Time) string
		}{
			{1, 0, l.ShortDay}, {7, 0, l.ShortDay}, {0, 1, l.ShortMonth}, {0, 2, l.ShortMonth}, {0, 3, l.ShortMonth}, {0, 6, l.ShortMonth},
			{0, 12, year}, {0, 24, year}, {0, 60, year}, {0, 120, year}, {0, 1200, year},
		} {
			smaller, free := all, math.Inf(-1)
			all = nil
			for at := roundUp(from, s.days, s.months); !at.After(to); at = at.AddDate(0, s.months, s.days) {
				text := s.format(at)
				if month, _, ok := strings.Cut(text, "\u00a0"); ok && s.days == 0 && len(all) > 0 && at.Month() != time.January {
					text = month // the year is the same
				}
				all = append(all, tick{Time(at), text})
				x, half := axis.fraction(Time(at))*room, measure(text, tickSize, false)/2+5
				if x-half < free {
					free = math.Inf(1) // too many
					break
				}
				free = x + half
			}
			if len(all) == 0 && len(smaller) > 0 { // there is no such date, such as 1 January
				return smaller[:1]
			}
			if !math.IsInf(free, 1) {
				return all
			}
		}
		return all
	}
	return axis
}

func year(t time.Time) string { return t.Format("2006") }

// roundUp returns the first day from a time on that is a multiple of some days since a
// Monday, or the start of a multiple of some months.
func roundUp(t time.Time, days, months int) time.Time {
	if months == 0 {
		monday := time.Date(1970, 1, 5, 0, 0, 0, 0, time.UTC)
		step := day * time.Duration(days)
		return monday.Add((t.Sub(monday) + step - 1) / step * step)
	}
	number := t.Year()*12 + int(t.Month()) - 1
	if t.Day() > 1 || !t.Equal(t.Truncate(day)) {
		number++
	}
	number = (number + months - 1) / months * months
	return time.Date(number/12, time.Month(number%12+1), 1, 0, 0, 0, 0, time.UTC)
}

// Title joins the parts of a text that are not empty. They are separated by dots,
// since a colon would need a space before it in French.
func Title(parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(part string) bool { return part == "" }), " · ")
}

func round(n float64) float64 { return math.Round(n*10) / 10 }
