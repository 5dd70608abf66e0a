package site

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// steps is a price over time, which jumps from one day to the next.
type steps struct {
	Line              string // an SVG path
	Corners           []corner
	Labels            []label
	Period            string
	First, Last       string // days
	Width, High, Base float64
}

// corner is where a price begins.
type corner struct {
	X, Y      float64
	At, Price string
}

// The box of the steps, and the room for labels in it.
const (
	stepsWidth = 640.0
	stepsHigh  = 160.0
	stepsTop   = 34.0
	stepsRoom  = 34.0 // below
	stepsEnd   = 0.04 // of the width: what lasts to the last day is still seen
)

// priced is what a tool cost from one day on.
type priced struct {
	at     time.Time
	amount float64
	moment moment
}

// drawSteps shows what a tool cost over time. Prices of another period than
// today's cannot stand beside it: they are in the table alone. There is
// nothing to draw of a price that never changed.
func drawSteps(history []moment, period, until string) *steps {
	points := pricesOf(history, period)
	if len(points) < 2 {
		return nil
	}
	first, last := points[0].at, points[len(points)-1].at
	end, err := time.Parse(time.DateOnly, until)
	if err != nil || end.Before(last) {
		end = last
	}
	if least := time.Duration(float64(last.Sub(first)) * stepsEnd); end.Sub(last) < least {
		end = last.Add(least)
	}
	top := 0.01
	for _, p := range points {
		top = max(top, p.amount)
	}
	s := &steps{Period: period, First: points[0].moment.At, Last: until, Width: stepsWidth, High: stepsTop + stepsHigh + stepsRoom, Base: stepsTop + stepsHigh}
	var line strings.Builder
	for i, p := range points {
		c := corner{
			X:  tenth(float64(p.at.Sub(first)) / float64(end.Sub(first)) * stepsWidth),
			Y:  tenth(s.Base - p.amount/top*stepsHigh),
			At: p.moment.At, Price: p.moment.Price,
		}
		if i == 0 {
			fmt.Fprintf(&line, "M%g %g", c.X, c.Y)
		} else {
			fmt.Fprintf(&line, "H%gV%g", c.X, c.Y)
		}
		s.Corners = append(s.Corners, c)
	}
	fmt.Fprintf(&line, "H%g", stepsWidth)
	s.Line = line.String()
	s.Labels = labelSteps(s.Corners, s.Base)
	return s
}

// pricesOf a period are those that differ from the one before.
func pricesOf(history []moment, period string) (points []priced) {
	for _, m := range history {
		amount, per, ok := amountOf(m.Price)
		at, err := time.Parse(time.DateOnly, m.At)
		if !ok || err != nil || per != period {
			continue
		}
		if len(points) > 0 && points[len(points)-1].amount == amount {
			continue // the score changed, not the price
		}
		points = append(points, priced{at, amount, m})
	}
	return points
}

func tenth(n float64) float64 { return math.Round(n*10) / 10 }

// amountOf reads a price, `<amount> €/<period>`.
func amountOf(price string) (amount float64, period string, ok bool) {
	number, period, found := strings.Cut(price, " €/")
	amount, err := strconv.ParseFloat(strings.Replace(number, ",", ".", 1), 64)
	return amount, period, found && err == nil
}
