package graph

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/vektah/gqlparser/v2/gqlerror"

	"palmares/graph/document"
	"palmares/internal/catalog/release"
	"palmares/internal/core/problem"
	"palmares/internal/core/store"
)

const catalogUnavailable = "The catalog is temporarily unavailable. Try again in a minute."

// ErrUnavailable is the error for callers while the database is unavailable.
var ErrUnavailable = problem.New(problem.Unavailable, catalogUnavailable)

// presentError turns a resolver's error into what the caller may see: a message,
// a code and the request ID. The cause is logged.
func presentError(ctx context.Context, log *slog.Logger, err error) *gqlerror.Error {
	var existing *gqlerror.Error
	if errors.As(err, &existing) && existing.Err == nil {
		return withRequestID(ctx, existing)
	}
	p := problem.Of(err)
	// An operation that times out fails as a whole and is logged later. One whose release
	// was pruned, or has no history yet, is executed again.
	asWhole := errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) ||
		errors.Is(err, store.ErrNoRelease) || errors.Is(err, release.ErrPartial)
	if p.Cause != nil && !asWhole {
		log.ErrorContext(ctx, "field failed", "code", p.Code, "cause", p.Cause, "request_id", problem.RequestID(ctx))
	}
	presented := document.Errors(p)[0]
	if existing != nil {
		presented.Path, presented.Locations = existing.Path, existing.Locations
	}
	return withRequestID(ctx, presented)
}

// timeoutProblem returns the error for a slow query, which blames the caller unless
// the database is unavailable.
func (e *Executor) timeoutProblem(cause error) *problem.Problem {
	if e.config.Healthy != nil && !e.config.Healthy() {
		return &problem.Problem{Code: problem.Unavailable, Message: catalogUnavailable, Cause: cause}
	}
	return &problem.Problem{Code: problem.QueryTimeout, Cause: cause,
		Message: fmt.Sprintf("The query took longer than %s. Request fewer items or use simpler filters.",
			e.config.Limits.Time)}
}

func withRequestID(ctx context.Context, err *gqlerror.Error) *gqlerror.Error {
	if id := problem.RequestID(ctx); id != "" {
		document.SetExtension(err, "requestId", id)
	}
	return err
}
