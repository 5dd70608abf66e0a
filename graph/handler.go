package graph

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"strconv"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"palmares/auth"
	"palmares/internal/cache"
	"palmares/internal/problem"
)

// Handler answers GraphQL over HTTP as the draft of that name says.
type Handler struct {
	executor  *Executor
	persisted *persisted
	answers   *cache.Cache
	asked     *lru.Cache[sent, *asked]
	streams   streams

	// Heartbeat is how long a stream is silent at the most; MaxStreams is how
	// many there are at once. They may be changed before the first request.
	Heartbeat  time.Duration
	MaxStreams int
}

// sent is a request word for word; asked is what it asks for.
type sent struct {
	post bool
	text string
}

type asked struct {
	request  Request        // without what it says beside: kept answers hold on to it
	question cache.Question // without what the caller may read, and wants it written as
	sound    bool           // or it has no answer but errors
	stream   bool           // it is a subscription
}

const (
	keptRequests = 2_000
	allowed      = "GET, HEAD, POST, OPTIONS"
)

// NewHandler serves an executor, and what it answered before.
func NewHandler(e *Executor, answers *cache.Cache) *Handler {
	known, err := lru.New[sent, *asked](keptRequests)
	if err != nil {
		panic(err) // the size above is wrong
	}
	return &Handler{
		executor: e, persisted: newPersisted(), answers: answers, asked: known, streams: streams{ended: make(chan struct{})},
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
	var request *asked
	if refusal == nil {
		request, refusal = h.understand(sent{r.Method == http.MethodPost, text})
	}
	if refusal != nil {
		if refusal.status == http.StatusMethodNotAllowed {
			header.Set("Allow", "POST")
		}
		h.fail(w, r, media, refusal.status, refusal.problem)
		return
	}
	switch {
	case request.stream && streaming:
		h.stream(w, r, request.request, media)
	case request.stream:
		h.fail(w, r, media, http.StatusNotAcceptable, notAStream)
	case request.sound && !acceptable:
		h.unacceptable(w, r)
	default:
		h.answer(w, r, request, media)
	}
}

func (h *Handler) unacceptable(w http.ResponseWriter, r *http.Request) {
	h.fail(w, r, mediaJSON, http.StatusNotAcceptable, problem.New(problem.BadInput,
		"Only %s and %s are served.", mediaResponse, mediaJSON))
}

// understand reads a request, unless the very same came before.
func (h *Handler) understand(s sent) (*asked, *httpProblem) {
	if known, ok := h.asked.Get(s); ok {
		return known, nil
	}
	read := requestFromURL
	if s.post {
		read = func(body string) (*httpRequest, *httpProblem) { return requestFromBody([]byte(body)) }
	}
	request, refusal := read(s.text)
	if refusal == nil {
		refusal = h.persisted.fill(request)
	}
	if refusal != nil {
		return nil, refusal
	}
	op, pure, question, ok := h.executor.sound(request.Request)
	if ok && !s.post && op.Operation == ast.Mutation {
		return nil, &httpProblem{http.StatusMethodNotAllowed, problem.New(problem.BadInput, "Only queries may be sent with GET.")}
	}
	a := &asked{pure, question, ok, ok && op.Operation == ast.Subscription}
	if ok {
		h.persisted.remember(request)
		if len(s.text) <= maxKept {
			h.asked.Add(s, a)
		}
	}
	return a, nil
}

// answer finds the answer, or has it worked out. What has errors is not kept.
func (h *Handler) answer(w http.ResponseWriter, r *http.Request, a *asked, media string) {
	if !a.sound {
		h.tell(w, h.executor.Execute(r.Context(), a.request), media)
		return
	}
	question := a.question
	question.Operation = media + question.Operation
	question.Keyed = auth.CallerFrom(r.Context()).MayReadEmbeddings()
	entry, err := h.answers.Get(r.Context(), question, func(ctx context.Context) (*cache.Entry, int, error) {
		answer := h.executor.Execute(ctx, a.request)
		if len(answer.Errors) > 0 {
			return nil, answer.Release, &failure{answer}
		}
		release := answer.Release
		if answer.Timeless {
			release = h.answers.Newest()
		}
		return cache.NewEntry(encodeAnswer(answer), headersOf(answer, media)), release, nil
	})
	var failed *failure
	switch {
	case r.Context().Err() != nil:
		return // nobody waits any more
	case errors.As(err, &failed):
		h.tell(w, failed.answer.to(r.Context()), media)
	case err != nil:
		h.fail(w, r, media, problem.Of(err).Code.Status(), problem.Of(err))
	default:
		if err := entry.Write(w, r); err != nil {
			h.fail(w, r, media, problem.Of(err).Code.Status(), problem.Of(err))
		}
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
