package main

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/tools/go/packages"
)

// mutant is a small change of the code that a test should notice.
type mutant struct {
	file, function, change string // the file is relative to the root of the repository
	survived               bool
}

// String identifies a mutant in the list of survivors, even after other code of its file
// has changed.
func (m *mutant) String() string { return m.file + " " + m.function + ": " + m.change }

// mutator adds all mutants of a file to its text. They are compiled together, and an
// environment variable selects one of them, so that a package is compiled only once.
type mutator struct {
	pkg     *packages.Package
	file    string // relative to the root of the repository
	text    []byte
	mutants *[]*mutant
	before  map[int][]string // insertions before what starts at an offset, the outermost first
	after   map[int][]string // and after what ends there, the innermost first
	parents map[ast.Node]ast.Node
	imports map[string]string     // the local names of packages
	known   map[string]int        // how often a change was made in a function
	consts  map[types.Object]*int // the package's constants, with the numbers of their mutants
}

// quiet are calls whose removal no test should notice.
var quiet = regexp.MustCompile(`^panic\(|\.(Lock|Unlock|RLock|RUnlock|(Debug|Info|Warn|Error)(Context)?)\(`)

func (m *mutator) offset(p token.Pos) int { return m.pkg.Fset.Position(p).Offset }

func (m *mutator) code(n ast.Node) string { return string(m.text[m.offset(n.Pos()):m.offset(n.End())]) }

// source is the code in one line.
func (m *mutator) source(n ast.Node) string { return strings.Join(strings.Fields(m.code(n)), " ") }

// add adds a mutant and returns its number.
func (m *mutator) add(n ast.Node, format string, args ...any) int {
	function := "package"
	for at := n; at != nil; at = m.parents[at] {
		if f, ok := at.(*ast.FuncDecl); ok {
			function = f.Name.Name
		}
	}
	change := fmt.Sprintf(format, args...)
	id := function + ": " + change
	if m.known[id]++; m.known[id] > 1 {
		change += fmt.Sprintf(" (%d)", m.known[id])
	}
	*m.mutants = append(*m.mutants, &mutant{file: m.file, function: function, change: change})
	return len(*m.mutants)
}

// wrap encloses a node. An enclosing node must be wrapped first.
func (m *mutator) wrap(n ast.Node, before, after string) {
	start, end := m.offset(n.Pos()), m.offset(n.End())
	m.before[start] = append(m.before[start], before)
	m.after[end] = append([]string{after}, m.after[end]...)
}

// replace replaces an expression by another one if a mutant is selected. The other one
// contains no mutants, because only one is selected at a time.
func (m *mutator) replace(n ast.Expr, id int, kind, other string) {
	m.wrap(n, fmt.Sprintf("func() %s { if mutantOn(%d) { return %s }; return ", kind, id, other), " }()")
}

// mutate returns the text of the file with the mutants of its variables and of the
// selected functions.
func (m *mutator) mutate(file *ast.File, only *regexp.Regexp) string {
	for _, spec := range file.Imports {
		path, _ := strconv.Unquote(spec.Path.Value)
		if m.imports[path] = m.pkg.Imports[path].Name; spec.Name != nil {
			m.imports[path] = spec.Name.Name
		}
	}
	var path []ast.Node
	ast.Inspect(file, func(n ast.Node) bool {
		if n == nil {
			path = path[:len(path)-1]
			return true
		}
		if len(path) > 0 {
			m.parents[n] = path[len(path)-1]
		}
		path = append(path, n)
		return true
	})
	for _, d := range file.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && only != nil && !only.MatchString(f.Name.Name) {
			continue
		}
		ast.Inspect(d, m.visit)
	}
	var out strings.Builder
	done := 0
	offsets := slices.AppendSeq(slices.Collect(maps.Keys(m.before)), maps.Keys(m.after))
	slices.Sort(offsets)
	for _, at := range slices.Compact(offsets) {
		out.Write(m.text[done:at])
		out.WriteString(strings.Join(m.after[at], "") + strings.Join(m.before[at], ""))
		done = at
	}
	return out.String() + string(m.text[done:])
}

