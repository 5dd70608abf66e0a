// Package problem defines the errors that callers see: a few codes, each with
// one HTTP status, and a public message that is separate from the cause, which
// is only logged. REST and GraphQL share them, so they cannot disagree.
package problem

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"palmares/internal/core/lang"
)

// Code identifies a kind of problem.
type Code string

const (
	BadInput         Code = "BAD_USER_INPUT"
	Unauthenticated  Code = "UNAUTHENTICATED"
	Forbidden        Code = "FORBIDDEN"
	NotFound         Code = "NOT_FOUND"
	Gone             Code = "GONE"
	WrongMethod      Code = "METHOD_NOT_ALLOWED"
	NotAcceptable    Code = "NOT_ACCEPTABLE"
	QuotaSpent       Code = "QUOTA_SPENT"
	TooMany          Code = "TOO_MANY_REQUESTS"
	TooLarge         Code = "REQUEST_TOO_LARGE"
	TooComplex       Code = "QUERY_TOO_COMPLEX"
	ResponseTooLarge Code = "RESPONSE_TOO_LARGE"
	QueryTimeout     Code = "QUERY_TIMEOUT" // of a caller's own query
	Timeout          Code = "TIMEOUT"       // of one of the server's own operations
	Unavailable      Code = "UNAVAILABLE"
	Internal         Code = "INTERNAL_SERVER_ERROR"
)

var statuses = map[Code]int{
	BadInput:         http.StatusBadRequest,
	Unauthenticated:  http.StatusUnauthorized,
	Forbidden:        http.StatusForbidden,
	NotFound:         http.StatusNotFound,
	Gone:             http.StatusGone,
	WrongMethod:      http.StatusMethodNotAllowed,
	NotAcceptable:    http.StatusNotAcceptable,
	QuotaSpent:       http.StatusTooManyRequests,
	TooMany:          http.StatusTooManyRequests,
	TooLarge:         http.StatusRequestEntityTooLarge,
	TooComplex:       http.StatusBadRequest,
	ResponseTooLarge: http.StatusBadRequest,
	QueryTimeout:     http.StatusUnprocessableEntity,
	Timeout:          http.StatusServiceUnavailable,
	Unavailable:      http.StatusServiceUnavailable,
	Internal:         http.StatusInternalServerError,
}

// Status returns the HTTP status of a code, which is 500 for unknown ones.
func (c Code) Status() int {
	return cmp.Or(statuses[c], http.StatusInternalServerError)
}

// Problem is an error with a message for the caller.
type Problem struct {
	Code    Code
	Message string
	Cause   error  // for the log only
	Param   string // the parameter or the field of a form that it is about, or ""
	// RetryAfter is when the same request may succeed, or 0 if it is unknown.
	RetryAfter time.Duration

	format string // of Message, or ""
	args   []any
}

func (p *Problem) Error() string { return p.Message }
func (p *Problem) Unwrap() error { return p.Cause }

// New returns a problem with a formatted message.
func New(code Code, format string, args ...any) *Problem {
	return &Problem{Code: code, Message: fmt.Sprintf(format, args...), format: format, args: args}
}

// For returns the problem as one of a parameter, or of the field of a form.
func (p *Problem) For(param string) *Problem {
	about := *p
	about.Param = param
	return &about
}

// Wait returns the problem with the time after which the same request may succeed.
func (p *Problem) Wait(retryAfter time.Duration) *Problem {
	temporary := *p
	temporary.RetryAfter = retryAfter
	return &temporary
}

// Seconds returns RetryAfter in whole seconds, rounded up.
func (p *Problem) Seconds() int { return int((p.RetryAfter + time.Second - 1) / time.Second) }

// In returns the message in a language, for pages. API responses are in English.
func (p *Problem) In(l lang.Language) string {
	if p.format == "" {
		return l.Text(lang.Message(p.Message))
	}
	return l.Text(lang.Message(p.format), p.args...)
}

// Of returns the problem in an error. Other errors become internal errors, whose
// details are not shown.
func Of(err error) *Problem {
	var p *Problem
	switch {
	case errors.As(err, &p):
		return p
	case errors.Is(err, context.DeadlineExceeded):
		return &Problem{Code: Timeout, Message: "The request took too long.", Cause: err}
	}
	return &Problem{Code: Internal, Message: "Something went wrong on our side.", Cause: err}
}

type requestIDKey struct{}

// WithRequestID returns a context with the ID that identifies a request in the log.
func WithRequestID(ctx context.Context, id string) context.Context {
	return context.WithValue(ctx, requestIDKey{}, id)
}

// RequestID returns the request ID, or "".
func RequestID(ctx context.Context) string {
	id, _ := ctx.Value(requestIDKey{}).(string)
	return id
}

// retryAfter is how long clients should wait for an unavailable service, in seconds.
const retryAfter = "5"

// Write sends an error as JSON, in the format of all interfaces except GraphQL. It
// removes headers that belong to a successful response.
func Write(w http.ResponseWriter, err error) {
	p := Of(err)
	write(w, p, map[string]any{"error": p.Message})
}

type graphQLKey struct{}

// ForGraphQL is middleware for the clients of GraphQL, which Refuse also sends errors in
// their format.
func ForGraphQL(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), graphQLKey{}, true)))
	})
}

// Refuse sends an error for a request that does not reach its handler.
func Refuse(w http.ResponseWriter, r *http.Request, err error) {
	if r.Context().Value(graphQLKey{}) == nil {
		Write(w, err)
		return
	}
	p := Of(err)
	extensions := map[string]any{"code": p.Code}
	if id := RequestID(r.Context()); id != "" {
		extensions["requestId"] = id
	}
	write(w, p, map[string]any{"error": p.Message, "errors": []any{map[string]any{"message": p.Message, "extensions": extensions}}})
}

// Help returns the Link header of an error: the page that explains it.
func Help(status int) string {
	if status == http.StatusUnauthorized || status == http.StatusTooManyRequests {
		return `</guides/quotas>; rel="help"`
	}
	return `</docs>; rel="help"`
}

func write(w http.ResponseWriter, p *Problem, content map[string]any) {
	header := w.Header()
	for _, name := range []string{"Cache-Status", "ETag", "Content-Encoding", "X-Total-Count"} {
		header.Del(name)
	}
	header.Set("Content-Type", "application/json")
	header.Set("Cache-Control", "no-store")
	header.Set("X-Content-Type-Options", "nosniff")
	status := p.Code.Status()
	links := []string{Help(status)}
	for _, link := range header["Link"] { // others belong to a successful response
		if strings.Contains(link, `; rel="deprecation"`) || strings.Contains(link, `; rel="service-desc"`) {
			links = append(links, link)
		}
	}
	header["Link"] = links
	if (status == http.StatusUnauthorized || status == http.StatusTooManyRequests) && header.Get("Vary") == "" {
		header.Set("Vary", "Authorization") // the response depends on the caller
	}
	switch {
	case status == http.StatusUnauthorized:
		header.Set("WWW-Authenticate", "Bearer")
	case p.RetryAfter > 0:
		header.Set("Retry-After", strconv.Itoa(p.Seconds()))
	case status == http.StatusServiceUnavailable:
		header.Set("Retry-After", retryAfter)
	}
	var buffer bytes.Buffer
	encoder := json.NewEncoder(&buffer)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(content); err != nil {
		panic(err) // strings can always be encoded
	}
	body := bytes.TrimRight(buffer.Bytes(), "\n")
	header.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, _ = w.Write(body)
}
