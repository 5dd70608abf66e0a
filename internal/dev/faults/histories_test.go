package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"palmares/internal/dev/check"
)

// violations are what stored histories break. Each was recorded with a server whose code was
// broken on purpose.
var violations = map[string]string{
	// The refund of a 304 was lost.
	"bad-quota-lost-refund.json": "key",
	// A server returned to the previous release for 300 ms after it had loaded a new one.
	"bad-catalog-release-goes-back.json": "release 1 after 2, with 0 restores",
	// A sync from the release before the newest one returned nothing.
	"bad-catalog-skipped-document.json": "is missing or outdated",
}

// Stored histories are replayed: those in violations must break their rule, and no others.
func TestStoredHistories(t *testing.T) {
	files := check.Try(filepath.Glob("testdata/*.json")).OK(t)
	check.MustTrue(t, len(files) >= len(violations), "got the histories %q, want at least %d", files, len(violations))
	for _, file := range files {
		name := filepath.Base(file)
		t.Run(name, func(t *testing.T) {
			data := check.Try(os.ReadFile(file)).OK(t)
			var found []string
			if strings.Contains(name, "quota") {
				var histories []*calls
				check.OK(t, json.Unmarshal(data, &histories))
				for _, h := range histories {
					found = append(found, h.check(time.Minute)...)
				}
			} else {
				var h catalogHistory
				check.OK(t, json.Unmarshal(data, &h))
				found = h.check()
			}
			want := violations[name]
			check.True(t, (want == "") == (len(found) == 0) && strings.Contains(strings.Join(found, "; "), want), "got %q, want %q", found, want)
		})
	}
}

const second = int64(time.Second)

// history returns calls that follow one another on alternating servers.
func history(model string, limit int, statuses ...int) *calls {
	h := &calls{Model: model, Limit: limit, Fault: 2 * second}
	for i, status := range statuses {
		h.Calls = append(h.Calls, call{Subject: "a", Server: i % 2, Start: int64(i) * second, End: int64(i)*second + 1, Status: status, Remaining: unstated})
	}
	return h
}

func TestQuotaModels(t *testing.T) {
	with := func(h *calls, change func(all []call)) *calls {
		change(h.Calls)
		return h
	}
	matching := func(at int) func([]call) {
		return func(all []call) { all[at].Status, all[at].Matches = 304, true }
	}
	for name, c := range map[string]struct {
		h  *calls
		ok bool
	}{
		"the limit":                       {history("exact", 2, 200, 200, 429), true},
		"one too many":                    {history("exact", 2, 200, 200, 200), false},
		"refused too early":               {history("exact", 2, 200, 429), false},
		"granted after it was used up":    {history("exact", 2, 200, 200, 429, 200), false},
		"a 304 is uncounted":              {with(history("exact", 2, 200, 304, 200, 429), matching(1)), true},
		"a 304 that stays counted":        {with(history("exact", 2, 200, 304, 429), matching(1)), false},
		"no response, counted":            {history("exact", 2, 200, 0, 429), true},
		"no response, not counted":        {history("exact", 2, 200, 0, 200, 429), true},
		"no response, counted twice":      {history("exact", 3, 200, 0, 429), false},
		"what remains":                    {with(history("exact", 5, 200, 200), func(all []call) { all[1].Remaining = 3 }), true},
		"what remains, wrong":             {with(history("exact", 5, 200, 200), func(all []call) { all[1].Remaining = 4 }), false},
		"at the same time":                {with(history("exact", 1, 429, 200), func(all []call) { all[0].End = 2 * second }), true},
		"each server grants the rest":     {history("outage", 3, 200, 200, 200, 200, 429, 429), true},
		"a server grants more":            {history("outage", 3, 200, 200, 200, 200, 200, 200), false},
		"before the outage, one too many": {history("outage", 1, 200, 200), false},
		"an outage, refused too early":    {history("outage", 5, 200, 200, 200, 429), false},
		"an outage, granted afterwards":   {with(history("outage", 3, 200, 200, 200, 429, 200), func(all []call) { all[4].Server = 1 }), false},
	} {
		found := c.h.check(time.Minute)
		check.True(t, (len(found) == 0) == c.ok, "%s: got %q, want no violation: %v", name, found, c.ok)
	}
}

func TestCatalogRules(t *testing.T) {
	good := func() *catalogHistory {
		at := func(release int, start int64) read {
			return read{URL: "/stats", Start: start, End: start + 1, Status: 200, Release: release, ETag: string(rune('a' + release)), Body: string(rune('A' + release))}
		}
		early, late := at(1, 3), at(1, 6)
		early.AsOf, early.URL, late.AsOf, late.URL = 1, "/stats?as_of=1", 1, "/stats?as_of=1"
		return &catalogHistory{
			Reads: []read{at(1, 0), at(2, 2), early, at(2, 4), late, at(3, 8)},
			Syncs: []syncRead{
				{Client: 1, Status: 200, Release: 1, Whole: true, Documents: map[string]string{"a": "1", "b": "1"}},
				{Client: 1, Status: 200, Release: 2, Documents: map[string]string{"a": "2", "b": ""}},
				{Client: 2, Status: 200, Release: 2, Whole: true, Documents: map[string]string{"a": "2"}},
			},
			Journal:    []event{{"e1", "x"}, {"e2", "y"}},
			Deliveries: []delivery{{event{"e1", "x"}, "1"}, {event{"e2", "y"}, "2"}, {event{"e1", "x"}, "1"}},
		}
	}
	for name, spoil := range map[string]func(h *catalogHistory){
		"release 1 after 3":        func(h *catalogHistory) { h.Reads[5].Release, h.Reads[3].Release = 1, 3 },
		"two bodies":               func(h *catalogHistory) { h.Reads[4].Body, h.Reads[4].ETag = "Z", "z" },
		"/stats: two bodies":       func(h *catalogHistory) { h.Reads[3].Body, h.Reads[3].ETag = "Z", "z" },
		"as_of=1: release 2":       func(h *catalogHistory) { h.Reads[4].Release = 2 },
		"names two bodies":         func(h *catalogHistory) { h.Reads[1].Body = "Z" },
		"a is missing or outdated": func(h *catalogHistory) { delete(h.Syncs[1].Documents, "a") },
		"b is missing or outdated": func(h *catalogHistory) { delete(h.Syncs[1].Documents, "b") },
		"c was sent again":         func(h *catalogHistory) { h.Syncs[1].Documents["c"] = "" },
		"a token expired":          func(h *catalogHistory) { h.Syncs[1].Status = 410 },
		"was not delivered":        func(h *catalogHistory) { h.Deliveries = h.Deliveries[:1] },
		"event e1: two bodies":     func(h *catalogHistory) { h.Deliveries[2].Body = "9" },
		"x: events e1 and e3":      func(h *catalogHistory) { h.Deliveries[2].ID = "e3" },
	} {
		h := good()
		found := h.check()
		check.MustTrue(t, len(found) == 0, "got %q, want no violation", found)
		spoil(h)
		if found := h.check(); len(found) == 0 || !strings.Contains(strings.Join(found, "; "), name) {
			t.Errorf("%s: got %q, want it", name, found)
		}
	}
	restored := good()
	restored.Restores = []restore{{Start: 5, End: 7, Newest: 1}}
	restored.Reads[5].Release, restored.Reads[5].ETag, restored.Reads[5].Body = 1, restored.Reads[0].ETag, restored.Reads[0].Body
	found := restored.check()
	check.True(t, len(found) == 0, "a restore: got %q, want the earlier release once", found)
}
