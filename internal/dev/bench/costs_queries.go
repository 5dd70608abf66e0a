package main

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"

	"palmares/ent/comparison"
	"palmares/ent/tool"
	"palmares/graph"
	"palmares/internal/core/store"
	"palmares/internal/dev/check"
)

// queryGenerator walks the schema at random and writes valid queries: nested,
// aliased, sorted, filtered, deep in lists.
type queryGenerator struct {
	*rand.Rand
	schema *ast.Schema
	slugs  map[string][]string // by field

	// State of the current query.
	text    strings.Builder
	aliases int
	fields  int
	nested  int // filters
	depth   int // maximum
}

func newQueryGenerator(b *bed, s *store.Store, random *rand.Rand) *queryGenerator {
	ctx := b.Context()
	active, retired := s.Read.Tool.Query().Where(tool.RetiredAtIsNil()), s.Read.Tool.Query().Where(tool.RetiredAtNotNil())
	return &queryGenerator{Rand: random, schema: graph.Schema(), slugs: map[string][]string{
		"tool":        check.Try(active.Order(tool.ByUpdatedAt(), tool.ByID()).Limit(200).Offset(2_000).IDs(ctx)).OK(b),
		"retiredTool": check.Try(retired.Order(tool.ByID()).Limit(50).IDs(ctx)).OK(b),
		"comparison":  check.Try(s.Read.Comparison.Query().Order(comparison.ByID()).Limit(50).IDs(ctx)).OK(b),
		"category":    check.Try(s.Read.Category.Query().IDs(ctx)).OK(b),
	}}
}

func (g *queryGenerator) chance(percent int) bool { return g.IntN(100) < percent }

func oneOf[T any](g *queryGenerator, values ...T) T { return values[g.IntN(len(values))] }

// next writes a query with a few different fields, or with one field many times,
// each with its own arguments.
func (g *queryGenerator) next() string {
	g.text.Reset()
	g.aliases, g.fields, g.depth = 0, 0, oneOf(g, 3, 4, 5, 7, 9, 11)
	g.text.WriteByte('{')
	roots := g.schema.Query.Fields
	if g.chance(30) {
		repeated, wide := oneOf(g, roots...), g.IntN(3)
		for range oneOf(g, 2, 5, 10, 20, 25, 49) {
			g.field(repeated, 1, wide)
		}
	} else {
		for range oneOf(g, 1, 1, 1, 1, 2, 3, 6) {
			g.field(oneOf(g, roots...), 1, g.IntN(4))
		}
	}
	if g.fields == 0 {
		g.text.WriteString("__typename")
	}
	g.text.WriteByte('}')
	return g.text.String()
}

const mostFields = 450

// field writes a field, under an alias unless it is a scalar.
func (g *queryGenerator) field(f *ast.FieldDefinition, depth, wide int) {
	composite := g.schema.Types[f.Type.Name()].IsCompositeType()
	if strings.HasPrefix(f.Name, "__") || g.fields >= mostFields || composite && depth >= g.depth {
		return
	}
	g.fields++
	if composite {
		g.aliases++
		fmt.Fprintf(&g.text, "a%d: ", g.aliases)
	}
	g.text.WriteString(f.Name)
	g.arguments(f, depth)
	if composite {
		g.selection(g.schema.Types[f.Type.Name()], depth+1, wide)
	}
	g.text.WriteByte(' ')
}

func (g *queryGenerator) selection(t *ast.Definition, depth, wide int) {
	g.text.WriteByte('{')
	start := g.text.Len()
	for _, f := range t.Fields {
		times, percent := 1, 10+20*wide
		if g.schema.Types[f.Type.Name()].IsCompositeType() {
			times, percent = 1+wide/3*g.IntN(3), 20+10*wide
		}
		if slices.Contains([]string{"items", "nodes", "edges", "node"}, f.Name) {
			times, percent = 1, 70
		}
		for range times {
			if g.chance(percent) {
				g.field(f, depth, wide)
			}
		}
	}
	if t.Kind == ast.Interface && g.chance(40) {
		g.text.WriteString("... on Tool ")
		g.selection(g.schema.Types["Tool"], depth, wide)
	}
	if g.text.Len() == start {
		g.text.WriteString("__typename")
	}
	g.text.WriteByte('}')
}

