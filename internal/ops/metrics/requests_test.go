package metrics

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"palmares/internal/core/middleware"
)

func TestRoutesAreFew(t *testing.T) {
	for path, want := range map[string]string{
		"/api/v1/tools":                     "/api/v1/tools",
		"/api/v1/tools/":                    other,
		"/api/v1/tools/plume":               "/api/v1/tools/{slug}",
		"/api/v1/tools/plume/more":          other,
		"/api/v1/openapi.json":              "/api/v1/openapi.json",
		"/api/v1/anything":                  other,
		"/api/embeddings/plume":             "/api/embeddings/{slug}",
		"/graphql":                          "/graphql",
		"/":                                 "/",
		"":                                  other,
		"*":                                 other,
		"//":                                other,
		"/tools/plume":                      "/tools/{slug}",
		"/feeds/changes.atom":               "/feeds/{feed}",
		"/schemas/events/tool.created.json": "/schemas/events/{type}",
		"/login":                            "/login",
		"/login/confirm":                    "/login/…",
		"/account/keys/12/revoke":           "/account/…",
		"/accounts/x":                       other,
		"/assets/workbench/a.js":            "/assets/…",
		"/wp-login.php":                     other,
		"/" + strings.Repeat("a/", 5_000):   other,
		"/guides/start.md":                  "/guides/{guide}",
		"tools":                             other,
	} {
		if got := Route(path); got != want {
			t.Errorf("%.40q: %s", path, got)
		}
	}
}

func observed(path, tier string, code int, took time.Duration) middleware.Observed {
	header := http.Header{"Content-Type": {"application/json"}}
	if tier != "" {
		header["X-Ratelimit-Tier"] = []string{tier}
	}
	return middleware.Observed{Request: httptest.NewRequest(http.MethodGet, path, nil), Header: header, Status: code, Took: took}
}

// scrape is what a collector reads.
func scrape(t *testing.T, m *Metrics) string {
	t.Helper()
	recorder := httptest.NewRecorder()
	m.Handler().ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	return recorder.Body.String()
}

func TestRequestsAreCounted(t *testing.T) {
	m := New("1.2.3")
	m.Requests.Observe(observed("/api/v1/tools/plume", "pro", 200, 2*time.Millisecond))
	m.Requests.Observe(observed("/api/v1/tools/nova", "pro", 200, 3*time.Millisecond))
	m.Requests.Observe(observed("/api/v1/tools/nova", "free", 429, time.Microsecond))
	m.Requests.Observe(observed("/pal_secret", "", 404, time.Microsecond))
	m.Requests.Observe(observed("/tools", "admin", 418, time.Microsecond))
	m.Requests.Observe(observed("/tools", "", 0, time.Microsecond))
	m.Requests.Observe(observed("/tools", "", 7_000, time.Microsecond))
	stream := observed("/graphql", "free", 200, time.Hour)
	stream.Header["Content-Type"] = []string{"text/event-stream; charset=utf-8"}
	m.Requests.Observe(stream)

	said := ""
	m.Requests.Link(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { said = scrape(t, m) })).ServeHTTP(nil, nil)
	for _, want := range []string{
		`palmares_requests_total{plan="pro",route="/api/v1/tools/{slug}",status="200"} 2`,
		`palmares_requests_total{plan="free",route="/api/v1/tools/{slug}",status="429"} 1`,
		`palmares_requests_total{plan="anonymous",route="other",status="404"} 1`,
		`palmares_requests_total{plan="anonymous",route="/tools",status="other"} 2`,
		`palmares_requests_total{plan="anonymous",route="/tools",status="none"} 1`,
		`palmares_requests_total{plan="free",route="/graphql",status="200"} 1`,
		`palmares_request_duration_seconds_bucket{route="/api/v1/tools/{slug}",le="0.0025"} 2`,
		`palmares_request_duration_seconds_count{route="/api/v1/tools/{slug}"} 3`,
		`palmares_requests_in_flight 1`,
		`palmares_build_info{goversion="go`,
	} {
		if !strings.Contains(said, want) {
			t.Errorf("no %s in\n%s", want, said)
		}
	}
	for _, never := range []string{"secret", "nova", `duration_seconds_count{route="/graphql"}`, `route="/status"`} {
		if strings.Contains(said, never) {
			t.Errorf("it tells %s", never)
		}
	}
	if !strings.Contains(scrape(t, m), "palmares_requests_in_flight 0") {
		t.Error("a request stays in flight for ever")
	}
}

func TestObservingAllocatesNothing(t *testing.T) {
	m, o := New("test"), observed("/api/v1/tools/plume", "pro", 200, time.Millisecond)
	m.Requests.Observe(o)
	if n := testing.AllocsPerRun(100, func() { m.Requests.Observe(o) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// BenchmarkObserve is what every request pays.
func BenchmarkObserve(b *testing.B) {
	m, o := New("test"), observed("/api/v1/tools/plume", "pro", 200, 10*time.Microsecond)
	link := m.Requests.Link(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { m.Requests.Observe(o) }))
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			link.ServeHTTP(nil, o.Request)
		}
	})
}
