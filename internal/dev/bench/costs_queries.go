package main

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/vektah/gqlparser/v2/ast"

	"palmares/ent"
	"palmares/ent/comparison"
	"palmares/ent/tool"
	"palmares/graph"
	"palmares/internal/core/store"
	"palmares/internal/dev/check"
)

// queryGenerator walks the schema at random and writes valid queries: nested,
// aliased, sorted, filtered, deep in lists.
type queryGenerator struct {
	schema      *ast.Schema
	random      *rand.Rand
	tools       []*ent.Tool
	retired     []string
	comparisons []*ent.Comparison
	categories  []string
	events      int

	// State of the current query.
	text    strings.Builder
	aliases int
	fields  int
	nested  int // filters
	depth   int // maximum
}

func newQueryGenerator(t testing.TB, s *store.Store, random *rand.Rand) *queryGenerator {
	g, ctx := &queryGenerator{schema: graph.Schema(), random: random}, t.Context()
	var err error
	g.tools, err = s.Read.Tool.Query().Where(tool.RetiredAtIsNil()).Order(tool.ByUpdatedAt(), tool.ByID()).Limit(200).Offset(2_000).All(ctx)
	check.OK(t, err)
	g.retired, err = s.Read.Tool.Query().Where(tool.RetiredAtNotNil()).Order(tool.ByID()).Limit(50).IDs(ctx)
	check.OK(t, err)
	g.comparisons, err = s.Read.Comparison.Query().Order(comparison.ByID()).Limit(50).All(ctx)
	check.OK(t, err)
	g.categories, err = s.Read.Category.Query().IDs(ctx)
	check.OK(t, err)
	g.events, err = s.Read.JournalEntry.Query().Count(ctx)
	check.OK(t, err)
	return g
}

func (g *queryGenerator) chance(percent int) bool { return g.random.IntN(100) < percent }

func oneOf[T any](g *queryGenerator, values ...T) T { return values[g.random.IntN(len(values))] }

