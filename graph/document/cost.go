package document

import (
	"slices"
	"strings"

	"palmares/internal/core/params"

	"github.com/vektah/gqlparser/v2/ast"
)

// The cost of an operation is calculated before anything is read. It has two
// parts. Each field costs 1, multiplied by the maximum length of the lists
// around it: roughly the number of fields in the response. Added to that is the
// work of finding them, which does not depend on the number of items:
// statements, filters, searches and groups. A unit stands for at most 150 µs of
// CPU time, whatever the size of the catalog, as measured by `make bench PARTS=costs`.
// The schema says what each field costs, with @cost and @listSize.

// IntrospectionSizes are the expected lengths of the lists that describe the schema. Types
// that many fields lead to have more fields than others.
var IntrospectionSizes = map[string]int{
	"types": 120, "fields": 15, "args": 1, "inputFields": 14, "enumValues": 8, "interfaces": 1, "possibleTypes": 5, "directives": 12, "locations": 5,
}

// introspectionFields is how many fields that describe the schema cost 1: they are in
// memory, and have no resolvers of ours.
const introspectionFields = 100

// Size has the properties of the catalog that costs depend on.
type Size struct {
	Tools      int
	Categories int
	Earlier    int // tools of the earlier release that is read; 0 for the newest
	// Points returns the number of points of a series; 0 if it is invalid. It is nil before
	// the catalog is loaded.
	Points func(every, from, to string) int
	// Periods returns the number of periods with or without something that is counted, such
	// as retirements; 0 if there are too many. It is nil before the catalog is loaded.
	Periods func(of, every, since, before string) int
}

// Cost is the cost of an operation, and what was found out while calculating it.
type Cost struct {
	Total        int
	NeedsKey     bool   // the operation selects embeddings
	NullArgument string // a non-null argument that is null
}

// calculator calculates the cost of one operation. The cost of a fragment is
// calculated once for each size of the page or connection around it.
type calculator struct {
	Cost
	catalog   Size
	vars      map[string]any
	fragments map[fragmentKey]cost
}

type fragmentKey struct {
	name string
	listAround
}

// listAround is the page or connection that a selection belongs to: the size of its lists.
type listAround struct {
	size int
	list *listSize
}

// cost separates the fields of a response from the work of finding them: only
// the fields are multiplied by the lists around them.
type cost struct{ fields, work int }

func (c cost) plus(other cost) cost {
	return cost{addCapped(c.fields, other.fields), addCapped(c.work, other.work)}
}

// Calculate returns the cost of an operation.
func Calculate(op *ast.OperationDefinition, vars map[string]any, catalog Size) Cost {
	c := &calculator{catalog: catalog, vars: vars, fragments: map[fragmentKey]cost{}}
	total := c.selections(op.SelectionSet, listAround{})
	if catalog.Earlier > 0 {
		// Its tools are found among those of the newest release, then sorted.
		tools := max(catalog.Earlier, catalog.Tools/10)
		total.work = addCapped(total.work, units(earlierPerTool, tools))
	}
	c.Total = addCapped(total.fields, total.work)
	return c.Cost
}

// NeedsKey reports whether an operation selects what requires an API key.
func NeedsKey(op *ast.OperationDefinition) bool {
	return Calculate(op, nil, Size{}).NeedsKey
}

// selections returns the cost of a selection.
func (c *calculator) selections(set ast.SelectionSet, around listAround) (total cost) {
	for _, selection := range set {
		switch s := selection.(type) {
		case *ast.Field:
			total = total.plus(c.field(s, around))
		case *ast.InlineFragment:
			total = total.plus(c.selections(s.SelectionSet, around))
		case *ast.FragmentSpread:
			key := fragmentKey{s.Name, around}
			inner, known := c.fragments[key]
			if !known && s.Definition != nil {
				inner = c.selections(s.Definition.SelectionSet, around)
				c.fragments[key] = inner
			}
			total = total.plus(inner)
		}
	}
	return total
}

func (c *calculator) field(f *ast.Field, around listAround) cost {
	if f.Definition == nil {
		return cost{fields: 1}
	}
	c.checkNulls(f)
	if f.ObjectDefinition != nil && strings.HasPrefix(f.ObjectDefinition.Name, "__") {
		times := max(1, IntrospectionSizes[f.Name])
		return cost{fields: min(1+times*c.selections(f.SelectionSet, listAround{}).fields, maxCount)}
	}
	if strings.HasPrefix(f.Name, "__") {
		described := c.selections(f.SelectionSet, listAround{}).fields
		return cost{fields: 1 + (described+introspectionFields-1)/introspectionFields}
	}
	p := pricesOf(f.Definition.Directives)
	c.NeedsKey = c.NeedsKey || p.key
	times, within := 1, listAround{}
	switch {
	case around.list != nil && slices.Contains(around.list.sized, f.Name):
		times = around.size
	case p.list != nil:
		times, within.size = c.sizes(f, p.list)
		within.list = p.list
	}
	weight := 1.0
	for _, own := range p.costs {
		weight = own.weight + own.weightPerItem*float64(times) + float64(units(own.weightPerTool, c.catalog.Tools))
	}
	inner := c.selections(f.SelectionSet, within)
	return cost{min(int(weight)+times*inner.fields, maxCount), addCapped(c.work(f, p), inner.work)}
}

// ReferenceTools is the size of a large catalog.
const ReferenceTools = 100_000

// minTools is the size of a catalog below which work does not get cheaper.
const minTools = 1_000

// earlierPerTool is the work of deriving an earlier release that has no tool in common
// with the newest, and sorting it.
const earlierPerTool = 0.1

