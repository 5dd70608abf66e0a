package graph

import (
	"context"
	"slices"
	"strings"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"

	"palmares/graph/document"
	"palmares/graph/generated"
)

// lookup is an operation that reads one tool by its slug, and only fields that
// are stored with it: {name: tool(slug: $variable) {...}}. It needs neither
// gqlgen nor, usually, the database.
type lookup struct {
	start    string // of the result, up to the tool
	variable string
	fields   []graphql.CollectedField
	withID   bool
}

// newLookup returns nil if the operation is not a lookup.
func newLookup(doc *document.Document) *lookup {
	op := doc.Operations[0]
	root, ok := op.SelectionSet[0].(*ast.Field)
	if !ok || len(op.SelectionSet) > 1 || root.Name != "tool" || strings.Contains(doc.Text, "@") {
		return nil
	}
	slug := root.Arguments.ForName("slug").Value
	types := append([]string{"Tool"}, Schema().Types["Tool"].Interfaces...)
	selected := graphql.CollectFields(&graphql.OperationContext{Doc: doc.QueryDocument}, root.SelectionSet, types)
	if slug.Kind != ast.Variable || slices.ContainsFunc(selected, func(f graphql.CollectedField) bool {
		return len(f.Arguments) > 0 || slices.Contains(document.ReviewFields, f.Name) ||
			!slices.Contains(generated.PlainToolFields, f.Name) && f.Name != "__typename"
	}) {
		return nil
	}
	withID := slices.ContainsFunc(selected, func(f graphql.CollectedField) bool { return f.Name == "id" })
	return &lookup{start: `{"` + root.Alias + `":`, variable: slug.Raw, fields: selected, withID: withID}
}

// FromMemory executes one of the server's own operations without blocking. It
// returns nil if not everything that the operation reads is in memory; use Execute
// then.
func (e *Executor) FromMemory(ctx context.Context, req Request) *Result {
	wanted, newest := req.Operation.lookup, e.catalog.Followed()
	if wanted == nil || !req.AsOf.isNewest() || newest == nil {
		return nil
	}
	slug, _ := req.Variables[wanted.variable].(string)
	found := newest.Tool(slug)
	if found == nil || !found.Active() {
		return nil
	}
	if e.config.Trace != nil {
		_, end := e.config.Trace(ctx, req.Operation.Definition().Name)
		defer end("")
	}
	result := &Result{Newest: newest.Number()}
	result.setRelease(newest.Info)
	tool := newTool(found)
	if wanted.withID {
		tool.ID = toolID(slug)
	}
	const expected = 1_000 // bytes of a tool
	result.Data = generated.AppendTool(append(make([]byte, 0, expected), wanted.start...), wanted.fields, &tool)
	result.Data = append(result.Data, '}')
	return result
}
