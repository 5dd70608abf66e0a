package graph

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"entgo.io/ent/dialect"
	entsql "entgo.io/ent/dialect/sql"

	"palmares/ent/predicate"
	"palmares/ent/tool"
	"palmares/graph/model"
	"palmares/internal/core/text"
)

// icpCodes are the stored values of Icp.
var icpCodes = map[model.Icp]tool.Icp{
	model.IcpVibeCoder: "vibe-coder", model.IcpAgenticEngineer: "agentic-engineer", model.IcpMixte: "mixte",
}

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
		add(tool.IcpIn(mapSlice(filter.Icps, func(i model.Icp) tool.Icp { return icpCodes[i] })...))
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
	if search := searchText(filter); search != "" {
		slugs, err := r.search(ctx, search)
		if err != nil {
			return nil, err
		}
		if len(slugs) > maxFound {
			add(tool.SearchTextContains(search))
		} else {
			add(tool.IDIn(slugs...))
		}
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

// maxFound is the number of slugs up to which the tools of a search are read by
// slug. No index helps a search, so it scans all texts only once; with more
// results, the first tools in any order are found soon anyway.
const maxFound = 500

// searchText returns the normalized search text of a filter.
func searchText(filter *model.ToolFilter) string {
	if filter == nil || filter.Search == nil {
		return ""
	}
	return text.Fold(*filter.Search)
}

// search returns the slugs of up to maxFound+1 matching tools.
func (r *reader) search(ctx context.Context, text string) ([]string, error) {
	if slugs, done := r.searches[text]; done {
		return slugs, nil
	}
	rows, err := r.catalog.Select(ctx, fmt.Sprintf("SELECT slug FROM %s LIMIT %d", r.searchTable(), maxFound+1), text)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var slugs []string
	for rows.Next() {
		var slug string
		if err := rows.Scan(&slug); err != nil {
			return nil, err
		}
		slugs = append(slugs, slug)
	}
	r.searches[text] = slugs
	return slugs, rows.Err()
}

// countFound counts all matches of a search.
func (r *reader) countFound(ctx context.Context, text string) (n int, err error) {
	rows, err := r.catalog.Select(ctx, "SELECT count(*) FROM "+r.searchTable(), text)
	if err != nil {
		return 0, err
	}
	defer rows.Close()
	for rows.Next() {
		if err := rows.Scan(&n); err != nil {
			return 0, err
		}
	}
	return n, rows.Err()
}

// searchTable returns the table and condition of a search. SQLite scans the index
// of the texts, a tenth of the table, only with a hint.
func (r *reader) searchTable() string {
	if r.catalog.Dialect() == dialect.SQLite {
		return "tools INDEXED BY tools_by_search_text WHERE retired_at IS NULL AND instr(search_text, $1) > 0"
	}
	return "tools WHERE retired_at IS NULL AND strpos(search_text, $1) > 0"
}
