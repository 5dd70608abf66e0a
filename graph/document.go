package graph

import (
	"context"
	"unicode/utf8"

	lru "github.com/hashicorp/golang-lru/v2"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"
	"github.com/vektah/gqlparser/v2/parser"
	"github.com/vektah/gqlparser/v2/validator"
	"github.com/vektah/gqlparser/v2/validator/rules"

	"palmares/internal/problem"
)

const (
	keptDocuments = 500
	// maxKept keeps a caller of large documents from filling the memory.
	maxKept = 8 << 10
)

// documents parses, measures and validates, and remembers what passed.
type documents struct {
	schema *ast.Schema
	limits Limits
	kept   *lru.Cache[string, *ast.QueryDocument]
}

func newDocuments(schema *ast.Schema, limits Limits) *documents {
	kept, err := lru.New[string, *ast.QueryDocument](keptDocuments)
	if err != nil {
		panic(err) // the size above is wrong
	}
	return &documents{schema: schema, limits: limits, kept: kept}
}

func (d *documents) get(query string) (*ast.QueryDocument, gqlerror.List) {
	if doc, ok := d.kept.Get(query); ok {
		return doc, nil
	}
	if !utf8.ValidString(query) {
		return nil, refused(problem.New(problem.BadInput, "The document is not valid UTF-8."))
	}
	doc, err := parser.ParseQueryWithTokenLimit(&ast.Source{Input: query}, d.limits.Tokens)
	if err != nil {
		return nil, coded(codeParseFailed, fewAndShort(gqlerror.List{asGraphQLError(err)}))
	}
	if tooMuch := checkSize(doc, d.limits); tooMuch != nil {
		return nil, refused(tooMuch)
	}
	if len(doc.Operations) == 0 {
		return nil, refused(problem.New(problem.BadInput, "The document has no operation."))
	}
	if errs := validator.ValidateWithRules(d.schema, doc, rules.NewDefaultRules()); len(errs) > 0 {
		return nil, coded(codeValidationFailed, fewAndShort(errs))
	}
	if len(query) <= maxKept {
		d.kept.Add(query, doc)
	}
	return doc, nil
}

// handed passes a document that is already checked to gqlgen's executor, in
// the place where that looks for one it has parsed before.
type handed struct{}

type handedKey struct{}

func withDocument(ctx context.Context, doc *ast.QueryDocument) context.Context {
	return context.WithValue(ctx, handedKey{}, doc)
}

// Get is called by the executor.
func (handed) Get(ctx context.Context, _ string) (*ast.QueryDocument, bool) {
	doc, ok := ctx.Value(handedKey{}).(*ast.QueryDocument)
	return doc, ok
}

// Add is called by the executor for what it parsed itself, which is nothing.
func (handed) Add(context.Context, string, *ast.QueryDocument) {}
