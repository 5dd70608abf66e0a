// Package problem is what can go wrong for a caller: a few codes, each with
// one HTTP status, and an error that keeps its public sentence apart from the
// cause that only the log may show. REST and GraphQL share it, so they cannot
// disagree.
package problem

import (
	"context"
	"errors"
	"fmt"
	"net/http"
)

// Code names a kind of problem to programs.
type Code string

// The codes there are.
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
	Timeout          Code = "TIMEOUT"       // of an operation of ours
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

// Status is the HTTP status of a code; unknown codes are our own mistakes.
func (c Code) Status() int {
	if status, known := statuses[c]; known {
		return status
	}
	return http.StatusInternalServerError
}

// Problem is an error with a sentence for the caller.
type Problem struct {
	Code    Code
	Message string
	Cause   error // for the log alone
}

func (p *Problem) Error() string { return p.Message }
func (p *Problem) Unwrap() error { return p.Cause }

// New makes a problem out of a code and a sentence.
func New(code Code, format string, args ...any) *Problem {
	return &Problem{Code: code, Message: fmt.Sprintf(format, args...)}
}

// Of finds the problem in an error. What is none is our own mistake, and says
// nothing of itself.
func Of(err error) *Problem {
	var p *Problem
	switch {
	case errors.As(err, &p):
		return p
	case errors.Is(err, context.DeadlineExceeded):
		return &Problem{Timeout, "The request took too long.", err}
	}
	return &Problem{Internal, "Something went wrong on our side.", err}
}

type requestIDKey struct{}

// WithRequestID gives a request the id by which its errors are found in the log.
func WithRequestID(ctx context.Context, id string) context.Context {
	return context.WithValue(ctx, requestIDKey{}, id)
}

// RequestID is the request's id, or "".
func RequestID(ctx context.Context) string {
	id, _ := ctx.Value(requestIDKey{}).(string)
	return id
}
