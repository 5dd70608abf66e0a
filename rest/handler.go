package rest

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"palmares/auth"
	"palmares/graph"
	"palmares/internal/core/cache"
	"palmares/internal/core/problem"
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
	cfg         Config
	paths       []*endpoint // those of the table
	itself      *endpoint   // the document's own
	endpoints   []*endpoint // all of them
	whereabouts *graph.Operation
	sampling    *graph.Operation
	requests    *cache.Table[*asked]
	document    []byte // OpenAPI, for where there is no catalog to take examples from
}

// NewHandler checks the table of routes against the schema. An error is a
// mistake in the program.
func NewHandler(cfg Config, executor *graph.Executor, answers *cache.Cache) (*Handler, error) {
	endpoints, operations, err := buildEndpoints()
	if err != nil {
		return nil, err
	}
	document, err := describe(endpoints, cfg, demoSamples)
	if err != nil {
		return nil, err
	}
	itself := &endpoint{segments: strings.Split(DocumentPath, "/")}
	return &Handler{
		executor: executor, cache: answers, cfg: cfg, document: document,
		paths: endpoints, itself: itself, endpoints: append(endpoints, itself),
		whereabouts: operations["whereabouts"], sampling: operations["samples"],
		requests: cache.NewTable[*asked](answers, "REST requests"),
	}, nil
}

// DocumentPath is where the OpenAPI document is.
const DocumentPath = "/api/v1/openapi.json"

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
	response, err := h.cache.Get(r.Context(), asked.question, asked.answer)
	if err != nil {
		return err
	}
	return response.Write(w, r)
}

// asked is what an address asks for.
type asked struct {
	*endpoint
	variables map[string]any // which nobody changes
	question  cache.Question
	answer    cache.Make
	wrong     error // with its parameters
}

// askedWeight is what an understood address takes in memory, beside its texts.
const askedWeight = 1_000

// understand reads an address, unless exactly the same was read before.
func (h *Handler) understand(u *url.URL) (*asked, error) {
	sent := cache.Question{Operation: u.EscapedPath(), Variables: u.RawQuery}
	if known, ok := h.requests.Get(cache.Timeless, sent); ok {
		return known, nil
	}
	e, slug, err := h.find(sent.Operation)
	if err != nil {
		return nil, err
	}
	variables, wrong := readArguments(e.arguments, sent.Variables)
	if wrong != nil {
		return &asked{endpoint: e, wrong: wrong}, nil
	}
	if e.missing != nil {
		variables["slug"] = slug
	}
	a := &asked{
		endpoint:  e,
		variables: variables,
		question:  cache.Question{Operation: e.query, Variables: slug + "?" + canonical(e.arguments, variables), Keyed: e.keyed},
		answer:    func(ctx context.Context) (*cache.Entry, int, error) { return h.answer(ctx, e, variables) },
	}
	h.requests.Put(cache.Timeless, sent, a, askedWeight+len(a.question.Variables)+len(slug))
	return a, nil
}

// describeItself serves the document, whether or not there is a catalog.
func (h *Handler) describeItself(w http.ResponseWriter, r *http.Request) error {
	response, err := h.cache.Get(r.Context(), cache.Question{Operation: "openapi"}, h.describe)
	if err != nil {
		return h.withoutExamples().Write(w, r) // which is useful without a database, too
	}
	return response.Write(w, r)
}

// describe is the document with examples from the newest release.
func (h *Handler) describe(ctx context.Context) (*cache.Entry, int, error) {
	try, answer, err := h.samples(ctx)
	switch {
	case err != nil:
		return nil, 0, err
	case answer.Release == 0:
		return h.withoutExamples(), 0, nil
	}
	document, err := describe(h.paths, h.cfg, try)
	if err != nil {
		return nil, 0, err
	}
	header := headers()
	header["X-Service-Updated-At"] = []string{answer.UpdatedAt}
	return cache.NewEntry(document, header), answer.Release, nil
}

func (h *Handler) withoutExamples() *cache.Entry {
	header := headers()
	header["Cache-Control"] = []string{"no-store"} // a catalog will follow
	return cache.NewEntry(h.document, header)
}
