package prose

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
func Render(l lang.Language, text string) (template.HTML, error) { return render(l, text, nil) }

var headingID = regexp.MustCompile(`<h[1-6] id="([^"]*)">`)

// renderTranslation gives headings the IDs of the original, so that links to a
// section work in every language.
func renderTranslation(l lang.Language, text, original string) (template.HTML, error) {
	html, err := Render(lang.English, original)
	if err != nil {
		return "", err
	}
	return render(l, text, headingID.FindAllStringSubmatch(string(html), -1))
}

func render(l lang.Language, text string, ids [][]string) (template.HTML, error) {
	markdown := goldmark.New(
		goldmark.WithExtensions(extension.Table),
		goldmark.WithParserOptions(parser.WithAutoHeadingID()),
		goldmark.WithRendererOptions(renderer.WithNodeRenderers(util.Prioritized(&nodeRenderer{lang: l, ids: ids}, 100))), // before the default renderer
	)
	var html bytes.Buffer
	err := markdown.Convert([]byte(text), &html)
	return template.HTML(html.String()), err // goldmark escapes everything else
}

// nodeRenderer renders headings with anchors, code blocks with a copy button and
// tables that scroll. Each page needs its own.
type nodeRenderer struct {
	lang          lang.Language
	ids           [][]string // of the next headings, in matches; without them, they are made from the texts
	codes, tables int
	section, id   string // text and ID of the current heading
}

// RegisterFuncs implements renderer.NodeRenderer.
func (r *nodeRenderer) RegisterFuncs(to renderer.NodeRendererFuncRegisterer) {
	to.Register(ast.KindHeading, r.heading)
	to.Register(ast.KindFencedCodeBlock, r.code)
	to.Register(tables.KindTable, r.table)
}

func (r *nodeRenderer) heading(w util.BufWriter, source []byte, node ast.Node, entering bool) (ast.WalkStatus, error) {
	n := node.(*ast.Heading)
	if entering {
		id, _ := n.AttributeString("id")
		if r.section, r.id = textOf(n, source), fmt.Sprintf("%s", id); len(r.ids) > 0 {
			r.id, r.ids = r.ids[0][1], r.ids[1:]
		}
		fmt.Fprintf(w, `<h%d id="%s">`, n.Level, r.id)
		return ast.WalkContinue, nil
	}
	if n.Level > 1 {
		fmt.Fprintf(w, ` <a class="anchor" lang="%s" href="#%s" aria-label="%s">#</a>`, r.lang, r.id, template.HTMLEscapeString(r.lang.Text("Link to: %s", r.section)))
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

// Info is the info string of a code block: the language, the file to save it as,
// and for programs that do not end, the output to wait for.
type Info struct {
	Language string
	Name     string // file name; for an event in JSON, its type
	Until    string
}

// ParseInfo parses the text after the fence of a code block, for example
// "js receiver.mjs" or "sh until=listening".
func ParseInfo(text string) (info Info) {
	for i, word := range strings.Fields(text) {
		until, ok := strings.CutPrefix(word, "until=")
		switch {
		case i == 0:
			info.Language = word
		case ok:
			info.Until = until
		default:
			info.Name = word
		}
	}
	return info
}

// IsFile reports whether the block is the content of a settings file.
func (i Info) IsFile() bool { return i.Language == "json" && strings.HasSuffix(i.Name, ".json") }

// Runs reports whether the block is code to run and not sample output.
func (i Info) Runs() bool { return i.Language != "json" && i.Language != "text" }
