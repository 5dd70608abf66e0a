package lang

import (
	"go/ast"
	"go/constant"
	"go/types"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"text/template/parse"

	jsonv2 "github.com/go-json-experiment/json"
	"golang.org/x/tools/go/packages"

	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit/repo"
)

// problemPackages are the packages whose errors pages show.
var problemPackages = []string{
	"palmares/auth", "palmares/internal/account/", "palmares/internal/web/", "palmares/internal/notify/mail", "palmares/internal/notify/webhook", "palmares/internal/transport/saved", "palmares/internal/core/problem", "palmares/internal/core/params", "palmares/internal/core/middleware",
}

// TestEveryMessageIsTranslated reads the messages from all templates and from the
// Go code, and compares them with the French ones.
func TestEveryMessageIsTranslated(t *testing.T) {
	t.Parallel()
	used := map[Message]string{} // with a place
	fromTemplates(t, used)
	fromGo(t, used)
	fromExamples(t, used)
	check.MustTrue(t, len(used) >= 100, "got %d messages in the program, want at least 100", len(used))
	for m, place := range used {
		_, ok := french()[m]
		check.True(t, ok, "%s: got no French translation of %q, want one in internal/core/lang/french.json", place, m)
	}
	for m := range french() {
		_, ok := used[m]
		check.True(t, ok, "got a translation of %q, want it removed: nothing uses it", m)
	}
}

// fromTemplates finds {{t "…"}}, {{plural n "…"}} and {{markup "…"}}.
func fromTemplates(t *testing.T, used map[Message]string) {
	t.Helper()
	position := map[string]int{"t": 1, "markup": 1, "plural": 2} // of the message
	root := filepath.Join("..", "..")
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.Name() == "node_modules" {
			return fs.SkipDir
		}
		if !strings.Contains(path, "templates") || filepath.Ext(path) != ".html" && filepath.Ext(path) != ".txt" {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		tree := parse.New(path)
		tree.Mode = parse.SkipFuncCheck
		trees := map[string]*parse.Tree{}
		if _, err := tree.Parse(string(text), "", "", trees); err != nil {
			return err
		}
		for _, tree := range trees {
			walk(tree.Root, func(command *parse.CommandNode) {
				name, ok := command.Args[0].(*parse.IdentifierNode)
				if !ok || position[name.Ident] == 0 {
					return
				}
				message, ok := command.Args[position[name.Ident]].(*parse.StringNode)
				if !ok {
					t.Errorf("%s: got %s, want a constant message", path, command)
					return
				}
				used[Message(message.Text)] = path
			})
		}
		return nil
	})
	check.OK(t, err)
}

// fromExamples finds the comments that the example queries start with.
func fromExamples(t *testing.T, used map[Message]string) {
	t.Helper()
	files := check.Try(filepath.Glob(filepath.Join("..", "..", "web", "apidocs", "examples", "*.graphql"))).OK(t)
	check.MustTrue(t, len(files) != 0, "got %d examples, want some", len(files))
	for _, file := range files {
		text := check.Try(os.ReadFile(file)).OK(t)
		for line := range strings.Lines(string(text)) {
			comment, isComment := strings.CutPrefix(line, "# ")
			if !isComment {
				break
			}
			used[Message(strings.TrimSpace(comment))] = file
		}
	}
}

// walk visits all commands below a node of a template.
func walk(node parse.Node, visit func(*parse.CommandNode)) {
	branch := func(b *parse.BranchNode) {
		walk(b.Pipe, visit)
		walk(b.List, visit)
		if b.ElseList != nil {
			walk(b.ElseList, visit)
		}
	}
	switch n := node.(type) {
	case *parse.ListNode:
		for _, child := range n.Nodes {
			walk(child, visit)
		}
	case *parse.ActionNode:
		walk(n.Pipe, visit)
	case *parse.TemplateNode:
		if n.Pipe != nil {
			walk(n.Pipe, visit)
		}
	case *parse.IfNode:
		branch(&n.BranchNode)
	case *parse.RangeNode:
		branch(&n.BranchNode)
	case *parse.WithNode:
		branch(&n.BranchNode)
	case *parse.PipeNode:
		for _, command := range n.Cmds {
			visit(command)
			for _, argument := range command.Args {
				walk(argument, visit)
			}
		}
	}
}

