package saved

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/vektah/gqlparser/v2/ast"

	"palmares/auth"
	"palmares/graph"
	"palmares/internal/core/params"
	"palmares/internal/core/problem"
	"palmares/internal/core/store"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
	"palmares/internal/transport/graphql"
)

// generator writes random queries.
type generator struct {
	*rand.Rand
	aliases int
}

// node is a field of a query: a value, or an object or list with fields.
type node struct {
	alias, field, typeName string
	isObject, isList       bool
	fields                 []*node
}

// selection returns random fields of a type.
func (g *generator) selection(typeName string, depth int) (string, []*node) {
	definition := graph.Schema().Types[typeName]
	var texts []string
	var nodes []*node
	for _, f := range definition.Fields {
		t := graph.Schema().Types[f.Type.Name()]
		n := &node{alias: f.Name, field: f.Name, typeName: t.Name, isObject: t.Kind == ast.Object || t.Kind == ast.Interface}
		n.isList = n.isObject && f.Type.Elem != nil
		isList := f.Type.Elem != nil || t.Name == "JSON"
		switch {
		case strings.HasPrefix(f.Name, "__") || strings.HasPrefix(t.Name, "Embeddings") || strings.HasSuffix(t.Name, "Connection") || t.Kind == ast.Union,
			g.IntN(3) > 0 || n.isObject && depth == 0 || isList && g.IntN(4) > 0:
			continue
		}
		text := f.Name
		if g.IntN(5) == 0 {
			g.aliases++
			n.alias = fmt.Sprintf("x%d", g.aliases)
			text = n.alias + ": " + f.Name
		}
		if isList && f.Arguments.ForName("limit") != nil {
			text += "(limit: 2)"
		}
		if n.isObject {
			var inner string
			inner, n.fields = g.selection(t.Name, depth-1)
			text += " " + inner
		}
		texts, nodes = append(texts, text), append(nodes, n)
	}
	if g.IntN(3) == 0 || len(texts) == 0 {
		n := &node{alias: "name", field: "__typename", typeName: "String"}
		if definition.Fields.ForName("name") != nil {
			n.alias = "kind"
		}
		texts, nodes = append(texts, n.alias+": __typename"), append(nodes, n)
	}
	if g.IntN(4) == 0 && definition.Kind == ast.Object {
		return "{... on " + typeName + " {" + strings.Join(texts, " ") + "}}", nodes
	}
	return "{" + strings.Join(texts, " ") + "}", nodes
}

// wrapper is a field between a root field and the items of its page or connection.
type wrapper struct {
	alias, field string
	isList       bool
}

// root returns a random root field, and the response names down to the body.
func (g *generator) root(alias string) (text string, root *node, path []string) {
	field := func(name, arguments string, isList bool, typeName string, depth int, wrappers ...wrapper) (string, *node, []string) {
		inner, fields := g.selection(typeName, depth)
		path := []string{alias}
		for _, w := range wrappers {
			path = append(path, w.alias)
		}
		for _, w := range slices.Backward(wrappers) {
			inner = "{" + w.alias + ": " + w.field + " " + inner + "}"
			fields = []*node{{alias: w.alias, field: w.field, typeName: typeName, isObject: true, isList: w.isList, fields: fields}}
		}
		return alias + ": " + name + "(" + arguments + ") " + inner, &node{alias: alias, field: name, typeName: typeName, isObject: true, isList: isList, fields: fields}, path
	}
	switch g.IntN(7) {
	case 0:
		return field("tools", "limit: $n, sort: name_asc", false, "Tool", 2, wrapper{"list", "items", true})
	case 1:
		return field("comparisons", "limit: $n", false, "Comparison", 2, wrapper{"items", "items", true})
	case 2:
		return field("toolConnection", "first: $n", false, "Tool", 1, wrapper{"nodes", "nodes", true})
	case 3:
		return field("retiredTools", "limit: $n", false, "RetiredTool", 1, wrapper{"items", "items", true})
	case 4:
		return field("toolConnection", "last: $n", false, "Tool", 1, wrapper{"edges", "edges", true}, wrapper{"node", "node", false})
	case 5:
		return field("toolGroups", "by: category", true, "ToolGroup", 0)
	default:
		return field("tool", `slug: "plume"`, false, "Tool", 2)
	}
}

