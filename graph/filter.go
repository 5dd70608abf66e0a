package graph

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"

	"palmares/graph/model"
	"palmares/internal/catalog/release"
	"palmares/internal/catalog/search"
	"palmares/internal/core/params"
	"palmares/internal/core/problem"
)

// toolFilter converts a filter to conditions on tools.
func (r *reader) toolFilter(filter *model.ToolFilter) (release.Filter, error) {
	conditions, err := toolConditions(filter)
	if err == nil && filter != nil && filter.PriceIncreases != nil {
		rises := filter.PriceIncreases
		conditions = append(conditions, r.release.PriceRose(rises.Min, orZero(rises.Since)))
	}
	if err != nil || !isSearch(filter) {
		return conditions, err
	}
	found, err := r.search(*filter.Search)
	return append(conditions, release.Where(func(t *release.Tool) bool {
		_, ok := found[t]
		return ok
	})), err
}

// toolConditions converts a filter to conditions on tools of any release, without those
// of releaseConditions.
func toolConditions(filter *model.ToolFilter) (release.Filter, error) {
	if filter == nil {
		return nil, nil
	}
	if err := checkFilter(filter); err != nil {
		return nil, err
	}
	var conditions release.Filter
	given := reflect.ValueOf(*filter)
	for i := range given.NumField() {
		if field := given.Field(i); !field.IsNil() && !releaseConditions[filterNames[i]] {
			condition, err := release.ConditionNamed(filterNames[i], conditionValue(field))
			if err != nil {
				return nil, err
			}
			conditions = append(conditions, condition)
		}
	}
	return conditions, nil
}

// releaseConditions need more of a release than the tool itself.
var releaseConditions = map[string]bool{"search": true, "priceIncreases": true}

// filterNames are the names of the conditions of ToolFilter, in its order.
var filterNames = func() (names []string) {
	t := reflect.TypeFor[model.ToolFilter]()
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		names = append(names, name)
	}
	return names
}()

// conditionValue converts a value of a filter to one that release.ConditionNamed accepts.
func conditionValue(field reflect.Value) any {
	if field.Kind() == reflect.Pointer {
		return field.Elem().Interface()
	}
	values := make([]string, field.Len())
	for i := range values {
		if values[i] = fmt.Sprint(field.Index(i).Interface()); field.Type().Elem() == reflect.TypeFor[model.Icp]() {
			values[i] = icpCode(model.Icp(values[i]))
		}
	}
	return values
}

// checkFields checks that there is a condition for each field of ToolFilter, an order for
// each value of ToolSort, and a metric for each of SeriesMetric and ToolGroup.
func checkFields(schema *ast.Schema) error {
	var errs []error
	t := reflect.TypeFor[model.ToolFilter]()
	for i, name := range filterNames {
		value := reflect.New(t.Field(i).Type).Elem()
		if value.Kind() == reflect.Pointer {
			value = reflect.New(value.Type().Elem())
		}
		if _, err := release.ConditionNamed(name, conditionValue(value)); err != nil && !releaseConditions[name] {
			errs = append(errs, err)
		}
	}
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
	if err := checkText("filter.search", query, maxSearchText); err != nil {
		return nil, err
	}
	if ranks, done := r.searches[query]; done {
		return ranks, nil
	}
	ranks, err := r.release.Search(query)
	if errors.Is(err, search.ErrTooManyWords) {
		return nil, errTooManyWords
	}
	if err == nil {
		r.searches[query] = ranks
	}
	return ranks, err
}
