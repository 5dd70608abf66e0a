// Package apidocs serves the pages on which people try the API: the GraphQL
// explorer (GraphiQL) and the REST reference (Scalar), and the same as texts for
// language models.
package apidocs

import (
	"context"
	"embed"
	"encoding/json"
	"html/template"
	"io/fs"
	"net/http"
	"slices"
	"strings"
	"time"

	jsonv2 "github.com/go-json-experiment/json"

	"palmares/internal/core/cache"
	"palmares/internal/core/lang"
	"palmares/internal/core/limiter"
	"palmares/internal/core/problem"
	"palmares/internal/transport/downloads"
	"palmares/internal/transport/saved"
	"palmares/internal/web/page"
	"palmares/internal/web/prose"
	"palmares/rest"
)

// Paths of the pages.
const (
	ExplorerPath  = "/explorer"
	ReferencePath = "/docs"
	MarkdownPath  = "/docs.md"
	LLMsPath      = "/llms.txt"
	LLMsFullPath  = "/llms-full.txt"
	SchemaPath    = "/explorer/schema.graphql"
	CostPath      = "/explorer/cost"
)

// publicName is in the URLs of the assets and in the entity tags of the pages. It is
// older than the name of this package, and changing it would change all of them.
const publicName = "workbench"

// builtFiles are the files that `make assets` builds. Without them, there is only
// a README, and the pages show plain lists instead.
//
//go:embed built
var builtFiles embed.FS

//go:embed assets templates
var assets embed.FS

// Assets are the style of the pages before GraphiQL and Scalar are loaded.
var Assets = page.MustAssets(assets, "assets")

var style = []string{Assets.Path(publicName + ".css")}

var templates = page.NewTemplates(assets, "templates", func(l lang.Language) template.FuncMap {
	return template.FuncMap{
		"size": func(bytes int64) string { return formatSize(l, bytes) }, "fileList": func() string { return downloads.IndexPath }, "rows": func(n int64) string { return l.Number(int(n)) },
	}
})

// Config configures the pages.
type Config struct {
	page.Service
	Schema     string           // GraphQL schema
	Document   string           // path of the OpenAPI document
	Operations []rest.Operation // of the REST paths
	Objects    []rest.Object    // of their responses
	Errors     []rest.Field     // their statuses
	Limits     string           // of a GraphQL request, in words
	Guides     []*prose.Guide
	// Samples returns examples from the current release.
	Samples func(context.Context) (*rest.Samples, error)
	// Run executes a query and returns its result as JSON.
	Run   func(ctx context.Context, query string) ([]byte, error)
	Cache *cache.Cache
	// Explain returns the GraphQL operation and variables of a REST request.
	Explain func(target string) (query string, variables map[string]any, err error)
	// Cost returns the cost of a query and its limit.
	Cost func(ctx context.Context, query string, variables map[string]any) (cost, limit int, err error)
	// Key returns an API key of the signed-in user, or "".
	Key func(*http.Request) string
}

// Pages serves the explorer, the reference and the texts.
type Pages struct {
	Config
	assets *page.Assets
	built  map[string]string // URLs of built files by name; empty if `make assets` was not run
	schema *cache.Entry
	costs  *limiter.Rate[struct{}] // of the server
}

// New returns the pages with the built files of this binary.
func New(cfg Config) *Pages { return newPages(cfg, builtFiles) }

