package graph

import (
	"fmt"
	"maps"
	"sync"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/parser"
	"github.com/vektah/gqlparser/v2/validator"
	"github.com/vektah/gqlparser/v2/validator/rules"

	"palmares/graph/generated"
	"palmares/internal/core/problem"
)

// Operation is one of our own, as REST and the pages have them: checked when
// it is made, and never against the limits that are there for callers.
type Operation struct {
	Text     string
	document document
}

// NewOperation checks a document of one operation against the schema.
func NewOperation(text string) (*Operation, error) {
	doc, err := parser.ParseQuery(&ast.Source{Input: text})
	if err != nil {
		return nil, err
	}
	if len(doc.Operations) != 1 {
		return nil, fmt.Errorf("a document of %d operations, not one", len(doc.Operations))
	}
	if errs := validator.ValidateWithRules(Schema(), doc, rules.NewDefaultRules()); len(errs) > 0 {
		return nil, errs
	}
	return &Operation{text, document{QueryDocument: doc, text: text}}, nil
}

// Definition is what the operation asks for, with its types.
func (o *Operation) Definition() *ast.OperationDefinition { return o.document.Operations[0] }

// Schema is the public model, for what is derived from it.
var Schema = sync.OnceValue(func() *ast.Schema {
	schema := *generated.NewExecutableSchema(generated.Config{}).Schema()
	schema.Directives = maps.Clone(schema.Directives)
	// gqlgen adds @defer, which needs responses in parts. They are not served.
	delete(schema.Directives, "defer")
	return &schema
})

// Problem is what went wrong, for those who answer in another way than
// GraphQL does; nil if nothing did.
func (a *Answer) Problem() *problem.Problem {
	if len(a.Errors) == 0 {
		return nil
	}
	return &problem.Problem{Code: problem.Code(codeOf(a.Errors)), Message: a.Errors[0].Message, Cause: a.Cause}
}