// fromGo finds constants of type Message, the formats of errors that pages show, and
// labels in the tags of records.
func fromGo(t *testing.T, used map[Message]string) {
	t.Helper()
	repo.Read(t)
	all := check.Try(packages.Load(&packages.Config{
		Mode: packages.NeedName | packages.NeedFiles | packages.NeedSyntax | packages.NeedTypes | packages.NeedTypesInfo | packages.NeedImports,
		Dir:  repo.Root(t),
	}, "./auth", "./cmd/...", "./graph", "./internal/account/...", "./internal/catalog/...", "./internal/core/...", "./internal/notify/...", "./internal/transport/...", "./internal/web/...")).OK(t)
	for _, pkg := range all {
		for _, failure := range pkg.Errors {
			t.Fatalf("%s: %v", pkg.PkgPath, failure)
		}
		showsProblems := slices.ContainsFunc(problemPackages, func(prefix string) bool { return strings.HasPrefix(pkg.PkgPath, prefix) })
		for _, file := range pkg.Syntax {
			ast.Inspect(file, func(node ast.Node) bool {
				place := func() string { return pkg.Fset.Position(node.Pos()).String() }
				if expression, ok := node.(ast.Expr); ok {
					value := pkg.TypesInfo.Types[expression]
					if value.Value != nil && value.Value.Kind() == constant.String && value.Type.String() == "palmares/internal/core/lang.Message" && constant.StringVal(value.Value) != "" {
						used[Message(constant.StringVal(value.Value))] = place()
					}
				}
				if field, ok := node.(*ast.Field); ok && field.Tag != nil && pkg.PkgPath == "palmares/internal/catalog/record" {
					tag, _ := strconv.Unquote(field.Tag.Value)
					for _, key := range []string{"label", "mean"} {
						if label := reflect.StructTag(tag).Get(key); label != "" {
							used[Message(label)] = place()
						}
					}
				}
				if format := problemFormat(pkg.TypesInfo, node); showsProblems && format != "" {
					used[Message(format)] = place()
				}
				return true
			})
		}
	}
}

// problemFormat returns the message of problem.New(code, "…") and of
// problem.Problem{Message: "…"}, or "".
func problemFormat(info *types.Info, node ast.Node) string {
	switch n := node.(type) {
	case *ast.CallExpr:
		function, ok := n.Fun.(*ast.SelectorExpr)
		if !ok || function.Sel.Name != "New" || len(n.Args) < 2 {
			return ""
		}
		if from, ok := function.X.(*ast.Ident); ok && from.Name == "problem" {
			return text(info, n.Args[1])
		}
	case *ast.CompositeLit:
		name := ""
		switch kind := n.Type.(type) {
		case *ast.SelectorExpr:
			name = kind.Sel.Name
		case *ast.Ident:
			name = kind.Name
		}
		if name != "Problem" {
			return ""
		}
		for _, element := range n.Elts {
			if pair, ok := element.(*ast.KeyValueExpr); ok {
				if key, ok := pair.Key.(*ast.Ident); ok && key.Name == "Message" {
					return text(info, pair.Value)
				}
			}
		}
	}
	return ""
}

// text returns the value of a constant string, which may be written in parts, or "".
func text(info *types.Info, expression ast.Expr) string {
	if value := info.Types[expression].Value; value != nil && value.Kind() == constant.String {
		return constant.StringVal(value)
	}
	return ""
}

var (
	verbs    = regexp.MustCompile(`%(?:\[(\d+)\])?[-+# 0-9.]*([a-z%])`)
	badSpace = regexp.MustCompile(`[^\x{a0}\x{202f}\s][:;?!»%€](?:\s|$)|[ ][:;?!»%€]|«[^\x{a0}\x{202f}]`)
	markup   = regexp.MustCompile(`<[^>]*>|&[a-z]+;|https?://\S*|%%`)
)