func (m *mutator) visit(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.GenDecl:
		return n.Tok == token.VAR
	case *ast.ArrayType, *ast.FuncType, *ast.StructType, *ast.MapType, *ast.InterfaceType:
		return false
	case *ast.BinaryExpr:
		return m.binary(n)
	case *ast.BasicLit:
		if n.Kind != token.CHAR {
			m.number(n, 0)
		}
	case *ast.Ident:
		m.constant(n)
		if m.isCondition(n) {
			m.negate(n)
		}
	case *ast.CallExpr, *ast.SelectorExpr, *ast.IndexExpr, *ast.UnaryExpr:
		if m.isCondition(n) {
			m.negate(n)
		}
	case *ast.ReturnStmt:
		m.returns(n)
	case *ast.ExprStmt, *ast.AssignStmt, *ast.IncDecStmt, *ast.BranchStmt:
		m.remove(n)
	}
	return true
}

// isCondition reports whether a node is a condition, or one of several, that is not a
// comparison.
func (m *mutator) isCondition(n ast.Node) bool {
	if e, ok := n.(ast.Expr); !ok || !isBool(m.pkg.TypesInfo.TypeOf(e)) {
		return false
	}
	switch parent := m.parents[n].(type) {
	case *ast.IfStmt:
		return parent.Cond == n
	case *ast.ForStmt:
		return parent.Cond == n
	case *ast.BinaryExpr:
		return parent.Op == token.LAND || parent.Op == token.LOR
	case *ast.CaseClause:
		of, ok := m.parents[m.parents[parent]].(*ast.SwitchStmt)
		return ok && of.Tag == nil
	}
	return false
}

func isBool(t types.Type) bool {
	return t == types.Typ[types.Bool] || t == types.Typ[types.UntypedBool]
}

func (m *mutator) negate(n ast.Node) {
	m.wrap(n, fmt.Sprintf("(mutantOn(%d) != (", m.add(n, "!(%s)", m.source(n))), "))")
}

// operators are those that are replaced, and by which one.
var operators = map[token.Token]string{
	token.LAND: "||", token.LOR: "&&", token.LSS: "<=", token.LEQ: "<", token.GTR: ">=", token.GEQ: ">",
	token.ADD: "-", token.SUB: "+", token.MUL: "/", token.QUO: "*", token.REM: "*",
}

func (m *mutator) binary(n *ast.BinaryExpr) bool {
	info := m.pkg.TypesInfo
	if n.Op == token.SHL || n.Op == token.SHR {
		if info.Types[n].Value == nil { // otherwise its operands must be constants
			ast.Inspect(n.X, m.visit)
		}
		return false
	}
	if isComparison := n.Op == token.EQL || n.Op == token.NEQ || isOrder(n.Op); isComparison && isBool(info.TypeOf(n)) {
		m.negate(n)
	}
	other, ok := operators[n.Op]
	kind := "bool"
	operands, _ := info.TypeOf(n.X).Underlying().(*types.Basic)
	switch {
	case n.Op == token.LAND || n.Op == token.LOR:
		ok = isBool(info.TypeOf(n.X)) && isBool(info.TypeOf(n.Y))
	case operands == nil || info.Types[n].Value != nil:
		ok = false
	case isOrder(n.Op):
		ok = operands.Info()&types.IsOrdered != 0
	case ok:
		kind, ok = m.typeName(info.TypeOf(n))
		ok = ok && operands.Info()&(types.IsInteger|types.IsFloat) != 0
	}
	if ok {
		id := m.add(n, "%s %s %s", m.source(n.X), other, m.source(n.Y))
		m.replace(n, id, kind, m.code(n.X)+" "+other+" "+m.code(n.Y))
	}
	return true
}

func isOrder(op token.Token) bool {
	return op == token.LSS || op == token.LEQ || op == token.GTR || op == token.GEQ
}

// typeName returns how the file writes a type, unless it does not import its package.
func (m *mutator) typeName(t types.Type) (name string, ok bool) {
	ok = true
	name = types.TypeString(t, func(p *types.Package) string {
		if p == m.pkg.Types {
			return ""
		}
		ok = ok && m.imports[p.Path()] != ""
		return m.imports[p.Path()]
	})
	return name, ok
}

// number replaces a number.
func (m *mutator) number(n ast.Expr, id int) {
	value := m.pkg.TypesInfo.Types[n]
	basic, ok := value.Type.Underlying().(*types.Basic)
	if !ok || basic.Info()&(types.IsInteger|types.IsFloat) == 0 || basic.Info()&types.IsUntyped != 0 {
		return
	}
	switch parent := m.parents[n].(type) {
	case *ast.KeyValueExpr:
		if parent.Key == n {
			return // an index of an array
		}
	case *ast.CallExpr:
		if called := m.source(parent.Fun); called == "make" || strings.HasPrefix(called, "strconv.") {
			return // a size of memory or of a number
		}
	case *ast.ReturnStmt:
		if len(parent.Results) > 1 && zero.MatchString(m.source(n)) {
			return // another result says that it has no meaning
		}
	}
	name, ok := m.typeName(value.Type)
	if !ok {
		return
	}
	if id == 0 {
		id = m.add(n, "another number than %s in %s", m.source(n), m.line(n))
	}
	// Durations are numbers of nanoseconds, and limits are large: one more would be the same.
	other := m.code(n) + " + 1"
	if constant.Compare(value.Value, token.GTR, constant.MakeInt64(100)) && basic.Kind() != types.Byte {
		other = m.code(n) + " * 2"
	}
	m.replace(n, id, name, name+"("+other+")")
}