func newPages(cfg Config, files fs.FS) *Pages {
	assets := page.MustBuilt(files, "built", publicName)
	return &Pages{
		Config: cfg, assets: assets, built: readManifest(files, assets), costs: &limiter.Rate[struct{}]{Limit: costsPerSecond, Window: time.Second, Now: time.Now},
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

// ServeHTTP serves the paths above, and the assets of all pages of the service.
func (p *Pages) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch path := r.URL.Path; path {
	case ExplorerPath:
		p.handle(w, r, p.showExplorer)
	case ReferencePath:
		p.handle(w, r, p.showReference)
	case SchemaPath:
		p.handle(w, r, p.schema.Write)
	case CostPath:
		p.showCost(w, r)
	case MarkdownPath, explorerText, LLMsPath, LLMsFullPath:
		p.handle(w, r, func(w http.ResponseWriter, r *http.Request) error { return p.showText(w, r, path) })
	default:
		page.ServeAssets(page.SharedAssets, Assets, p.assets).ServeHTTP(w, r)
	}
}

func (p *Pages) handle(w http.ResponseWriter, r *http.Request, serve func(http.ResponseWriter, *http.Request) error) {
	p.SetSecurityHeaders(w.Header(), page.BasePolicy)
	page.Handler(func(w http.ResponseWriter, r *http.Request) error {
		err := serve(w, r)
		if err != nil && problem.Of(err).Code == problem.Internal {
			p.Log.ErrorContext(r.Context(), "page failed", "path", r.URL.Path, "cause", err, "request_id", problem.RequestID(r.Context()))
		}
		return err
	})(w, r)
}

// appPolicy is the Content-Security-Policy of GraphiQL and Scalar. Both, and
// Monaco, set inline styles from their scripts and have small images as data URLs
// in their stylesheets.
const appPolicy = "default-src 'none'; script-src 'self'; connect-src 'self'; worker-src 'self'; font-src 'self'; manifest-src 'self'; img-src 'self' data:; " +
	"style-src 'self' 'unsafe-inline'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// Cost estimates are free, so that the explorer can show them while someone types.
// These limits bound the CPU time that they take.
const (
	costsPerSecond = 20
	maxCostBody    = 100_000
)

// showCost returns the cost of a query without running it.
func (p *Pages) showCost(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Content-Type", "application/json")
	if !p.costs.Take(struct{}{}, 1) {
		problem.Write(w, problem.New(problem.TooMany, "Too many cost estimates. Try again in a second.").Wait(time.Second))
		return
	}
	var request struct {
		Query     string         `json:"query"`
		Variables map[string]any `json:"variables"`
	}
	decoder := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxCostBody))
	decoder.UseNumber()
	if err := decoder.Decode(&request); err != nil {
		problem.Write(w, problem.New(problem.BadInput, "The body must be a JSON object with a query and its variables, of at most %d bytes.", maxCostBody))
		return
	}
	var response struct {
		Cost  int    `json:"cost"`
		Limit int    `json:"limit"`
		Error string `json:"error,omitempty"` // why it cannot be run
	}
	var err error
	if response.Cost, response.Limit, err = p.Cost(r.Context(), request.Query, request.Variables); err != nil {
		response.Error = problem.Of(err).Message
	}
	_ = json.NewEncoder(w).Encode(response) // fails only if the client has disconnected
}

// app is what the script of a page loads on demand: GraphiQL or Scalar.
type app struct {
	Script string `json:"script"`
	Style  string `json:"style"`
}

func (p *Pages) app(name string) app { return app{p.built[name+".js"], p.built[name+".css"]} }

// caching is that of both pages: private, because signed-in users get their key.
const caching = "private, no-cache"

func (p *Pages) showReference(w http.ResponseWriter, r *http.Request) error {
	if page.WantsMarkdown(r) {
		return p.showText(w, r, MarkdownPath)
	}
	if len(p.built) > 0 {
		p.SetSecurityHeaders(w.Header(), appPolicy)
	}
	if key := p.Key(r); key != "" && len(p.built) > 0 {
		samples, err := p.Samples(r.Context())
		if err != nil {
			samples = &rest.Samples{}
		}
		return p.showWithKey(w, "reference", p.referencePage(lang.Of(r.Context()), p.operationsWith(samples), key))
	}
	return p.withSamples(w, r, ReferencePath+" "+string(lang.Of(r.Context())), func(_ context.Context, operations []rest.Operation, _ *rest.Samples) (*cache.Entry, error) {
		return templates.Entry("reference", p.referencePage(lang.Of(r.Context()), operations, ""), caching)
	})
}

// withSamples sends a document with example requests. It is rendered once per
// release. If the release cannot be read, the examples are from the demo catalog.
func (p *Pages) withSamples(w http.ResponseWriter, r *http.Request, name string, render func(context.Context, []rest.Operation, *rest.Samples) (*cache.Entry, error)) error {
	response, err := p.Cache.Get(r.Context(), cache.Key{Operation: publicName + " " + name}, func(ctx context.Context) (*cache.Entry, int, error) {
		samples, err := p.Samples(ctx)
		if err != nil {
			return nil, 0, err
		}
		entry, err := render(ctx, p.operationsWith(samples), samples)
		return entry, samples.Release, err
	})
	entry := response.Entry
	if err != nil {
		if entry, err = render(r.Context(), p.Operations, &rest.Samples{}); err != nil {
			return err
		}
	}
	return entry.Write(w, r)
}

//go:embed examples/*.graphql
var exampleFiles embed.FS

// Example is an example query of the explorer. Its texts are messages.
type Example struct {
	Name        string `json:"-"` // name of its file, without the number
	Title       string `json:"-"`
	Description string `json:"-"` // may be ""
	Query       string `json:"query"`
}

