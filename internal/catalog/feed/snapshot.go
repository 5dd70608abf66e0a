package feed

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"palmares/internal/catalog/record"
	"palmares/internal/core/text"
)

// snapshot is a valid feed, reduced to what is needed to compare it with the catalog
// and to derive statistics. Only categories, which are few, are stored in full.
type snapshot struct {
	header      record.Header
	categories  map[string]*categoryLine
	tools       map[string]*toolLine // active and retired
	comparisons map[string]*comparisonLine

	active             scoreStats
	retired, published int // tools, comparisons
}

type line struct {
	number      int
	fingerprint string
}

type categoryLine struct {
	line
	category *record.Category
	stats    scoreStats // of its active tools
}

type toolLine struct {
	line
	retired      bool
	category     string
	score        *float64
	tier         record.Tier
	mainstream   bool
	reviewed     bool // has sections
	sectionsHash string
	historyHash  string
	inEmbeddings bool
	metadata     string // of the embeddings document; empty for tools that do not qualify
}

type comparisonLine struct {
	line
	toolA, toolB, winner string
	published            bool
}

// scoreStats counts tools and averages the scores they have.
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

// mean returns nil if no tool has a score.
func (s *scoreStats) mean() *float64 { return text.Mean(s.sum, s.tested) }

// Read reads and validates a whole catalog, and calls each for its records that are valid
// on their own, with their numbers. It returns *ValidationError if the catalog is not valid.
func Read(ctx context.Context, source Source, each func(number int, rec record.Record)) (record.Header, error) {
	snap, err := takeSnapshot(ctx, source, nil, each)
	if err != nil {
		return record.Header{}, err
	}
	return snap.header, nil
}

// takeSnapshot is Read, and returns what an import needs.
func takeSnapshot(ctx context.Context, source Source, progress func(done, total int64), each func(number int, rec record.Record)) (*snapshot, error) {
	snap := &snapshot{
		categories:  map[string]*categoryLine{},
		tools:       map[string]*toolLine{},
		comparisons: map[string]*comparisonLine{},
	}
	errs := &ValidationError{source: source}
	s := scanner{selected: Selection{Types: record.Types}, errs: errs}
	s.visit = func(number int, rec record.Record, valid bool) error {
		if first := snap.lineOf(rec); first != 0 {
			errs.add(number, label(rec.RecordType(), rec.RecordSlug()), "slug", fmt.Sprintf("is already used at %s; each slug may appear once", source.Locate(first, "slug")))
			return nil
		}
		snap.add(number, rec, valid)
		if valid && each != nil {
			each(number, rec)
		}
		return nil
	}
	if err := s.scan(ctx, source, progress); err != nil {
		return nil, err
	}
	snap.header = s.header
	if !s.incomplete && !errs.More {
		snap.checkReferences(errs)
	}
	if err := errs.err(); err != nil {
		return nil, err
	}
	snap.deriveStats()
	for _, slug := range snap.embeddingsSet() {
		snap.tools[slug].inEmbeddings = true
	}
	return snap, nil
}

// add stores a record, even if it is not valid, because references to it are valid.
func (s *snapshot) add(number int, rec record.Record, valid bool) {
	at := line{number: number}
	if valid {
		at.fingerprint = record.Fingerprint(rec)
	}
	switch rec := rec.(type) {
	case *record.Category:
		s.categories[rec.Slug] = &categoryLine{line: at, category: rec}
	case *record.Tool:
		tool := &toolLine{
			line: at, category: rec.Category, score: rec.Score, tier: rec.Tier, mainstream: rec.Mainstream, reviewed: len(rec.Sections) > 0,
			sectionsHash: record.SectionsHash(rec.Sections), historyHash: record.HistoryHash(rec.PriceHistory),
		}
		if tool.embeddingsGroup() != 0 {
			tool.metadata = record.DocumentMetadata(rec)
		}
		s.tools[rec.Slug] = tool
	case *record.Retired:
		s.tools[rec.Slug] = &toolLine{line: at, retired: true, category: rec.Category, score: rec.Score}
	case *record.Comparison:
		s.comparisons[rec.Slug] = &comparisonLine{line: at, toolA: rec.ToolA, toolB: rec.ToolB, winner: rec.Winner, published: bool(rec.Published)}
	}
}

