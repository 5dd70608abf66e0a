package graph

import (
	"context"
	"fmt"
	"strings"
	"unicode/utf8"

	lru "github.com/hashicorp/golang-lru/v2"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"
	"github.com/vektah/gqlparser/v2/lexer"
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
	kept   *lru.Cache[string, *document] // by their normal form
	sent   *lru.Cache[string, *document] // by what was sent, word for word
}

// document is one that passed.
type document struct {
	*ast.QueryDocument
	normal string
}

func newDocuments(schema *ast.Schema, limits Limits) *documents {
	kept, err := lru.New[string, *document](keptDocuments)
	if err != nil {
		panic(err) // the size above is wrong
	}
	sent, err := lru.New[string, *document](keptDocuments)
	if err != nil {
		panic(err)
	}
	return &documents{schema: schema, limits: limits, kept: kept, sent: sent}
}

func (d *documents) get(query string) (*document, gqlerror.List) {
	if doc, ok := d.sent.Get(query); ok {
		return doc, nil
	}
	normal, short := d.normal(query)
	if doc, ok := d.kept.Get(normal); ok && short {
		d.sent.Add(query, doc)
		return doc, nil
	}
	if !utf8.ValidString(query) {
		return nil, refused(problem.New(problem.BadInput, "The document is not valid UTF-8."))
	}
	if d.hasLongName(query) {
		return nil, refused(problem.New(problem.TooComplex, "The document has a name of more than %d characters.", maxName))
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
	passed := &document{doc, normal}
	if short {
		d.kept.Add(normal, passed)
		d.sent.Add(query, passed)
	}
	return passed, nil
}

// normal is a document without what does not matter: spaces, commas and
// comments. Each token stands with its kind and length, so that different
// documents are never taken for one. What is too long to be kept, or cannot be
// read, stands for itself alone.
func (d *documents) normal(query string) (form string, short bool) {
	itself := "as sent\n" + query
	if len(query) > maxKept {
		return itself, false
	}
	var text strings.Builder
	tokens := lexer.New(&ast.Source{Input: query})
	for range d.limits.Tokens + 1 { // and the end
		token, err := tokens.ReadToken()
		switch {
		case err != nil:
			return itself, false
		case token.Kind == lexer.EOF:
			return text.String(), true
		case token.Kind == lexer.Comment:
			continue
		}
		fmt.Fprintf(&text, "%d %d %s\n", token.Kind, len(token.Value), token.Value)
	}
	return itself, false
}

// maxName is longer than any name of the schema. Validation compares unknown
// names with known ones letter by letter, which takes seconds for long ones.
const maxName = 200

func (d *documents) hasLongName(query string) bool {
	tokens := lexer.New(&ast.Source{Input: query})
	for range d.limits.Tokens {
		token, err := tokens.ReadToken()
		if err != nil || token.Kind == lexer.EOF {
			return false // the parser tells
		}
		if token.Kind == lexer.Name && len(token.Value) > maxName {
			return true
		}
	}
	return false
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
