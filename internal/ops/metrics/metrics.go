// Package metrics collects the Prometheus metrics of one server.
package metrics

import (
	"context"
	"database/sql"
	"errors"
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"palmares/internal/core/middleware"
)

// Other is the label value for everything without a label of its own, so that
// clients cannot create new time series.
const Other = "other"

// Metrics holds all metrics of one server.
type Metrics struct {
	registry   *prometheus.Registry
	requests   *prometheus.CounterVec
	durations  *prometheus.HistogramVec
	inFlight   prometheus.Gauge
	statements *prometheus.HistogramVec
	failures   *prometheus.CounterVec
	quota      prometheus.Histogram
}

var (
	// latencyBuckets range from cached responses to the longest GraphQL operations.
	latencyBuckets = []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10}
	sqlBuckets     = []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 5, 30}
	quotaBuckets   = []float64{.00001, .0001, .0005, .001, .0025, .005, .01, .02, .05, .1}
)

// New returns the metrics that do not depend on other parts of the server:
// those of the process, of requests and of SQL statements.
func New(version string) *Metrics {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	create := promauto.With(registry)
	m := &Metrics{
		registry: registry,
		requests: create.NewCounterVec(prometheus.CounterOpts{
			Name: "palmares_requests_total", Help: "Requests by route, status and plan. The status is none if the client disconnected before the response.",
		}, []string{"route", "status", "plan"}),
		durations: create.NewHistogramVec(prometheus.HistogramOpts{
			Name: "palmares_request_duration_seconds", Buckets: latencyBuckets, Help: "Duration of requests by route, excluding streams.",
		}, []string{"route"}),
		inFlight: create.NewGauge(prometheus.GaugeOpts{Name: "palmares_requests_in_flight", Help: "Requests being processed."}),
		statements: create.NewHistogramVec(prometheus.HistogramOpts{
			Name: "palmares_sql_duration_seconds", Buckets: sqlBuckets, Help: "Duration of SQL statements until their last row was read, by connection pool.",
		}, []string{"pool"}),
		failures: create.NewCounterVec(prometheus.CounterOpts{
			Name: "palmares_sql_failures_total", Help: "SQL statements that failed, by connection pool.",
		}, []string{"pool"}),
		quota: create.NewHistogram(prometheus.HistogramOpts{
			Name: "palmares_quota_duration_seconds", Buckets: quotaBuckets, Help: "Duration of quota checks in Redis.",
		}),
	}
	m.AddGauge("palmares_build_info", "Always 1, with the versions of palmares and Go as labels.", func() float64 { return 1 },
		"version", version, "goversion", runtime.Version())
	return m
}

// Handler serves the metrics in Prometheus' text format.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
}

// AddPool adds the statistics of a database connection pool.
func (m *Metrics) AddPool(name string, db *sql.DB) {
	m.failures.WithLabelValues(name) // 0 until a statement fails
	m.registry.MustRegister(collectors.NewDBStatsCollector(db, name))
}

// AddCounter adds a counter that is read at each scrape. Labels are pairs of name
// and value.
func (m *Metrics) AddCounter(name, help string, read func() float64, labels ...string) {
	m.registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{Name: name, Help: help, ConstLabels: labelPairs(labels)}, read))
}

// AddGauge adds a gauge that is read at each scrape. Labels are pairs of name and
// value.
func (m *Metrics) AddGauge(name, help string, read func() float64, labels ...string) {
	m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help, ConstLabels: labelPairs(labels)}, read))
}

func labelPairs(pairs []string) prometheus.Labels {
	labels := prometheus.Labels{}
	for i := 0; i+1 < len(pairs); i += 2 {
		labels[pairs[i]] = pairs[i+1]
	}
	return labels
}

// Middleware counts the requests in flight.
func (m *Metrics) Middleware(next http.Handler) http.Handler {
	return promhttp.InstrumentHandlerInFlight(m.inFlight, next)
}

// Observe records a finished request under its route. The number of routes must
// be limited.
func (m *Metrics) Observe(o middleware.Observed, route string) {
	status := Other
	if o.Status >= 0 && o.Status < len(statusLabels) {
		status = statusLabels[o.Status]
	}
	plan := "anonymous"
	if tier := o.Header["X-Ratelimit-Tier"]; len(tier) > 0 && (tier[0] == "free" || tier[0] == "pro") {
		plan = tier[0]
	}
	m.requests.WithLabelValues(route, status, plan).Inc()
	if media := o.Header["Content-Type"]; len(media) > 0 && strings.HasPrefix(media[0], "text/event-stream") {
		return // a stream lasts as long as its client stays connected
	}
	m.durations.WithLabelValues(route).Observe(o.Took.Seconds())
}

// statusLabels saves an allocation for each request.
var statusLabels = func() (labels [600]string) {
	for code := range labels {
		labels[code] = Other
		if code >= 100 {
			labels[code] = strconv.Itoa(code)
		}
	}
	labels[0] = "none"
	return labels
}()

// Statement times an SQL statement. The caller calls the returned function when it
// ends.
func (m *Metrics) Statement(_ context.Context, pool, _ string) func(error) {
	start := time.Now()
	return func(err error) {
		m.statements.WithLabelValues(pool).Observe(time.Since(start).Seconds())
		if err != nil && !errors.Is(err, context.Canceled) {
			m.failures.WithLabelValues(pool).Inc()
		}
	}
}

// Quota times a quota check. The caller calls the returned function when it ends.
func (m *Metrics) Quota(context.Context) func() {
	start := time.Now()
	return func() { m.quota.Observe(time.Since(start).Seconds()) }
}
