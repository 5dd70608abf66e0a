package document

import (
	"slices"

	"github.com/vektah/gqlparser/v2/ast"
)

// Field is a selected field. Optional fields may be missing from the response:
// they belong to only some types, or have a condition.
type Field struct {
	*ast.Field
	Optional bool
}

// Fields returns the fields of a selection within a type, with fragments
// expanded: each response name once, with all of its selections.
func Fields(set ast.SelectionSet, of *ast.Definition) []Field {
	var fields []Field
	var expand func(set ast.SelectionSet, optional bool)
	expand = func(set ast.SelectionSet, optional bool) {
		for _, selection := range set {
			switch s := selection.(type) {
			case *ast.Field:
				fields = merge(fields, Field{s, optional || isConditional(s.Directives)})
			case *ast.InlineFragment:
				expand(s.SelectionSet, optional || isConditional(s.Directives) || narrows(s.TypeCondition, of))
			case *ast.FragmentSpread:
				expand(s.Definition.SelectionSet,
					optional || isConditional(s.Directives) || narrows(s.Definition.TypeCondition, of))
			}
		}
	}
	expand(set, false)
	return fields
}

// merge adds a field, or what it selects to the field of the same name.
func merge(fields []Field, added Field) []Field {
	i := slices.IndexFunc(fields, func(f Field) bool { return f.Alias == added.Alias })
	if i < 0 {
		return append(fields, added)
	}
	merged := *fields[i].Field // the document is shared
	merged.SelectionSet = slices.Concat(merged.SelectionSet, added.SelectionSet)
	fields[i] = Field{&merged, fields[i].Optional && added.Optional}
	return fields
}

func isConditional(directives ast.DirectiveList) bool {
	return directives.ForName("skip") != nil || directives.ForName("include") != nil
}

// narrows reports whether a type condition excludes some objects of a type.
func narrows(condition string, of *ast.Definition) bool {
	return condition != "" && condition != of.Name && of.IsAbstractType()
}
