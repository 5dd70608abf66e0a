// Package graphql serves GraphQL over HTTP at /graphql: GET, POST and QUERY, persisted
// queries, and subscriptions as server-sent events. It knows nothing of the catalog;
// package graph executes the operations. Start reading at Handler.ServeHTTP.
package graphql

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/vektah/gqlparser/v2/gqlerror"

	"palmares/auth"
	"palmares/graph"
	"palmares/graph/document"
	"palmares/internal/core/cache"
	"palmares/internal/core/middleware"
	"palmares/internal/core/problem"
	"palmares/internal/transport/headers"
)

// Handler serves GraphQL over HTTP as the draft specification of that name
// describes, and subscriptions as server-sent events.
type Handler struct {
	executor  *graph.Executor
	responses *cache.Cache
	requests  *cache.Table[*preparedRequest]
	streams   streams

	// Heartbeat is the maximum time between two messages of a stream; MaxStreams
	// limits the open streams of all callers. Set them before the first request.
	Heartbeat  time.Duration
	MaxStreams int
}

// preparedRequest is a parsed and validated request whose cost is known.
type preparedRequest struct {
	graph.Request
	key         cache.Key // where it is cached, without its operation
	responseKey cache.Key // without the media type and the caller's permissions
	stream      bool      // it is a subscription
	deprecation *document.Deprecation
	weight      int // in bytes
}

const allowedMethods = "GET, HEAD, POST, QUERY, OPTIONS"

// NewHandler returns a handler that caches responses.
func NewHandler(e *graph.Executor, responses *cache.Cache, config StreamConfig) *Handler {
	h := &Handler{
		executor: e, responses: responses,
		requests:  cache.NewTable[*preparedRequest](responses, "requests"),
		Heartbeat: defaultHeartbeat, MaxStreams: defaultMaxStreams,
	}
	h.streams.config = config
	h.streams.closed, h.streams.close = context.WithCancel(context.Background())
	return h
}

func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	header["Vary"] = []string{"Accept, Accept-Encoding, Authorization"}
	header["Accept-Query"] = []string{mediaJSON}
	header["X-Graphql-Cost-Limit"] = []string{strconv.Itoa(h.executor.Limits().Cost)}

	if r.Method == http.MethodOptions { // preflight requests never get here
		header.Set("Allow", allowedMethods)
		w.WriteHeader(http.StatusNoContent)
		return
	}
	media, streaming := negotiateMedia(r.Header["Accept"])
	notAcceptable := httpError(http.StatusNotAcceptable, problem.BadInput, "Accept must allow %s or %s.", mediaResponse, mediaJSON)
	if media == "" && !streaming {
		h.fail(w, r, mediaJSON, notAcceptable)
		return
	}
	errorMedia := cmp.Or(media, mediaResponse) // also of errors before a stream starts
	text, p := readRequest(w, r, h.executor.Limits().Body)
	if p != nil {
		h.fail(w, r, errorMedia, p)
		return
	}
	request, rejection, p := h.prepare(r, text)
	if request != nil {
		headers.AddDeprecation(header, request.deprecation)
	}
	switch {
	case p != nil:
		h.fail(w, r, errorMedia, p)
	case rejection != nil:
		h.write(w, errorMedia, statusOf(rejection, errorMedia), rejection)
	case request.stream && cache.CachedOnly(r.Context()):
		h.fail(w, r, errorMedia, badRequest("Streams are not cached."))
	case request.stream && streaming:
		h.stream(w, r, request.Request, errorMedia)
	case request.stream:
		h.fail(w, r, media, &httpProblem{status: http.StatusNotAcceptable, problem: graph.ErrNotAStream})
	case media == "":
		h.fail(w, r, mediaJSON, notAcceptable)
	default:
		h.respond(w, r, request, media)
	}
}

// prepare parses and validates a request, unless an identical one is cached. It
// returns a result if the request is valid HTTP but rejected as GraphQL.
func (h *Handler) prepare(r *http.Request, text string) (*preparedRequest, *graph.Result, *httpProblem) {
	hasBody := r.Method == http.MethodPost || r.Method == middleware.MethodQuery
	sum := sha256.Sum256([]byte(text))
	key := cache.Key{Operation: string(sum[:]), Keyed: hasBody}
	if known, ok := h.requests.Get(cache.Timeless, key); ok {
		return known, nil, nil
	}
	if cache.CachedOnly(r.Context()) {
		return nil, nil, badRequest("The request is not cached.")
	}
	parse := parseQueryString
	if hasBody {
		parse = parseBody
	}
	req, p := parse(text)
	if p != nil {
		return nil, nil, p
	}
	if p := h.findPersisted(req); p != nil {
		return nil, nil, p
	}
	op, rejection := h.executor.Prepare(r.Context(), req.Request)
	if rejection != nil {
		return nil, rejection, nil
	}
	req.Prepared, req.Variables = op, op.Variables
	variables, err := json.Marshal(op.Variables) // sorted by name
	if err != nil {
		return nil, nil, badRequest("The variables do not match the operation.")
	}
	prepared := &preparedRequest{
		Request: req.Request, key: key,
		responseKey: cache.Key{Operation: op.ID, Variables: string(variables)},
		stream:      op.IsSubscription(),
		deprecation: op.Deprecation(),
		weight:      len(req.Query) + len(req.OperationName) + decodedSize*len(variables),
	}
	if prepared.stream {
		h.cacheRequest(prepared)
	}
	return prepared, nil, nil
}

