package chart

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"palmares/internal/core/lang"
)

// Table has numbers by slots of an axis and by series. Charts with axes are built from
// one, and so are the tables beside them.
type Table struct {
	Kind  Kind
	Unit  Unit
	X     Axis
	Slots []Slot
	Names []string // of the series, or "" if the title of the chart says it
}

// Slot is a place on an axis: a period, a day or a range of numbers.
type Slot struct {
	From, To     float64 // equal for a day
	Text         string
	months, days int                // of a period
	numbers      map[string]float64 // by series
}

// Add adds a number, or a slot without one if it is nil.
func (t *Table) Add(s Slot, name string, number *float64) {
	at := slices.IndexFunc(t.Slots, func(other Slot) bool { return other.From == s.From })
	if at < 0 {
		at, s.numbers = len(t.Slots), map[string]float64{}
		t.Slots = append(t.Slots, s)
	}
	if !slices.Contains(t.Names, name) {
		t.Names = append(t.Names, name)
	}
	if number != nil {
		t.Slots[at].numbers[name] = *number
	}
}

// Period returns the slot of a year, quarter, month, week or day, such as "2026-Q4".
func Period(l lang.Language, text string) Slot {
	var year, part int
	if n, _ := fmt.Sscanf(text, "%d-Q%d", &year, &part); n == 2 {
		return newPeriod(l, time.Date(year, time.Month(3*part-2), 1, 0, 0, 0, 0, time.UTC), 3, 0)
	}
	if n, _ := fmt.Sscanf(text, "%d-W%d", &year, &part); n == 2 {
		fourth := time.Date(year, 1, 4, 0, 0, 0, 0, time.UTC) // is in the first week
		return newPeriod(l, fourth.AddDate(0, 0, 7*(part-1)-(int(fourth.Weekday())+6)%7), 0, 7)
	}
	for layout, months := range map[string]int{"2006": 12, "2006-01": 1} {
		if at, err := time.Parse(layout, text); err == nil {
			return newPeriod(l, at, months, 0)
		}
	}
	at, _ := time.Parse(time.DateOnly, text[:min(len(text), len(time.DateOnly))])
	return newPeriod(l, at, 0, 0)
}

func newPeriod(l lang.Language, at time.Time, months, days int) Slot {
	s := Slot{From: Time(at), To: Time(at.AddDate(0, months, days)), Text: l.ShortDay(at), months: months, days: days}
	switch {
	case months == 12:
		s.Text = at.Format("2006")
	case months == 3:
		s.Text = l.Text("Q%d %s", (int(at.Month())+2)/3, at.Format("2006"))
	case months == 1:
		s.Text = l.Month(at)
	case days > 0:
		s.Text = l.Text("week of %s", s.Text)
	}
	return s
}

// Day returns the day of a slot that is one, or "".
func (s Slot) Day() string {
	if s.From == s.To {
		return day(s.From).Format(time.DateOnly)
	}
	return ""
}

// day returns the day that a value of an axis of time is.
func day(value float64) time.Time { return time.Unix(int64(value), 0).UTC() }

const (
	maxPeriods = 500
	// MaxNumbers is how many numbers, or places for them, a table may have.
	MaxNumbers = 10_000
)

// SetTimes makes the slots an axis of time up to a day, or to the end of a later slot. It
// adds the periods without numbers: these are zero in columns, and the values of steps
// last. Lines have gaps.
func (t *Table) SetTimes(l lang.Language, until time.Time) {
	t.sort()
	to := max(Time(until), t.Slots[len(t.Slots)-1].From)
	for s := t.Slots[0]; s.To > s.From && s.From <= to && len(t.Slots) < min(maxPeriods, MaxNumbers/len(t.Names)); s = newPeriod(l, day(s.To), s.months, s.days) {
		t.Add(s, t.Names[0], nil)
	}
	t.sort()
	before := map[string]float64{}
	for _, s := range t.Slots {
		for _, name := range t.Names {
			number, known := s.numbers[name]
			if last, ok := before[name]; !known && (t.Kind == Columns || t.Kind == Steps && ok) {
				s.numbers[name] = last
			} else if known && t.Kind == Steps {
				before[name] = number
			}
		}
	}
	t.X = Dates(l, day(t.Slots[0].From), day(max(to, t.Slots[len(t.Slots)-1].To)))
}

// SetRanges makes the slots ranges of numbers, each up to the next one.
func (t *Table) SetRanges(l lang.Language) {
	t.sort()
	step, ends := 1.0, []float64{t.Slots[0].From}
	for i, s := range t.Slots[1:] {
		if width := s.From - t.Slots[i].From; i == 0 || width < step {
			step = width
		}
	}
	for i := range t.Slots {
		t.Slots[i].To = t.Slots[i].From + step
		ends = append(ends, t.Slots[i].To)
	}
	t.X = Numbers(l, Number, ends, true, 5)
}

func (t *Table) sort() {
	slices.SortFunc(t.Slots, func(a, b Slot) int { return cmp.Compare(a.From, b.From) })
}

func (t *Table) formatter(l lang.Language) func(float64) string {
	var all []float64
	for _, s := range t.Slots {
		all = slices.AppendSeq(all, maps.Values(s.numbers))
	}
	return t.Unit.Formatter(l, all...)
}

// Row has the formatted numbers of a slot.
type Row struct {
	Name, Day string // Day is "" unless the slot is one
	Values    []string
}

// Rows returns the numbers as a table, with a text for those that are missing.
func (t *Table) Rows(l lang.Language, missing string) (rows []Row) {
	format := t.formatter(l)
	for _, s := range t.Slots {
		row := Row{Name: s.Text, Day: s.Day()}
		for _, name := range t.Names {
			text := missing
			if number, ok := s.numbers[name]; ok {
				text = format(number)
			}
			row.Values = append(row.Values, text)
		}
		rows = append(rows, row)
	}
	return rows
}

// Plots draws the numbers of each series, with gaps where they are missing.
func (t *Table) Plots(l lang.Language) (plots Plots, notes []string) {
	var all []Series
	format := t.formatter(l)
	for _, name := range t.Names {
		s, gap := Series{Name: name}, false
		for _, slot := range t.Slots {
			number, ok := slot.numbers[name]
			if ok {
				text := format(number)
				s.Points = append(s.Points, Point{X: slot.From, End: slot.To, Y: number, Gap: gap, Label: text, Text: Title(name, slot.Text, text)})
			}
			gap = !ok
		}
		all = append(all, s)
	}
	return NewLines(l, t.Kind, t.X, t.Unit, all)
}

// Tile shows the latest number of the only series, and its change.
func (t *Table) Tile(l lang.Language, label string) Tile {
	tile, format, last, since := Tile{Label: label, Text: "–"}, t.formatter(l), 0.0, ""
	for _, s := range t.Slots {
		number, ok := s.numbers[t.Names[0]]
		if !ok {
			continue
		}
		switch change := math.Round((number-last)*100) / 100; {
		case since == "":
		case change > 0:
			tile.Change = l.Text("%s since %s", "+"+format(change), since)
		case change < 0:
			tile.Change = l.Text("%s since %s", format(change), since)
		default:
			tile.Change = l.Text("unchanged since %s", since)
		}
		if tile.Text, last, since = format(number), number, s.Text; l == lang.French && since[0] <= '9' {
			since = "le " + since // a day has an article, a month has none
		}
	}
	return tile
}
