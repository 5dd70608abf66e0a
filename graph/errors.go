package graph

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"palmares/graph/document"
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
	// was pruned is executed again.
	asWhole := errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) ||
		errors.Is(err, store.ErrNoRelease)
	if p.Cause != nil && !asWhole {
		log.ErrorContext(ctx, "field failed", "code", p.Code, "cause", p.Cause, "request_id", problem.RequestID(ctx))
	}
	presented := document.Errors(p)[0]
	if existing != nil {
		presented.Path, presented.Locations = existing.Path, existing.Locations
	}
	var nested *fieldError
	if errors.As(err, &nested) {
		root := *graphql.GetFieldContext(ctx).Field.Field
		root.SelectionSet = graphql.GetFieldContext(ctx).Field.Selections // of all its places in the document
		presented.Path = pathTo(nested.field, ast.SelectionSet{&root})
		presented.Locations = []gqlerror.Location{{
			Line: nested.field.Position.Line, Column: nested.field.Position.Column,
		}}
	}
	return withRequestID(ctx, presented)
}

// fieldError is an error in a field below the root. Such fields are read together
// with the root field that contains them.
type fieldError struct {
	error
	field *ast.Field
}

func (e *fieldError) Unwrap() error { return e.error }

// inField adds the field to an error, unless it has one.
func inField(field graphql.CollectedField, err error) error {
	var known *fieldError
	if err == nil || errors.As(err, &known) {
		return err
	}
	return &fieldError{err, field.Field}
}

// pathTo returns the path to a field in a selection, in the first items of lists; nil
// if it is not there.
func pathTo(field *ast.Field, set ast.SelectionSet) ast.Path {
	for _, selection := range set {
		switch s := selection.(type) {
		case *ast.Field:
			path := ast.Path{ast.PathName(s.Alias)}
			if s == field {
				return path
			}
			if s.Definition.Type.Elem != nil {
				path = append(path, ast.PathIndex(0))
			}
			if below := pathTo(field, s.SelectionSet); below != nil {
				return append(path, below...)
			}
		case *ast.InlineFragment:
			if below := pathTo(field, s.SelectionSet); below != nil {
				return below
			}
		case *ast.FragmentSpread:
			if below := pathTo(field, s.Definition.SelectionSet); below != nil {
				return below
			}
		}
	}
	return nil
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