// decodedSize is the memory that a byte of variables takes once they are decoded, in
// bytes; short items of lists take the most.
const decodedSize = 20

// cacheRequest caches a request that was executed.
func (h *Handler) cacheRequest(request *preparedRequest) {
	if request.Prepared == nil {
		return // it comes from the cache
	}
	cached := *request
	cached.Prepared = nil // its document is cached separately
	h.requests.Put(cache.Timeless, request.key, &cached, request.weight)
}

// respond sends the cached response, or executes the request. Responses with
// errors are not cached.
func (h *Handler) respond(w http.ResponseWriter, r *http.Request, prepared *preparedRequest, media string) {
	key := prepared.responseKey
	key.Operation = media + key.Operation
	key.Keyed = auth.CallerFrom(r.Context()).MayReadEmbeddings()
	request, weight := prepared.Request, prepared.weight
	// The cache keeps the function for the next release, but must not keep the document.
	var operation atomic.Pointer[graph.Prepared]
	operation.Store(request.Prepared)
	request.Prepared = nil
	response, err := h.responses.Get(r.Context(), key, func(ctx context.Context) (*cache.Entry, int, error) {
		execution := request
		execution.Prepared = operation.Swap(nil)
		result := h.executor.Execute(ctx, execution)
		if len(result.Errors) > 0 {
			return nil, result.Newest, &failure{result}
		}
		release := result.Newest
		if result.SchemaOnly {
			release = h.responses.Newest()
		}
		return cache.NewEntry(encode(result), headersOf(result, media, key.Keyed)).AddWeight(weight), release, nil
	})
	if err == nil {
		h.cacheRequest(prepared)
		err = response.Write(w, r)
	}
	var failed *failure
	switch {
	case err == nil:
	case r.Context().Err() != nil: // the client disconnected
	case errors.As(err, &failed):
		result := failed.result.WithRequestID(r.Context())
		h.write(w, media, statusOf(result, media), result)
	default:
		h.fail(w, r, media, &httpProblem{status: problem.Of(err).Code.Status(), problem: problem.Of(err)})
	}
}

// failure is a result with errors.
type failure struct{ result *graph.Result }

func (*failure) Error() string { return "the result has errors" }

// Unwrap returns the problem for callers that waited for the same response.
func (f *failure) Unwrap() error { return f.result.Problem() }

// fail responds to an invalid GraphQL request.
func (h *Handler) fail(w http.ResponseWriter, r *http.Request, media string, p *httpProblem) {
	h.write(w, media, p.status, h.executor.Reject(r.Context(), p.problem))
}

// write sends a result that is not cached.
func (h *Handler) write(w http.ResponseWriter, media string, status int, result *graph.Result) {
	header := w.Header()
	maps.Copy(header, headersOf(result, media, false))
	if status >= http.StatusBadRequest {
		header.Add("Link", problem.Help(status))
	}
	if status == http.StatusServiceUnavailable {
		header.Set("Retry-After", "5")
	}
	if status == http.StatusUnauthorized {
		cache.ReportExecution(w) // it took as much work as any document until here
	}
	body := encode(result)
	header.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, _ = w.Write(body)
}

func headersOf(result *graph.Result, media string, keyed bool) http.Header {
	header := headers.Of(result, media+"; charset=utf-8", keyed)
	header["X-Graphql-Cost"] = []string{strconv.Itoa(result.Cost)}
	return header
}

// statusOf returns 200 for an executed operation. A rejected one has its own
// status, except that clients of application/json expect 200 unless the server
// failed or the query timed out.
func statusOf(result *graph.Result, media string) int {
	if !result.Rejected() {
		return http.StatusOK
	}
	status := http.StatusBadRequest
	if !result.InvalidDocument() {
		status = result.Problem().Code.Status()
	}
	if media == mediaJSON && status < http.StatusInternalServerError && status != http.StatusUnprocessableEntity {
		return http.StatusOK
	}
	return status
}

// encode omits data if nothing was executed.
func encode(result *graph.Result) []byte {
	if len(result.Errors) == 0 {
		body := make([]byte, 0, len(result.Data)+len(`{"data":}`))
		body = append(body, `{"data":`...)
		body = append(body, result.Data...)
		return append(body, '}')
	}
	body, err := json.Marshal(struct {
		Errors gqlerror.List   `json:"errors"`
		Data   json.RawMessage `json:"data,omitempty"`
	}{result.Errors, result.Data})
	if err != nil {
		panic(err) // errors only have strings and numbers
	}
	return body
}
