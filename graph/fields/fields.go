// Package fields collects the fields of selections once for all operations of a
// document. gqlgen would do it again for each operation.
package fields

import (
	"slices"
	"sync"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"
)

// extension is the name under which operations share the collected fields.
const extension = "collected fields"

// collected holds the fields of a document's selections. Selections are compared
// by their content, because gqlgen copies them.
type collected struct {
	mu   sync.RWMutex
	sets map[setKey][]collectedSet

	once    sync.Once
	contain bool // see Contain
}

type setKey struct {
	first ast.Selection
	types [maxTypes]string
}

// maxTypes is the maximum number of types that an object satisfies: itself and
// its interfaces.
const maxTypes = 4

type collectedSet struct {
	set    ast.SelectionSet
	fields []graphql.CollectedField
}

// Share returns extensions for the operations of a document without directives,
// whose fields do not depend on variables.
func Share() map[string]any {
	return map[string]any{extension: &collected{sets: map[setKey][]collectedSet{}}}
}

// Collect returns the fields of a selection that apply to an object of one of
// the types, or to any object if there are no types.
func Collect(op *graphql.OperationContext, set ast.SelectionSet, types []string) []graphql.CollectedField {
	shared, ok := op.Extensions[extension].(*collected)
	if !ok || len(set) == 0 || len(types) > maxTypes {
		return graphql.CollectFields(op, set, types)
	}
	key := setKey{first: set[0]}
	copy(key.types[:], types)
	shared.mu.RLock()
	fields, found := find(shared.sets[key], set)
	shared.mu.RUnlock()
	if found {
		return fields
	}
	fields = graphql.CollectFields(op, set, types)
	shared.mu.Lock()
	defer shared.mu.Unlock()
	if known, found := find(shared.sets[key], set); found {
		return known // others already use it
	}
	shared.sets[key] = append(shared.sets[key], collectedSet{set, fields})
	return fields
}

func find(sets []collectedSet, set ast.SelectionSet) ([]graphql.CollectedField, bool) {
	for _, known := range sets {
		if slices.Equal(known.set, set) {
			return known.fields, true
		}
	}
	return nil, false
}

// Contain reports whether a document selects a field with one of the names below the
// root. For documents with directives, it does not look.
func Contain(op *graphql.OperationContext, names map[string]bool) bool {
	shared, ok := op.Extensions[extension].(*collected)
	if !ok {
		return true
	}
	shared.once.Do(func() {
		for _, operation := range op.Doc.Operations {
			shared.contain = shared.contain || contains(operation.SelectionSet, names)
		}
		for _, fragment := range op.Doc.Fragments {
			shared.contain = shared.contain || contains(fragment.SelectionSet, names)
		}
	})
	return shared.contain
}

func contains(set ast.SelectionSet, names map[string]bool) bool {
	return slices.ContainsFunc(set, func(selection ast.Selection) bool {
		switch s := selection.(type) {
		case *ast.Field:
			return names[s.Name] && s.ObjectDefinition.Name != "Query" || contains(s.SelectionSet, names)
		case *ast.InlineFragment:
			return contains(s.SelectionSet, names)
		}
		return false // a fragment of the document
	})
}
