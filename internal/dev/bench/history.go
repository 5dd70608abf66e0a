package main

import (
	"bytes"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"palmares/internal/core/store"
	"palmares/internal/dev/check"
	"palmares/internal/dev/load"
	"palmares/internal/dev/testkit/blackbox"
)

const historyReleases = 50

var (
	dateIn  = regexp.MustCompile(`"updated_at":"[0-9-]+"`)
	scoreIn = regexp.MustCompile(`"score":[0-9.]+`)
	textIn  = regexp.MustCompile(`"text":"`)
)

// history measures earlier releases of a catalog of 100,000 tools. Each of 50
// releases changes the score and the review of one tool in a hundred.
func history(t testing.TB) {
	table := load.NewTable("100,000 tools, 50 releases that each change 1%", "database", "measured", "goal")
	base, err := os.ReadFile(feed(t, 100_000, 1))
	check.OK(t, err)
	lines := bytes.Split(base, []byte("\n"))
	for _, kind := range kinds {
		progress("%s, %d releases of 100,000 tools", kind, historyReleases)
		cfg := newCatalog(t, kind, 100_000)
		before := databaseSize(t, cfg)
		var times []time.Duration
		for release := 1; release <= historyReleases; release++ {
			took, _ := importFeed(t, cfg, edited(t, lines, release))
			times = append(times, took)
		}
		slices.Sort(times)
		table.Add("import that changes 1%, median", kind, times[len(times)/2].Round(time.Millisecond), "")
		table.Add("size of the database, before and after", kind, inMB(before)+" and "+inMB(databaseSize(t, cfg)), "")

		key := blackbox.CreateKey(t, cfg, load.Owner, "pro")
		server := load.Serve(t, cfg)
		waitUntilReady(t, server.Address)
		median := func(asOf string, count int) time.Duration {
			r := requests{Address: server.Address, Connections: 1, Count: count, Texts: []string{getText("/api/v1/tools?score_min=0.000"+number+asOf, bearer(key))}}
			return r.sendAll(t).P50
		}
		current, first := median("", 100), median("&as_of=1", 1)
		earlier := median("&as_of=1", 100)
		table.Add("uncached list as of 50 releases back / newest", kind, fmt.Sprintf("%.2f (%s / %s)", float64(earlier)/float64(current), earlier.Round(10*time.Microsecond), current.Round(10*time.Microsecond)), "3.0")
		table.Add("the first request for that release", kind, first.Round(time.Millisecond), "500ms")
		table.Add("the first request for one release back", kind, median(fmt.Sprintf("&as_of=%d", historyReleases), 1).Round(time.Millisecond), "")
		server.Kill()
	}
	table.Print(os.Stdout)
}

// edited writes a feed in which one tool in a hundred has a new score and review.
func edited(t testing.TB, lines [][]byte, release int) string {
	changed := slices.Clone(lines)
	changed[0] = dateIn.ReplaceAll(changed[0], []byte(fmt.Sprintf(`"updated_at":"2027-%02d-%02d"`, 1+release/28, 1+release%28)))
	for i, line := range changed {
		if i%100 == release%100 && bytes.HasPrefix(line, []byte(`{"type":"tool"`)) {
			line = scoreIn.ReplaceAll(line, []byte(fmt.Sprintf(`"score":%d.%d`, release%10, i/100%10)))
			changed[i] = textIn.ReplaceAll(line, []byte(`"text":"Revu. `))
		}
	}
	path := filepath.Join(t.TempDir(), "edited.ndjson")
	check.OK(t, os.WriteFile(path, bytes.Join(changed, []byte("\n")), 0o600))
	return path
}

// databaseSize returns the bytes that a database takes.
func databaseSize(t testing.TB, cfg store.Config) (size int64) {
	if cfg.DatabaseURL == "" {
		info, err := os.Stat(store.File(cfg.DataDir))
		check.OK(t, err)
		return info.Size()
	}
	db, err := sql.Open("postgres", strings.TrimSpace(cfg.DatabaseURL))
	check.OK(t, err)
	defer db.Close()
	check.OK(t, db.QueryRow("SELECT pg_database_size(current_database())").Scan(&size))
	return size
}
