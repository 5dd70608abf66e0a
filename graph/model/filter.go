package model

import (
	"strconv"

	"palmares/internal/catalog/release"
	"palmares/internal/core/params"
	"palmares/internal/core/problem"
)

// Conditions returns the conditions of a filter on tools of any release, without search
// and priceIncreases, which depend on the release.
func (f *ToolFilter) Conditions() (all release.Filter, err error) {
	if f == nil {
		return nil, nil
	}
	if err := f.check(); err != nil {
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
		all = append(all, release.OneOf("icp", Map(f.Icps, Icp.Code)))
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
		all = append(all, release.OneOf("tier", Map(f.Tiers, strconv.Itoa)))
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

// check rejects values that no tool can have.
func (f *ToolFilter) check() error {
	if len(f.Categories) > maxFilterCategories {
		return problem.New(problem.BadInput, "filter.categories must have at most %d values (got %d).",
			maxFilterCategories, len(f.Categories))
	}
	for _, slug := range f.Categories {
		if err := params.CheckSlug("filter.categories", slug); err != nil {
			return err
		}
	}
	if f.Slugs != nil && (len(f.Slugs) == 0 || len(f.Slugs) > maxFilterSlugs) {
		return problem.New(problem.BadInput, "filter.slugs must have 1 to %d values (got %d).",
			maxFilterSlugs, len(f.Slugs))
	}
	slugs := map[string]bool{}
	for _, slug := range f.Slugs {
		if err := params.CheckSlug("filter.slugs", slug); err != nil {
			return err
		}
		if slugs[slug] {
			return problem.New(problem.BadInput,
				"filter.slugs must not contain duplicates (got %q more than once).", slug)
		}
		slugs[slug] = true
	}
	if rises := f.PriceIncreases; rises != nil {
		if err := params.CheckRange("filter.priceIncreases.min", rises.Min, 1, maxIncreases); err != nil {
			return err
		}
	}
	for _, tier := range f.Tiers {
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
