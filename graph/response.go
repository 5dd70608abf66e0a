package graph

import (
	"bytes"
	"context"
	"io"
	"sync/atomic"

	"github.com/99designs/gqlgen/graphql"

	"palmares/internal/core/problem"
)

// responseSize adds up what an operation writes. It ends the operation's
// context as soon as there is too much, so that fields still waiting for the
// database read nothing.
type responseSize struct {
	limit int64
	bytes atomic.Int64
	end   context.CancelCauseFunc
}

func (s *responseSize) add(n int) {
	if s.bytes.Add(int64(n)) > s.limit {
		s.end(s.problem())
	}
}

func (s *responseSize) exceeded() bool { return s.bytes.Load() > s.limit }

func (s *responseSize) problem() *problem.Problem {
	return problem.New(problem.ResponseTooLarge,
		"The response has more than %d bytes: request fewer items or fields, and read the rest page by page.", s.limit)
}

type responseSizeKey struct{}

func withResponseSize(ctx context.Context, s *responseSize) context.Context {
	return context.WithValue(ctx, responseSizeKey{}, s)
}

// limitResponse encodes a root field as soon as it is resolved, and not all of
// them at the end, so that the size is known while others are still waiting.
func limitResponse(ctx context.Context, next graphql.RootResolver) graphql.Marshaler {
	size, _ := ctx.Value(responseSizeKey{}).(*responseSize)
	if size == nil {
		return next(ctx)
	}
	if size.exceeded() {
		return graphql.Null
	}
	resolved := next(ctx)
	if resolved == nil || resolved == graphql.Null || size.exceeded() {
		return graphql.Null
	}
	field := &limitedBuffer{size: size}
	resolved.MarshalGQL(field)
	return field
}

// limitedBuffer is an encoded field. It takes nothing more once the response
// is too large. The buffer is not embedded: all of its writers must count.
type limitedBuffer struct {
	size   *responseSize
	buffer bytes.Buffer
}

// Write is called by gqlgen's encoders.
func (b *limitedBuffer) Write(p []byte) (int, error) {
	if b.size.add(len(p)); b.size.exceeded() {
		return len(p), nil
	}
	return b.buffer.Write(p)
}

// WriteString spares io.WriteString a copy.
func (b *limitedBuffer) WriteString(s string) (int, error) {
	if b.size.add(len(s)); b.size.exceeded() {
		return len(s), nil
	}
	return b.buffer.WriteString(s)
}

// MarshalGQL writes the encoded field.
func (b *limitedBuffer) MarshalGQL(w io.Writer) { _, _ = w.Write(b.buffer.Bytes()) }
