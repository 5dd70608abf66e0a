package graph

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"

	"palmares/graph/model"
	"palmares/internal/catalog/release"
	"palmares/internal/catalog/search"
	"palmares/internal/core/params"
	"palmares/internal/core/problem"
)

// toolFilter converts a filter to conditions on tools of the release.
func (r *reader) toolFilter(filter *model.ToolFilter) (release.Filter, error) {
	conditions, err := toolConditions(filter)
	if err != nil || filter == nil {
		return nil, err
	}
	if rises := filter.PriceIncreases; rises != nil {
		conditions = append(conditions, r.PriceRose(rises.Min, orZero(rises.Since)))
	}
	if !isSearch(filter) {
		return conditions, nil
	}
	found, err := r.search(*filter.Search)
	return append(conditions, release.Where(func(t *release.Tool) bool {
		_, ok := found[t]
		return ok
	})), err
}

// toolConditions converts a filter to conditions on tools of any release, without
// search and priceIncreases, which depend on the release.
func toolConditions(f *model.ToolFilter) (all release.Filter, err error) {
	if f == nil {
		return nil, nil
	}
	if err := checkFilter(f); err != nil {
		return nil, err
	}
	limits := func(field string, least, most *float64) {
		if least != nil {
			all = append(all, release.AtLeast(field, *least))
		}
		if most != nil {
			all = append(all, release.AtMost(field, *most))
		}
	}
	if f.Slugs != nil {
		all = append(all, release.OneOf("slug", f.Slugs))
	}
	if f.Categories != nil {
		all = append(all, release.OneOf("category", f.Categories))
	}
	if f.Pricings != nil {
		all = append(all, release.OneOf("pricing", f.Pricings))
	}
	if f.Icps != nil {
		all = append(all, release.OneOf("icp", mapSlice(f.Icps, model.Icp.Code)))
	}
	limits("score", f.ScoreMin, f.ScoreMax)
	limits("verifiability", f.VerifiabilityMin, f.VerifiabilityMax)
	limits("obsolescence", f.ObsolescenceMin, f.ObsolescenceMax)
	limits("price", nil, f.PriceMax)
	if f.BillingPeriods != nil {
		all = append(all, release.OneOf("billingPeriod", f.BillingPeriods))
	}
	limits("monthlyPrice", f.MonthlyPriceMin, f.MonthlyPriceMax)
	limits("monthlyCost", nil, f.MonthlyCostMax)
	if f.Tiers != nil {
		all = append(all, release.OneOf("tier", mapSlice(f.Tiers, strconv.Itoa)))
	}
	if f.HasEmbeddings != nil {
		all = append(all, release.Where(func(t *release.Tool) bool { return t.InEmbeddings == *f.HasEmbeddings }))
	}
	if f.UpdatedSince != nil {
		all = append(all, release.Since("updated", *f.UpdatedSince))
	}
	if f.UpdatedBefore != nil {
		all = append(all, release.Before("updated", *f.UpdatedBefore))
	}
	return all, nil
}

// checkFields checks that there is an order for each value of ToolSort, and a metric for
// each of SeriesMetric and ToolGroup.
func checkFields(schema *ast.Schema) error {
	var errs []error
	for _, value := range schema.Types["ToolSort"].EnumValues {
		if _, ok := release.OrderNamed(value.Name); !ok && value.Name != string(model.ToolSortRelevance) {
			errs = append(errs, fmt.Errorf("tools have no field for the order %s", value.Name))
		}
	}
	metrics := mapSlice(schema.Types["SeriesMetric"].EnumValues, func(v *ast.EnumValueDefinition) string { return v.Name })
	for _, field := range schema.Types["ToolGroup"].Fields {
		if field.Type.NamedType == "Float" {
			metrics = append(metrics, field.Name)
		}
	}
	for _, name := range metrics {
		if _, ok := release.MetricNamed(name); !ok {
			errs = append(errs, fmt.Errorf("tools have no metric %s", name))
		}
	}
	return errors.Join(errs...)
}

// checkFilter rejects values that no tool can have.
func checkFilter(filter *model.ToolFilter) error {
	if len(filter.Categories) > maxFilterCategories {
		return problem.New(problem.BadInput, "filter.categories must have at most %d values (got %d).",
			maxFilterCategories, len(filter.Categories))
	}
	for _, slug := range filter.Categories {
		if err := checkText("filter.categories", slug, maxSlugText); err != nil {
			return err
		}
	}
	if filter.Slugs != nil && (len(filter.Slugs) == 0 || len(filter.Slugs) > maxFilterSlugs) {
		return problem.New(problem.BadInput, "filter.slugs must have 1 to %d values (got %d).",
			maxFilterSlugs, len(filter.Slugs))
	}
	slugs := map[string]bool{}
	for _, slug := range filter.Slugs {
		if err := checkText("filter.slugs", slug, maxSlugText); err != nil {
			return err
		}
		if slugs[slug] {
			return problem.New(problem.BadInput,
				"filter.slugs must not contain duplicates (got %q more than once).", slug)
		}
		slugs[slug] = true
	}
	if rises := filter.PriceIncreases; rises != nil {
		if err := params.CheckRange("filter.priceIncreases.min", rises.Min, 1, maxIncreases); err != nil {
			return err
		}
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
	maxIncreases        = 1_000
	lowestTier          = 3
)

// MaxSearchWords is the maximum number of different words in a search.
const MaxSearchWords = search.MaxWords

var errTooManyWords = problem.New(problem.BadInput, string(tooManyWords), MaxSearchWords)

func isSearch(filter *model.ToolFilter) bool {
	return filter != nil && filter.Search != nil && strings.TrimSpace(*filter.Search) != ""
}

// search returns the matching tools with their ranks.
func (r *reader) search(query string) (release.Relevance, error) {
	if err := checkText("filter.search", query, params.MaxText); err != nil {
		return nil, err
	}
	if ranks, done := r.searches[query]; done {
		return ranks, nil
	}
	ranks, err := r.Search(query)
	if errors.Is(err, search.ErrTooManyWords) {
		return nil, errTooManyWords
	}
	if err == nil {
		r.searches[query] = ranks
	}
	return ranks, err
}
