// Bench measures whole palmares processes on both databases. It prints tables
// with goals; only soak and memory fail if one is missed, because machines are
// shared and noisy.
//
//	make bench
//	make bench PARTS="http memory"
package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"syscall"
	"testing"
	"time"

	"palmares/internal/catalog/feed/synth"
	"palmares/internal/core/store"
	"palmares/internal/dev/check"
	"palmares/internal/dev/load"
	"palmares/internal/dev/testkit"
	"palmares/internal/dev/testkit/blackbox"
)

// parts are the parts that can be measured. Those that are not standard run only
// if they are named.
var parts = []struct {
	name     string
	standard bool
	run      func(testing.TB)
}{
	{"imports", true, imports},
	{"cold", true, cold},
	{"http", true, overHTTP},
	{"mcp", true, overMCP},
	{"webhooks", true, webhooks},
	{"memory", true, memory},
	{"large", true, large},
	{"bulk", false, bulk},
	{"saved", false, saved},
	{"history", false, history},
	{"costs", false, costs},
	{"payers", false, payers},
	{"edge", false, edge},
	{"files", false, files},
	{"profile", false, profile},
	{"soak", false, soak},
}

func main() { testkit.Main("bench", run) }

func run(t testing.TB) {
	args := os.Args[1:]
	if len(args) == 0 {
		usage := "usage: bench PALMARES"
		for _, part := range parts {
			usage += " [" + part.name + "]"
		}
		t.Fatal(usage)
	}
	switch args[0] { // subprocesses
	case "generate-load":
		generateLoad(t)
		return
	case "serve-bare":
		serveBare(t)
		return
	}
	blackbox.UseProgram(t, args[0])
	if os.Getenv(testkit.URLVariable) == "" {
		// Unlike the server of the tests, it writes to disk as in production.
		check.OK(t, os.Setenv(testkit.URLVariable, testkit.StartCluster(t).URL))
	}
	for _, part := range parts {
		if len(args) == 1 && part.standard || slices.Contains(args[1:], part.name) {
			part.run(t)
		}
	}
}

// kinds are the names of both databases.
var kinds = []string{"SQLite", "PostgreSQL"}

func newDatabase(t testing.TB, kind string) store.Config {
	if kind == "PostgreSQL" {
		return testkit.Postgres(t)
	}
	return testkit.SQLite(t)
}

var feeds = map[synth.Options]string{}

// feed generates a feed, unless it exists. Each seed gives a different catalog.
func feed(t testing.TB, tools int, seed uint64) string {
	options := synth.Options{Tools: tools, Seed: seed}
	if feeds[options] == "" {
		feeds[options] = blackbox.SynthFile(t, options)
	}
	return feeds[options]
}

// importFeed imports a generated feed into a database, and returns how long it
// took and the peak memory of the process in bytes.
func importFeed(t testing.TB, cfg store.Config, args ...string) (took time.Duration, peak int64) {
	cmd := blackbox.Command(t, cfg, append([]string{"import"}, args...)...)
	start := time.Now()
	blackbox.MustRun(t, cmd)
	if usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		peak = int64(usage.Maxrss) << 10 // kilobytes on Linux
	}
	return time.Since(start), peak
}

// newCatalog returns a database with a generated catalog.
func newCatalog(t testing.TB, kind string, tools int) store.Config {
	cfg := newDatabase(t, kind)
	importFeed(t, cfg, feed(t, tools, 1))
	return cfg
}

// serveCatalog starts a server with a generated catalog, and creates a key.
func serveCatalog(t testing.TB, kind string, tools int, env ...string) (cfg store.Config, server *blackbox.Server, key string) {
	cfg = newCatalog(t, kind, tools)
	key = blackbox.CreateKey(t, cfg, load.Owner, "pro")
	return cfg, load.Serve(t, cfg, env...), key
}

// imports measures imports, and how soon a server is ready.
func imports(t testing.TB) {
	table := load.NewTable("operation", "database", "time", "goal", "peak memory", "goal")
	for _, kind := range kinds {
		var cfg store.Config
		for _, step := range []struct {
			name       string
			tools      int
			again      bool
			goal       time.Duration
			memoryGoal int64
		}{
			{"import of 5,000 tools", 5_000, false, 3 * time.Second, 0},
			{"import of 100,000 tools", 100_000, false, time.Minute, 400 * megabyte},
			{"the same feed again, unchanged", 100_000, true, 20 * time.Second, 0},
		} {
			progress("%s, %s", kind, step.name)
			if !step.again {
				cfg = newDatabase(t, kind)
			}
			took, peak := importFeed(t, cfg, feed(t, step.tools, 1))
			table.Add(step.name, kind, took.Round(time.Millisecond), step.goal, inMB(peak), inMB(step.memoryGoal))
		}
		start := time.Now()
		server := load.Serve(t, cfg)
		fetch(t, "http://"+server.Address+"/healthz")
		table.Add("start until it responds, 100,000 tools", kind, time.Since(start).Round(time.Millisecond), 300*time.Millisecond)
		waitUntilReady(t, server.Address)
		table.Add("start until the catalog is in memory", kind, time.Since(start).Round(time.Millisecond), "")
		server.Kill()
	}
	table.Print(os.Stdout)
}

const megabyte = 1 << 20

func inMB(bytes int64) string {
	if bytes == 0 {
		return ""
	}
	return fmt.Sprintf("%d MB", bytes/megabyte)
}

func progress(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }

// fetch returns the body of a URL.
func fetch(t testing.TB, url string) []byte {
	_, body, err := load.Do(context.Background(), load.Client, url, "")
	check.OK(t, err)
	return body
}
