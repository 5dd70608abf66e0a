package page

import (
	"bytes"
	"errors"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/JohannesKaufmann/html-to-markdown/v2/converter"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/base"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/commonmark"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/table"
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"palmares/internal/core/lang"
	"palmares/internal/core/negotiate"
)

// The headers of pages that are the same for all visitors and exist as Markdown.
const (
	Caching = "public, max-age=0, s-maxage=60, stale-while-revalidate=3600"
	Vary    = "Accept, Accept-Encoding"
)

// MarkdownType is the Content-Type of Markdown.
const MarkdownType = "text/markdown; charset=utf-8"

// MarkdownSuffix is what the path of a page's Markdown version ends with.
const MarkdownSuffix = ".md"

// MarkdownPath returns the path of the Markdown version of a page.
func MarkdownPath(path string) string {
	if path == "/" {
		return "/index" + MarkdownSuffix
	}
	return path + MarkdownSuffix
}

// textLink finds links in Markdown that lead to this site.
var textLink = regexp.MustCompile(`\]\((/[^)\s]*)\)`)

// AbsoluteLinks completes the links to our own pages in a Markdown text.
func AbsoluteLinks(l lang.Language, publicURL, text string) string {
	return textLink.ReplaceAllStringFunc(text, func(link string) string {
		return "](" + publicURL + LocalPath(l, textLink.FindStringSubmatch(link)[1]) + ")"
	})
}

// toMarkdown is safe for concurrent use.
var toMarkdown = sync.OnceValue(func() *converter.Converter {
	return converter.NewConverter(converter.WithPlugins(base.NewBasePlugin(), commonmark.NewCommonmarkPlugin(commonmark.WithListEndComment(false)),
		table.NewTablePlugin(table.WithNewlineBehavior(table.NewlineBehaviorPreserve), table.WithCellPaddingBehavior(table.CellPaddingBehaviorMinimal))))
})

// WantsMarkdown reports whether a request is for the Markdown version of a page: by
// its path, or because it prefers Markdown to HTML. Wildcards do not, since browsers
// send them.
func WantsMarkdown(r *http.Request) bool {
	markdown := negotiate.Named(r.Header["Accept"], "text/markdown")
	return strings.HasSuffix(r.URL.Path, MarkdownSuffix) || markdown > 0 && markdown >= negotiate.Named(r.Header["Accept"], "text/html")
}

// markdown returns the Markdown version of a page from its HTML: what is in main,
// with absolute links, and the credit line.
func (c Content) markdown(page []byte) ([]byte, error) {
	document, err := html.Parse(bytes.NewReader(page))
	if err != nil {
		return nil, err
	}
	var main *html.Node
	for n := range document.Descendants() {
		if n.DataAtom == atom.Main {
			main = n
			break
		}
	}
	if main == nil {
		return nil, errors.New("the page has no main element")
	}
	simplify(main)
	text, err := toMarkdown().ConvertNode(main, converter.WithDomain(c.Base))
	if err != nil {
		return nil, err
	}
	return append(bytes.TrimSpace(text), "\n\n"+c.Source()+"\n"...), nil
}

// interactive are the elements that Markdown cannot contain. The data of charts is
// in a table beside them.
var interactive = []atom.Atom{atom.Form, atom.Svg, atom.Button, atom.Script, atom.Template, atom.Caption, atom.Summary}

// repeating are the classes of elements that repeat what others show.
var repeating = []string{"visually-hidden", "narrow-only"}

// simplify removes what only a page needs, and links to the explorer, whose URLs
// contain whole queries. It turns definition lists into lists, and joins the
// paragraphs in a table cell.
func simplify(n *html.Node) {
	for _, child := range slices.Collect(n.ChildNodes()) {
		switch {
		case slices.Contains(interactive, child.DataAtom), slices.Contains(repeating, attribute(child, "class")), strings.Contains(attribute(child, "href"), "/explorer?"):
			n.RemoveChild(child)
		case child.DataAtom == atom.P && (n.DataAtom == atom.Td || n.DataAtom == atom.Th):
			n.InsertBefore(&html.Node{Type: html.TextNode, Data: " · "}, child)
			for _, part := range slices.Collect(child.ChildNodes()) {
				child.RemoveChild(part)
				n.InsertBefore(part, child)
			}
			n.RemoveChild(child)
		case child.DataAtom == atom.Dl:
			n.InsertBefore(listOf(child), child)
			n.RemoveChild(child)
		default:
			simplify(child)
		}
	}
}

func attribute(n *html.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

// listOf turns terms and their descriptions into items, "term: description".
func listOf(definitions *html.Node) *html.Node {
	list := &html.Node{Type: html.ElementNode, DataAtom: atom.Ul, Data: "ul"}
	var collect func(*html.Node)
	collect = func(n *html.Node) {
		for _, child := range slices.Collect(n.ChildNodes()) {
			if child.DataAtom != atom.Dt && child.DataAtom != atom.Dd {
				collect(child)
				continue
			}
			if child.DataAtom == atom.Dt || list.LastChild == nil {
				list.AppendChild(&html.Node{Type: html.ElementNode, DataAtom: atom.Li, Data: "li"})
			}
			item := list.LastChild
			for _, part := range slices.Collect(child.ChildNodes()) {
				child.RemoveChild(part)
				item.AppendChild(part)
			}
			if child.DataAtom == atom.Dt {
				item.AppendChild(&html.Node{Type: html.TextNode, Data: ": "})
			}
		}
	}
	collect(definitions)
	simplify(list)
	return list
}
