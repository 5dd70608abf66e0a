package main

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

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
// that each changed 1%, while it has the catalog in memory, and the command that writes
// the same files without it.
func files(t testing.TB) {
	table := load.NewTable("files of 100,000 tools, 10 releases that each change 1%", "database", "CPU time", "goal", "memory", "goal", "size")
	base, err := os.ReadFile(feed(t, 100_000, 1))
	testkit.Check(t, err)
	lines := bytes.Split(base, []byte("\n"))
	for _, kind := range kinds {
		progress("%s, files of 100,000 tools", kind)
		cfg := newCatalog(t, kind, 100_000)
		for release := 1; release <= filesReleases; release++ {
			importFeed(t, cfg, edited(t, lines, release))
		}
		key := blackbox.CreateKey(t, cfg, load.Owner, "pro")
		metrics, folder := testkit.FreeAddress(t), filepath.Join(t.TempDir(), "files")
		testkit.Check(t, os.WriteFile(folder, nil, 0o600)) // until it is a folder, no files are written
		server := load.Serve(t, cfg, "PALMARES_FILES="+folder, "PALMARES_METRICS_LISTEN="+metrics)
		waitUntilReady(t, server.Address)
		readVitals(t, metrics) // collects the garbage of loading
		testkit.Check(t, os.Remove(folder))
		var resident int64
		var before time.Duration
		for status := http.StatusServiceUnavailable; status != http.StatusOK; {
			if status == http.StatusServiceUnavailable { // the failed attempt is not repeated for half a minute
				time.Sleep(100 * time.Millisecond)
				testkit.Check(t, os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", server.Cmd.Process.Pid), []byte("5"), 0)) // resets the peak
				resident, _ = memoryOf(server)
				before = cpuOf(t, server)
			}
			url := fmt.Sprintf("http://%s/files/releases/%d/releases.parquet", server.Address, filesReleases+1)
			response, _, err := load.Do(t.Context(), load.Client, url, "", "Authorization", "Bearer "+key)
			testkit.Check(t, err)
			status = response.StatusCode
		}
		_, peak := memoryOf(server)
		table.Add("server: grows beside the catalog by", kind, cpuOf(t, server)-before, filesCPUGoal, inMB(peak-resident), inMB(filesMemoryGoal), "")
		server.Kill()

		for _, args := range [][]string{{"sqlite", filepath.Join(t.TempDir(), "catalog.sqlite")}, {"parquet", t.TempDir()}} {
			cmd := blackbox.Command(t, cfg, "export", "--format", args[0], args[1])
			blackbox.MustRun(t, cmd)
			usage := cmd.ProcessState.SysUsage().(*syscall.Rusage)
			table.Add("`palmares export --format "+args[0]+"`: the whole process", kind, (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Round(10*time.Millisecond), "", inMB(int64(usage.Maxrss)<<10), "", inMB(sizeOf(t, args[1])))
		}
	}
	table.Print(os.Stdout)
}

// sizeOf returns the size of a file, or of the files in a folder.
func sizeOf(t testing.TB, path string) (size int64) {
	testkit.Check(t, filepath.Walk(path, func(_ string, info os.FileInfo, err error) error {
		if err == nil && !info.IsDir() {
			size += info.Size()
		}
		return err
	}))
	return size
}
