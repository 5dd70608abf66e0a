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

// Snapshot is a valid feed, reduced to what is needed to compare it with the catalog
// and to derive statistics. Only categories, which are few, are stored in full.
type Snapshot struct {
	Header      record.Header
	Categories  map[string]*Category
	Tools       map[string]*Tool // active and retired
	Comparisons map[string]*Comparison

	Active             Scores
	Retired, Published int // tools, comparisons
}

// Entry identifies a record and its content.
type Entry struct {
	Number      int // of its item
	Fingerprint string
}

// Category is a category of a snapshot.
type Category struct {
	Entry
	Record *record.Category
	Scores Scores // of its active tools
}

// Tool is an active or retired tool of a snapshot.
type Tool struct {
	Entry
	Retired      bool
	Category     string
	SectionsHash string
	HistoryHash  string
	InEmbeddings bool
	Metadata     string // of the embeddings document; empty for tools that do not qualify

	score      *float64
	tier       record.Tier
	mainstream bool
	reviewed   bool // has sections
}

// Comparison is a comparison of a snapshot.
type Comparison struct {
	Entry
	Winner    string
	Published bool

	toolA, toolB string
}

// Scores counts tools and averages the scores they have.
type Scores struct {
	Tools, Tested int
	sum           float64
}

func (s *Scores) add(score *float64) {
	s.Tools++
	if score != nil {
		s.Tested++
		s.sum += *score
	}
}

// Mean returns nil if no tool has a score.
func (s *Scores) Mean() *float64 { return text.Mean(s.sum, s.Tested) }

// Read reads and validates a whole catalog, and calls each for its records that are valid
// on their own, with their numbers. It returns *ValidationError if the catalog is not valid.
func Read(ctx context.Context, source Source, each func(number int, rec record.Record)) (record.Header, error) {
	snap, err := Check(ctx, source, nil, each)
	if err != nil {
		return record.Header{}, err
	}
	return snap.Header, nil
}

// ReadSelected reads some records again, with their sizes in bytes. It returns
// *ValidationError if anything that it reads is not valid.
func ReadSelected(ctx context.Context, source Source, selected Selection, progress func(done, total int64), each func(rec record.Record, valid bool, size int) error) error {
	s := scanner{selected: selected, errs: &ValidationError{source: source}}
	s.visit = func(_ int, rec record.Record, valid bool) error { return each(rec, valid, s.size) }
	if err := s.scan(ctx, source, progress); err != nil {
		return err
	}
	return s.errs.err()
}

// Check reads and validates a whole catalog like Read, and returns what an import needs.
func Check(ctx context.Context, source Source, progress func(done, total int64), each func(number int, rec record.Record)) (*Snapshot, error) {
	snap := &Snapshot{
		Categories:  map[string]*Category{},
		Tools:       map[string]*Tool{},
		Comparisons: map[string]*Comparison{},
	}
	errs := &ValidationError{source: source}
	s := scanner{selected: Selection{Types: record.Types, LocateValid: each != nil}, errs: errs}
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
	snap.Header = s.header
	if !s.incomplete && !errs.More {
		snap.checkReferences(errs)
	}
	if err := errs.err(); err != nil {
		return nil, err
	}
	snap.deriveStats()
	for _, slug := range snap.embeddingsSet() {
		snap.Tools[slug].InEmbeddings = true
	}
	return snap, nil
}

