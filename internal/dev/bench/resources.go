package main

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
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
func memory(b *bed) {
	b.serve(5_000)
	fresh := b.cpuPerHit()
	requests{server: b.server, connections: 4, count: 5_000, texts: hostileTexts(b.auth())}.send(b)
	requests{server: b.server, connections: 4, count: 8_000, texts: []string{getText(list+"?score_min=0."+number, b.auth())}}.send(b)
	full := b.cpuPerHit()
	resident, peak := memoryOf(b.server)
	b.Add(b.kind, fresh, full, ratio(full, fresh), hitGoal, inMB(resident), inMB(peak), inMB(fullCacheGoal))
	if float64(full) > hitGoal*float64(fresh) || peak > fullCacheGoal {
		b.Errorf("a goal is missed on %s", b.kind)
	}
}

// hostileTexts are unique GraphQL requests of about 8 kB: one with as many
// values as the limits allow, and one that is rejected for a long list.
func hostileTexts(headers string) []string {
	values := strings.Repeat(`\"c\" `, 60)
	var aliases strings.Builder
	for i := range 20 {
		fmt.Fprintf(&aliases, "a%d: tools(limit: 1, filter: {categories: [%s]}) {meta {total}} ", i, values)
	}
	accepted := `{"query":"query Q` + number + `($f: ToolFilter) {` + aliases.String() + ` b: tools(limit: 1, filter: $f) {meta {total}}}",` +
		`"variables":{"f":{"categories":[` + strings.Repeat(`"c",`, 90) + `"x` + number + `"]}}}`
	rejected := `{"query":"query Q` + number + ` {tools(filter: {categories: [` + strings.Repeat(values, 30) + `]}) {meta {total}}}"}`
	return []string{postText("/graphql", accepted, headers), postText("/graphql", rejected, headers)}
}

