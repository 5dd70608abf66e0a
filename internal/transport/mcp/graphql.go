package mcp

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/formatter"

	"palmares/graph"
	"palmares/internal/core/params"
	"palmares/internal/core/problem"
	"palmares/internal/core/text"
)

// addGraphQL adds the GraphQL tools, for everything that the other tools do not cover.
func (s *Server) addGraphQL() {
	textSchema := func(description string) map[string]any {
		return map[string]any{"type": "string", "description": description}
	}
	s.addTool("graphql_schema", "Search the GraphQL schema", "Types and queries of the GraphQL schema that match words, as SDL. Call it before graphql_query.",
		map[string]any{"type": "object", "required": []string{"search"}, "properties": map[string]any{"search": textSchema("Words, such as price or Tool.")}},
		map[string]any{"type": "object", "properties": map[string]any{"sdl": map[string]any{"type": "string"}}}, s.searchSchema)
	s.addTool("graphql_query", "Run a GraphQL query", "Read the catalog with GraphQL, for what no other tool returns: aggregates, series, history. Use @asOf(release:) or @asOf(date:) to read an earlier release.",
		map[string]any{"type": "object", "required": []string{"query"}, "properties": map[string]any{
			"query": textSchema("One query operation."), "variables": map[string]any{"type": "object"},
		}}, nil, s.query)
}

func (s *Server) query(ctx context.Context, arguments json.RawMessage) (*result, error) {
	given, err := object(arguments)
	if err != nil {
		return nil, err
	}
	request := graph.Request{}
	if json.Unmarshal(given["query"], &request.Query) != nil || strings.TrimSpace(request.Query) == "" {
		return nil, problem.New(problem.BadInput, "query is required: a GraphQL document with one query.")
	}
	if raw := given["variables"]; raw != nil {
		decoder := json.NewDecoder(bytes.NewReader(raw))
		decoder.UseNumber() // keeps integers exact
		if decoder.Decode(&request.Variables) != nil {
			return nil, problem.New(problem.BadInput, "variables must be a JSON object (got %q).", params.Truncate(string(raw)))
		}
	}
	executed := s.cfg.Executor.Execute(ctx, request)
	if p := executed.Problem(); p != nil {
		if where := executed.Errors[0].Locations; len(where) > 0 {
			return nil, problem.New(p.Code, "%s (line %d, column %d)%s Call graphql_schema to look up types.", p.Message, where[0].Line, where[0].Column, validNames(p.Message))
		}
		return nil, p
	}
	r := s.newResult(executed.Data, "", []string{s.cfg.PublicURL + "/explorer"}, source(executed))
	var hints []string
	for _, v := range executed.Unknown {
		nearest := slices.DeleteFunc([]string{v.Nearest()}, func(name string) bool { return name == "" })
		hints = append(hints, fmt.Sprintf("%s: nothing matches %q.%s", v.Argument, params.Truncate(v.Value), didYouMean(nearest)))
	}
	r.add(strings.Join(hints, " "))
	return r, nil
}

var (
	unknownArgument = regexp.MustCompile(`^Unknown argument "\w+" on field "(\w+)\.(\w+)"`)
	unknownField    = regexp.MustCompile(`^Cannot query field "\w+" on type "(\w+)"`)
)

// validNames returns the names of a field's arguments or a type's fields, after a space,
// if a message says that another one is unknown.
func validNames(message string) string {
	var names []string
	if found := unknownArgument.FindStringSubmatch(message); found != nil {
		for _, a := range graph.Schema().Types[found[1]].Fields.ForName(found[2]).Arguments {
			names = append(names, a.Name)
		}
		return listed("Its arguments", names)
	}
	if found := unknownField.FindStringSubmatch(message); found != nil {
		for _, f := range graph.Schema().Types[found[1]].Fields {
			if !strings.HasPrefix(f.Name, "__") {
				names = append(names, f.Name)
			}
		}
	}
	return listed("Its fields", names)
}

// definition is a type, or one field of Query.
type definition struct{ name, sdl, folded string }

var (
	// description matches a description that fits on one line.
	description = regexp.MustCompile(`"""\n\s*([^\n"]*)\n\s*"""`)
	// price matches what a field costs, which agents do not need to write queries.
	price = regexp.MustCompile(` @(cost|listSize)\([^)]*\)`)
)

