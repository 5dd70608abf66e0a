// Package release holds releases of the catalog in memory and answers questions
// about them in plain Go values. It knows nothing of GraphQL, HTTP or callers.
//
// Start reading at Release, which is one release and never changes. Catalog loads the
// newest one through ent (load.go) and derives earlier ones from it (history.go).
// tool.go declares what a tool is, and the values that tools are filtered, ordered and
// grouped by.
package release

import (
	"cmp"
	"math"
	"slices"
	"sort"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"palmares/ent"
	"palmares/ent/schema"
	"palmares/internal/catalog/search"
	"palmares/internal/core/text"
)

// Release is one release of the catalog: the newest one, with everything except
// reviews, or an earlier one, which shares what has not changed since. It never
// changes.
type Release struct {
	Info        *ent.Release   // nil before the first import
	All         []*ent.Release // up to this one, newest first
	Categories  []*Category    // by slug
	Tools       []*Tool        // active and retired, by slug
	Comparisons []*Comparison  // published ones, most recently updated first

	history *history    // up to the newest release
	like    *sortedLike // nil if all orders are sorted from scratch

	orders  map[Order]func() sorted
	derived sync.Map   // see Derived
	earlier []*Release // derived ones, the most recently used last; see Catalog.Earlier
	size    int64      // approximate, in bytes
}

// Category is a category with its figures.
type Category struct {
	Slug, Label  string
	ToolCount    int
	AvgScore     *float64
	Translations schema.CategoryTranslations
}

// Comparison is a published comparison of two tools.
type Comparison struct {
	*ComparisonText
	A, B, Best *Tool
}

// ComparisonText has the values of a comparison, with the slugs of its tools.
type ComparisonText struct {
	Slug, Title, WinnerNote, UpdatedAt, CanonicalURL, ToolA, ToolB, Winner string
	Translations                                                           schema.ComparisonTranslations
}

// PriceChange is a change to the price of a tool.
type PriceChange struct {
	Tool, ChangedAt, Pricing, Price, PreviousPricing, PreviousPrice string
	Direction                                                       string // "" if the prices cannot be compared
	id                                                              int
}

// Number returns the number of the release, or 0 before the first import.
func (r *Release) Number() int {
	if r.Info == nil {
		return 0
	}
	return r.Info.ID
}

// newRelease prepares what is derived from a release on first use.
func newRelease(info *ent.Release, all []*ent.Release, h *history) *Release {
	r := &Release{
		Info: info, All: all, history: h,
		Categories: at(h.categories, info.ID), Tools: at(h.tools, info.ID),
	}
	for _, c := range at(h.comparisons, info.ID) {
		r.Comparisons = append(r.Comparisons, &Comparison{c, r.Tool(c.ToolA), r.Tool(c.ToolB), r.Tool(c.Winner)})
	}
	r.sortOnUse()
	return r
}

// empty is what there is before the first import.
func empty() *Release {
	r := &Release{history: &history{}}
	r.sortOnUse()
	return r
}

func (r *Release) sortOnUse() {
	r.orders = map[Order]func() sorted{}
	for _, o := range append(slices.Collect(orders()), ByRetirement) {
		r.orders[o] = sync.OnceValue(func() sorted { return r.sorted(o) })
	}
}

// searchedTools has the tool of each text that can be searched.
type searchedTools []*Tool

func newSearchedTools(r *Release) searchedTools {
	tools := make(searchedTools, len(r.history.search.Texts))
	for i, t := range r.history.search.Texts {
		if t.Since <= r.Number() && r.Number() < t.Until {
			tools[i] = r.Tool(t.Slug)
		}
	}
	return tools
}

// comparisonsByTool has the comparisons of each tool.
type comparisonsByTool map[*Tool][]*Comparison

func newComparisonsByTool(r *Release) comparisonsByTool {
	of := comparisonsByTool{}
	for _, c := range r.Comparisons {
		of[c.A] = append(of[c.A], c)
		if c.B != c.A {
			of[c.B] = append(of[c.B], c)
		}
	}
	return of
}

// Tool returns the active or retired tool with a slug, or nil.
func (r *Release) Tool(slug string) *Tool {
	return bySlug(r.Tools, slug, func(t *Tool) string { return t.Slug })
}

// Category returns the category with a slug, or nil.
func (r *Release) Category(slug string) *Category {
	return bySlug(r.Categories, slug, func(c *Category) string { return c.Slug })
}

// FormerCategory returns a category as it was before it was removed, or nil.
func (r *Release) FormerCategory(slug string) (found *Category) {
	all := r.history.categories // by slug, then by release
	at := sort.Search(len(all), func(i int) bool { return all[i].value.Slug >= slug })
	for ; at < len(all) && all[at].value.Slug == slug && all[at].since <= r.Number(); at++ {
		found = all[at].value
	}
	return found
}

func bySlug[V any](sorted []*V, slug string, slugOf func(*V) string) *V {
	i := sort.Search(len(sorted), func(i int) bool { return slugOf(sorted[i]) >= slug })
	if i == len(sorted) || slugOf(sorted[i]) != slug {
		return nil
	}
	return sorted[i]
}

// ComparisonsOf returns the comparisons of a tool, most recently updated first.
func (r *Release) ComparisonsOf(t *Tool) []*Comparison { return Derived(r, newComparisonsByTool)[t] }

// FindComparisons returns the comparisons with the given slugs that exist, most
// recently updated first.
func (r *Release) FindComparisons(slugs ...string) (found []*Comparison) {
	for _, c := range r.Comparisons {
		if slices.Contains(slugs, c.Slug) {
			found = append(found, c)
		}
	}
	return found
}

