package graph

import (
	"fmt"
	"io/fs"
	"maps"
	"sync"

	"github.com/vektah/gqlparser/v2/ast"

	"palmares/graph/document"
	"palmares/graph/generated"
	"palmares/internal/core/problem"
)

// Schema returns the public model.
var Schema = sync.OnceValue(func() *ast.Schema {
	schema := *generated.NewExecutableSchema(generated.Config{}).Schema()
	schema.Directives = maps.Clone(schema.Directives)
	delete(schema.Directives, "defer") // gqlgen adds it, but responses are never sent in parts
	return &schema
})

// Operation is an operation that is validated only once: one of the server's
// own, such as that of a REST route, or a saved query.
type Operation struct {
	*document.Document
	needsKey bool
	limited  bool // the limits for callers apply
}

// NewOperation validates a document with one operation.
func NewOperation(text string) (*Operation, error) {
	doc, err := document.Own(Schema(), text)
	if err != nil {
		return nil, err
	}
	return &Operation{Document: doc, needsKey: document.NeedsKey(doc.Operations[0])}, nil
}

// LoadOperations returns the operations in queries/*.graphql by name, each with
// the fragments that it needs from any of these files.
func LoadOperations(files fs.FS) (map[string]*Operation, error) {
	texts, err := document.Load(files)
	operations := make(map[string]*Operation, len(texts))
	for name, text := range texts {
		if operations[name], err = NewOperation(text); err != nil {
			return nil, fmt.Errorf("operation %s: %w", name, err)
		}
	}
	return operations, err
}

// NewQuery validates a caller's document, which must consist of one query that
// reads the catalog, within the limits for callers.
func (e *Executor) NewQuery(text string) (*Operation, error) {
	doc, errs := e.documents.Parse(text)
	if len(errs) > 0 {
		message := errs[0].Message
		if at := errs[0].Locations; len(at) > 0 {
			message = fmt.Sprintf("Line %d: %s", at[0].Line, message)
		}
		return nil, problem.New(problem.BadInput, "%s", message)
	}
	op := doc.Operations[0]
	switch {
	case len(doc.Operations) > 1:
		return nil, problem.New(problem.BadInput, "The document must have exactly one operation (got %d).",
			len(doc.Operations))
	case op.Operation != ast.Query:
		return nil, problem.New(problem.BadInput, "The document must contain a query (got a %s).", op.Operation)
	case document.SchemaOnly(op):
		return nil, problem.New(problem.BadInput, "The query must read the catalog (got only introspection fields).")
	}
	return &Operation{Document: doc, needsKey: document.NeedsKey(op), limited: true}, nil
}

// RequiresKey reports whether only callers with a key may execute the operation.
func (o *Operation) RequiresKey() bool { return o.needsKey }

// Definition returns the parsed operation.
func (o *Operation) Definition() *ast.OperationDefinition { return o.Operations[0] }

// Deprecation returns the earliest deprecation of the fields that the operation
// selects.
func (o *Operation) Deprecation() *document.Deprecation {
	return document.EarliestDeprecation(o.Definition())
}
