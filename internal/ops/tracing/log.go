package tracing

import (
	"context"
	"log/slog"

	"go.opentelemetry.io/otel/trace"
)

// InLog adds the trace's id to the lines of requests.
func InLog(log *slog.Logger) *slog.Logger { return slog.New(&traced{log.Handler()}) }

type traced struct{ slog.Handler }

// Handle is what slog calls for each line.
func (h *traced) Handle(ctx context.Context, record slog.Record) error {
	if span := trace.SpanContextFromContext(ctx); span.HasTraceID() {
		record.AddAttrs(slog.String("trace_id", span.TraceID().String()))
	}
	return h.Handler.Handle(ctx, record)
}

// WithAttrs is what slog calls.
func (h *traced) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &traced{h.Handler.WithAttrs(attrs)}
}

// WithGroup is what slog calls.
func (h *traced) WithGroup(name string) slog.Handler { return &traced{h.Handler.WithGroup(name)} }
