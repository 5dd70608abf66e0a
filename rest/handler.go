package rest

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	lru "github.com/hashicorp/golang-lru/v2"

	"palmares/auth"
	"palmares/graph"
	"palmares/internal/cache"
	"palmares/internal/problem"
)

// Config is what is told of the service.
type Config struct {
	PublicURL               string // where callers reach us
	ServiceName, ServiceURL string
	Credit                  string // the line that reuse of the data must show
}

// Handler serves every path under /api/.
type Handler struct {
	executor    *graph.Executor
	cache       *cache.Cache
	publicURL   string
	endpoints   []*endpoint
	whereabouts *graph.Operation
	itself      *endpoint // the document's own
	targets     *lru.Cache[target, *asked]
	openapi     *cache.Entry
}

// endpoint is a route that is ready to serve.
type endpoint struct {
	route
	segments  []string
	operation *graph.Operation
	arguments []argument
	counted   bool // it is a list: its answer tells how many there are
}

// NewHandler checks the table of routes against the schema. An error is a
// mistake in the program.
func NewHandler(cfg Config, executor *graph.Executor, answers *cache.Cache) (*Handler, error) {
	endpoints, operations, err := buildEndpoints()
	if err != nil {
		return nil, err
	}
	document, err := describe(endpoints, cfg)
	if err != nil {
		return nil, err
	}
	itself := &endpoint{segments: strings.Split(DocumentPath, "/")}
	targets, err := lru.New[target, *asked](keptTargets)
	if err != nil {
		return nil, err
	}
	return &Handler{
		targets: targets, executor: executor, cache: answers, publicURL: cfg.PublicURL, endpoints: append(endpoints, itself), whereabouts: operations["whereabouts"],
		itself:  itself,
		openapi: cache.NewEntry(document, headers()),
	}, nil
}

func buildEndpoints() ([]*endpoint, map[string]*graph.Operation, error) {
	operations, err := loadOperations()
	if err != nil {
		return nil, nil, err
	}
	var endpoints []*endpoint
	for _, r := range routes {
		operation := operations[r.query]
		if operation == nil {
			return nil, nil, fmt.Errorf("%s: there is no operation %q in queries/", r.path, r.query)
		}
		e := &endpoint{route: r, segments: strings.Split(r.path, "/"), operation: operation}
		variables := operation.Definition().VariableDefinitions
		for _, p := range r.parameters {
			variable := variables.ForName(p.name)
			if variable == nil {
				return nil, nil, fmt.Errorf("%s: the operation has no variable $%s", r.path, p.name)
			}
			a := argumentOf(p, variable)
			e.counted = e.counted || a.name == "page"
			e.arguments = append(e.arguments, a)
		}
		if len(e.arguments) != len(variables) {
			return nil, nil, fmt.Errorf("%s: has %d parameters, its operation %d variables", r.path, len(e.arguments), len(variables))
		}
		endpoints = append(endpoints, e)
	}
	return endpoints, operations, nil
}

const (
	cacheControl = "s-maxage=3600, stale-while-revalidate=86400"
	vary         = "Authorization, Accept-Encoding"

	// DocumentPath is where the OpenAPI document is.
	DocumentPath = "/api/v1/openapi.json"
)

// ServeHTTP answers with what a path says, or with the one form of error.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.ContentLength != 0 {
		w.Header().Set("Connection", "close") // nothing here takes a body: do not wait for one
	}
	err := h.serve(w, r)
	if err != nil && r.Context().Err() == nil {
		w.Header().Set("Vary", vary)
		problem.Write(w, err)
	}
}

func (h *Handler) serve(w http.ResponseWriter, r *http.Request) error {
	asked, err := h.understand(r.URL)
	if err != nil {
		return err
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		return problem.New(problem.WrongMethod, "The method %s is not allowed: use GET.", cut(r.Method))
	}
	if asked.wrong != nil {
		return asked.wrong
	}
	if asked.endpoint == h.itself {
		return h.describeItself(w, r)
	}
	if asked.keyed && !auth.CallerFrom(r.Context()).MayReadEmbeddings() {
		return problem.New(problem.Unauthenticated, "Embeddings need an API key.")
	}
	entry, err := h.cache.Get(r.Context(), asked.question, asked.answer)
	if err != nil {
		return err
	}
	return entry.Write(w, r)
}

// asked is what an address asks for.
type asked struct {
	*endpoint
	question cache.Question
	answer   cache.Make
	wrong    error // with its parameters
}

// target is an address word for word.
type target struct{ path, query string }

const (
	keptTargets   = 5_000
	longestTarget = 500
)

