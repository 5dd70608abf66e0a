package graph

import (
	"encoding/json"
	"fmt"
	"slices"

	"palmares/ent/predicate"
	"palmares/ent/tool"
	"palmares/graph/model"
	"palmares/internal/problem"
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
		add(tool.Untested(false)) // leads the index that the bounds below narrow
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

func checkFilter(filter *model.ToolFilter) error {
	for name, length := range map[string]int{
		"categories": len(filter.Categories), "pricings": len(filter.Pricings), "icps": len(filter.Icps),
	} {
		if length > maxListed {
			return problem.New(problem.BadInput, "filter.%s: has more than %d values.", name, maxListed)
		}
	}
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
