package fields_test

import (
	"testing"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"

	"palmares/graph"
	"palmares/graph/fields"
	"palmares/internal/dev/check"
)

// A field that several fragments select has different subfields for each type,
// even if the first subfield is the same.
func TestMergedSelections(t *testing.T) {
	doc := gqlparser.MustLoadQuery(graph.Schema(), `{comparisons {items {toolA {
		category {slug}
		... on Tool {category {label}}
		... on RetiredTool {category {toolCount}}
	}}}}`)
	shared := fields.Share()
	collect := func(set ast.SelectionSet, types ...string) []graphql.CollectedField {
		op := &graphql.OperationContext{Doc: doc, Extensions: shared} // each request has its own
		return fields.Collect(op, set, types)
	}
	inner := func(set ast.SelectionSet) ast.SelectionSet { return collect(set)[0].Selections }
	compared := inner(inner(inner(doc.Operations[0].SelectionSet)))
	want := map[string][]string{"Tool": {"slug", "label"}, "RetiredTool": {"slug", "toolCount"}}
	for range 2 { // the second time from the shared results
		for typeName, names := range want {
			category := collect(compared, typeName, "ComparedTool")
			check.Must(t, len(category), 1, "%s: fields", typeName)
			got := collect(category[0].Selections, "Category")
			check.Must(t, len(got), len(names), "%s: fields of its category", typeName)
			for i, field := range got {
				check.Equal(t, field.Name, names[i], typeName)
			}
		}
	}
}
