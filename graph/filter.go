package graph

import (
	"context"
	"reflect"
	"slices"
	"strings"

	"palmares/graph/model"
	"palmares/internal/core/text"
)

// toolFilter converts a filter to a condition on tools; nil for none.
func (r *reader) toolFilter(ctx context.Context, filter *model.ToolFilter) (matches func(int) bool, err error) {
	if filter == nil || reflect.ValueOf(*filter).IsZero() {
		return nil, nil
	}
	for _, slug := range filter.Categories {
		if err := checkText("filter.categories", slug, maxSlugText); err != nil {
			return nil, err
		}
	}
	var found map[string]bool
	if filter.Search != nil {
		if err := checkText("filter.search", *filter.Search, maxSearchText); err != nil {
			return nil, err
		}
		if found, err = r.search(ctx, text.Fold(*filter.Search)); err != nil {
			return nil, err
		}
	}
	icps := mapSlice(filter.Icps, func(i model.Icp) string { return strings.ReplaceAll(string(i), "_", "-") })
	return func(i int) bool {
		t := &r.index.tools[i]
		return (filter.Categories == nil || slices.Contains(filter.Categories, t.category)) &&
			(filter.Pricings == nil || slices.Contains(filter.Pricings, t.pricing)) &&
			(filter.Icps == nil || slices.Contains(icps, t.icp)) &&
			(filter.ScoreMin == nil || t.score >= *filter.ScoreMin) &&
			(filter.ScoreMax == nil || t.score <= *filter.ScoreMax) &&
			(filter.VerifiabilityMin == nil || t.verifiability >= *filter.VerifiabilityMin) &&
			(filter.VerifiabilityMax == nil || t.verifiability <= *filter.VerifiabilityMax) &&
			(filter.ObsolescenceMax == nil || t.obsolescence <= *filter.ObsolescenceMax) &&
			(filter.PriceMax == nil || t.price <= *filter.PriceMax) &&
			(filter.UpdatedSince == nil || t.updatedAt >= *filter.UpdatedSince) &&
			(found == nil || found[t.slug])
	}, nil
}

// search returns the slugs of the matching tools.
func (r *reader) search(ctx context.Context, text string) (map[string]bool, error) {
	if text == "" {
		return nil, nil
	}
	rows, err := r.catalog.Select(ctx, "SELECT slug FROM tools WHERE retired_at IS NULL AND search_text LIKE $1", "%"+text+"%")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	slugs := map[string]bool{}
	for rows.Next() {
		var slug string
		if err := rows.Scan(&slug); err != nil {
			return nil, err
		}
		slugs[slug] = true
	}
	return slugs, rows.Err()
}
