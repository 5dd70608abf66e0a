package graph

import (
	"context"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"
)

// selection is what a query asks of an object: it tells what to read.
type selection struct {
	op    *graphql.OperationContext
	set   ast.SelectionSet
	types []string // that the object satisfies; none for any
}

// selected is what the field that is being resolved was asked for.
func selected(ctx context.Context) selection {
	return selection{op: graphql.GetOperationContext(ctx), set: graphql.GetFieldContext(ctx).Field.Selections}
}

// fields lists what is asked for, fragments and directives worked in.
func (s selection) fields() []graphql.CollectedField {
	if len(s.set) == 0 {
		return nil
	}
	return graphql.CollectFields(s.op, s.set, s.types)
}

func (s selection) has(names ...string) bool {
	for _, field := range s.fields() {
		for _, name := range names {
			if field.Name == name {
				return true
			}
		}
	}
	return false
}

// of is what is asked of the named fields, all their aliases together.
func (s selection) of(names ...string) selection {
	merged := selection{op: s.op}
	for _, field := range s.fields() {
		for _, name := range names {
			if field.Name == name {
				merged.set = append(merged.set, field.Selections...)
			}
		}
	}
	return merged
}

// as narrows a selection on an interface to one of its types.
func (s selection) as(types ...string) selection {
	s.types = types
	return s
}
