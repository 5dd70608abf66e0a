package graph

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/vektah/gqlparser/v2/gqlerror"

	"palmares/internal/core/problem"
)

// Codes of errors that only GraphQL knows.
const (
	codeParseFailed      = "GRAPHQL_PARSE_FAILED"
	codeValidationFailed = "GRAPHQL_VALIDATION_FAILED"
)

// present turns any error of a resolver into what the caller may see: a
// sentence, a code and the request's id. The cause goes to the log.
func present(ctx context.Context, log *slog.Logger, err error) *gqlerror.Error {
	var already *gqlerror.Error
	if errors.As(err, &already) && already.Err == nil {
		return withRequestID(ctx, already)
	}
	p := problem.Of(err)
	// An operation that runs out of time fails as a whole, and is logged then
	// if that is our own fault.
	if p.Cause != nil && !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) {
		log.ErrorContext(ctx, "a field failed", "code", p.Code, "cause", p.Cause, "request_id", problem.RequestID(ctx))
	}
	presented := refused(p)[0]
	if already != nil {
		presented.Path, presented.Locations = already.Path, already.Locations
	}
	return withRequestID(ctx, presented)
}

// timedOut is the problem of a caller's query that took too long: the caller's
// own, unless the database is unavailable.
func (e *Executor) timedOut(cause error) *problem.Problem {
	if e.healthy != nil && !e.healthy() {
		return &problem.Problem{Code: problem.Unavailable, Message: "The catalog cannot be read at the moment.", Cause: cause}
	}
	return &problem.Problem{Code: problem.QueryTimeout, Cause: cause,
		Message: fmt.Sprintf("The query took longer than %s: request fewer items or use simpler filters.", e.limits.Time)}
}

// refused is a problem as GraphQL tells it.
func refused(p *problem.Problem) gqlerror.List {
	return gqlerror.List{{Message: p.Message, Extensions: map[string]any{"code": string(p.Code)}}}
}

func coded(code string, errs gqlerror.List) gqlerror.List {
	for _, err := range errs {
		if err.Extensions == nil {
			err.Extensions = map[string]any{}
		}
		err.Extensions["code"] = code
	}
	return errs
}

const (
	maxErrors  = 10
	maxMessage = 300
)

// fewAndShort keeps a document from being answered with far more than it says.
func fewAndShort(errs gqlerror.List) gqlerror.List {
	errs = errs[:min(len(errs), maxErrors)]
	for _, err := range errs {
		if message := []rune(err.Message); len(message) > maxMessage {
			err.Message = string(message[:maxMessage]) + "…"
		}
		err.Locations = err.Locations[:min(len(err.Locations), maxErrors)]
	}
	return errs
}

func withRequestID(ctx context.Context, err *gqlerror.Error) *gqlerror.Error {
	if id := problem.RequestID(ctx); id != "" {
		if err.Extensions == nil {
			err.Extensions = map[string]any{}
		}
		err.Extensions["requestId"] = id
	}
	return err
}

func asGraphQLError(err error) *gqlerror.Error {
	var already *gqlerror.Error
	if errors.As(err, &already) {
		return already
	}
	return &gqlerror.Error{Message: "The document cannot be read."}
}

// codeOf is the code of the first error, which decides the answer's status.
func codeOf(errs gqlerror.List) string {
	if len(errs) == 0 {
		return ""
	}
	code, _ := errs[0].Extensions["code"].(string)
	return code
}
