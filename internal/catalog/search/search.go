// Package search finds tools by words. An import splits texts into words and stores
// them (Update); a server holds them in memory (Load).
//
// A tool matches if each word of the query is the beginning of some word of the
// tool's name, domain, category label, tagline or review, in French or English. If no
// tool matches, words of 5 characters or more may contain one typo, unless they are numbers.
package search

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"math/bits"
	"slices"
	"sort"
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

// translated starts the stored words of the English text of a tool that has one, which are
// the first in the index. Words consist of letters and digits.
const translated = "+"

// The languages of texts.
const (
	French  = "fr"
	English = "en"
)

// ErrTooManyWords is returned for a query of more than MaxWords distinct words.
var ErrTooManyWords = fmt.Errorf("a search may have at most %d distinct words", MaxWords)

// Index finds texts by their words: the searchable text of each tool, in all releases
// that can be read. It never changes.
type Index struct {
	words    []string  // all of them, sorted
	postings []posting // by word
	Texts    []Text
}

// Text is the text of a tool from release Since up to, but not including, release
// Until.
type Text struct {
	Slug         string
	Since, Until int
}

// posting lists the positions of the texts that have a word, in order: each as the
// difference from the previous one.
type posting struct {
	differences []byte
	last        int
}

func (p *posting) add(text int) {
	p.differences, p.last = binary.AppendUvarint(p.differences, uint64(text-p.last)), text //nolint:gosec // positions grow
}

// forever is the end of a text that has not been replaced, as the database stores it.
const forever = math.MaxInt32

// rowsOf selects the stored rows.
var rowsOf = map[string]string{
	dialect.Postgres: "SELECT slug, since_release, until_release, array_to_string(tsvector_to_array(words), ' ') FROM tool_search WHERE ",
	dialect.SQLite:   "SELECT slug, since_release, until_release, words FROM tool_search WHERE ",
}

// Load reads the index with a client that sees one state of the database. It shares what
// has not changed with the index of an earlier release since, which may be nil.
func Load(ctx context.Context, db store.Querier, dialectName string, known *Index, since int) (*Index, error) {
	if known == nil {
		known = &Index{}
	}
	type start struct {
		slug  string
		since int
	}
	ended := map[start]int{}
	var row Text
	err := store.ScanRows(ctx, db, func(rows *sql.Rows) error {
		err := rows.Scan(&row.Slug, &row.Since, &row.Until)
		ended[start{row.Slug, row.Since}] = row.Until
		return err
	}, "SELECT slug, since_release, until_release FROM tool_search WHERE since_release <= $1 AND until_release > $1 AND until_release < $2", since, forever)
	if err != nil {
		return nil, err
	}
	texts := slices.Clone(known.Texts)
	for i, t := range texts {
		if until, ok := ended[start{t.Slug, t.Since}]; ok {
			texts[i].Until = until
		}
	}
	return known.read(ctx, db, dialectName, texts, "since_release > $1 ORDER BY id", since)
}

// LoadCurrent reads the index of the texts that have not been replaced.
func LoadCurrent(ctx context.Context, db store.Querier, dialectName string) (*Index, error) {
	return (&Index{}).read(ctx, db, dialectName, nil, "until_release = $1 ORDER BY id", forever)
}

// WithReplaced returns an index of LoadCurrent with the texts that have been replaced.
func (x *Index) WithReplaced(ctx context.Context, db store.Querier, dialectName string) (*Index, error) {
	return x.read(ctx, db, dialectName, slices.Clone(x.Texts), "until_release < $1 ORDER BY id", forever)
}

// read returns an index with the given texts and those of the rows that satisfy a
// condition.
func (x *Index) read(
	ctx context.Context, db store.Querier, dialectName string, texts []Text, condition string, argument any,
) (*Index, error) {
	changed := map[string]*posting{}
	var row Text
	var words sql.RawBytes
	err := store.ScanRows(ctx, db, func(rows *sql.Rows) error {
		if err := rows.Scan(&row.Slug, &row.Since, &row.Until, &words); err != nil {
			return err
		}
		for word := range bytes.FieldsSeq(words) {
			p := changed[string(word)]
			if p == nil {
				p = x.posting(string(word))
				changed[string(word)] = p
			}
			p.add(len(texts))
		}
		texts = append(texts, row)
		return nil
	}, rowsOf[dialectName]+condition, argument)
	if err != nil {
		return nil, err
	}
	return x.with(texts, changed), nil
}

