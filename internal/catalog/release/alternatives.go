package release

import (
	"cmp"
	"math"
	"slices"
	"strings"
)

// activeByCategory has the active tools of each category.
type activeByCategory map[string][]*Tool

// eurosPerPoint is the difference in monthly prices that counts as much as one point of
// the score.
const eurosPerPoint = 10

// alternative is a candidate for an alternative to a tool.
type alternative struct {
	tool     *Tool
	lacks    int   // how many of the values that the tool has
	distance int64 // in units of precision
}

// Alternatives returns the active tools of the same category that are nearest to a tool
// in score and monthly price, at most limit. Values that the tool does not have are not
// compared; tools that lack one that it has come last.
func (r *Release) Alternatives(t *Tool, limit int) []*Tool {
	candidates := Derived(r, func(r *Release) activeByCategory {
		of := activeByCategory{}
		for _, t := range r.Tools {
			if t.Active() {
				of[t.Category] = append(of[t.Category], t)
			}
		}
		return of
	})[t.Category]
	compare := func(a, b alternative) int {
		return cmp.Or(a.lacks-b.lacks, cmp.Compare(a.distance, b.distance), strings.Compare(a.tool.Slug, b.tool.Slug))
	}
	nearest := make([]alternative, 0, min(limit, len(candidates))+1)
	for _, other := range candidates {
		if other.Slug == t.Slug {
			continue
		}
		a := alternative{tool: other}
		a.compare(t.Score, other.Score, 1)
		a.compare(t.MonthlyPrice, other.MonthlyPrice, eurosPerPoint)
		if len(nearest) == limit && compare(a, nearest[limit-1]) > 0 {
			continue
		}
		at, _ := slices.BinarySearchFunc(nearest, a, compare)
		nearest = slices.Insert(nearest, at, a)
		nearest = nearest[:min(limit, len(nearest))]
	}
	tools := make([]*Tool, len(nearest))
	for i, a := range nearest {
		tools[i] = a.tool
	}
	return tools
}

// compare adds the difference of a value to the distance, divided by a number.
func (a *alternative) compare(own, others float64, divisor int64) {
	switch {
	case math.IsNaN(own):
	case math.IsNaN(others):
		a.lacks++
	default:
		difference := inUnits(own) - inUnits(others)
		a.distance += max(difference, -difference) / divisor
	}
}
