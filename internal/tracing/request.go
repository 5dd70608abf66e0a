package tracing

import (
	"net/http"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"palmares/internal/middleware"
	"palmares/internal/problem"
)

// The library for HTTP would tell more than we want to be known: the caller's
// address, what its browser says of itself, the path as it came. So the span of
// a request is made here.

// Link begins the span of each request, and goes on with a trace that a caller
// has begun. It comes after RequestID and before Log, whose lines name it.
func (t *Tracing) Link(route func(path string) string) middleware.Link {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			ctx := propagation.TraceContext{}.Extract(r.Context(), propagation.HeaderCarrier(r.Header))
			template, method := route(r.URL.Path), methodOf(r.Method)
			ctx, span := t.tracer.Start(ctx, method+" "+template, trace.WithSpanKind(trace.SpanKindServer), trace.WithAttributes(
				attribute.String("http.request.method", method),
				attribute.String("http.route", template),
				attribute.String("url.path", pathOf(r.URL.Path)),
				attribute.String("palmares.request_id", problem.RequestID(ctx)),
			))
			defer span.End()
			next.ServeHTTP(w, r.WithContext(ctx))
		})
	}
}

// Observe tells the span of a request what came of it. Log calls it.
func (t *Tracing) Observe(o middleware.Observed) {
	span := trace.SpanFromContext(o.Request.Context())
	if !span.IsRecording() || o.Status == 0 {
		return
	}
	span.SetAttributes(attribute.Int("http.response.status_code", o.Status))
	if tier := o.Header["X-Ratelimit-Tier"]; len(tier) > 0 {
		span.SetAttributes(attribute.String("palmares.plan", tier[0]))
	}
	if o.Status >= http.StatusInternalServerError {
		span.SetStatus(codes.Error, http.StatusText(o.Status))
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

// pathOf is a path without what looks like a key or an address of mail.
func pathOf(path string) string {
	path = strings.ToValidUTF8(middleware.Masked(path), "�")
	if !strings.Contains(path, "@") {
		return path
	}
	parts := strings.Split(path, "/")
	for i, part := range parts {
		if strings.Contains(part, "@") {
			parts[i] = "…"
		}
	}
	return strings.Join(parts, "/")
}