// PricesOf returns the price changes of a tool, newest first.
func (r *Release) PricesOf(slug string) (changes []*PriceChange) {
	all := r.history.prices
	start, _ := slices.BinarySearchFunc(all, slug, func(v version[PriceChange], slug string) int {
		return strings.Compare(v.value.Tool, slug)
	})
	for _, v := range all[start:] {
		if v.value.Tool != slug {
			break
		}
		if v.has(r.Number()) {
			changes = append(changes, v.value)
		}
	}
	return changes
}

// ParseNumber returns the number of a release as it is written without leading zeros. It
// returns false for anything else, and for numbers of more than nine digits.
func ParseNumber(text string) (number int, ok bool) {
	number, err := strconv.Atoi(text)
	return number, err == nil && 0 < number && number < 1e9 && strconv.Itoa(number) == text
}

// Numbered returns the release with a number, up to this one, or nil.
func (r *Release) Numbered(number int) *ent.Release {
	i, ok := slices.BinarySearchFunc(r.All, number, func(release *ent.Release, number int) int {
		return cmp.Compare(number, release.ID) // newest first
	})
	if !ok {
		return nil
	}
	return r.All[i]
}

// Dated returns the newest of some releases that is dated on or before a day, or nil.
// The releases are newest first.
func Dated(releases []*ent.Release, day string) *ent.Release {
	for _, release := range releases {
		if release.FeedDate <= day {
			return release
		}
	}
	return nil
}

// Readable returns the releases that can be read, up to this one, newest first.
func (r *Release) Readable() []*ent.Release {
	end := slices.IndexFunc(r.All, func(release *ent.Release) bool { return release.ID < r.history.from })
	if end < 0 {
		return r.All
	}
	return r.All[:end]
}

// HistoryFrom returns the oldest release that can be read.
func (r *Release) HistoryFrom() int { return r.history.from }

// Search returns the tools that contain the words of a query, with their ranks: those in a
// language first, unless it is empty. It returns search.ErrTooManyWords for a long query.
func (r *Release) Search(query, language string) (Relevance, error) {
	if r.Info == nil {
		return nil, nil
	}
	found, inLanguage, err := r.history.search.Find(r.Number(), text.Words(query), language)
	if err != nil {
		return nil, err
	}
	tools, key := Derived(r, newSearchedTools), search.Key(query)
	ranks := make(Relevance, len(found))
	for _, i := range found {
		if t := tools[i]; t != nil {
			if ranks[t] = search.Rank(key, t.searchKey); ranks[t] == search.RankOther && language != "" && !inLanguage[i] {
				ranks[t] = search.RankOtherLanguage
			}
		}
	}
	return ranks, nil
}

// Match is a tool that SearchAny found, and how well it matches.
type Match struct {
	*Tool
	Weight float64
}

// SearchAny returns the tools, also retired ones, that contain all words or, if there are
// none, some of them, best first. Rare words and those in names count more.
func (r *Release) SearchAny(words []string) ([]Match, error) {
	if r.Info == nil || len(words) == 0 {
		return nil, nil
	}
	weights, ranks := map[*Tool]float64{}, Relevance{}
	add := func(query string) error {
		found, err := r.Search(query, "")
		for _, t := range r.Tools {
			if err == nil && !t.Active() && t.RetiredWith(text.Words(query)) { // the index has active tools only
				found[t] = search.Rank(search.Key(query), t.searchKey)
			}
		}
		rarity := math.Log(float64(len(r.Tools)+1) / float64(max(1, len(found))))
		for t, rank := range found {
			if strings.Contains(" "+t.NameKey, " "+text.Fold(query)) {
				weights[t] += rarity
			}
			weights[t] += rarity
			if best, known := ranks[t]; !known || rank < best {
				ranks[t] = rank
			}
		}
		return err
	}
	err := add(strings.Join(words, " "))
	if len(weights) == 0 {
		for _, word := range words {
			if err == nil && utf8.RuneCountInString(word) >= shortWord {
				err = add(word)
			}
		}
	}
	var all []Match
	for t, weight := range weights {
		all = append(all, Match{t, weight})
	}
	compare := ByScore.Comparer()
	slices.SortFunc(all, func(a, b Match) int {
		return cmp.Or(cmp.Compare(b.Weight, a.Weight), ranks[a.Tool]-ranks[b.Tool], compare(a.Tool, b.Tool), strings.Compare(a.Slug, b.Slug))
	})
	return all, err
}

// RetiredWith reports whether the name or the note of a retired tool has words that start
// with each of some words.
func (t *Tool) RetiredWith(words []string) bool {
	of := slices.Concat(text.Words(t.Name), text.Words(t.RetiredNote))
	return !slices.ContainsFunc(words, func(word string) bool {
		return !slices.ContainsFunc(of, func(w string) bool { return strings.HasPrefix(w, word) })
	})
}

// shortWord is the number of letters below which SearchAny ignores a word if no tool
// contains all words.
const shortWord = 3

// Correct returns a query without its typos, if no tool matches it as it is, or "".
func (r *Release) Correct(query string) string {
	if r.Info == nil {
		return ""
	}
	return strings.Join(r.history.search.Correct(r.Number(), text.Words(query)), " ")
}

// compareComparisons orders comparisons: most recently updated first, then by slug.
func compareComparisons(a, b *ComparisonText) int {
	return cmp.Or(strings.Compare(b.UpdatedAt, a.UpdatedAt), strings.Compare(a.Slug, b.Slug))
}

// MaxParameters is below the number of parameters that either database accepts.
const MaxParameters = 10_000
