package graph

import (
	"encoding/json"
	"net/http"
	"strconv"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"palmares/internal/problem"
)

// Handler answers GraphQL over HTTP as the draft of that name says.
type Handler struct {
	executor  *Executor
	persisted *persisted
}

// NewHandler serves an executor.
func NewHandler(e *Executor) *Handler {
	return &Handler{executor: e, persisted: newPersisted()}
}

const allowed = "GET, HEAD, POST, OPTIONS"

func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	header.Add("Vary", "Accept, Authorization")
	header.Set("X-GraphQL-Cost-Limit", strconv.Itoa(h.executor.limits.Cost))

	if r.Method == http.MethodOptions { // no preflight: those are answered before
		header.Set("Allow", allowed)
		w.WriteHeader(http.StatusNoContent)
		return
	}
	media, acceptable := negotiate(r.Header.Values("Accept"))
	if !acceptable {
		h.fail(w, r, mediaJSON, http.StatusNotAcceptable, problem.New(problem.BadInput,
			"Only %s and %s are served.", mediaResponse, mediaJSON))
		return
	}
	var req *httpRequest
	var refusal *httpProblem
	switch r.Method {
	case http.MethodGet, http.MethodHead:
		req, refusal = requestFromURL(r)
	case http.MethodPost:
		req, refusal = requestFromBody(w, r, h.executor.limits.Body)
	default:
		header.Set("Allow", allowed)
		refusal = &httpProblem{http.StatusMethodNotAllowed, problem.New(problem.BadInput, "The method is not allowed: use GET or POST.")}
	}
	if refusal == nil {
		refusal = h.persisted.fill(req)
	}
	if refusal != nil {
		h.fail(w, r, media, refusal.status, refusal.problem)
		return
	}
	if r.Method != http.MethodPost && h.isMutation(req) {
		header.Set("Allow", "POST")
		h.fail(w, r, media, http.StatusMethodNotAllowed, problem.New(problem.BadInput, "Only queries may be sent with GET."))
		return
	}
	answer := h.executor.Execute(r.Context(), req.Request)
	h.persisted.remember(req, answer)
	header.Set("X-GraphQL-Cost", strconv.Itoa(answer.Cost))
	if answer.UpdatedAt != "" {
		header.Set("X-Service-Updated-At", answer.UpdatedAt)
	}
	write(w, media, statusOf(answer, media), answer)
}

// isMutation is false for a document that cannot be read: its errors say more.
func (h *Handler) isMutation(req *httpRequest) bool {
	doc, errs := h.executor.documents.get(req.Query)
	if errs != nil {
		return false
	}
	op, errs := operationOf(doc, req.OperationName)
	return errs == nil && op.Operation != ast.Query
}

// fail answers a request that is not even a GraphQL one.
func (h *Handler) fail(w http.ResponseWriter, r *http.Request, media string, status int, p *problem.Problem) {
	w.Header().Set("X-GraphQL-Cost", "0")
	write(w, media, status, h.executor.refuse(r.Context(), refused(p)))
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
	if media == mediaJSON && status < http.StatusInternalServerError {
		return http.StatusOK
	}
	return status
}

func write(w http.ResponseWriter, media string, status int, answer *Answer) {
	header := w.Header()
	header.Set("Content-Type", media+"; charset=utf-8")
	header.Set("X-Content-Type-Options", "nosniff")
	if len(answer.Errors) > 0 {
		header.Set("Cache-Control", "no-store")
	}
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
