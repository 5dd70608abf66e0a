package fields_test

import (
	"testing"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"

	"palmares/graph"
	"palmares/graph/fields"
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
			if len(category) != 1 {
				t.Fatalf("%s: got %d fields, want category", typeName, len(category))
			}
			got := collect(category[0].Selections, "Category")
			if len(got) != len(names) {
				t.Fatalf("%s: got %d fields of its category, want %v", typeName, len(got), names)
			}
			for i, field := range got {
				if field.Name != names[i] {
					t.Errorf("%s: got %s, want %s", typeName, field.Name, names[i])
				}
			}
		}
	}
}
