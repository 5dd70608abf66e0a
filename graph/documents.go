package graph

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io/fs"
	"maps"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/formatter"
	"github.com/vektah/gqlparser/v2/gqlerror"
	"github.com/vektah/gqlparser/v2/lexer"
	"github.com/vektah/gqlparser/v2/parser"
	"github.com/vektah/gqlparser/v2/validator"
	"github.com/vektah/gqlparser/v2/validator/rules"

	"palmares/graph/fields"
	"palmares/graph/generated"
	"palmares/internal/core/cache"
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
	Text     string
	document document
	needsKey bool
	limited  bool    // the limits for callers apply
	lookup   *lookup // nil if it is not a lookup
}

// NewOperation validates a document with one operation.
func NewOperation(text string) (*Operation, error) {
	doc, err := parser.ParseQuery(&ast.Source{Input: text})
	if err != nil {
		return nil, err
	}
	if len(doc.Operations) != 1 {
		return nil, fmt.Errorf("got %d operations in the document, want 1", len(doc.Operations))
	}
	if errs := validator.ValidateWithRules(Schema(), doc, allRules); len(errs) > 0 {
		return nil, errs
	}
	_, found := calculateCost(doc.Operations[0], nil, catalogSize{}, AsOf{})
	valid := newDocument(doc, text)
	return &Operation{Text: text, document: *valid, needsKey: found.needsKey, lookup: newLookup(valid)}, nil
}

// NewQuery validates a caller's document, which must consist of one query that
// reads the catalog, within the limits for callers.
func (e *Executor) NewQuery(text string) (*Operation, error) {
	doc, errs := e.documents.get(text)
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
	case !readsCatalog(op):
		return nil, problem.New(problem.BadInput, "The query must read the catalog (got only introspection fields).")
	}
	_, found := calculateCost(op, nil, catalogSize{}, AsOf{})
	return &Operation{Text: text, document: *doc, needsKey: found.needsKey, limited: true}, nil
}

// RequiresKey reports whether only callers with a key may execute the operation.
func (o *Operation) RequiresKey() bool { return o.needsKey }

// Weight returns the memory that the operation takes, in bytes.
func (o *Operation) Weight() int { return len(o.Text) + o.document.tokens*tokenWeight }

// Definition returns the parsed operation.
func (o *Operation) Definition() *ast.OperationDefinition { return o.document.Operations[0] }

// LoadOperations returns the operations in queries/*.graphql by name, each with
// the fragments that it needs from any of these files.
func LoadOperations(files fs.FS) (map[string]*Operation, error) {
	names, err := fs.Glob(files, "queries/*.graphql")
	if err != nil {
		return nil, err
	}
	all := &ast.QueryDocument{}
	for _, name := range names {
		text, err := fs.ReadFile(files, name)
		if err != nil {
			return nil, err
		}
		doc, err := parser.ParseQuery(&ast.Source{Name: name, Input: string(text)})
		if err != nil {
			return nil, err
		}
		all.Operations = append(all.Operations, doc.Operations...)
		all.Fragments = append(all.Fragments, doc.Fragments...)
	}
	operations := map[string]*Operation{}
	for _, definition := range all.Operations {
		doc := &ast.QueryDocument{Operations: ast.OperationList{definition}}
		addFragments(doc, all.Fragments, definition.SelectionSet)
		var text strings.Builder
		formatter.NewFormatter(&text, formatter.WithIndent("  ")).FormatQueryDocument(doc)
		if operations[definition.Name], err = NewOperation(text.String()); err != nil {
			return nil, fmt.Errorf("operation %s: %w", definition.Name, err)
		}
	}
	return operations, nil
}

// addFragments adds the fragments that a selection spreads, directly or through
// other fragments. Validation reports those that do not exist.
func addFragments(doc *ast.QueryDocument, all ast.FragmentDefinitionList, set ast.SelectionSet) {
	for _, selection := range set {
		switch s := selection.(type) {
		case *ast.Field:
			addFragments(doc, all, s.SelectionSet)
		case *ast.InlineFragment:
			addFragments(doc, all, s.SelectionSet)
		case *ast.FragmentSpread:
			if fragment := all.ForName(s.Name); fragment != nil && doc.Fragments.ForName(s.Name) == nil {
				doc.Fragments = append(doc.Fragments, fragment)
				addFragments(doc, all, fragment.SelectionSet)
			}
		}
	}
}

// documents parses and validates the documents of callers.
type documents struct {
	schema *ast.Schema
	limits Limits
	parsed *cache.Table[*document]
}

// document is a valid document.
type document struct {
	*ast.QueryDocument
	text       string
	id         string // a hash of its tokens; "" for the server's own operations
	tokens     int
	extensions map[string]any // of its operations
}

