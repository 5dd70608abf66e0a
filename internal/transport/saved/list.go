package saved

import (
	"bytes"
	"context"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/formatter"
	"github.com/vektah/gqlparser/v2/parser"

	"palmares/graph"
	"palmares/graph/document"
	"palmares/internal/core/cache"
	"palmares/internal/core/problem"
	"palmares/internal/core/quota"
	"palmares/rest"
)

// list is a list of which a query selects a part: by number, as a page, or after a
// cursor, as a connection.
type list struct {
	numbered bool             // its parts are pages with numbers
	counted  bool             // its length is known, unlike that of changes
	position string           // the variable that selects the part; "" if there is none
	whole    *graph.Operation // reads any part; nil if the query selects one itself
}

// The variables of the operation that reads any part of a list.
const positionVariable, sizeVariable = "palmaresPosition", "palmaresSize"

// findList determines the list that the body is a part of.
func (q *query) findList(e *graph.Executor, text string) error {
	if len(q.body) < 2 {
		return nil
	}
	field := q.body[0]
	position, size := "after", "first"
	numbered := field.Definition.Arguments.ForName("page") != nil
	if numbered {
		position, size = "page", "limit"
	} else if field.Definition.Arguments.ForName(position) == nil {
		return nil
	}
	q.list = &list{numbered: numbered, counted: field.Definition.Type.Name() != "ChangeConnection"}
	if given := field.Arguments.ForName(position); given != nil && given.Value.Kind == ast.Variable {
		q.list.position = given.Value.Raw
	}
	if isPart(field, position, size) {
		return nil
	}
	// The same document, with variables in place of the part.
	doc, err := parser.ParseQuery(&ast.Source{Input: text})
	if err != nil {
		return err
	}
	op := doc.Operations[0]
	root, isField := op.SelectionSet[0].(*ast.Field)
	if !isField || len(op.SelectionSet) > 1 { // in a fragment
		return nil
	}
	root.Arguments = slices.DeleteFunc(root.Arguments, func(a *ast.Argument) bool { return a.Name == position || a.Name == size })
	for _, v := range []struct {
		argument, name string
		kind           *ast.Type
	}{{position, positionVariable, ast.NamedType("String", nil)}, {size, sizeVariable, ast.NonNullNamedType("Int", nil)}} {
		if numbered {
			v.kind = ast.NonNullNamedType("Int", nil)
		}
		root.Arguments = append(root.Arguments, &ast.Argument{Name: v.argument, Value: &ast.Value{Kind: ast.Variable, Raw: v.name}})
		op.VariableDefinitions = append(op.VariableDefinitions, &ast.VariableDefinition{Variable: v.name, Type: v.kind})
	}
	var out bytes.Buffer
	formatter.NewFormatter(&out).FormatQueryDocument(doc)
	if whole, err := e.NewQuery(out.String()); err == nil { // unless the query has a variable of the same name
		q.list.whole = whole
	}
	return nil
}

// isPart reports whether a query selects a part of a list itself: which one, or its size,
// unless that is the largest.
func isPart(field *ast.Field, position, size string) bool {
	for _, a := range field.Arguments {
		switch {
		case slices.Contains([]string{position, "last", "before"}, a.Name) && a.Value.Kind != ast.NullValue,
			a.Name == size && a.Value.Raw != strconv.Itoa(document.MaxPageSize):
			return true
		}
	}
	return false
}

// addPosition adds the length of the list and a link to the next part.
func (s *Queries) addPosition(header http.Header, req *request, result *graph.Result) {
	list := req.from.query.list
	if list == nil {
		return
	}
	if list.counted {
		header["X-Total-Count"] = []string{strconv.Itoa(result.Total)}
	}
	if list.position == "" || req.whole {
		return
	}
	next, more := any(result.Next), result.Next != ""
	if list.numbered {
		field := req.from.query.body[0]
		number, size := argument(field, "page", req.variables), argument(field, "limit", req.variables)
		next, more = number+1, number*size < int64(result.Total)
	}
	if more {
		header["Link"] = append(header["Link"], "<"+s.urlWith(req, list.position, next)+`>; rel="next"`)
	}
}

// argument returns the value of a field's argument.
func argument(field *ast.Field, name string, variables map[string]any) int64 {
	value, _ := field.ArgumentMap(variables)[name].(int64)
	return value
}

