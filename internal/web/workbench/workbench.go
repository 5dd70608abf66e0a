// Package workbench serves the pages on which people try the API: the GraphQL
// explorer (GraphiQL) and the REST reference (Scalar).
package workbench

import (
	"bytes"
	"context"
	"embed"
	"encoding/json"
	"io/fs"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"text/template"

	"palmares/internal/core/cache"
	"palmares/internal/core/params"
	"palmares/internal/core/problem"
	"palmares/internal/web/page"
)

// Paths of the pages.
const (
	ExplorerPath  = "/explorer"
	ReferencePath = "/docs"
	MarkdownPath  = "/docs.md"
	SchemaPath    = "/explorer/schema.graphql"
)

// builtFiles are the files that `make assets` builds. Without them, there is only
// a README, and the pages show plain lists instead.
//
//go:embed built
var builtFiles embed.FS

//go:embed assets templates
var files embed.FS

// Assets are the style of the pages without built files.
var Assets = page.MustAssets(files, "assets")

var (
	templates = page.MustTemplates(files, "templates", nil)
	markdown  = template.Must(template.ParseFS(files, "templates/reference.md"))
)

// Config configures the workbench.
type Config struct {
	page.Service
	Schema     string             // GraphQL schema
	Document   string             // path of the OpenAPI document
	Operations []params.Operation // of the REST paths
	// Samples returns example requests for the current release by REST path,
	// and the release, or 0 for none.
	Samples func(context.Context) (samples map[string]string, release int, err error)
	Cache   *cache.Cache
	// Explain returns the GraphQL operation and variables of a REST request.
	Explain func(target string) (query string, variables map[string]any, err error)
	// Key returns an API key of the signed-in user, or "".
	Key func(*http.Request) string
	Log *slog.Logger
}

// Workbench serves the pages.
type Workbench struct {
	Config
	assets *page.Assets
	built  map[string]string // URLs of built files by name; empty without `make assets`
	schema *cache.Entry
}

// New returns the pages with the built files of this binary.
func New(cfg Config) *Workbench { return newWorkbench(cfg, builtFiles) }

func newWorkbench(cfg Config, files fs.FS) *Workbench {
	assets := page.MustBuilt(files, "built", "workbench")
	return &Workbench{
		Config: cfg, assets: assets, built: readManifest(files, assets),
		schema: cache.NewEntry([]byte(cfg.Schema), http.Header{
			"Content-Type": {"text/plain; charset=utf-8"}, "Cache-Control": {"no-cache"}, "Vary": {"Accept-Encoding"},
		}),
	}
}

// readManifest returns the URLs of the built files by their names without a
// hash.
func readManifest(files fs.FS, assets *page.Assets) map[string]string {
	text, err := fs.ReadFile(files, "built/manifest.json")
	if err != nil {
		return nil
	}
	var built map[string]string
	if err := json.Unmarshal(text, &built); err != nil {
		panic(err)
	}
	for name, file := range built {
		built[name] = assets.Path(file)
	}
	return built
}

// Register adds the pages and their assets.
func (w *Workbench) Register(mux *http.ServeMux) {
	mux.HandleFunc(ExplorerPath, w.handle(w.showExplorer))
	mux.HandleFunc(ReferencePath, w.handle(w.showReference))
	mux.HandleFunc(SchemaPath, w.handle(w.schema.Write))
	mux.HandleFunc(MarkdownPath, w.handle(w.showMarkdown))
	mux.Handle("GET "+page.AssetsPath+"workbench/", page.ServeAssets(w.assets))
}

func (w *Workbench) handle(serve func(http.ResponseWriter, *http.Request) error) http.HandlerFunc {
	return func(rw http.ResponseWriter, r *http.Request) {
		w.SetSecurityHeaders(rw.Header(), page.BasePolicy)
		err := page.CheckMethod(rw, r)
		if err == nil {
			err = serve(rw, r)
		}
		if err == nil {
			return
		}
		if p := problem.Of(err); p.Code == problem.Internal {
			w.Log.ErrorContext(r.Context(), "page failed", "path", r.URL.Path, "cause", err, "request_id", problem.RequestID(r.Context()))
		}
		problem.Write(rw, err)
	}
}

