package main

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"palmares/internal/dev/check"
	"palmares/internal/dev/load"
	"palmares/internal/dev/testkit/blackbox"
)

// payment is a kind of request and who pays for it: "quota", "visitor" (a budget of CPU
// time), "once" (a day) or "nobody".
type payment struct {
	name, payer, path, body string
	headers                 []string
}

// payments are the worst requests that are known of each kind, for a caller with a key and
// the address of a public saved query. § is the number of the request.
func payments(key, query string) []payment {
	keyed, html := []string{"Authorization", "Bearer " + key}, []string{"Accept", "text/html"}
	repeat := func(n int, each func(i int) string) string {
		var all strings.Builder
		for i := range n {
			all.WriteString(each(i))
		}
		return all.String()
	}
	members := repeat(9_500, func(i int) string { return fmt.Sprintf(`,"k%d":0`, i) })
	ranges := repeat(3_000, func(i int) string { return fmt.Sprintf(",%d-%d", 4*i, 4*i) })
	introspection := repeat(9, func(i int) string {
		return fmt.Sprintf("a§_%d: __schema{types{fields{type{ofType{fields{args{name}}}}}}} ", i)
	})
	graphQL := func(query string) string { return fmt.Sprintf(`{"query":%q}`, query) }
	mcp := []string{"Content-Type", "application/json", "Accept", "application/json, text/event-stream"}
	return []payment{
		{"introspection", "quota", "/graphql", graphQL("{" + introspection + "}"), keyed},
		{"search", "quota", "/graphql", graphQL(`{a§:tools(limit:1,filter:{search:"e"}){items{slug}}}`), keyed},
		{"movers", "quota", "/graphql", graphQL(`{a§:movers(metric:score,from:"2020-01-01"){slug}}`), keyed},
		{"similar names in REST", "quota", "/api/v1/tools/zzzzzzzzzzzzzzzz§", "", keyed},
		{"data of a saved query", "quota", query + ".json", "", nil},
		{"page of a saved query", "visitor", query, "", html},
		{"chart as PNG", "visitor", query + ".png", "", nil},
		{"gallery", "visitor", "/en/q?search=e", "", html},
		{"search page", "visitor", "/en/tools?q=e&page=§", "", html},
		{"feed of an unknown tool", "visitor", "/en/tools/zzzzzzzzzzzzzzzz§/changes.atom", "", nil},
		{"status page", "visitor", "/en/status", "", html},
		{"explorer", "visitor", "/en/explorer", "", html},
		{"list of files", "visitor", "/en/files", "", html},
		{"form of a query without a session", "nobody", "/en/account/queries/new", "query=" + strings.Repeat("%20", 100_000),
			[]string{"Content-Type", "application/x-www-form-urlencoded"}},
		{"request of an application without a session", "nobody", "/en/account/connect?client_id=https://a.example/x", "", html},
		{"3,000 ranges of a file", "once", "/files/releases/1/tools.parquet", "", append([]string{"Range", "bytes=" + ranges[1:]}, keyed...)},
		{"MCP message with 9,500 members", "nobody", "/mcp", `{"jsonrpc":"2.0","id":1,"method":"ping"` + members + "}", mcp},
		{"unknown key", "nobody", "/api/v1/tools", "", []string{"Authorization", "Bearer pal_" + strings.Repeat("A", 50)}},
		{"unknown page", "visitor", "/en/nothing§", "", html},
		{"OpenAPI document", "nobody", "/api/v1/openapi.json", "", nil},
		{"health", "nobody", "/healthz", "", nil},
	}
}

// worstChart is a query whose result has lists as labels.
const worstChart = `{tools(limit:3){items{score priceHistory{changedAt price} ` +
	`alternatives(limit:50){slug name domain tagline canonicalUrl alternativesUrl price updatedAt}}}}`

// payers measures the CPU time of requests that nobody counts, and that of a unit of cost,
// with the worst known inputs, and whether the server is idle when its clients are gone.
func payers(b *bed) {
	const rounds = 30
	b.serve(20_000, "TRUSTED_PROXIES=127.0.0.0/8")
	file := blackbox.WriteFile(b, "worst.graphql", []byte(worstChart))
	blackbox.MustRun(b, blackbox.Command(b, b.cfg, "queries", "save", load.Owner, "worst", file, "--handle", "bench"))
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	for i, p := range payments(b.key, "/q/bench/worst") {
		headers := append([]string{"X-Forwarded-For", fmt.Sprintf("198.18.0.%d", i+1)}, p.headers...) // a visitor of its own
		statuses, cost := map[int]int{}, 0
		before := cpuOf(b, b.server)
		for n := range rounds {
			different := strings.NewReplacer("§", strconv.Itoa(n+1)) // so that nothing is cached
			response, _, err := load.Do(b.Context(), client, "http://"+b.server.Address+different.Replace(p.path), different.Replace(p.body), headers...)
			check.OK(b, err)
			statuses[response.StatusCode]++
			units, _ := strconv.Atoi(response.Header.Get("X-GraphQL-Cost"))
			cost = max(cost, units)
		}
		each := (cpuOf(b, b.server) - before) / rounds
		row := []any{p.name, p.payer, b.kind, statuses, each.Round(10 * time.Microsecond), ""}
		if p.payer == "nobody" {
			row[5] = "2ms"
		}
		if cost > 0 {
			row = append(row, cost, (each / time.Duration(cost)).Round(time.Microsecond), unitGoal)
		}
		b.Add(row...)
	}
	client.CloseIdleConnections()
	time.Sleep(time.Second) // the clients are gone
	before := cpuOf(b, b.server)
	time.Sleep(time.Second)
	b.Add("one second after all requests", "", b.kind, "", cpuOf(b, b.server)-before, "50ms")
}
