package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"palmares/ent/journalentry"
	"palmares/internal/core/store"
	"palmares/internal/dev/load"
)

// coldQueries are sent with several limits, so that each is new. A query in
// braces is GraphQL.
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
func (b *bench) large(ctx context.Context) error {
	table := load.NewTable("uncached page, about 50 items", "database", "of 5,000 tools", "of 100,000", "ratio")
	for _, kind := range kinds {
		times := map[string][]time.Duration{}
		for _, tools := range []int{5_000, 100_000} {
			progress("%s, uncached pages of %d tools", kind, tools)
			_, server, key, err := b.serveCatalog(ctx, kind, tools)
			if err != nil {
				return err
			}
			for _, q := range coldQueries {
				took, err := median(q.query, server.Address, key, tools)
				if err != nil {
					return fmt.Errorf("%s: %w", q.name, err)
				}
				times[q.name] = append(times[q.name], took)
			}
			server.Kill()
		}
		for _, q := range coldQueries {
			small, large := times[q.name][0], times[q.name][1]
			table.Add(q.name, kind, small.Round(10*time.Microsecond), large.Round(10*time.Microsecond), fmt.Sprintf("%.1f", float64(large)/float64(small)))
		}
	}
	return table.Print(os.Stdout)
}

// median sends a query nine times and returns the median of the times.
func median(query, address, key string, tools int) (time.Duration, error) {
	var times []time.Duration
	for limit := 42; limit <= 50; limit++ {
		query := strings.NewReplacer("{limit}", strconv.Itoa(limit), "{last}", strconv.Itoa((tools+limit-1)/limit), "{middle}", strconv.Itoa(tools/limit/2)).Replace(query)
		path, body := query, ""
		if query[0] == '{' {
			encoded, _ := json.Marshal(map[string]string{"query": query})
			path, body = "/graphql", string(encoded)
		}
		start := time.Now()
		response, got, err := load.Do(context.Background(), http.DefaultClient, "http://"+address+path, body, "Authorization", "Bearer "+key)
		if err != nil {
			return 0, err
		}
		if response.StatusCode != http.StatusOK || strings.Contains(string(got), `"errors"`) {
			return 0, fmt.Errorf("got %d %.200s", response.StatusCode, got)
		}
		times = append(times, time.Since(start))
	}
	slices.Sort(times)
	return times[len(times)/2], nil
}

const (
	endpoints      = 10
	importGoal     = 1.3
	deliveryGoal   = 500.0
	webhookMemory  = 200 * megabyte
	maxDeliveryGap = time.Minute
)

// webhooks measures how much ten endpoints that receive all events slow an
// import down, and how fast the events are delivered. It fails if one is lost.
func (b *bench) webhooks(ctx context.Context) error {
	table := load.NewTable("webhooks, 10 endpoints, 5,000 tools changed", "import with / without", "goal", "deliveries", "per second", "goal", "memory", "goal")
	for _, kind := range kinds {
		progress("%s, webhooks", kind)
		without, err := b.newDatabase(ctx, kind)
		if err != nil {
			return err
		}
		with, err := b.newDatabase(ctx, kind)
		if err != nil {
			return err
		}
		received := &receiver{seen: map[string]bool{}}
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return err
		}
		receiving := &http.Server{Handler: received}
		go func() { _ = receiving.Serve(listener) }()
		ratio, expected, err := b.importWithEndpoints(ctx, without, with, "http://"+listener.Addr().String())
		if err != nil {
			return err
		}
		server, err := b.Serve(with.env, io.Discard)
		if err != nil {
			return err
		}
		n, rate := received.wait(expected)
		_, peak := server.Memory()
		server.Kill()
		_ = receiving.Close()
		table.Add(kind, fmt.Sprintf("%.2f", ratio), importGoal, n, fmt.Sprintf("%.0f", rate), deliveryGoal, inMB(peak), inMB(webhookMemory))
		if n != expected {
			return fmt.Errorf("got %d deliveries, want %d", n, expected)
		}
	}
	return table.Print(os.Stdout)
}

// importWithEndpoints imports two feeds in turns, three times, and returns the
// ratio of the times and the number of deliveries to expect.
func (b *bench) importWithEndpoints(ctx context.Context, without, with database, receiver string) (ratio float64, deliveries int, err error) {
	var feeds [2]string
	for i := range feeds {
		if feeds[i], err = b.feed(5_000, i+1); err != nil {
			return 0, 0, err
		}
	}
	for _, db := range []database{without, with} {
		if _, _, err := b.Run(db.env, "import", feeds[0]); err != nil {
			return 0, 0, err
		}
	}
	if _, err := b.CreateKey(with.env); err != nil {
		return 0, 0, err
	}
	for i := range endpoints {
		if _, _, err := b.Run(with.env, "webhooks", "add", load.Owner, fmt.Sprintf("%s/%d", receiver, i)); err != nil {
			return 0, 0, err
		}
	}
	before, err := countEvents(ctx, with.Config)
	if err != nil {
		return 0, 0, err
	}
	var times [2]time.Duration
	for turn := range 3 {
		for i, db := range []database{without, with} {
			_, usage, err := b.Run(db.env, "import", "--force", feeds[(turn+1)%2])
			if err != nil {
				return 0, 0, err
			}
			times[i] += usage.Time
		}
	}
	after, err := countEvents(ctx, with.Config)
	return times[1].Seconds() / times[0].Seconds(), endpoints * (after - before), err
}

func countEvents(ctx context.Context, cfg store.Config) (int, error) {
	db, err := store.Open(ctx, cfg)
	if err != nil {
		return 0, err
	}
	defer db.Close()
	return db.Read.JournalEntry.Query().Where(journalentry.EventNotNil()).Count(ctx)
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
