package guide

import (
	"bytes"
	"errors"
	"fmt"
	"html/template"
	"regexp"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	tables "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/util"

	"palmares/internal/core/lang"
)

// Render converts Markdown to HTML, with the texts of buttons in a language, which
// may differ from that of the Markdown. Raw HTML in the Markdown is left out.
func Render(l lang.Language, text string) (template.HTML, error) {
	return render(l, text, parser.NewContext())
}

// renderTranslation gives headings the IDs of the original, so that links to a
// section work in every language.
func renderTranslation(l lang.Language, text, original string) (template.HTML, error) {
	if text == original {
		return Render(l, text)
	}
	html, err := Render(lang.English, original)
	if err != nil {
		return "", err
	}
	ids := &headingIDs{}
	for _, heading := range headingID.FindAllStringSubmatch(string(html), -1) {
		*ids = append(*ids, heading[1])
	}
	return render(l, text, parser.NewContext(parser.WithIDs(ids)))
}

var headingID = regexp.MustCompile(`<h[1-6] id="([^"]*)">`)

// headingIDs are the IDs of the next headings.
type headingIDs []string

// Generate implements parser.IDs.
func (ids *headingIDs) Generate([]byte, ast.NodeKind) []byte {
	if len(*ids) == 0 {
		return nil // a test compares the headings
	}
	next := (*ids)[0]
	*ids = (*ids)[1:]
	return []byte(next)
}

// Put implements parser.IDs.
func (*headingIDs) Put([]byte) {}

func render(l lang.Language, text string, context parser.Context) (template.HTML, error) {
	markdown := goldmark.New(
		goldmark.WithExtensions(extension.Table),
		goldmark.WithParserOptions(parser.WithAutoHeadingID()),
		goldmark.WithRendererOptions(renderer.WithNodeRenderers(util.Prioritized(&nodeRenderer{lang: l}, 100))), // before the default renderer
	)
	var html bytes.Buffer
	if err := markdown.Convert([]byte(text), &html, parser.WithContext(context)); err != nil {
		return "", err
	}
	return template.HTML(html.String()), nil // goldmark escapes everything else
}

// nodeRenderer renders headings with anchors, code blocks with a copy button and
// tables that scroll. Each page needs its own.
type nodeRenderer struct {
	lang    lang.Language
	codes   int
	tables  int
	section string // text of the current heading
}

// RegisterFuncs implements renderer.NodeRenderer.
func (r *nodeRenderer) RegisterFuncs(to renderer.NodeRendererFuncRegisterer) {
	to.Register(ast.KindHeading, r.heading)
	to.Register(ast.KindFencedCodeBlock, r.code)
	to.Register(tables.KindTable, r.table)
}

func (r *nodeRenderer) heading(w util.BufWriter, source []byte, node ast.Node, entering bool) (ast.WalkStatus, error) {
	n := node.(*ast.Heading)
	id, _ := n.AttributeString("id")
	if entering {
		r.section = textOf(n, source)
		fmt.Fprintf(w, `<h%d id="%s">`, n.Level, id)
		return ast.WalkContinue, nil
	}
	if n.Level > 1 {
		fmt.Fprintf(w, ` <a class="anchor" lang="%s" href="#%s" aria-label="%s">#</a>`, r.lang, id, template.HTMLEscapeString(r.lang.Text("Link to: %s", r.section)))
	}
	fmt.Fprintf(w, "</h%d>\n", n.Level)
	return ast.WalkContinue, nil
}

var languages = map[string]string{
	"sh": "Shell", "js": "JavaScript", "python": "Python", "go": "Go", "graphql": "GraphQL", "json": "JSON", "text": "Output", "txt": "Text", "html": "HTML", "md": "Markdown",
}

func (r *nodeRenderer) code(w util.BufWriter, source []byte, node ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		return ast.WalkContinue, nil
	}
	n := node.(*ast.FencedCodeBlock)
	if n.Info == nil {
		return ast.WalkStop, errors.New("a code block has no language")
	}
	info := ParseInfo(string(n.Info.Segment.Value(source)))
	label, ok := languages[info.Language]
	switch {
	case !ok:
		return ast.WalkStop, fmt.Errorf("a code block has the unknown language %q", info.Language)
	case info.Language == "text":
		label = r.lang.Text("Output")
	case info.Language == "txt":
		label = r.lang.Text("Text")
	}
	if info.Name != "" {
		label += " · " + info.Name
	}
	r.codes++
	fmt.Fprintf(w, `<figure class="code %s"><figcaption><span id="label-%d">%s</span>`, info.Language, r.codes, template.HTMLEscapeString(label))
	if info.Runs() || info.IsFile() {
		fmt.Fprintf(w, `<button type="button" lang="%s" class="quiet" data-copy="code-%d" aria-describedby="label-%d" hidden>%s</button>`, r.lang, r.codes, r.codes, r.lang.Text("Copy"))
	}
	fmt.Fprintf(w, `</figcaption><pre tabindex="0" role="group" aria-labelledby="label-%d"><code id="code-%d">`, r.codes, r.codes)
	for i := range n.Lines().Len() {
		line := n.Lines().At(i)
		template.HTMLEscape(w, line.Value(source))
	}
	_, err := w.WriteString("</code></pre></figure>\n")
	return ast.WalkSkipChildren, err
}

func (r *nodeRenderer) table(w util.BufWriter, _ []byte, _ ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		_, err := w.WriteString("</table>\n</div>\n")
		return ast.WalkContinue, err
	}
	r.tables++
	label := r.section
	if r.tables > 1 { // labels of regions must be unique
		label = r.lang.Text("%s, table %d", r.section, r.tables)
	}
	_, err := fmt.Fprintf(w, `<div class="scroll" role="region" aria-label="%s" tabindex="0">`+"\n<table>\n", template.HTMLEscapeString(label))
	return ast.WalkContinue, err
}

// textOf returns the text of a heading without its markup.
func textOf(n ast.Node, source []byte) string {
	var text strings.Builder
	for child := n.FirstChild(); child != nil; child = child.NextSibling() {
		if t, ok := child.(*ast.Text); ok {
			text.Write(t.Segment.Value(source))
		} else {
			text.WriteString(textOf(child, source))
		}
	}
	return text.String()
}
