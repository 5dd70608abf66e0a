package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	spans "go.opentelemetry.io/proto/otlp/trace/v1"
	"go.yaml.in/yaml/v3"
	"google.golang.org/protobuf/proto"

	"palmares/internal/core/store"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
	"palmares/internal/dev/testkit/blackbox"
	"palmares/internal/dev/testkit/wait"
)

// scrape returns the metrics of a server as text, and the labels of each metric.
func scrape(t *testing.T, address string) (text string, labels map[string][]string) {
	t.Helper()
	got := (&blackbox.Server{Address: address}).Call(t, http.MethodGet, "/metrics", "")
	body, _ := io.ReadAll(got.Body)
	labels = map[string][]string{}
	series := regexp.MustCompile(`^([a-z_][a-z0-9_]*)(?:\{(.*)\})? `)
	names := regexp.MustCompile(`([a-z_]+)="`)
	for line := range strings.Lines(string(body)) {
		if found := series.FindStringSubmatch(line); found != nil {
			labels[found[1]] = slices.Clip(labels[found[1]])
			for _, label := range names.FindAllStringSubmatch(found[2], -1) {
				labels[found[1]] = append(labels[found[1]], label[1])
			}
		}
	}
	return string(body), labels
}

// busyServer starts a server with metrics and sends it some requests.
func busyServer(t *testing.T, cfg store.Config, args ...string) (s *blackbox.Server, metricsAddress string) {
	t.Helper()
	metricsAddress = testkit.FreeAddress(t)
	key := blackbox.NewKey(t, cfg, "pro")
	s = blackbox.Serve(t, cfg, append(args, "--demo", "--metrics-listen", metricsAddress)...)
	for _, path := range []string{"/api/v1/tools", "/api/v1/tools", "/api/v1/tools/plume", "/api/v1/tools/nobody", "/tools/plume", "/made/up/pal_aaaaaaaaaaaa", "/readyz"} {
		s.Call(t, http.MethodGet, path, "", "Authorization", "Bearer "+key)
	}
	s.Call(t, http.MethodPost, "/graphql", `{"query":"{stats {toolsTotal}}"}`)
	return s, metricsAddress
}

func TestMetrics(t *testing.T) {
	t.Parallel()
	testkit.Each(t, func(t *testing.T, cfg store.Config) {
		_, address := busyServer(t, cfg)
		text, _ := scrape(t, address)
		for _, want := range []string{
			`palmares_requests_total{plan="pro",route="/api/v1/tools",status="200"} 2`,
			`palmares_requests_total{plan="pro",route="/api/v1/tools/{slug}",status="200"} 1`,
			`palmares_requests_total{plan="pro",route="/api/v1/tools/{slug}",status="404"} 1`,
			`palmares_requests_total{plan="anonymous",route="/tools/{slug}",status="200"} 1`,
			`palmares_requests_total{plan="anonymous",route="other",status="404"} 1`,
			`palmares_requests_total{plan="anonymous",route="/graphql",status="200"} 1`,
			`palmares_request_duration_seconds_count{route="/api/v1/tools"} 2`,
			`palmares_requests_in_flight 0`,
			`palmares_cache_hits_total 1`,
			`palmares_cache_entries 9`, // 4 responses, 3 REST requests, a GraphQL request and its document
			`go_sql_max_open_connections{db_name="reader"}`,
			`go_sql_max_open_connections{db_name="writer"}`,
			`palmares_webhook_attempts_total{outcome="delivered"} 0`,
			`palmares_webhook_endpoints{state="active"} 0`,
			`palmares_webhook_oldest_waiting_seconds 0`,
			`palmares_emails_total{outcome="sent"} 0`,
			`palmares_release_number 8`,
			`palmares_database_up 1`,
			`palmares_draining 0`,
			`version="` + version + `"} 1`,
		} {
			check.Contains(t, text, want)
		}
		if strings.Contains(text, "pal_") || strings.Contains(text, `palmares_sql_duration_seconds_count{pool="reader"} 0`) {
			t.Errorf("got\n%s\nwant no keys, and statements of the reader pool", text)
		}
	})
}

// Dashboards and alerts use only metrics that exist, and show all metrics.
// With Redis, everything that has metrics is enabled.
func TestDashboardsAndAlertsWithRedis(t *testing.T) {
	t.Parallel()
	_, address := busyServer(t, testkit.SQLite(t), "--redis-url", testkit.StartRedis(t).URL, "--purge-url", "http://127.0.0.1:1/")
	text, exposed := scrape(t, address)
	exposed["up"] = nil // added by Prometheus, like the labels job and instance
	deploy := filepath.Join("..", "..", "deploy")

	expressions := dashboardExpressions(t, filepath.Join(deploy, "grafana", "palmares.json"))
	alerts, recorded := alertExpressions(t, filepath.Join(deploy, "prometheus", "alerts.yml"))
	for name := range recorded {
		exposed[name] = nil
	}
	expressions = append(expressions, alerts...)
	check.MustTrue(t, len(expressions) >= 50, "got %d expressions, want at least 50", len(expressions))
	used := map[string]bool{}
	for _, expression := range expressions {
		for name, labels := range metricsIn(expression) {
			used[name] = true
			has, ok := exposed[name]
			check.True(t, ok, "got unknown metric %s, want only exposed ones: %s", name, expression)
			for _, label := range labels {
				check.True(t, slices.Contains(append([]string{"job", "instance"}, has...), label) || recorded[name] != "",
					"%s: got unknown label %s, want one of %v: %s", name, label, has, expression)
			}
		}
	}
	for line := range strings.Lines(text) { // every metric is used
		fields := strings.Fields(line)
		if len(fields) > 3 && fields[1] == "TYPE" && strings.HasPrefix(fields[2], "palmares_") &&
			!used[fields[2]] && !used[fields[2]+"_bucket"] && fields[2] != "palmares_cache_entries" {
			t.Errorf("got metric %s unused, want it in a dashboard or an alert", fields[2])
		}
	}
}