// cpuPerHit returns the server's CPU time for one cached response.
func (b *bed) cpuPerHit() time.Duration {
	r := requests{server: b.server, connections: 4, count: 1_000, texts: []string{getText(list, b.auth())}}
	r.send(b)
	before := cpuOf(b, b.server)
	r.count = 40_000
	r.send(b)
	return ((cpuOf(b, b.server) - before) / time.Duration(r.count)).Round(100 * time.Nanosecond)
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

// resetPeak makes the peak of a server's memory the present value, and returns that.
func resetPeak(t testing.TB, server *blackbox.Server) int64 {
	check.OK(t, os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", server.Cmd.Process.Pid), []byte("5"), 0))
	resident, _ := memoryOf(server)
	return resident
}

// cpuOf returns the CPU time that a server has used so far.
func cpuOf(t testing.TB, server *blackbox.Server) time.Duration {
	text := check.Try(os.ReadFile(fmt.Sprintf("/proc/%d/stat", server.Cmd.Process.Pid))).OK(t)
	// The name in parentheses may contain spaces. utime and stime are fields 14
	// and 15, in hundredths of a second.
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	var user, system int64
	check.Try(fmt.Sscan(fields[11]+" "+fields[12], &user, &system)).OK(t)
	return time.Duration(user+system) * 10 * time.Millisecond
}

// soak sends mixed load for a duration (SOAK), with an import every 20 seconds. It
// fails if the server's memory or number of goroutines grows.
func soak(b *bed) {
	if b.kind != "SQLite" {
		return
	}
	length := check.Try(time.ParseDuration(cmp.Or(os.Getenv("SOAK"), "10m"))).OK(b)
	blackbox.Limit += length
	metrics := testkit.FreeAddress(b)
	b.serve(2_000, "PALMARES_METRICS_LISTEN="+metrics)
	start := time.Now()
	auth := b.auth()
	var loading sync.WaitGroup
	loading.Go(func() { // hits, misses, 304s, GraphQL and invalid requests
		requests{server: b.server, length: length, status: anyStatus, texts: []string{
			getText(list, auth), getText(list+"?score_min=0."+number, auth), getText("/api/v1/stats", auth+"If-None-Match: *\r\n"),
			getText(list+"/nobody-"+number, auth), getText(list+"?page=x", auth), getText("/api/v1/comparatifs?category=code&page="+number, auth),
			getText(list, "X-Forwarded-For: 100.64.0."+number+"\r\n"), getText(list, "Authorization: Bearer nonsense\r\n"),
			getText("/api/v1/pricing?limit=200", auth+"Accept-Encoding: br\r\n"),
			postText("/graphql", `{"query":"{tools(limit: 20) {items {slug category {label} comparisons {title}}}}"}`, auth),
		}}.send(b)
	})
	var first vitals
	for round := 1; time.Since(start) < length; round++ {
		time.Sleep(min(20*time.Second, length-time.Since(start)))
		b.importInto(b.cfg, "--force", feed(b, 2_000, uint64(1+round%2)))
		now := readVitals(b, metrics)
		b.Add(time.Since(start).Round(time.Second), now.goroutines, inMB(int64(now.heap)), inMB(int64(now.resident)))
		if round == 2 {
			first = now // warmed up
		}
		check.MustTrue(b, round < 3 || now.goroutines <= first.goroutines+50 && now.heap <= first.heap*1.5+10*megabyte,
			"the server keeps growing: got %+v, want about %+v", now, first)
	}
	loading.Wait()
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
	check.MustTrue(t, v.goroutines*v.heap*v.resident != 0, "metrics are missing: got %+v", v)
	return v
}

// bulk measures downloads of 100,000 tools. The ratio compares the CPU time of
// the server with reading the same list in pages of 200.
func bulk(b *bed) {
	b.serve(100_000)
	start := cpuOf(b, b.server)
	for page := range 500 {
		b.download(fmt.Sprintf("?limit=200&page=%d", page+1))
	}
	ofPages := cpuOf(b, b.server) - start
	for _, query := range []string{"?format=ndjson", "?format=csv", "?format=csv&dialect=excel-fr&sort=name_asc", "?format=csv&score_min=0"} {
		progress("  %s", query)
		before := cpuOf(b, b.server)
		first, whole, grown := b.download(query)
		cpu := cpuOf(b, b.server) - before
		b.Add("`"+list+query+"`", b.kind, milli(first), "100ms", milli(whole), "3s", inMB(grown), "30 MB", cpu, ofPages, ratio(cpu, ofPages))
	}
}

// download reads a list, and returns when its first and last byte arrived, and how much
// the server's memory grew at most.
func (b *bed) download(query string) (first, whole time.Duration, grown int64) {
	request := check.Try(http.NewRequestWithContext(b.Context(), http.MethodGet, "http://"+b.server.Address+list+query, nil)).OK(b)
	request.Header.Set("Authorization", "Bearer "+b.key)
	resident := resetPeak(b, b.server)
	start := time.Now()
	response := check.Try(load.Client.Do(request)).OK(b)
	defer response.Body.Close()
	check.Try(io.ReadFull(response.Body, make([]byte, 1))).OK(b)
	first = time.Since(start)
	check.Try(io.Copy(io.Discard, response.Body)).OK(b)
	whole = time.Since(start)
	check.MustTrue(b, response.StatusCode == http.StatusOK && response.Header.Get("X-Total-Count") != "0",
		"%s: got %s, want tools", query, response.Status)
	_, peak := memoryOf(b.server)
	return first, whole, peak - resident
}

// files measures how a server writes the files of a release of 100,000 tools after ten
// that each changed 1%, while it has the catalog in memory.
func files(b *bed) {
	const releases = 10
	b.cfg = b.newCatalog(100_000)
	for release := 1; release <= releases; release++ {
		b.importEdited(100_000, release, false)
	}
	b.key = blackbox.CreateKey(b, b.cfg, load.Owner, "pro")
	metrics, folder := testkit.FreeAddress(b), filepath.Join(b.TempDir(), "files")
	check.OK(b, os.WriteFile(folder, nil, 0o600)) // until it is a folder, no files are written
	b.restart("PALMARES_FILES="+folder, "PALMARES_METRICS_LISTEN="+metrics)
	readVitals(b, metrics) // collects the garbage of loading
	check.OK(b, os.Remove(folder))
	var resident int64
	var before time.Duration
	for status := http.StatusServiceUnavailable; status != http.StatusOK; {
		if status == http.StatusServiceUnavailable { // the failed attempt is not repeated for half a minute
			time.Sleep(100 * time.Millisecond)
			resident, before = resetPeak(b, b.server), cpuOf(b, b.server)
		}
		path := fmt.Sprintf("/files/releases/%d/releases.parquet", releases+1)
		status = b.server.Call(b, http.MethodGet, path, "", "Authorization", "Bearer "+b.key).StatusCode
	}
	_, peak := memoryOf(b.server)
	var size int64
	written, _ := filepath.Glob(filepath.Join(folder, "*", "*"))
	for _, path := range written {
		size += check.Try(os.Stat(path)).OK(b).Size()
	}
	b.Add(b.kind, cpuOf(b, b.server)-before, "30s", inMB(peak-resident), "60 MB", inMB(size))
}