// posting returns a copy of the posting of a word, to which texts can be added.
func (x *Index) posting(word string) *posting {
	i, ok := slices.BinarySearch(x.words, word)
	if !ok {
		return &posting{}
	}
	return &posting{slices.Clone(x.postings[i].differences), x.postings[i].last}
}

// with returns an index with other texts, and with some postings replaced or added.
func (x *Index) with(texts []Text, changed map[string]*posting) *Index {
	next := &Index{Texts: texts}
	known := x.words
	for _, word := range slices.Sorted(maps.Keys(changed)) {
		for len(known) > 0 && known[0] < word {
			next.add(known[0], x.postings[len(x.words)-len(known)])
			known = known[1:]
		}
		if len(known) > 0 && known[0] == word {
			known = known[1:]
		}
		next.add(word, posting{slices.Clone(changed[word].differences), changed[word].last}) // trims the capacity
	}
	for i := len(x.words) - len(known); i < len(x.words); i++ {
		next.add(x.words[i], x.postings[i])
	}
	return next
}

func (x *Index) add(word string, p posting) {
	x.words, x.postings = append(x.words, word), append(x.postings, p)
}

// Outdated reports whether most texts belong to releases before from, which can no
// longer be read.
func (x *Index) Outdated(from int) bool {
	outdated := 0
	for _, t := range x.Texts {
		if t.Until <= from {
			outdated++
		}
	}
	return outdated > len(x.Texts)/2
}

// Size estimates how many bytes the index takes.
func (x *Index) Size() (size int64) {
	for i, word := range x.words {
		size += int64(len(word)+len(x.postings[i].differences)) + int64(unsafe.Sizeof(word)+unsafe.Sizeof(posting{}))
	}
	return size + int64(len(x.Texts))*int64(unsafe.Sizeof(Text{}))
}

// Find returns the positions of the texts in a release that match: none if there are no
// words. Those in inLanguage match in a language, unless it is empty.
func (x *Index) Find(release int, words []string, language string) (found []int, inLanguage map[int]bool, err error) {
	words = distinct(slices.Clone(words))
	if len(words) > MaxWords {
		return nil, nil, ErrTooManyWords
	}
	found, groups, _ := x.find(release, words)
	if language == "" || len(found) == 0 {
		return found, nil, nil
	}
	end := x.in(English).to
	for i, group := range groups {
		groups[i] = slices.DeleteFunc(group, func(p prefix) bool { return p.from < end != (language == English) })
	}
	inLanguage = map[int]bool{}
	for _, text := range x.run(release, groups) {
		inLanguage[text] = true
	}
	return found, inLanguage, nil
}

// find returns the positions of the texts that match, and the words that each word may
// stand for; typos is set if these are similar ones.
func (x *Index) find(release int, words []string) (found []int, groups [][]prefix, typos bool) {
	groups = make([][]prefix, len(words))
	for i, word := range words {
		groups[i] = []prefix{x.starting(x.in(English), translated+word), x.starting(x.in(French), word)}
	}
	if found := x.run(release, groups); len(found) > 0 {
		return found, groups, false
	}
	for i, word := range words {
		if mayHaveTypo(word) {
			groups[i], typos = slices.Concat(x.similar(English, word), x.similar(French, word)), true
		}
	}
	if !typos {
		return nil, groups, false
	}
	return x.run(release, groups), groups, true
}

// Correct returns the words of a query, some of them corrected, if only texts with a
// typo in the query match. Otherwise, it returns nil.
func (x *Index) Correct(release int, words []string) (corrected []string) {
	if len(words) > MaxWords {
		return nil
	}
	found, groups, typos := x.find(release, words)
	if len(found) == 0 || !typos {
		return nil
	}
	for i, group := range groups {
		at := slices.IndexFunc(group, func(p prefix) bool {
			groups[i] = []prefix{p}
			return len(x.run(release, groups)) > 0
		})
		p := group[at] // one of them matches, because all of them together do
		groups[i] = []prefix{p}
		if p.text = strings.TrimPrefix(p.text, translated); p.text != words[i] && p.size() == 1 {
			p.text = strings.TrimPrefix(x.words[p.from], translated) // the whole word
		}
		corrected = append(corrected, p.text)
	}
	return corrected
}

