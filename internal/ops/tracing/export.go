package tracing

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.37.0"
	"go.opentelemetry.io/otel/trace"

	"palmares/internal/core/middleware"
)

// exported lists the attributes that are exported, besides palmares.*. The HTTP
// library adds others, such as the client's address and its user agent.
var exported = map[attribute.Key]bool{
	semconv.HTTPRequestMethodKey:      true,
	semconv.HTTPResponseStatusCodeKey: true,
	semconv.HTTPResponseBodySizeKey:   true,
	semconv.HTTPRouteKey:              true,
	semconv.NetworkProtocolVersionKey: true,
	semconv.GraphQLOperationNameKey:   true,
	semconv.DBQueryTextKey:            true, // with placeholders instead of values
	semconv.DBOperationNameKey:        true,
	semconv.DBSystemNameKey:           true,
}

// scrubbingExporter removes private attributes before spans are sent.
type scrubbingExporter struct{ sdktrace.SpanExporter }

func (e scrubbingExporter) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	scrubbed := make([]sdktrace.ReadOnlySpan, len(spans))
	for i, span := range spans {
		scrubbed[i] = scrubbedSpan{span}
	}
	return e.SpanExporter.ExportSpans(ctx, scrubbed)
}

type scrubbedSpan struct{ sdktrace.ReadOnlySpan }

func (s scrubbedSpan) Attributes() (public []attribute.KeyValue) {
	for _, a := range s.ReadOnlySpan.Attributes() {
		switch {
		case exported[a.Key] || strings.HasPrefix(string(a.Key), "palmares."):
			public = append(public, a)
		case a.Key == semconv.URLPathKey:
			public = append(public, semconv.URLPath(scrubPath(a.Value.AsString())))
		}
	}
	return public
}

// scrubPath masks API keys and email addresses in a path.
func scrubPath(path string) string {
	path = strings.ToValidUTF8(middleware.Masked(path), "�")
	parts := strings.Split(path, "/")
	for i, part := range parts {
		if strings.Contains(part, "@") {
			parts[i] = "…"
		}
	}
	return strings.Join(parts, "/")
}

// exportErrors logs at most one export error a minute. The library's message
// may contain the collector's address with its password, so it is not logged.
type exportErrors struct {
	log  *slog.Logger
	mu   sync.Mutex
	last time.Time
}

func (e *exportErrors) Handle(error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if time.Since(e.last) < time.Minute {
		return
	}
	e.last = time.Now()
	e.log.Warn("trace export failed", "advice", "check OTEL_EXPORTER_OTLP_ENDPOINT and the collector")
}

// WithTraceIDs adds the trace's id to log lines of requests.
func WithTraceIDs(log *slog.Logger) *slog.Logger { return slog.New(&traceIDHandler{log.Handler()}) }

type traceIDHandler struct{ slog.Handler }

func (h *traceIDHandler) Handle(ctx context.Context, record slog.Record) error {
	if span := trace.SpanContextFromContext(ctx); span.HasTraceID() {
		record.AddAttrs(slog.String("trace_id", span.TraceID().String()))
	}
	return h.Handler.Handle(ctx, record)
}

func (h *traceIDHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &traceIDHandler{h.Handler.WithAttrs(attrs)}
}

func (h *traceIDHandler) WithGroup(name string) slog.Handler {
	return &traceIDHandler{h.Handler.WithGroup(name)}
}
