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
	"net/http"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"palmares/internal/catalog/feed/synth"
	"palmares/internal/core/store"
	"palmares/internal/dev/check"
	"palmares/internal/dev/load"
	"palmares/internal/dev/testkit"
	"palmares/internal/dev/testkit/blackbox"
	"palmares/internal/dev/testkit/wait"
)

// contestHeader is the header of tables that compare palmares with a baseline.
const contestHeader = "16 connections | database | req/s | baseline | ratio | goal | p50 | p99 | CPU time of a request | baseline | ratio"

// parts are measured on each database, and add rows to a table. Those that are not
// standard run only if they are named.
var parts = []struct {
	name     string
	standard bool
	header   string
	run      func(*bed)
}{
	{"imports", true, "operation | database | time | goal | peak memory | goal", imports},
	{"cold", true, contestHeader, cold},
	{"http", true, contestHeader, overHTTP},
	{"mcp", true, contestHeader, overMCP},
	{"webhooks", true, "database | import with / without | goal | deliveries | per second | goal | memory | goal", webhooks},
	{"memory", true, "database | hit, fresh server | hit, full cache | ratio | goal | resident | peak | goal", memory},
	{"large", true, "100,000 tools | database | measured | goal", large},
	{"bulk", false, "download of 100,000 tools | database | first byte | goal | whole list | goal | resident memory grows by | goal | " +
		"CPU time | of pages | ratio", bulk},
	{"saved", false, contestHeader, saved},
	{"history", false, "100,000 tools, 50 releases that each change 1% | database | measured | goal", history},
	{"costs", false, "catalog | queries | rejected | mean | worst of cost up to 1,000 | goal | worst | goal | worst unit of cost | goal", costs},
	{"payers", false, "request | who pays | database | statuses | CPU time | goal | cost | per unit | goal", payers},
	{"edge", false, "release | import | requests | hits | ratio | goal | compared | outdated | goal", edge},
	{"files", false, "files of 100,000 tools | CPU time | goal | resident memory grows by | goal | size of the files", files},
	{"soak", false, "after | goroutines | heap | resident", soak},
}

// bed is what a part has to measure: a database, and mostly a server.
type bed struct {
	testing.TB
	*load.Table
	kind   string // of the database
	cfg    store.Config
	server *blackbox.Server
	key    string
}

func main() { testkit.Main("bench", run) }

func run(t testing.TB) {
	args := os.Args[1:]
	check.MustTrue(t, len(args) > 0, "usage: bench PALMARES [PART]...")
	if args[0] == "serve-bare" { // in a process of its own
		serveBare(t, args[1], args[2], store.Config{DataDir: args[3], DatabaseURL: args[4]})
		return
	}
	blackbox.UseProgram(t, args[0])
	if os.Getenv(testkit.URLVariable) == "" {
		// Unlike the server of the tests, it writes to disk as in production.
		check.OK(t, os.Setenv(testkit.URLVariable, testkit.StartCluster(t).URL))
	}
	for _, part := range parts {
		if !slices.Contains(args[1:], part.name) && (len(args) > 1 || !part.standard) {
			continue
		}
		table := load.NewTable(part.header)
		for _, kind := range []string{"SQLite", "PostgreSQL"} {
			progress("%s, %s", part.name, kind)
			b := &bed{TB: t, Table: table, kind: kind}
			part.run(b)
			b.kill()
		}
		table.Print(os.Stdout)
	}
}

func (b *bed) newDatabase() store.Config {
	if b.kind == "PostgreSQL" {
		return testkit.Postgres(b)
	}
	return testkit.SQLite(b)
}

// newCatalog returns a database with a generated catalog.
func (b *bed) newCatalog(tools int) store.Config {
	cfg := b.newDatabase()
	b.importInto(cfg, feed(b, tools, 1))
	return cfg
}

// serve starts a server with a generated catalog, waits until that is in memory, and
// creates a key.
func (b *bed) serve(tools int, env ...string) {
	b.cfg = b.newCatalog(tools)
	b.key = blackbox.CreateKey(b, b.cfg, load.Owner, "pro")
	b.restart(env...)
}

func (b *bed) restart(env ...string) {
	b.kill()
	b.server = load.Serve(b, b.cfg, env...)
	b.waitUntilReady()
}

func (b *bed) kill() {
	if b.server != nil {
		b.server.Kill()
	}
}

func (b *bed) waitUntilReady() {
	wait.Until(b, "the catalog is in memory", func() bool { return strings.Contains(string(b.get("/readyz")), `"release":`) })
}

// awaitFiles waits until the server has written the files of its release. It does so in
// the background, which would count as work for requests.
func (b *bed) awaitFiles() {
	wait.Until(b, "files of the release", func() bool {
		response := b.server.Call(b, http.MethodGet, "/files/releases/1/releases.parquet", "", "Authorization", "Bearer "+b.key)
		return response.StatusCode == http.StatusOK
	})
}

// get returns the body of a path, read with the key if there is one.
func (b *bed) get(path string) []byte {
	return fetch(b, "http://"+b.server.Address+path, "Authorization", "Bearer "+b.key)
}

func fetch(t testing.TB, url string, headers ...string) []byte {
	_, body, err := load.Do(context.Background(), load.Client, url, "", headers...)
	check.OK(t, err)
	return body
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

// importInto imports a feed, and returns how long it took and the peak memory of the
// process in bytes.
func (b *bed) importInto(cfg store.Config, args ...string) (took time.Duration, peak int64) {
	cmd := blackbox.Command(b, cfg, append([]string{"import"}, args...)...)
	start := time.Now()
	blackbox.MustRun(b, cmd)
	if usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		peak = int64(usage.Maxrss) << 10 // kilobytes on Linux
	}
	return time.Since(start), peak
}

const megabyte = 1 << 20

func inMB(bytes int64) string { return fmt.Sprintf("%d MB", bytes/megabyte) }

func milli(d time.Duration) time.Duration { return d.Round(time.Millisecond) }

func ratio[N int | int64 | float64 | time.Duration](part, of N) string {
	return fmt.Sprintf("%.2f", float64(part)/float64(max(of, 1)))
}

func progress(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }
