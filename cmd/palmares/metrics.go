package main

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/pprof"
	"time"

	"palmares/internal/ops/metrics"
)

// addMetrics gathers what all parts of the server can tell. Numbers are for
// operators alone: they have a listener of their own, which nobody else need
// reach.
func (p *program) addMetrics(m *metrics.Metrics) {
	for name, db := range p.store.Pools() {
		m.Pool(name, db)
	}
	m.Counter("palmares_cache_hits_total", "Responses that came from the cache.", func() float64 { return float64(p.answers.Hits.Load()) })
	m.Counter("palmares_cache_misses_total", "Answers that had to be worked out, or waited for.", func() float64 { return float64(p.answers.Misses.Load()) })
	m.Gauge("palmares_cache_bytes", "Bytes that cached responses, requests, documents and counts take.", func() float64 { return float64(p.answers.Weight()) })
	m.Gauge("palmares_cache_entries", "Cached responses, requests, documents and counts, approximately.", func() float64 { return float64(p.answers.Entries()) })

	m.Counter("palmares_quota_redis_failures_total", "How often Redis did not answer, and a request was counted without.", func() float64 {
		if p.gate.redis == nil {
			return 0
		}
		return float64(p.gate.redis.Failed.Load())
	})
	m.Gauge("palmares_quota_fallback", "1 while Redis is away and this server counts alone.", func() float64 {
		return oneIf(p.gate.redis != nil && p.gate.redis.Away())
	})

	hooks, mail := &p.people.hooks.Counts, p.people.mail
	const attempts = "Attempts to send an event to an endpoint: delivered, refused by an answer other than 2xx, or unreachable."
	m.Counter("palmares_webhook_attempts_total", attempts, func() float64 { return float64(hooks.Delivered.Load()) }, "outcome", "delivered")
	m.Counter("palmares_webhook_attempts_total", attempts, func() float64 { return float64(hooks.Refused.Load()) }, "outcome", "refused")
	m.Counter("palmares_webhook_attempts_total", attempts, func() float64 { return float64(hooks.Unreachable.Load()) }, "outcome", "unreachable")
	const letters = "Letters that the mail server took, and letters that were given up."
	m.Counter("palmares_mail_letters_total", letters, func() float64 { return float64(mail.Sent.Load()) }, "outcome", "sent")
	m.Counter("palmares_mail_letters_total", letters, func() float64 { return float64(mail.GivenUp.Load()) }, "outcome", "given_up")
	m.Gauge("palmares_mail_waiting", "Letters that are queued or to be tried again.", func() float64 { return float64(mail.Waiting()) })

	m.Gauge("palmares_release_number", "The release that is served; 0 before the first.", func() float64 {
		if release := p.health.release.Load(); release != nil {
			return float64(release.ID)
		}
		return 0
	})
	m.Gauge("palmares_release_age_seconds", "Since when the release that is served is published; 0 before the first.", func() float64 {
		if release := p.health.release.Load(); release != nil {
			return time.Since(release.ImportedAt).Seconds()
		}
		return 0
	})
	m.Gauge("palmares_draining", "1 while the server ends.", func() float64 { return oneIf(p.health.draining.Load()) })
	m.Gauge("palmares_connections", "Connections that are open.", func() float64 { return float64(p.conns.open.Load()) })
	m.Gauge("palmares_streams", "GraphQL subscriptions that are open.", func() float64 { return float64(p.graphql.Streams()) })
	newSamples(p.store, p.people.hooks, p.log).addTo(m)
}

func oneIf(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

// serveMetrics answers on their listener until ctx ends.
func (p *program) serveMetrics(ctx context.Context, m *metrics.Metrics) {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", m.Handler())
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	server := &http.Server{
		Handler: mux, ReadHeaderTimeout: readHeaderTimeout, WriteTimeout: writeTimeout,
		ErrorLog: slog.NewLogLogger(p.log.Handler(), slog.LevelWarn),
	}
	go func() {
		<-ctx.Done()
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = server.Shutdown(ctx)
	}()
	if err := server.Serve(p.metrics); !errors.Is(err, http.ErrServerClosed) {
		p.log.Error("metrics are not served any more", "cause", err)
	}
}
