package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"sync"
	"time"

	"palmares/ent/journalentry"
	"palmares/internal/core/store"
	"palmares/internal/dev/check"
	"palmares/internal/dev/load"
	"palmares/internal/dev/testkit"
	"palmares/internal/dev/testkit/blackbox"
)

// imports measures imports, and how soon a server is ready.
func imports(b *bed) {
	add := func(name string, took, goal time.Duration, peak int64, memoryGoal string) {
		b.Add(name, b.kind, milli(took), goal, inMB(peak), memoryGoal)
	}
	took, peak := b.importInto(b.newDatabase(), feed(b, 5_000, 1))
	add("import of 5,000 tools", took, 3*time.Second, peak, "")
	b.cfg = b.newDatabase()
	took, peak = b.importInto(b.cfg, feed(b, 100_000, 1))
	add("import of 100,000 tools", took, time.Minute, peak, "400 MB")
	took, peak = b.importInto(b.cfg, feed(b, 100_000, 1))
	add("the same feed again, unchanged", took, 20*time.Second, peak, "")
	start := time.Now()
	b.server = load.Serve(b, b.cfg)
	b.get("/healthz")
	b.Add("start until it responds, 100,000 tools", b.kind, milli(time.Since(start)), "300ms")
	b.waitUntilReady()
	b.Add("start until the catalog is in memory", b.kind, milli(time.Since(start)))
}

const maxDeliveryGap = time.Minute

// webhooks measures how much ten endpoints that receive all events slow down three
// imports, and how fast the events are delivered. It fails if one is lost.
func webhooks(b *bed) {
	const endpoints, tools = 10, 5_000
	var mu sync.Mutex
	seen := map[string]bool{}
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		mu.Lock()
		defer mu.Unlock()
		seen[r.URL.Path+" "+r.Header.Get("webhook-id")] = true
	}))
	defer receiver.Close()
	without := b.newCatalog(tools)
	b.cfg = b.newCatalog(tools)
	blackbox.CreateKey(b, b.cfg, load.Owner, "pro")
	for i := range endpoints {
		blackbox.MustRun(b, blackbox.Command(b, b.cfg, "webhooks", "add", load.Owner, fmt.Sprintf("%s/%d", receiver.URL, i)))
	}
	before := countEvents(b, b.cfg)
	var times [2]time.Duration
	for round := range 3 { // alternating, so that a noisy machine affects both alike
		for i, cfg := range []store.Config{without, b.cfg} {
			took, _ := b.importInto(cfg, "--force", feed(b, tools, uint64(1+(round+1)%2)))
			times[i] += took
		}
	}
	expected := endpoints * (countEvents(b, b.cfg) - before)
	b.server = load.Serve(b, b.cfg)
	arrived, first, last := 0, time.Time{}, time.Now()
	for arrived < expected && time.Since(last) < maxDeliveryGap {
		time.Sleep(5 * time.Millisecond)
		mu.Lock()
		now := len(seen)
		mu.Unlock()
		if now > 0 && first.IsZero() {
			first = time.Now()
		}
		if now > arrived {
			arrived, last = now, time.Now()
		}
	}
	_, peak := memoryOf(b.server)
	b.Add(b.kind, ratio(times[1], times[0]), 1.3, arrived, int(float64(arrived)/last.Sub(first).Seconds()), 500, inMB(peak), "200 MB")
	check.MustTrue(b, arrived == expected, "got %d deliveries, want %d", arrived, expected)
}

func countEvents(b *bed, cfg store.Config) int {
	db := testkit.Open(b, cfg)
	defer db.Close()
	return check.Try(db.Read.JournalEntry.Query().Where(journalentry.EventNotNil()).Count(b.Context())).OK(b)
}

// history measures earlier releases of a catalog of 100,000 tools. Each of 50
// releases changes the score and the review of one tool in a hundred.
func history(b *bed) {
	const releases = 50
	b.cfg = b.newCatalog(100_000)
	before := databaseSize(b)
	var times []time.Duration
	for release := 1; release <= releases; release++ {
		times = append(times, b.importEdited(100_000, release, false))
	}
	slices.Sort(times)
	b.Add("import that changes 1%, median", b.kind, milli(times[releases/2]))
	b.Add("size of the database, before and after", b.kind, before+" and "+databaseSize(b))
	b.key = blackbox.CreateKey(b, b.cfg, load.Owner, "pro")
	b.restart()
	query := "?score_min=0.000" + number
	current, first := b.median(query, 100), b.median(query+"&as_of=1", 1)
	earlier := b.median(query+"&as_of=1", 100)
	b.Add("uncached list as of 50 releases back / newest", b.kind, fmt.Sprintf("%s (%s / %s)", ratio(earlier, current), earlier, current), "3.0")
	b.Add("the first request for that release", b.kind, first, "500ms")
	b.Add("the first request for one release back", b.kind, b.median(fmt.Sprintf("%s&as_of=%d", query, releases), 1))
}

var dateIn, scoreIn = regexp.MustCompile(`"updated_at":"[0-9-]+"`), regexp.MustCompile(`"score":[0-9.]+`)

// importEdited imports a release in which one tool in a hundred has a new score and review,
// and those of earlier releases have theirs again or, if changes add up, keep them.
func (b *bed) importEdited(tools, release int, addUp bool) time.Duration {
	lines := bytes.Split(check.Try(os.ReadFile(feed(b, tools, 1))).OK(b), []byte("\n"))
	lines[0] = dateIn.ReplaceAll(lines[0], fmt.Appendf(nil, `"updated_at":"2027-%02d-%02d"`, 1+release/28, 1+release%28))
	for i, line := range lines {
		at := i % 100
		if bytes.HasPrefix(line, []byte(`{"type":"tool"`)) && (at == release || addUp && at > 0 && at < release) {
			line = scoreIn.ReplaceAll(line, fmt.Appendf(nil, `"score":%d.%d`, at%10, i/100%10))
			lines[i] = bytes.ReplaceAll(line, []byte(`"text":"`), []byte(`"text":"Revu. `))
		}
	}
	file := blackbox.WriteFile(b, "edited.ndjson", bytes.Join(lines, []byte("\n")))
	defer os.Remove(file) // many of them would fill the disk
	took, _ := b.importInto(b.cfg, file)
	return took
}

// databaseSize returns how much a database takes.
func databaseSize(b *bed) string {
	if b.kind == "SQLite" {
		return inMB(check.Try(os.Stat(store.File(b.cfg.DataDir))).OK(b).Size())
	}
	db := testkit.Open(b, b.cfg)
	defer db.Close()
	var size int64
	check.OK(b, db.Pools()["reader"].QueryRow("SELECT pg_database_size(current_database())").Scan(&size))
	return inMB(size)
}