// understand reads an address, unless the very same came before.
func (h *Handler) understand(u *url.URL) (*asked, error) {
	t := target{u.EscapedPath(), u.RawQuery}
	if known, ok := h.targets.Get(t); ok {
		return known, nil
	}
	e, slug, err := h.find(t.path)
	if err != nil {
		return nil, err
	}
	variables, wrong := readArguments(e.arguments, t.query)
	if wrong != nil {
		return &asked{endpoint: e, wrong: wrong}, nil
	}
	if e.missing != nil {
		variables["slug"] = slug
	}
	a := &asked{
		endpoint: e,
		question: cache.Question{Operation: e.query, Variables: slug + "?" + canonical(e.arguments, variables), Keyed: e.keyed},
		answer:   func(ctx context.Context) (*cache.Entry, int, error) { return h.answer(ctx, e, variables) },
	}
	if len(t.path)+len(t.query) <= longestTarget {
		h.targets.Add(t, a)
	}
	return a, nil
}

// describeItself serves the document, whether or not there is a catalog.
func (h *Handler) describeItself(w http.ResponseWriter, r *http.Request) error {
	if date := h.executor.UpdatedAt(r.Context()); date != "" {
		w.Header()["X-Service-Updated-At"] = []string{date}
	}
	return h.openapi.Write(w, r)
}

// find is the route of a path, taken segment by segment as it was sent, so
// that an escaped slash is part of a slug.
func (h *Handler) find(path string) (*endpoint, string, error) {
	sent := strings.Split(path, "/")
	for i := range sent {
		text, err := url.PathUnescape(sent[i])
		if err != nil || !isText(text) {
			return nil, "", problem.New(problem.BadInput, "The path holds a NUL, or what is not UTF-8.")
		}
		sent[i] = text
	}
	for _, e := range h.endpoints {
		if slug, ok := e.match(sent); ok {
			return e, slug, nil
		}
	}
	return nil, "", problem.New(problem.NotFound, "There is nothing at this path: %s lists what there is.", DocumentPath)
}

func (e *endpoint) match(sent []string) (slug string, ok bool) {
	if len(sent) != len(e.segments) {
		return "", false
	}
	for i, segment := range e.segments {
		switch {
		case segment == "{slug}" && sent[i] != "":
			slug = sent[i]
		case segment != sent[i]:
			return "", false
		}
	}
	return slug, true
}

// answer runs a route's operation.
func (h *Handler) answer(ctx context.Context, e *endpoint, variables map[string]any) (entry *cache.Entry, release int, err error) {
	if slug, ok := variables["slug"].(string); ok && len(slug) > longestText {
		return nil, 0, problem.New(problem.NotFound, "%s", e.missing(cut(slug), whereabouts{}))
	}
	answer := h.executor.Execute(ctx, graph.Request{Operation: e.operation, Variables: variables})
	if p := answer.Problem(); p != nil {
		return nil, 0, p
	}
	body := bodyOf(answer.Data)
	if e.missing != nil && string(body) == "null" {
		return h.notFound(ctx, e, variables, answer.Release)
	}
	header := headers()
	if answer.UpdatedAt != "" {
		header["X-Service-Updated-At"] = []string{answer.UpdatedAt}
	} else {
		header["Cache-Control"] = []string{"no-store"} // nothing is published yet: that will not last
	}
	if e.counted {
		total, err := totalOf(answer.Data)
		if err != nil {
			return nil, 0, err
		}
		header["X-Total-Count"] = []string{strconv.FormatInt(total, 10)}
		header["Link"] = []string{e.links(h.publicURL, variables, total)}
	}
	return cache.NewEntry(body, header), answer.Release, nil
}

// headers are those of every good answer.
func headers() http.Header {
	return http.Header{
		"Content-Type":           {"application/json"},
		"Cache-Control":          {cacheControl},
		"Vary":                   {vary},
		"X-Content-Type-Options": {"nosniff"},
	}
}

// bodyOf is the part of an answer that is sent: the field body, which comes
// first and may be followed by count, or all of it.
func bodyOf(data []byte) []byte {
	body, ok := bytes.CutPrefix(data, []byte(`{"body":`))
	if !ok {
		return data
	}
	if i := bytes.LastIndex(body, []byte(`,"count":{"meta":`)); i >= 0 {
		return body[:i]
	}
	return body[:len(body)-1]
}

// totalOf reads the last "total" in an answer, which is the list's: a quote
// within a text is escaped, so it cannot be part of one.
func totalOf(data []byte) (int64, error) {
	const key = `"total":`
	i := bytes.LastIndex(data, []byte(key))
	if i < 0 {
		return 0, fmt.Errorf("a list's answer has no total")
	}
	digits := data[i+len(key):]
	end := bytes.IndexAny(digits, ",}")
	return strconv.ParseInt(string(digits[:max(end, 0)]), 10, 64)
}
