// Package search finds tools by words. It splits text into words itself, and the
// database indexes them: with GIN in PostgreSQL, and with FTS5 in SQLite. This way,
// both find the same tools.
//
// A tool matches if each word of the query is the beginning of some word of the
// tool's name, domain, category label, tagline or review. If no tool matches,
// words of 5 characters or more may contain one typo, unless they are numbers.
package search

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
	"unsafe"

	"entgo.io/ent/dialect"

	"palmares/internal/core/store"
	"palmares/internal/core/text"
)

const (
	// MaxWords is the number of distinct words that a query may have.
	MaxWords = 16
	// minTypo is the length in characters from which a word may have a typo.
	minTypo = 5
)

// ErrTooManyWords is returned for a query of more than MaxWords distinct words.
var ErrTooManyWords = fmt.Errorf("a search may have at most %d distinct words", MaxWords)

// Index holds what a search needs in memory: the vocabulary of a release, and
// the position of each tool in the caller's list.
type Index struct {
	*vocabulary
	dialect   string
	positions []int // by the tool's ID in the index; -1 for none
}

// Load reads the index of a release. position returns the position of a tool in
// the caller's list, and whether it is in the list. The vocabulary is that of all
// releases; words that only occur in other releases match no tools.
func Load(ctx context.Context, db store.Querier, dialectName string, release int, position func(slug string) (int, bool)) (*Index, error) {
	x := &Index{vocabulary: &vocabulary{}, dialect: dialectName}
	if err := x.readTools(ctx, db, release, position); err != nil {
		return nil, err
	}
	words, err := selectString(ctx, db, "SELECT string_agg(word || ' ' || tools, ' ' ORDER BY word) FROM search_words")
	if err != nil {
		return nil, err
	}
	x.total = append(x.total, 0)
	return x, eachPair(words, func(word, tools string) error {
		n, err := strconv.Atoi(tools)
		x.words = append(x.words, word)
		x.total = append(x.total, x.total[len(x.total)-1]+n)
		return err
	})
}

// LoadEarlier reads the index of an earlier release, which shares the vocabulary.
func (x *Index) LoadEarlier(ctx context.Context, db store.Querier, release int, position func(slug string) (int, bool)) (*Index, error) {
	earlier := &Index{vocabulary: x.vocabulary, dialect: x.dialect}
	return earlier, earlier.readTools(ctx, db, release, position)
}

// readTools reads the IDs of the tools of a release.
func (x *Index) readTools(ctx context.Context, db store.Querier, release int, position func(slug string) (int, bool)) error {
	tools, err := selectString(ctx, db, "SELECT string_agg(id || ' ' || slug, ' ') FROM tool_search WHERE since_release <= $1 AND until_release > $1", release)
	if err != nil {
		return err
	}
	return eachPair(tools, func(id, slug string) error {
		n, err := strconv.Atoi(id)
		for len(x.positions) <= n {
			x.positions = append(x.positions, -1)
		}
		if at, ok := position(slug); ok {
			x.positions[n] = at
		}
		return err
	})
}

// Size estimates how many bytes the index takes in addition to another one, with
// which it may share the vocabulary. The other one may be nil.
func (x *Index) Size(other *Index) int64 {
	size := cap(x.positions) * int(unsafe.Sizeof(0))
	if other == nil || other.vocabulary != x.vocabulary {
		size += cap(x.words)*int(unsafe.Sizeof("")) + cap(x.total)*int(unsafe.Sizeof(0))
		for _, word := range x.words {
			size += len(word)
		}
	}
	return int64(size)
}

// Find returns the positions of the tools that match, in no particular order:
// none if there are no words.
func (x *Index) Find(ctx context.Context, db store.Querier, words []string) ([]int, error) {
	words = distinct(slices.Clone(words))
	if len(words) > MaxWords {
		return nil, ErrTooManyWords
	}
	groups := make([][]prefix, len(words))
	for i, word := range words {
		groups[i] = []prefix{x.find(x.all(), word)}
	}
	found, err := x.run(ctx, db, groups)
	if err != nil || len(found) > 0 {
		return found, err
	}
	long := false
	for i, word := range words {
		if mayHaveTypo(word) {
			groups[i], long = x.similar(word), true
		}
	}
	if !long {
		return nil, nil
	}
	return x.run(ctx, db, groups)
}

// mayHaveTypo excludes numbers, because another digit makes another number.
func mayHaveTypo(word string) bool {
	return utf8.RuneCountInString(word) >= minTypo && strings.Trim(word, "0123456789") != ""
}

