package model

import (
	"cmp"
	"slices"
	"strconv"

	"palmares/internal/catalog/release"
	"palmares/internal/core/params"
	"palmares/internal/core/problem"
)

// Conditions returns the conditions of a filter, and of those in it, on tools of any
// release. It calls inRelease for search and priceIncreases, which depend on the release.
func (f *ToolFilter) Conditions(inRelease func(*ToolFilter) (release.Filter, error)) (release.Filter, error) {
	return f.conditions(0, inRelease)
}

func (f *ToolFilter) conditions(
	depth int, inRelease func(*ToolFilter) (release.Filter, error),
) (all release.Filter, err error) {
	if f == nil {
		return nil, nil
	}
	if depth > maxFilterDepth {
		return nil, problem.New(problem.BadInput, "filter: anyOf and not must be nested at most %d deep.", maxFilterDepth)
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
	if f.Domains != nil {
		all = append(all, release.OneOf("domain", Map(f.Domains, release.Domain)))
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
	if f.HasEnd != nil {
		all = append(all, release.Where(func(t *release.Tool) bool { return (t.EndsAt != nil) == *f.HasEnd }))
	}
	if f.EndsBefore != nil {
		all = append(all, release.Where(func(t *release.Tool) bool { return t.EndsAt != nil && *t.EndsAt < *f.EndsBefore }))
	}
	if f.AnyOf != nil {
		var alternatives []release.Filter
		for _, one := range f.AnyOf {
			conditions, err := one.conditions(depth+1, inRelease)
			if err != nil {
				return nil, err
			}
			alternatives = append(alternatives, conditions)
		}
		all = append(all, release.Where(func(t *release.Tool) bool {
			return slices.ContainsFunc(alternatives, func(f release.Filter) bool { return f.Matches(t) })
		}))
	}
	if f.Not != nil {
		excluded, err := f.Not.conditions(depth+1, inRelease)
		if err != nil {
			return nil, err
		}
		all = append(all, release.Where(func(t *release.Tool) bool { return !excluded.Matches(t) }))
	}
	further, err := inRelease(f)
	return append(all, further...), err
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
	if err := cmp.Or(CheckKeys("filter.slugs", f.Slugs), CheckKeys("filter.domains", f.Domains)); err != nil {
		return err
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

// CheckKeys rejects a list of slugs or domains that is empty, long or has duplicates.
func CheckKeys(name string, keys []string) error {
	if keys != nil && (len(keys) == 0 || len(keys) > maxFilterKeys) {
		return problem.New(problem.BadInput, "%s must have 1 to %d values (got %d).", name, maxFilterKeys, len(keys))
	}
	known := map[string]bool{}
	for _, key := range keys {
		if err := params.CheckSlug(name, key); err != nil {
			return err
		}
		if known[key] {
			return problem.New(problem.BadInput, "%s must not contain duplicates (got %q more than once).", name, key)
		}
		known[key] = true
	}
	return nil
}

const (
	maxFilterDepth      = 3
	maxFilterCategories = 100
	maxFilterKeys       = 200
	maxIncreases        = 1_000
	lowestTier          = 3
)
