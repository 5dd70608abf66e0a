package main

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"palmares/internal/dev/check"
	"palmares/internal/dev/load"
	"palmares/internal/dev/testkit"
	"palmares/internal/dev/testkit/blackbox"
)

const (
	filesReleases   = 10
	filesCPUGoal    = 30 * time.Second
	filesMemoryGoal = 60 * megabyte
)

// files measures how a server writes the files of a release of 100,000 tools after ten
// that each changed 1%, while it has the catalog in memory.
func files(t testing.TB) {
	table := load.NewTable("files of 100,000 tools", "CPU time", "goal", "resident memory grows by", "goal", "size of the files")
	base, err := os.ReadFile(feed(t, 100_000, 1))
	check.OK(t, err)
	lines := bytes.Split(base, []byte("\n"))
	for _, kind := range kinds {
		progress("%s, files of 100,000 tools", kind)
		cfg := newCatalog(t, kind, 100_000)
		for release := 1; release <= filesReleases; release++ {
			importFeed(t, cfg, edited(t, lines, release))
		}
		key := blackbox.CreateKey(t, cfg, load.Owner, "pro")
		metrics, folder := testkit.FreeAddress(t), filepath.Join(t.TempDir(), "files")
		check.OK(t, os.WriteFile(folder, nil, 0o600)) // until it is a folder, no files are written
		server := load.Serve(t, cfg, "PALMARES_FILES="+folder, "PALMARES_METRICS_LISTEN="+metrics)
		waitUntilReady(t, server.Address)
		readVitals(t, metrics) // collects the garbage of loading
		check.OK(t, os.Remove(folder))
		var resident int64
		var before time.Duration
		for status := http.StatusServiceUnavailable; status != http.StatusOK; {
			if status == http.StatusServiceUnavailable { // the failed attempt is not repeated for half a minute
				time.Sleep(100 * time.Millisecond)
				check.OK(t, os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", server.Cmd.Process.Pid), []byte("5"), 0)) // resets the peak
				resident, _ = memoryOf(server)
				before = cpuOf(t, server)
			}
			url := fmt.Sprintf("http://%s/files/releases/%d/releases.parquet", server.Address, filesReleases+1)
			response, _, err := load.Do(t.Context(), load.Client, url, "", "Authorization", "Bearer "+key)
			check.OK(t, err)
			status = response.StatusCode
		}
		_, peak := memoryOf(server)
		var size int64
		written, _ := filepath.Glob(filepath.Join(folder, "*", "*"))
		for _, path := range written {
			info, err := os.Stat(path)
			check.OK(t, err)
			size += info.Size()
		}
		table.Add(kind, cpuOf(t, server)-before, filesCPUGoal, inMB(peak-resident), inMB(filesMemoryGoal), inMB(size))
		server.Kill()
	}
	table.Print(os.Stdout)
}
