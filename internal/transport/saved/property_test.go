package saved

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	"github.com/vektah/gqlparser/v2/ast"

	"palmares/auth"
	"palmares/graph"
	"palmares/internal/core/store"
	"palmares/internal/dev/testkit"
	"palmares/internal/transport/graphql"
)

// generator writes random queries.
type generator struct {
	*rand.Rand
	aliases int
	nested  bool // a list or JSON was selected where a table cannot have it
}

// selection returns random fields of a type.
func (g *generator) selection(typeName string, depth int) string {
	definition := graph.Schema().Types[typeName]
	var fields []string
	for _, f := range definition.Fields {
		t := graph.Schema().Types[f.Type.Name()]
		isObject := t.Kind == ast.Object || t.Kind == ast.Interface
		isList := f.Type.Elem != nil || t.Name == "JSON"
		switch {
		case strings.HasPrefix(f.Name, "__") || strings.HasPrefix(t.Name, "Embeddings") || strings.HasSuffix(t.Name, "Connection") || t.Kind == ast.Union,
			g.IntN(3) > 0 || isObject && depth == 0 || isList && g.IntN(6) > 0:
			continue
		}
		text := f.Name
		if g.IntN(5) == 0 {
			g.aliases++
			text = fmt.Sprintf("x%d: %s", g.aliases, f.Name)
		}
		if isList && f.Arguments.ForName("limit") != nil {
			text += "(limit: 2)"
		}
		if isObject {
			text += " " + g.selection(t.Name, depth-1)
		}
		g.nested = g.nested || isList
		fields = append(fields, text)
	}
	if g.IntN(3) == 0 || len(fields) == 0 {
		fields = append(fields, "name: __typename")
		if definition.Fields.ForName("name") != nil {
			fields[len(fields)-1] = "kind: __typename"
		}
	}
	if g.IntN(4) == 0 && definition.Kind == ast.Object {
		return "{... on " + typeName + " {" + strings.Join(fields, " ") + "}}"
	}
	return "{" + strings.Join(fields, " ") + "}"
}

// root returns a random root field, and the response names down to the body.
func (g *generator) root(alias string) (text string, path []string) {
	at := func(field, arguments string) string { return alias + ": " + field + "(" + arguments + ") " }
	switch g.IntN(7) {
	case 0:
		return at("tools", "limit: $n, sort: name_asc") + "{list: items " + g.selection("Tool", 2) + "}", []string{alias, "list"}
	case 1:
		return at("comparisons", "limit: $n") + "{items " + g.selection("Comparison", 2) + "}", []string{alias, "items"}
	case 2:
		return at("toolConnection", "first: $n") + "{nodes " + g.selection("Tool", 1) + "}", []string{alias, "nodes"}
	case 3:
		return at("retiredTools", "limit: $n") + "{items " + g.selection("RetiredTool", 1) + "}", []string{alias, "items"}
	case 4:
		return at("toolConnection", "last: $n") + "{edges {node " + g.selection("Tool", 1) + "}}", []string{alias, "edges", "node"}
	case 5:
		return at("toolGroups", "by: category") + g.selection("ToolGroup", 0), []string{alias}
	default:
		return at("tool", `slug: "plume"`) + g.selection("Tool", 2), []string{alias}
	}
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
	if err := in.Decode(&value); err != nil {
		t.Fatalf("%.200s: got %v, want JSON", text, err)
	}
	return value
}

// flatten returns the cells of an object by their columns.
func flatten(value any, prefix string, cells map[string]string) {
	object, ok := value.(map[string]any)
	if !ok {
		cell := fmt.Sprint(value)
		if value == nil {
			cell = ""
		}
		if text, isText := value.(string); isText && text != "" && strings.ContainsRune("=+-@\t\r", rune(text[0])) {
			cell = "'" + text
		}
		cells[prefix] = cell
		return
	}
	for name, inner := range object {
		flatten(inner, strings.TrimPrefix(prefix+"."+name, "."), cells)
	}
}

