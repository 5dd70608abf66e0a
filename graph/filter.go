package graph

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"entgo.io/ent/dialect"
	entsql "entgo.io/ent/dialect/sql"

	"palmares/ent/predicate"
	"palmares/ent/tool"
	"palmares/graph/model"
	"palmares/internal/catalog/search"
	"palmares/internal/core/problem"
	"palmares/internal/core/text"
)

// toolsWhere converts a filter to predicates. The first one selects active
// tools.
func (r *reader) toolsWhere(ctx context.Context, filter *model.ToolFilter) ([]predicate.Tool, error) {
	where := []predicate.Tool{tool.RetiredAtIsNil()}
	if filter == nil {
		return where, nil
	}
	for _, slug := range filter.Categories {
		if err := checkText("filter.categories", slug, maxSlugText); err != nil {
			return nil, err
		}
	}
	if filter.Search != nil {
		if err := checkText("filter.search", *filter.Search, maxSearchText); err != nil {
			return nil, err
		}
	}
	add := func(p predicate.Tool) { where = append(where, p) }
	if filter.Categories != nil {
		add(tool.CategorySlugIn(filter.Categories...))
	}
	if filter.Pricings != nil {
		add(tool.PricingIn(mapSlice(filter.Pricings, func(p model.Pricing) tool.Pricing { return tool.Pricing(p) })...))
	}
	if filter.Icps != nil {
		add(tool.IcpIn(mapSlice(filter.Icps, func(i model.Icp) tool.Icp { return tool.Icp(strings.ReplaceAll(string(i), "_", "-")) })...))
	}
	if filter.ScoreMin != nil || filter.ScoreMax != nil {
		add(untestedIs(false))
	}
	addBound := func(value *float64, bound func(float64) predicate.Tool) {
		if value != nil {
			add(bound(*value))
		}
	}
	addBound(filter.ScoreMin, tool.ScoreGTE)
	addBound(filter.ScoreMax, tool.ScoreLTE)
	addBound(filter.VerifiabilityMin, tool.VerifiabilityGTE)
	addBound(filter.VerifiabilityMax, tool.VerifiabilityLTE)
	addBound(filter.ObsolescenceMax, tool.ObsolescenceLTE)
	addBound(filter.PriceMax, tool.PriceAmountLTE)
	if filter.UpdatedSince != nil {
		add(tool.UpdatedAtGTE(*filter.UpdatedSince))
	}
	if query := searchText(filter); query != "" {
		slugs, err := r.search(ctx, query)
		if err != nil {
			return nil, err
		}
		add(r.slugIn(slugs))
	}
	return where, nil
}

// filterKey returns the cache key of a filter's count: equal filters have equal
// keys.
func filterKey(filter *model.ToolFilter) string {
	if filter == nil {
		return "tools"
	}
	canonical := *filter
	canonical.Categories = slices.Sorted(slices.Values(filter.Categories))
	data, err := json.Marshal(canonical)
	if err != nil {
		panic(err) // a filter only has plain values
	}
	// The encoding omits empty lists, which match nothing, like missing ones.
	given := []bool{filter.Categories != nil, filter.Pricings != nil, filter.Icps != nil}
	return fmt.Sprint("tools", given, string(data))
}

// untestedIs selects the first column of the index on scores. SQLite does not
// use an index for ent's NOT untested.
func untestedIs(untested bool) predicate.Tool {
	return func(s *entsql.Selector) {
		s.Where(entsql.ExprP(fmt.Sprintf("%s = %t", s.C(tool.FieldUntested), untested)))
	}
}

// withScanHint makes SQLite scan the table. With a condition that no index
// covers, it would walk an index and look up each row, which takes four times as
// long.
func (r *reader) withScanHint(where []predicate.Tool) []predicate.Tool {
	if r.catalog.Dialect() != dialect.SQLite {
		return where
	}
	active := func(s *entsql.Selector) {
		s.Where(entsql.ExprP("+" + s.C(tool.FieldRetiredAt) + " IS NULL")) // the plus disables indexes
	}
	return append([]predicate.Tool{active}, where[1:]...)
}

// withListHint makes SQLite scan the table for the first tools of a filtered
// list, unless an index covers both the filter and the order, or only a few tools
// pass a filter that has an index.
func (r *reader) withListHint(filter *model.ToolFilter, where []predicate.Tool, o order, few bool) []predicate.Tool {
	if len(where) == 1 || hasIndex(filter) && (few || len(filter.Categories) == 1 || boundsOrder(filter, o)) {
		return where
	}
	return r.withScanHint(where)
}

// hasIndex reports whether an index covers all conditions of a filter.
func hasIndex(filter *model.ToolFilter) bool {
	if filter == nil {
		return true
	}
	conditions := 0
	for _, given := range []bool{
		filter.Categories != nil, filter.ScoreMin != nil || filter.ScoreMax != nil, filter.PriceMax != nil, filter.UpdatedSince != nil,
	} {
		if given {
			conditions++
		}
	}
	return conditions <= 1 && filter.Pricings == nil && filter.Icps == nil &&
		filter.VerifiabilityMin == nil && filter.VerifiabilityMax == nil && filter.ObsolescenceMax == nil && filter.Search == nil
}

// boundsOrder reports whether a filter bounds the main column of an order.
func boundsOrder(filter *model.ToolFilter, o order) bool {
	switch o[len(o)-2].column {
	case tool.FieldScore:
		return filter.ScoreMin != nil || filter.ScoreMax != nil
	case tool.FieldUpdatedAt:
		return filter.UpdatedSince != nil
	case tool.FieldPriceAmount:
		return filter.PriceMax != nil
	}
	return false
}

// searchText returns the search text of a filter.
func searchText(filter *model.ToolFilter) string {
	if filter == nil || filter.Search == nil {
		return ""
	}
	return strings.TrimSpace(*filter.Search)
}

// search returns the slugs of matching tools.
func (r *reader) search(ctx context.Context, query string) ([]string, error) {
	if found, done := r.searches[query]; done {
		return found, nil
	}
	var slugs []string
	index, err := search.Load(ctx, r.catalog, r.catalog.Dialect(), func(slug string) (int, bool) {
		slugs = append(slugs, slug)
		return len(slugs) - 1, true
	})
	if err != nil {
		return nil, err
	}
	positions, err := index.Find(ctx, r.catalog, text.Words(query))
	if errors.Is(err, search.ErrTooManyWords) {
		return nil, problem.New(problem.BadInput, "filter.search must have at most %d distinct words.", search.MaxWords)
	}
	r.searches[query] = mapSlice(positions, func(at int) string { return slugs[at] })
	return r.searches[query], err
}

// slugIn selects any number of tools.
func (r *reader) slugIn(slugs []string) predicate.Tool {
	list, cast := "(SELECT value FROM json_each(", ""
	if r.catalog.Dialect() == dialect.Postgres {
		list, cast = "(SELECT json_array_elements_text(", "::json"
	}
	data, err := json.Marshal(append([]string{}, slugs...))
	if err != nil {
		panic(err) // slugs are plain text
	}
	return func(s *entsql.Selector) {
		s.Where(entsql.P(func(b *entsql.Builder) {
			b.Ident(s.C(tool.FieldID)).WriteString(" IN " + list).Arg(string(data)).WriteString(cast + "))")
		}))
	}
}
