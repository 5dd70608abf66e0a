package main

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"
)

// catalogHistory is what clients saw of the catalog during faults, imports, prunes and
// restores. Times are nanoseconds since the history started.
type catalogHistory struct {
	Restores   []restore
	Prunes     []int64 // when each one started
	Reads      []read
	Syncs      []syncRead
	Journal    []event
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
	Server     int
	URL        string // without what makes it unique
	AsOf       int    // the requested release, or 0
	Start, End int64
	Status     int // 0 without a response
	Release    int
	ETag, Body string // a hash of the body

	query   *query
	late    time.Duration // how late it was sent, which is due to this machine
	tries   int           // servers that nginx tried
	failure string
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

type report func(format string, args ...any)

// check returns what must not have happened.
func (h *catalogHistory) check() (violations []string) {
	add := func(format string, args ...any) { violations = append(violations, fmt.Sprintf(format, args...)) }
	byServer := map[int][]read{}
	var successful []read
	for _, r := range h.Reads {
		if r.Status == http.StatusOK {
			successful = append(successful, r)
			byServer[r.Server] = append(byServer[r.Server], r)
		}
	}
	for _, server := range slices.Sorted(maps.Keys(byServer)) {
		h.checkOrder(server, byServer[server], add)
	}
	h.checkBodies(successful, add)
	h.checkSyncs(add)
	h.checkDeliveries(add)
	return violations
}

// checkOrder checks that no server goes back to an earlier release, except once after each
// restore: a response must not be older than one that ended before its request was sent.
func (h *catalogHistory) checkOrder(server int, reads []read, add report) {
	reads = slices.DeleteFunc(reads, func(r read) bool { return r.AsOf != 0 })
	slices.SortFunc(reads, func(a, b read) int { return cmp.Compare(a.Start, b.Start) })
	ended := slices.SortedFunc(slices.Values(reads), func(a, b read) int { return cmp.Compare(a.End, b.End) })
	newest, backs, since := 0, 0, int64(0)
	for _, r := range reads {
		for ; len(ended) > 0 && ended[0].End < r.Start; ended = ended[1:] {
			if ended[0].Start >= since {
				newest = max(newest, ended[0].Release)
			}
		}
		if r.Release < newest {
			backs++
			if restored := countBefore(h.Restores, r.End); backs > restored {
				add("server %d: release %d after %d, with %d restores", server, r.Release, newest, restored)
			}
			newest, since = r.Release, r.End
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

// epochs returns how often the number of a release may have been assigned when a
// response was given: at least once, and once more if a restore may have freed it.
func (h *catalogHistory) epochs(r read) (from, to int) {
	for _, restored := range h.Restores {
		if r.Release > restored.Newest && r.End > restored.Start {
			to++
			if r.Start > restored.End+settling {
				from++
			}
		}
	}
	return from, to
}

// settling is how long after a restore a server may take to notice it.
const settling = int64(10 * time.Second)

// checkBodies checks that all responses of one kind and release have the same body, so
// that none mixes releases and earlier ones never change, that as_of returns the release
// that it names, and that an ETag never names two bodies.
func (h *catalogHistory) checkBodies(reads []read, add report) {
	type key struct {
		url            string
		release, epoch int
	}
	bodies, tagged := map[key]string{}, map[string]string{}
	for _, r := range reads {
		if r.AsOf != 0 && r.Release != r.AsOf {
			add("%s: release %d", r.URL, r.Release)
		}
		if from, to := h.epochs(r); from == to {
			k := key{r.URL, r.Release, from}
			if known, ok := bodies[k]; ok && known != r.Body {
				add("%s: two bodies in release %d", r.URL, r.Release)
			}
			bodies[k] = r.Body
		}
		if known, ok := tagged[r.ETag]; ok && known != r.Body && r.ETag != "" {
			add("%s: ETag %s names two bodies", r.URL, r.ETag)
		}
		tagged[r.ETag] = r.Body
	}
}

// checkSyncs checks that clients at the same release have the same documents,
// however they got there, and that no document is sent twice.
func (h *catalogHistory) checkSyncs(add report) {
	type place struct{ release, restores int }
	states, sets := map[int]map[string]string{}, map[place]map[string]string{}
	for _, s := range h.Syncs {
		if s.Status == http.StatusGone && len(h.Prunes)+len(h.Restores) == 0 {
			add("client %d: a token expired although nothing was pruned", s.Client)
		}
		if s.Status != http.StatusOK {
			continue
		}
		if s.Whole {
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
		if slices.ContainsFunc(h.Restores, func(r restore) bool { return s.End > r.Start && s.Start < r.End+settling }) {
			continue // it is unknown which catalog was read
		}
		at := place{s.Release, countBefore(h.Restores, s.Start)}
		if known, ok := sets[at]; ok && !maps.Equal(known, state) {
			add("client %d, release %d: %s", s.Client, s.Release, firstDifference(known, state))
		}
		sets[at] = maps.Clone(state)
	}
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
