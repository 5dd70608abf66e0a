package tracing

import (
	"context"
	"errors"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
)

// What happens within a request has spans; what the server does by itself, the
// looks for a new release each second, has none.

// Operation begins the span of a GraphQL operation. Failed is a code of ours,
// or "".
func (t *Tracing) Operation(ctx context.Context, name string) (context.Context, func(failed string)) {
	if !within(ctx) {
		return ctx, func(string) {}
	}
	ctx, span := t.tracer.Start(ctx, name, trace.WithAttributes(attribute.String("graphql.operation.name", name)))
	return ctx, func(failed string) {
		if failed != "" {
			span.SetStatus(codes.Error, failed)
		}
		span.End()
	}
}

// Statement begins the span of an SQL statement, which is named by its first
// word. Why one failed is not told: a database's words repeat what it was
// given.
func (t *Tracing) Statement(ctx context.Context, pool, text string) func(error) {
	if !within(ctx) {
		return func(error) {}
	}
	verb, _, _ := strings.Cut(text, " ")
	_, span := t.tracer.Start(ctx, verb, trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(
		attribute.String("db.query.text", text), attribute.String("db.operation.name", verb), attribute.String("palmares.pool", pool)))
	return func(err error) {
		switch {
		case errors.Is(err, context.Canceled):
			span.SetStatus(codes.Error, "cancelled")
		case err != nil:
			span.SetStatus(codes.Error, "failed")
		}
		span.End()
	}
}

// Count begins the span of counting a request in Redis.
func (t *Tracing) Count(ctx context.Context) func() {
	if !within(ctx) {
		return func() {}
	}
	_, span := t.tracer.Start(ctx, "count", trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(attribute.String("db.system.name", "redis")))
	return func() { span.End() }
}

func within(ctx context.Context) bool { return trace.SpanContextFromContext(ctx).IsValid() }
