// Package document reads the documents of GraphQL requests: it parses and validates
// them within limits, converts variables, and calculates costs, all before anything is
// executed. It knows the schema, but not the catalog. Start reading at Parser.Parse
// and Calculate.
package document

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/formatter"
	"github.com/vektah/gqlparser/v2/gqlerror"
	"github.com/vektah/gqlparser/v2/lexer"
	"github.com/vektah/gqlparser/v2/parser"
	"github.com/vektah/gqlparser/v2/validator"
	"github.com/vektah/gqlparser/v2/validator/core"
	"github.com/vektah/gqlparser/v2/validator/rules"

	"palmares/graph/fields"
	"palmares/internal/core/cache"
	"palmares/internal/core/problem"
	"palmares/internal/core/text"
)

// Document is a valid document.
type Document struct {
	*ast.QueryDocument
	Text       string
	ID         string         // a hash of its tokens; "" for the server's own operations
	Extensions map[string]any // of its operations
	hash       string         // of its text, in hexadecimal
	tokens     int
}

func newDocument(doc *ast.QueryDocument, query string) *Document {
	d := &Document{QueryDocument: doc, Text: query}
	if !strings.Contains(query, "@") { // it has no directives
		d.Extensions = fields.Share()
	}
	return d
}

// Select returns the operation with a name, which may be empty if it is the only one.
func (d *Document) Select(name string) (*ast.OperationDefinition, *problem.Problem) {
	if name == "" && len(d.Operations) > 1 {
		return nil, problem.New(problem.BadInput, "The document has several operations. Select one with operationName.")
	}
	if op := d.Operations.ForName(name); op != nil {
		return op, nil
	}
	return nil, problem.New(problem.BadInput, "The document has no operation with the name in operationName.")
}

// SchemaOnly reports whether an operation only describes the schema.
func SchemaOnly(op *ast.OperationDefinition) bool {
	return !slices.ContainsFunc(op.SelectionSet, func(selection ast.Selection) bool {
		field, ok := selection.(*ast.Field)
		return !ok || field.Name != "__schema" && field.Name != "__type" && field.Name != "__typename"
	})
}

// tokenWeight is the memory that a token takes in a parsed document, in bytes:
// about 250 in a list of numbers, 500 in a selection. It is doubled because the
// garbage collector follows every pointer in it.
const tokenWeight = 1_000

// Weight returns the memory that the document takes, in bytes.
func (d *Document) Weight() int { return len(d.Text) + d.tokens*tokenWeight }

// Own validates a document of the server's own, which must have one operation. The
// limits for callers do not apply.
func Own(schema *ast.Schema, query string) (*Document, error) {
	doc, err := parser.ParseQuery(&ast.Source{Input: query})
	if err != nil {
		return nil, err
	}
	if len(doc.Operations) != 1 {
		return nil, fmt.Errorf("got %d operations in the document, want 1", len(doc.Operations))
	}
	if errs := validator.ValidateWithRules(schema, doc, allRules); len(errs) > 0 {
		return nil, errs
	}
	return newDocument(doc, query), nil
}

