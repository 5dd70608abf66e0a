package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"

	"palmares/internal/dev/load"
	"palmares/internal/dev/testkit"
)

const (
	fullCacheGoal = 300 * megabyte
	hitGoal       = 1.2 // CPU time of a hit, full against fresh
)

// memory sends a server requests that are made to fill its memory, then enough
// different ones to fill its response cache. It fails if the server becomes too
// large, or a cached response takes more CPU time than before.
func (b *bench) memory(ctx context.Context) error {
	table := load.NewTable("database", "hit, fresh server", "hit, full cache", "ratio", "goal", "resident", "peak", "goal")
	var missed error
	for _, kind := range kinds {
		progress("%s, memory", kind)
		_, server, key, err := b.serveCatalog(ctx, kind, 5_000)
		if err != nil {
			return err
		}
		defer server.Kill()
		fresh, err := cpuPerHit(server, key)
		if err != nil {
			return err
		}
		for _, r := range []requests{
			{Count: 5_000, Texts: hostileRequests(bearer(key))},
			{Count: 8_000, Texts: []string{getText("/api/v1/tools?score_min=0."+number, bearer(key))}},
		} {
			r.Address, r.Connections = server.Address, 4
			if _, err := r.sendAll(); err != nil {
				return err
			}
		}
		full, err := cpuPerHit(server, key)
		if err != nil {
			return err
		}
		ratio := float64(full) / float64(fresh)
		resident, peak := server.Memory()
		table.Add(kind, fresh.Round(100*time.Nanosecond), full.Round(100*time.Nanosecond), fmt.Sprintf("%.2f", ratio), hitGoal,
			inMB(resident), inMB(peak), inMB(fullCacheGoal))
		if ratio > hitGoal || peak > fullCacheGoal {
			missed = errors.Join(missed, fmt.Errorf("%s: a goal is missed", kind))
		}
	}
	return errors.Join(table.Print(os.Stdout), missed)
}

// hostileRequests are unique GraphQL requests of about 8 kB: one with as many
// values as the limits allow, and one that is rejected for a long list.
func hostileRequests(headers string) []string {
	values := strings.Repeat(`\"c\" `, 60)
	var aliases strings.Builder
	for i := range 20 {
		fmt.Fprintf(&aliases, "a%d: tools(limit: 1, filter: {categories: [%s]}) {meta {total}} ", i, values)
	}
	accepted := `{"query":"query Q` + number + `($f: ToolFilter) {` + aliases.String() + ` b: tools(limit: 1, filter: $f) {meta {total}}}","variables":{"f":{"categories":[` +
		strings.Repeat(`"c",`, 90) + `"x` + number + `"]}}}`
	rejected := `{"query":"query Q` + number + ` {tools(filter: {categories: [` + strings.Repeat(values, 30) + `]}) {meta {total}}}"}`
	return []string{postText("/graphql", accepted, headers), postText("/graphql", rejected, headers)}
}

// cpuPerHit returns the server's CPU time for one cached response.
func cpuPerHit(server *load.Process, key string) (time.Duration, error) {
	const hits = 40_000
	r := requests{Address: server.Address, Connections: 4, Count: 1_000, Texts: []string{getText("/api/v1/tools", bearer(key))}}
	if _, err := r.sendAll(); err != nil {
		return 0, err
	}
	before, err := server.CPU()
	if err != nil {
		return 0, err
	}
	r.Count = hits
	if _, err := r.sendAll(); err != nil {
		return 0, err
	}
	after, err := server.CPU()
	return (after - before) / hits, err
}

// profile writes a CPU profile of a server that responds from its cache.
func (b *bench) profile(ctx context.Context) error {
	metrics, err := testkit.FreeAddress()
	if err != nil {
		return err
	}
	_, server, key, err := b.serveCatalog(ctx, "SQLite", 5_000, "PALMARES_METRICS_LISTEN="+metrics)
	if err != nil {
		return err
	}
	defer server.Kill()
	done := make(chan error, 1)
	go func() {
		_, err := requests{Address: server.Address, Duration: 12 * time.Second, Texts: []string{getText("/api/v1/tools", bearer(key))}}.sendAll()
		done <- err
	}()
	time.Sleep(time.Second)
	data, err := fetch("http://" + metrics + "/debug/pprof/profile?seconds=10")
	if err := errors.Join(err, <-done); err != nil {
		return err
	}
	const name = "hit.prof"
	fmt.Printf("go tool pprof -http : %s\n", name)
	return os.WriteFile(name, data, 0o600)
}

