package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	spans "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"palmares/internal/core/store"
	"palmares/internal/dev/testkit"
	"palmares/internal/dev/testkit/wait"
)

// spanCollector takes spans as OTLP over HTTP brings them.
type spanCollector struct {
	*httptest.Server
	mu    sync.Mutex
	spans []*spans.Span
	about map[string]string // the resource
	slow  chan struct{}     // holds answers back, if there is one
}

func newSpanCollector(t *testing.T) *spanCollector {
	c := &spanCollector{about: map[string]string{}}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		var sent collector.ExportTraceServiceRequest
		if err != nil || r.URL.Path != "/v1/traces" || proto.Unmarshal(body, &sent) != nil {
			t.Errorf("%s is not spans: %v", r.URL.Path, err)
		}
		if c.slow != nil {
			<-c.slow
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		for _, of := range sent.ResourceSpans {
			for name, value := range attributes(of.Resource.Attributes) {
				c.about[name] = value
			}
			for _, scope := range of.ScopeSpans {
				c.spans = append(c.spans, scope.Spans...)
			}
		}
		w.Header().Set("Content-Type", "application/x-protobuf")
	}))
	t.Cleanup(c.Server.Close)
	return c
}

// trace is the spans of one trace, once its request is among them, which ends
// last.
func (c *spanCollector) trace(t *testing.T, id string) []*spans.Span {
	t.Helper()
	var found []*spans.Span
	wait.Until(t, "the request is among the spans of "+id, func() (ended bool) {
		found = nil
		c.mu.Lock()
		for _, span := range c.spans {
			if fmt.Sprintf("%x", span.TraceId) == id {
				found = append(found, span)
				ended = ended || span.Kind == spans.Span_SPAN_KIND_SERVER
			}
		}
		c.mu.Unlock()
		return ended
	})
	return found
}

func attributes(all []*common.KeyValue) map[string]string {
	found := map[string]string{}
	for _, a := range all {
		if found[a.Key] = a.Value.GetStringValue(); found[a.Key] == "" {
			found[a.Key] = fmt.Sprint(a.Value.GetIntValue())
		}
	}
	return found
}

func child(t *testing.T, all []*spans.Span, of []byte, name string) *spans.Span {
	t.Helper()
	for _, span := range all {
		if span.Name == name && string(span.ParentSpanId) == string(of) {
			return span
		}
	}
	t.Fatalf("no span %s below %x in %v", name, of, all)
	return nil
}

func tracedServer(t *testing.T, cfg store.Config, c *spanCollector, args ...string) *server {
	t.Helper()
	cmd := palmares(t, cfg, append([]string{"serve", "--demo", "--listen", "127.0.0.1:0"}, args...)...)
	cmd.Env = append(cmd.Env, "OTEL_EXPORTER_OTLP_ENDPOINT="+c.URL, "OTEL_BSP_SCHEDULE_DELAY=50")
	return serving(t, cmd)
}

const (
	callersTrace = "4bf92f3577b34da6a3ce929d0e0e4736"
	callersSpan  = "00f067aa0ba902b7"
)