// lineOf returns the line that already uses a record's slug, or 0. Active and
// retired tools share their slugs.
func (s *snapshot) lineOf(rec record.Record) int {
	slug := rec.RecordSlug()
	switch rec.(type) {
	case *record.Category:
		return cmp.Or(s.categories[slug], &categoryLine{}).number
	case *record.Comparison:
		return cmp.Or(s.comparisons[slug], &comparisonLine{}).number
	default:
		return cmp.Or(s.tools[slug], &toolLine{}).number
	}
}

// checkReferences reports references to records that the feed does not have. A
// reference is empty if its field has an error of its own.
func (s *snapshot) checkReferences(errs *ValidationError) {
	type reference struct {
		line                            int
		recordType, slug, field, target string
	}
	var missing []reference
	check := func(line int, recordType, slug, field, target string, found bool) {
		if target != "" && !found {
			missing = append(missing, reference{line, recordType, slug, field, target})
		}
	}
	for slug, tool := range s.tools {
		recordType := record.TypeTool
		if tool.retired {
			recordType = record.TypeRetired
		}
		check(tool.number, recordType, slug, "category", tool.category, s.categories[tool.category] != nil)
	}
	for slug, c := range s.comparisons {
		check(c.number, record.TypeComparison, slug, "tool_a", c.toolA, s.tools[c.toolA] != nil)
		check(c.number, record.TypeComparison, slug, "tool_b", c.toolB, s.tools[c.toolB] != nil)
	}
	slices.SortFunc(missing, func(a, b reference) int { return cmp.Or(a.line-b.line, cmp.Compare(a.field, b.field)) })
	for _, m := range missing {
		noun, _, _ := strings.Cut(m.field, "_") // category or tool
		errs.add(m.line, label(m.recordType, m.slug), m.field, "the feed has no "+noun+" "+record.Quote(m.target)+"; add it, or correct the slug")
	}
}

// deriveStats counts and averages tools in the order of their slugs, so that
// floating-point sums are reproducible.
func (s *snapshot) deriveStats() {
	for _, slug := range sortedKeys(s.tools) {
		tool := s.tools[slug]
		if tool.retired {
			s.retired++
			continue
		}
		s.active.add(tool.score)
		s.categories[tool.category].stats.add(tool.score)
	}
	for _, comparison := range s.comparisons {
		if comparison.published {
			s.published++
		}
	}
}

// embeddingsLimit is the maximum size of the embeddings set.
const embeddingsLimit = 300

// embeddingsGroup returns the first of the three groups of the embeddings set that a
// tool belongs to, or 0. A tool without a review has nothing to embed.
func (t *toolLine) embeddingsGroup() int {
	switch {
	case t.retired || !t.reviewed:
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

// embeddingsSet returns the slugs of the tools in the set, ordered by group, by score
// (untested tools last) and by slug.
func (s *snapshot) embeddingsSet() []string {
	var set []string
	for slug, tool := range s.tools {
		if tool.embeddingsGroup() != 0 {
			set = append(set, slug)
		}
	}
	rank := func(slug string) float64 {
		if score := s.tools[slug].score; score != nil {
			return *score
		}
		return -1
	}
	slices.SortFunc(set, func(a, b string) int {
		return cmp.Or(
			cmp.Compare(s.tools[a].embeddingsGroup(), s.tools[b].embeddingsGroup()),
			cmp.Compare(rank(b), rank(a)),
			cmp.Compare(a, b),
		)
	})
	return set[:min(len(set), embeddingsLimit)]
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