// line returns the line around a node, without its comment.
func (m *mutator) line(n ast.Node) string {
	start, end := m.offset(n.Pos()), m.offset(n.End())
	for start > 0 && m.text[start-1] != '\n' {
		start--
	}
	for end < len(m.text) && m.text[end] != '\n' {
		end++
	}
	line, _, _ := strings.Cut(string(m.text[start:end]), " //")
	return strings.TrimSpace(line)
}

// constant replaces one of the package's constants wherever the mutated files use it.
func (m *mutator) constant(n *ast.Ident) {
	id := m.consts[m.pkg.TypesInfo.Uses[n]]
	if id == nil {
		return
	}
	before := len(*m.mutants)
	if m.number(n, *id); len(*m.mutants) > before {
		*id = len(*m.mutants)
		added := (*m.mutants)[before]
		added.function, added.change = "package", "another "+n.Name
	}
}

// remove removes a statement, unless the result would not compile or is the same.
func (m *mutator) remove(n ast.Node) {
	switch parent := m.parents[n].(type) {
	case *ast.BlockStmt, *ast.CaseClause:
	case *ast.CommClause:
		if parent.Comm == n {
			return
		}
	default:
		return
	}
	switch n := n.(type) {
	case *ast.ExprStmt:
		if quiet.MatchString(m.source(n)) {
			return
		}
	case *ast.AssignStmt:
		blank := func(e ast.Expr) bool { name, ok := e.(*ast.Ident); return ok && name.Name == "_" }
		if n.Tok == token.DEFINE || !slices.ContainsFunc(n.Lhs, func(e ast.Expr) bool { return !blank(e) }) {
			return
		}
	case *ast.BranchStmt:
		if n.Tok == token.GOTO || n.Tok == token.FALLTHROUGH {
			return
		}
	}
	m.wrap(n, fmt.Sprintf("if !mutantOn(%d) { ", m.add(n, "without %s", m.source(n))), " }")
}

// zero matches zero values.
var zero = regexp.MustCompile(`^(nil|false|0|""|[\w.]+\{\})$`)

// returns returns zero values instead of others.
func (m *mutator) returns(n *ast.ReturnStmt) {
	if len(n.Results) > 0 && m.source(n.Results[len(n.Results)-1]) == "err" {
		return // passing on an error is only tested where errors are made
	}
	if len(n.Results) == 0 || !slices.ContainsFunc(n.Results, func(e ast.Expr) bool { return !zero.MatchString(m.source(e)) }) {
		return
	}
	var results *ast.FieldList
	for at := m.parents[n]; results == nil; at = m.parents[at] {
		switch f := at.(type) {
		case *ast.FuncDecl:
			results = f.Type.Results
		case *ast.FuncLit:
			results = f.Type.Results
		}
	}
	var zeros []string
	for _, field := range results.List {
		for range max(1, len(field.Names)) {
			zeros = append(zeros, "*new("+m.source(field.Type)+")")
		}
	}
	zero := fmt.Sprintf("if mutantOn(%d) { return %s }; ", m.add(n, "zero instead of %s", m.source(n)), strings.Join(zeros, ", "))
	m.before[m.offset(n.Pos())] = append(m.before[m.offset(n.Pos())], zero)
}

// helpers has the function that mutants call. If a file is named, it writes the numbers of
// the mutants that a test reaches to that.
const helpers = `
import (
	"fmt"
	"os"
	"strconv"
	"sync"
)

var mutantSelected, _ = strconv.Atoi(os.Getenv("MUTANT"))
var mutantReached, _ = os.OpenFile(os.Getenv("MUTANTS_REACHED"), os.O_WRONLY|os.O_APPEND, 0)
var mutantSeen sync.Map

func mutantOn(id int) bool {
	if mutantReached != nil {
		if _, seen := mutantSeen.LoadOrStore(id, true); !seen {
			fmt.Fprintln(mutantReached, id)
		}
	}
	return id == mutantSelected
}
`
