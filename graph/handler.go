package graph

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"strconv"
	"time"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"palmares/auth"
	"palmares/internal/core/cache"
	"palmares/internal/core/problem"
)

// Handler serves GraphQL over HTTP as the draft of that name specifies.
type Handler struct {
	executor  *Executor
	persisted persisted
	responses *cache.Cache
	requests  *cache.Table[*understood]
	streams   streams

	// Heartbeat is how long a stream is silent at the most; MaxStreams is how
	// many there are at once. They may be changed before the first request.
	Heartbeat  time.Duration
	MaxStreams int
}

// understood is a request that was read, validated and priced.
type understood struct {
	request  Request        // without anything that does not belong to it: cached responses hold on to it
	question cache.Question // except for the media type and what the caller may read
	stream   bool           // it is a subscription

	hash     string         // of its document, if that is a persisted query
	sent     cache.Question // where it is cached
	document *document      // until then
}

const allowed = "GET, HEAD, POST, OPTIONS"

// NewHandler serves an executor, with a cache for its responses.
func NewHandler(e *Executor, responses *cache.Cache) *Handler {
	return &Handler{
		executor: e, responses: responses,
		persisted: persisted{cache.NewTable[string](responses, "persisted queries")},
		requests:  cache.NewTable[*understood](responses, "requests"),
		streams:   streams{ended: make(chan struct{})},
		Heartbeat: defaultHeartbeat, MaxStreams: defaultMaxStreams,
	}
}

func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	header["Vary"] = []string{"Accept, Accept-Encoding, Authorization"}
	header["X-Graphql-Cost-Limit"] = []string{strconv.Itoa(h.executor.limits.Cost)}

	if r.Method == http.MethodOptions { // no preflight: those are answered before
		header.Set("Allow", allowed)
		w.WriteHeader(http.StatusNoContent)
		return
	}
	media, acceptable := negotiate(r.Header["Accept"])
	streaming := wantsStream(r.Header["Accept"])
	if !acceptable && !streaming {
		h.unacceptable(w, r)
		return
	}
	if !acceptable {
		media = mediaResponse // for what goes wrong before a stream begins
	}
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodPost:
	default:
		header.Set("Allow", allowed)
		h.fail(w, r, media, http.StatusMethodNotAllowed, problem.New(problem.BadInput, "The method is not allowed: use GET or POST."))
		return
	}
	text, refusal := sentText(w, r, h.executor.limits.Body)
	if refusal != nil {
		h.fail(w, r, media, refusal.status, refusal.problem)
		return
	}
	request, answer, refusal := h.understand(r, text)
	switch {
	case refusal != nil:
		if refusal.status == http.StatusMethodNotAllowed {
			header.Set("Allow", "POST")
		}
		h.fail(w, r, media, refusal.status, refusal.problem)
	case answer != nil:
		h.tell(w, answer, media)
	case request.stream && streaming:
		h.stream(w, r, request.request, media)
	case request.stream:
		h.fail(w, r, media, http.StatusNotAcceptable, notAStream)
	case !acceptable:
		h.unacceptable(w, r)
	default:
		h.answer(w, r, request, media)
	}
}

func (h *Handler) unacceptable(w http.ResponseWriter, r *http.Request) {
	h.fail(w, r, mediaJSON, http.StatusNotAcceptable, problem.New(problem.BadInput,
		"Only %s and %s are served.", mediaResponse, mediaJSON))
}

// understand reads a request, unless exactly the same was executed before. It
// returns an answer where the request is valid HTTP, and refused as GraphQL.
func (h *Handler) understand(r *http.Request, text string) (*understood, *Answer, *httpProblem) {
	post := r.Method == http.MethodPost
	sum := sha256.Sum256([]byte(text))
	sent := cache.Question{Operation: string(sum[:]), Keyed: post}
	if known, ok := h.requests.Get(cache.Timeless, sent); ok {
		return known, nil, nil
	}
	if cache.CachedOnly(r.Context()) {
		return nil, nil, badRequest("The request is not cached.")
	}
	read := requestFromURL
	if post {
		read = func(body string) (*httpRequest, *httpProblem) { return requestFromBody([]byte(body)) }
	}
	request, refusal := read(text)
	if refusal != nil {
		return nil, nil, refusal
	}
	hash, refusal := h.persisted.fill(request)
	if refusal != nil {
		return nil, nil, refusal
	}
	u, answer := h.executor.understand(r.Context(), request.Request)
	switch {
	case answer != nil:
		return nil, answer, nil
	case !post && u.document.Operations.ForName(u.request.OperationName).Operation == ast.Mutation:
		return nil, nil, &httpProblem{http.StatusMethodNotAllowed, problem.New(problem.BadInput, "Only queries may be sent with GET.")}
	}
	u.hash, u.sent = hash, sent
	if u.stream {
		h.keep(u)
	}
	return u, nil, nil
}

