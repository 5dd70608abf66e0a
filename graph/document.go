package graph

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"unicode/utf8"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"
	"github.com/vektah/gqlparser/v2/lexer"
	"github.com/vektah/gqlparser/v2/parser"
	"github.com/vektah/gqlparser/v2/validator"
	"github.com/vektah/gqlparser/v2/validator/rules"

	"palmares/internal/core/cache"
	"palmares/internal/core/problem"
)

// documents parses, measures and validates documents.
type documents struct {
	schema *ast.Schema
	limits Limits
	parsed *cache.Table[*document]
}

// document is a valid document.
type document struct {
	*ast.QueryDocument
	text   string
	id     string // a hash of its tokens; "" for an operation of ours
	tokens int
}

func newDocuments(schema *ast.Schema, limits Limits, c *cache.Cache) *documents {
	return &documents{schema, limits, cache.NewTable[*document](c, "documents")}
}

// get returns the document that a text stands for, or why it is invalid.
func (d *documents) get(query string) (*document, gqlerror.List) {
	id, tokens, refusal := d.scan(query)
	if refusal != nil {
		return nil, refused(refusal)
	}
	if known, ok := d.parsed.Get(cache.Timeless, cache.Question{Operation: id}); ok && id != "" {
		return known, nil
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
	if errs := validator.ValidateWithRules(d.schema, doc, rulesFor(query)); len(errs) > 0 {
		return nil, coded(codeValidationFailed, fewAndShort(errs))
	}
	return &document{doc, query, id, tokens}, nil
}

// tokenWeight is what a token takes in a parsed document, in bytes: about 250
// in a list of numbers, 500 in a selection. It counts double, because the
// garbage collector follows every pointer in it.
const tokenWeight = 1_000

// keep caches a document whose operation was found to be executable. Others
// are parsed again, so that refused requests leave nothing behind.
func (d *documents) keep(doc *document) {
	if doc.id != "" {
		d.parsed.Put(cache.Timeless, cache.Question{Operation: doc.id}, doc, len(doc.text)+doc.tokens*tokenWeight)
	}
}

const (
	// maxName is longer than any name of the schema.
	maxName = 200
	// maxSuggesting is the length up to which a document gets suggestions for
	// misspelt names. Finding them compares each unknown name with all known
	// ones, letter by letter.
	maxSuggesting = 2_000
)

var (
	allRules         = rules.NewDefaultRules()
	rulesNoSuggested = withoutSuggestions()
)

func withoutSuggestions() *rules.Rules {
	r := rules.NewDefaultRules()
	r.ReplaceRule(rules.FieldsOnCorrectTypeRule.Name, rules.FieldsOnCorrectTypeRuleWithoutSuggestions.RuleFunc)
	r.ReplaceRule(rules.KnownArgumentNamesRule.Name, rules.KnownArgumentNamesRuleWithoutSuggestions.RuleFunc)
	r.ReplaceRule(rules.KnownTypeNamesRule.Name, rules.KnownTypeNamesRuleWithoutSuggestions.RuleFunc)
	r.ReplaceRule(rules.ScalarLeafsRule.Name, rules.ScalarLeafsRuleWithoutSuggestions.RuleFunc)
	r.ReplaceRule(rules.ValuesOfCorrectTypeRule.Name, rules.ValuesOfCorrectTypeRuleWithoutSuggestions.RuleFunc)
	return r
}

func rulesFor(query string) *rules.Rules {
	if len(query) > maxSuggesting {
		return rulesNoSuggested
	}
	return allRules
}

// scan reads the tokens of a document, before anything expensive is done with
// it. The id is a hash of the tokens, so that spaces, commas and comments do
// not matter; it is "" for what the parser will not accept.
func (d *documents) scan(query string) (id string, count int, refusal *problem.Problem) {
	if !utf8.ValidString(query) {
		return "", 0, problem.New(problem.BadInput, "The document is not valid UTF-8.")
	}
	canonical := make([]byte, 0, len(query)+len(query)/2)
	var open []int // how many items each open bracket holds; -1 for those that hold no list
	tokens := lexer.New(&ast.Source{Input: query})
	for count <= d.limits.Tokens {
		token, err := tokens.ReadToken()
		switch {
		case err != nil:
			return "", count, nil
		case token.Kind == lexer.EOF:
			sum := sha256.Sum256(canonical)
			return string(sum[:]), count, nil
		case token.Kind == lexer.Comment:
			continue
		case token.Kind == lexer.Name && len(token.Value) > maxName:
			return "", count, problem.New(problem.TooComplex, "The document has a name of more than %d characters.", maxName)
		}
		count++
		canonical = append(canonical, byte(token.Kind))
		canonical = binary.AppendUvarint(canonical, uint64(len(token.Value)))
		canonical = append(canonical, token.Value...)
		if open = countItem(open, token.Kind); len(open) > 0 && open[len(open)-1] > maxListed {
			return "", count, problem.New(problem.BadInput, "The document has a list of more than %d values.", maxListed)
		}
	}
	return "", count, nil
}

// countItem counts a token as an item of the list that it stands in.
func countItem(open []int, kind lexer.Type) []int {
	last := len(open) - 1
	switch kind {
	case lexer.BracketR, lexer.BraceR, lexer.ParenR:
		return open[:max(0, last)]
	case lexer.Dollar: // its name follows
		return open
	}
	if last >= 0 && open[last] >= 0 {
		open[last]++
	}
	switch kind {
	case lexer.BracketL:
		return append(open, 0)
	case lexer.BraceL, lexer.ParenL:
		return append(open, -1)
	}
	return open
}

// parsedDocument passes a validated document to gqlgen's executor, in the
// place where that looks for one that it has parsed before.
type parsedDocument struct{}

type documentKey struct{}

func withDocument(ctx context.Context, doc *document) context.Context {
	return context.WithValue(ctx, documentKey{}, doc)
}

func documentFrom(ctx context.Context) *document {
	doc, _ := ctx.Value(documentKey{}).(*document)
	return doc
}

// Get is called by the executor.
func (parsedDocument) Get(ctx context.Context, _ string) (*ast.QueryDocument, bool) {
	doc := documentFrom(ctx)
	if doc == nil {
		return nil, false
	}
	return doc.QueryDocument, true
}

// Add is called by the executor for what it parsed itself, which is nothing.
func (parsedDocument) Add(context.Context, string, *ast.QueryDocument) {}