// prefix stands for all words that start with it: words[from:to].
type prefix struct {
	text     string
	from, to int
}

func (p prefix) size() int { return p.to - p.from }

// in returns all words of a language.
func (x *Index) in(language string) prefix {
	english := x.starting(prefix{"", 0, len(x.words)}, translated)
	if language == English {
		return english
	}
	return prefix{"", english.to, len(x.words)}
}

// starting returns the words within a prefix that start with a longer one.
func (x *Index) starting(within prefix, text string) prefix {
	words := x.words[within.from:within.to]
	from := sort.SearchStrings(words, text)
	to := from + sort.Search(len(words)-from, func(i int) bool { return !strings.HasPrefix(words[from+i], text) })
	return prefix{text, within.from + from, within.from + to}
}

// similar returns the words of a language that start with a string that differs from word
// by at most one inserted, missing or wrong character, or two swapped adjacent ones.
func (x *Index) similar(language, word string) []prefix {
	var found []prefix
	all := x.in(language)
	word = all.text + word
	add := func(within prefix, parts ...string) {
		if p := x.starting(within, strings.Join(parts, "")); p.size() > 0 {
			found = append(found, p)
		}
	}
	add(all, word)
	// Words that start with word[:i] and differ at the next character.
	for i, within := len(all.text), all; i < len(word) && within.size() > 0; {
		before := word[:i]
		_, width := utf8.DecodeRuneInString(word[i:])
		here, rest := word[i:i+width], word[i+width:]
		add(within, before, rest)
		if _, next := utf8.DecodeRuneInString(rest); next > 0 {
			add(within, before, rest[:next], here, rest[next:])
		}
		for other := range x.following(within) {
			add(other, other.text, rest)
			add(other, other.text, word[i:])
		}
		i += width
		within = x.starting(within, word[:i])
	}
	// Two prefixes have either no words in common, or one has all of the other's.
	slices.SortFunc(found, func(a, b prefix) int {
		if a.from != b.from {
			return a.from - b.from
		}
		return b.to - a.to
	})
	last := 0
	return slices.DeleteFunc(found, func(p prefix) bool {
		if p.to <= last {
			return true
		}
		last = p.to
		return false
	})
}

// following yields the prefixes that are one character longer.
func (x *Index) following(p prefix) func(yield func(prefix) bool) {
	return func(yield func(prefix) bool) {
		for at := p.from; at < p.to; {
			rest := x.words[at][len(p.text):]
			if rest == "" {
				at++ // the prefix is a word itself
				continue
			}
			_, width := utf8.DecodeRuneInString(rest)
			longer := x.starting(prefix{from: at, to: p.to}, x.words[at][:len(p.text)+width])
			if !yield(longer) {
				return
			}
			at = longer.to
		}
	}
}

// mayHaveTypo excludes numbers, because another digit makes another number.
func mayHaveTypo(word string) bool {
	return utf8.RuneCountInString(word) >= minTypo && strings.Trim(word, "0123456789") != ""
}

// run returns the texts in a release that have a word of each group.
func (x *Index) run(release int, groups [][]prefix) (found []int) {
	if len(groups) == 0 {
		return nil
	}
	all := make([]uint64, len(x.Texts)/64+1) // one bit for each text
	of := make([]uint64, len(all))
	for i, group := range groups {
		clear(of)
		for _, p := range group {
			for _, list := range x.postings[p.from:p.to] {
				at := uint64(0)
				for rest := list.differences; len(rest) > 0; {
					difference, n := binary.Uvarint(rest)
					rest = rest[n:]
					at += difference
					of[at/64] |= 1 << (at % 64)
				}
			}
		}
		for j := range all {
			if i == 0 {
				all[j] = of[j]
			}
			all[j] &= of[j]
		}
	}
	for i, set := range all {
		for ; set != 0; set &= set - 1 {
			at := i*64 + bits.TrailingZeros64(set)
			if t := x.Texts[at]; t.Since <= release && release < t.Until {
				found = append(found, at)
			}
		}
	}
	return found
}

// Ranks of a match, best first.
const (
	RankExact  = iota // the name has the words of the query, and no others
	RankPrefix        // the name starts with the query
	RankName          // each word of the query starts a word of the name
	RankOther
	RankOtherLanguage // with a language, other matches in another one
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
