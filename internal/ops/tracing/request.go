package tracing

import (
	"net/http"

	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/propagation"
	semconv "go.opentelemetry.io/otel/semconv/v1.37.0"
	"go.opentelemetry.io/otel/trace"

	"palmares/internal/core/middleware"
	"palmares/internal/core/problem"
)

// Link begins the span of each request, and goes on with a trace that a caller
// has begun. It comes after RequestID and before Log, whose lines name it.
func (t *Tracing) Link(route func(path string) string) middleware.Link {
	spans := otelhttp.NewMiddleware("",
		otelhttp.WithTracerProvider(t.provider),
		otelhttp.WithPropagators(propagation.TraceContext{}),
		otelhttp.WithSpanNameFormatter(func(_ string, r *http.Request) string {
			return methodOf(r.Method) + " " + route(r.URL.Path)
		}))
	return func(next http.Handler) http.Handler {
		return spans(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			trace.SpanFromContext(r.Context()).SetAttributes(semconv.HTTPRoute(route(r.URL.Path)), attribute.String("palmares.request_id", problem.RequestID(r.Context())))
			next.ServeHTTP(w, r)
		}))
	}
}

// Observe tells the span of a request whose it was. Log calls it.
func (t *Tracing) Observe(o middleware.Observed) {
	if tier := o.Header["X-Ratelimit-Tier"]; len(tier) > 0 {
		trace.SpanFromContext(o.Request.Context()).SetAttributes(attribute.String("palmares.plan", tier[0]))
	}
}

// methodOf keeps what a caller made up out of the names of spans.
func methodOf(method string) string {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions, http.MethodConnect, http.MethodTrace:
		return method
	}
	return "_OTHER"
}
