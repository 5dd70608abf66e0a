package tracing

import (
	"log/slog"
	"sync"
	"time"
)

// complainEvery is how often it is told that spans cannot be sent.
const complainEvery = time.Minute

// complaints tell what goes wrong with sending, once in a while: the service
// is not worse for it. The library's words may repeat an address with its
// password, so they are not told.
type complaints struct {
	log  *slog.Logger
	mu   sync.Mutex
	last time.Time
}

// Handle is what OpenTelemetry calls.
func (c *complaints) Handle(error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if time.Since(c.last) < complainEvery {
		return
	}
	c.last = time.Now()
	c.log.Warn("traces are not taken by who collects them: see OTEL_EXPORTER_OTLP_ENDPOINT")
}
