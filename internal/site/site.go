// Package site is the catalog as pages for people: what programs get from
// REST, readable. Each page is a fixed operation on the one executor, and its
// answer is kept as theirs are; nothing here reads a database.
package site

import (
	"embed"
	"fmt"
	"log/slog"
	"net/http"
	"strings"

	"palmares/graph"
	"palmares/internal/cache"
	"palmares/internal/page"
	"palmares/internal/problem"
)

// Config is what the pages need of the rest of the program.
type Config struct {
	PublicURL   string
	ServiceName string
	Credit      string
	Executor    *graph.Executor
	Answers     *cache.Cache
	Log         *slog.Logger
	Others      []string // paths of pages that are not ours, for who looks for one
}

// Site serves the pages.
type Site struct {
	Config
	secure bool // reached over https
	pages  map[string]*shown
	nearby *graph.Operation
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
	s := &Site{Config: cfg, secure: strings.HasPrefix(cfg.PublicURL, "https://"), pages: map[string]*shown{}, nearby: operations["nearby"]}
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
	for _, r := range routes {
		shown := s.pages[r.name]
		mux.HandleFunc(r.path, func(w http.ResponseWriter, req *http.Request) {
			s.guard(w.Header())
			if err := s.serve(w, req, shown); err != nil {
				s.fail(w, req, shown, err)
			}
		})
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		s.guard(w.Header())
		s.fail(w, r, nil, problem.New(problem.NotFound, "There is no page at this address."))
	})
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
	entry, err := s.Answers.Get(r.Context(), asked.question(), s.answerTo(asked))
	if err != nil {
		return err
	}
	return entry.Write(w, r)
}
