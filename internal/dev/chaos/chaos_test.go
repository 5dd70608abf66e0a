package main

import (
	"io"
	"strings"
	"testing"
	"time"

	"palmares/internal/core/store"
	"palmares/internal/dev/testkit/blackbox"
)

// The short form of what make chaos does: every goal is met, whatever breaks.
// How soon, only make chaos judges: the machine is busy with other tests.
func TestChaos(t *testing.T) {
	var said strings.Builder
	met, err := run(t.Context(), &said, blackbox.Shipped(t, store.Config{}).Path, t.TempDir(), wants{short: true, untimed: true})
	t.Log("\n" + said.String())
	if err != nil {
		t.Fatal(err)
	}
	if !met {
		t.Error("a goal is not met")
	}
}

// The judge sees what it is there for.
func TestMixesAreSeen(t *testing.T) {
	for _, c := range []struct {
		name, header, body string
		edition            int
		mixed              bool
	}{
		{"one", editionDate(7), `{"tagline":"Outil, édition 7.","updated_at":"` + editionDate(7) + `"}`, 7, false},
		{"two lines", "", `["Outil, édition 7.","Outil, édition 8."]`, 7, true},
		{"the header", editionDate(8), `["Outil, édition 7."]`, 8, true},
		{"a date", "", `{"title":"Duel, édition 7.","updatedAt":"` + editionDate(6) + `"}`, 7, true},
		{"a mean", editionDate(7), `{"tools_avg_score":1.8}`, 7, true},
		{"its mean", editionDate(7), `{"tools_avg_score":1.7}`, 7, false},
		{"none", "", `{"errors":[]}`, -1, false},
	} {
		edition, err := editionOf(c.header, []byte(c.body))
		if edition != c.edition || (err != nil) != c.mixed {
			t.Errorf("%s: edition %d, %v", c.name, edition, err)
		}
	}
}

// What a killed server may forget is half a second of its own.
func TestForgotten(t *testing.T) {
	at := time.Now()
	answer := func(server string, before time.Duration, keyed bool) *sample {
		return &sample{question: &question{keyed: keyed}, server: server, status: 200, at: at.Add(-before)}
	}
	o := &outcome{samples: []*sample{
		answer("a", 100*time.Millisecond, true), answer("a", 499*time.Millisecond, true),
		answer("a", 600*time.Millisecond, true), answer("a", -time.Second, true), answer("b", 0, true), answer("a", 0, false),
	}}
	if n := (killing{"a", at}).forgets(o); n != 2 {
		t.Errorf("%d may be forgotten, not 2", n)
	}
	o.cached.p99 = 200 * time.Millisecond
	if n := (killing{"a", at}).forgets(o); n != 3 {
		t.Errorf("%d may be forgotten by a slow machine, not 3", n)
	}
}

// A goal that is missed is told, with the fault.
func TestGoals(t *testing.T) {
	well := func() *outcome {
		return &outcome{fault: fault{name: "a fault", lostRedis: 2}, mayForget: 2, granted: daily}
	}
	for name, spoil := range map[string]func(*outcome){
		"cached reads never fail":  func(o *outcome) { o.cached.failed = 1 },
		"no answer mixes releases": func(o *outcome) { o.mixed = 1 },
		"no server shows an older": func(o *outcome) { o.older = 1 },
		"refused with 503":         func(o *outcome) { o.uncached.failed = 1 },
		"counts are exact":         func(o *outcome) { o.lostIn = 3 },
		"a limit holds again":      func(o *outcome) { o.granted = daily + 1 },
		"every event is delivered": func(o *outcome) { o.wrong = 1 },
		"all is well within 5 s":   func(o *outcome) { o.posted = 6 * time.Second },
	} {
		bad := well()
		spoil(bad)
		var said strings.Builder
		if printGoals(&said, []*outcome{well(), bad}, true) {
			t.Errorf("%s: all is met", name)
		}
		if timed := bad.posted > recovery; printGoals(io.Discard, []*outcome{well(), bad}, false) != timed {
			t.Errorf("%s: got %v where times are not judged, want %v", name, !timed, timed)
		}
		for line := range strings.Lines(said.String()) {
			if strings.Contains(line, name) != strings.Contains(line, "NOT MET; a fault: ") && line != "\n" {
				t.Errorf("%s: %s", name, line)
			}
		}
	}
	var said strings.Builder
	if !printGoals(&said, []*outcome{well()}, true) {
		t.Error(said.String())
	}
}
