package guide

import (
	"embed"
	"html/template"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
	"sync"

	"palmares/internal/core/cache"
	"palmares/internal/core/lang"
	"palmares/internal/core/text"
	"palmares/internal/web/page"
)

const (
	root = "/guides"

	lead lang.Message = "Short, practical guides to the API. Every code sample is tested against a running server."
)

//go:embed templates
var files embed.FS

var templates = page.NewTemplates(files, "templates", nil)

// Config configures the guides.
type Config struct {
	page.Service
}

// Guides serves all guides.
type Guides struct {
	cfg       Config
	all       map[lang.Language][]*Guide
	documents page.Documents
}

type guidePage struct {
	Guide, Previous, Next *Guide // Previous and Next may be nil
	Guides                []*Guide
	Content               template.HTML
}

type notFoundPage struct{ Similar, Guides []*Guide }

// New reads the guides.
func New(cfg Config) (*Guides, error) {
	g := &Guides{cfg: cfg, all: map[lang.Language][]*Guide{}, documents: page.Documents{}}
	for _, l := range lang.All {
		var err error
		if g.all[l], err = Read(cfg, l); err != nil {
			return nil, err
		}
		g.addGuides(l)
	}
	if err := g.addChangelog(changelogText); err != nil {
		return nil, err
	}
	return g, nil
}

func (g *Guides) addGuides(l lang.Language) {
	all := g.all[l]
	g.add(l, root, "index", g.text(l, "index", nil), func() (any, error) { return all, nil })
	for i, one := range all {
		data := guidePage{Guide: one, Guides: all}
		if i > 0 {
			data.Previous = all[i-1]
		}
		if i+1 < len(all) {
			data.Next = all[i+1]
		}
		g.add(l, one.Path(), "guide", one.Markdown, func() (any, error) {
			var err error
			data.Content, err = renderTranslation(l, one.Text, g.all[lang.English][i].Text)
			return data, err
		})
	}
}

// add adds a page in a language. It is rendered when it is first requested.
func (g *Guides) add(l lang.Language, path, template, text string, dataOf func() (any, error)) {
	html := sync.OnceValues(func() (*cache.Entry, error) {
		data, err := dataOf()
		if err != nil {
			return nil, err
		}
		content := g.content(l, path, data)
		content.Markdown = page.MarkdownPath(path)
		return templates.Entry(template, content, page.Caching)
	})
	g.documents.Add(l, path, html, page.TextEntry(text))
}

func (g *Guides) content(l lang.Language, path string, data any) page.Content {
	return g.cfg.Content(l, path, page.Head{}, data)
}

// All returns all guides in English, in order.
func (g *Guides) All() []*Guide { return g.all[lang.English] }

// Patterns are those of the guides and the changelog, without its feed.
var Patterns = []string{root, root + "/", root + ".md", changelog, changelog + ".md"}

// ServeHTTP serves a guide, the list of all, the changelog and its feed.
func (g *Guides) ServeHTTP(w http.ResponseWriter, r *http.Request) { page.Handler(g.serve)(w, r) }

// serve serves a guide as HTML or Markdown.
func (g *Guides) serve(w http.ResponseWriter, r *http.Request) error {
	documents := g.documents[lang.Of(r.Context())]
	found, ok := documents[r.URL.Path]
	trimmed, hasSlash := strings.CutSuffix(r.URL.Path, "/")
	switch {
	case hasSlash && documents[trimmed].Page != nil:
		page.Redirect(w, r, (&url.URL{Path: trimmed, RawQuery: r.URL.RawQuery}).String(), http.StatusMovedPermanently)
		return nil
	case !ok:
		return g.notFound(w, r)
	}
	return g.cfg.WriteDocument(w, r, found)
}

// notFound suggests guides with a similar name.
func (g *Guides) notFound(w http.ResponseWriter, r *http.Request) error {
	var similar []*Guide
	l := lang.Of(r.Context())
	for _, name := range text.Similar(strings.TrimSuffix(path.Base(r.URL.Path), ".md"), order, 3) {
		similar = append(similar, g.all[l][slices.Index(order, name)])
	}
	header := w.Header()
	header.Set("Cache-Control", "no-store")
	header.Set("Vary", "Accept")
	if page.WantsMarkdown(r) {
		header.Set("Content-Type", page.MarkdownType)
		header.Set("X-Content-Type-Options", "nosniff")
		w.WriteHeader(http.StatusNotFound)
		_, _ = w.Write([]byte(g.text(l, "notfound", similar)))
		return nil
	}
	g.cfg.SetSecurityHeaders(header, page.FormPolicy)
	return templates.Write(w, http.StatusNotFound, "notfound", g.content(l, r.URL.Path, notFoundPage{similar, g.all[l]}))
}