// definitions returns all types of a schema, by name. Query has too many fields
// to show at once, so each of them is a separate definition.
func definitions(schema *ast.Schema) (all []definition) {
	add := func(name string, d *ast.Definition) {
		var sdl strings.Builder
		formatter.NewFormatter(&sdl, formatter.WithIndent("  ")).FormatSchemaDocument(&ast.SchemaDocument{Definitions: ast.DefinitionList{d}})
		short := price.ReplaceAllString(description.ReplaceAllString(sdl.String(), `"$1"`), "")
		all = append(all, definition{name, short, text.Fold(short)})
	}
	for _, name := range slices.Sorted(maps.Keys(schema.Types)) {
		switch d := schema.Types[name]; {
		case d.BuiltIn:
		case d == schema.Query:
			for _, field := range d.Fields {
				if !strings.HasPrefix(field.Name, "__") {
					add("Query."+field.Name, &ast.Definition{Kind: ast.Object, Name: "Query", Fields: ast.FieldList{field}})
				}
			}
		default:
			add(name, d)
		}
	}
	return all
}

// maxDefinitions is the maximum number of types that a search of the schema returns.
const maxDefinitions = 5

// shortDefinition is the size in bytes of a definition that is not long.
const shortDefinition = 500

// searchSchema returns the definitions that fit the words of a search best. Rare words
// and those in names count more.
func (s *Server) searchSchema(_ context.Context, arguments json.RawMessage) (*result, error) {
	given, err := object(arguments)
	if err != nil {
		return nil, err
	}
	var search string
	if json.Unmarshal(given["search"], &search) != nil || strings.TrimSpace(search) == "" {
		return nil, problem.New(problem.BadInput, "search is required: words such as price, or the name of a type.")
	}
	words := strings.Fields(text.Fold(search))
	relevance := map[string]float64{} // by definition
	for _, word := range words {
		stem := strings.TrimSuffix(word, "s") // plurals
		containing := 0
		for _, d := range s.sdl {
			if strings.Contains(d.folded, stem) {
				containing++
			}
		}
		rarity := math.Log(float64(len(s.sdl)+1) / float64(max(containing, 1)))
		for _, d := range s.sdl {
			switch name := text.Fold(d.name); {
			case len(words) == 1 && (name == word || name == "query."+word):
				relevance[d.name] += 100
			case strings.Contains(name, stem):
				relevance[d.name] += 2 * rarity
			case strings.Contains(d.folded, stem): // long ones contain many words by chance
				relevance[d.name] += rarity * shortDefinition / float64(shortDefinition+len(d.sdl))
			}
		}
	}
	if len(relevance) == 0 {
		return nil, s.unknownType(search)
	}
	best := slices.Max(slices.Collect(maps.Values(relevance)))
	found := slices.DeleteFunc(slices.Clone(s.sdl), func(d definition) bool { return relevance[d.name] < best/3 })
	slices.SortStableFunc(found, func(a, b definition) int { return cmp.Compare(relevance[b.name], relevance[a.name]) })
	var sdl strings.Builder
	for _, d := range found[:min(maxDefinitions, len(found))] {
		sdl.WriteString(d.sdl + "\n")
	}
	if len(found) > maxDefinitions {
		var more []string
		for _, d := range found[maxDefinitions:] {
			more = append(more, d.name)
		}
		fmt.Fprintf(&sdl, "# Also: %s\n", strings.Join(more, ", "))
	}
	structured, err := json.Marshal(map[string]string{"sdl": sdl.String()})
	if err != nil {
		return nil, err
	}
	return &result{structured, sdl.String() + "\n" + s.cfg.Credit + "\n" + s.cfg.PublicURL + "/explorer/schema.graphql"}, nil
}

func (s *Server) unknownType(search string) error {
	names := make([]string, len(s.sdl))
	for i, d := range s.sdl {
		names[i] = d.name
	}
	suggestion := cmp.Or(didYouMean(text.Similar(search, names, maxSuggestions)), " Try one word, such as price, score or release.")
	return problem.New(problem.NotFound, "search: no type or query matches %q.%s", params.Truncate(search), suggestion)
}
