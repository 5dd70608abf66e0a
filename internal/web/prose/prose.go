// Package prose serves the pages that are written as Markdown: the guides, the changelog, and
// those about the service itself, which an operator can replace. Every code block in a guide
// is run by a test against a real server. Start reading at New.
package prose

import (
	"embed"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
	"sync"

	"palmares/internal/core/cache"
	"palmares/internal/core/lang"
	"palmares/internal/core/problem"
	"palmares/internal/core/text"
	"palmares/internal/web/page"
)

//go:embed guides texts templates
var files embed.FS

var templates = page.NewTemplates(files, "templates", nil)

// embedded returns a file that is part of the program.
func embedded(name string) string {
	content, err := files.ReadFile(name)
	if err != nil {
		panic(err)
	}
	return string(content)
}

// Config configures the pages.
type Config struct {
	page.Service
	ServiceURL string // in the credit line
	Folder     string // has files that replace texts, or ""
	Facts      Facts
	Demo       bool // the facts are not real
}

// Pages serves all pages.
type Pages struct {
	Config
	guides    map[lang.Language][]*Guide
	documents map[lang.Language]map[string]document // by path
}

// document is a page whose Markdown is its source. Without html there is only a text.
type document struct {
	html func() (*cache.Entry, error)
	text *cache.Entry
}

// New reads all texts. It returns an error that names the file if one of the operator's is
// invalid.
func New(cfg Config) (*Pages, error) {
	p := &Pages{cfg, map[lang.Language][]*Guide{}, map[lang.Language]map[string]document{}}
	own, err := readFolder(cfg.Folder)
	if err != nil {
		return nil, err
	}
	for _, l := range lang.All {
		p.documents[l] = map[string]document{}
		if p.guides[l], err = ReadGuides(cfg.Service, l); err != nil {
			return nil, err
		}
		p.addGuides(l)
		p.add(l, changelogPath, "changelog", changelog, func() (any, error) { return Render(l, changelog) })
		if err := p.addTexts(l, own); err != nil {
			return nil, err
		}
	}
	feed, err := p.changelogFeed(changelog)
	p.documents[lang.English][FeedPath] = document{text: feed}
	return p, err
}

// add adds a page in a language, with its text at the same path and at that of its Markdown
// version. It is rendered when it is first requested.
func (p *Pages) add(l lang.Language, path, template, markdown string, dataOf func() (any, error)) {
	html := sync.OnceValues(func() (*cache.Entry, error) {
		data, err := dataOf()
		if err != nil {
			return nil, err
		}
		content := p.Content(l, path, page.Head{}, data)
		content.Markdown = page.MarkdownPath(path)
		return templates.Entry(template, content, page.Caching)
	})
	text := textEntry(page.MarkdownType, markdown)
	p.documents[l][path], p.documents[l][page.MarkdownPath(path)] = document{html, text}, document{text: text}
}

func textEntry(contentType, text string) *cache.Entry {
	return cache.NewEntry([]byte(text), http.Header{
		"Content-Type": {contentType}, "Cache-Control": {page.Caching}, "Vary": {page.Vary}, "X-Content-Type-Options": {"nosniff"},
	})
}

// ServeHTTP serves all pages, their Markdown versions, and the feed of the changelog.
func (p *Pages) ServeHTTP(w http.ResponseWriter, r *http.Request) { page.Handler(p.serve)(w, r) }

func (p *Pages) serve(w http.ResponseWriter, r *http.Request) error {
	documents := p.documents[lang.Of(r.Context())]
	found, ok := documents[r.URL.Path]
	trimmed, hasSlash := strings.CutSuffix(r.URL.Path, "/")
	switch {
	case hasSlash && documents[trimmed].html != nil:
		page.Redirect(w, r, (&url.URL{Path: trimmed, RawQuery: r.URL.RawQuery}).String(), http.StatusMovedPermanently)
		return nil
	case !ok:
		p.failGuide(w, r)
		return nil
	case found.html == nil || page.WantsMarkdown(r):
		return found.text.Write(w, r)
	}
	html, err := found.html()
	if err != nil {
		return err
	}
	p.SetSecurityHeaders(w.Header(), page.FormPolicy)
	return html.Write(w, r)
}

// failGuide suggests guides with a similar name.
func (p *Pages) failGuide(w http.ResponseWriter, r *http.Request) {
	l, suffix := lang.Of(r.Context()), ""
	if page.WantsMarkdown(r) {
		suffix = page.MarkdownSuffix
	}
	data := page.ErrorPage{Title: l.Text("Guide not found"), More: page.Suggestion{Path: guidesPath + suffix, Name: l.Text("All guides")}}
	for _, name := range text.Similar(strings.TrimSuffix(path.Base(r.URL.Path), page.MarkdownSuffix), GuideNames, 3) {
		g := p.guides[l][slices.Index(GuideNames, name)]
		data.Suggestions = append(data.Suggestions, page.Suggestion{Path: g.Path() + suffix, Name: g.Title})
	}
	p.SetSecurityHeaders(w.Header(), page.FormPolicy)
	w.Header().Set("Vary", "Accept")
	p.Fail(w, r, problem.New(problem.NotFound, "There is no page at this address."), p.Content(l, r.URL.Path, page.Head{}, nil), data)
}
