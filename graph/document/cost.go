package document

import (
	"slices"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"
)

// The cost of an operation is calculated before anything is read. It has two
// parts. Each field costs 1, multiplied by the maximum length of the lists
// around it: roughly the number of fields in the response. Added to that is the
// work of finding them, which does not depend on the number of items:
// statements, filters, searches and groups. A unit stands for at most 150 µs of
// CPU time, whatever the size of the catalog, as measured by `make bench PARTS=costs`.

// listSizes are the expected lengths of lists without a limit argument.
var listSizes = map[string]int{
	"priceHistory": 4, "sources": 4, "history": 12, "chunks": 6, "categories": 20,
	"scoreHistogram": 10, "priceChangeCounts": 100, "retirementGroups": 100,
	"events": 10, // of a publication, one for each type
}

// IntrospectionSizes are the expected lengths of the lists that describe the schema. Types
// that many fields lead to have more fields than others.
var IntrospectionSizes = map[string]int{
	"types": 120, "fields": 15, "args": 1, "inputFields": 12, "enumValues": 8, "interfaces": 1, "possibleTypes": 5, "directives": 12, "locations": 5,
}

// introspectionFields is how many fields that describe the schema cost 1: they are in
// memory, and have no resolvers of ours.
const introspectionFields = 100

// ReviewFields are the fields of Tool without subfields that are stored with its
// review.
var ReviewFields = []string{"verdict", "reviewSections"}

// eventFields is the number of fields of an event as webhooks deliver it.
const eventFields = 8

// Catalog has the properties of the catalog that costs depend on.
type Catalog struct {
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
	catalog   Catalog
	vars      map[string]any
	fragments map[fragmentKey]cost
}

type fragmentKey struct {
	name string
	size int
}

// cost separates the fields of a response from the work of finding them: only
// the fields are multiplied by the lists around them.
type cost struct{ fields, work int }

func (c cost) plus(other cost) cost {
	return cost{addCapped(c.fields, other.fields), addCapped(c.work, other.work)}
}

// Calculate returns the cost of an operation.
func Calculate(op *ast.OperationDefinition, vars map[string]any, catalog Catalog) Cost {
	c := &calculator{catalog: catalog, vars: vars, fragments: map[fragmentKey]cost{}}
	total := c.selections(op.SelectionSet, 1)
	if catalog.Earlier > 0 {
		// Its tools are found among those of the newest release, then sorted.
		tools := max(catalog.Earlier, catalog.Tools/10)
		total.work = addCapped(total.work, scaled(earlierWork, tools))
	}
	c.Total = addCapped(total.fields, total.work)
	return c.Cost
}

// NeedsKey reports whether an operation selects what requires an API key.
func NeedsKey(op *ast.OperationDefinition) bool {
	return Calculate(op, nil, Catalog{}).NeedsKey
}

// selections returns the cost of the content of a page or connection of a given
// size.
func (c *calculator) selections(set ast.SelectionSet, size int) (total cost) {
	for _, selection := range set {
		switch s := selection.(type) {
		case *ast.Field:
			total = total.plus(c.field(s, size))
		case *ast.InlineFragment:
			total = total.plus(c.selections(s.SelectionSet, size))
		case *ast.FragmentSpread:
			key := fragmentKey{s.Name, size}
			inner, known := c.fragments[key]
			if !known && s.Definition != nil {
				inner = c.selections(s.Definition.SelectionSet, size)
				c.fragments[key] = inner
			}
			total = total.plus(inner)
		}
	}
	return total
}

