package graph

import (
	"fmt"
	"io/fs"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/formatter"
	"github.com/vektah/gqlparser/v2/parser"
)

// LoadOperations reads every operation in the folder queries, by name, each
// with the fragments that it needs from any file.
func LoadOperations(files fs.FS) (map[string]*Operation, error) {
	all, err := readQueries(files)
	if err != nil {
		return nil, err
	}
	operations := map[string]*Operation{}
	for _, definition := range all.Operations {
		document := &ast.QueryDocument{Operations: ast.OperationList{definition}}
		addFragments(document, all.Fragments, definition.SelectionSet)
		var text strings.Builder
		formatter.NewFormatter(&text, formatter.WithIndent("  ")).FormatQueryDocument(document)
		operation, err := NewOperation(text.String())
		if err != nil {
			return nil, fmt.Errorf("operation %s: %w", definition.Name, err)
		}
		operations[definition.Name] = operation
	}
	return operations, nil
}

func readQueries(files fs.FS) (*ast.QueryDocument, error) {
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
		document, err := parser.ParseQuery(&ast.Source{Name: name, Input: string(text)})
		if err != nil {
			return nil, err
		}
		all.Operations = append(all.Operations, document.Operations...)
		all.Fragments = append(all.Fragments, document.Fragments...)
	}
	return all, nil
}

// addFragments adds what a selection spreads, and what that spreads, each once.
func addFragments(document *ast.QueryDocument, from ast.FragmentDefinitionList, set ast.SelectionSet) {
	for _, selection := range set {
		switch s := selection.(type) {
		case *ast.Field:
			addFragments(document, from, s.SelectionSet)
		case *ast.InlineFragment:
			addFragments(document, from, s.SelectionSet)
		case *ast.FragmentSpread:
			fragment := from.ForName(s.Name)
			if fragment == nil || document.Fragments.ForName(s.Name) != nil {
				continue // validation tells of unknown ones
			}
			document.Fragments = append(document.Fragments, fragment)
			addFragments(document, from, fragment.SelectionSet)
		}
	}
}
