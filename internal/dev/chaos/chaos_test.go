package main

import (
	"io"
	"strings"
	"testing"
	"time"

	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
)

// The short form of make chaos. Goals about time may be missed here: the machine
// is busy with other tests.
func TestChaos(t *testing.T) {
	testkit.FullTier(t, "it breaks services for minutes")
	var out strings.Builder
	met := run(t, &out, options{short: true, ignoreTiming: true})
	t.Log("\n" + out.String())
	if !met {
		t.Error("a goal is missed")
	}
}

func TestEditionOf(t *testing.T) {
	for _, c := range []struct {
		name, header, body string
		edition            int
		mixed              bool
	}{
		{"one edition", editionDate(7), `{"tagline":"Outil, édition 7.","updated_at":"` + editionDate(7) + `"}`, 7, false},
		{"two marks", "", `["Outil, édition 7.","Outil, édition 8."]`, 7, true},
		{"another header", editionDate(8), `["Outil, édition 7."]`, 8, true},
		{"another date", "", `{"title":"Duel, édition 7.","updatedAt":"` + editionDate(6) + `"}`, 7, true},
		{"another average", editionDate(7), `{"tools_avg_score":1.8}`, 7, true},
		{"its own average", editionDate(7), `{"tools_avg_score":1.7}`, 7, false},
		{"no edition", "", `{"errors":[]}`, noEdition, false},
	} {
		edition, err := editionOf(c.header, []byte(c.body))
		check.Equal(t, edition, c.edition, "%s: %v", c.name, err)
		check.Equal(t, (err != nil), c.mixed, "%s: %v", c.name, err)
	}
}

// A killed server may lose the requests of half a second.
func TestMayLose(t *testing.T) {
	at := time.Now()
	response := func(server string, before time.Duration, keyed bool) *sample {
		return &sample{query: &query{keyed: keyed}, server: server, status: 200, at: at.Add(-before)}
	}
	o := &outcome{samples: []*sample{
		response("a", 100*time.Millisecond, true), response("a", 499*time.Millisecond, true),
		response("a", 600*time.Millisecond, true), response("a", -time.Second, true), response("b", 0, true), response("a", 0, false),
	}}
	check.Equal(t, (kill{"a", at}).mayLose(o), 2)
	o.cached.p99 = 200 * time.Millisecond
	check.Equal(t, (kill{"a", at}).mayLose(o), 3, "on a slow machine")
}

func TestRequestsOfAllDays(t *testing.T) {
	const shown = "pro@example.com\nplan      pro\nrequests  5 today (daily quota: unlimited)\n\nday         requests\n2026-09-01  5\n2026-08-31  142\n"
	check.Equal(t, requestsIn(shown), 147)
}

func TestGoals(t *testing.T) {
	good := func() *outcome {
		return &outcome{fault: fault{name: "a fault"}, redisMayLose: 2, mayLose: 2, granted: dailyQuota}
	}
	for name, spoil := range map[string]func(*outcome){
		"cached reads never fail":    func(o *outcome) { o.cached.failed = 1 },
		"no response mixes":          func(o *outcome) { o.mixed = 1 },
		"no server goes back":        func(o *outcome) { o.older = 1 },
		"and then with 503":          func(o *outcome) { o.uncached.failed = 1 },
		"counts are exact":           func(o *outcome) { o.redis.lost = 3 },
		"enforce a quota together":   func(o *outcome) { o.granted = dailyQuota + 1 },
		"every event is delivered":   func(o *outcome) { o.wrongIDs = 1 },
		"everything recovers within": func(o *outcome) { o.delivered = 6 * time.Second },
	} {
		bad := good()
		spoil(bad)
		var out strings.Builder
		if printGoals(&out, []*outcome{good(), bad}, true) {
			t.Errorf("%s: got all goals met, want one missed", name)
		}
		if timing := bad.delivered > maxRecovery; printGoals(io.Discard, []*outcome{good(), bad}, false) != timing {
			t.Errorf("%s: got %v without timing, want %v", name, !timing, timing)
		}
		for line := range strings.Lines(out.String()) {
			check.Equal(t, strings.Contains(line, name), strings.Contains(line, "MISSED; a fault: "), "%s: %s", name, line)
		}
	}
	var out strings.Builder
	if !printGoals(&out, []*outcome{good()}, true) {
		t.Errorf("got %s, want all goals met", &out)
	}
}
