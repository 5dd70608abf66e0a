// Package site is the catalog as pages for people: what programs get from
// REST, readable. Each page is a fixed operation on the one executor, and its
// answer is kept as theirs are; nothing here reads a database.
package site

import (
	"embed"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"path"
	"strings"

	"palmares/graph"
	"palmares/internal/core/cache"
	"palmares/internal/core/problem"
	"palmares/internal/web/page"
)

// Config is what the pages need of the rest of the program.
type Config struct {
	PublicURL   string
	ServiceName string
	Credit      string
	Executor    *graph.Executor
	Answers     *cache.Cache
	Log         *slog.Logger
	Trusted     []netip.Prefix // proxies that say who is behind them
	Others      []string       // paths of pages that are not ours, for who looks for one
}

// Site serves the pages.
type Site struct {
	Config
	secure     bool // reached over https
	operations map[string]*graph.Operation
	pages      map[string]*shown
	mux        *http.ServeMux // with all pages there are, not just ours
	names      names
	slots      *slots
}

// shown is a page with its operation.
type shown struct {
	route
	operation *graph.Operation
}

//go:embed queries/*.graphql
var queries embed.FS

//go:embed assets
var assetFiles embed.FS

// Assets are the style of these pages.
var Assets = page.MustAssets(assetFiles, "assets")

// New checks the pages' operations against the schema. An error is a mistake
// in the program.
func New(cfg Config) (*Site, error) {
	operations, err := graph.LoadOperations(queries)
	if err != nil {
		return nil, err
	}
	s := &Site{Config: cfg, secure: strings.HasPrefix(cfg.PublicURL, "https://"), operations: operations, pages: map[string]*shown{}, slots: newSlots()}
	s.names.read = s.readNames
	for _, r := range routes {
		operation := operations[r.name]
		if operation == nil {
			return nil, fmt.Errorf("%s: there is no operation %q in queries/", r.path, r.name)
		}
		s.pages[r.name] = &shown{r, operation}
	}
	return s, nil
}

// Register adds the pages, and the one for every path that nobody has.
func (s *Site) Register(mux *http.ServeMux) {
	s.mux = mux
	for _, r := range routes {
		shown := s.pages[r.name]
		mux.HandleFunc(r.path, func(w http.ResponseWriter, req *http.Request) {
			s.guard(w.Header())
			if err := s.serve(w, req, shown); err != nil {
				s.fail(w, req, shown, err)
			}
		})
	}
	mux.HandleFunc("/robots.txt", serveRobots)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		s.guard(w.Header())
		if without := withoutSlash(mux, r); without != "" {
			http.Redirect(w, r, without, http.StatusMovedPermanently)
			return
		}
		s.fail(w, r, nil, problem.New(problem.NotFound, "There is no page at this address."))
	})
}

// withoutSlash is where a page is that was asked for with a slash behind its
// name, or "".
func withoutSlash(mux *http.ServeMux, r *http.Request) string {
	name := path.Clean(r.URL.Path)
	if name == r.URL.Path || r.Method != http.MethodGet && r.Method != http.MethodHead || patternOf(mux, r, name) == "" {
		return ""
	}
	return (&url.URL{Path: name, RawQuery: r.URL.RawQuery}).String()
}

// patternOf is that of the page at a path, or "" where nobody has one.
func patternOf(mux *http.ServeMux, r *http.Request, path string) string {
	other := r.Clone(r.Context())
	other.URL = &url.URL{Path: path}
	if _, pattern := mux.Handler(other); !strings.HasSuffix(pattern, "/") {
		return pattern
	}
	return ""
}

// serveRobots keeps crawlers from what is nobody's to read but their owner's.
func serveRobots(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "public, max-age=86400")
	_, _ = w.Write([]byte("User-agent: *\nDisallow: /account\nDisallow: /login\n"))
}

func (s *Site) guard(header http.Header) {
	page.Guard(header, page.Plain+"; form-action 'self'", s.secure)
}

func (s *Site) serve(w http.ResponseWriter, r *http.Request, shown *shown) error {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		return problem.New(problem.WrongMethod, "This page is for reading: it does nothing with %s.", r.Method)
	}
	asked, err := shown.read(r)
	if err != nil {
		return err
	}
	entry, err := s.Answers.Get(s.withVisitor(r), asked.question(), s.answerTo(asked))
	if err != nil {
		return err
	}
	return entry.Write(w, r)
}
