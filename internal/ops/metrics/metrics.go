// Package metrics holds the numbers that operators watch. It is told what
// happened and asks nobody: neither the catalog nor a database enters here.
package metrics

import (
	"database/sql"
	"net/http"
	"runtime"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Metrics are all numbers of one server.
type Metrics struct {
	registry *prometheus.Registry
	Requests *Requests

	statements *prometheus.HistogramVec
	failures   *prometheus.CounterVec
	counts     prometheus.Histogram
}

// New has the numbers that every server has.
func New(version string) *Metrics {
	m := &Metrics{
		registry: prometheus.NewRegistry(),
		statements: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "palmares_sql_duration_seconds", Buckets: sqlBuckets,
			Help: "How long statements took, until their last row was read, by pool of connections.",
		}, []string{"pool"}),
		failures: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "palmares_sql_failures_total", Help: "Statements that failed, by pool of connections.",
		}, []string{"pool"}),
		counts: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "palmares_quota_duration_seconds", Buckets: quotaBuckets, Help: "How long a request waited to be counted.",
		}),
	}
	m.Requests = newRequests(m.registry)
	build := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "palmares_build_info", Help: "1, with the version of palmares and of Go.",
	}, []string{"version", "goversion"})
	build.WithLabelValues(version, runtime.Version()).Set(1)
	m.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		build, m.statements, m.failures, m.counts)
	return m
}

var (
	sqlBuckets   = []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 5, 30}
	quotaBuckets = []float64{.00001, .0001, .0005, .001, .0025, .005, .01, .02, .05, .1}
)

// Handler answers whoever collects the numbers.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
}

// Pool adds what database/sql knows of a pool of connections.
func (m *Metrics) Pool(name string, db *sql.DB) {
	m.registry.MustRegister(collectors.NewDBStatsCollector(db, name))
}

// Counter adds a number that only grows, and is read when somebody asks.
func (m *Metrics) Counter(name, help string, read func() float64, labels ...string) {
	m.registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{Name: name, Help: help, ConstLabels: labelled(labels)}, read))
}

// Gauge adds a number that goes up and down, and is read when somebody asks.
func (m *Metrics) Gauge(name, help string, read func() float64, labels ...string) {
	m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help, ConstLabels: labelled(labels)}, read))
}

// labelled takes names and values in turn.
func labelled(pairs []string) prometheus.Labels {
	labels := prometheus.Labels{}
	for i := 0; i+1 < len(pairs); i += 2 {
		labels[pairs[i]] = pairs[i+1]
	}
	return labels
}
