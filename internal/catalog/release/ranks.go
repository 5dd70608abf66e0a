package release

import (
	"math"
	"slices"
	"sort"
	"strings"
)

// Rank is the position of a tool by its score among those of its category, or all active
// tools; zero for none. Tools with the same score share a position, and those after them skip as many.
type Rank struct{ Position, Of int }

// scores are the scores of the active tools of each category, and under "" of all, the
// highest first.
type scores map[string][]float64

type (
	currentScores  struct{ scores }
	previousScores struct{ scores }
)

// scoresAt returns the scores in a release.
func (h *history) scoresAt(release int) scores {
	all := scores{}
	for _, v := range h.tools {
		if t := v.value; v.has(release) && t.Active() && !math.IsNaN(t.Score) {
			all[""], all[t.Category] = append(all[""], t.Score), append(all[t.Category], t.Score)
		}
	}
	for _, of := range all {
		slices.Sort(of)
		slices.Reverse(of)
	}
	return all
}

// rank returns the rank of a tool, which is zero without a score.
func (s scores) rank(t *Tool, inCategory bool) Rank {
	if t == nil || !t.Active() || math.IsNaN(t.Score) {
		return Rank{}
	}
	of := s[""]
	if inCategory {
		of = s[t.Category]
	}
	higher := sort.Search(len(of), func(i int) bool { return of[i] <= t.Score })
	return Rank{higher + 1, len(of)}
}

// Rank returns the rank of a tool in its category or among all tools; zero if it
// has no score or is retired.
func (r *Release) Rank(t *Tool, inCategory bool) Rank {
	return Derived(r, func(r *Release) currentScores {
		return currentScores{r.history.scoresAt(r.Number())}
	}).rank(t, inCategory)
}

// PreviousRank returns the rank that a tool had in the previous release, in the category
// that it had then; zero if it had none or the release can no longer be read. It needs the
// history.
func (r *Release) PreviousRank(t *Tool, inCategory bool) Rank {
	h, previous := r.history, r.Number()-1
	if previous < h.from {
		return Rank{}
	}
	first, _ := slices.BinarySearchFunc(h.tools, t.Slug, func(v version[Tool], slug string) int {
		return strings.Compare(v.value.Slug, slug)
	})
	for _, v := range h.tools[first:] {
		if v.value.Slug != t.Slug {
			break
		}
		if v.has(previous) {
			return Derived(r, func(*Release) previousScores {
				return previousScores{h.scoresAt(previous)}
			}).rank(v.value, inCategory)
		}
	}
	return Rank{}
}
