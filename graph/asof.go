package graph

import (
	"fmt"

	"github.com/vektah/gqlparser/v2/ast"

	"palmares/graph/document"
	"palmares/internal/catalog/release"
	"palmares/internal/core/params"
	"palmares/internal/core/problem"
)

// AsOf selects the release that an operation reads.
type AsOf = release.AsOf

const asOfDirective = "asOf"

// asOfOperation returns the release that the @asOf directive of an operation
// selects or, without the directive, the requested one.
func asOfOperation(op *ast.OperationDefinition, variables map[string]any, requested AsOf) (asOf AsOf, err error) {
	directive := op.Directives.ForName(asOfDirective)
	if directive == nil {
		return requested, nil
	}
	if !requested.IsNewest() {
		return asOf, problem.New(problem.BadInput,
			"as_of cannot be used with this query, which selects its release with @asOf.")
	}
	arguments := directive.ArgumentMap(variables)
	number, hasRelease := document.WholeNumber(arguments["release"])
	date, hasDate := arguments["date"].(string)
	switch {
	case hasRelease == hasDate:
		return asOf, problem.New(problem.BadInput, "@asOf requires exactly one of release and date.")
	case hasRelease && number < 1:
		return asOf, problem.New(problem.BadInput, "@asOf(release:) must be at least 1 (got %d).", number)
	case hasRelease:
		return AsOf{Release: number}, nil
	case !params.IsDay(date):
		return asOf, problem.New(problem.BadInput, "@asOf(date:) must be a date in the form YYYY-MM-DD (got %q).",
			params.Truncate(date))
	}
	return AsOf{Date: date}, nil
}

// AsOfName is the name of AsOfParam, which selects the release that is read.
const AsOfName = "as_of"

// AsOfParam is a parameter of every interface but GraphQL, which has a directive.
var AsOfParam = params.Param{Name: AsOfName, Kind: "String"}

// ReadAsOf returns the release that the values of parameters select.
func ReadAsOf(values map[string]any) (asOf AsOf, err error) {
	if text, given := values[AsOfName].(string); given {
		return release.ParseAsOf(text)
	}
	return asOf, nil
}

// AsOfDirective returns the @asOf directive that selects a release, after a space; "" for the
// newest.
func AsOfDirective(a AsOf) string {
	switch {
	case a.Release > 0:
		return fmt.Sprintf(" @asOf(release: %d)", a.Release)
	case a.Date != "":
		return fmt.Sprintf(" @asOf(date: %q)", a.Date)
	}
	return ""
}
