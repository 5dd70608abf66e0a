package graph

import (
	"context"
	"slices"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"
)

// selection is what a query asks of objects: it tells what to read. The same
// objects may be asked for in several places, each with fields and arguments
// of its own, so it is a list of sets that are never merged.
type selection struct {
	op    *graphql.OperationContext
	sets  []ast.SelectionSet
	types []string // that the objects satisfy; none for any
}

// selected is what the field that is being resolved was asked for.
func selected(ctx context.Context) selection {
	return selection{op: graphql.GetOperationContext(ctx), sets: []ast.SelectionSet{graphql.GetFieldContext(ctx).Field.Selections}}
}

// with adds another place.
func (s selection) with(sets ...ast.SelectionSet) selection {
	s.sets = append(slices.Clone(s.sets), sets...)
	return s
}

// fields lists what is asked for, fragments and directives worked in.
func (s selection) fields() []graphql.CollectedField {
	if len(s.sets) == 1 { // mostly, and then nothing need be copied
		return graphql.CollectFields(s.op, s.sets[0], s.types)
	}
	var all []graphql.CollectedField
	for _, set := range s.sets {
		if len(set) > 0 {
			all = append(all, graphql.CollectFields(s.op, set, s.types)...)
		}
	}
	return all
}

func (s selection) has(names ...string) bool {
	return slices.ContainsFunc(s.fields(), func(field graphql.CollectedField) bool { return slices.Contains(names, field.Name) })
}

// of is what is asked of the named fields.
func (s selection) of(names ...string) selection {
	inner := selection{op: s.op}
	for _, field := range s.fields() {
		if slices.Contains(names, field.Name) {
			inner = inner.with(field.Selections)
		}
	}
	return inner
}

// longest is the largest limit of a list, which may be asked for in several
// places.
func (s selection) longest(name string) (int, error) {
	most := 0
	for _, field := range s.fields() {
		if field.Name == name {
			limit, _ := wholeNumber(field.ArgumentMap(s.op.Variables)["limit"])
			if err := checkRange("limit", limit, 1, maxSlice); err != nil {
				return 0, err
			}
			most = max(most, limit)
		}
	}
	return most, nil
}

// as narrows a selection on an interface to one of its types.
func (s selection) as(types ...string) selection {
	s.types = types
	return s
}
