package document

import (
	"time"

	"github.com/vektah/gqlparser/v2/ast"

	"palmares/internal/core/problem"
)

// Limits limit the size and complexity of a request and its response.
type Limits struct {
	Body     int64         // bytes of a request's body
	Tokens   int           // lexical tokens of a document
	Fields   int           // fields, with fragments expanded
	Cost     int           // see Calculate
	Response int64         // bytes of a response
	Time     time.Duration // for one operation
}

const (
	// maxCount stops counts from overflowing when fragments double them.
	maxCount = 1_000_000
	// maxWork limits the time of validation: a unit takes about a microsecond. A document
	// without fragments and repeated fields needs less than one for each of its tokens.
	maxWork = 10_000
)

// addCapped adds two counts, up to maxCount.
func addCapped(a, b int) int { return min(a+b, maxCount) }

// checkSize rejects a document that exceeds the limits before it is validated, because
// validation and execution both take more than linear time on hostile documents.
func checkSize(doc *ast.QueryDocument, limits Limits) *problem.Problem {
	if countFields(doc) > limits.Fields {
		return problem.New(problem.TooComplex, "The document has more than %d fields.", limits.Fields)
	}
	w := &validationWork{fragments: doc.Fragments, visiting: map[string]bool{}}
	for _, op := range doc.Operations {
		w.add(len(op.VariableDefinitions) + sizeOfDirectives(op.Directives))
		w.visit(op.SelectionSet, &place{}, 1)
	}
	for _, f := range doc.Fragments { // validation visits each of them again
		w.add(sizeOfDirectives(f.Directives))
		w.visit(f.SelectionSet, &place{}, 1)
	}
	if w.total > maxWork {
		return problem.New(problem.TooComplex,
			"The document is too complex to validate. Select each field once, and nest fewer fragments.")
	}
	return nil
}

// countFields returns the number of fields with fragments expanded. Each fragment is
// counted once, so that counting is linear.
func countFields(doc *ast.QueryDocument) (total int) {
	counted := map[string]int{}
	var count func(set ast.SelectionSet) int
	fragment := func(name string) int {
		if n, known := counted[name]; known {
			return n
		}
		counted[name] = 0 // ends a cycle, which validation reports
		if definition := doc.Fragments.ForName(name); definition != nil {
			counted[name] = count(definition.SelectionSet)
		}
		return counted[name]
	}
	count = func(set ast.SelectionSet) (n int) {
		for _, selection := range set {
			switch s := selection.(type) {
			case *ast.Field:
				n = addCapped(n, 1+count(s.SelectionSet))
			case *ast.InlineFragment:
				n = addCapped(n, count(s.SelectionSet))
			case *ast.FragmentSpread:
				n = addCapped(n, fragment(s.Name))
			}
		}
		return n
	}
	for _, op := range doc.Operations {
		total = addCapped(total, count(op.SelectionSet))
	}
	for _, f := range doc.Fragments { // validation visits unused ones too
		if _, used := counted[f.Name]; !used {
			total = addCapped(total, fragment(f.Name))
		}
	}
	return total
}

// validationWork estimates how much validation will visit and compare. It visits a
// fragment again from each operation and fragment that leads to it. It compares each field
// with all others of the same name in the same place, and each spread with all others
// there, both again for each inline fragment around them.
type validationWork struct {
	total     int
	fragments ast.FragmentDefinitionList
	visiting  map[string]bool // fragments, to end a cycle, which validation reports
}

// place is where fields of the same name become one in the response.
type place struct {
	fields           map[string]*place // by their names in the response
	repeats, spreads int
}

// field returns the place of a field.
func (p *place) field(name string) *place {
	if p.fields == nil {
		p.fields = map[string]*place{}
	}
	if p.fields[name] == nil {
		p.fields[name] = &place{}
	}
	return p.fields[name]
}

func (w *validationWork) add(n int) { w.total = addCapped(w.total, n) }

// visit adds the work of a selection in a place, whose fields are collected a number of
// times.
func (w *validationWork) visit(set ast.SelectionSet, in *place, times int) {
	for _, selection := range set {
		if w.total > maxWork {
			return
		}
		switch s := selection.(type) {
		case *ast.Field:
			field := in.field(s.Alias)
			field.repeats++
			w.add(sizeOfArguments(s.Arguments) + sizeOfDirectives(s.Directives) + times*field.repeats)
			w.visit(s.SelectionSet, field, times)
		case *ast.InlineFragment:
			w.add(sizeOfDirectives(s.Directives) + times)
			w.visit(s.SelectionSet, in, times+1)
		case *ast.FragmentSpread:
			in.spreads++
			w.add(sizeOfDirectives(s.Directives) + times*in.spreads)
			if definition := w.fragments.ForName(s.Name); definition != nil && !w.visiting[s.Name] {
				w.visiting[s.Name] = true
				w.visit(definition.SelectionSet, in, times)
				delete(w.visiting, s.Name)
			}
		}
	}
}

func sizeOfDirectives(directives ast.DirectiveList) (size int) {
	for _, d := range directives {
		size += 1 + sizeOfArguments(d.Arguments)
	}
	return size
}

func sizeOfArguments(arguments ast.ArgumentList) (size int) {
	for _, a := range arguments {
		size += sizeOfValue(a.Value)
	}
	return size
}

func sizeOfValue(value *ast.Value) int {
	size := 1
	for _, child := range value.Children {
		size += sizeOfValue(child.Value)
	}
	return size
}