// serveWhole streams a whole list from one release.
func (s *Queries) serveWhole(w http.ResponseWriter, r *http.Request, req *request) error {
	key := req.cacheKey
	key.Variables += "\nwhole"
	response, err := s.Cache.Get(r.Context(), key, func(ctx context.Context) (*cache.Entry, int, error) { return s.describeWhole(ctx, req) })
	if err != nil {
		return err
	}
	return s.Downloads.Send(w, r, response, func(out io.Writer) error {
		return s.writeWhole(w, r, req, response.Value.(int), response.Body(), out)
	})
}

// describeWhole returns the headers of a whole list, and its release. The body of the entry
// is not sent: it makes the ETag depend on the release and the version of the program.
func (s *Queries) describeWhole(ctx context.Context, req *request) (*cache.Entry, int, error) {
	result := s.readPart(ctx, req, req.asOf, nil, nil, 1)
	if p := result.Problem(); p != nil {
		return nil, result.Newest, p
	}
	entry := cache.NewEntry(rest.SourceOf(result, s.Service.Version), s.header(req, result))
	entry.Value = result.Release
	return entry, result.Newest, nil
}

// readPart reads a part of the list of a query, by default the first.
func (s *Queries) readPart(ctx context.Context, req *request, asOf graph.AsOf, scan *graph.Scan, position any, size int) *graph.Result {
	q := req.from.query
	if position == nil && q.list.numbered {
		position = int64(1)
	}
	variables := maps.Clone(req.variables)
	variables[positionVariable], variables[sizeVariable] = position, int64(size)
	if q.operation.Definition().Directives.ForName("asOf") != nil {
		asOf = req.asOf // the query says which release
	}
	return s.Executor.Execute(ctx, graph.Request{Operation: q.list.whole, Variables: variables, AsOf: asOf, Scan: scan})
}

// pageSizes are the numbers of items that are read at a time: the first for which the cost
// of the query is within the limit.
var pageSizes = []int{document.MaxPageSize, 50, 10}

// writeWhole writes all parts of a list. Each counts as a request; the first was counted
// before. The parts of a list of unknown length are counted one by one, so that the response
// may be cut off.
func (s *Queries) writeWhole(w http.ResponseWriter, r *http.Request, req *request, release int, source []byte, to io.Writer) error {
	q := req.from.query
	dialect, _ := req.others[dialectName].(string)
	last := "" // cursor
	write, err := q.newWriter(to, req.format, dialect, req.variables, s.Executor.Limits().Response)
	if err != nil {
		return err
	}
	read := func(scan *graph.Scan, position any, size int) (*graph.Result, *problem.Problem) {
		result := s.readPart(r.Context(), req, req.asOf, scan, position, size)
		p := result.Problem()
		isOther := func() bool { return p == nil && !bytes.Equal(rest.SourceOf(result, s.Service.Version), source) }
		if isOther() { // published since the start: from here on, the list is from an earlier release
			result = s.readPart(r.Context(), req, graph.AsOf{Release: release}, scan, position, size)
			p = result.Problem()
		}
		if isOther() {
			p = rest.ErrReplaced
		}
		return result, p
	}
	scan, sizes := &graph.Scan{}, pageSizes
	result, p := read(scan, nil, sizes[0])
	for p != nil && p.Code == problem.TooComplex && len(sizes) > 1 {
		sizes = sizes[1:]
		result, p = read(scan, nil, sizes[0])
	}
	if p == nil && q.list.counted { // before the response starts
		if err := quota.CountMore(w, max(0, result.Total-1)/sizes[0]); err != nil {
			return err
		}
	}
	for number := int64(1); ; number++ {
		if p != nil {
			return p
		}
		body, err := q.bodyOf(result.Data)
		if err == nil {
			err = write(body)
		}
		if err != nil {
			return err
		}
		var position any = number + 1
		more := number*int64(sizes[0]) < int64(result.Total)
		if !q.list.numbered {
			position, more = result.Next, result.Next != "" && result.Next != last
			last = result.Next
		}
		if !more {
			return nil
		}
		if !q.list.counted {
			if err := quota.CountMore(w, 1); err != nil {
				return err
			}
		}
		result, p = read(scan, position, sizes[0])
	}
}
