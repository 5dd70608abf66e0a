package main

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
)

// catalogHistory is what clients saw of the catalog during imports, prunes and
// restores. Times are nanoseconds since the history started.
type catalogHistory struct {
	Restores   []restore
	Prunes     []int64 // when each one started
	Reads      []read
	Syncs      []syncRead
	Journal    []event // at the end
	Deliveries []delivery
}

// restore is when a backup replaced the database. Afterwards, the numbers above its
// newest release are used again.
type restore struct {
	Start, End int64
	Newest     int
}

// read is a response about the catalog.
type read struct {
	Client, Server int
	URL            string
	AsOf           int // the requested release, or 0
	Start, End     int64
	Status         int
	Release        int
	ETag, Body     string // a hash of the body
}

// syncRead is one client's read of the whole set of review texts, or of what has
// changed since its last one.
type syncRead struct {
	Client     int
	Start, End int64
	Status     int
	Release    int
	Whole      bool
	Documents  map[string]string // hashes by slug; empty if the document is to be deleted
}

type event struct{ ID, Subject string }

type delivery struct {
	event
	Body string // a hash
}

// check returns what must not have happened.
func (h *catalogHistory) check() (violations []string) {
	add := func(format string, args ...any) { violations = append(violations, fmt.Sprintf(format, args...)) }
	h.checkOrder(add)
	h.checkAsOf(add)
	h.checkTags(add)
	h.checkSyncs(add)
	h.checkDeliveries(add)
	return violations
}

type report func(format string, args ...any)

// checkOrder checks that no client sees a server go back to an earlier release,
// except once after each restore.
func (h *catalogHistory) checkOrder(add report) {
	for _, reads := range h.byClient() {
		backs := 0
		for i, r := range reads[1:] {
			if before := reads[i]; r.Release < before.Release {
				backs++
				if restored := countBefore(h.Restores, r.End); backs > restored {
					add("client %d, server %d: release %d after %d, with %d restores", r.Client, r.Server, r.Release, before.Release, restored)
				}
			}
		}
	}
}

func countBefore(restores []restore, at int64) (n int) {
	for _, r := range restores {
		if r.Start < at {
			n++
		}
	}
	return n
}

// byClient returns the reads of the current release by each client, which waits for
// one before it sends the next.
func (h *catalogHistory) byClient() map[[2]int][]read {
	all := map[[2]int][]read{}
	for _, r := range h.Reads {
		if r.AsOf == 0 && r.Status == http.StatusOK {
			at := [2]int{r.Client, r.Server}
			all[at] = append(all[at], r)
		}
	}
	for _, reads := range all {
		slices.SortFunc(reads, func(a, b read) int { return int(a.Start - b.Start) })
	}
	return all
}

// epochs returns how often the number of a release may have been assigned when a
// response was given: at least once, and once more if a restore may have freed it.
func (h *catalogHistory) epochs(r read) (from, to int) {
	for _, restored := range h.Restores {
		if r.AsOf > restored.Newest && r.End > restored.Start {
			to++
			if r.Start > restored.End+settling {
				from++
			}
		}
	}
	return from, to
}

// settling is how long after a restore a server may take to notice it.
const settling = int64(10e9)

// checkAsOf checks that an earlier release never changes, and does not come back
// once it was pruned.
func (h *catalogHistory) checkAsOf(add report) {
	type key struct {
		url   string
		epoch int
	}
	bodies := map[key]string{}
	for _, r := range h.Reads {
		from, to := h.epochs(r)
		if r.AsOf == 0 || r.Status != http.StatusOK || from != to {
			continue
		}
		k := key{r.URL, from}
		if known, ok := bodies[k]; ok && known != r.Body {
			add("%s: two bodies", r.URL)
		}
		if bodies[k] = r.Body; r.Release != r.AsOf {
			add("%s: release %d", r.URL, r.Release)
		}
	}
}

// checkTags checks that an ETag never names two bodies.
func (h *catalogHistory) checkTags(add report) {
	bodies := map[string]string{}
	for _, r := range h.Reads {
		if r.ETag == "" || r.Status != http.StatusOK {
			continue
		}
		if known, ok := bodies[r.ETag]; ok && known != r.Body {
			add("%s: ETag %s names two bodies", r.URL, r.ETag)
		}
		bodies[r.ETag] = r.Body
	}
}

// checkSyncs checks that clients at the same release have the same documents,
// however they got there, and that no document is sent twice.
func (h *catalogHistory) checkSyncs(add report) {
	type place struct{ release, restores int }
	states, sets := map[int]map[string]string{}, map[place]map[string]string{}
	for _, s := range h.Syncs {
		switch {
		case s.Status == http.StatusGone:
			if len(h.Prunes) == 0 && len(h.Restores) == 0 {
				add("client %d: a token expired although nothing was pruned", s.Client)
			}
			continue
		case s.Status != http.StatusOK:
			continue
		case s.Whole:
			states[s.Client] = map[string]string{}
		}
		state := states[s.Client]
		for slug, hash := range s.Documents {
			if known := state[slug]; known == hash && !s.Whole {
				add("client %d, release %d: %s was sent again", s.Client, s.Release, slug)
			}
			if state[slug] = hash; hash == "" {
				delete(state, slug)
			}
		}
		at := place{s.Release, countBefore(h.Restores, s.Start)}
		if overlaps(h.Restores, s) { // it is unknown which catalog was read
			continue
		}
		if known, ok := sets[at]; ok && !maps.Equal(known, state) {
			add("client %d, release %d: %s", s.Client, s.Release, firstDifference(known, state))
		}
		sets[at] = maps.Clone(state)
	}
}

func overlaps(restores []restore, s syncRead) bool {
	return slices.ContainsFunc(restores, func(r restore) bool { return s.End > r.Start && s.Start < r.End+settling })
}

// firstDifference returns how two sets of documents differ.
func firstDifference(want, got map[string]string) string {
	for slug, hash := range want {
		if got[slug] != hash {
			return slug + " is missing or outdated"
		}
	}
	for slug := range got {
		if _, ok := want[slug]; !ok {
			return slug + " was not deleted"
		}
	}
	return ""
}

// checkDeliveries checks that every event in the journal was delivered, and that
// an ID has one event, and an event one ID.
func (h *catalogHistory) checkDeliveries(add report) {
	bodies, ids := map[string]string{}, map[string]string{}
	for _, d := range h.Deliveries {
		if known, ok := bodies[d.ID]; ok && known != d.Body {
			add("event %s: two bodies", d.ID)
		}
		if known, ok := ids[d.Subject]; ok && known != d.ID {
			add("%s: events %s and %s", d.Subject, known, d.ID)
		}
		bodies[d.ID], ids[d.Subject] = d.Body, d.ID
	}
	for _, e := range h.Journal {
		if _, ok := bodies[e.ID]; !ok {
			add("%s: event %s was not delivered", e.Subject, e.ID)
		}
	}
}