// Two translations of a message would depend on the order of the parts.
func TestNoMessageIsTranslatedTwice(t *testing.T) {
	t.Parallel()
	var parts map[string]map[Message]string
	check.OK(t, jsonv2.Unmarshal(frenchFile, &parts)) // also finds two in one part
	partOf := map[Message]string{}
	for name, part := range parts {
		for m := range part {
			other, ok := partOf[m]
			check.True(t, !ok, "%q: got translations in %s and %s, want one", m, name, other)
			partOf[m] = name
		}
	}
}

// TestTranslationsMatch checks that translations have the same arguments as the
// English messages, and French typography.
func TestTranslationsMatch(t *testing.T) {
	t.Parallel()
	for m, translation := range french() {
		for i, form := range strings.Split(translation, "|") {
			english := string(m)
			if forms := strings.Split(english, "|"); len(forms) != strings.Count(translation, "|")+1 {
				t.Errorf("%q: got %q, want as many forms", m, translation)
			} else {
				english = forms[i]
			}
			want, got := arguments(english), arguments(form)
			check.True(t, slices.Equal(got, want) || got == nil && strings.Contains(translation, "|"), "%q: got arguments %v in %q, want %v", m, got, form, want)
			plain := markup.ReplaceAllString(form, "x")
			check.Equal(t, badSpace.FindString(verbs.ReplaceAllString(plain, "x")), "", "%q: in: %q", m, form)
			check.Lacks(t, plain, "'", "%q: a straight quote in %q", m, form)
			check.Lacks(t, plain, `"`, "%q: a straight quote in %q", m, form)
		}
	}
}

// arguments returns the verbs of a format with their positions, sorted.
func arguments(format string) (all []string) {
	next := 1
	for _, verb := range verbs.FindAllStringSubmatch(format, -1) {
		if verb[2] == "%" {
			continue
		}
		if verb[1] != "" {
			next, _ = strconv.Atoi(verb[1])
		}
		all = append(all, strconv.Itoa(next)+verb[2])
		next++
	}
	slices.Sort(all)
	return all
}

// A line break never separates French punctuation from its word.
func TestTypeset(t *testing.T) {
	check.Equal(t, Typeset("L'atelier : « oui » ?"), "L’atelier\u00a0: «\u00a0oui\u00a0»\u00a0?")
}

func TestOrdinals(t *testing.T) {
	for n, want := range map[int][2]string{1: {"1st", "1er"}, 2: {"2nd", "2e"}, 3: {"3rd", "3e"}, 4: {"4th", "4e"}, 11: {"11th", "11e"}, 12: {"12th", "12e"}, 22: {"22nd", "22e"}, 113: {"113th", "113e"}} {
		check.Equal(t, [2]string{English.Ordinal(n), French.Ordinal(n)}, want)
	}
}

// FuzzPreferred checks that any Accept-Language header selects a language that exists, and
// that one with French alone selects French.
func FuzzPreferred(f *testing.F) {
	for _, header := range []string{"", "fr-FR", "fr-FR,fr;q=0.9,en;q=0.8", "de, *;q=0.1", "fr;q=0", "x-klingon", "en-GB;q=nan", strings.Repeat("fr,", 500)} {
		f.Add(header)
	}
	f.Fuzz(func(t *testing.T, header string) {
		got := Preferred(header)
		check.True(t, slices.Contains(All, got) && (len(header) <= 1000 || got == English), "%q: got %q, want a known language", header, got)
		if !strings.Contains(header, ",") && !strings.Contains(header, ";") && strings.HasPrefix(header, "fr-") && len(header) == 5 && strings.ToUpper(header[3:]) == "FR" && Preferred(header) != French {
			t.Errorf("%q: got English, want French", header)
		}
	})
}
