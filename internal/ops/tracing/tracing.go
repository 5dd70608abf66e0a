// Package tracing exports OpenTelemetry spans of requests, their GraphQL
// operations and their SQL statements. Spans never contain arguments, queries,
// keys or personal data.
package tracing

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.37.0"
	"go.opentelemetry.io/otel/trace"

	"palmares/internal/core/middleware"
	"palmares/internal/core/problem"
)

// shutdownTimeout limits how long sending the last spans may take.
const shutdownTimeout = 3 * time.Second

// Tracing creates and exports spans.
type Tracing struct {
	provider *sdktrace.TracerProvider
	tracer   trace.Tracer
}

// Enabled reports whether OpenTelemetry's environment variables enable tracing.
func Enabled() (bool, error) {
	if strings.EqualFold(os.Getenv("OTEL_SDK_DISABLED"), "true") {
		return false, nil
	}
	switch exporter := strings.TrimSpace(os.Getenv("OTEL_TRACES_EXPORTER")); exporter {
	case "none":
		return false, nil
	case "":
		if os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT") == "" && os.Getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") == "" {
			return false, nil
		}
	case "otlp":
	default:
		return false, fmt.Errorf("OTEL_TRACES_EXPORTER: must be otlp or none (got %q)", exporter)
	}
	for _, name := range []string{"OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"} {
		if protocol := os.Getenv(name); protocol != "" && protocol != "http/protobuf" {
			return false, fmt.Errorf("%s: must be http/protobuf, the only supported protocol (got %q)", name, protocol)
		}
	}
	return true, nil
}

// New returns nil unless the environment enables tracing.
func New(ctx context.Context, version string, log *slog.Logger) (*Tracing, error) {
	if enabled, err := Enabled(); !enabled {
		return nil, err
	}
	otel.SetLogger(logr.FromSlogHandler(log.Handler())) // the default one does not write JSON
	otel.SetErrorHandler(&exportErrors{log: log})
	exporter, err := otlptracehttp.New(ctx)
	if err != nil { // the cause may contain the address with its password
		return nil, fmt.Errorf("OTEL_EXPORTER_OTLP_ENDPOINT: must be a valid URL")
	}
	about, err := resource.New(ctx,
		resource.WithAttributes(semconv.ServiceName("palmares"), semconv.ServiceVersion(version)),
		resource.WithTelemetrySDK(), resource.WithFromEnv()) // last, so that the operator's values win
	if err != nil {
		return nil, fmt.Errorf("OTEL_RESOURCE_ATTRIBUTES: must have the form name=value,…")
	}
	provider := sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter), sdktrace.WithResource(about))
	return &Tracing{provider, provider.Tracer("palmares")}, nil
}

// Close sends the remaining spans.
func (t *Tracing) Close() {
	ctx, cancel := context.WithTimeout(context.Background(), shutdownTimeout)
	defer cancel()
	_ = t.provider.Shutdown(ctx)
}

// Middleware starts a span for each request, and continues a trace that the
// client started. It belongs after RequestID and before Log, which logs the trace
// ID and passes responses to Observe. The route function returns the route template of a
// request.
func (t *Tracing) Middleware(route func(*http.Request) string) middleware.Middleware {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			method, template := knownMethod(r.Method), route(r)
			ctx := propagation.TraceContext{}.Extract(r.Context(), propagation.HeaderCarrier(r.Header))
			ctx, span := t.tracer.Start(ctx, method+" "+template, trace.WithSpanKind(trace.SpanKindServer), trace.WithAttributes(
				semconv.HTTPRequestMethodKey.String(method), semconv.HTTPRoute(template), semconv.URLPath(scrubPath(r.URL.Path)),
				attribute.String("palmares.request_id", problem.RequestID(r.Context()))))
			defer span.End()
			next.ServeHTTP(w, r.WithContext(ctx))
		})
	}
}

// Observe adds the response to the span of its request.
func (t *Tracing) Observe(o middleware.Observed) {
	span := trace.SpanFromContext(o.Request.Context())
	span.SetAttributes(semconv.HTTPResponseStatusCode(o.Status))
	if o.Status >= http.StatusInternalServerError {
		span.SetStatus(codes.Error, "")
	}
	if tier := o.Header["X-Ratelimit-Tier"]; len(tier) > 0 {
		span.SetAttributes(attribute.String("palmares.plan", tier[0]))
	}
}

// knownMethod keeps arbitrary methods out of span names.
func knownMethod(method string) string {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions, http.MethodConnect, http.MethodTrace, middleware.MethodQuery:
		return method
	}
	return "_OTHER"
}

// start starts a child span of a request's span. Background work, such as polling
// for a new release every second, gets a span that records nothing.
func (t *Tracing) start(ctx context.Context, name string, options ...trace.SpanStartOption) (context.Context, trace.Span) {
	if parent := trace.SpanFromContext(ctx); !parent.SpanContext().IsValid() {
		return ctx, parent
	}
	return t.tracer.Start(ctx, name, options...)
}

// Operation starts the span of a GraphQL operation. The function that it returns
// ends the span with the API's error code, or an empty one.
func (t *Tracing) Operation(ctx context.Context, name string) (context.Context, func(code string)) {
	ctx, span := t.start(ctx, name, trace.WithAttributes(semconv.GraphQLOperationName(name)))
	return ctx, func(code string) {
		if code != "" {
			span.SetStatus(codes.Error, code)
		}
		span.End()
	}
}

// Statement starts the span of an SQL statement, named after its first word.
// The database's error message may repeat values, so the span omits it.
func (t *Tracing) Statement(ctx context.Context, pool, statement string) func(error) {
	verb, _, _ := strings.Cut(statement, " ")
	_, span := t.start(ctx, verb, trace.WithSpanKind(trace.SpanKindClient),
		trace.WithAttributes(semconv.DBQueryText(statement), semconv.DBOperationName(verb), attribute.String("palmares.pool", pool)))
	return func(err error) {
		switch {
		case errors.Is(err, context.Canceled):
			span.SetStatus(codes.Error, "canceled")
		case err != nil:
			span.SetStatus(codes.Error, "failed")
		}
		span.End()
	}
}

// Quota starts the span of a quota check in Redis.
func (t *Tracing) Quota(ctx context.Context) func() {
	_, span := t.start(ctx, "count", trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(semconv.DBSystemNameRedis))
	return func() { span.End() }
}

// scrubPath masks API keys and email addresses in a path.
func scrubPath(path string) string {
	path = strings.ToValidUTF8(middleware.MaskKeys(path), "�")
	parts := strings.Split(path, "/")
	for i, part := range parts {
		if strings.Contains(part, "@") {
			parts[i] = "…"
		}
	}
	return strings.Join(parts, "/")
}

// exportErrors logs at most one export error per minute. The library's message
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

// WithTraceIDs adds the trace ID to the log lines of requests.
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
