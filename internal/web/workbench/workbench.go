// Package workbench is where people try the API: the explorer of GraphQL and
// the reference of REST, two other people's programs within our own pages. It
// shows what it is given and answers no question about the catalog itself.
package workbench

import (
	"context"
	"embed"
	"encoding/json"
	"io/fs"
	"log/slog"
	"net/http"
	"strings"

	"palmares/internal/core/cache"
	"palmares/internal/core/problem"
	"palmares/internal/web/page"
)

// Where the pages are.
const (
	ExplorerPath  = "/explorer"
	ReferencePath = "/docs"
	MarkdownPath  = "/docs.md"
	SchemaPath    = "/explorer/schema.graphql"
)

//go:embed templates
var templateFiles embed.FS

// What `make assets` builds, and else only a note that says so.
//
//go:embed built
var builtFiles embed.FS

//go:embed assets
var assetFiles embed.FS

// Assets are the style of pages that are built with Go alone.
var Assets = page.MustAssets(assetFiles, "assets")

var pages = page.MustTemplates(templateFiles, "templates", nil)

// Config is what the workbench needs of the rest of the program.
type Config struct {
	PublicURL   string
	ServiceName string
	Credit      string
	Schema      string      // GraphQL's, as text
	Document    string      // where the OpenAPI document is
	Operations  []Operation // what the paths of REST stand for
	// Samples are paths that the newest release answers, by those of the
	// operations, and that release; 0 for none.
	Samples func(context.Context) (samples map[string]string, release int, err error)
	Answers *cache.Cache // of the newest release
	// Explain is the operation, and its variables, that a path of REST with
	// its query stands for.
	Explain func(target string) (query string, variables map[string]any, err error)
	// Key is the API key to try things with of whoever is signed in, or "".
	Key func(*http.Request) string
	Log *slog.Logger
}

// Operation is a path of REST and the operation that it stands for.
type Operation struct {
	Path       string      `json:"path"` // with {slug} in it
	Summary    string      `json:"-"`
	Details    string      `json:"-"`
	Example    string      `json:"-"` // a path to try, of the demo catalog
	Query      string      `json:"query"`
	Parameters []Parameter `json:"parameters"`
	Keyed      bool        `json:"keyed"` // needs an API key
}

// Parameter is a part of a path and the variable of the same name.
type Parameter struct {
	Name        string `json:"name"`
	Description string `json:"-"`
	InPath      bool   `json:"inPath"`
	Preset      any    `json:"preset"` // what it is if it is not given
}

// Workbench serves the pages.
type Workbench struct {
	Config
	secure bool // reached over https
	assets *page.Assets
	built  map[string]string // addresses by what a file is; empty if nothing is built
	schema *cache.Entry
}

// New makes the pages of what was built into the program.
func New(cfg Config) *Workbench { return newWorkbench(cfg, builtFiles) }

func newWorkbench(cfg Config, files fs.FS) *Workbench {
	assets := page.MustBuilt(files, "built", "workbench")
	return &Workbench{
		Config: cfg,
		secure: strings.HasPrefix(cfg.PublicURL, "https://"),
		assets: assets,
		built:  readManifest(files, assets),
		schema: cache.NewEntry([]byte(cfg.Schema), http.Header{
			"Content-Type":  {"text/plain; charset=utf-8"},
			"Cache-Control": {"no-cache"},
			"Vary":          {"Accept-Encoding"},
		}),
	}
}

// readManifest tells which file is which, or nothing if none is built.
func readManifest(files fs.FS, assets *page.Assets) map[string]string {
	built := map[string]string{}
	text, err := fs.ReadFile(files, "built/manifest.json")
	if err != nil {
		return built
	}
	var names map[string]string
	if err := json.Unmarshal(text, &names); err != nil {
		panic(err) // it is embedded
	}
	for what, name := range names {
		built[what] = assets.Path(name)
	}
	return built
}

