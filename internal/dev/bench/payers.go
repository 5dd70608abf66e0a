package main

import (
	"cmp"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"palmares/internal/dev/check"
	"palmares/internal/dev/load"
	"palmares/internal/dev/testkit/blackbox"
)

const (
	payersTools    = 20_000
	payersRequests = 30
	uncountedGoal  = 2 * time.Millisecond // of the server, for each request that nobody pays for
	idleGoal       = 50 * time.Millisecond
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
	keyed := []string{"Authorization", "Bearer " + key}
	members := strings.Builder{}
	for i := range 9_500 {
		fmt.Fprintf(&members, `,"k%d":0`, i)
	}
	var ranges []string
	for i := range 3_000 {
		ranges = append(ranges, fmt.Sprintf("%d-%d", 4*i, 4*i))
	}
	introspection := ""
	for i := range 9 {
		introspection += fmt.Sprintf("a§_%d: __schema{types{fields{type{ofType{fields{args{name}}}}}}} ", i)
	}
	graphQL := func(query string) string { return fmt.Sprintf(`{"query":%q}`, query) }
	html := []string{"Accept", "text/html"}
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
		{"form of a query without a session", "nobody", "/en/account/queries/new", "query=" + strings.Repeat("%20", 100_000), []string{"Content-Type", "application/x-www-form-urlencoded"}},
		{"request of an application without a session", "nobody", "/en/account/connect?client_id=https://a.example/x", "", html},
		{"3,000 ranges of a file", "once", fmt.Sprintf("/files/releases/%d/tools.parquet", 1), "", append([]string{"Range", "bytes=" + strings.Join(ranges, ",")}, keyed...)},
		{"MCP message with 9,500 members", "nobody", "/mcp", `{"jsonrpc":"2.0","id":1,"method":"ping"` + members.String() + "}", []string{"Content-Type", "application/json", "Accept", "application/json, text/event-stream"}},
		{"unknown key", "nobody", "/api/v1/tools", "", []string{"Authorization", "Bearer pal_" + strings.Repeat("A", 50)}},
		{"unknown page", "visitor", "/en/nothing§", "", html},
		{"OpenAPI document", "nobody", "/api/v1/openapi.json", "", nil},
		{"health", "nobody", "/healthz", "", nil},
	}
}

// worstChart is a query whose result has lists as labels.
const worstChart = `{tools(limit:3){items{score alternatives(limit:50){slug name domain tagline canonicalUrl alternativesUrl price updatedAt} priceHistory{changedAt price}}}}`

// payers measures the CPU time of requests that nobody counts, and that of a unit of cost,
// with the worst known inputs, and whether the server is idle when its clients are gone.
func payers(t testing.TB) {
	table := load.NewTable("request", "who pays", "database", "statuses", "CPU time", "goal", "cost", "per unit", "goal")
	for _, kind := range kinds {
		progress("%s, who pays for what", kind)
		cfg, server, key := serveCatalog(t, kind, payersTools, "TRUSTED_PROXIES=127.0.0.0/8")
		waitUntilReady(t, server.Address)
		file := blackbox.WriteFile(t, "worst.graphql", []byte(worstChart))
		blackbox.MustRun(t, blackbox.Command(t, cfg, "queries", "save", load.Owner, "worst", file, "--handle", "bench"))
		client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
		for i, p := range payments(key, "/q/bench/worst") {
			visitor := []string{"X-Forwarded-For", fmt.Sprintf("198.18.0.%d", i+1)}
			statuses, cost := map[int]int{}, 0
			before := cpuOf(t, server)
			for n := range payersRequests {
				different := strings.NewReplacer("§", strconv.Itoa(n+1)) // so that nothing is cached
				response, _, err := load.Do(t.Context(), client, "http://"+server.Address+different.Replace(p.path), different.Replace(p.body), append(visitor, p.headers...)...)
				check.OK(t, err)
				statuses[response.StatusCode]++
				units, _ := strconv.Atoi(response.Header.Get("X-GraphQL-Cost"))
				cost = max(cost, units)
			}
			each := (cpuOf(t, server) - before) / payersRequests
			goal, perUnit, unit := "", "", ""
			if p.payer == "nobody" {
				goal = uncountedGoal.String()
			}
			if cost > 0 {
				perUnit, unit = (each / time.Duration(cost)).Round(time.Microsecond).String(), unitGoal.String()
			}
			table.Add(p.name, p.payer, kind, fmt.Sprint(statuses), each.Round(10*time.Microsecond), goal, cmp.Or(strconv.Itoa(cost), ""), perUnit, unit)
		}
		client.CloseIdleConnections()
		time.Sleep(time.Second) // the clients are gone
		before := cpuOf(t, server)
		time.Sleep(time.Second)
		table.Add("one second after all requests", "", kind, "", cpuOf(t, server)-before, idleGoal, "", "", "")
		server.Kill()
	}
	table.Print(os.Stdout)
}
