package rest

import (
	"maps"
	"net/url"
	"slices"
	"strings"

	"palmares/auth"
	"palmares/graph"
	"palmares/internal/core/params"
	"palmares/internal/core/text"
)

// Headers that name what a request has and the API does not know. They are hints: the
// status is the same as without them.
const (
	UnknownParametersHeader = "X-Unknown-Parameters"
	UnknownValuesHeader     = "X-Unknown-Values"
)

const (
	maxUnknown   = 5  // names in a header
	maxHintName  = 64 // characters of a name in a header
	categoryName = "category"
)

// unknownParameters returns the header for the parameters of a query string that the
// endpoint does not have; nil for none.
func (e *endpoint) unknownParameters(rawQuery string) []string {
	accepted, suggested := e.inQuery, []string(nil)
	if e.bulk { // the token identifies the caller
		accepted = append(slices.Clip(accepted), params.Param{Name: auth.TokenParameter})
	}
	for _, p := range e.documented() {
		if !p.InPath {
			suggested = append(suggested, p.Name)
		}
	}
	return UnknownParameters(rawQuery, accepted, suggested)
}

// UnknownParameters returns the values of the header X-Unknown-Parameters for the parameters
// of a query string that are not accepted, with similar suggested ones; nil for none.
func UnknownParameters(rawQuery string, accepted []params.Param, suggested []string) []string {
	var hints []string
	for _, name := range params.Unknown(rawQuery, accepted, maxUnknown) {
		hints = append(hints, hint("", name, text.Nearest(name, suggested)))
	}
	if hints == nil {
		return nil
	}
	return []string{strings.Join(hints, ", ")}
}

// UnknownValues returns the values of the header X-Unknown-Values for values that match
// nothing, by the names of the variables that have them; nil for none.
func UnknownValues(result *graph.Result, variables map[string]any) []string {
	var hints []string
	for _, v := range result.Unknown {
		hints = append(hints, hint(variableOf(v, variables)+"=", v.Value, v.Nearest()))
	}
	if hints == nil {
		return nil
	}
	return []string{strings.Join(hints, ", ")}
}

// variableOf returns the name of the variable that has an unknown value, or of its argument
// if the operation itself has the value.
func variableOf(v graph.Unknown, variables map[string]any) string {
	for _, name := range append([]string{v.Argument}, slices.Sorted(maps.Keys(variables))...) {
		has := false
		switch given := variables[name].(type) {
		case string:
			has = given == v.Value
		case []string:
			has = slices.Contains(given, v.Value)
		case []any:
			has = slices.Contains(given, any(v.Value))
		}
		if has {
			return name
		}
	}
	return v.Argument
}

// severalCategories is the advice for a category with a comma, on paths whose operation
// has a filter of tools.
const severalCategories = " (one category; for several, use GraphQL: ToolFilter.categories)"

// unknownValues returns the header X-Unknown-Values of a response; nil for none.
func (req *request) unknownValues(result *graph.Result) []string {
	category, _ := req.variables[categoryName].(string)
	if len(result.Unknown) == 1 && strings.Contains(category, ",") && slices.Contains([]string{"tools", "prices"}, req.query) {
		return []string{hint(categoryName+"=", category, "") + severalCategories}
	}
	return UnknownValues(result, req.variables)
}

// hint formats a name for a header, as it is in a query string: callers choose names,
// and a header must be short and printable ASCII.
func hint(prefix, name, nearest string) string {
	escaped := url.QueryEscape(name)
	if len(escaped) > maxHintName {
		escaped = escaped[:maxHintName]
		if start := strings.LastIndexByte(escaped, '%'); start > maxHintName-len("%xx") { // half of an escape
			escaped = escaped[:start]
		}
	}
	if nearest == "" {
		return prefix + escaped
	}
	return prefix + escaped + " (did you mean " + url.QueryEscape(nearest) + "?)"
}
