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
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
	"palmares/internal/dev/testkit/blackbox"
	"palmares/internal/dev/testkit/wait"
)

// spanCollector is an OTLP collector over HTTP.
type spanCollector struct {
	*httptest.Server
	mu       sync.Mutex
	spans    []*spans.Span
	resource map[string]string
	slow     chan struct{} // if set, delays responses until it is closed
}

func newSpanCollector(t *testing.T) *spanCollector {
	c := &spanCollector{resource: map[string]string{}}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		var sent collector.ExportTraceServiceRequest
		check.True(t, err == nil && r.URL.Path == "/v1/traces" && proto.Unmarshal(body, &sent) == nil,
			"%s: got %d bytes and %v, want spans", r.URL.Path, len(body), err)
		if c.slow != nil {
			<-c.slow
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		for _, of := range sent.ResourceSpans {
			for name, value := range attributes(of.Resource.Attributes) {
				c.resource[name] = value
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

// trace returns the spans of a trace. It waits for the span of the request, which
// arrives last.
func (c *spanCollector) trace(t *testing.T, id string) []*spans.Span {
	t.Helper()
	var found []*spans.Span
	wait.Until(t, "the request span of "+id+" has arrived", func() (ended bool) {
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
	t.Fatalf("got spans %v, want %s below %x", all, name, of)
	return nil
}

func tracedServer(t *testing.T, cfg store.Config, c *spanCollector, args ...string) *blackbox.Server {
	t.Helper()
	cmd := blackbox.Command(t, cfg, append([]string{"serve", "--demo", "--listen", "127.0.0.1:0"}, args...)...)
	cmd.Env = append(cmd.Env, "OTEL_EXPORTER_OTLP_ENDPOINT="+c.URL, "OTEL_BSP_SCHEDULE_DELAY=50")
	return blackbox.ServeCommand(t, cmd)
}

const (
	clientTrace = "4bf92f3577b34da6a3ce929d0e0e4736"
	clientSpan  = "00f067aa0ba902b7"
)

// A trace contains the client's span, the request, its operation and its
// statements, and no private data.
func TestTraces(t *testing.T) {
	t.Parallel()
	testkit.Each(t, func(t *testing.T, cfg store.Config) {
		collected := newSpanCollector(t)
		key := blackbox.NewKey(t, cfg, "pro")
		s := tracedServer(t, cfg, collected)
		got := s.Call(t, http.MethodGet, "/api/embeddings/plume?secret=s3cret", "", "Authorization", "Bearer "+key,
			"User-Agent", "ana@example.com", "Traceparent", "00-"+clientTrace+"-"+clientSpan+"-01")
		check.Must(t, got.StatusCode, 200, got.Status)
		all := collected.trace(t, clientTrace)
		request := child(t, all, fromHex(clientSpan), "GET /api/embeddings/{slug}")
		about := attributes(request.Attributes)
		if about["http.response.status_code"] != "200" || about["url.path"] != "/api/embeddings/plume" || about["palmares.plan"] != "pro" || about["http.route"] != "/api/embeddings/{slug}" ||
			about["palmares.request_id"] != got.Header.Get("X-Request-Id") {
			t.Errorf("got request attributes %v, want status, path, route, plan and request ID", about)
		}
		operation := child(t, all, request.SpanId, "embeddings")
		statement := child(t, all, operation.SpanId, "SELECT")
		if text := attributes(statement.Attributes)["db.query.text"]; !strings.HasPrefix(text, "SELECT ") || !strings.Contains(text, "FROM ") {
			t.Errorf("got statement %s, want a SELECT", text)
		}
		child(t, all, request.SpanId, "SELECT") // of the API key
		check.Contains(t, logOf(s, `"request_id":"`+got.Header.Get("X-Request-Id")), `"trace_id":"`+clientTrace+`"`, "trace ID in the log")
		for name, want := range map[string]string{"service.name": "palmares", "service.version": version} {
			check.Equal(t, collected.resource[name], want, name)
		}

		const second = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
		s.Call(t, http.MethodPost, "/graphql", `{"query":"query S3cret {tools(filter: {search: \"s3cret\"}) {items {slug}} changes(first: 1) {nodes {id}}}"}`,
			"Content-Type", "application/json", "Traceparent", "00-"+second+"-"+clientSpan+"-01")
		all = collected.trace(t, second)
		operation = child(t, all, child(t, all, fromHex(clientSpan), "POST /graphql").SpanId, "graphql")
		child(t, all, operation.SpanId, "SELECT")

		s.Call(t, http.MethodGet, "/tools/"+key, "")
		s.Call(t, http.MethodGet, "/who/ana@example.com", "")
		s.Call(t, "S3CRET", "/", "")
		http.DefaultClient.CloseIdleConnections() // they would delay the shutdown
		_ = s.Cmd.Process.Signal(syscall.SIGTERM)
		s.WaitForExit(t)
		for _, span := range collected.spans {
			for _, secret := range []string{"s3cret", "S3cret", "S3CRET", key[:16], "example.com", "127.0.0.1"} {
				check.True(t, !strings.Contains(span.String(), secret), "got %s in %v, want no private data", secret, span)
			}
			check.True(t, len(span.ParentSpanId) != 0 || span.Kind == spans.Span_SPAN_KIND_SERVER,
				"got a span of background work, want none: %v", span)
		}
	})
}

// Counting in Redis has a span of its own.
func TestTracesWithRedis(t *testing.T) {
	t.Parallel()
	collected, cfg := newSpanCollector(t), testkit.SQLite(t)
	key := blackbox.NewKey(t, cfg, "developer")
	s := tracedServer(t, cfg, collected, "--redis-url", testkit.StartRedis(t).URL)
	s.Call(t, http.MethodGet, "/api/v1/stats", "", "Authorization", "Bearer "+key, "Traceparent", "00-"+clientTrace+"-"+clientSpan+"-01")
	all := collected.trace(t, clientTrace)
	child(t, all, child(t, all, fromHex(clientSpan), "GET /api/v1/stats").SpanId, "count")
}

func fromHex(text string) (bytes []byte) {
	_, _ = fmt.Sscanf(text, "%x", &bytes)
	return bytes
}

// logOf waits for log lines that contain a string.
func logOf(s *blackbox.Server, text string) (found string) {
	for deadline := time.Now().Add(wait.Limit); found == "" && time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		for line := range strings.Lines(s.Log.String()) {
			if strings.Contains(line, text) {
				found += line
			}
		}
	}
	return found
}

// A shutdown sends the last spans, but does not wait for a slow collector.
func TestTracesAtShutdown(t *testing.T) {
	t.Parallel()
	collected := newSpanCollector(t)
	s := tracedServer(t, testkit.SQLite(t), collected)
	s.Call(t, http.MethodGet, "/api/v1/stats", "", "Traceparent", "00-"+clientTrace+"-"+clientSpan+"-01")
	http.DefaultClient.CloseIdleConnections()
	_ = s.Cmd.Process.Signal(syscall.SIGTERM)
	s.WaitForExit(t)
	collected.trace(t, clientTrace)

	collected.slow = make(chan struct{})
	defer close(collected.slow)
	s = tracedServer(t, testkit.SQLite(t), collected)
	got := s.Call(t, http.MethodGet, "/api/v1/stats", "")
	check.True(t, got.StatusCode == 200, "got %s, want 200", got.Status)
	http.DefaultClient.CloseIdleConnections()
	_ = s.Cmd.Process.Signal(syscall.SIGTERM)
	s.WaitForExit(t)
}

// Without a collector, the server logs a warning and keeps serving.
func TestTracesWithoutCollector(t *testing.T) {
	t.Parallel()
	cmd := blackbox.Command(t, testkit.SQLite(t), "serve", "--demo", "--listen", "127.0.0.1:0")
	cmd.Env = append(cmd.Env, "OTEL_EXPORTER_OTLP_ENDPOINT=http://u:s3cret@"+testkit.FreeAddress(t), "OTEL_BSP_SCHEDULE_DELAY=50", "OTEL_EXPORTER_OTLP_TIMEOUT=300")
	s := blackbox.ServeCommand(t, cmd)
	got := s.Call(t, http.MethodGet, "/api/v1/stats", "")
	check.True(t, got.StatusCode == 200, "got %s, want 200", got.Status)
	check.True(t, logOf(s, "trace export failed") != "" && !strings.Contains(s.Log.String(), "s3cret"),
		"got %s, want a warning without the password", s.Log)
	for _, invalid := range []string{"OTEL_TRACES_EXPORTER=zipkin", "OTEL_EXPORTER_OTLP_PROTOCOL=grpc"} {
		cmd := blackbox.Command(t, testkit.SQLite(t), "serve", "--listen", "127.0.0.1:0")
		cmd.Env = append(cmd.Env, "OTEL_EXPORTER_OTLP_ENDPOINT="+"http://127.0.0.1:1", invalid)
		name, _, _ := strings.Cut(invalid, "=")
		if r := blackbox.Run(t, cmd); r.Code != 1 || !strings.HasPrefix(r.Err, "palmares: "+name+": ") {
			t.Errorf("%s: got exit code %d and %q, want 1", invalid, r.Code, r.Err)
		}
	}
}