// next writes a query with a few different fields, or with one field many times,
// each with its own arguments.
func (g *queryGenerator) next() string {
	g.text.Reset()
	g.aliases, g.fields, g.depth = 0, 0, oneOf(g, 3, 4, 5, 7, 9, 11)
	g.text.WriteByte('{')
	roots := g.schema.Query.Fields
	if g.chance(30) {
		repeated := roots[g.random.IntN(len(roots))]
		wide := g.random.IntN(3)
		for range oneOf(g, 2, 5, 10, 20, 25, 49) {
			g.field(repeated, 1, wide)
		}
	} else {
		for range oneOf(g, 1, 1, 1, 1, 2, 3, 6) {
			g.field(roots[g.random.IntN(len(roots))], 1, g.random.IntN(4))
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
	if strings.HasPrefix(f.Name, "__") || g.fields >= mostFields {
		return
	}
	composite := g.schema.Types[f.Type.Name()].IsCompositeType()
	if composite && depth >= g.depth {
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
		composite := g.schema.Types[f.Type.Name()].IsCompositeType()
		switch {
		case composite && (f.Name == "items" || f.Name == "nodes" || f.Name == "edges" || f.Name == "node"):
			if g.chance(70) {
				g.field(f, depth, wide)
			}
		case composite:
			for range 1 + wide/3*g.random.IntN(3) {
				if g.chance(20 + 10*wide) {
					g.field(f, depth, wide)
				}
			}
		case g.chance(10 + 20*wide):
			g.field(f, depth, wide)
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
	for _, argument := range f.Arguments {
		required := argument.Type.NonNull && argument.DefaultValue == nil
		percent := map[string]int{"limit": 80, "first": 100, "last": 100, "sort": 70, "filter": 50, "page": 60}[argument.Name]
		if !required && !g.chance(max(percent, 30)) || argument.Name == "first" && backward || argument.Name == "last" && !backward ||
			argument.Name == "before" && !backward || argument.Name == "after" && backward {
			continue
		}
		if value := g.argument(f, argument, depth); value != "" {
			arguments = append(arguments, argument.Name+": "+value)
		}
	}
	if len(arguments) > 0 {
		g.text.WriteString("(" + strings.Join(arguments, ", ") + ")")
	}
}

func (g *queryGenerator) argument(f *ast.FieldDefinition, argument *ast.ArgumentDefinition, depth int) string {
	switch argument.Name {
	case "limit", "first", "last":
		n := oneOf(g, 1, 1, 2, 5, 10, 50, 200)
		if (f.Name == "tools" || f.Name == "alternatives") && depth > 1 {
			n = min(n, 50)
		}
		return fmt.Sprint(n)
	case "page":
		return fmt.Sprint(oneOf(g, 1, 2, 10, 100, 500, 1_000, 2_000, 25_000, 50_000, 1_000_000))
	case "slug":
		return fmt.Sprintf("%q", g.slugFor(f.Name))
	case "tool", "winner":
		return fmt.Sprintf("%q", g.slugFor("tool"))
	case "id":
		return g.id()
	case "ids":
		var ids []string
		for range oneOf(g, 1, 5, 20, 100) {
			ids = append(ids, g.id())
		}
		return "[" + strings.Join(ids, " ") + "]"
	case "search":
		return fmt.Sprintf("%q", oneOf(g, "a", "fermé par", "zzz"))
	case "release", "afterRelease":
		return fmt.Sprint(1 + g.random.IntN(costReleases))
	case "minCount":
		return fmt.Sprint(oneOf(g, 0, 1, 2, 50))
	case "fields":
		return oneOf(g, `["score"]`, `["price", "pricing"]`, `["name"]`)
	case "from":
		return fmt.Sprintf("%q", oneOf(g, "2000-01-01", "2025-06-01", "2026-06-01"))
	case "to", "until", "updatedBefore", "retiredBefore":
		return fmt.Sprintf("%q", oneOf(g, "2026-07-01", "2026-12-31"))
	case "updatedSince", "retiredSince":
		return fmt.Sprintf("%q", oneOf(g, "2000-01-01", "2025-06-01", "2030-01-01"))
	case "metrics":
		metrics := g.schema.Types["SeriesMetric"].EnumValues
		var names []string
		for _, i := range g.random.Perm(len(metrics))[:1+g.random.IntN(len(metrics))] {
			names = append(names, metrics[i].Name)
		}
		return "[" + strings.Join(names, " ") + "]"
	case "category":
		return fmt.Sprintf("%q", oneOf(g, g.categories...))
	case "filter":
		return g.filter()
	case "since":
		return fmt.Sprintf("%q", oneOf(g, "2000-01-01", "2025-06-01", "2026-06-01"))
	case "after", "before":
		return g.cursor(f.Name)
	}
	return g.value(argument.Type)
}

// id returns the global identifier of some object.
func (g *queryGenerator) id() string {
	return fmt.Sprintf("%q", oneOf(g,
		"tool/"+g.slugFor("tool"), "tool/"+g.slugFor("retiredTool"), "category/"+g.slugFor("category"), "comparison/"+g.slugFor("comparison"), "release/2", "evt_1"))
}

func (g *queryGenerator) slugFor(field string) string {
	switch field {
	case "category":
		return oneOf(g, g.categories...)
	case "comparison":
		return oneOf(g, g.comparisons...).ID
	case "retiredTool":
		return oneOf(g, g.retired...)
	}
	return oneOf(g, g.tools...).ID
}

// cursor returns a position in a list of the default order.
func (g *queryGenerator) cursor(field string) string {
	at := oneOf(g, g.tools...)
	switch field {
	case "changes":
		return fmt.Sprintf(`"evt_%d"`, 1+g.random.IntN(max(g.events, 1)))
	case "comparisonConnection":
		c := oneOf(g, g.comparisons...)
		return encodedCursor("comparisons", c.UpdatedAt, c.ID)
	case "toolConnection":
		return encodedCursor("tools score_desc", at.Score == nil, at.Score, at.ID)
	}
	return ""
}

func encodedCursor(list string, position ...any) string {
	data, err := json.Marshal(map[string]any{"l": list, "p": position})
	if err != nil {
		panic(err) // cannot happen with strings and numbers
	}
	return fmt.Sprintf("%q", base64.RawURLEncoding.EncodeToString(data))
}

// filter writes a filter, mostly with few conditions; some match few tools.
func (g *queryGenerator) filter() string {
	var conditions []string
	percent := oneOf(g, 10, 20, 50)
	for _, f := range g.schema.Types["ToolFilter"].Fields {
		if !g.chance(percent) {
			continue
		}
		value := ""
		switch f.Name {
		case "categories":
			var slugs []string
			for range oneOf(g, 1, 1, 2, len(g.categories)) {
				slugs = append(slugs, fmt.Sprintf("%q", oneOf(g, g.categories...)))
			}
			value = "[" + strings.Join(slugs, ", ") + "]"
		case "search":
			value = fmt.Sprintf("%q", oneOf(g, "e", "agent", "plume nova", "zzz", "modèle", fmt.Sprint(g.random.IntN(1000))))
		case "slugs":
			slugs := map[string]bool{}
			for range oneOf(g, 1, 10, 150) {
				slugs[fmt.Sprintf("%q", g.slugFor("tool"))] = true
			}
			value = "[" + strings.Join(slices.Sorted(maps.Keys(slugs)), " ") + "]"
		case "tiers":
			value = oneOf(g, "[1]", "[2 3]")
		case "hasEmbeddings":
			value = oneOf(g, "true", "false")
		case "updatedSince", "updatedBefore":
			value = fmt.Sprintf("%q", oneOf(g, "2000-01-01", "2025-06-01", "2025-12-25", "2030-01-01"))
		case "priceIncreases":
			value = oneOf(g, "{}", "{min: 2}", `{min: 1, since: "2025-06-01"}`)
		case "anyOf", "not":
			if g.nested == 3 {
				continue
			}
			g.nested++
			value = g.filter()
			if g.nested--; f.Name == "anyOf" {
				value = "[" + value + ", " + value + "]"
			}
		case "priceMax", "monthlyPriceMin", "monthlyPriceMax", "monthlyCostMax":
			value = fmt.Sprint(oneOf(g, 0, 1, 50, 100_000))
		default:
			value = g.value(f.Type)
		}
		conditions = append(conditions, f.Name+": "+value)
	}
	return "{" + strings.Join(conditions, ", ") + "}"
}

func (g *queryGenerator) value(t *ast.Type) string {
	if t.Elem != nil {
		var values []string
		for range oneOf(g, 1, 2, 3) {
			values = append(values, g.value(t.Elem))
		}
		return "[" + strings.Join(values, ", ") + "]"
	}
	definition := g.schema.Types[t.NamedType]
	if definition.Kind == ast.Enum {
		return definition.EnumValues[g.random.IntN(len(definition.EnumValues))].Name
	}
	switch t.NamedType {
	case "Date":
		return fmt.Sprintf("%q", oneOf(g, "2000-01-01", "2025-06-01", "2026-06-01"))
	case "String":
		return fmt.Sprintf("%q", g.slugFor("tool"))
	case "Boolean":
		return oneOf(g, "true", "false")
	}
	return fmt.Sprint(oneOf(g, 0.0, 0.5, 3, 5.5, 8, 9.9, 10))
}
