package document

import (
	"strings"
	"time"

	"github.com/vektah/gqlparser/v2/ast"

	"palmares/internal/core/problem"
)

// Limits limit the size and complexity of a request and its response.
type Limits struct {
	Body       int64         // bytes of a request's body
	Tokens     int           // lexical tokens of a document
	Depth      int           // levels of fields
	Fields     int           // fields, with fragments expanded
	Aliases    int           // aliased fields, with fragments expanded
	Directives int           // directives, with fragments expanded
	Cost       int           // see Calculate
	Response   int64         // bytes of a response
	Time       time.Duration // for one operation
}

const (
	// maxCount stops counts from overflowing when fragments double them.
	maxCount = 1_000_000
	// maxIntrospectionLists is more than any client's introspection query needs.
	maxIntrospectionLists = 3
	// maxRepeats is how often a field may appear in the same place: validation
	// compares every pair of them.
	maxRepeats = 50
	// maxSteps ends the walk through fragments that spread each other in a
	// cycle, which validation rejects later.
	maxSteps = 10_000
)

// addCapped adds two counts, up to maxCount.
func addCapped(a, b int) int { return min(a+b, maxCount) }

// documentSize is the size of a selection with its fragments expanded.
type documentSize struct {
	depth, fields, aliases, directives int
	// introspectionLists is how many lists of the introspection schema are
	// nested: each level multiplies the response.
	introspectionLists int
}

func (s documentSize) plus(other documentSize) documentSize {
	return documentSize{
		depth:              max(s.depth, other.depth),
		fields:             addCapped(s.fields, other.fields),
		aliases:            addCapped(s.aliases, other.aliases),
		directives:         addCapped(s.directives, other.directives),
		introspectionLists: max(s.introspectionLists, other.introspectionLists),
	}
}

// sizer measures a document before it is validated, because validation and
// execution both take more than linear time on hostile documents. Each fragment
// is measured once, so measuring itself is linear.
type sizer struct {
	fragments map[string]*ast.FragmentDefinition
	measured  map[fragmentUse]*documentSize
}

// fragmentUse is a fragment within or outside of introspection, where depth
// does not count.
type fragmentUse struct {
	name          string
	introspection bool
}

// checkSize rejects a document that exceeds the limits.
func checkSize(doc *ast.QueryDocument, limits Limits) *problem.Problem {
	s := &sizer{fragments: map[string]*ast.FragmentDefinition{}, measured: map[fragmentUse]*documentSize{}}
	for _, f := range doc.Fragments {
		s.fragments[f.Name] = f
	}
	var total documentSize
	for _, op := range doc.Operations {
		size := s.selections(op.SelectionSet, false)
		size.directives = addCapped(size.directives, len(op.Directives))
		total = total.plus(size)
	}
	for _, f := range doc.Fragments { // validation visits unused fragments too
		if s.measured[fragmentUse{f.Name, false}] == nil && s.measured[fragmentUse{f.Name, true}] == nil {
			total = total.plus(s.fragment(f.Name, false))
		}
	}
	for _, check := range []struct {
		what       string
		got, limit int
	}{
		{"levels of fields", total.depth, limits.Depth},
		{"fields", total.fields, limits.Fields},
		{"aliases", total.aliases, limits.Aliases},
		{"directives", total.directives, limits.Directives},
		{"nested introspection lists", total.introspectionLists, maxIntrospectionLists},
	} {
		if check.got > check.limit {
			return problem.New(problem.TooComplex, "The document has more than %d %s.", check.limit, check.what)
		}
	}
	return s.checkRepeats(doc)
}

func (s *sizer) selections(set ast.SelectionSet, introspection bool) (total documentSize) {
	for _, selection := range set {
		var size documentSize
		switch selected := selection.(type) {
		case *ast.Field:
			size = s.field(selected, introspection)
		case *ast.InlineFragment:
			size = s.selections(selected.SelectionSet, introspection)
			size.directives = addCapped(size.directives, len(selected.Directives))
		case *ast.FragmentSpread:
			size = s.fragment(selected.Name, introspection)
			size.directives = addCapped(size.directives, len(selected.Directives))
		}
		total = total.plus(size)
	}
	return total
}

func (s *sizer) field(f *ast.Field, introspection bool) documentSize {
	introspection = introspection || f.Name == "__schema" || f.Name == "__type"
	size := s.selections(f.SelectionSet, introspection)
	size.fields = addCapped(size.fields, 1)
	size.directives = addCapped(size.directives, len(f.Directives))
	if f.Alias != "" && f.Alias != f.Name {
		size.aliases = addCapped(size.aliases, 1)
	}
	if !introspection {
		size.depth++
	} else if f.Name == "fields" || f.Name == "inputFields" || f.Name == "interfaces" || f.Name == "possibleTypes" {
		size.introspectionLists++
	}
	return size
}

func (s *sizer) fragment(name string, introspection bool) documentSize {
	use := fragmentUse{name, introspection}
	if known := s.measured[use]; known != nil {
		return *known
	}
	definition := s.fragments[name]
	if definition == nil {
		return documentSize{} // validation reports it
	}
	s.measured[use] = &documentSize{} // ends a cycle, which validation reports
	size := s.selections(definition.SelectionSet, introspection)
	size.directives = addCapped(size.directives, len(definition.Directives))
	s.measured[use] = &size
	return size
}

// checkRepeats counts fields with the same response name in the same place. It
// needs a document whose number of fields is within its limit.
func (s *sizer) checkRepeats(doc *ast.QueryDocument) *problem.Problem {
	counts, steps := map[string]int{}, 0 // by the response names down to the field
	var count func(set ast.SelectionSet, place string)
	count = func(set ast.SelectionSet, place string) {
		for _, selection := range set {
			if steps++; steps > maxSteps {
				return
			}
			switch selected := selection.(type) {
			case *ast.Field:
				within := place + "/" + selected.Alias
				counts[within]++
				count(selected.SelectionSet, within)
			case *ast.InlineFragment:
				count(selected.SelectionSet, place)
			case *ast.FragmentSpread:
				if definition := s.fragments[selected.Name]; definition != nil {
					count(definition.SelectionSet, place)
				}
			}
		}
	}
	for _, op := range doc.Operations {
		count(op.SelectionSet, op.Name)
	}
	for _, f := range doc.Fragments {
		count(f.SelectionSet, "fragment "+f.Name)
	}
	for place, n := range counts {
		if n > maxRepeats {
			return problem.New(problem.TooComplex,
				"The document repeats the field %s more than %d times in the same place.",
				place[strings.LastIndexByte(place, '/')+1:], maxRepeats)
		}
	}
	return nil
}
