package main

import (
	"fmt"
	"io"
	"time"
)

// recovery is how soon all must be well again.
const recovery = 5 * time.Second

// goal is what must hold whatever is broken.
type goal struct {
	what   string
	missed func(*outcome) string // how, or ""
	timed  bool                  // depends on how busy the machine is
}

var goals = []goal{
	{"cached reads never fail", func(o *outcome) string { return number(o.cached.failed, "failed") }, false},
	{"no answer mixes releases", func(o *outcome) string { return number(o.mixed, "did") }, false},
	{"no server shows an older release after a newer one", func(o *outcome) string { return number(o.older, "answers did") }, false},
	{"nothing fails where a database is not broken; else uncached reads are refused with 503", func(o *outcome) string {
		if o.fault.noFailure {
			return number(o.cached.failed+o.uncached.failed+o.uncached.told, "failed")
		}
		return number(o.uncached.failed, "failed otherwise")
	}, false},
	{"counts are exact, but for what a kill or an empty Redis may forget", func(o *outcome) string {
		switch {
		case o.lostUsage > o.mayForget:
			return number(o.lostUsage, "not written down")
		case o.lostIn > o.fault.lostRedis:
			return number(o.lostIn, "unknown to Redis")
		}
		return number(o.moreUsage+o.moreIn, "counted twice")
	}, false},
	{"a limit holds again afterwards, for all servers together", func(o *outcome) string {
		if due := daily * max(o.fault.days, 1); o.granted > 0 && o.granted != due {
			return fmt.Sprintf("%d granted of %d", o.granted, due)
		}
		return ""
	}, false},
	{"every event is delivered, and has one id", func(o *outcome) string { return number(o.lost+o.wrong, "lost or misnamed") }, false},
	{"all is well within 5 s, without a restart", func(o *outcome) string {
		switch {
		case o.recovered > recovery:
			return "requests failed for " + seconds(o.recovered)
		case o.news > recovery:
			return "news took " + seconds(o.news)
		case o.posted > recovery:
			return "events took " + seconds(o.posted)
		}
		return ""
	}, true},
}

func number(n int, what string) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("%d %s", n, what)
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }

// printGoals prints which goals are met, and returns whether all are. Times are
// printed even where they are not judged.
func printGoals(w io.Writer, all []*outcome, judgeTimes bool) (met bool) {
	met = true
	fmt.Fprintln(w)
	for _, g := range goals {
		verdict := "met"
		for _, o := range all {
			if how := g.missed(o); how != "" {
				if verdict == "met" {
					verdict = "NOT MET"
				}
				verdict += fmt.Sprintf("; %s: %s", o.fault.name, how)
				met = met && g.timed && !judgeTimes
			}
		}
		fmt.Fprintf(w, "- %s: %s\n", g.what, verdict)
	}
	return met
}
