package graph

import (
	"bytes"
	"context"
	"io"
	"time"

	"github.com/99designs/gqlgen/graphql"

	"palmares/graph/document"
	"palmares/internal/core/problem"
)

// DefaultLimits are generous for dashboards and tight for attackers.
var DefaultLimits = document.Limits{
	Body:     100_000,
	Tokens:   4_000,
	Fields:   500,
	Cost:     20_000,
	Response: 2_000_000,
	Time:     5 * time.Second,
}

// responseSize limits the bytes that an operation writes. It cancels the operation as
// soon as there are too many, so that later fields do not read the database.
type responseSize struct {
	limit, left int64
	cancel      context.CancelCauseFunc
}

type responseSizeKey struct{}

// limitResponse encodes each root field as soon as it is resolved, so that its size
// is known before the next one is.
func limitResponse(ctx context.Context, next graphql.RootResolver) graphql.Marshaler {
	resolved := next(ctx)
	size, _ := ctx.Value(responseSizeKey{}).(*responseSize)
	if size == nil || resolved == nil || resolved == graphql.Null {
		return resolved
	}
	var field bytes.Buffer
	resolved.MarshalGQL(&field)
	if size.left -= int64(field.Len()); size.left < 0 {
		size.cancel(problem.New(problem.ResponseTooLarge,
			"The response is larger than %d bytes. Request fewer items or fields, and read the rest page by page.",
			size.limit))
		return graphql.Null
	}
	return graphql.WriterFunc(func(w io.Writer) { _, _ = w.Write(field.Bytes()) })
}