func (c *calculator) field(f *ast.Field, size int) cost {
	if f.Definition == nil {
		return cost{fields: 1}
	}
	c.checkNulls(f)
	if f.ObjectDefinition != nil && f.ObjectDefinition.Name == "ChangeConnection" {
		switch f.Name {
		case "events":
			return cost{1 + size*eventFields, statementWork}
		case "nextCursor":
			return cost{1, statementWork}
		}
	}
	if f.ObjectDefinition != nil && f.ObjectDefinition.Name == "ToolGroup" && isFurtherMeasure(f.Name) {
		return cost{1, c.scaled(groupMeasureWork)}
	}
	if len(f.SelectionSet) == 0 {
		if f.ObjectDefinition != nil && f.ObjectDefinition.Name == "Tool" && slices.Contains(ReviewFields, f.Name) {
			return cost{1, statementWork}
		}
		return cost{fields: 1}
	}
	if strings.HasPrefix(f.Definition.Type.Name(), "Embeddings") {
		c.NeedsKey = true
	}
	times := 1
	if f.Definition.Type.NamedType == "" {
		times = c.length(f, size)
	}
	inner := c.selections(f.SelectionSet, c.sizeOf(f))
	if isRoot(f) && strings.HasPrefix(f.Name, "__") {
		return cost{fields: 1 + (inner.fields+introspectionFields-1)/introspectionFields}
	}
	return cost{min(1+c.parentWork(f)+times*inner.fields, maxCount), addCapped(c.work(f), inner.work)}
}

// isFurtherMeasure reports whether a metric describes something else than scores and
// prices, which the work of groups and series includes.
func isFurtherMeasure(metric string) bool {
	metric = strings.ToLower(metric)
	return strings.HasSuffix(metric, "verifiability") || strings.HasSuffix(metric, "obsolescence") ||
		strings.HasSuffix(metric, "update")
}

// parentWork returns the work of a field for each of its parents.
func (c *calculator) parentWork(f *ast.Field) int {
	switch {
	case f.Name == "changes" && !isRoot(f):
		return toolChangesWork
	case f.Name == "alternatives":
		return 1 + c.scaled(alternativesWork)
	}
	return 0
}

// isRoot reports whether a field belongs to Query, where some names have another
// meaning than in other types.
func isRoot(f *ast.Field) bool {
	return f.ObjectDefinition != nil && f.ObjectDefinition.Name == "Query"
}

// The work of a field, in units of cost, regardless of the size of the catalog.
const (
	statementWork = 5     // reading a few rows by key
	typeWork      = 1_000 // events of one type, which may all be old
	journalWork   = 1_500 // events by category, possibly without a match
	fieldsWork    = 5_000 // comparing the states before and after updates, possibly without a match
	// toolChangesWork is the work of numbering all events of a tool.
	toolChangesWork = 20
)

// ReferenceTools is the size of a large catalog.
const ReferenceTools = 100_000

// The work of scanning a catalog of ReferenceTools. It is scaled to the size of
// the actual catalog.
const (
	minTools   = 1_000
	filterWork = 100 // comparing all tools with a filter
	groupWork  = 200 // grouping all tools
	// alternativesWork is the work of comparing a tool with all others, which may be in
	// the same category.
	alternativesWork   = 50
	groupMeasureWork   = 100    // describing a further number of all tools in groups
	versionMeasureWork = 400    // describing a further number of all versions of all tools
	winsWork           = 400    // grouping all comparisons by their tools
	figuresWork        = 700    // grouping all tools, with averages and medians
	versionsWork       = 1_000  // comparing all versions of all tools
	moversWork         = 1_100  // comparing all tools at two days
	searchWork         = 2_200  // finding words in the text of all tools
	pricesWork         = 1_000  // grouping all price changes
	earlierWork        = 10_000 // deriving an earlier release that has no tool in common with the newest, and sorting it
)

// readWithParent are the fields with subfields that need no statement.
var readWithParent = map[string]bool{
	"items": true, "edges": true, "nodes": true, "node": true, "meta": true, "pageInfo": true,
	"chunks": true, "metadata": true, "events": true, "feed": true, "stats": true, "__schema": true, "__type": true,
}

// conditions are arguments whose value is compared with all items of a list.
var conditions = map[string]bool{
	"category": true, "tool": true, "otherTool": true, "winner": true, "reason": true,
	"updatedSince": true, "updatedBefore": true, "retiredSince": true, "retiredBefore": true,
}

// work returns the work of finding the data of a field.
func (c *calculator) work(f *ast.Field) int {
	if readWithParent[f.Name] && !(isRoot(f) && (f.Name == "node" || f.Name == "nodes")) ||
		f.ObjectDefinition != nil && strings.HasPrefix(f.ObjectDefinition.Name, "__") {
		return 0
	}
	work := statementWork + c.scaled(c.scanWork(f))
	switch {
	case f.Name == "changes" && isRoot(f):
		work += c.journalWork(f)
	case f.Name == "toolVersions" || f.Name == "versions": // found with a window, then read with their releases
		work += 2 * statementWork
	}
	return work
}

