// Faults breaks the services that palmares depends on, one at a time and under
// load, and reports what readers notice. The setup is real: three servers behind
// nginx, with PostgreSQL and Redis behind proxies, and a webhook receiver, all on
// loopback. It records what clients see, and checks the histories: an order must
// explain every quota decision (quota.go), and releases, review texts and events
// must follow the rules in releases.go. A history that breaks a rule is stored as
// a file, which a test replays.
//
//	make faults
//	make faults SHORT=1
//
// It exits with 1 if a goal is missed, and with 3 if the machine was too slow to
// judge one.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"palmares/internal/dev/check"
	"palmares/internal/dev/load"
	"palmares/internal/dev/testkit"
	"palmares/internal/dev/testkit/blackbox"
)

type options struct {
	short  bool
	only   string
	folder string // for histories that break a rule
}

// verdict is about a goal or a run. A higher one is worse.
type verdict int

const (
	met verdict = iota
	notJudged
	missed
)

func (v verdict) String() string { return []string{"met", "NOT JUDGED", "MISSED"}[v] }

const exitNotJudged = 3

func main() {
	o := options{folder: "test-output"}
	flag.BoolVar(&o.short, "short", false, "run faults of two or three seconds, as in the tests")
	flag.StringVar(&o.only, "only", "", "run only faults whose name contains one of these words, separated by commas")
	flag.Parse()
	result := missed
	testkit.Main("faults", func(t testing.TB) {
		check.MustTrue(t, flag.NArg() == 1, "usage: faults [-short] [-only WORDS] PALMARES")
		blackbox.UseProgram(t, flag.Arg(0))
		if result = run(t, os.Stdout, o); result == missed {
			t.Fatal("a goal is missed")
		}
	})
	if result == notJudged {
		fmt.Fprintln(os.Stderr, "faults: the machine was too slow to judge every goal")
		os.Exit(exitNotJudged)
	}
}

func (o options) wants(f fault) bool {
	return (!o.short || f.short > 0) && slices.ContainsFunc(strings.Split(o.only, ","), func(word string) bool { return strings.Contains(f.name, word) })
}

func (o options) lengthOf(f fault) time.Duration {
	if o.short {
		return f.short
	}
	return f.long
}

// run runs the faults, prints the results, and returns the worst verdict on a goal.
func run(t testing.TB, out io.Writer, o options) verdict {
	outcomes := slices.Concat(sharedFaults(t, o), diskFull(t, o), starved(t, o))
	printTable(out, outcomes)
	printHistories(t, out, outcomes, o.folder)
	return printGoals(out, outcomes)
}

func printTable(w io.Writer, outcomes []*outcome) {
	table := load.NewTable("fault | cached reads | failed | p99 | max | uncached reads | rejected with 503 | failed | p99 | max | " +
		"usage lost / duplicated | granted of 100 per day | events | duplicated | last failure after | new release after | delivered after | machine")
	for _, o := range outcomes {
		granted, machine := fmt.Sprint(o.granted), ""
		if o.granted == 0 {
			granted = ""
		}
		if o.slow {
			machine = "too slow"
		}
		c, u := o.cached, o.uncached
		if o.reads != nil { // not only histories
			table.Add(o.fault.name, c.requests, c.failed, milliseconds(c.p99), milliseconds(c.max),
				u.requests, u.refused, u.failed, milliseconds(u.p99), milliseconds(u.max), fmt.Sprintf("%d / %d", o.lost, o.duplicated), granted,
				o.events, o.repeated, seconds(o.recovered), seconds(o.visible), seconds(o.delivered), machine)
		}
	}
	table.Print(w)
}

