package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"palmares/ent/journalentry"
	"palmares/internal/core/store"
	"palmares/internal/dev/check"
	"palmares/internal/dev/load"
	"palmares/internal/dev/testkit/blackbox"
)

// coldQueries are sent with several limits, so that no response is cached. A query
// in braces is GraphQL.
var coldQueries = []struct{ name, query string }{
	{"first page", "/api/v1/tools?limit={limit}"},
	{"middle page", "/api/v1/tools?limit={limit}&page={middle}"},
	{"middle page by name", "/api/v1/tools?limit={limit}&sort=name_asc&page={middle}"},
	{"last page", "/api/v1/tools?limit={limit}&page={last}"},
	{"first page by name", "/api/v1/tools?limit={limit}&sort=name_desc"},
	{"last page by name", "/api/v1/tools?limit={limit}&sort=name_asc&page={last}"},
	{"category", "/api/v1/tools?limit={limit}&category=code"},
	{"score_min", "/api/v1/tools?limit={limit}&score_min=8"},
	{"obsolescence_max", "/api/v1/tools?limit={limit}&obsolescence_max=1"},
	{"every filter", "/api/v1/tools?limit={limit}&category=code&score_min=5&obsolescence_max=5&sort=name_asc"},
	{"prices, last page", "/api/v1/pricing?limit={limit}&page={last}"},
	{"comparisons of a category", "/api/v1/comparatifs?limit={limit}&category=code"},
	{"retired for a reason", "/api/v1/cimetiere?limit={limit}&reason=pivot"},
	{"priceMax", "{tools(limit: {limit}, filter: {priceMax: 10}) {items {slug} meta {total}}}"},
	{"pricings and icps", "{tools(limit: {limit}, filter: {pricings: [gratuit], icps: [mixte]}) {items {slug} meta {total}}}"},
	{"verifiabilityMin", "{tools(limit: {limit}, filter: {verifiabilityMin: 9}) {items {slug} meta {total}}}"},
	{"updatedSince", `{tools(limit: {limit}, filter: {updatedSince: "2026-06-01"}) {items {slug} meta {total}}}`},
	{"search", `{tools(limit: {limit}, filter: {search: "agent {limit}"}) {items {slug} meta {total}}}`},
	{"search with many matches", `{tools(limit: {limit}, filter: {search: "e"}) {items {slug} meta {total}}}`},
	{"search without matches", `{tools(limit: {limit}, filter: {search: "zzz {limit}"}) {items {slug} meta {total}}}`},
}

// large measures uncached pages of a catalog of 100,000 tools against one of
// 5,000.
func large(t testing.TB) {
	table := load.NewTable("uncached page, about 50 items", "database", "of 5,000 tools", "of 100,000", "ratio")
	for _, kind := range kinds {
		times := map[string][]time.Duration{}
		for _, tools := range []int{5_000, 100_000} {
			progress("%s, uncached pages of %d tools", kind, tools)
			_, server, key := serveCatalog(t, kind, tools)
			for _, q := range coldQueries {
				times[q.name] = append(times[q.name], median(t, q.query, server.Address, key, tools))
			}
			server.Kill()
		}
		for _, q := range coldQueries {
			small, large := times[q.name][0], times[q.name][1]
			table.Add(q.name, kind, small.Round(10*time.Microsecond), large.Round(10*time.Microsecond), fmt.Sprintf("%.1f", float64(large)/float64(small)))
		}
	}
	table.Print(os.Stdout)
}

// median sends a query nine times and returns the median of the times.
func median(t testing.TB, query, address, key string, tools int) time.Duration {
	var times []time.Duration
	for limit := 42; limit <= 50; limit++ {
		path, body := strings.NewReplacer("{limit}", strconv.Itoa(limit), "{last}", strconv.Itoa((tools+limit-1)/limit), "{middle}", strconv.Itoa(tools/limit/2)).Replace(query), ""
		if path[0] == '{' {
			encoded, _ := json.Marshal(map[string]string{"query": path})
			path, body = "/graphql", string(encoded)
		}
		start := time.Now()
		response, got, err := load.Do(t.Context(), http.DefaultClient, "http://"+address+path, body, "Authorization", "Bearer "+key)
		check.OK(t, err)
		if response.StatusCode != http.StatusOK || strings.Contains(string(got), `"errors"`) {
			t.Fatalf("%s: got %d %.200s, want 200 without errors", query, response.StatusCode, got)
		}
		times = append(times, time.Since(start))
	}
	slices.Sort(times)
	return times[len(times)/2]
}

