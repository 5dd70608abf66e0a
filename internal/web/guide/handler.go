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

	lead = "Short, practical guides to the API. Every code sample is tested against a running server."
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
	all       []*Guide
	documents page.Documents
}

type guidePage struct {
	Guide, Previous, Next *Guide // Previous and Next may be nil
	Guides                []*Guide
	Content               template.HTML
}

type indexPage struct {
	Lead   string
	Guides []*Guide
}

type notFoundPage struct{ Similar, Guides []*Guide }

// New reads the guides.
func New(cfg Config) (*Guides, error) {
	all, err := Read(cfg)
	if err != nil {
		return nil, err
	}
	g := &Guides{cfg: cfg, all: all, documents: page.Documents{}}
	g.add(root, "index", g.text("index", nil), func(lang.Language) (any, error) { return indexPage{lead, all}, nil })
	for i, one := range all {
		data := guidePage{Guide: one, Guides: all}
		if i > 0 {
			data.Previous = all[i-1]
		}
		if i+1 < len(all) {
			data.Next = all[i+1]
		}
		g.add(one.Path(), "guide", one.Markdown, func(l lang.Language) (any, error) {
			localized := data
			var err error
			localized.Content, err = Render(l, one.Text)
			return localized, err
		})
	}
	if err := g.addChangelog(changelogText); err != nil {
		return nil, err
	}
	return g, nil
}

// add adds a page in all languages. It is rendered when it is first requested.
func (g *Guides) add(path, template, text string, dataOf func(lang.Language) (any, error)) {
	entry := page.TextEntry(text)
	for _, l := range lang.All {
		html := sync.OnceValues(func() (*cache.Entry, error) {
			data, err := dataOf(l)
			if err != nil {
				return nil, err
			}
			content := g.content(l, path, data)
			content.Markdown = path + ".md"
			return templates.Entry(template, content, page.Caching)
		})
		g.documents.Add(l, path, html, entry)
	}
}

func (g *Guides) content(l lang.Language, path string, data any) page.Content {
	return g.cfg.Content(l, path, page.Head{}, data)
}

// All returns all guides in order.
func (g *Guides) All() []*Guide { return g.all }

// Register adds all paths of the guides and the changelog.
func (g *Guides) Register(mux *http.ServeMux) {
	for _, path := range []string{root, root + "/", root + ".md", changelog, changelog + ".md", changelogFeed} {
		mux.HandleFunc(path, page.Handler(g.serve))
	}
}

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
	for _, name := range text.Similar(strings.TrimSuffix(path.Base(r.URL.Path), ".md"), order, 3) {
		similar = append(similar, g.all[slices.Index(order, name)])
	}
	header := w.Header()
	header.Set("Cache-Control", "no-store")
	header.Set("Vary", "Accept")
	if page.WantsMarkdown(r) {
		header.Set("Content-Type", page.MarkdownType)
		header.Set("X-Content-Type-Options", "nosniff")
		w.WriteHeader(http.StatusNotFound)
		_, _ = w.Write([]byte(g.text("notfound", similar)))
		return nil
	}
	g.cfg.SetSecurityHeaders(header, page.FormPolicy)
	return templates.Write(w, http.StatusNotFound, "notfound", g.content(lang.Of(r.Context()), r.URL.Path, notFoundPage{similar, g.all}))
}