// expected is the table that a result should have.
type expected struct {
	columns     []string
	independent bool // it cannot have one
	nested      bool // there are lists within the items
}

// placed is a field and its path from the object of a row.
type placed struct {
	*node
	path []string
}

// split returns the values and the lists among fields, including those of objects.
func split(fields []*node, path ...string) (values, lists []placed) {
	for _, n := range fields {
		p := placed{n, append(slices.Clone(path), n.alias)}
		switch {
		case n.isList:
			lists = append(lists, p)
		case n.isObject:
			v, l := split(n.fields, p.path...)
			values, lists = append(values, v...), append(lists, l...)
		default:
			values = append(values, p)
		}
	}
	return values, lists
}

func (n *node) shape() string {
	var all []string
	for _, f := range n.fields {
		all = append(all, fmt.Sprintf("%s %s %t %s", f.alias, f.field, f.isList, f.shape()))
	}
	slices.Sort(all)
	return fmt.Sprint(n.typeName, all)
}

// name adds the columns of fields.
func (e *expected) name(fields []*node, prefix string) {
	values, lists := split(fields)
	for _, v := range values {
		name := strings.Join(v.path, ".")
		for prefix != "" && slices.Contains(e.columns, name) {
			name = prefix + "." + name
		}
		e.columns = append(e.columns, name)
	}
	for _, l := range lists {
		e.independent = e.independent || l.shape() != lists[0].shape()
	}
	if len(lists) == 0 || e.independent {
		return
	}
	if e.nested, prefix = true, strings.Join(lists[0].path, "."); len(lists) > 1 {
		prefix = "list"
		e.columns = append(e.columns, prefix)
	}
	e.name(lists[0].fields, prefix)
}

// elementRows returns the rows of an element of a list, which has at least one. Rows
// may be shorter than the columns.
func elementRows(element any, fields []*node) [][]any {
	if rows := rowsOf(element, fields); len(rows) > 0 {
		return rows
	}
	return [][]any{ownValues(element, fields)}
}

func ownValues(item any, fields []*node) (own []any) {
	values, _ := split(fields)
	for _, v := range values {
		own = append(own, at(item, v.path))
	}
	return own
}

func rowsOf(item any, fields []*node) (rows [][]any) {
	_, lists := split(fields)
	if len(lists) == 0 {
		return [][]any{ownValues(item, fields)}
	}
	for _, l := range lists {
		elements, _ := at(item, l.path).([]any)
		for _, element := range elements {
			for _, row := range elementRows(element, l.fields) {
				whole := ownValues(item, fields)
				if len(lists) > 1 {
					whole = append(whole, strings.Join(l.path, "."))
				}
				rows = append(rows, append(whole, row...))
			}
		}
	}
	return rows
}

// at returns the value at a path within objects, or nil.
func at(value any, path []string) any {
	for _, name := range path {
		object, _ := value.(map[string]any)
		value = object[name]
	}
	return value
}

// follow returns the value at a path; lists are followed in each item.
func follow(value any, path []string) any {
	if len(path) == 0 {
		return value
	}
	if list, ok := value.([]any); ok {
		found := []any{}
		for _, item := range list {
			found = append(found, follow(item, path))
		}
		return found
	}
	return follow(value.(map[string]any)[path[0]], path[1:])
}

func decode(t testing.TB, text string) (value any) {
	t.Helper()
	in := json.NewDecoder(strings.NewReader(text))
	in.UseNumber()
	check.OK(t, in.Decode(&value), "%.200s", text)
	return value
}

// isCell reports whether a cell of CSV has a value.
func isCell(t testing.TB, cell string, want any) bool {
	t.Helper()
	switch value := want.(type) {
	case nil:
		return cell == ""
	case []any, map[string]any:
		return reflect.DeepEqual(decode(t, cell), want)
	case string:
		if value != "" && strings.ContainsRune("=+-@\t\r", rune(value[0])) {
			value = "'" + value
		}
		return cell == strings.ReplaceAll(value, "\r\n", "\n") // as encoding/csv reads it
	default:
		return cell == fmt.Sprint(want)
	}
}

