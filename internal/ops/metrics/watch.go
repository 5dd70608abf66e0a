package metrics

import (
	"context"
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Statements times the statements of a pool of connections. It returns what is
// to be called for each of them when it begins, and that what is to be called
// when it ends.
func (m *Metrics) Statements() func(ctx context.Context, pool, text string) func(error) {
	type pool struct {
		took   prometheus.Observer
		failed prometheus.Counter
	}
	pools := map[string]pool{}
	for _, name := range []string{"reader", "writer", "keys", "primary"} { // found once: the maps within are slow
		pools[name] = pool{m.statements.WithLabelValues(name), m.failures.WithLabelValues(name)}
	}
	return func(_ context.Context, name, _ string) func(error) {
		begun, p := time.Now(), pools[name]
		return func(err error) {
			if p.took == nil {
				return
			}
			p.took.Observe(time.Since(begun).Seconds())
			if err != nil && !errors.Is(err, context.Canceled) {
				p.failed.Inc()
			}
		}
	}
}

// Counted times how long a request waits to be counted.
func (m *Metrics) Counted(context.Context) func() {
	begun := time.Now()
	return func() { m.counts.Observe(time.Since(begun).Seconds()) }
}
