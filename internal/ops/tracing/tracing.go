// Package tracing tells OpenTelemetry where the time of a request goes: the
// request, its operation, its statements. What was asked for does not leave the
// house: no arguments, no query, no keys, no addresses of people.
package tracing

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// closeTime is what sending the last spans may take.
const closeTime = 3 * time.Second

// Tracing makes spans and sends them.
type Tracing struct {
	provider *sdktrace.TracerProvider
	tracer   trace.Tracer
}

// Wanted tells whether the environment asks for traces, in OpenTelemetry's own
// variables.
func Wanted() (bool, error) {
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
		return false, fmt.Errorf("OTEL_TRACES_EXPORTER: %q is neither otlp nor none", exporter)
	}
	for _, name := range []string{"OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"} {
		if protocol := os.Getenv(name); protocol != "" && protocol != "http/protobuf" {
			return false, fmt.Errorf("%s: only http/protobuf is spoken", name)
		}
	}
	return true, nil
}

// New is ready to trace as the environment asks, or nil where it does not.
func New(ctx context.Context, version string, log *slog.Logger) (*Tracing, error) {
	if wanted, err := Wanted(); !wanted {
		return nil, err
	}
	otel.SetLogger(logr.FromSlogHandler(log.Handler())) // its own would write lines that are no JSON
	otel.SetErrorHandler(&complaints{log: log})
	exporter, err := otlptracehttp.New(ctx)
	if err != nil { // its words may repeat the address, password and all
		return nil, fmt.Errorf("OTEL_EXPORTER_OTLP_ENDPOINT: traces cannot be sent there")
	}
	about, err := resource.New(ctx,
		resource.WithAttributes(attribute.String("service.name", "palmares"), attribute.String("service.version", version)),
		resource.WithTelemetrySDK(), resource.WithFromEnv()) // what the operator says goes last
	if err != nil {
		return nil, fmt.Errorf("OTEL_RESOURCE_ATTRIBUTES: are not of the form name=value,…")
	}
	provider := sdktrace.NewTracerProvider(sdktrace.WithBatcher(discreet{exporter}), sdktrace.WithResource(about))
	return &Tracing{provider, provider.Tracer("palmares")}, nil
}

// Close sends what is left, within a bounded time.
func (t *Tracing) Close() {
	ctx, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	_ = t.provider.Shutdown(ctx) // whoever collects spans is told nothing more
}