// For random queries, the response is a part of what GraphQL returns, and CSV
// and NDJSON have the same content.
func TestRandomQueries(t *testing.T) {
	onDemoCatalog(t, func(t *testing.T, s *store.Store, q *Queries) {
		owner := newAccount(t, s, auth.Pro)
		graphql := graphql.NewHandler(q.Executor, q.Cache, graphql.StreamConfig{})
		call := func(handler http.Handler, r *http.Request) *httptest.ResponseRecorder {
			w := httptest.NewRecorder()
			handler.ServeHTTP(w, r)
			return w
		}
		tables, nested, plain := 0, 0, 0
		for seed := range uint64(maxVersionsPerDay - 1) {
			g := &generator{Rand: rand.New(rand.NewPCG(seed, 22))}
			text, root, path := g.root("r0")
			fields := root.fields
			for range path[1:] {
				fields = fields[0].fields
			}
			if g.IntN(4) == 0 {
				more, other, _ := g.root("r1")
				text, fields, path = text+" "+more, []*node{root, other}, nil
			}
			text = "query ($n: Int = 3) {" + text + "}"
			if !strings.Contains(text, "$n,") && !strings.Contains(text, "$n)") {
				text = strings.Replace(text, "query ($n: Int = 3) ", "", 1)
			}
			text = strings.ReplaceAll(text, "Int = 3", "Int! = 3")
			check.Try(q.Save(t.Context(), owner, NewQuery{Name: "random", Handle: "ana", Text: text, Public: true})).OK(t, text)
			limit := g.IntN(5) + 1
			request, _ := json.Marshal(map[string]any{"query": text, "variables": map[string]any{"n": limit}})
			post := httptest.NewRequest(http.MethodPost, "/graphql", bytes.NewReader(request))
			post.Header.Set("Content-Type", "application/json")
			data := decode(t, call(graphql, post).Body.String()).(map[string]any)["data"]
			want := follow(data, path)

			get := func(format string) *httptest.ResponseRecorder {
				return call(q, httptest.NewRequest(http.MethodGet, fmt.Sprintf("/q/ana/random.%s?n=%d", format, limit), nil))
			}
			if got := get("json"); got.Code != 200 || !reflect.DeepEqual(decode(t, got.Body.String()), want) {
				t.Errorf("%s: got %d %.300s, want %.300v", text, got.Code, got.Body, want)
			}
			items, isList := want.([]any)
			if !isList {
				items = []any{want}
			}
			var wanted expected
			wanted.name(fields, "")
			var rows [][]any
			for _, item := range items {
				if isList {
					rows = append(rows, elementRows(item, fields)...)
				} else {
					rows = append(rows, rowsOf(item, fields)...)
				}
			}
			lines := []any{}
			for line := range strings.Lines(get("ndjson").Body.String()) {
				lines = append(lines, decode(t, line))
			}
			if wanted.nested && !wanted.independent {
				items = []any{}
				for _, row := range rows {
					object := map[string]any{}
					for i, name := range wanted.columns {
						object[name] = nil
						if i < len(row) {
							object[name] = row[i]
						}
					}
					items = append(items, object)
				}
			}
			check.DeepEqual(t, lines, items, "%s: NDJSON", text)

			table := get("csv")
			if wanted.independent {
				plain++
				check.Equal(t, table.Code, 400, "%s: want an error that it cannot be a table", text)
				check.Contains(t, table.Body.String(), "are independent lists", "%s: want an error that it cannot be a table", text)
				continue
			}
			if tables++; wanted.nested {
				nested++
			}
			found, err := csv.NewReader(table.Body).ReadAll()
			check.MustTrue(t, err == nil && len(found) == len(rows)+1 && slices.Equal(found[0], wanted.columns),
				"%s: got %d rows of %v and %v, want %d of %v", text, len(found)-1, found[0], err, len(rows), wanted.columns)
			for i, row := range rows {
				for column, name := range wanted.columns {
					var value any
					if column < len(row) {
						value = row[column]
					}
					if got := found[i+1][column]; !isCell(t, got, value) {
						t.Errorf("%s, row %d, %s: got %q, want %v", text, i, name, got, value)
					}
				}
			}
		}
		check.True(t, tables-nested >= 10 && nested >= 10 && plain >= 10,
			"got %d tables without and %d with lists, and %d others, want at least 10 of each", tables-nested, nested, plain)
	})
}

