package feed

import (
	"context"
	"io"
	"slices"
)

// snapshot is a whole, checked feed, with just enough of each record kept to
// compare it with the catalog and to work out what follows from all of them.
type snapshot struct {
	header      Header
	categories  map[string]*categoryLine
	tools       map[string]*toolLine // active and retired
	comparisons map[string]*comparisonLine
	totals      totals
}

// line is what every record leaves behind.
type line struct {
	number      int
	fingerprint string
}

type categoryLine struct {
	line
	label string
	stats scoreStats // of its active tools
}

type toolLine struct {
	line
	retired      bool
	category     string
	score        *float64
	tier         int
	mainstream   bool
	sectionsHash string
	historyHash  string
	inEmbeddings bool
}

type comparisonLine struct {
	line
	toolA, toolB string
	published    bool
}

// takeSnapshot reads a feed whole. Its error is a *Faults when the feed is wrong.
func takeSnapshot(ctx context.Context, r io.Reader) (*snapshot, error) {
	snap := &snapshot{
		categories:  map[string]*categoryLine{},
		tools:       map[string]*toolLine{},
		comparisons: map[string]*comparisonLine{},
	}
	faults := &Faults{}
	s := scanner{types: everyType, faults: faults}
	s.visit = func(number int, rec record, sound bool) error {
		snap.add(number, rec, sound, faults)
		return nil
	}
	if err := s.scan(ctx, r); err != nil {
		return nil, err
	}
	snap.header = s.header
	if !s.unreadable && !faults.full() {
		snap.checkReferences(faults)
	}
	if err := faults.err(); err != nil {
		return nil, err
	}
	snap.workOut()
	return snap, nil
}

// add keeps a record that has its slug to itself. One with faults is kept
// too: what refers to it is not wrong for that.
func (s *snapshot) add(number int, rec record, sound bool, faults *Faults) {
	if first := s.lineOf(rec); first != 0 {
		faults.add(number, "%s: slug: is already used at line %d", label(rec.recordType(), rec.recordSlug()), first)
		return
	}
	at := line{number: number}
	if sound {
		at.fingerprint = digest(summary(rec))
	}
	switch rec := rec.(type) {
	case *Category:
		s.categories[rec.Slug] = &categoryLine{line: at, label: rec.Label}
	case *Tool:
		s.tools[rec.Slug] = &toolLine{
			line: at, category: rec.Category, score: rec.Score, tier: rec.Tier, mainstream: rec.Mainstream,
			sectionsHash: SectionsHash(rec.Sections), historyHash: rec.historyHash(),
		}
	case *Retired:
		s.tools[rec.Slug] = &toolLine{line: at, retired: true, category: rec.Category, score: rec.Score}
	case *Comparison:
		s.comparisons[rec.Slug] = &comparisonLine{line: at, toolA: rec.ToolA, toolB: rec.ToolB, published: rec.Published}
	}
}

// lineOf is where a record's slug was used before, or 0.
func (s *snapshot) lineOf(rec record) int {
	switch rec.(type) {
	case *Category:
		if first := s.categories[rec.recordSlug()]; first != nil {
			return first.number
		}
	case *Comparison:
		if first := s.comparisons[rec.recordSlug()]; first != nil {
			return first.number
		}
	default: // active and retired tools share their slugs
		if first := s.tools[rec.recordSlug()]; first != nil {
			return first.number
		}
	}
	return 0
}

// checkReferences names whatever refers to a record that is not there.
func (s *snapshot) checkReferences(faults *Faults) {
	for _, slug := range sortedKeys(s.tools) {
		if tool := s.tools[slug]; tool.category != "" && s.categories[tool.category] == nil {
			faults.add(tool.number, "%s: category: %s does not exist", label(tool.recordType(), slug), quote(tool.category))
		}
	}
	for _, slug := range sortedKeys(s.comparisons) {
		comparison := s.comparisons[slug]
		missing := func(field, tool string) {
			if tool != "" && s.tools[tool] == nil {
				faults.add(comparison.number, "%s: %s: %s does not exist", label(typeComparison, slug), field, quote(tool))
			}
		}
		missing("tool_a", comparison.toolA)
		missing("tool_b", comparison.toolB)
	}
}

func (t *toolLine) recordType() string {
	if t.retired {
		return typeRetired
	}
	return typeTool
}

// sortedKeys gives maps an order that does not change from run to run.
func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}
