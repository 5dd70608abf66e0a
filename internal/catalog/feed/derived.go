package feed

import (
	"cmp"
	"slices"

	"palmares/internal/core/text"
)

// What follows from a whole feed: statistics and the embeddings set.

// embeddingsLimit is how many tools the embeddings set has at the most.
const embeddingsLimit = 300

// scoreStats counts tools and averages the scores that exist.
type scoreStats struct {
	tools, tested int
	sum           float64
}

func (s *scoreStats) add(score *float64) {
	s.tools++
	if score != nil {
		s.tested++
		s.sum += *score
	}
}

// mean is nil when nothing has a score.
func (s *scoreStats) mean() *float64 { return text.Mean(s.sum, s.tested) }

// totals are the statistics of a release.
type totals struct {
	active             scoreStats
	retired, published int // tools, comparisons
}

// workOut fills in what only the whole feed can tell. Tools go in the order of
// their slugs, so that sums come out the same to the last bit.
func (s *snapshot) workOut() {
	for _, slug := range sortedKeys(s.tools) {
		tool := s.tools[slug]
		if tool.retired {
			s.totals.retired++
			continue
		}
		s.totals.active.add(tool.score)
		s.categories[tool.category].stats.add(tool.score)
	}
	for _, comparison := range s.comparisons {
		if comparison.published {
			s.totals.published++
		}
	}
	for _, slug := range s.embeddingsSet() {
		s.tools[slug].inEmbeddings = true
	}
}

// embeddingsGroup is the first of the three ways into the set that a tool
// qualifies by; 0 is none.
func (t *toolLine) embeddingsGroup() int {
	switch {
	case t.retired:
		return 0
	case t.tier == 1:
		return 1
	case t.score != nil && *t.score >= 8:
		return 2
	case t.tier == 2 && t.mainstream:
		return 3
	}
	return 0
}

// embeddingsSet is who qualifies, best first: by group, then score with the
// unscored last, then slug.
func (s *snapshot) embeddingsSet() []string {
	var set []string
	for slug, tool := range s.tools {
		if tool.embeddingsGroup() != 0 {
			set = append(set, slug)
		}
	}
	rank := func(score *float64) float64 {
		if score == nil {
			return -1
		}
		return *score
	}
	slices.SortFunc(set, func(a, b string) int {
		return cmp.Or(
			cmp.Compare(s.tools[a].embeddingsGroup(), s.tools[b].embeddingsGroup()),
			cmp.Compare(rank(s.tools[b].score), rank(s.tools[a].score)),
			cmp.Compare(a, b),
		)
	})
	return set[:min(len(set), embeddingsLimit)]
}
