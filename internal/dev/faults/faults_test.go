package main

import (
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
	"palmares/internal/dev/testkit/repo"
)

// The short form of make faults. A busy machine may be too slow for some goals, but
// not for those that no delay excuses.
func TestFaults(t *testing.T) {
	testkit.FullTier(t, "it breaks services for minutes")
	var out strings.Builder
	result := run(t, &out, options{short: true, folder: filepath.Join(repo.Root(t), "test-output")})
	t.Log("\n" + out.String())
	switch result {
	case missed:
		t.Error("a goal is missed")
	case notJudged:
		testkit.SkipUnsupported(t, "the machine was too slow to judge every goal")
	}
}

// A killed server may lose the requests of half a second.
func TestLostByKill(t *testing.T) {
	const at = int64(10 * time.Second)
	response := func(server int, before time.Duration, key keyKind) read {
		return read{query: &query{key: key}, Server: server, End: at - int64(before)}
	}
	o := &outcome{reads: []read{
		response(1, 100*time.Millisecond, counted), response(1, 499*time.Millisecond, counted),
		response(1, 600*time.Millisecond, counted), response(1, -time.Second, counted), response(2, 0, counted), response(1, 0, anonymous),
	}}
	check.Equal(t, o.lostByKill(1, at), 2)
	o.cached.p99 = 200 * time.Millisecond
	check.Equal(t, o.lostByKill(1, at), 3, "on a slow machine")
}

func TestRequestsOfAllDays(t *testing.T) {
	const shown = "pro@example.com\nplan      pro\nrequests  5 today (daily quota: unlimited)\n\nday         requests\n2026-09-01  5\n2026-08-31  142\n"
	check.Equal(t, requestsIn(shown), 147)
}

func TestGoals(t *testing.T) {
	good := func() *outcome {
		return &outcome{fault: fault{name: "a fault"}, mayLose: 2, granted: dailyQuota}
	}
	for name, spoil := range map[string]func(*outcome){
		"cached reads never fail":    func(o *outcome) { o.cached.failed = 1 },
		"only with 503":              func(o *outcome) { o.uncached.failed = 1 },
		"only while a database":      func(o *outcome) { o.uncached.refused = 1 },
		"counts are exact":           func(o *outcome) { o.lost = 3 },
		"histories follow":           func(o *outcome) { o.violations = []string{"one"} },
		"Redis responds in time":     func(o *outcome) { o.inexact = true },
		"enforce a quota together":   func(o *outcome) { o.granted = dailyQuota + 1 },
		"everything recovers within": func(o *outcome) { o.delivered = 6 * time.Second },
	} {
		for _, slow := range []bool{false, true} {
			bad := good()
			bad.slow = slow
			spoil(bad)
			var out strings.Builder
			got, want := printGoals(&out, []*outcome{good(), bad}), missed
			if slow && slices.Contains([]string{"only while a database", "Redis responds in time", "enforce a quota together", "everything recovers within"}, name) {
				want = notJudged
			}
			check.Equal(t, got, want, "%s, slow: %v", name, slow)
			for line := range strings.Lines(out.String()) {
				check.Equal(t, strings.Contains(line, name), strings.Contains(line, want.String()+"; a fault: "), "%s: %s", name, line)
			}
		}
	}
	check.Equal(t, printGoals(io.Discard, []*outcome{good()}), met, "the goals of a good outcome")
}
