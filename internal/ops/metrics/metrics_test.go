package metrics

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"palmares/internal/core/middleware"
	"palmares/internal/dev/check"
)

func observed(tier string, code int, took time.Duration) middleware.Observed {
	header := http.Header{"Content-Type": {"application/json"}}
	if tier != "" {
		header["X-Ratelimit-Tier"] = []string{tier}
	}
	return middleware.Observed{Request: httptest.NewRequest(http.MethodGet, "/", nil), Header: header, Status: code, Took: took}
}

// scrape returns the text that Prometheus reads.
func scrape(t *testing.T, m *Metrics) string {
	t.Helper()
	recorder := httptest.NewRecorder()
	m.Handler().ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	return recorder.Body.String()
}

func TestRequestsAreCounted(t *testing.T) {
	m := New("1.2.3")
	m.Observe(observed("pro", 200, 2*time.Millisecond), "/api/v1/tools/{slug}")
	m.Observe(observed("pro", 200, 3*time.Millisecond), "/api/v1/tools/{slug}")
	m.Observe(observed("free", 429, time.Microsecond), "/api/v1/tools/{slug}")
	m.Observe(observed("", 404, time.Microsecond), Other)
	m.Observe(observed("admin", 418, time.Microsecond), "/tools")
	m.Observe(observed("", 0, time.Microsecond), "/tools")
	m.Observe(observed("", 99, time.Microsecond), "/tools")
	m.Observe(observed("", 7_000, time.Microsecond), "/tools")
	stream := observed("free", 200, time.Hour)
	stream.Header["Content-Type"] = []string{"text/event-stream; charset=utf-8"}
	m.Observe(stream, "/graphql")

	text := ""
	m.Middleware(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { text = scrape(t, m) })).ServeHTTP(nil, nil)
	for _, want := range []string{
		`palmares_requests_total{plan="pro",route="/api/v1/tools/{slug}",status="200"} 2`,
		`palmares_requests_total{plan="free",route="/api/v1/tools/{slug}",status="429"} 1`,
		`palmares_requests_total{plan="anonymous",route="other",status="404"} 1`,
		`palmares_requests_total{plan="anonymous",route="/tools",status="other"} 2`,
		`palmares_requests_total{plan="anonymous",route="/tools",status="418"} 1`,
		`palmares_requests_total{plan="anonymous",route="/tools",status="none"} 1`,
		`palmares_requests_total{plan="free",route="/graphql",status="200"} 1`,
		`palmares_request_duration_seconds_bucket{route="/api/v1/tools/{slug}",le="0.0025"} 2`,
		`palmares_request_duration_seconds_count{route="/api/v1/tools/{slug}"} 3`,
		`palmares_requests_in_flight 1`,
		`palmares_build_info{goversion="go`,
	} {
		check.Contains(t, text, want)
	}
	for _, never := range []string{"admin", `duration_seconds_count{route="/graphql"}`, `route="/status"`} {
		check.True(t, !strings.Contains(text, never), "got %s, want it left out", never)
	}
	check.Contains(t, scrape(t, m), "palmares_requests_in_flight 0", "requests in flight after the last one")
}

func TestObservingAllocatesNothing(t *testing.T) {
	m, o := New("test"), observed("pro", 200, time.Millisecond)
	m.Observe(o, "/api/v1/tools/{slug}")
	check.Equal(t, testing.AllocsPerRun(100, func() { m.Observe(o, "/api/v1/tools/{slug}") }), 0, "allocations")
}

// BenchmarkObserve measures what metrics cost per request.
func BenchmarkObserve(b *testing.B) {
	m, o := New("test"), observed("pro", 200, 10*time.Microsecond)
	handler := m.Middleware(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { m.Observe(o, "/api/v1/tools/{slug}") }))
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			handler.ServeHTTP(nil, o.Request)
		}
	})
}