// appPolicy is the Content-Security-Policy of GraphiQL and Scalar. Both, and
// Monaco, set inline styles from their scripts and have small images as data URLs
// in their stylesheets.
const appPolicy = "default-src 'none'; script-src 'self'; connect-src 'self'; worker-src 'self'; font-src 'self'; img-src 'self' data:; " +
	"style-src 'self' 'unsafe-inline'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// showApp sends a page with GraphiQL or Scalar.
func (w *Workbench) showApp(rw http.ResponseWriter, r *http.Request, name string, content page.Content, caching, vary string) error {
	entry, err := templates.Entry(name, content, caching, vary)
	if err != nil {
		return err
	}
	w.SetSecurityHeaders(rw.Header(), appPolicy)
	return entry.Write(rw, r)
}

// reference is the data of the reference's script.
type reference struct {
	Document string `json:"document"`
}

const referenceCaching, referenceVary = "no-cache", "Accept, Accept-Encoding"

func (w *Workbench) showReference(rw http.ResponseWriter, r *http.Request) error {
	switch {
	case page.WantsMarkdown(r.Header["Accept"]):
		return w.showMarkdown(rw, r)
	case len(w.built) == 0:
		return w.showPaths(rw, r)
	}
	head := page.Head{Wide: true, Styles: []string{w.built["reference.css"]}, Scripts: []string{w.built["jitless.js"], w.built["reference.js"]}}
	content := w.Content(ReferencePath, head, reference{w.Document})
	content.Markdown = MarkdownPath
	return w.showApp(rw, r, "reference", content, referenceCaching, referenceVary)
}

// showPaths lists the paths if Scalar is not built in.
func (w *Workbench) showPaths(rw http.ResponseWriter, r *http.Request) error {
	return w.withSamples(rw, r, ReferencePath, func(operations []params.Operation) (*cache.Entry, error) {
		content := w.Content(ReferencePath, page.Head{}, struct {
			Operations []params.Operation
			Document   string
		}{operations, w.Document})
		content.Markdown = MarkdownPath
		return templates.Entry("paths", content, referenceCaching, referenceVary)
	})
}

func (w *Workbench) showMarkdown(rw http.ResponseWriter, r *http.Request) error {
	return w.withSamples(rw, r, MarkdownPath, func(operations []params.Operation) (*cache.Entry, error) {
		data := w.Config
		data.Operations = operations
		var text bytes.Buffer
		err := markdown.Execute(&text, data)
		return cache.NewEntry(text.Bytes(), http.Header{
			"Content-Type": {"text/markdown; charset=utf-8"}, "Cache-Control": {referenceCaching}, "Vary": {referenceVary},
		}), err
	})
}

// withSamples sends a document with example requests. It is rendered once per
// release. If the release cannot be read, the examples are from the demo catalog.
func (w *Workbench) withSamples(rw http.ResponseWriter, r *http.Request, name string, render func([]params.Operation) (*cache.Entry, error)) error {
	response, err := w.Cache.Get(r.Context(), cache.Key{Operation: "workbench " + name}, func(ctx context.Context) (*cache.Entry, int, error) {
		samples, release, err := w.Samples(ctx)
		if err != nil {
			return nil, 0, err
		}
		operations := slices.Clone(w.Operations)
		for i := range operations {
			operations[i].Example = samples[operations[i].Path]
		}
		entry, err := render(operations)
		return entry, release, err
	})
	entry := response.Entry
	if err != nil {
		if entry, err = render(w.Operations); err != nil {
			return err
		}
	}
	return entry.Write(rw, r)
}

//go:embed examples/*.graphql
var exampleFiles embed.FS

// Example is an example query of the explorer.
type Example struct {
	Name  string `json:"-"` // of its file, without the number
	Title string `json:"-"`
	Query string `json:"query"`
}

// Examples are all example queries, in the order of their file names.
var Examples = readExamples()

