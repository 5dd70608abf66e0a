package feed

import (
	"context"
	"fmt"
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
	toolA, toolB, winner string
	published            bool
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
		s.categories[rec.Slug] = &categoryLine{line: at}
	case *Tool:
		s.tools[rec.Slug] = &toolLine{
			line: at, category: rec.Category, score: rec.Score, tier: int(rec.Tier), mainstream: rec.Mainstream,
			sectionsHash: SectionsHash(rec.Sections), historyHash: historyHash(rec.PriceHistory),
		}
	case *Retired:
		s.tools[rec.Slug] = &toolLine{line: at, retired: true, category: rec.Category, score: rec.Score}
	case *Comparison:
		s.comparisons[rec.Slug] = &comparisonLine{line: at, toolA: rec.ToolA, toolB: rec.ToolB, winner: rec.Winner, published: bool(rec.Published)}
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

// checkReferences names whatever refers to a record that is not there, first
// lines first.
func (s *snapshot) checkReferences(faults *Faults) {
	var missing []Fault
	miss := func(line int, recordType, slug, field, what string) {
		missing = append(missing, Fault{line, fmt.Sprintf("%s: %s: %s does not exist", label(recordType, slug), field, quote(what))})
	}
	for slug, tool := range s.tools {
		if tool.category != "" && s.categories[tool.category] == nil {
			miss(tool.number, tool.recordType(), slug, "category", tool.category)
		}
	}
	for slug, comparison := range s.comparisons {
		if comparison.toolA != "" && s.tools[comparison.toolA] == nil {
			miss(comparison.number, typeComparison, slug, "tool_a", comparison.toolA)
		}
		if comparison.toolB != "" && s.tools[comparison.toolB] == nil {
			miss(comparison.number, typeComparison, slug, "tool_b", comparison.toolB)
		}
	}
	slices.SortStableFunc(missing, func(a, b Fault) int { return a.Line - b.Line })
	for _, fault := range missing {
		faults.add(fault.Line, "%s", fault.Text)
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
