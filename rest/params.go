package rest

import (
	"net/url"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"

	"palmares/internal/core/params"
)

// parameter is a path or query parameter, and the operation's variable of the
// same name. Its type and default come from the operation.
type parameter struct {
	name        string
	description string
	min, max    int      // of an integer; max also of the length of a text
	values      []string // of an enum, if fewer are allowed than the type has
	inPath      bool
	// noDefaultWith is another parameter; where it is given, this one has no default.
	noDefaultWith string

	params.Param
}

// typed adds what the operation's variable declares.
func (p parameter) typed(variable *ast.VariableDefinition) parameter {
	p.Param = params.FromVariable(variable)
	if p.max > 0 {
		p.Min, p.Max = p.min, p.max
	}
	if p.values != nil {
		p.Values = p.values
	}
	return p
}

// readParameters turns a query string into an operation's variables, including
// defaults.
func readParameters(parameters []parameter, rawQuery string) (map[string]any, error) {
	var inQuery []params.Param
	for _, p := range parameters {
		if !p.inPath {
			inQuery = append(inQuery, p.Param)
		}
	}
	variables, err := params.Read(rawQuery, inQuery)
	if err != nil {
		return nil, err
	}
	for _, p := range parameters {
		if _, given := variables[p.name]; !given && !p.inPath && p.defaultWith(variables) != nil {
			variables[p.name] = p.Default
		}
	}
	return variables, nil
}

// defaultWith returns the default of a parameter beside others; nil for none.
func (p parameter) defaultWith(variables map[string]any) any {
	if _, given := variables[p.noDefaultWith]; given {
		return nil
	}
	return p.Default
}

// canonicalQuery writes variables as a query string, with the parameters in
// the route's order and without defaults. Equal requests have equal ones.
func canonicalQuery(parameters []parameter, variables map[string]any) string {
	var pairs []string
	for _, p := range parameters {
		if value, given := variables[p.name]; given && !p.inPath && value != p.defaultWith(variables) {
			pairs = append(pairs, p.name+"="+url.QueryEscape(params.Format(value)))
		}
	}
	return strings.Join(pairs, "&")
}