func newDocument(doc *ast.QueryDocument, text string) *document {
	d := &document{QueryDocument: doc, text: text}
	if !strings.Contains(text, "@") { // it has no directives
		d.extensions = fields.Share()
	}
	return d
}

// get returns the document with a text, or why the text is invalid.
func (d *documents) get(query string) (*document, gqlerror.List) {
	id, tokens, p := d.scan(query)
	if p != nil {
		return nil, errorList(p)
	}
	if known, ok := d.parsed.Get(cache.Timeless, cache.Key{Operation: id}); ok && id != "" {
		return known, nil
	}
	doc, err := parser.ParseQueryWithTokenLimit(&ast.Source{Input: query}, d.limits.Tokens)
	if err != nil {
		return nil, withCode(codeParseFailed, gqlerror.List{gqlerror.WrapIfUnwrapped(err)})
	}
	if p := checkSize(doc, d.limits); p != nil {
		return nil, errorList(p)
	}
	if len(doc.Operations) == 0 {
		return nil, errorList(problem.New(problem.BadInput, "The document has no operation."))
	}
	applicable := allRules
	if len(query) > maxSuggestionQuery {
		applicable = rulesWithoutSuggestions
	}
	if errs := validator.ValidateWithRules(d.schema, doc, applicable); len(errs) > 0 {
		return nil, withCode(codeValidationFailed, errs)
	}
	valid := newDocument(doc, query)
	valid.id, valid.tokens = id, tokens
	return valid, nil
}

// tokenWeight is the memory that a token takes in a parsed document, in bytes:
// about 250 in a list of numbers, 500 in a selection. It is doubled because the
// garbage collector follows every pointer in it.
const tokenWeight = 1_000

// cache stores a document once its operation is known to be executable, so that
// rejected requests take no memory.
func (d *documents) cache(doc *document) {
	if doc.id != "" {
		d.parsed.Put(cache.Timeless, cache.Key{Operation: doc.id}, doc, len(doc.text)+doc.tokens*tokenWeight)
	}
}

const (
	// maxName is longer than any name in the schema.
	maxName = 200
	// maxSuggestionQuery is the length up to which a document gets suggestions
	// for misspelled names. Each unknown name is compared with all known ones.
	maxSuggestionQuery = 2_000
)

var (
	allRules                = rules.NewDefaultRules()
	rulesWithoutSuggestions = func() *rules.Rules {
		r := rules.NewDefaultRules()
		r.ReplaceRule(rules.FieldsOnCorrectTypeRule.Name, rules.FieldsOnCorrectTypeRuleWithoutSuggestions.RuleFunc)
		r.ReplaceRule(rules.KnownArgumentNamesRule.Name, rules.KnownArgumentNamesRuleWithoutSuggestions.RuleFunc)
		r.ReplaceRule(rules.KnownTypeNamesRule.Name, rules.KnownTypeNamesRuleWithoutSuggestions.RuleFunc)
		r.ReplaceRule(rules.ScalarLeafsRule.Name, rules.ScalarLeafsRuleWithoutSuggestions.RuleFunc)
		r.ReplaceRule(rules.ValuesOfCorrectTypeRule.Name, rules.ValuesOfCorrectTypeRuleWithoutSuggestions.RuleFunc)
		return r
	}()
)

// scan reads the tokens of a document before anything expensive is done with
// it. The id is a hash of the tokens, so that whitespace, commas and comments do
// not matter; it is "" for a document that the parser will reject.
func (d *documents) scan(query string) (id string, count int, p *problem.Problem) {
	if !utf8.ValidString(query) {
		return "", 0, problem.New(problem.BadInput, "The document is not valid UTF-8.")
	}
	canonical := make([]byte, 0, len(query)+len(query)/2)
	var open []int // the number of items in each open bracket; -1 if it is not a list
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
			return "", count, problem.New(problem.TooComplex,
				"The document has a name of more than %d characters.", maxName)
		}
		count++
		canonical = append(canonical, byte(token.Kind))
		canonical = binary.AppendUvarint(canonical, uint64(len(token.Value)))
		canonical = append(canonical, token.Value...)
		if open = countItem(open, token.Kind); len(open) > 0 && open[len(open)-1] > maxListItems {
			return "", count, problem.New(problem.BadInput,
				"The document must not contain a list of more than %d values.", maxListItems)
		}
	}
	return "", count, nil
}

// countItem counts a token as an item of the list that contains it.
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

type documentKey struct{}

// WithDocument returns a context in which Execute does not parse the document again.
func (p *Prepared) WithDocument(ctx context.Context) context.Context {
	return context.WithValue(ctx, documentKey{}, p.document)
}

func documentFrom(ctx context.Context) *document {
	doc, _ := ctx.Value(documentKey{}).(*document)
	return doc
}
