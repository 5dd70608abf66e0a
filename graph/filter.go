package graph

import (
	"errors"
	"fmt"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"

	"palmares/graph/model"
	"palmares/internal/catalog/release"
	"palmares/internal/catalog/search"
	"palmares/internal/core/lang"
	"palmares/internal/core/params"
	"palmares/internal/core/problem"
)

// toolFilter converts a filter to conditions on active tools of the release.
func (r *reader) toolFilter(filter *model.ToolFilter) (release.Filter, error) {
	r.noteTools(filter)
	return r.conditions(filter)
}

// conditions is toolFilter for lists that may also have retired tools.
func (r *reader) conditions(filter *model.ToolFilter) (release.Filter, error) {
	return filter.Conditions(func(f *model.ToolFilter) (release.Filter, error) {
		conditions := r.priceIncreases(f)
		if !isSearch(f) {
			return conditions, nil
		}
		found, err := r.search(*f.Search)
		return append(conditions, release.Where(func(t *release.Tool) bool {
			_, ok := found[t]
			return ok
		})), err
	})
}

// priceIncreases returns the condition on price increases up to the release being read.
func (r *reader) priceIncreases(filter *model.ToolFilter) (conditions release.Filter) {
	if rises := filter.PriceIncreases; rises != nil {
		conditions = append(conditions, r.PriceRose(rises.Min, orZero(rises.Since)))
	}
	return conditions
}

// increased is priceIncreases for filters over time.
func (r *reader) increased(filter *model.ToolFilter) (release.Filter, error) {
	return r.priceIncreases(filter), nil
}

// checkFields checks that there is an order for each value of ToolSort, and a metric for
// each of SeriesMetric, ToolGroup and ToolGroupOrder.
func checkFields(schema *ast.Schema) error {
	var errs []error
	for _, value := range schema.Types["ToolSort"].EnumValues {
		if _, ok := release.OrderNamed(value.Name); !ok && value.Name != string(model.ToolSortRelevance) {
			errs = append(errs, fmt.Errorf("tools have no field for the order %s", value.Name))
		}
	}
	metrics := model.Map(schema.Types["SeriesMetric"].EnumValues, func(v *ast.EnumValueDefinition) string { return v.Name })
	for _, field := range schema.Types["ToolGroup"].Fields {
		if field.Type.NamedType == "Float" {
			metrics = append(metrics, field.Name)
		}
	}
	for _, value := range schema.Types["ToolGroupOrder"].EnumValues {
		if name, _ := release.SplitOrder(value.Name); name != "key" {
			metrics = append(metrics, name)
		}
	}
	for _, name := range metrics {
		if _, ok := release.MetricNamed(name); !ok {
			errs = append(errs, fmt.Errorf("tools have no metric %s", name))
		}
	}
	return errors.Join(errs...)
}

// MaxSearchWords is the maximum number of different words in a search.
const MaxSearchWords = search.MaxWords

const tooManyWords lang.Message = "The search must have at most %d different words." // shown on pages too

var errTooManyWords = problem.New(problem.BadInput, string(tooManyWords), MaxSearchWords).For("search")

func isSearch(filter *model.ToolFilter) bool {
	return filter != nil && filter.Search != nil && strings.TrimSpace(*filter.Search) != ""
}

// search returns the matching tools with their ranks.
func (r *reader) search(query string) (release.Relevance, error) {
	if err := params.CheckText("filter.search", query, params.MaxText); err != nil {
		return nil, err
	}
	if ranks, done := r.searches[searched{r.language, query}]; done {
		return ranks, nil
	}
	ranks, err := r.Search(query, r.language)
	if errors.Is(err, search.ErrTooManyWords) {
		return nil, errTooManyWords
	}
	if err == nil {
		r.searches[searched{r.language, query}] = ranks
	}
	return ranks, err
}