// Load returns the documents of the operations in queries/*.graphql by name, each
// with the fragments that it needs from any of these files.
func Load(files fs.FS) (map[string]string, error) {
	names, err := fs.Glob(files, "queries/*.graphql")
	if err != nil {
		return nil, err
	}
	all := &ast.QueryDocument{}
	for _, name := range names {
		file, err := fs.ReadFile(files, name)
		if err != nil {
			return nil, err
		}
		doc, err := parser.ParseQuery(&ast.Source{Name: name, Input: string(file)})
		if err != nil {
			return nil, err
		}
		all.Operations = append(all.Operations, doc.Operations...)
		all.Fragments = append(all.Fragments, doc.Fragments...)
	}
	texts := map[string]string{}
	for _, definition := range all.Operations {
		doc := &ast.QueryDocument{Operations: ast.OperationList{definition}}
		addFragments(doc, all.Fragments, definition.SelectionSet)
		var written strings.Builder
		formatter.NewFormatter(&written, formatter.WithIndent("  ")).FormatQueryDocument(doc)
		texts[definition.Name] = written.String()
	}
	return texts, nil
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

// Parser parses and validates the documents of callers.
type Parser struct {
	schema *ast.Schema
	limits Limits
	parsed *cache.Table[*Document]
}

// NewParser returns a parser that stores parsed documents in a cache.
func NewParser(schema *ast.Schema, limits Limits, c *cache.Cache) *Parser {
	return &Parser{schema, limits, cache.NewTable[*Document](c, "documents")}
}

// Parse returns the document with a text, or why the text is invalid.
func (p *Parser) Parse(query string) (*Document, gqlerror.List) {
	sum := sha256.Sum256([]byte(query))
	hash := hex.EncodeToString(sum[:])
	if known := p.Find(hash); known != nil {
		return known, nil
	}
	id, tokens, rejection := p.scan(query)
	if rejection != nil {
		return nil, Errors(rejection)
	}
	doc, err := parser.ParseQueryWithTokenLimit(&ast.Source{Input: query}, p.limits.Tokens)
	if err != nil {
		return nil, withCode(codeParseFailed, gqlerror.List{gqlerror.WrapIfUnwrapped(err)})
	}
	if rejection := checkSize(doc, p.limits); rejection != nil {
		return nil, Errors(rejection)
	}
	if len(doc.Operations) == 0 {
		return nil, Errors(problem.New(problem.BadInput, "The document has no operation."))
	}
	applicable := allRules
	if len(query) > maxSuggestionQuery {
		applicable = rulesWithoutSuggestions
	}
	if errs := validator.ValidateWithRules(p.schema, doc, applicable); len(errs) > 0 {
		return nil, withCode(codeValidationFailed, errs)
	}
	valid := newDocument(doc, query)
	valid.ID, valid.hash, valid.tokens = id, hash, tokens
	return valid, nil
}

// Find returns the cached document whose text has a SHA-256 hash, in hexadecimal; nil
// if there is none. Persisted queries are found by it too.
func (p *Parser) Find(hash string) *Document {
	known, _ := p.parsed.Get(cache.Timeless, cache.Key{Operation: hash})
	return known
}

// Cache stores a document once its operation is known to be executable, so that
// rejected requests take no memory.
func (p *Parser) Cache(doc *Document) {
	p.parsed.Put(cache.Timeless, cache.Key{Operation: doc.hash}, doc, doc.Weight())
}

const (
	// maxName is longer than any name in the schema.
	maxName = 200
	// maxSuggestionQuery is the length up to which a document gets suggestions
	// for misspelled names. Each unknown name is compared with all known ones.
	maxSuggestionQuery = 2_000
)

var (
	allRules = func() *rules.Rules {
		r := rules.NewDefaultRules()
		r.ReplaceRule(rules.FieldsOnCorrectTypeRule.Name, fieldsOnCorrectType)
		r.ReplaceRule(rules.ValuesOfCorrectTypeRule.Name, valuesOfCorrectType)
		return r
	}()
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

// fieldsOnCorrectType is the rule of the library, but for a field that the items of a list
// have, or that has another API's name for them, it suggests where they are.
func fieldsOnCorrectType(observers *core.Events, addError core.AddErrFunc) {
	var checked *ast.Field
	var schema *ast.Schema
	observers.OnField(func(w *core.Walker, field *ast.Field) { checked, schema = field, w.Schema })
	rules.FieldsOnCorrectTypeRule.RuleFunc(observers, func(options ...core.ErrorOption) {
		var err gqlerror.Error
		for _, option := range options {
			option(&err)
		}
		if path := pathToItems(schema, checked, strings.Contains(err.Message, "Did you mean")); path != "" {
			options = []core.ErrorOption{core.At(checked.Position),
				core.Message("Cannot query field %q on type %q. Did you mean %q?", checked.Name, checked.ObjectDefinition.Name, path)}
		}
		addError(options...)
	})
}

// pathToItems returns where the items of a list have an unknown field, or the items if
// the field has a common name for them; "" otherwise. A field with a similar name is only
// suggested if the list itself has none.
func pathToItems(schema *ast.Schema, unknown *ast.Field, hasSimilar bool) string {
	for _, name := range []string{"items", "nodes"} {
		items := unknown.ObjectDefinition.Fields.ForName(name)
		if items == nil || len(items.Arguments) > 0 || items.Type.Elem == nil {
			continue
		}
		// By its letters, data would be closest to meta.
		if slices.Contains([]string{"data", "results", "items", "nodes", "edges", "list", "rows", "records", "entries"}, unknown.Name) {
			return name
		}
		var known []string
		for _, field := range schema.Types[items.Type.Name()].Fields {
			known = append(known, field.Name)
		}
		field := unknown.Name
		if !slices.Contains(known, field) && !hasSimilar {
			field = text.Nearest(field, known)
		}
		if slices.Contains(known, field) {
			return name + " { " + field + " }"
		}
	}
	return ""
}

// valuesOfCorrectType is the rule of the library, but it lists the values of an enum.
func valuesOfCorrectType(observers *core.Events, addError core.AddErrFunc) {
	var checked *ast.Value
	observers.OnValue(func(_ *core.Walker, value *ast.Value) { checked = value })
	rules.ValuesOfCorrectTypeRule.RuleFunc(observers, func(options ...core.ErrorOption) {
		if d := checked.Definition; d.Kind == ast.Enum && slices.Contains([]ast.ValueKind{ast.EnumValue, ast.StringValue}, checked.Kind) {
			message := `Value %s does not exist in %q enum. ` + allowedValues(d)
			if d.EnumValues.ForName(checked.Raw) != nil {
				message = "Write the value %s of the enum %q without quotation marks."
			}
			options = []core.ErrorOption{core.At(checked.Position), core.Message(message, strconv.Quote(checked.Raw), d.Name)}
		}
		addError(options...)
	})
}

// allowedValues lists the values of an enum.
func allowedValues(enum *ast.Definition) string {
	names := make([]string, len(enum.EnumValues))
	for i, value := range enum.EnumValues {
		names[i] = value.Name
	}
	return "Allowed: " + strings.Join(names, ", ") + "."
}

// scan reads the tokens of a document before anything expensive is done with
// it. The id is a hash of the tokens, so that whitespace, commas and comments do
// not matter; it is "" for a document that the parser will reject.
func (p *Parser) scan(query string) (id string, count int, rejection *problem.Problem) {
	if !utf8.ValidString(query) {
		return "", 0, problem.New(problem.BadInput, "The document is not valid UTF-8.")
	}
	canonical := make([]byte, 0, len(query)+len(query)/2)
	var open []int // the number of items in each open bracket; -1 if it is not a list
	tokens := lexer.New(&ast.Source{Input: query})
	for count <= p.limits.Tokens {
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
