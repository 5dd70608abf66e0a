package graph

import (
	"github.com/vektah/gqlparser/v2/ast"

	"palmares/internal/problem"
)

// The cost of an operation is roughly how many fields its answer can hold:
// each field costs 1, and what a list holds is counted as often as the list
// may be long. It is worked out before anything is read.

// listSizes are the lengths to expect of lists that no argument bounds.
var listSizes = map[string]int{
	"priceHistory": 4, "history": 12, "chunks": 6, "categories": 20,
	"toolGroups": 20, "scoreHistogram": 10, "priceChangeCounts": 100,
	"events": 10, // a publication's, one for each type
}

// defaultSlice is the length of a connection's slice when nothing is said.
const defaultSlice = 50

// pricing walks one operation. A fragment is priced once for each length of
// the list it stands in.
type pricing struct {
	vars  map[string]any
	known map[pricedFragment]int
	keyed bool   // something in it needs an API key
	null  string // an argument that is null and must not be
}

type pricedFragment struct {
	name string
	size int
}

// price works out the cost of an operation, and what else only its whole
// tells.
func price(op *ast.OperationDefinition, vars map[string]any) (cost int, p *pricing) {
	p = &pricing{vars: vars, known: map[pricedFragment]int{}}
	return p.selections(op.SelectionSet, 1), p
}

func checkCost(cost int, limits Limits) *problem.Problem {
	if cost > limits.Cost {
		return problem.New(problem.TooComplex, "The operation costs %d, more than %d: ask for fewer items or fields at once.", cost, limits.Cost)
	}
	return nil
}

// selections prices what stands in a page or connection of a given size.
func (p *pricing) selections(set ast.SelectionSet, size int) int {
	cost := 0
	for _, selection := range set {
		switch s := selection.(type) {
		case *ast.Field:
			cost = sum(cost, p.field(s, size))
		case *ast.InlineFragment:
			cost = sum(cost, p.selections(s.SelectionSet, size))
		case *ast.FragmentSpread:
			key := pricedFragment{s.Name, size}
			inner, known := p.known[key]
			if !known && s.Definition != nil {
				inner = p.selections(s.Definition.SelectionSet, size)
				p.known[key] = inner
			}
			cost = sum(cost, inner)
		}
	}
	return cost
}

func (p *pricing) field(f *ast.Field, size int) int {
	if f.Definition == nil {
		return 1
	}
	p.checkNulls(f)
	if len(f.SelectionSet) == 0 {
		return 1
	}
	if f.Definition.Type.Name() == "EmbeddingsDocument" {
		p.keyed = true
	}
	times := 1
	if f.Definition.Type.NamedType == "" {
		times = p.length(f, size)
	}
	return min(1+scanCost(f)+times*p.selections(f.SelectionSet, p.sizeOf(f)), enough)
}

// scanCosts are what root fields cost for the rows that they go through, on
// top of those that they give.
var scanCosts = map[string]int{"toolGroups": 300, "scoreHistogram": 300, "priceChangeCounts": 600}

// filteredCost is for a list that has to be counted.
const filteredCost = 100

func scanCost(f *ast.Field) int {
	if f.Arguments.ForName("filter") != nil || f.Arguments.ForName("category") != nil {
		return scanCosts[f.Name] + filteredCost
	}
	return scanCosts[f.Name]
}

// checkNulls finds a variable that is null where an argument must not be: the
// specification leaves that to the execution.
func (p *pricing) checkNulls(f *ast.Field) {
	for _, argument := range f.Arguments {
		definition := f.Definition.Arguments.ForName(argument.Name)
		if definition == nil || !definition.Type.NonNull || argument.Value.Kind != ast.Variable {
			continue
		}
		if value, given := p.vars[argument.Value.Raw]; given && value == nil {
			p.null = argument.Name
		}
	}
}

// length is how many items a list may have.
func (p *pricing) length(f *ast.Field, size int) int {
	switch f.Name {
	case "items", "edges", "nodes":
		return size
	}
	if limit, ok := p.argument(f, "limit"); ok {
		return limit
	}
	if expected, ok := listSizes[f.Name]; ok {
		return expected
	}
	return 1
}

// sizeOf is how many items the page or connection that a field gives may have.
func (p *pricing) sizeOf(f *ast.Field) int {
	for _, name := range []string{"limit", "first", "last"} {
		if n, ok := p.argument(f, name); ok {
			return n
		}
	}
	return defaultSlice
}

// argument is an integer argument, within what it may be at all.
func (p *pricing) argument(f *ast.Field, name string) (int, bool) {
	definition := f.Definition.Arguments.ForName(name)
	if definition == nil {
		return 0, false
	}
	value := definition.DefaultValue
	if given := f.Arguments.ForName(name); given != nil {
		value = given.Value
	}
	if value == nil {
		return 0, false
	}
	raw, err := value.Value(p.vars)
	if raw == nil && definition.DefaultValue != nil { // a variable that was left out
		raw, err = definition.DefaultValue.Value(nil)
	}
	if err != nil || raw == nil {
		return 0, false
	}
	n, ok := wholeNumber(raw)
	return max(0, min(n, maxSlice)), ok
}