// soak sends mixed load for a time (SOAK), with an import every 20 seconds. It
// fails if the server's memory or number of goroutines grows.
func (b *bench) soak(ctx context.Context) error {
	duration, err := time.ParseDuration(cmp.Or(os.Getenv("SOAK"), "10m"))
	if err != nil {
		return err
	}
	metrics, err := testkit.FreeAddress()
	if err != nil {
		return err
	}
	db, server, key, err := b.serveCatalog(ctx, "SQLite", 2_000, "PALMARES_METRICS_LISTEN="+metrics)
	if err != nil {
		return err
	}
	defer server.Kill()
	end := time.Now().Add(duration)
	loaded := make(chan error, 1)
	go func() {
		_, err := requests{Address: server.Address, Duration: duration, Texts: mixedRequests(bearer(key))}.send()
		loaded <- err
	}()
	var first vitals
	for round := 1; time.Now().Before(end); round++ {
		time.Sleep(min(20*time.Second, time.Until(end)))
		feed, err := b.feed(2_000, 1+round%2)
		if err != nil {
			return err
		}
		if _, _, err := b.Run(db.env, "import", "--force", feed); err != nil {
			return err
		}
		now, err := readVitals(metrics)
		if err != nil {
			return err
		}
		fmt.Printf("%5s  %3.0f goroutines  %4.1f MB heap  %5.1f MB resident\n",
			(duration - time.Until(end)).Round(time.Second), now.goroutines, now.heap/megabyte, now.resident/megabyte)
		if round == 2 {
			first = now // warmed up
		}
		if round > 2 && (now.goroutines > first.goroutines+50 || now.heap > first.heap*1.5+10*megabyte) {
			return errors.New("the server grows")
		}
	}
	return <-loaded
}

// mixedRequests are hits, misses, 304s, GraphQL and invalid requests.
func mixedRequests(auth string) []string {
	return []string{
		getText("/api/v1/tools", auth), getText("/api/v1/tools?score_min=0."+number, auth), getText("/api/v1/stats", auth+"If-None-Match: *\r\n"),
		getText("/api/v1/tools/nobody-"+number, auth), getText("/api/v1/tools?page=x", auth), getText("/api/v1/comparatifs?category=code&page="+number, auth),
		getText("/api/v1/tools", "X-Forwarded-For: 100.64.0."+number+"\r\n"), getText("/api/v1/tools", "Authorization: Bearer nonsense\r\n"),
		getText("/api/v1/pricing?limit=200", auth+"Accept-Encoding: br\r\n"),
		postText("/graphql", `{"query":"{tools(limit: 20) {items {slug category {label} comparisons {title}}}}"}`, auth),
	}
}

// vitals are a server's figures after a garbage collection.
type vitals struct{ goroutines, heap, resident float64 }

func readVitals(metrics string) (v vitals, err error) {
	if _, err := fetch("http://" + metrics + "/debug/pprof/heap?gc=1"); err != nil {
		return v, err
	}
	text, err := fetch("http://" + metrics + "/metrics")
	if err != nil {
		return v, err
	}
	for name, into := range map[string]*float64{
		"go_goroutines": &v.goroutines, "go_memstats_heap_alloc_bytes": &v.heap, "process_resident_memory_bytes": &v.resident,
	} {
		found := regexp.MustCompile(`(?m)^` + name + ` (\S+)`).FindSubmatch(text)
		if found == nil {
			return v, fmt.Errorf("there is no metric %s", name)
		}
		if *into, err = strconv.ParseFloat(string(found[1]), 64); err != nil {
			return v, err
		}
	}
	return v, nil
}
