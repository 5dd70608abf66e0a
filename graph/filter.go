package graph

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"palmares/graph/model"
	"palmares/internal/catalog/search"
	"palmares/internal/core/params"
	"palmares/internal/core/problem"
	"palmares/internal/core/store"
	"palmares/internal/core/text"
)

// toolFilter converts a filter to a condition on tools; nil for none.
func (r *reader) toolFilter(ctx context.Context, filter *model.ToolFilter) (matches func(int) bool, err error) {
	if filter == nil || reflect.ValueOf(*filter).IsZero() {
		return nil, nil
	}
	if err := checkFilter(filter); err != nil {
		return nil, err
	}
	var found map[int]int
	if isSearch(filter) {
		if found, err = r.search(ctx, *filter.Search); err != nil {
			return nil, err
		}
	}
	matchesTool := toolCondition(filter)
	return func(i int) bool {
		if found != nil {
			if _, ok := found[i]; !ok {
				return false
			}
		}
		return matchesTool(r.index.tools[i])
	}, nil
}

// checkFilter rejects values that no tool can have.
func checkFilter(filter *model.ToolFilter) error {
	if len(filter.Categories) > maxFilterCategories {
		return problem.New(problem.BadInput, "filter.categories must have at most %d values (got %d).", maxFilterCategories, len(filter.Categories))
	}
	for _, slug := range filter.Categories {
		if err := checkText("filter.categories", slug, maxSlugText); err != nil {
			return err
		}
	}
	if filter.Slugs != nil && (len(filter.Slugs) == 0 || len(filter.Slugs) > maxFilterSlugs) {
		return problem.New(problem.BadInput, "filter.slugs must have 1 to %d values (got %d).", maxFilterSlugs, len(filter.Slugs))
	}
	slugs := map[string]bool{}
	for _, slug := range filter.Slugs {
		if err := checkText("filter.slugs", slug, maxSlugText); err != nil {
			return err
		}
		if slugs[slug] {
			return problem.New(problem.BadInput, "filter.slugs must not contain duplicates (got %q more than once).", slug)
		}
		slugs[slug] = true
	}
	for _, tier := range filter.Tiers {
		if err := params.CheckRange("filter.tiers", tier, 1, lowestTier); err != nil {
			return err
		}
	}
	return nil
}

const (
	maxFilterCategories = 100
	maxFilterSlugs      = 200
	lowestTier          = 3
)

// toolCondition converts a filter without its search to a condition on tools of
// any release.
func toolCondition(filter *model.ToolFilter) func(*indexedTool) bool {
	icps := mapSlice(filter.Icps, func(i model.Icp) string { return strings.ReplaceAll(string(i), "_", "-") })
	tiers := mapSlice(filter.Tiers, strconv.Itoa)
	slugs := map[string]bool{}
	for _, slug := range filter.Slugs {
		slugs[slug] = true
	}
	return func(t *indexedTool) bool {
		return (filter.Slugs == nil || slugs[t.slug]) &&
			(filter.Categories == nil || slices.Contains(filter.Categories, t.category)) &&
			(filter.Pricings == nil || slices.Contains(filter.Pricings, t.pricing)) &&
			(filter.Icps == nil || slices.Contains(icps, t.icp)) &&
			(filter.ScoreMin == nil || t.score >= *filter.ScoreMin) &&
			(filter.ScoreMax == nil || t.score <= *filter.ScoreMax) &&
			(filter.VerifiabilityMin == nil || t.verifiability >= *filter.VerifiabilityMin) &&
			(filter.VerifiabilityMax == nil || t.verifiability <= *filter.VerifiabilityMax) &&
			(filter.ObsolescenceMin == nil || t.obsolescence >= *filter.ObsolescenceMin) &&
			(filter.ObsolescenceMax == nil || t.obsolescence <= *filter.ObsolescenceMax) &&
			(filter.PriceMax == nil || t.price <= *filter.PriceMax) &&
			(filter.MonthlyPriceMin == nil || t.monthlyPrice >= *filter.MonthlyPriceMin) &&
			(filter.MonthlyPriceMax == nil || t.monthlyPrice <= *filter.MonthlyPriceMax) &&
			(filter.Tiers == nil || slices.Contains(tiers, t.tier)) &&
			(filter.HasEmbeddings == nil || t.inEmbeddings == *filter.HasEmbeddings) &&
			(filter.UpdatedSince == nil || t.updatedAt >= *filter.UpdatedSince) &&
			(filter.UpdatedBefore == nil || t.updatedAt < *filter.UpdatedBefore)
	}
}

// MaxSearchWords is the maximum number of different words in a search.
const MaxSearchWords = search.MaxWords

var errTooManyWords = problem.New(problem.BadInput, string(tooManyWords), MaxSearchWords)

func isSearch(filter *model.ToolFilter) bool {
	return filter != nil && filter.Search != nil && strings.TrimSpace(*filter.Search) != ""
}

// search returns the matching tools with their ranks.
func (r *reader) search(ctx context.Context, query string) (map[int]int, error) {
	if err := checkText("filter.search", query, maxSearchText); err != nil {
		return nil, err
	}
	if ranks, done := r.searches[query]; done || r.release == nil {
		return ranks, nil
	}
	index, err := r.index.searchIndex(ctx, r.catalog, r.executor.index.Load())
	if err != nil {
		return nil, err
	}
	found, err := index.Find(ctx, r.catalog, text.Words(query))
	if errors.Is(err, search.ErrTooManyWords) {
		return nil, errTooManyWords
	}
	if err != nil {
		return nil, err
	}
	key := search.Key(query)
	ranks := make(map[int]int, len(found))
	for _, i := range found {
		ranks[i] = search.Rank(key, r.index.tools[i].searchName)
	}
	r.searches[query] = ranks
	return ranks, nil
}

// searchIndex returns the search index, which is built on the first search of a
// release. It shares the vocabulary of the newest release.
func (x *catalogIndex) searchIndex(ctx context.Context, catalog Catalog, newest *catalogIndex) (*search.Index, error) {
	if known := x.searching.Load(); known != nil {
		return known, nil
	}
	if !store.InTransaction(ctx) {
		return nil, store.ErrNeedsTransaction
	}
	var index *search.Index
	var err error
	known := newest.searching.Load()
	if x == newest || known == nil {
		index, err = search.Load(ctx, catalog, catalog.Dialect(), x.number(), x.find)
	} else {
		index, err = known.LoadEarlier(ctx, catalog, x.number(), x.find)
	}
	if err != nil {
		return nil, err
	}
	if x.searching.CompareAndSwap(nil, index) && x != newest {
		x.bytes.Add(index.Size(known))
	}
	return index, nil
}
