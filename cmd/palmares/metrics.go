package main

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// metrics are for operators alone: they have a listener of their own, which
// nobody else need reach.
type metrics struct {
	registry *prometheus.Registry
	server   *http.Server
}

func newMetrics(g *gate) *metrics {
	registry := prometheus.NewRegistry()
	registry.MustRegister(
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "palmares_quota_redis_failures_total", Help: "How often Redis did not answer, and a request was counted without.",
		}, func() float64 {
			if g.redis == nil {
				return 0
			}
			return float64(g.redis.Failed.Load())
		}),
	)
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	return &metrics{registry, &http.Server{Handler: mux, ReadHeaderTimeout: readHeaderTimeout, WriteTimeout: writeTimeout}}
}

// serve answers on listener until ctx ends.
func (m *metrics) serve(ctx context.Context, listener net.Listener, log *slog.Logger) {
	go func() {
		<-ctx.Done()
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = m.server.Shutdown(ctx)
	}()
	if err := m.server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		log.Error("metrics are not served any more", "cause", err)
	}
}
