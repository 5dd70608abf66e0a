package metrics

import (
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"palmares/internal/core/middleware"
)

// Other is the label value of everything that has no label of its own, so that
// clients cannot create new time series.
const Other = "other"

// Requests counts and times HTTP requests.
type Requests struct {
	total     *prometheus.CounterVec
	durations *prometheus.HistogramVec
	inFlight  atomic.Int64
}

// latencyBuckets range from cached responses to the longest GraphQL operations.
var latencyBuckets = []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10}

func newRequests(registry *prometheus.Registry) *Requests {
	r := &Requests{
		total: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "palmares_requests_total", Help: "Requests by route, status and plan. The status is none if the client disconnected before the response.",
		}, []string{"route", "status", "plan"}),
		durations: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "palmares_request_duration_seconds", Buckets: latencyBuckets, Help: "Duration of requests by route, without streams.",
		}, []string{"route"}),
	}
	registry.MustRegister(r.total, r.durations, prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "palmares_requests_in_flight", Help: "Requests being processed.",
	}, func() float64 { return float64(r.inFlight.Load()) }))
	return r
}

// Link counts the requests in flight.
func (r *Requests) Link(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		r.inFlight.Add(1)
		defer r.inFlight.Add(-1)
		next.ServeHTTP(w, request)
	})
}

// Observe records a finished request under its route, which must be one of a
// limited number.
func (r *Requests) Observe(o middleware.Observed, route string) {
	r.total.WithLabelValues(route, statusLabel(o.Status), planLabel(o.Header)).Inc()
	if media := o.Header["Content-Type"]; len(media) > 0 && strings.HasPrefix(media[0], "text/event-stream") {
		return // a stream lasts as long as its client stays connected
	}
	r.durations.WithLabelValues(route).Observe(o.Took.Seconds())
}

func planLabel(header http.Header) string {
	if tier := header["X-Ratelimit-Tier"]; len(tier) > 0 && (tier[0] == "free" || tier[0] == "pro") {
		return tier[0]
	}
	return "anonymous"
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

func statusLabel(code int) string {
	if code < 0 || code >= len(statusLabels) {
		return Other
	}
	return statusLabels[code]
}
