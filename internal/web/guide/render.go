package guide

import (
	"bytes"
	"errors"
	"fmt"
	"html/template"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	tables "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/util"
)

// render makes a page's content out of Markdown.
func render(text string) (template.HTML, error) {
	ours := &ownNodes{}
	markdown := goldmark.New(
		goldmark.WithExtensions(extension.Table),
		goldmark.WithParserOptions(parser.WithAutoHeadingID()),
		goldmark.WithRendererOptions(renderer.WithNodeRenderers(util.Prioritized(ours, 100))), // before the library's
	)
	var html bytes.Buffer
	if err := markdown.Convert([]byte(text), &html); err != nil {
		return "", err
	}
	return template.HTML(html.String()), nil // the guides are ours
}

// ownNodes writes what has to look and sound our way: headings that can be
// linked to, code that can be copied, tables that scroll. It serves one page.
type ownNodes struct {
	codes   int
	tables  int
	section string // the heading that we are under
}

// RegisterFuncs says which nodes are ours.
func (o *ownNodes) RegisterFuncs(to renderer.NodeRendererFuncRegisterer) {
	to.Register(ast.KindHeading, o.heading)
	to.Register(ast.KindFencedCodeBlock, o.code)
	to.Register(tables.KindTable, o.table)
}

func (o *ownNodes) heading(w util.BufWriter, source []byte, node ast.Node, entering bool) (ast.WalkStatus, error) {
	n := node.(*ast.Heading)
	id, _ := n.AttributeString("id")
	if entering {
		o.section = textOf(n, source)
		fmt.Fprintf(w, `<h%d id="%s">`, n.Level, id)
		return ast.WalkContinue, nil
	}
	if n.Level > 1 {
		fmt.Fprintf(w, ` <a class="anchor" href="#%s" aria-label="Link to: %s">#</a>`, id, template.HTMLEscapeString(o.section))
	}
	fmt.Fprintf(w, "</h%d>\n", n.Level)
	return ast.WalkContinue, nil
}

// languages are how people call what blocks are marked with.
var languages = map[string]string{
	"sh": "Shell", "js": "JavaScript", "python": "Python", "go": "Go", "graphql": "GraphQL", "json": "JSON", "text": "Answer",
}

func (o *ownNodes) code(w util.BufWriter, source []byte, node ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		return ast.WalkContinue, nil
	}
	n := node.(*ast.FencedCodeBlock)
	if n.Info == nil {
		return ast.WalkStop, errors.New("a block does not say what it is")
	}
	info := ParseInfo(string(n.Info.Segment.Value(source)))
	label, known := languages[info.Language]
	if !known {
		return ast.WalkStop, fmt.Errorf("a block is marked %q", info.Language)
	}
	if info.Name != "" {
		label += " · " + info.Name
	}
	o.codes++
	fmt.Fprintf(w, `<figure class="code %s"><figcaption><span id="label-%d">%s</span>`, info.Language, o.codes, template.HTMLEscapeString(label))
	if info.Runs() {
		fmt.Fprintf(w, `<button type="button" class="quiet" data-copy="code-%d" aria-describedby="label-%d" hidden>Copy</button>`, o.codes, o.codes)
	}
	fmt.Fprintf(w, `</figcaption><pre tabindex="0" role="group" aria-labelledby="label-%d"><code id="code-%d">`, o.codes, o.codes)
	for i := range n.Lines().Len() {
		line := n.Lines().At(i)
		template.HTMLEscape(w, line.Value(source))
	}
	_, err := w.WriteString("</code></pre></figure>\n")
	return ast.WalkSkipChildren, err
}

func (o *ownNodes) table(w util.BufWriter, _ []byte, _ ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		_, err := w.WriteString("</table>\n</div>\n")
		return ast.WalkContinue, err
	}
	o.tables++
	label := o.section
	if o.tables > 1 { // no two regions of a page are called the same
		label = fmt.Sprintf("%s, table %d", o.section, o.tables)
	}
	_, err := fmt.Fprintf(w, `<div class="scroll" role="region" aria-label="%s" tabindex="0">`+"\n<table>\n", template.HTMLEscapeString(label))
	return ast.WalkContinue, err
}

// textOf is what a heading says, without its marks.
func textOf(n ast.Node, source []byte) string {
	var said strings.Builder
	for child := n.FirstChild(); child != nil; child = child.NextSibling() {
		if text, plain := child.(*ast.Text); plain {
			said.Write(text.Segment.Value(source))
		} else {
			said.WriteString(textOf(child, source))
		}
	}
	return said.String()
}