// One trace leads from the caller's span over the request and its operation to
// its statements, and tells nothing of what was asked.
func TestTraces(t *testing.T) {
	t.Parallel()
	testkit.Each(t, func(t *testing.T, cfg store.Config) {
		collected := newSpanCollector(t)
		redis := testkit.StartRedis(t)
		key := newKey(t, cfg, "pro")
		s := tracedServer(t, cfg, collected, "--redis-url", redis.URL)
		got := s.call(t, http.MethodGet, "/api/v1/tools/plume?secret=geheim", "", "Authorization", "Bearer "+key,
			"User-Agent", "ana@example.com", "Traceparent", "00-"+callersTrace+"-"+callersSpan+"-01")
		if got.StatusCode != 200 {
			t.Fatal(got.Status)
		}
		all := collected.trace(t, callersTrace)
		request := child(t, all, fromHex(callersSpan), "GET /api/v1/tools/{slug}")
		about := attributes(request.Attributes)
		if about["http.response.status_code"] != "200" || about["url.path"] != "/api/v1/tools/plume" || about["palmares.plan"] != "pro" || about["http.route"] != "/api/v1/tools/{slug}" ||
			about["palmares.request_id"] != got.Header.Get("X-Request-Id") {
			t.Errorf("the request: %v", about)
		}
		operation := child(t, all, request.SpanId, "tool")
		statement := child(t, all, operation.SpanId, "SELECT")
		if text := attributes(statement.Attributes)["db.query.text"]; !strings.HasPrefix(text, "SELECT ") || !strings.Contains(text, "FROM ") {
			t.Errorf("the statement: %s", text)
		}
		child(t, all, request.SpanId, "SELECT") // the key's
		child(t, all, request.SpanId, "count")
		if !strings.Contains(logOf(s, `"request_id":"`+got.Header.Get("X-Request-Id")), `"trace_id":"`+callersTrace+`"`) {
			t.Errorf("no trace in the log:\n%s", s.log)
		}
		for name, want := range map[string]string{"service.name": "palmares", "service.version": version} {
			if collected.about[name] != want {
				t.Errorf("%s: %s", name, collected.about[name])
			}
		}

		const second = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
		s.call(t, http.MethodPost, "/graphql", `{"query":"query Geheim {tools(filter: {search: \"geheim\"}) {items {slug}}}"}`,
			"Content-Type", "application/json", "Traceparent", "00-"+second+"-"+callersSpan+"-01")
		all = collected.trace(t, second)
		operation = child(t, all, child(t, all, fromHex(callersSpan), "POST /graphql").SpanId, "graphql")
		child(t, all, operation.SpanId, "SELECT")

		s.call(t, http.MethodGet, "/tools/"+key, "")
		s.call(t, http.MethodGet, "/who/ana@example.com", "")
		s.call(t, "GEHEIM", "/", "")
		http.DefaultClient.CloseIdleConnections() // they would hold up the server's end
		_ = s.cmd.Process.Signal(syscall.SIGTERM)
		s.ends(t)
		for _, span := range collected.spans {
			for _, secret := range []string{"geheim", "Geheim", "GEHEIM", key[:16], "example.com", "127.0.0.1"} {
				if strings.Contains(span.String(), secret) {
					t.Errorf("%s is told: %v", secret, span)
				}
			}
			if len(span.ParentSpanId) == 0 && span.Kind != spans.Span_SPAN_KIND_SERVER {
				t.Errorf("what the server does by itself is told: %v", span)
			}
		}
	})
}

func fromHex(text string) (bytes []byte) {
	_, _ = fmt.Sscanf(text, "%x", &bytes)
	return bytes
}

// logOf is the lines of a log that hold a text, a moment later at the latest.
func logOf(s *server, text string) (found string) {
	for deadline := time.Now().Add(wait.Limit); found == "" && time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		for line := range strings.Lines(s.log.String()) {
			if strings.Contains(line, text) {
				found += line
			}
		}
	}
	return found
}

// What is collected last is sent before the end, but nobody is waited for
// without end.
func TestTracesAtTheEnd(t *testing.T) {
	t.Parallel()
	collected := newSpanCollector(t)
	s := tracedServer(t, testkit.SQLite(t), collected)
	s.call(t, http.MethodGet, "/api/v1/stats", "", "Traceparent", "00-"+callersTrace+"-"+callersSpan+"-01")
	http.DefaultClient.CloseIdleConnections()
	_ = s.cmd.Process.Signal(syscall.SIGTERM)
	s.ends(t)
	collected.trace(t, callersTrace)

	collected.slow = make(chan struct{})
	defer close(collected.slow)
	s = tracedServer(t, testkit.SQLite(t), collected)
	if got := s.call(t, http.MethodGet, "/api/v1/stats", ""); got.StatusCode != 200 {
		t.Error(got.Status)
	}
	http.DefaultClient.CloseIdleConnections()
	_ = s.cmd.Process.Signal(syscall.SIGTERM)
	s.ends(t)
}

// Where nobody collects traces, the server says so and serves.
func TestTracesForNobody(t *testing.T) {
	t.Parallel()
	cmd := palmares(t, testkit.SQLite(t), "serve", "--demo", "--listen", "127.0.0.1:0")
	cmd.Env = append(cmd.Env, "OTEL_EXPORTER_OTLP_ENDPOINT=http://u:geheim@"+freeAddress(t), "OTEL_BSP_SCHEDULE_DELAY=50", "OTEL_EXPORTER_OTLP_TIMEOUT=300")
	s := serving(t, cmd)
	if got := s.call(t, http.MethodGet, "/api/v1/stats", ""); got.StatusCode != 200 {
		t.Error(got.Status)
	}
	if logOf(s, "traces are not taken") == "" || strings.Contains(s.log.String(), "geheim") {
		t.Error(s.log)
	}
	for _, wrong := range []string{"OTEL_TRACES_EXPORTER=zipkin", "OTEL_EXPORTER_OTLP_PROTOCOL=grpc"} {
		cmd := palmares(t, testkit.SQLite(t), "serve", "--listen", "127.0.0.1:0")
		cmd.Env = append(cmd.Env, "OTEL_EXPORTER_OTLP_ENDPOINT="+"http://127.0.0.1:1", wrong)
		name, _, _ := strings.Cut(wrong, "=")
		if r := runs(t, cmd); r.code != 1 || !strings.HasPrefix(r.err, "palmares: "+name+": ") {
			t.Errorf("%s: exit %d: %s", wrong, r.code, r.err)
		}
	}
}
