package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"palmares/internal/core/store"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
	"palmares/internal/dev/testkit/blackbox"
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
