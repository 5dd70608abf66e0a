package rest

import (
	"maps"
	"net/url"
	"strings"

	"palmares/internal/core/problem"
)

// Operation is a path of REST and the operation that it stands for, for those
// who show one as the other.
type Operation struct {
	Path       string // with {slug} in it
	Summary    string
	Details    string
	Example    string // a path to try, of the demo catalog: Samples has those of the one that is served
	Query      string
	Parameters []Parameter
	Keyed      bool // needs an API key
}

// Parameter is a part of a path and the variable of the same name.
type Parameter struct {
	Name        string
	Description string
	InPath      bool
	Preset      any // what it is if it is not given; nil for nothing
}

// Operations are those of every path, in the table's order.
func (h *Handler) Operations() []Operation {
	var all []Operation
	for _, e := range h.paths {
		o := Operation{Path: e.path, Summary: e.summary, Details: e.details, Example: e.tryPath(demoSamples), Query: e.operation.Text, Keyed: e.keyed}
		for _, a := range e.arguments {
			o.Parameters = append(o.Parameters, Parameter{Name: a.name, Description: a.description, InPath: a.inPath, Preset: a.preset})
		}
		all = append(all, o)
	}
	return all
}

// Explain is the operation, and the variables, that a path with its query
// stands for. An error says why there is none.
func (h *Handler) Explain(target string) (query string, variables map[string]any, err error) {
	u, err := url.Parse(target)
	if err != nil {
		return "", nil, problem.New(problem.BadInput, "This is not a path: %q.", cut(target))
	}
	asked, err := h.understand(u)
	switch {
	case err != nil:
		return "", nil, err
	case asked.wrong != nil:
		return "", nil, asked.wrong
	case asked.endpoint == h.itself:
		return "", nil, problem.New(problem.NotFound, "The document is no operation: it describes them.")
	}
	return asked.operation.Text, asked.strictly(), nil
}

// strictly are the variables as their types say. GraphQL takes one of what it
// wants a list of, but editors complain.
func (a *asked) strictly() map[string]any {
	variables := maps.Clone(a.variables)
	for name, value := range variables {
		if a.operation.Definition().VariableDefinitions.ForName(name).Type.Elem != nil {
			variables[name] = []any{value}
		}
	}
	return variables
}

// tryPath is the path with a slug that there is.
func (e *endpoint) tryPath(try samples) string {
	return strings.ReplaceAll(e.path, "{slug}", try[e.sample])
}

// ExplorerPath is where a path of REST is shown as the operation it stands for.
func ExplorerPath(target string) string { return "/explorer?path=" + url.QueryEscape(target) }