// run returns the tools that have a word of each group.
func (x *Index) run(ctx context.Context, db store.Querier, groups [][]prefix) ([]int, error) {
	if len(groups) == 0 {
		return nil, nil
	}
	fewest := slices.MinFunc(groups, func(a, b []prefix) int { return x.tools(a) - x.tools(b) })
	if x.tools(fewest) == 0 {
		return nil, nil
	}
	engine := engines[x.dialect]
	var indexed, checked []string
	for _, group := range groups {
		terms, open := x.terms(engine, group, x.tools(group) >= engine.expandFactor*x.tools(fewest))
		term := "(" + strings.Join(terms, engine.or) + ")"
		if open && engine.check != "" && x.tools(group) > checkFactor*x.tools(fewest) {
			checked = append(checked, term)
		} else {
			indexed = append(indexed, term)
		}
	}
	statement, args := engine.match, []any{strings.Join(indexed, engine.and)}
	if len(checked) > 0 {
		statement, args = statement+engine.check, append(args, strings.Join(checked, engine.and))
	}
	ids, err := selectString(ctx, db, statement, args...)
	if err != nil || ids == "" {
		return nil, err
	}
	found := make([]int, 0, strings.Count(ids, " ")+1)
	for id := range strings.SplitSeq(ids, " ") {
		n, err := strconv.Atoi(id)
		if err != nil {
			return nil, fmt.Errorf("read the search index: %w", err)
		}
		if n >= len(x.positions) || x.positions[n] < 0 {
			continue // of another release
		}
		found = append(found, x.positions[n])
	}
	return found, nil
}

// tools returns the maximum number of tools that have a word of a group.
func (x *Index) tools(group []prefix) (n int) {
	for _, p := range group {
		n += x.total[p.to] - x.total[p.from]
	}
	return n
}

const (
	// maxTerms is how many words may replace the prefixes of a group. Both engines
	// read all tools of a prefix that is not indexed. For a word, they skip the tools
	// that other words of the query rule out.
	maxTerms = 32
	// checkFactor is how many entries of the index take as long to read as it
	// takes to check one tool.
	checkFactor = 100
)

// engine describes how a database finds words. Words have only letters, digits
// and marks, so they can be quoted without escaping.
type engine struct {
	match         string
	check         string // a condition that is checked for each tool found; may be empty
	word, prefix  string // formats
	and, or       string
	prefixIndexes int // the length up to which prefixes are indexed
	// expandFactor is how many more tools than the rarest group a group must have
	// for its words to be faster than its prefix.
	expandFactor int
}

var engines = map[string]engine{
	dialect.Postgres: {
		match: "SELECT string_agg(id::text, ' ') FROM tool_search WHERE words @@ $1::tsquery",
		check: " AND (words @@ $2::tsquery) IS TRUE",
		word:  "'%s'", prefix: "'%s':*", and: " & ", or: " | ", expandFactor: 8,
	},
	dialect.SQLite: {
		match: "SELECT group_concat(rowid, ' ') FROM tool_search_index WHERE tool_search_index MATCH $1",
		word:  `"%s"`, prefix: `"%s"*`, and: " AND ", or: " OR ", prefixIndexes: 5,
	},
}

// terms returns the terms of a group, and whether one of them is a prefix. With
// expand, prefixes are replaced with their words.
func (x *Index) terms(e engine, group []prefix, expand bool) (terms []string, open bool) {
	for _, p := range group {
		if p.size() > 1 && (!expand || len(terms)+p.size() > maxTerms || utf8.RuneCountInString(p.text) <= e.prefixIndexes) {
			terms, open = append(terms, fmt.Sprintf(e.prefix, p.text)), true
			continue
		}
		for _, word := range x.words[p.from:p.to] {
			terms = append(terms, fmt.Sprintf(e.word, word))
		}
	}
	return terms, open
}

// Ranks of a match, best first.
const (
	RankExact  = iota // the name has the words of the query, and no others
	RankPrefix        // the name starts with the query
	RankName          // each word of the query starts a word of the name
	RankOther
)

// Key returns the key of a string for Rank.
func Key(s string) string { return strings.Join(text.Words(s), " ") }

// Rank returns how well a name matches a query; both are keys.
func Rank(query, name string) int {
	switch {
	case query == name:
		return RankExact
	case strings.HasPrefix(name, query):
		return RankPrefix
	}
	for word := range strings.SplitSeq(query, " ") {
		if !strings.HasPrefix(name, word) && !strings.Contains(name, " "+word) {
			return RankOther
		}
	}
	return RankName
}

// selectString returns the only column of the only row; "" for null.
func selectString(ctx context.Context, db store.Querier, statement string, args ...any) (string, error) {
	var value sql.NullString
	err := store.ScanRows(ctx, db, func(rows *sql.Rows) error { return rows.Scan(&value) }, statement, args...)
	return value.String, err
}

// eachPair calls do with the words of a list, two at a time.
func eachPair(list string, do func(first, second string) error) error {
	for list != "" {
		var first, second string
		first, list, _ = strings.Cut(list, " ")
		second, list, _ = strings.Cut(list, " ")
		if err := do(first, second); err != nil {
			return err
		}
	}
	return nil
}