func (g *queryGenerator) arguments(f *ast.FieldDefinition, depth int) {
	var arguments []string
	backward := g.chance(30)
	for _, a := range f.Arguments {
		percent := map[string]int{"limit": 80, "first": 100, "last": 100, "sort": 70, "filter": 50, "page": 60}[a.Name]
		required, other := a.Type.NonNull && a.DefaultValue == nil, "last before"
		if backward {
			other = "first after"
		}
		if !required && !g.chance(max(percent, 30)) || slices.Contains(strings.Fields(other), a.Name) {
			continue
		}
		value := g.value(f.Name, a.Name, a.Type)
		if depth > 1 && value == "200" && (f.Name == "tools" || f.Name == "alternatives") {
			value = "50" // the most within other objects
		}
		if value != "" {
			arguments = append(arguments, a.Name+": "+value)
		}
	}
	if len(arguments) > 0 {
		g.text.WriteString("(" + strings.Join(arguments, ", ") + ")")
	}
}

// literals are the values of arguments and conditions by name, or else by type. Some
// match many tools, and some few.
var literals = map[string]string{
	"limit": "1|1|2|5|10|50|200", "first": "1|1|2|5|10|50|200", "last": "1|1|2|5|10|50|200", "tiers": "1|2|3",
	"page": "1|2|10|100|500|1000|2000|25000|50000|1000000", "minCount": "0|1|2|50", "min": "1|2",
	"release": "1|2|5|9|11", "afterRelease": "1|2|5|9|11", "fields": `"score"|"price"|"pricing"|"name"`,
	"search":   `"a"|"e"|"agent"|"plume nova"|"fermé par"|"modèle"|"zzz"|"123"`,
	"priceMax": "0|1|50|100000", "monthlyPriceMin": "0|1|50|100000", "monthlyPriceMax": "0|1|50|100000", "monthlyCostMax": "0|1|50|100000",
	"Date": `"2000-01-01"|"2025-06-01"|"2025-12-25"|"2026-06-01"|"2030-01-01"`, "Boolean": "true|false",
	"Int": "1|2|10", "Float": "0|0.5|3|5.5|8|9.9|10",
}

// value returns a value for an argument of a field, or a condition in one.
func (g *queryGenerator) value(field, name string, t *ast.Type) string {
	if t.Elem != nil {
		values := map[string]bool{} // without duplicates
		for range oneOf(g, 1, 1, 2, 3, 20, 100) {
			if values[g.value(field, name, t.Elem)] = true; name == "anyOf" && len(values) == 2 {
				break
			}
		}
		return "[" + strings.Join(slices.Sorted(maps.Keys(values)), " ") + "]"
	}
	definition := g.schema.Types[t.NamedType]
	switch {
	case definition.Kind == ast.InputObject:
		return g.conditions(definition)
	case definition.Kind == ast.Enum:
		return oneOf(g, definition.EnumValues...).Name
	case name == "after" || name == "before":
		return map[string]string{"changes": fmt.Sprintf(`"evt_%d"`, 1+g.IntN(10_000))}[field]
	case name == "id" || name == "ids":
		kind := oneOf(g, "tool", "category", "comparison")
		return fmt.Sprintf("%q", oneOf(g, kind+"/"+oneOf(g, g.slugs[kind]...), "release/2", "evt_1"))
	case literals[name] != "":
		return oneOf(g, strings.Split(literals[name], "|")...)
	case literals[t.NamedType] != "":
		return oneOf(g, strings.Split(literals[t.NamedType], "|")...)
	}
	kind := "tool"
	switch {
	case name == "slug" && g.slugs[field] != nil:
		kind = field
	case name == "category" || name == "categories":
		kind = "category"
	}
	return fmt.Sprintf("%q", oneOf(g, g.slugs[kind]...))
}

// conditions writes an input object, mostly with few conditions.
func (g *queryGenerator) conditions(t *ast.Definition) string {
	if g.nested++; g.nested > 4 {
		g.nested--
		return "{}"
	}
	var conditions []string
	percent := oneOf(g, 10, 20, 50)
	for _, f := range t.Fields {
		if g.chance(percent) || f.Type.NonNull {
			conditions = append(conditions, f.Name+": "+g.value("", f.Name, f.Type))
		}
	}
	g.nested--
	return "{" + strings.Join(conditions, ", ") + "}"
}
