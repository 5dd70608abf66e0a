// Chaos breaks the services that palmares depends on, one at a time and under a
// steady load, and reports what readers notice. The setup is real: three servers
// behind nginx, PostgreSQL, Redis and a webhook receiver, all on loopback. It
// prints a table and the goals, and fails if a goal is missed.
//
//	make chaos
//	make chaos SHORT=1
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"palmares/internal/dev/load"
	"palmares/internal/dev/testkit"
	"palmares/internal/dev/testkit/blackbox"
)

type options struct {
	short        bool
	ignoreTiming bool // goals about time are printed, but may be missed
	only         string
	logs         string
}

func main() {
	var o options
	flag.BoolVar(&o.short, "short", false, "run faults of two or three seconds, as in the tests")
	flag.StringVar(&o.only, "only", "", "run only faults whose name contains one of these words, separated by commas")
	flag.StringVar(&o.logs, "logs", "", "directory for the servers' logs")
	flag.Parse()
	testkit.Main("chaos", func(t testing.TB) {
		if flag.NArg() != 1 {
			t.Fatal("usage: chaos [-short] [-only WORDS] [-logs DIR] PALMARES")
		}
		blackbox.UseProgram(t, flag.Arg(0))
		if !run(t, os.Stdout, o) {
			t.Fatal("a goal is missed")
		}
	})
}

func (o options) wants(fault string) bool {
	return slices.ContainsFunc(strings.Split(o.only, ","), func(word string) bool { return strings.Contains(fault, word) })
}

// run runs the faults, prints the results, and reports whether all goals are
// met.
func run(t testing.TB, out io.Writer, o options) (met bool) {
	outcomes := slices.Concat(sharedFaults(t, o), diskFull(t, o), midnight(t, o), starved(t, o))
	printTable(out, outcomes)
	return printGoals(out, outcomes, !o.ignoreTiming)
}

func printTable(w io.Writer, outcomes []*outcome) {
	table := load.NewTable("fault", "cached reads", "failed", "p99", "max", "uncached reads", "rejected with 503", "failed", "p99", "max",
		"usage lost / duplicated", "Redis counts lost / duplicated", "granted of 100 per day", "events", "lost / duplicated",
		"last failure after", "new release after", "delivered after")
	for _, o := range outcomes {
		if o.note != "" {
			table.Add(o.fault.name, o.note)
			continue
		}
		granted := ""
		if o.granted > 0 {
			granted = fmt.Sprint(o.granted)
		}
		c, u := o.cached, o.uncached
		table.Add(o.fault.name, c.requests, c.failed, milliseconds(c.p99), milliseconds(c.max),
			u.requests, u.refused, u.failed, milliseconds(u.p99), milliseconds(u.max),
			fmt.Sprintf("%d / %d", o.usage.lost, o.usage.duplicated), fmt.Sprintf("%d / %d", o.redis.lost, o.redis.duplicated), granted,
			o.events, fmt.Sprintf("%d / %d", o.lost, o.duplicated), seconds(o.recovered), seconds(o.visible), seconds(o.delivered))
	}
	table.Print(w)
}

func milliseconds(d time.Duration) string {
	if d >= time.Second {
		return seconds(d)
	}
	return fmt.Sprintf("%d ms", d.Milliseconds())
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }

// maxRecovery is how soon everything must work again.
const maxRecovery = 5 * time.Second

// goals must be met during all faults; missed returns how a goal is missed, or "".
var goals = []struct {
	name   string
	missed func(*outcome) string
	timing bool // depends on how busy the machine is
}{
	{"cached reads never fail", func(o *outcome) string { return count(o.cached.failed, "failed") }, false},
	{"no response mixes releases", func(o *outcome) string { return count(o.mixed, "did") }, false},
	{"no server goes back to an older release", func(o *outcome) string { return count(o.older, "responses did") }, false},
	{"uncached reads fail only while a database is broken, and then with 503", func(o *outcome) string {
		if o.fault.noFailure {
			return count(o.cached.failed+o.uncached.failed+o.uncached.refused, "failed")
		}
		return count(o.uncached.failed, "failed otherwise")
	}, false},
	{"counts are exact, except for what a kill or an outage of Redis may lose", func(o *outcome) string {
		switch {
		case o.usage.lost > o.mayLose:
			return count(o.usage.lost, "not recorded")
		case o.redis.lost > o.redisMayLose:
			return count(o.redis.lost, "lost by Redis")
		}
		return count(o.usage.duplicated+o.redis.duplicated, "counted twice")
	}, false},
	{"afterwards, all servers enforce a quota together again", func(o *outcome) string {
		if want := dailyQuota * max(o.fault.days, 1); o.granted > 0 && o.granted != want {
			return fmt.Sprintf("%d requests granted, want %d", o.granted, want)
		}
		return ""
	}, false},
	{"every event is delivered, with a stable ID", func(o *outcome) string { return count(o.lost+o.wrongIDs, "lost or with a wrong ID") }, false},
	{"everything recovers within 5 s, without a restart", func(o *outcome) string {
		switch {
		case o.recovered > maxRecovery:
			return "requests failed for " + seconds(o.recovered)
		case o.visible > max(maxRecovery, o.fault.patience):
			return "the new release took " + seconds(o.visible)
		case o.delivered > maxRecovery:
			return "events took " + seconds(o.delivered)
		}
		return ""
	}, true},
}

func count(n int, what string) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("%d %s", n, what)
}

// printGoals prints which goals are met, and reports whether all that count
// are.
func printGoals(w io.Writer, outcomes []*outcome, timing bool) (met bool) {
	met = true
	for _, g := range goals {
		verdict := "met"
		for _, o := range outcomes {
			if how := g.missed(o); how != "" {
				if verdict == "met" {
					verdict = "MISSED"
				}
				verdict += fmt.Sprintf("; %s: %s", o.fault.name, how)
				met = met && g.timing && !timing
			}
		}
		fmt.Fprintf(w, "- %s: %s\n", g.name, verdict)
	}
	return met
}