// scaled scales the work for ReferenceTools to the size of the actual catalog.
func (c *calculator) scaled(work int) int { return scaled(work, c.catalog.Tools) }

func scaled(work, tools int) int { return work * max(tools, minTools) / ReferenceTools }

// journalWork returns the work of finding events in the whole journal.
func (c *calculator) journalWork(f *ast.Field) (work int) {
	if c.given(f, "slug") { // the events of one tool or comparison are few
		return c.distinct(f, "types") * statementWork
	}
	work = c.distinct(f, "types") * typeWork
	if f.Arguments.ForName("category") != nil {
		work += journalWork
	}
	if c.given(f, "fields") {
		work += fieldsWork
	}
	return work
}

// given reports whether an argument is given and not null.
func (c *calculator) given(f *ast.Field, name string) bool {
	return c.argument(f, name) != nil
}

// scanWork returns the work of scanning a catalog of ReferenceTools for a field.
func (c *calculator) scanWork(f *ast.Field) (work int) {
	switch f.Name {
	case "toolGroups":
		work = figuresWork
	case "embeddingsSync":
		work = filterWork
		if c.given(f, "sync") { // reads the set of an earlier release
			work += groupWork
		}
	case "scoreHistogram", "retirementGroups":
		work = groupWork
	case "comparisonGroups":
		work = winsWork
	case "movers":
		work = moversWork
	case "series":
		work = versionsWork
		for _, metric := range c.values(f, "metrics") {
			if name, _ := metric.(string); isFurtherMeasure(name) {
				work += versionMeasureWork
			}
		}
	case "priceChangeCounts":
		work = pricesWork
	case "tools", "toolConnection":
		if !isRoot(f) {
			work = groupWork // dividing all tools among the categories
		}
	}
	if f.Name != "changes" &&
		slices.ContainsFunc(f.Arguments, func(a *ast.Argument) bool { return conditions[a.Name] }) {
		work += filterWork
	}
	if f.Arguments.ForName("search") != nil {
		work += searchWork
	}
	if argument := f.Arguments.ForName("filter"); argument != nil {
		value, _ := argument.Value.Value(c.vars)
		given, _ := value.(map[string]any)
		for _, condition := range given {
			if condition != nil {
				work += filterWork
				break
			}
		}
		if given["search"] != nil {
			work += searchWork
		}
		if given["priceIncreases"] != nil {
			work += pricesWork
		}
	}
	return work
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

// length returns the maximum number of items in a list.
func (c *calculator) length(f *ast.Field, size int) int {
	if f.ObjectDefinition != nil && strings.HasPrefix(f.ObjectDefinition.Name, "__") {
		return max(1, IntrospectionSizes[f.Name])
	}
	switch f.Name {
	case "points":
		return size
	case "items", "edges", "nodes":
		if isRoot(f) {
			return len(c.values(f, "ids"))
		}
		return size
	case "series":
		return c.groups(f, "by") * max(1, c.distinct(f, "metrics"))
	case "toolGroups":
		return c.groups(f, "by") * c.groups(f, "thenBy")
	case "retirementGroups", "priceChangeCounts":
		if c.argument(f, "includeEmpty") == true && c.catalog.Periods != nil {
			return max(1, c.groupsWithEmpty(f))
		}
	}
	for _, name := range []string{"limit", "first"} {
		if limit, ok := c.intArgument(f, name, MaxPageSize); ok {
			return limit
		}
	}
	if expected, ok := listSizes[f.Name]; ok {
		return expected
	}
	return 1
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

// sizeOf returns the maximum number of items in a field's page or connection, or
// of points in its series.
func (c *calculator) sizeOf(f *ast.Field) int {
	if f.Name == "series" && c.catalog.Points != nil {
		return max(1, c.catalog.Points(c.text(f, "every"), c.text(f, "from"), c.text(f, "to")))
	}
	for _, name := range []string{"limit", "first", "last"} {
		if n, ok := c.intArgument(f, name, MaxPageSize); ok {
			return n
		}
	}
	return DefaultPageSize
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
