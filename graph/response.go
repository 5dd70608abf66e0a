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

// responseSize adds up the bytes that an operation writes. It cancels the
// operation as soon as there are too many, so that later fields do not read the
// database.
type responseSize struct {
	limit  int64
	bytes  int64
	cancel context.CancelCauseFunc
}

type responseSizeKey struct{}

// add reports whether the response is still within its limit.
func (s *responseSize) add(n int) bool {
	before := s.bytes
	s.bytes += int64(n)
	if s.bytes > s.limit && before <= s.limit {
		s.cancel(problem.New(problem.ResponseTooLarge,
			"The response is larger than %d bytes. Request fewer items or fields, and read the rest page by page.",
			s.limit))
	}
	return s.bytes <= s.limit
}

// limitResponse encodes each root field as soon as it is resolved, so that its size
// is known before the next one is.
func limitResponse(ctx context.Context, next graphql.RootResolver) graphql.Marshaler {
	size, _ := ctx.Value(responseSizeKey{}).(*responseSize)
	if size == nil {
		return next(ctx)
	}
	if !size.add(0) {
		return graphql.Null
	}
	resolved := next(ctx)
	if resolved == nil || resolved == graphql.Null || !size.add(0) {
		return graphql.Null
	}
	field := &limitedBuffer{size: size}
	resolved.MarshalGQL(field)
	return field
}

// limitedBuffer holds an encoded field. It discards everything after the limit.
type limitedBuffer struct {
	size   *responseSize
	buffer bytes.Buffer // not embedded: every write must be counted
}

func (b *limitedBuffer) Write(p []byte) (int, error) {
	if b.size.add(len(p)) {
		return b.buffer.Write(p)
	}
	return len(p), nil
}

// WriteString avoids a copy in io.WriteString.
func (b *limitedBuffer) WriteString(s string) (int, error) {
	if b.size.add(len(s)) {
		return b.buffer.WriteString(s)
	}
	return len(s), nil
}

// MarshalGQL writes the encoded field.
func (b *limitedBuffer) MarshalGQL(w io.Writer) { _, _ = w.Write(b.buffer.Bytes()) }
