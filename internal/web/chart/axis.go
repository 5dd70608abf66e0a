package chart

import (
	"cmp"
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
	dates    bool
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
func (u Unit) Format(l lang.Language, n float64) string { return u.Formatter(l, n)(n) }

// Formatter returns how the values of a chart are formatted: all with as many decimals
// as one of them needs.
func (u Unit) Formatter(l lang.Language, values ...float64) func(float64) string {
	factor, decimals, most, pattern := 1.0, 0, 2, lang.Message("")
	switch u {
	case Score:
		decimals = 1
	case Euros:
		pattern = "€%s"
	case Proportion:
		factor, most, pattern = 100, 1, "%s%%"
	case Percent:
		most, pattern = 1, "%s%%"
	}
	for _, value := range values {
		for shown := value * factor * math.Pow10(decimals); decimals < most && math.Abs(shown-math.Round(shown)) > 1e-6; shown *= 10 {
			decimals++
		}
	}
	if u == Euros && decimals > 0 {
		decimals = most // cents
	}
	return func(n float64) string {
		text := l.Decimal(math.Abs(n*factor), decimals, decimals)
		if pattern != "" {
			text = l.Text(pattern, text)
		}
		if n < 0 {
			return "−" + text
		}
		return text
	}
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
	if u == Score && high-low < 1 { // otherwise 0.01 would look like a fall
		low = min(max((low+high-1)/2, 0), maxScore-1)
		high = low + 1
	}
	// Closer ticks would read alike.
	closest := map[Unit]float64{Count: 1, Days: 1, Percent: 0.1, Proportion: 0.001}
	step := max(niceStep((high-low)/float64(intervals)), cmp.Or(closest[u], 0.01))
	caption := map[Unit]lang.Message{Score: "out of 10", Days: "days"}[u] // others have their unit at each tick, or in the title
	if u == Score {
		u = Number // with no more decimals than ticks need
	}
	a := Axis{From: math.Floor(low/step+1e-9) * step, Caption: l.Text(caption)}
	var all []float64
	for a.To = a.From; len(all) == 0 || a.To < high-step*1e-9; all = append(all, a.To) {
		a.To = a.From + float64(len(all)+1)*step
	}
	format := u.Formatter(l, append(all, a.From)...)
	if a.From > 0 {
		a.Caption = Title(a.Caption, l.Text("axis starts at %s", format(a.From)))
	}
	a.ticks = func(float64) []tick {
		ticks := []tick{{a.From, format(a.From)}}
		for _, value := range all {
			ticks = append(ticks, tick{value, format(value)})
		}
		return ticks
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

// Dates returns an axis of days to scale, with ticks at the starts of years, months,
// weeks (Mondays) or days: the smallest of them that have room.
func Dates(l lang.Language, from, to time.Time) Axis {
	const daily, weekly, year = 0, -1, 12
	if !to.After(from) {
		to = from.AddDate(0, 0, 1)
	}
	axis := Axis{From: Time(from), To: Time(to), dates: true}
	axis.ticks = func(room float64) (all []tick) {
		for _, months := range []int{daily, weekly, 1, 2, 3, 6, year, 2 * year, 5 * year, 10 * year, 100 * year} {
			smaller, free, fits := all, math.Inf(-1), true
			at, days, step := from, 1, 0
			switch {
			case months == weekly:
				at, days = from.AddDate(0, 0, (8-int(from.Weekday()))%7), 7
			case months > 0:
				count := from.Year()*12 + int(from.Month()) - 1
				if from.Day() > 1 {
					count++
				}
				at, days, step = time.Date(0, time.Month((count+months-1)/months*months+1), 1, 0, 0, 0, 0, time.UTC), 0, months
			}
			for all = nil; !at.After(to) && fits; at = at.AddDate(0, step, days) {
				text := l.ShortMonth(at)
				switch month, number, _ := strings.Cut(text, "\u00a0"); {
				case months <= 0:
					text = l.ShortDay(at)
				case months >= year:
					text = number
				case len(all) > 0 && at.Month() != time.January:
					text = month // the year is the same
				}
				x, half := axis.fraction(Time(at))*room, measure(text, tickSize, false)/2+5
				fits, free = x-half >= free, x+half
				all = append(all, tick{Time(at), text})
			}
			if len(all) == 0 { // there is no such date, such as 1 January
				return smaller[:min(len(smaller), 1)]
			}
			if fits {
				break
			}
		}
		return all
	}
	return axis
}

// Title joins the parts of a text that are not empty. They are separated by dots,
// since a colon would need a space before it in French.
func Title(parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(part string) bool { return part == "" }), " · ")
}

func round(n float64) float64 { return math.Round(n*10) / 10 }
