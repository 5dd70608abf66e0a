// Package workbench is where people try the API: the explorer of GraphQL and
// the reference of REST, two other people's programs within our own pages. It
// shows what it is given and answers no question about the catalog itself.
package workbench

import (
	"embed"
	"encoding/json"
	"io/fs"
	"log/slog"
	"net/http"
	"strings"

	"palmares/internal/cache"
	"palmares/internal/page"
	"palmares/internal/problem"
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

var pages = page.MustTemplates(templateFiles, "templates", nil)

// Config is what the workbench needs of the rest of the program.
type Config struct {
	PublicURL   string
	ServiceName string
	Credit      string
	Schema      string      // GraphQL's, as text
	Document    string      // where the OpenAPI document is
	Operations  []Operation // what the paths of REST stand for
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
	Example    string      `json:"-"` // a path to try
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
	text   *cache.Entry // the reference as Markdown
}

// New makes the pages of what was built into the program.
func New(cfg Config) *Workbench { return newWorkbench(cfg, builtFiles) }

func newWorkbench(cfg Config, files fs.FS) *Workbench {
	assets := page.MustBuilt(files, "built", "workbench")
	return &Workbench{
		text: cache.NewEntry(markdownOf(cfg), http.Header{
			"Content-Type":           {"text/markdown; charset=utf-8"},
			"Cache-Control":          {"no-cache"},
			"Vary":                   {"Accept, Accept-Encoding"},
			"X-Content-Type-Options": {"nosniff"},
		}),
		Config: cfg,
		secure: strings.HasPrefix(cfg.PublicURL, "https://"),
		assets: assets,
		built:  readManifest(files, assets),
		schema: cache.NewEntry([]byte(cfg.Schema), http.Header{
			"Content-Type":           {"text/plain; charset=utf-8"},
			"Cache-Control":          {"no-cache"},
			"Vary":                   {"Accept-Encoding"},
			"X-Content-Type-Options": {"nosniff"},
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
	mux.HandleFunc("GET "+ExplorerPath, w.showExplorer)
	mux.HandleFunc("GET "+ReferencePath, w.showReference)
	mux.HandleFunc("GET "+SchemaPath, serveEntry(w.schema))
	mux.HandleFunc("GET "+MarkdownPath, serveEntry(w.text))
	mux.Handle("GET "+page.AssetsPath+"workbench/", page.ServeAssets(w.assets))
}

func serveEntry(entry *cache.Entry) http.HandlerFunc {
	return func(to http.ResponseWriter, r *http.Request) {
		if err := entry.Write(to, r); err != nil {
			problem.Write(to, err)
		}
	}
}

// policy lets the pages use what this host has, and nothing of any other. Styles
// within the page are allowed because Monaco, GraphiQL and Scalar set them from
// their scripts: a style alone cannot run anything. Monaco's and Scalar's small
// pictures are data within their stylesheets.
const policy = "default-src 'none'; script-src 'self'; connect-src 'self'; worker-src 'self'; font-src 'self'; img-src 'self' data:; " +
	"style-src 'self' 'unsafe-inline'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// show answers with a page.
func (w *Workbench) show(to http.ResponseWriter, r *http.Request, name string, head page.Head, data any) {
	allowed := policy
	if len(w.built) == 0 {
		allowed = page.Plain
	}
	page.Guard(to.Header(), allowed, w.secure)
	content := page.Content{Service: w.ServiceName, Credit: w.Credit, Here: r.URL.Path, Head: head, Data: data}
	if err := pages.Write(to, http.StatusOK, name, content); err != nil {
		w.Log.Error("a page could not be shown", "path", r.URL.Path, "cause", err, "request_id", problem.RequestID(r.Context()))
		problem.Write(to, problem.New(problem.Internal, "The page could not be shown."))
	}
}
