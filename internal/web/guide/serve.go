package guide

import (
	"net/http"
	"net/url"
	"path"
	"strings"

	"palmares/internal/core/cache"
	"palmares/internal/core/problem"
	"palmares/internal/core/text"
	"palmares/internal/web/page"
)

const (
	root     = "/guides"
	llms     = "/llms.txt"
	llmsFull = "/llms-full.txt"

	caching  = "public, max-age=0, s-maxage=60, stale-while-revalidate=3600"
	markdown = "text/markdown; charset=utf-8"
)

// Config is what the guides tell of the server that they are read on.
type Config struct {
	PublicURL   string
	ServiceName string
	Credit      string
	Sections    []Section // what llms.txt lists beside the guides
}

// Guides serves every guide, rendered once.
type Guides struct {
	cfg     Config
	all     []*guide
	answers map[string]answer // by path
}

// answer is what an address holds: a page, the same as text, or both.
type answer struct{ page, text *cache.Entry }

// New reads and renders the guides.
func New(cfg Config) (*Guides, error) {
	all, err := read(cfg)
	if err != nil {
		return nil, err
	}
	g := &Guides{cfg: cfg, all: all, answers: map[string]answer{}}
	if err := g.addIndex(); err != nil {
		return nil, err
	}
	for i := range all {
		if err := g.addGuide(i); err != nil {
			return nil, err
		}
	}
	g.answers[llms] = answer{text: g.textEntry(g.llms(), "text/plain; charset=utf-8")}
	g.answers[llmsFull] = answer{text: g.textEntry(g.llmsFull(), "text/plain; charset=utf-8")}
	return g, nil
}

// Register adds every address of the guides.
func (g *Guides) Register(mux *http.ServeMux) {
	for _, path := range []string{root, root + "/", root + ".md", llms, llmsFull} {
		mux.Handle(path, g)
	}
}

// ServeHTTP answers with a guide, as the caller likes it.
func (g *Guides) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if err := g.serve(w, r); err != nil {
		problem.Write(w, err)
	}
}

func (g *Guides) serve(w http.ResponseWriter, r *http.Request) error {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		return problem.New(problem.WrongMethod, "The method is not allowed: use GET.")
	}
	found, known := g.answers[r.URL.Path]
	slashless, slashed := strings.CutSuffix(r.URL.Path, "/")
	switch {
	case slashed && g.answers[slashless].page != nil:
		http.Redirect(w, r, (&url.URL{Path: slashless, RawQuery: r.URL.RawQuery}).String(), http.StatusMovedPermanently)
		return nil
	case !known:
		return g.missing(w, r)
	case found.page == nil || found.text != nil && page.WantsMarkdown(r.Header["Accept"]):
		return found.text.Write(w, r)
	}
	return found.page.Write(w, r)
}

// missing says that there is no such guide, and which may be meant.
func (g *Guides) missing(w http.ResponseWriter, r *http.Request) error {
	wanted := strings.TrimSuffix(path.Base(r.URL.Path), ".md")
	var guesses []*guide
	for _, name := range text.Similar(wanted, order, 3) {
		guesses = append(guesses, g.byName(name))
	}
	header := w.Header()
	header.Set("Cache-Control", "no-store")
	header.Set("Vary", "Accept")
	if strings.HasSuffix(r.URL.Path, ".md") || page.WantsMarkdown(r.Header["Accept"]) {
		header.Set("Content-Type", markdown)
		header.Set("X-Content-Type-Options", "nosniff")
		w.WriteHeader(http.StatusNotFound)
		_, _ = w.Write([]byte(g.missingText(guesses)))
		return nil
	}
	page.Guard(header, policy, g.secure())
	return pages.Write(w, http.StatusNotFound, "missing", g.content(r.URL.Path, missingPage{guesses, g.all}))
}

func (g *Guides) byName(name string) *guide {
	for _, one := range g.all {
		if one.Name == name {
			return one
		}
	}
	return nil
}
