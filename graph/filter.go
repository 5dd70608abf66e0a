package graph

import (
	"encoding/json"
	"fmt"
	"slices"

	"entgo.io/ent/dialect"
	entsql "entgo.io/ent/dialect/sql"

	"palmares/ent/predicate"
	"palmares/ent/tool"
	"palmares/graph/model"
)

// toolsWhere turns a filter into predicates, but for its search; active tools
// always.
func toolsWhere(filter *model.ToolFilter) ([]predicate.Tool, error) {
	where := []predicate.Tool{tool.RetiredAtIsNil()}
	if filter == nil {
		return where, nil
	}
	if err := checkFilter(filter); err != nil {
		return nil, err
	}
	add := func(p predicate.Tool) { where = append(where, p) }
	if filter.Categories != nil {
		add(tool.CategorySlugIn(filter.Categories...))
	}
	if filter.Pricings != nil {
		add(tool.PricingIn(mapped(filter.Pricings, func(p model.Pricing) tool.Pricing { return tool.Pricing(p) })...))
	}
	if filter.Icps != nil {
		add(tool.IcpIn(mapped(filter.Icps, func(i model.Icp) tool.Icp { return tool.Icp(icpCodes[i]) })...))
	}
	if filter.ScoreMin != nil || filter.ScoreMax != nil {
		add(untestedIs(false))
	}
	bound := func(value *float64, by func(float64) predicate.Tool) {
		if value != nil {
			add(by(*value))
		}
	}
	bound(filter.ScoreMin, tool.ScoreGTE)
	bound(filter.ScoreMax, tool.ScoreLTE)
	bound(filter.VerifiabilityMin, tool.VerifiabilityGTE)
	bound(filter.VerifiabilityMax, tool.VerifiabilityLTE)
	bound(filter.ObsolescenceMax, tool.ObsolescenceLTE)
	bound(filter.PriceMax, tool.PriceAmountLTE)
	if filter.UpdatedSince != nil {
		add(tool.UpdatedAtGTE(*filter.UpdatedSince))
	}
	return where, nil
}

// untestedIs leads the index that bounds of the score narrow. It is spelled
// out: SQLite does not look up NOT untested in an index.
func untestedIs(untested bool) predicate.Tool {
	return func(s *entsql.Selector) {
		s.Where(entsql.ExprP(fmt.Sprintf("%s = %t", s.C(tool.FieldUntested), untested)))
	}
}

// scanned has SQLite go through the table in its own order. With any condition
// that no index has, it would otherwise walk one of the indexes of active tools
// and look each of them up, which takes four times as long.
func (r *reading) scanned(where []predicate.Tool) []predicate.Tool {
	if r.catalog.Dialect() != dialect.SQLite {
		return where
	}
	active := func(s *entsql.Selector) {
		s.Where(entsql.ExprP("+" + s.C(tool.FieldRetiredAt) + " IS NULL")) // the plus keeps indexes out
	}
	return append([]predicate.Tool{active}, where[1:]...)
}

// inOneCategory reports whether a filter is one category and nothing else:
// every order has an index for that.
func inOneCategory(filter *model.ToolFilter) bool {
	return filter != nil && len(filter.Categories) == 1 && hasIndex(filter)
}

// hasIndex reports whether an index alone decides which tools pass a filter.
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

func checkFilter(filter *model.ToolFilter) error {
	for _, slug := range filter.Categories {
		if err := checkText("filter.categories", slug, maxSlugText); err != nil {
			return err
		}
	}
	if filter.Search != nil {
		return checkText("filter.search", *filter.Search, maxText)
	}
	return nil
}

// filterKey names a filter's count: equal filters have equal keys.
func filterKey(filter *model.ToolFilter) string {
	if filter == nil {
		return "tools"
	}
	canonical := *filter
	canonical.Categories = slices.Sorted(slices.Values(filter.Categories))
	data, err := json.Marshal(canonical)
	if err != nil {
		panic(err) // a filter is plain values
	}
	// An empty list lets nothing through, where no list lets everything: the
	// encoding leaves both out.
	given := []bool{filter.Categories != nil, filter.Pricings != nil, filter.Icps != nil}
	return fmt.Sprint("tools", given, string(data))
}

func mapped[A, B any](items []A, convert func(A) B) []B {
	converted := make([]B, len(items))
	for i, item := range items {
		converted[i] = convert(item)
	}
	return converted
}