// For random queries, the response is a part of what GraphQL returns, and CSV
// and NDJSON have the same content.
func TestRandomQueries(t *testing.T) {
	onDemoCatalog(t, func(t *testing.T, s *store.Store, q *Queries) {
		owner := newAccount(t, s, auth.Pro)
		graphql := graphql.NewHandler(q.Executor, q.Cache)
		call := func(handler http.Handler, r *http.Request) *httptest.ResponseRecorder {
			w := httptest.NewRecorder()
			handler.ServeHTTP(w, r)
			return w
		}
		tables, plain := 0, 0
		for seed := range uint64(maxVersionsPerDay - 1) {
			g := &generator{Rand: rand.New(rand.NewPCG(seed, 22))}
			text, path := g.root("r0")
			if g.IntN(4) == 0 {
				more, _ := g.root("r1")
				text, path = text+" "+more, nil
			}
			text = "query ($n: Int = 3) {" + text + "}"
			if !strings.Contains(text, "$n,") && !strings.Contains(text, "$n)") {
				text = strings.Replace(text, "query ($n: Int = 3) ", "", 1)
			}
			text = strings.ReplaceAll(text, "Int = 3", "Int! = 3")
			if _, err := q.Save(t.Context(), owner, NewQuery{Name: "random", Handle: "ana", Text: text, Public: true}); err != nil {
				t.Fatalf("%s: got %v, want it saved", text, err)
			}
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
			var lines []any
			for line := range strings.Lines(get("ndjson").Body.String()) {
				lines = append(lines, decode(t, line))
			}
			if len(lines)+len(items) > 0 && !reflect.DeepEqual(lines, items) {
				t.Errorf("%s: got NDJSON %.300v, want %.300v", text, lines, items)
			}

			table := get("csv")
			if nested := g.nested || path == nil && strings.ContainsAny(fmt.Sprintf("%T", firstList(data)), "["); nested {
				plain++
				if table.Code != 400 || !strings.Contains(table.Body.String(), "is nested data") {
					t.Errorf("%s: got %d %.200s, want an error that it cannot be a table", text, table.Code, table.Body)
				}
				continue
			}
			tables++
			rows, err := csv.NewReader(table.Body).ReadAll()
			if err != nil || len(rows) != len(items)+1 {
				t.Fatalf("%s: got %d rows and %v, want %d", text, len(rows), err, len(items)+1)
			}
			for i, item := range items {
				wanted := map[string]string{}
				flatten(item, "", wanted)
				for column, name := range rows[0] {
					if got := rows[i+1][column]; got != strings.ReplaceAll(wanted[name], "\r\n", "\n") {
						t.Errorf("%s, row %d, %s: got %q, want %q", text, i, name, got, wanted[name])
					}
					delete(wanted, name)
				}
				for name, value := range wanted {
					if value != "" { // an object that is null has no columns
						t.Errorf("%s, row %d: got no column %s, want %q", text, i, name, value)
					}
				}
			}
		}
		if tables < 10 || plain < 10 {
			t.Errorf("got %d tables and %d others, want at least 10 of each", tables, plain)
		}
	})
}

// firstList returns a list in the values of an object, or nil.
func firstList(value any) any {
	object, _ := value.(map[string]any)
	for _, inner := range object {
		if list, ok := inner.([]any); ok {
			return list
		}
		if found := firstList(inner); found != nil {
			return found
		}
	}
	return nil
}

func TestWithoutCatalogOrDatabase(t *testing.T) {
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		q, _ := newQueries(t, s, BuiltIn{Name: "names", Description: "Names", Text: names})
		for range 3 {
			w := httptest.NewRecorder()
			q.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/q/palmares/names", nil))
			if w.Code != 200 || w.Body.String() != "[]" || w.Header().Get("Cache-Control") != "no-store" {
				t.Errorf("got %d %s %v, want an empty list before the first release", w.Code, w.Body, w.Header())
			}
		}
		testkit.Check(t, s.Close())
		w := httptest.NewRecorder()
		q.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/q/ana/names", nil))
		if w.Code != 503 || w.Header().Get("Retry-After") == "" || !strings.Contains(w.Body.String(), "Saved queries cannot be read at the moment") {
			t.Errorf("got %d %s, want 503 without a database", w.Code, w.Body)
		}
	})
}
