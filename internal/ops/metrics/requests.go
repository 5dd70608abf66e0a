package metrics

import (
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"palmares/internal/core/middleware"
)

// Requests counts and times requests. It stands in everybody's way, so a
// counter is looked up by its labels once, and by its place from then on.
type Requests struct {
	total     *prometheus.CounterVec
	durations *prometheus.HistogramVec
	counters  [][numberOfPlans][numberOfStatuses]atomic.Pointer[prometheus.Counter] // by route
	took      []atomic.Pointer[prometheus.Observer]
	inFlight  atomic.Int64
}

// latencyBuckets begin where answers that are kept lie, and end where the
// longest operations are given up.
var latencyBuckets = []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10}

func newRequests(registry *prometheus.Registry) *Requests {
	r := &Requests{
		total: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "palmares_requests_total", Help: "Requests by route, status and the caller's plan; a status of none is a caller who left before an answer.",
		}, []string{"route", "status", "plan"}),
		counters: make([][numberOfPlans][numberOfStatuses]atomic.Pointer[prometheus.Counter], len(templates)),
		took:     make([]atomic.Pointer[prometheus.Observer], len(templates)),
		durations: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "palmares_request_duration_seconds", Buckets: latencyBuckets, Help: "How long requests took, by route. Streams are not among them.",
		}, []string{"route"}),
	}
	registry.MustRegister(r.total, r.durations, prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "palmares_requests_in_flight", Help: "Requests that are being answered.",
	}, func() float64 { return float64(r.inFlight.Load()) }))
	return r
}

// Link knows how many are on their way.
func (r *Requests) Link(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		r.inFlight.Add(1)
		defer r.inFlight.Add(-1)
		next.ServeHTTP(w, request)
	})
}

// Observe counts an answer.
func (r *Requests) Observe(o middleware.Observed) {
	route := routeOf(o.Request.URL.Path)
	r.counter(route, planOf(o.Header), statusOf(o.Status)).Inc()
	if media := o.Header["Content-Type"]; len(media) > 0 && strings.HasPrefix(media[0], "text/event-stream") {
		return // it lasts as long as its reader likes
	}
	r.histogram(route).Observe(o.Took.Seconds())
}

func (r *Requests) counter(route route, p plan, s status) prometheus.Counter {
	place := &r.counters[route][p][s]
	if known := place.Load(); known != nil {
		return *known
	}
	counter := r.total.WithLabelValues(templates[route], s.String(), planNames[p])
	place.Store(&counter)
	return counter
}

func (r *Requests) histogram(route route) prometheus.Observer {
	place := &r.took[route]
	if known := place.Load(); known != nil {
		return *known
	}
	histogram := r.durations.WithLabelValues(templates[route])
	place.Store(&histogram)
	return histogram
}

// plan is whose request it was, as the answer says.
type plan uint8

const numberOfPlans = 3

var planNames = [numberOfPlans]string{"anonymous", "free", "pro"}

func planOf(header http.Header) plan {
	tier := header["X-Ratelimit-Tier"]
	if len(tier) == 0 {
		return 0
	}
	for i, name := range planNames {
		if name == tier[0] {
			return plan(i)
		}
	}
	return 0
}

// statuses are those that a server of ours answers with; all others are one.
var statuses = [...]int{0, 200, 204, 301, 302, 303, 304, 307, 308, 400, 401, 403, 404, 405, 406, 409, 410, 413, 415, 422, 429, 500, 502, 503, 504}

const numberOfStatuses = len(statuses) + 1

// status is a place in statuses, or behind them.
type status uint8

var statusPlaces = func() (places [600]status) {
	for code := range places {
		places[code] = status(len(statuses))
	}
	for i, code := range statuses {
		places[code] = status(i)
	}
	return places
}()

func statusOf(code int) status {
	if code < 0 || code >= len(statusPlaces) {
		return status(len(statuses))
	}
	return statusPlaces[code]
}

func (s status) String() string {
	switch {
	case s == 0:
		return "none"
	case int(s) == len(statuses):
		return other
	}
	return strconv.Itoa(statuses[s])
}
