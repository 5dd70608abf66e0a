package graph

import (
	"strings"

	"github.com/vektah/gqlparser/v2/ast"

	"palmares/internal/core/problem"
)

// guard measures a document before anything else looks at it: validation and
// execution both take longer than linear time on documents made to hurt. A
// fragment is measured once, however often it is spread, so the guard itself
// is linear.
type guard struct {
	fragments map[string]*ast.FragmentDefinition
	measured  map[string]*measure
}

// measure is the size of a selection with its fragments written out.
type measure struct {
	depth, fields, aliases, directives int
	// metaLists is how many lists of the schema's own description are nested:
	// each level multiplies the answer.
	metaLists int
}

const (
	// enough stops counts from overflowing when fragments double them.
	enough = 1_000_000
	// maxMetaLists is more than any tool's introspection needs.
	maxMetaLists = 3
)

func checkSize(doc *ast.QueryDocument, limits Limits) *problem.Problem {
	g := &guard{fragments: map[string]*ast.FragmentDefinition{}, measured: map[string]*measure{}}
	for _, f := range doc.Fragments {
		g.fragments[f.Name] = f
	}
	var whole measure
	for _, op := range doc.Operations {
		m := g.selections(op.SelectionSet, false)
		m.directives = sum(m.directives, len(op.Directives))
		whole = whole.beside(m)
	}
	// Validation looks at fragments that nothing spreads, too.
	for _, f := range doc.Fragments {
		if g.measured[f.Name] == nil && g.measured[metaKey(f.Name)] == nil {
			whole = whole.beside(g.fragment(f.Name, false))
		}
	}
	for _, over := range []struct {
		what       string
		got, limit int
	}{
		{"levels of fields", whole.depth, limits.Depth},
		{"fields", whole.fields, limits.Fields},
		{"aliases", whole.aliases, limits.Aliases},
		{"directives", whole.directives, limits.Directives},
		{"nested lists of the schema", whole.metaLists, maxMetaLists},
	} {
		if over.got > over.limit {
			return problem.New(problem.TooComplex, "The document has more than %d %s.", over.limit, over.what)
		}
	}
	return g.checkRepeats(doc)
}

const (
	// maxRepeats is how often a field may stand in the same place: validation
	// compares each with each.
	maxRepeats = 50
	// maxSteps ends the walk through fragments that spread each other in a
	// circle, which validation refuses.
	maxSteps = 10_000
)

// checkRepeats counts fields of the same response name in the same place. It is
// called for documents with a bounded number of fields, fragments written out.
func (g *guard) checkRepeats(doc *ast.QueryDocument) *problem.Problem {
	r := &repeats{guard: g, counts: map[string]int{}}
	for _, op := range doc.Operations {
		r.count(op.SelectionSet, op.Name)
	}
	for _, f := range doc.Fragments {
		r.count(f.SelectionSet, "fragment "+f.Name)
	}
	for place, n := range r.counts {
		if n > maxRepeats {
			return problem.New(problem.TooComplex, "The document repeats the field %s more than %d times in the same place.",
				place[strings.LastIndexByte(place, '/')+1:], maxRepeats)
		}
	}
	return nil
}

type repeats struct {
	guard  *guard
	counts map[string]int // by place: the response names down to the field
	steps  int
}

func (r *repeats) count(set ast.SelectionSet, place string) {
	for _, selection := range set {
		if r.steps++; r.steps > maxSteps {
			return
		}
		switch s := selection.(type) {
		case *ast.Field:
			within := place + "/" + s.Alias
			r.counts[within]++
			r.count(s.SelectionSet, within)
		case *ast.InlineFragment:
			r.count(s.SelectionSet, place)
		case *ast.FragmentSpread:
			if definition := r.guard.fragments[s.Name]; definition != nil {
				r.count(definition.SelectionSet, place)
			}
		}
	}
}

// beside adds what stands next to it.
func (m measure) beside(other measure) measure {
	return measure{
		depth: max(m.depth, other.depth), fields: sum(m.fields, other.fields), aliases: sum(m.aliases, other.aliases),
		directives: sum(m.directives, other.directives), metaLists: max(m.metaLists, other.metaLists),
	}
}

func (g *guard) selections(set ast.SelectionSet, meta bool) measure {
	var all measure
	for _, selection := range set {
		switch s := selection.(type) {
		case *ast.Field:
			all = all.beside(g.field(s, meta))
		case *ast.InlineFragment:
			inner := g.selections(s.SelectionSet, meta)
			inner.directives = sum(inner.directives, len(s.Directives))
			all = all.beside(inner)
		case *ast.FragmentSpread:
			inner := g.fragment(s.Name, meta)
			inner.directives = sum(inner.directives, len(s.Directives))
			all = all.beside(inner)
		}
	}
	return all
}

func (g *guard) field(f *ast.Field, meta bool) measure {
	meta = meta || f.Name == "__schema" || f.Name == "__type"
	m := g.selections(f.SelectionSet, meta)
	m.fields = sum(m.fields, 1)
	m.directives = sum(m.directives, len(f.Directives))
	if f.Alias != "" && f.Alias != f.Name {
		m.aliases = sum(m.aliases, 1)
	}
	if !meta { // tools that read the schema go deep, along chains that end
		m.depth++
	} else if f.Name == "fields" || f.Name == "inputFields" || f.Name == "interfaces" || f.Name == "possibleTypes" {
		m.metaLists++
	}
	return m
}

func (g *guard) fragment(name string, meta bool) measure {
	key := name
	if meta {
		key = metaKey(name)
	}
	if known := g.measured[key]; known != nil {
		return *known
	}
	definition := g.fragments[name]
	if definition == nil {
		return measure{} // validation will say so
	}
	g.measured[key] = &measure{} // a cycle ends here; validation will say so
	m := g.selections(definition.SelectionSet, meta)
	m.directives = sum(m.directives, len(definition.Directives))
	g.measured[key] = &m
	return m
}

// metaKey is for a fragment within the schema's description, where depth is
// counted otherwise.
func metaKey(name string) string { return "meta " + name }

func sum(a, b int) int { return min(a+b, enough) }