func dashboardExpressions(t *testing.T, path string) (all []string) {
	t.Helper()
	data := check.Try(os.ReadFile(path)).OK(t)
	var dashboard struct {
		Title      string
		Templating struct {
			List []struct {
				Name  string
				Query any
			}
		}
		Panels []struct {
			ID      int
			Title   string
			GridPos struct{ X, Y, W, H int }
			Targets []struct{ Expr string }
		}
	}
	check.OK(t, json.Unmarshal(data, &dashboard))
	for _, variable := range dashboard.Templating.List {
		if query, ok := variable.Query.(map[string]any); ok {
			all = append(all, fmt.Sprint(query["query"]))
		}
	}
	for i, panel := range dashboard.Panels {
		check.True(t, panel.Title != "" && len(panel.Targets) != 0 && panel.GridPos.X+panel.GridPos.W <= 24 && panel.ID == i+1,
			"got panel %+v, want a title, targets, a width within the grid and ID %d", panel, i+1)
		for _, target := range panel.Targets {
			all = append(all, target.Expr)
		}
	}
	return all
}

func alertExpressions(t *testing.T, path string) (all []string, recorded map[string]string) {
	t.Helper()
	data := check.Try(os.ReadFile(path)).OK(t)
	var file struct {
		Groups []struct {
			Name  string
			Rules []struct {
				Record, Alert, Expr, For string
				Labels, Annotations      map[string]string
			}
		}
	}
	decoder := yaml.NewDecoder(strings.NewReader(string(data)))
	decoder.KnownFields(true)
	check.OK(t, decoder.Decode(&file))
	recorded = map[string]string{}
	for _, group := range file.Groups {
		for _, rule := range group.Rules {
			switch {
			case rule.Record != "":
				recorded[rule.Record] = rule.Expr
			case rule.Alert == "" || rule.For == "" || rule.Labels["severity"] == "" || rule.Annotations["summary"] == "":
				t.Errorf("got rule %+v, want a name, a duration, a severity and a summary", rule)
			}
			check.True(t, rule.Expr != "", "%s%s: got no expression, want one", rule.Record, rule.Alert)
			all = append(all, rule.Expr)
		}
	}
	return all, recorded
}

var (
	promText     = regexp.MustCompile(`"[^"]*"`)
	promRange    = regexp.MustCompile(`\[[^\]]*\]`)
	promGrouping = regexp.MustCompile(`\b(?:by|without|on|ignoring)\s*\(([^)]*)\)`)
	promWord     = regexp.MustCompile(`\b([a-zA-Z_:][a-zA-Z0-9_:]*)\s*(\{[^}]*\}|\()?`)
	promLabel    = regexp.MustCompile(`([a-z_]+)\s*(?:=~|!~|!=|=)`)
)

// metricsIn returns the metrics that an expression reads, with the labels it
// uses.
func metricsIn(expression string) map[string][]string {
	text := promText.ReplaceAllString(expression, `""`)
	text = promRange.ReplaceAllString(text, "")
	var grouped []string
	for _, group := range promGrouping.FindAllStringSubmatch(text, -1) {
		for label := range strings.SplitSeq(group[1], ",") {
			grouped = append(grouped, strings.TrimSpace(label))
		}
	}
	text = promGrouping.ReplaceAllString(text, "")
	if inner, of := strings.CutPrefix(text, "label_values("); of { // a function of Grafana
		metric, label, _ := strings.Cut(strings.TrimSuffix(inner, ")"), ", ")
		text, grouped = metric, append(grouped, label)
	}
	found := map[string][]string{}
	for _, word := range promWord.FindAllStringSubmatch(text, -1) {
		if word[2] == "(" || slices.Contains([]string{"and", "or", "unless", "bool", "offset"}, word[1]) {
			continue // a function or an operator
		}
		labels := slices.Clone(grouped)
		for _, label := range promLabel.FindAllStringSubmatch(word[2], -1) {
			labels = append(labels, label[1])
		}
		found[word[1]] = append(found[word[1]], labels...)
	}
	return found
}

func TestMetricsInExpressions(t *testing.T) {
	t.Parallel()
	got := metricsIn(`histogram_quantile(0.99, sum by (le, route) (rate(a_bucket{job="$job",route=~"x{y}"}[$__rate_interval]))) > 5 * 86400 and b:c > 1e3 or vector(1)`)
	check.Equal(t, fmt.Sprint(got), fmt.Sprint(map[string][]string{"a_bucket": {"le", "route", "job", "route"}, "b:c": {"le", "route"}}), got)
}

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
