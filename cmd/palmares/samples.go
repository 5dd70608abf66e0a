package main

import (
	"context"
	"log/slog"
	"math"
	"sync"
	"time"

	"palmares/internal/core/store"
	"palmares/internal/notify/webhook"
	"palmares/internal/ops/metrics"
	"palmares/internal/web/status"
)

const (
	// sampleEvery is how old numbers out of the database may be: however many
	// collect them, it is asked no more often.
	sampleEvery = 15 * time.Second
	// shareEvery is the same for what goes through many rows.
	shareEvery = 5 * time.Minute
	sampleTime = 2 * time.Second
	// promisedDays are those that the promise of 99 % is about.
	promisedDays = 30
)

// samples are numbers that only the database knows. They are looked up when
// somebody collects them, and else by nobody.
type samples struct {
	store *store.Store
	hooks *webhook.Webhooks
	log   *slog.Logger

	mu       sync.Mutex
	at       time.Time // when they were last looked up
	sharedAt time.Time
	up       bool
	backlog  webhook.Backlog
	share    float64 // NaN while it is not known
}

func newSamples(s *store.Store, hooks *webhook.Webhooks, log *slog.Logger) *samples {
	return &samples{store: s, hooks: hooks, log: log, share: math.NaN()}
}

func (s *samples) addTo(m *metrics.Metrics) {
	gauge := func(name, help string, read func(*samples) float64, labels ...string) {
		m.Gauge(name, help, func() float64 {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.renew()
			return read(s)
		}, labels...)
	}
	gauge("palmares_database_up", "1 if the database answered when it was last asked.", func(s *samples) float64 { return oneIf(s.up) })
	for _, state := range []string{"active", "paused", "disabled"} {
		gauge("palmares_webhook_endpoints", "Endpoints that events are sent to, by state; of all servers together.",
			func(s *samples) float64 { return float64(s.backlog.Endpoints[state]) }, "state", state)
	}
	gauge("palmares_webhook_planned", "Events that are to be sent to an endpoint again; of all servers together.",
		func(s *samples) float64 { return float64(s.backlog.Planned) })
	gauge("palmares_webhook_oldest_waiting_seconds", "Since when the oldest event could have been sent; 0 if none waits.",
		func(s *samples) float64 { return s.backlog.Oldest.Seconds() })
	gauge("palmares_availability_ratio", "The part of the minutes of the last 30 days that were good, of all servers together.",
		func(s *samples) float64 { return s.share })
}

// renew looks everything up again, if it is old, for who holds the lock.
func (s *samples) renew() {
	if time.Since(s.at) < sampleEvery {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), sampleTime)
	defer cancel()
	ready := s.store.Ready(ctx)
	if was := s.up; ready != nil && (was || s.at.IsZero()) {
		s.log.Warn("numbers are old: the database does not answer", "cause", ready)
	}
	s.up = ready == nil
	if s.up {
		s.look(ctx)
	}
	s.at = time.Now()
}

// look leaves what it cannot find out as it was.
func (s *samples) look(ctx context.Context) {
	backlog, err := s.hooks.Backlog(ctx)
	if err != nil {
		s.log.Warn("what webhooks wait cannot be told", "cause", err)
		return
	}
	s.backlog = backlog
	if time.Since(s.sharedAt) < shareEvery {
		return
	}
	share, known, err := status.Share(ctx, s.store, promisedDays)
	if err != nil {
		s.log.Warn("how available the service was cannot be told", "cause", err)
		return
	}
	if known {
		s.share, s.sharedAt = share, time.Now()
	}
}