// units returns the units of work for all tools.
func units(perTool float64, tools int) int {
	const rounding = 1e-6 // decimal fractions are not exact
	return int(perTool*float64(max(tools, minTools)) + rounding)
}

// work returns the work of finding the data of a field: its own, and what the given
// arguments add.
func (c *calculator) work(f *ast.Field, p *prices) int {
	w := work{given: func(name string) bool { return c.argument(f, name) != nil }}
	w.add(p.costs, 1)
	for _, argument := range f.Arguments {
		w.add(pricesOf(f.Definition.Arguments.ForName(argument.Name).Directives).costs, c.distinct(f, argument.Name))
		definition := argument.Value.Definition
		for _, value := range c.values(f, argument.Name) {
			if name, isText := value.(string); isText && definition.Kind == ast.Enum {
				w.add(pricesOf(definition.EnumValues.ForName(name).Directives).costs, 1)
			}
			w.addInput(definition, value)
		}
	}
	return addCapped(int(w.once), units(w.perTool, c.catalog.Tools))
}

// argument returns the value of an argument; nil if it is not given.
func (c *calculator) argument(f *ast.Field, name string) any {
	argument := f.Arguments.ForName(name)
	if argument == nil {
		return nil
	}
	value, _ := argument.Value.Value(c.vars)
	return value
}

// values returns the values of an argument that is a list.
func (c *calculator) values(f *ast.Field, name string) []any {
	value := c.argument(f, name)
	values, isList := value.([]any)
	if !isList && value != nil {
		return []any{value} // a single value stands for a list of one
	}
	return values
}

// distinct returns the number of different values of an argument.
func (c *calculator) distinct(f *ast.Field, name string) int {
	unique := map[any]bool{}
	for _, v := range c.values(f, name) {
		if _, isInput := v.(map[string]any); isInput {
			return 1
		}
		unique[v] = true
	}
	return len(unique)
}

// checkNulls finds a null variable in a non-null argument, which the
// specification leaves to execution.
func (c *calculator) checkNulls(f *ast.Field) {
	for _, argument := range f.Arguments {
		definition := f.Definition.Arguments.ForName(argument.Name)
		if definition == nil || !definition.Type.NonNull || argument.Value.Kind != ast.Variable {
			continue
		}
		if value, given := c.vars[argument.Value.Raw]; given && value == nil {
			c.NullArgument = argument.Name
		}
	}
}

// sizes returns the maximum number of items in a list, and in the lists of its objects that
// its directive names.
func (c *calculator) sizes(f *ast.Field, list *listSize) (own, inner int) {
	if list.computed {
		if own, inner, ok := c.computed(f); ok {
			if limit, limited := c.intArgument(f, "limit", maxCount); limited {
				own = min(own, limit)
			}
			return own, inner
		}
	}
	size := list.assumed
	for _, name := range list.slicing {
		if f.Definition.Arguments.ForName(name).Type.Elem != nil {
			size = len(c.values(f, name))
			break
		}
		if n, ok := c.intArgument(f, name, MaxPageSize); ok {
			size = n
			break
		}
	}
	if len(list.sized) > 0 {
		return 1, size
	}
	return size, 0
}

// computed returns the sizes of lists that depend on the release.
func (c *calculator) computed(f *ast.Field) (own, inner int, ok bool) {
	switch f.Name {
	case "series":
		points := DefaultPageSize
		if c.catalog.Points != nil {
			points = max(1, c.catalog.Points(c.text(f, "every"), c.text(f, "from"), c.text(f, "to")))
		}
		return c.groups(f, "by") * max(1, c.distinct(f, "metrics")), points, true
	case "toolGroups":
		return c.groups(f, "by") * c.groups(f, "thenBy"), 0, true
	}
	if c.argument(f, "includeEmpty") != true || c.catalog.Periods == nil {
		return 0, 0, false
	}
	return max(1, c.groupsWithEmpty(f)), 0, true
}

// groupsWithEmpty returns the number of groups of a field that has one for each period.
func (c *calculator) groupsWithEmpty(f *ast.Field) int {
	if f.Name == "priceChangeCounts" {
		return max(1, c.catalog.Categories) * c.catalog.Periods("price changes", "month", c.text(f, "since"), "")
	}
	groups := 1
	by := c.values(f, "by")
	if f.Arguments.ForName("by") == nil || slices.Contains(by, "reason") {
		groups = retirementReasons
	}
	if slices.Contains(by, "category") {
		groups *= max(1, c.catalog.Categories)
	}
	return groups * c.catalog.Periods("retirements",
		c.text(f, "every"), c.text(f, "retiredSince"), c.text(f, "retiredBefore"))
}

const retirementReasons = 5

// text returns the value of an argument that is a string or an enum.
func (c *calculator) text(f *ast.Field, name string) string {
	value, _ := c.argument(f, name).(string)
	if params.IsRelativeDate(value) { // resolved when the release is known: priced as if it were not given
		return ""
	}
	return value
}

// groups returns the number of groups by the property that an argument names.
func (c *calculator) groups(f *ast.Field, argument string) int {
	switch c.argument(f, argument) {
	case nil, "none":
		return 1
	case "category":
		return max(c.catalog.Categories, 1)
	case "billing_period":
		return 7
	}
	return 3 // pricing, icp and tier have three values each
}

// intArgument returns an integer argument, clamped to the range from 0 to most.
func (c *calculator) intArgument(f *ast.Field, name string, most int) (int, bool) {
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
	raw, err := value.Value(c.vars)
	if raw == nil && definition.DefaultValue != nil { // an omitted variable
		raw, err = definition.DefaultValue.Value(nil)
	}
	if err != nil || raw == nil {
		return 0, false
	}
	n, ok := WholeNumber(raw)
	return max(0, min(n, most)), ok
}
