package graph

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"time"

	"github.com/vektah/gqlparser/v2/gqlerror"

	"palmares/ent"
	"palmares/graph/document"
	"palmares/graph/model"
	"palmares/internal/core/problem"
)

// Result is the result of an operation.
type Result struct {
	Data   json.RawMessage // nil if the request was rejected before execution
	Errors gqlerror.List
	Cost   int
	// Release, UpdatedAt and PublishedAt identify the data. They are zero before the
	// first import and without data. Newest is the newest release at that time.
	Release, Newest int
	UpdatedAt       string
	PublishedAt     time.Time
	AsOf            AsOf // how the release was selected
	SchemaOnly      bool // it only describes the schema
	// Total is the number of items in the list that the operation reads a part of, and
	// Next the cursor of what follows that part: always for changes, which will follow,
	// and only if there is more for other lists.
	Total int
	Next  string
	// Unknown are values of arguments that match nothing.
	Unknown []Unknown
	// Cause is the internal cause of a server error. It has been logged and is never
	// shown to callers.
	Cause error
}

// InvalidDocument reports whether the document cannot be parsed or does not match the
// schema.
func (r *Result) InvalidDocument() bool { return document.InvalidDocument(r.Errors) }

// WithRequestID copies a result that several callers share, with the request ID
// of one of them.
func (r *Result) WithRequestID(ctx context.Context) *Result {
	own := *r
	own.Errors = model.Map(r.Errors, func(err *gqlerror.Error) *gqlerror.Error {
		copied := *err
		copied.Extensions = maps.Clone(err.Extensions)
		return withRequestID(ctx, &copied)
	})
	return &own
}

func (r *Result) setRelease(release *ent.Release) {
	r.Release, r.UpdatedAt, r.PublishedAt = release.ID, release.FeedDate, release.ImportedAt
}

// Rejected reports whether nothing was executed.
func (r *Result) Rejected() bool { return r.Data == nil }

// Problem returns the first error, for interfaces other than GraphQL; nil if
// there is none.
func (r *Result) Problem() *problem.Problem {
	if len(r.Errors) == 0 {
		return nil
	}
	p := problem.Problem{Message: r.Errors[0].Message}
	if known, ok := r.Errors[0].Err.(*problem.Problem); ok { //nolint:errorlint // document.Errors sets it
		p = *known // pages translate it
	}
	p.Code, p.Cause = problem.Code(document.Code(r.Errors)), r.Cause
	return &p
}

// Body returns the response body of one of the server's own operations: the value of
// its only root field if that is named body, or else the whole result.
func (r *Result) Body() json.RawMessage {
	if value, ok := OnlyField(r.Data, "body"); ok {
		return value
	}
	return r.Data
}

// Decode decodes the data, or returns the first error.
func (r *Result) Decode(to any) error {
	if p := r.Problem(); p != nil {
		return p
	}
	return json.Unmarshal(r.Data, to)
}

// Found reports whether the body is not null.
func (r *Result) Found() bool { return string(r.Body()) != "null" }

// OnlyField returns the value of the only field of an object that the executor wrote. It
// returns false if a condition excluded the field, or if its name differs.
func OnlyField(object json.RawMessage, name string) (value json.RawMessage, ok bool) {
	if value, ok = bytes.CutPrefix(object, []byte(`{"`+name+`":`)); ok {
		value = value[:len(value)-1]
	}
	return value, ok
}
