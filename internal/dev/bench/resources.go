package main

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"palmares/internal/dev/check"
	"palmares/internal/dev/load"
	"palmares/internal/dev/testkit"
	"palmares/internal/dev/testkit/blackbox"
)

const (
	fullCacheGoal = 300 * megabyte
	hitGoal       = 1.2 // CPU time of a hit, full against fresh
)

// memory sends a server requests that are designed to fill its memory, and then
// enough different ones to fill its response cache. It fails if the server uses
// too much memory, or if a cached response takes more CPU time than before.
func memory(t testing.TB) {
	table := load.NewTable("database", "hit, fresh server", "hit, full cache", "ratio", "goal", "resident", "peak", "goal")
	var missed []string
	for _, kind := range kinds {
		progress("%s, memory", kind)
		_, server, key := serveCatalog(t, kind, 5_000)
		fresh := cpuPerHit(t, server, key)
		for _, r := range []requests{
			{Count: 5_000, Texts: hostileRequests(bearer(key))},
			{Count: 8_000, Texts: []string{getText("/api/v1/tools?score_min=0."+number, bearer(key))}},
		} {
			r.Address, r.Connections = server.Address, 4
			r.sendAll(t)
		}
		full := cpuPerHit(t, server, key)
		ratio := float64(full) / float64(fresh)
		resident, peak := memoryOf(server)
		table.Add(kind, fresh.Round(100*time.Nanosecond), full.Round(100*time.Nanosecond), fmt.Sprintf("%.2f", ratio), hitGoal,
			inMB(resident), inMB(peak), inMB(fullCacheGoal))
		if ratio > hitGoal || peak > fullCacheGoal {
			missed = append(missed, kind)
		}
		server.Kill()
	}
	table.Print(os.Stdout)
	if missed != nil {
		t.Fatalf("a goal is missed on %s", strings.Join(missed, " and "))
	}
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
func cpuPerHit(t testing.TB, server *blackbox.Server, key string) time.Duration {
	const hits = 40_000
	r := requests{Address: server.Address, Connections: 4, Count: 1_000, Texts: []string{getText("/api/v1/tools", bearer(key))}}
	r.sendAll(t)
	before := cpuOf(t, server)
	r.Count = hits
	r.sendAll(t)
	return (cpuOf(t, server) - before) / hits
}

// memoryOf returns the resident memory of a server now and at its peak.
func memoryOf(server *blackbox.Server) (resident, peak int64) {
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", server.Cmd.Process.Pid))
	for line := range strings.Lines(string(status)) {
		_, _ = fmt.Sscanf(line, "VmRSS: %d kB", &resident)
		_, _ = fmt.Sscanf(line, "VmHWM: %d kB", &peak)
	}
	return resident << 10, peak << 10
}

// cpuOf returns the CPU time that a server has used so far.
func cpuOf(t testing.TB, server *blackbox.Server) time.Duration {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", server.Cmd.Process.Pid))
	check.OK(t, err)
	// The name in parentheses may contain spaces. utime and stime are fields 14
	// and 15, in hundredths of a second.
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	var user, system int64
	_, err = fmt.Sscan(fields[11]+" "+fields[12], &user, &system)
	check.OK(t, err)
	return time.Duration(user+system) * 10 * time.Millisecond
}

// profile writes a CPU profile of a server that responds from its cache.
func profile(t testing.TB) {
	metrics := testkit.FreeAddress(t)
	_, server, key := serveCatalog(t, "SQLite", 5_000, "PALMARES_METRICS_LISTEN="+metrics)
	var loading sync.WaitGroup
	loading.Go(func() {
		requests{Address: server.Address, Duration: 12 * time.Second, Texts: []string{getText("/api/v1/tools", bearer(key))}}.sendAll(t)
	})
	time.Sleep(time.Second)
	data := fetch(t, "http://"+metrics+"/debug/pprof/profile?seconds=10")
	loading.Wait()
	const name = "hit.prof"
	check.OK(t, os.WriteFile(name, data, 0o600))
	fmt.Printf("go tool pprof -http : %s\n", name)
}

// soak sends mixed load for a duration (SOAK), with an import every 20 seconds. It
// fails if the server's memory or number of goroutines grows.
func soak(t testing.TB) {
	duration, err := time.ParseDuration(cmp.Or(os.Getenv("SOAK"), "10m"))
	check.OK(t, err)
	blackbox.Limit += duration
	metrics := testkit.FreeAddress(t)
	cfg, server, key := serveCatalog(t, "SQLite", 2_000, "PALMARES_METRICS_LISTEN="+metrics)
	end := time.Now().Add(duration)
	var loading sync.WaitGroup
	loading.Go(func() {
		requests{Address: server.Address, Duration: duration, Texts: mixedRequests(bearer(key))}.send(t)
	})
	var first vitals
	for round := 1; time.Now().Before(end); round++ {
		time.Sleep(min(20*time.Second, time.Until(end)))
		importFeed(t, cfg, "--force", feed(t, 2_000, uint64(1+round%2)))
		now := readVitals(t, metrics)
		fmt.Printf("%5s  %3.0f goroutines  %4.1f MB heap  %5.1f MB resident\n",
			(duration - time.Until(end)).Round(time.Second), now.goroutines, now.heap/megabyte, now.resident/megabyte)
		if round == 2 {
			first = now // warmed up
		}
		if round > 2 && (now.goroutines > first.goroutines+50 || now.heap > first.heap*1.5+10*megabyte) {
			t.Fatalf("the server keeps growing: got %+v, want about %+v", now, first)
		}
	}
	loading.Wait()
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

func readVitals(t testing.TB, metrics string) (v vitals) {
	fetch(t, "http://"+metrics+"/debug/pprof/heap?gc=1")
	for line := range strings.Lines(string(fetch(t, "http://"+metrics+"/metrics"))) {
		_, _ = fmt.Sscanf(line, "go_goroutines %g", &v.goroutines)
		_, _ = fmt.Sscanf(line, "go_memstats_heap_alloc_bytes %g", &v.heap)
		_, _ = fmt.Sscanf(line, "process_resident_memory_bytes %g", &v.resident)
	}
	if v.goroutines == 0 || v.heap == 0 || v.resident == 0 {
		t.Fatalf("metrics are missing: got %+v", v)
	}
	return v
}