// add stores a record, even if it is not valid, because references to it are valid.
func (s *Snapshot) add(number int, rec record.Record, valid bool) {
	at := Entry{Number: number}
	if valid {
		at.Fingerprint = record.Fingerprint(rec)
	}
	switch rec := rec.(type) {
	case *record.Category:
		s.Categories[rec.Slug] = &Category{Entry: at, Record: rec}
	case *record.Tool:
		tool := &Tool{
			Entry: at, Category: rec.Category, score: rec.Score, tier: rec.Tier, mainstream: rec.Mainstream, reviewed: len(rec.Sections) > 0,
			SectionsHash: record.SectionsHash(rec.Sections), HistoryHash: record.HistoryHash(rec.PriceHistory),
		}
		if tool.embeddingsGroup() != 0 {
			tool.Metadata = record.DocumentMetadata(rec)
		}
		s.Tools[rec.Slug] = tool
	case *record.Retired:
		s.Tools[rec.Slug] = &Tool{Entry: at, Retired: true, Category: rec.Category, score: rec.Score}
	case *record.Comparison:
		s.Comparisons[rec.Slug] = &Comparison{Entry: at, toolA: rec.ToolA, toolB: rec.ToolB, Winner: rec.Winner, Published: bool(rec.Published)}
	}
}

// lineOf returns the line that already uses a record's slug, or 0. Active and
// retired tools share their slugs.
func (s *Snapshot) lineOf(rec record.Record) int {
	slug := rec.RecordSlug()
	switch rec.(type) {
	case *record.Category:
		return cmp.Or(s.Categories[slug], &Category{}).Number
	case *record.Comparison:
		return cmp.Or(s.Comparisons[slug], &Comparison{}).Number
	default:
		return cmp.Or(s.Tools[slug], &Tool{}).Number
	}
}

// checkReferences reports references to records that the feed does not have. A
// reference is empty if its field has an error of its own.
func (s *Snapshot) checkReferences(errs *ValidationError) {
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
	for slug, tool := range s.Tools {
		recordType := record.TypeTool
		if tool.Retired {
			recordType = record.TypeRetired
		}
		check(tool.Number, recordType, slug, "category", tool.Category, s.Categories[tool.Category] != nil)
	}
	for slug, c := range s.Comparisons {
		check(c.Number, record.TypeComparison, slug, "tool_a", c.toolA, s.Tools[c.toolA] != nil)
		check(c.Number, record.TypeComparison, slug, "tool_b", c.toolB, s.Tools[c.toolB] != nil)
	}
	slices.SortFunc(missing, func(a, b reference) int { return cmp.Or(a.line-b.line, cmp.Compare(a.field, b.field)) })
	for _, m := range missing {
		noun, _, _ := strings.Cut(m.field, "_") // category or tool
		errs.add(m.line, label(m.recordType, m.slug), m.field, "the feed has no "+noun+" "+record.Quote(m.target)+"; add it, or correct the slug")
	}
}

// deriveStats counts and averages tools in the order of their slugs, so that
// floating-point sums are reproducible.
func (s *Snapshot) deriveStats() {
	for _, slug := range sortedKeys(s.Tools) {
		tool := s.Tools[slug]
		if tool.Retired {
			s.Retired++
			continue
		}
		s.Active.add(tool.score)
		s.Categories[tool.Category].Scores.add(tool.score)
	}
	for _, comparison := range s.Comparisons {
		if comparison.Published {
			s.Published++
		}
	}
}

// embeddingsLimit is the maximum size of the embeddings set.
const embeddingsLimit = 300

// embeddingsGroup returns the first of the three groups of the embeddings set that a
// tool belongs to, or 0. A tool without a review has nothing to embed.
func (t *Tool) embeddingsGroup() int {
	switch {
	case t.Retired || !t.reviewed:
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
func (s *Snapshot) embeddingsSet() []string {
	var set []string
	for slug, tool := range s.Tools {
		if tool.embeddingsGroup() != 0 {
			set = append(set, slug)
		}
	}
	rank := func(slug string) float64 {
		if score := s.Tools[slug].score; score != nil {
			return *score
		}
		return -1
	}
	slices.SortFunc(set, func(a, b string) int {
		return cmp.Or(
			cmp.Compare(s.Tools[a].embeddingsGroup(), s.Tools[b].embeddingsGroup()),
			cmp.Compare(rank(b), rank(a)),
			cmp.Compare(a, b),
		)
	})
	return set[:min(len(set), embeddingsLimit)]
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