func TestWithoutCatalogOrDatabase(t *testing.T) {
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		q, _ := newQueries(t, s, BuiltIn{Name: "names", Description: "Names", Text: names})
		for range 3 {
			w := httptest.NewRecorder()
			q.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/q/palmares/names", nil))
			check.Equal(t, w.Code, 200, "%s %v", w.Body, w.Header())
			check.Equal(t, w.Body.String(), "[]", "%s %v", w.Body, w.Header())
			check.Equal(t, w.Header().Get("Cache-Control"), "no-store", "%s %v", w.Body, w.Header())
		}
		check.OK(t, s.Close())
		w := httptest.NewRecorder()
		q.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/q/ana/names", nil))
		check.Equal(t, w.Code, 503, w.Body)
		check.True(t, w.Header().Get("Retry-After") != "", "got %d %s, want 503 without a database", w.Code, w.Body)
		check.Contains(t, w.Body.String(), "Saved queries cannot be read at the moment")
	})
}

// FuzzQuery checks that a text is rejected as an error of its author, or has a table or two
// lists that prevent one, and samples that its own parameters accept.
func FuzzQuery(f *testing.F) {
	for _, text := range []string{
		"{tools {items {slug priceHistory {price}}}}", "query ($n: Int!, $s: [String!]) {tools(limit: $n, filter: {categories: $s}) {items {slug}}}",
		"{a: toolGroups(by: category) {key} b: toolGroups(by: pricing) {key count}}", "query ($format: String) {feed {credit}}", "{toolConnection {edges {node {slug}}}}", "subscription {released {release}}", "{",
	} {
		f.Add(text)
	}
	queries, _ := newQueries(f, testkit.Open(f, testkit.SQLite(f)))
	f.Fuzz(func(t *testing.T, text string) {
		q, err := newQuery(queries.Executor, text)
		if err != nil {
			p := problem.Of(err)
			check.Equal(t, p.Code.Status(), http.StatusBadRequest, text)
			check.True(t, p.Message != "", "%q: got %v, want a 400", text, err)
			return
		}
		check.Equal(t, (q.table == nil), (q.independent[0] != ""), "%q: %v %q", text, q.table, q.independent)
		check.Equal(t, q.table == nil, (q.checkTable() != nil), "%q: %v %q", text, q.table, q.independent)
		check.Equal(t, len(q.describe().Parameters), len(q.parameters)+len(common)-1, "%q: parameters", text)
		samples := q.samples()
		_, _, err = q.read(params.Canonical(q.parameters, samples))
		check.Equal(t, err, nil, "%q: for the samples %v", text, samples)
	})
}