// Examples are all example queries, in the order of their file names.
var Examples = readExamples(exampleFiles, "examples")

// readExamples takes the title and the description from the comment that each file
// starts with.
func readExamples(from embed.FS, folder string) (all []Example) {
	names, err := fs.Glob(from, folder+"/*.graphql")
	if err != nil {
		panic(err)
	}
	for _, name := range names {
		text, err := from.ReadFile(name)
		if err != nil {
			panic(err)
		}
		title, description := saved.Comment(string(text))
		_, file, _ := strings.Cut(strings.TrimSuffix(name, ".graphql"), "-")
		all = append(all, Example{file, title, description, string(text)})
	}
	return all
}

// explorer is the data of the explorer, and of its script.
type explorer struct {
	Query      string            `json:"query"` // to open, or ""
	Variables  string            `json:"variables"`
	Key        string            `json:"key"` // the account's key, or ""
	Base       string            `json:"base"`
	Schema     string            `json:"schema"`
	Editor     app               `json:"editor"`
	Workers    map[string]string `json:"workers"`
	Examples   []Example         `json:"examples"`
	Operations []rest.Operation  `json:"operations"`
	CostPath   string            `json:"costPath"`
	Note       string            `json:"-"` // what is wrong with the query to open, or ""
}

// showExplorer opens the query in the URL without running it.
func (p *Pages) showExplorer(w http.ResponseWriter, r *http.Request) error {
	if page.WantsMarkdown(r) {
		return p.showText(w, r, explorerText)
	}
	if len(p.built) == 0 {
		content := p.Content(lang.Of(r.Context()), ExplorerPath, page.Head{Styles: style}, struct{ Schema, Path string }{p.Schema, SchemaPath})
		return templates.Send(w, r, "schema", content, caching)
	}
	isDownload := func(o rest.Operation) bool { return o.Query == "" }
	e := explorer{
		Base: p.PublicURL, Schema: SchemaPath, Operations: slices.DeleteFunc(slices.Clone(p.Operations), isDownload), CostPath: CostPath, Editor: p.app("graphiql"),
		Workers: map[string]string{
			"editor": p.built["editor.worker.js"], "json": p.built["json.worker.js"], "graphql": p.built["graphql.worker.js"],
		},
	}
	p.SetSecurityHeaders(w.Header(), appPolicy)
	e.Query, e.Variables, e.Note = p.queryToOpen(r)
	e.Key = p.Key(r)
	head := page.Head{Wide: true, Styles: style, Scripts: []string{p.built["explorer.js"]}}
	l := lang.Of(r.Context())
	for _, example := range Examples {
		title := l.Text(lang.Message(example.Title))
		e.Examples = append(e.Examples, Example{Title: title, Query: strings.Replace(example.Query, example.Title, title, 1)})
	}
	content := p.Content(l, ExplorerPath, head, e)
	content.Markdown = explorerText
	if e.Key != "" {
		return p.showWithKey(w, "explorer", content)
	}
	return templates.Send(w, r, "explorer", content, caching)
}

// showWithKey sends a page with a key. It is not compressed: its size would leak
// the key to attackers who choose the query beside it (BREACH).
func (p *Pages) showWithKey(w http.ResponseWriter, name string, content page.Content) error {
	w.Header().Set("Cache-Control", "no-store")
	return templates.Write(w, http.StatusOK, name, content)
}

// queryToOpen returns the query and variables from the URL, given as such or as a
// REST path, and a note if something is wrong with them.
func (p *Pages) queryToOpen(r *http.Request) (query, variables, note string) {
	l, url := lang.Of(r.Context()), r.URL.Query()
	if target := url.Get("path"); target != "" {
		query, values, err := p.Explain(target)
		if err != nil {
			return "", "", l.Text("This path cannot be opened in the explorer.") + " " + problem.Of(err).Message
		}
		if len(values) > 0 {
			text, err := jsonv2.Marshal(values, jsonv2.Deterministic(true))
			if variables = string(text); err != nil {
				panic(err) // strings and finite numbers can be encoded
			}
		}
		for _, o := range p.Operations {
			if o.Query == query && o.Deprecated != "" {
				note = l.Text("This path is deprecated.") + " " + o.Deprecated
			}
		}
		return query, variables, note
	}
	if variables = url.Get("variables"); variables != "" && !json.Valid([]byte(variables)) {
		note = l.Text("The variables in the URL are not valid JSON.")
	}
	return url.Get("query"), variables, note
}
