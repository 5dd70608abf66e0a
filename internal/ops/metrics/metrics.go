// Package metrics collects the Prometheus metrics of one server.
package metrics

import (
	"context"
	"database/sql"
	"errors"
	"net/http"
	"runtime"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Metrics holds all metrics of one server.
type Metrics struct {
	registry *prometheus.Registry
	Requests *Requests

	statements *prometheus.HistogramVec
	failures   *prometheus.CounterVec
	quota      prometheus.Histogram
}

var (
	sqlBuckets   = []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 5, 30}
	quotaBuckets = []float64{.00001, .0001, .0005, .001, .0025, .005, .01, .02, .05, .1}
)

// New returns the metrics that do not depend on other parts of the server:
// those of the process, of requests and of SQL statements.
func New(version string) *Metrics {
	m := &Metrics{
		registry: prometheus.NewRegistry(),
		statements: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "palmares_sql_duration_seconds", Buckets: sqlBuckets,
			Help: "Duration of SQL statements until their last row was read, by connection pool.",
		}, []string{"pool"}),
		failures: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "palmares_sql_failures_total", Help: "SQL statements that failed, by connection pool.",
		}, []string{"pool"}),
		quota: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "palmares_quota_duration_seconds", Buckets: quotaBuckets, Help: "Time that requests waited for their quota check in Redis.",
		}),
	}
	m.Requests = newRequests(m.registry)
	build := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "palmares_build_info", Help: "Always 1, with the versions of palmares and Go as labels.",
	}, []string{"version", "goversion"})
	build.WithLabelValues(version, runtime.Version()).Set(1)
	m.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		build, m.statements, m.failures, m.quota)
	return m
}

// Handler serves the metrics in Prometheus' text format.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
}

// Pool adds the statistics of a database connection pool.
func (m *Metrics) Pool(name string, db *sql.DB) {
	m.failures.WithLabelValues(name) // 0 until a statement fails
	m.registry.MustRegister(collectors.NewDBStatsCollector(db, name))
}

// Counter adds a counter that is read at each scrape. Labels are name, value
// pairs.
func (m *Metrics) Counter(name, help string, read func() float64, labels ...string) {
	m.registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{Name: name, Help: help, ConstLabels: labelPairs(labels)}, read))
}

// Gauge adds a gauge that is read at each scrape. Labels are name, value pairs.
func (m *Metrics) Gauge(name, help string, read func() float64, labels ...string) {
	m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help, ConstLabels: labelPairs(labels)}, read))
}

func labelPairs(pairs []string) prometheus.Labels {
	labels := prometheus.Labels{}
	for i := 0; i+1 < len(pairs); i += 2 {
		labels[pairs[i]] = pairs[i+1]
	}
	return labels
}

// Statements returns a hook that times SQL statements: call it when a statement
// starts, and the function it returns when the statement ends.
func (m *Metrics) Statements() func(ctx context.Context, pool, text string) func(error) {
	return func(_ context.Context, pool, _ string) func(error) {
		start := time.Now()
		return func(err error) {
			m.statements.WithLabelValues(pool).Observe(time.Since(start).Seconds())
			if err != nil && !errors.Is(err, context.Canceled) {
				m.failures.WithLabelValues(pool).Inc()
			}
		}
	}
}

// TimeQuota times a quota check; call the function it returns at the end.
func (m *Metrics) TimeQuota(context.Context) func() {
	start := time.Now()
	return func() { m.quota.Observe(time.Since(start).Seconds()) }
}