// FuzzQueryParameters checks that the parameters of a saved query have the types of their
// variables, that their canonical form has the same values and is its own canonical form,
// whatever the order and with unknown ones, that repeated ones are refused, and that others
// are a 400.
func FuzzQueryParameters(f *testing.F) {
	queries, _ := newQueries(f, testkit.Open(f, testkit.SQLite(f)))
	q := check.Try(newQuery(queries.Executor, `query ($n: Int = 5, $x: Float, $s: ToolSort, $q: String, $all: Boolean = true, $from: Date, $c: [String!]) {
		tools(limit: $n, sort: $s, filter: {scoreMin: $x, search: $q, categories: $c, updatedSince: $from}) {items {slug name @include(if: $all)}}}`)).OK(f)
	for _, query := range []string{"n=3&x=7.5", "c=a&c=b&c=a", "s=name_asc&all=false&from=2026-11-10", "format=csv&dialect=excel&as_of=8", "n=x", "c=", "q=%00", "token=qt_x", "n=1&n=2", "N=1"} {
		f.Add(query)
	}
	all := append(q.parameters[:len(q.parameters):len(q.parameters)], common...)
	known := map[string]bool{}
	for _, p := range all {
		known[p.Name] = true
	}
	types := map[string]reflect.Kind{
		"n": reflect.Int64, "x": reflect.Float64, "s": reflect.String, "q": reflect.String, "all": reflect.Bool, "from": reflect.String, "c": reflect.Slice,
	}
	// canonical reads a query string and writes what was read, without defaults.
	canonical := func(query string) (string, map[string]any, error) {
		variables, others, err := q.read(query)
		values := map[string]any{}
		for _, p := range all {
			if value := variables[p.Name]; value != nil && !reflect.DeepEqual(value, p.Default) {
				values[p.Name] = value
			} else if others[p.Name] != nil {
				values[p.Name] = others[p.Name]
			}
		}
		return params.Canonical(all, values), values, err
	}
	f.Fuzz(func(t *testing.T, query string) {
		given, parseErr := url.ParseQuery(query)
		text, values, err := canonical(query)
		if err != nil {
			p := problem.Of(err)
			check.Equal(t, p.Code, problem.BadInput, query)
			check.True(t, p.Message != "", "%q: got %v, want a 400", query, err)
			return
		}
		for name, of := range given {
			check.True(t, !known[name] || len(of) <= 1 || types[name] == reflect.Slice,
				"%q: got %v, want %s with %q refused", query, values, name, of)
		}
		for name, value := range values {
			if kind := reflect.TypeOf(value).Kind(); types[name] != 0 && kind != types[name] {
				t.Errorf("%q: got a %s for %s, want a %s", query, kind, name, types[name])
			}
			check.True(t, given[name] != nil || parseErr != nil, "%q: got %s=%v, want only what is given", query, name, value)
		}
		again, same, err := canonical(text)
		check.OK(t, err, query)
		check.Equal(t, again, text, query)
		check.DeepEqual(t, same, values, query)
		if parseErr != nil { // in a part that is ignored
			return
		}
		if sorted, same, err := canonical(given.Encode()); err != nil || sorted != text || !reflect.DeepEqual(same, values) {
			t.Errorf("%q: got %v and %v from %q, want %v", query, same, err, given.Encode(), values)
		}
	})
}

// FuzzChart checks that an accepted chart shows different columns that exist, with numbers on
// the vertical axis, that others are a 400, and that a suggested chart is accepted.
func FuzzChart(f *testing.F) {
	for _, c := range []Chart{{}, {Kind: Line, X: "name", Y: "score"}, {Kind: Bar, X: "slug", Y: "score", Series: "name"}, {Kind: Bar, X: "score", Y: "score"}, {Kind: "pie"}, {Kind: Tiles, X: "\x00"}} {
		f.Add(c.Kind, c.X, c.Y, c.Series, "{tools {items {name slug score}}}")
	}
	f.Add(Line, "start", "value", "key", "{series(metrics: [count], every: month) {key points {start value}}}")
	queries, _ := newQueries(f, testkit.Open(f, testkit.SQLite(f)))
	f.Fuzz(func(t *testing.T, kind, x, y, series, text string) {
		chart := Chart{kind, x, y, series}
		q, err := newQuery(queries.Executor, text)
		if err != nil {
			return
		}
		columns := q.columns(q.samples())
		suggested := q.suggestChart()
		check.Equal(t, suggested.check(columns), nil, "%q: from its own suggestion %v", text, suggested)
		if err := chart.check(columns); err != nil {
			p := problem.Of(err)
			check.Equal(t, p.Code, problem.BadInput, chart)
			check.True(t, p.Message != "", "%v: got %v, want a 400", chart, err)
			return
		}
		check.True(t, slices.Contains([]string{"", Line, Bar, Tiles, Table}, kind), "got the chart %q, want an error", kind)
		if !chart.hasAxes() {
			return
		}
		numbers := map[string]bool{}
		for _, c := range columns {
			numbers[c.Name] = numbers[c.Name] || c.IsNumber()
		}
		_, hasX := numbers[x]
		_, hasSeries := numbers[series]
		if !hasX || !numbers[y] || series != "" && !hasSeries || x == y || series == x || series == y {
			t.Errorf("%v with columns %s: got no error, want one", chart, namesOf(columns))
		}
	})
}