// Register adds the pages and what they need.
func (w *Workbench) Register(mux *http.ServeMux) {
	mux.HandleFunc(ExplorerPath, w.reading(w.showExplorer))
	mux.HandleFunc(ReferencePath, w.reading(w.showReference))
	mux.HandleFunc(SchemaPath, w.reading(w.schema.Write))
	mux.HandleFunc(MarkdownPath, w.reading(w.showMarkdown))
	mux.Handle("GET "+page.AssetsPath+"workbench/", page.ServeAssets(w.assets))
}

// reading guards what there is only to read.
func (w *Workbench) reading(answer func(http.ResponseWriter, *http.Request) error) http.HandlerFunc {
	return func(to http.ResponseWriter, r *http.Request) {
		page.Guard(to.Header(), page.Plain, w.secure)
		err := onlyReads(to, r)
		if err == nil {
			err = answer(to, r)
		}
		if err != nil {
			problem.Write(to, err)
		}
	}
}

func onlyReads(to http.ResponseWriter, r *http.Request) error {
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		return nil
	}
	to.Header().Set("Allow", "GET, HEAD")
	return problem.New(problem.WrongMethod, "The method is not allowed: use GET.")
}

// policy lets the pages use what this host has, and nothing of any other. Styles
// within the page are allowed because Monaco, GraphiQL and Scalar set them from
// their scripts: a style alone cannot run anything. Monaco's and Scalar's small
// pictures are data within their stylesheets.
const policy = "default-src 'none'; script-src 'self'; connect-src 'self'; worker-src 'self'; font-src 'self'; img-src 'self' data:; " +
	"style-src 'self' 'unsafe-inline'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// content is what the layout shows around a page.
func (w *Workbench) content(here string, head page.Head, data any) page.Content {
	return page.Content{Service: w.ServiceName, Credit: w.Credit, Here: here, Head: head, Data: data}
}

// render makes a page.
func (w *Workbench) render(ctx context.Context, name string, content page.Content) ([]byte, error) {
	body, err := pages.Render(name, content)
	if err != nil {
		w.Log.ErrorContext(ctx, "a page could not be shown", "path", content.Here, "cause", err, "request_id", problem.RequestID(ctx))
		return nil, problem.New(problem.Internal, "The page could not be shown.")
	}
	return body, nil
}

// entry is a page that is the same for all, to be packed and with a tag.
func (w *Workbench) entry(ctx context.Context, name string, content page.Content, caching, vary string) (*cache.Entry, error) {
	body, err := w.render(ctx, name, content)
	if err != nil {
		return nil, err
	}
	return cache.NewEntry(body, http.Header{
		"Content-Type":  {pageType},
		"Cache-Control": {caching},
		"Vary":          {vary},
	}), nil
}

// show answers with such a page.
func (w *Workbench) show(to http.ResponseWriter, r *http.Request, name string, content page.Content, caching, vary string) error {
	entry, err := w.entry(r.Context(), name, content, caching, vary)
	if err != nil {
		return err
	}
	w.allow(to.Header())
	return entry.Write(to, r)
}

// allow lets a page have what the programs in it need, if there are any.
func (w *Workbench) allow(header http.Header) {
	if len(w.built) > 0 {
		page.Guard(header, policy, w.secure)
	}
}

// showSecret answers with a page that holds a key: nobody keeps it. It is not
// packed, for the size of what is would tell of the key to who chooses the
// address beside it.
func (w *Workbench) showSecret(to http.ResponseWriter, r *http.Request, name string, content page.Content) error {
	body, err := w.render(r.Context(), name, content)
	if err != nil {
		return err
	}
	w.allow(to.Header())
	to.Header().Set("Content-Type", pageType)
	to.Header().Set("Cache-Control", "no-store")
	_, _ = to.Write(body) // whoever went away needs no page
	return nil
}

const pageType = "text/html; charset=utf-8"
