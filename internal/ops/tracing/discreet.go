package tracing

import (
	"context"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.37.0"

	"palmares/internal/core/middleware"
)

// told are the attributes that leave the house, beside our own. The library
// for HTTP has more: the caller's address, what its browser says of itself,
// the path as it came.
var told = map[attribute.Key]bool{
	semconv.HTTPRequestMethodKey:      true,
	semconv.HTTPResponseStatusCodeKey: true,
	semconv.HTTPResponseBodySizeKey:   true,
	semconv.HTTPRouteKey:              true,
	semconv.NetworkProtocolVersionKey: true,
	semconv.GraphQLOperationNameKey:   true,
	semconv.DBQueryTextKey:            true, // with placeholders for what was asked
	semconv.DBOperationNameKey:        true,
	semconv.DBSystemNameKey:           true,
}

// discreet sends spans without what is nobody's business.
type discreet struct{ sdktrace.SpanExporter }

// ExportSpans is what OpenTelemetry calls.
func (d discreet) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	scrubbed := make([]sdktrace.ReadOnlySpan, len(spans))
	for i, span := range spans {
		scrubbed[i] = scrubbedSpan{span}
	}
	return d.SpanExporter.ExportSpans(ctx, scrubbed)
}

type scrubbedSpan struct{ sdktrace.ReadOnlySpan }

// Attributes are what may be told.
func (s scrubbedSpan) Attributes() (kept []attribute.KeyValue) {
	for _, a := range s.ReadOnlySpan.Attributes() {
		switch {
		case told[a.Key] || strings.HasPrefix(string(a.Key), "palmares."):
			kept = append(kept, a)
		case a.Key == semconv.URLPathKey:
			kept = append(kept, semconv.URLPath(pathOf(a.Value.AsString())))
		}
	}
	return kept
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