const (
	endpoints      = 10
	importGoal     = 1.3
	deliveryGoal   = 500.0
	webhookMemory  = 200 * megabyte
	maxDeliveryGap = time.Minute
)

// webhooks measures how much ten endpoints that receive all events slow down an
// import, and how fast the events are delivered. It fails if one is lost.
func webhooks(t testing.TB) {
	table := load.NewTable("webhooks, 10 endpoints, 5,000 tools changed", "import with / without", "goal", "deliveries", "per second", "goal", "memory", "goal")
	for _, kind := range kinds {
		progress("%s, webhooks", kind)
		received := &receiver{seen: map[string]bool{}}
		receiving := httptest.NewServer(received)
		cfg, ratio, expected := importWithEndpoints(t, kind, receiving.URL)
		server := load.Serve(t, cfg)
		n, rate := received.wait(expected)
		_, peak := memoryOf(server)
		server.Kill()
		receiving.Close()
		table.Add(kind, fmt.Sprintf("%.2f", ratio), importGoal, n, fmt.Sprintf("%.0f", rate), deliveryGoal, inMB(peak), inMB(webhookMemory))
		if n != expected {
			t.Fatalf("got %d deliveries, want %d", n, expected)
		}
	}
	table.Print(os.Stdout)
}

// importWithEndpoints imports two feeds alternately, three times, with and without
// endpoints. It returns the database with endpoints, the ratio of the times and
// the number of deliveries to expect.
func importWithEndpoints(t testing.TB, kind, receiver string) (with store.Config, ratio float64, deliveries int) {
	configs := []store.Config{newCatalog(t, kind, 5_000), newCatalog(t, kind, 5_000)}
	with = configs[1]
	blackbox.CreateKey(t, with, load.Owner, "pro")
	for i := range endpoints {
		blackbox.MustRun(t, blackbox.Command(t, with, "webhooks", "add", load.Owner, fmt.Sprintf("%s/%d", receiver, i)))
	}
	before := countEvents(t, with)
	var times [2]time.Duration
	for round := range 3 {
		for i, cfg := range configs {
			took, _ := importFeed(t, cfg, "--force", feed(t, 5_000, uint64(1+(round+1)%2)))
			times[i] += took
		}
	}
	return with, times[1].Seconds() / times[0].Seconds(), endpoints * (countEvents(t, with) - before)
}

func countEvents(t testing.TB, cfg store.Config) int {
	db, err := store.Open(t.Context(), cfg)
	check.OK(t, err)
	defer db.Close()
	n, err := db.Read.JournalEntry.Query().Where(journalentry.EventNotNil()).Count(t.Context())
	check.OK(t, err)
	return n
}

// receiver records which events arrived at which endpoint.
type receiver struct {
	mu   sync.Mutex
	seen map[string]bool
}

// ServeHTTP receives an event.
func (rec *receiver) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	rec.mu.Lock()
	defer rec.mu.Unlock()
	rec.seen[r.URL.Path+" "+r.Header.Get("webhook-id")] = true
}

// wait waits until n events have arrived, or none for a while, and returns how
// many did and their rate.
func (rec *receiver) wait(n int) (arrived int, rate float64) {
	last := time.Now()
	var start time.Time
	for arrived < n && time.Since(last) < maxDeliveryGap {
		time.Sleep(5 * time.Millisecond)
		rec.mu.Lock()
		now := len(rec.seen)
		rec.mu.Unlock()
		if now != arrived {
			if arrived, last = now, time.Now(); start.IsZero() {
				start = last
			}
		}
	}
	return arrived, float64(arrived) / last.Sub(start).Seconds()
}