// printHistories checks the recorded histories, prints a table, and stores those
// that break a rule.
func printHistories(t testing.TB, w io.Writer, outcomes []*outcome, folder string) {
	table := load.NewTable("history | model | operations | without a response | granted | refused | result")
	add := func(o *outcome, kind string, found []string, broken any, cells ...any) {
		result := "holds"
		if len(found) > 0 {
			result = fmt.Sprintf("%d VIOLATIONS", len(found))
			o.violations = append(o.violations, found...)
			check.OK(t, os.MkdirAll(folder, 0o755))
			file := filepath.Join(folder, fmt.Sprintf("%s-%s.json", kind, time.Now().Format("150405.000")))
			check.OK(t, os.WriteFile(file, check.Try(json.MarshalIndent(broken, "", " ")).OK(t), 0o644))
		}
		table.Add(append(append([]any{kind + ": " + o.fault.name}, cells...), result)...)
	}
	for _, o := range outcomes {
		var found []string
		var broken []*calls
		for _, h := range o.quotas {
			for _, violation := range h.check(patience) {
				subject, _, _ := strings.Cut(violation, ":")
				found, broken = append(found, violation), append(broken, h.only(subject))
			}
		}
		if o.quotas != nil {
			all, unanswered, refused := figures(o.quotas)
			add(o, "quota", found, broken, o.quotas[0].Model, all, unanswered, all-unanswered-refused, refused)
		}
		if h := o.catalog; h != nil {
			rules := fmt.Sprintf("releases, syncs and events; prunes: %d, restores: %d", len(h.Prunes), len(h.Restores))
			add(o, "catalog", h.check(), h, rules, len(h.Reads)+len(h.Syncs)+len(h.Journal), "", "", "")
		}
	}
	table.Print(w)
}

func milliseconds(d time.Duration) string { return fmt.Sprintf("%d ms", d.Milliseconds()) }

func seconds(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }

// maxRecovery is how soon everything must work again.
const maxRecovery = 5 * time.Second

// goals must be met during all faults; missed returns how a goal is missed, or "".
var goals = []struct {
	name   string
	missed func(*outcome) string
	timing bool // not judged if the machine was too slow
}{
	{"cached reads never fail", func(o *outcome) string { return count(o.cached.failed, "failed") }, false},
	{"uncached reads fail only with 503", func(o *outcome) string { return count(o.uncached.failed, "failed otherwise") }, false},
	{"uncached reads fail only while a database is broken", func(o *outcome) string {
		if o.fault.effect == databaseFails {
			return ""
		}
		return count(o.uncached.refused, "failed")
	}, true},
	{"counts are exact, except for what a kill may lose", func(o *outcome) string {
		return count(max(0, o.lost-o.mayLose), "not recorded") + count(o.duplicated, "counted twice")
	}, false},
	{"histories follow their rules", func(o *outcome) string { return strings.Join(o.violations, ", ") }, false},
	{"Redis responds in time unless it is broken", func(o *outcome) string {
		if !o.inexact {
			return ""
		}
		return "servers counted by themselves, so that the exact model does not apply"
	}, true},
	{"afterwards, all servers enforce a quota together again", func(o *outcome) string {
		if o.granted == 0 || o.granted == dailyQuota {
			return ""
		}
		return fmt.Sprintf("%d requests granted, want %d", o.granted, dailyQuota)
	}, true},
	{"everything recovers within 5 s, without a restart", func(o *outcome) string {
		switch {
		case o.recovered > maxRecovery:
			return "requests failed for " + seconds(o.recovered)
		case o.visible > max(maxRecovery, o.patience):
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

// printGoals prints which goals are met, and returns the worst verdict.
func printGoals(w io.Writer, outcomes []*outcome) (worst verdict) {
	for _, g := range goals {
		result, reasons := met, ""
		for _, o := range outcomes {
			if how := g.missed(o); how != "" {
				reasons += fmt.Sprintf("; %s: %s", o.fault.name, how)
				if g.timing && o.slow {
					result = max(result, notJudged)
				} else {
					result = missed
				}
			}
		}
		fmt.Fprintf(w, "- %s: %s%s\n", g.name, result, reasons)
		worst = max(worst, result)
	}
	return worst
}