// readExamples takes the title from the comment in the first line of each file.
func readExamples() (all []Example) {
	names, err := fs.Glob(exampleFiles, "examples/*.graphql")
	if err != nil {
		panic(err)
	}
	for _, name := range names {
		text, err := exampleFiles.ReadFile(name)
		if err != nil {
			panic(err)
		}
		title, _, _ := strings.Cut(string(text), "\n")
		_, file, _ := strings.Cut(strings.TrimSuffix(name, ".graphql"), "-")
		all = append(all, Example{Name: file, Title: strings.TrimPrefix(title, "# "), Query: string(text)})
	}
	return all
}

// explorer is the data of the explorer's script.
type explorer struct {
	Query      string             `json:"query"` // to open, or ""
	Variables  string             `json:"variables"`
	Headers    string             `json:"headers"`
	Base       string             `json:"base"`
	Schema     string             `json:"schema"`
	Workers    map[string]string  `json:"workers"`
	Examples   []Example          `json:"examples"`
	Operations []params.Operation `json:"operations"`
}

// showExplorer opens the query in the URL without running it.
func (w *Workbench) showExplorer(rw http.ResponseWriter, r *http.Request) error {
	const caching, vary = "private, no-cache", "Accept-Encoding" // private, because signed-in users get their key
	if len(w.built) == 0 {
		content := w.Content(ExplorerPath, page.Head{Styles: []string{Assets.Path("schema.css")}}, struct{ Schema, Path string }{w.Schema, SchemaPath})
		entry, err := templates.Entry("schema", content, caching, vary)
		if err != nil {
			return err
		}
		return entry.Write(rw, r)
	}
	e := explorer{
		Base: w.PublicURL, Schema: SchemaPath, Examples: Examples, Operations: w.Operations,
		Workers: map[string]string{
			"editor": w.built["editor.worker.js"], "json": w.built["json.worker.js"], "graphql": w.built["graphql.worker.js"],
		},
	}
	var note string
	e.Query, e.Variables, note = w.queryToOpen(r)
	key := w.Key(r)
	if key != "" {
		e.Headers = indented(map[string]string{"Authorization": "Bearer " + key})
	}
	head := page.Head{Wide: true, Styles: []string{w.built["explorer.css"]}, Scripts: []string{w.built["explorer.js"]}}
	content := w.Content(ExplorerPath, head, struct {
		Examples     []Example
		Schema, Note string
		Script       explorer
	}{Examples, SchemaPath, note, e})
	if key == "" {
		return w.showApp(rw, r, "explorer", content, caching, vary)
	}
	// A page with a key is not compressed: its size would leak the key to
	// attackers who choose the query beside it (BREACH).
	w.SetSecurityHeaders(rw.Header(), appPolicy)
	rw.Header().Set("Cache-Control", "no-store")
	return templates.Write(rw, http.StatusOK, "explorer", content)
}

// queryToOpen returns the query and variables from the URL, given as such or as a
// REST path, and a note if something is wrong with them.
func (w *Workbench) queryToOpen(r *http.Request) (query, variables, note string) {
	url := r.URL.Query()
	if target := url.Get("path"); target != "" {
		query, values, err := w.Explain(target)
		if err != nil {
			return "", "", "This path cannot be opened in the explorer. " + problem.Of(err).Message
		}
		if len(values) > 0 {
			variables = indented(values)
		}
		for _, o := range w.Operations {
			if o.Query == query && o.Deprecated != "" {
				note = "This path is deprecated. " + o.Deprecated
			}
		}
		return query, variables, note
	}
	query, variables = url.Get("query"), url.Get("variables")
	var formatted bytes.Buffer
	switch {
	case variables == "":
	case json.Indent(&formatted, []byte(variables), "", "  ") != nil:
		note = "The variables in the URL are not valid JSON."
	default:
		variables = formatted.String()
	}
	return query, variables, note
}

// indented returns a value as indented JSON.
func indented(value any) string {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false) // the template escapes
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(value); err != nil {
		panic(err) // strings and finite numbers can be encoded
	}
	return strings.TrimRight(text.String(), "\n")
}
