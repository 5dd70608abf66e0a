package graph

import (
	"strings"

	"github.com/vektah/gqlparser/v2/ast"

	"palmares/internal/core/problem"
)

// The cost of an operation is worked out before anything is read, from two
// parts. Each field costs 1, and what a list holds counts as often as the list
// may be long: that is roughly how many fields the response can hold. On top
// comes the work of finding them, which is done once however many items there
// are: statements, counts, searches, and pages far from both ends of a list.
// A unit stands for at most 100 µs of CPU time, whatever the size of the
// catalog; `make bench PARTS=prices` measures it.

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
	tools int // in the catalog
	vars  map[string]any
	known map[pricedFragment]cost
	keyed bool   // something in it needs an API key
	null  string // an argument that is null and must not be
}

type pricedFragment struct {
	name string
	size int
}

// cost has the fields of a response and the work of finding them apart: only
// the fields are multiplied by the lists around them.
type cost struct{ fields, work int }

func (c cost) plus(other cost) cost {
	return cost{sum(c.fields, other.fields), sum(c.work, other.work)}
}

// price works out the cost of an operation, and what else only its whole
// tells.
func price(op *ast.OperationDefinition, vars map[string]any, tools int) (int, *pricing) {
	p := &pricing{tools: tools, vars: vars, known: map[pricedFragment]cost{}}
	whole := p.selections(op.SelectionSet, 1)
	return sum(whole.fields, whole.work), p
}

func checkCost(cost int, limits Limits) *problem.Problem {
	if cost > limits.Cost {
		return problem.New(problem.TooComplex, "The operation costs %d, more than %d: request fewer items, fields or filtered lists at once.", cost, limits.Cost)
	}
	return nil
}

// selections prices what stands in a page or connection of a given size.
func (p *pricing) selections(set ast.SelectionSet, size int) (all cost) {
	for _, selection := range set {
		switch s := selection.(type) {
		case *ast.Field:
			all = all.plus(p.field(s, size))
		case *ast.InlineFragment:
			all = all.plus(p.selections(s.SelectionSet, size))
		case *ast.FragmentSpread:
			key := pricedFragment{s.Name, size}
			inner, known := p.known[key]
			if !known && s.Definition != nil {
				inner = p.selections(s.Definition.SelectionSet, size)
				p.known[key] = inner
			}
			all = all.plus(inner)
		}
	}
	return all
}

func (p *pricing) field(f *ast.Field, size int) cost {
	if f.Definition == nil {
		return cost{fields: 1}
	}
	p.checkNulls(f)
	if len(f.SelectionSet) == 0 {
		return cost{fields: 1}
	}
	if f.Definition.Type.Name() == "EmbeddingsDocument" {
		p.keyed = true
	}
	times := 1
	if f.Definition.Type.NamedType == "" {
		times = p.length(f, size)
	}
	inner := p.selections(f.SelectionSet, p.sizeOf(f))
	return cost{min(1+times*inner.fields, enough), sum(p.work(f), inner.work)}
}

// What it takes to find something, in units of cost: a statement that reads few
// rows by a key, or some events of the journal.
const (
	statementWork = 5
	typeWork      = 1_000 // events of one type, which may all be far away
	journalWork   = 1_500 // events by category, of which there may be none
)

// What it takes to go through a part of a catalog of pricedTools. It grows with
// the catalog, so that small ones are not priced like large ones.
const (
	pricedTools = 100_000
	leastTools  = 1_000
	rangeWork   = 100 // counting part of an index, such as one category
	deepWork    = 300 // stepping over half of an index
	deepFrom    = 1_000
	citedWork   = 600   // comparisons by the category of their tools
	filterWork  = 2_000 // going through all tools, to count and to list
	scoresWork  = 600   // going through the index of scores
	groupWork   = 2_500 // going through all tools, to add them up
	searchWork  = 1_500 // going through the texts of all tools
	pricesWork  = 6_500 // going through all changes of prices and their tools
)

// readsNothing are the fields with fields of their own that are read together
// with what they are in.
var readsNothing = map[string]bool{
	"items": true, "edges": true, "nodes": true, "node": true, "meta": true, "pageInfo": true,
	"chunks": true, "metadata": true, "events": true, "feed": true, "stats": true, "__schema": true, "__type": true,
}

// work is what a field takes besides writing it.
func (p *pricing) work(f *ast.Field) int {
	if readsNothing[f.Name] || f.ObjectDefinition != nil && strings.HasPrefix(f.ObjectDefinition.Name, "__") {
		return 0
	}
	work := statementWork + p.scanWork(f)*max(p.tools, leastTools)/pricedTools
	if f.Name == "changes" {
		work += p.distinct(f, "types") * typeWork
		if f.Arguments.ForName("category") != nil {
			work += journalWork
		}
	}
	return work
}

// scanWork is what it takes to go through the catalog for a field, if it has
// pricedTools.
func (p *pricing) scanWork(f *ast.Field) int {
	filter, work := p.filterOf(f)
	category := f.Arguments.ForName("category") != nil
	switch f.Name {
	case "toolGroups":
		return work + groupWork
	case "scoreHistogram":
		if filter > 0 {
			return work + groupWork
		}
		return work + scoresWork
	case "priceChangeCounts":
		return work + pricesWork
	case "comparisons", "comparisonConnection":
		if category {
			work += citedWork
		}
	case "retiredTools", "retiredToolConnection":
		if category {
			work += rangeWork
		}
	}
	work += filter
	if page, _ := p.number(f, "page", maxPage); page > 1 && (page-1)*p.sizeOf(f) > deepFrom {
		work += max(deepWork, filter)
	}
	if f.Arguments.ForName("after") != nil && f.Arguments.ForName("before") != nil {
		work += deepWork // there may be nothing between them
	}
	return work
}

// distinct is how many different values a list in an argument has.
func (p *pricing) distinct(f *ast.Field, name string) int {
	argument := f.Arguments.ForName(name)
	if argument == nil {
		return 0
	}
	value, _ := argument.Value.Value(p.vars)
	if value == nil {
		return 0
	}
	values, several := value.([]any)
	if !several {
		return 1
	}
	different := map[any]bool{}
	for _, v := range values {
		different[v] = true
	}
	return len(different)
}

// filterOf is what a filter takes, and its search apart.
func (p *pricing) filterOf(f *ast.Field) (work, searching int) {
	argument := f.Arguments.ForName("filter")
	if argument == nil {
		return 0, 0
	}
	value, _ := argument.Value.Value(p.vars)
	given, _ := value.(map[string]any)
	conditions := 0
	for _, condition := range given {
		if condition != nil {
			conditions++
		}
	}
	if given["search"] != nil {
		searching = searchWork
	}
	categories, several := given["categories"].([]any)
	switch {
	case conditions == 0:
		return 0, 0
	case conditions == 1 && given["categories"] != nil && (!several || len(categories) <= 1):
		return rangeWork, 0
	}
	return filterWork, searching
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

// argument is the size of a list, within what it may be at all.
func (p *pricing) argument(f *ast.Field, name string) (int, bool) { return p.number(f, name, maxSlice) }

// number is an integer argument, at most so large.
func (p *pricing) number(f *ast.Field, name string, most int) (int, bool) {
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
	return max(0, min(n, most)), ok
}