// keep caches a request that was executed.
func (h *Handler) keep(u *understood) {
	if u.document == nil {
		return // it comes from there
	}
	cached := *u
	cached.document = nil // which has a place and a weight of its own
	h.requests.Put(cache.Timeless, u.sent, &cached, u.request.weight())
	if u.hash != "" {
		h.persisted.keep(u.hash, u.request.Query)
	}
}

// answer sends the cached response, or executes the request. Responses with
// errors are not cached.
func (h *Handler) answer(w http.ResponseWriter, r *http.Request, u *understood, media string) {
	question := u.question
	question.Operation = media + question.Operation
	question.Keyed = auth.CallerFrom(r.Context()).MayReadEmbeddings()
	ctx, request := r.Context(), u.request
	if u.document != nil {
		ctx = withDocument(ctx, u.document)
	}
	response, err := h.responses.Get(ctx, question, func(ctx context.Context) (*cache.Entry, int, error) {
		answer := h.executor.Execute(ctx, request)
		if len(answer.Errors) > 0 {
			return nil, answer.Release, &failure{answer}
		}
		release := answer.Release
		if answer.Timeless {
			release = h.responses.Newest()
		}
		return cache.NewEntry(encodeAnswer(answer), headersOf(answer, media)).Holding(request.weight()), release, nil
	})
	if err == nil {
		h.keep(u)
		err = response.Write(w, r)
	}
	var failed *failure
	switch {
	case err == nil:
	case r.Context().Err() != nil: // the caller has left
	case errors.As(err, &failed):
		h.tell(w, failed.answer.to(r.Context()), media)
	default:
		h.fail(w, r, media, problem.Of(err).Code.Status(), problem.Of(err))
	}
}

// to is an answer with errors for one of several who waited for it: each is
// told the id of their own request.
func (a *Answer) to(ctx context.Context) *Answer {
	own := *a
	own.Errors = make(gqlerror.List, len(a.Errors))
	for i, err := range a.Errors {
		copied := *err
		copied.Extensions = maps.Clone(err.Extensions)
		own.Errors[i] = withRequestID(ctx, &copied)
	}
	return &own
}

// tell writes an answer with errors.
func (h *Handler) tell(w http.ResponseWriter, answer *Answer, media string) {
	for name, values := range headersOf(answer, media) {
		w.Header()[name] = values
	}
	write(w, statusOf(answer, media), answer)
}

// failure is an answer with errors.
type failure struct{ answer *Answer }

func (*failure) Error() string { return "the answer has errors" }

// Unwrap tells those who waited for the same answer what was wrong.
func (f *failure) Unwrap() error { return f.answer.Problem() }

func headersOf(answer *Answer, media string) http.Header {
	header := http.Header{
		"Content-Type":           {media + "; charset=utf-8"},
		"X-Content-Type-Options": {"nosniff"},
		"X-Graphql-Cost":         {strconv.Itoa(answer.Cost)},
	}
	if answer.UpdatedAt != "" {
		header["X-Service-Updated-At"] = []string{answer.UpdatedAt}
	}
	return header
}

// fail answers a request that is not even a GraphQL one.
func (h *Handler) fail(w http.ResponseWriter, r *http.Request, media string, status int, p *problem.Problem) {
	answer := h.executor.refuse(r.Context(), refused(p))
	for name, values := range headersOf(answer, media) {
		w.Header()[name] = values
	}
	write(w, status, answer)
}

// statusOf is 200 for whatever was executed. What was refused has its own
// status in the new media type; in the old one, a client expects 200 unless
// the server itself is at fault.
func statusOf(answer *Answer, media string) int {
	if !answer.Refused() {
		return http.StatusOK
	}
	status := http.StatusBadRequest
	switch code := codeOf(answer.Errors); code {
	case codeParseFailed, codeValidationFailed:
	default:
		status = problem.Code(code).Status()
	}
	if media == mediaJSON && status < http.StatusInternalServerError && status != http.StatusUnprocessableEntity { // a query that timed out was executed
		return http.StatusOK
	}
	return status
}

// write sends an answer that is not kept.
func write(w http.ResponseWriter, status int, answer *Answer) {
	header := w.Header()
	header.Set("Cache-Control", "no-store")
	if status == http.StatusServiceUnavailable {
		header.Set("Retry-After", "5")
	}
	body := encodeAnswer(answer)
	header.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, _ = w.Write(body)
}

// encodeAnswer leaves data out where nothing was executed.
func encodeAnswer(answer *Answer) []byte {
	if len(answer.Errors) == 0 {
		body := make([]byte, 0, len(answer.Data)+len(`{"data":}`))
		body = append(body, `{"data":`...)
		body = append(body, answer.Data...)
		return append(body, '}')
	}
	body, err := json.Marshal(struct {
		Errors gqlerror.List   `json:"errors"`
		Data   json.RawMessage `json:"data,omitempty"`
	}{answer.Errors, answer.Data})
	if err != nil {
		panic(err) // errors are texts and numbers of ours
	}
	return body
}
