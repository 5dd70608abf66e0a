package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"testing"
	"time"

	"palmares/internal/dev/check"
	"palmares/internal/dev/load"
	"palmares/internal/dev/testkit/blackbox"
)

// bulk measures downloads of 100,000 tools. The ratio compares the CPU time of
// the server with reading the same list in pages of 200.
func bulk(t testing.TB) {
	const tools, pageSize = 100_000, 200
	table := load.NewTable("download of 100,000 tools", "database", "first byte", "goal", "whole list", "goal", "resident memory grows by", "goal", "CPU time", "CPU time of pages", "ratio")
	for _, kind := range kinds {
		progress("%s, downloads of 100,000 tools", kind)
		_, server, key := serveCatalog(t, kind, tools)
		waitUntilReady(t, server.Address)
		before := cpuOf(t, server)
		for page := range tools / pageSize {
			download(t, server, key, fmt.Sprintf("/api/v1/tools?limit=%d&page=%d", pageSize, page+1))
		}
		ofPages := cpuOf(t, server) - before
		for _, path := range []string{
			"/api/v1/tools?format=ndjson", "/api/v1/tools?format=csv", "/api/v1/tools?format=csv&dialect=excel-fr&sort=name_asc", "/api/v1/tools?format=csv&score_min=0",
		} {
			progress("  %s", path)
			before := cpuOf(t, server)
			first, whole, grown := download(t, server, key, path)
			cpu := cpuOf(t, server) - before
			table.Add("`"+path+"`", kind, first.Round(time.Millisecond), "100ms", whole.Round(time.Millisecond), "3s", fmt.Sprintf("%d MB", grown/megabyte), "30 MB",
				cpu, ofPages, fmt.Sprintf("%.2f", float64(cpu)/float64(ofPages)))
		}
		server.Kill()
	}
	table.Print(os.Stdout)
}

// download reads a response, and returns when its first and last byte arrived, and
// the peak growth of the server's memory.
func download(t testing.TB, server *blackbox.Server, key, path string) (first, whole time.Duration, grown int64) {
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+server.Address+path, nil)
	check.OK(t, err)
	request.Header.Set("Authorization", "Bearer "+key)
	resident, _ := memoryOf(server)
	start := time.Now()
	response, err := load.Client.Do(request)
	check.OK(t, err)
	defer response.Body.Close()
	buffer := make([]byte, 1<<20)
	for size, measured := 0, 0; ; {
		n, err := response.Body.Read(buffer)
		if size += n; n > 0 && first == 0 {
			first = time.Since(start)
		}
		if size-measured >= megabyte {
			measured = size
			now, _ := memoryOf(server)
			grown = max(grown, now-resident)
		}
		if err == io.EOF {
			break
		}
		check.OK(t, err)
	}
	whole = time.Since(start)
	if response.StatusCode != http.StatusOK || response.Header.Get("X-Total-Count") == strconv.Itoa(0) {
		t.Fatalf("%s: got %s %v, want 200 with tools", path, response.Status, response.Header)
	}
	return first, whole, grown
}
