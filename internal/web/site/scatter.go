package site

import (
	"cmp"
	"math"
	"slices"
	"unicode/utf8"

	"palmares/internal/core/lang"
	"palmares/internal/web/chart"
)

// scatterChart shows tools by their price per month and score.
type scatterChart struct {
	Points                     []scatterPoint
	Prices, Scores             []tick
	Width, Height, Right, Base float64
}

type scatterPoint struct {
	X, Y           float64
	LabelX, LabelY float64
	Name           string
	Score          *float64
	Price          float64 // per month
	Labeled, End   bool    // End: the label is to the left of the point
	Highlighted    bool
}

// tick is a value on an axis.
type tick struct {
	At   float64
	Text string
}

// Dimensions of a scatter chart in SVG units.
const (
	scatterLeft   = 34.0 // space for scores
	scatterWidth  = 640.0
	scatterTop    = 20.0
	scatterHeight = 300.0
	scatterBottom = 40.0 // space for prices
	scatterMargin = 10.0 // between points and axes

	nameWidth = 7.2 // of a character
	nameSize  = 13.0
	nameGap   = 9.0
	maxNamed  = 24 // characters
)

// newScatterChart draws the tools that have a score and a price per month. The
// tool with the slug is highlighted. It returns nil unless there are two.
func newScatterChart(l lang.Language, tools []tool, slug string) *scatterChart {
	tools = slices.DeleteFunc(slices.Clone(tools), func(t tool) bool { return t.Score == nil || t.MonthlyPrice == nil })
	if len(tools) < 2 {
		return nil
	}
	// The highlighted tool gets its label first, then the best ones.
	slices.SortStableFunc(tools, func(a, b tool) int {
		return cmp.Or(boolOrder(a.Slug == slug, b.Slug == slug), cmp.Compare(*b.Score, *a.Score))
	})
	lowest, highest, maxPrice := 10.0, 0.0, 1.0
	for _, t := range tools {
		lowest, highest, maxPrice = min(lowest, math.Floor(*t.Score)), max(highest, math.Ceil(*t.Score)), max(maxPrice, *t.MonthlyPrice)
	}
	if lowest == highest {
		lowest, highest = max(0, lowest-1), min(10, highest+1)
	}
	share, prices := chart.Scale([]float64{maxPrice}, true)
	c := &scatterChart{Width: scatterWidth, Height: scatterTop + scatterHeight + scatterBottom, Right: scatterWidth - scatterMargin, Base: scatterTop + scatterHeight}
	x := func(price float64) float64 {
		return chart.Round(scatterLeft + scatterMargin + share(price)*(scatterWidth-scatterLeft-3*scatterMargin))
	}
	y := func(score float64) float64 {
		return chart.Round(c.Base - scatterMargin - (score-lowest)/(highest-lowest)*(scatterHeight-2*scatterMargin))
	}
	for _, price := range prices {
		c.Prices = append(c.Prices, tick{x(price), l.Euros(price)})
	}
	for score := lowest; score <= highest; score++ {
		c.Scores = append(c.Scores, tick{y(score), l.Number(int(score))})
	}
	var taken []box
	for _, t := range tools {
		p := scatterPoint{X: x(*t.MonthlyPrice), Y: y(*t.Score), Name: t.Name, Score: t.Score, Price: *t.MonthlyPrice, Highlighted: t.Slug == slug}
		taken = append(taken, box{p.X - 5, p.Y - 5, p.X + 5, p.Y + 5})
		c.Points = append(c.Points, p)
	}
	for i := range c.Points {
		taken = c.Points[i].placeLabel(taken)
	}
	return c
}

// placeLabel puts the name to the right or left of the point, or above or below
// these places, where it covers nothing. The table has the names that fit
// nowhere.
func (p *scatterPoint) placeLabel(taken []box) []box {
	length := utf8.RuneCountInString(p.Name)
	if length > maxNamed {
		return taken
	}
	width := nameWidth * float64(length)
	for _, dy := range []float64{4, -8, 16} {
		for _, end := range []bool{false, true} {
			room := box{p.X + nameGap, p.Y + dy - nameSize + 3, p.X + nameGap + width, p.Y + dy + 3}
			if end {
				room.left, room.right = p.X-nameGap-width, p.X-nameGap
			}
			if room.left < scatterLeft || room.right > scatterWidth || slices.ContainsFunc(taken, room.overlaps) {
				continue
			}
			p.Labeled, p.End, p.LabelX, p.LabelY = true, end, room.left, p.Y+dy
			if end {
				p.LabelX = room.right
			}
			return append(taken, room)
		}
	}
	return taken
}

// boolOrder orders true before false.
func boolOrder(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}
