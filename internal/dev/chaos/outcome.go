package main

import (
	"fmt"
	"os"
	"slices"
	"time"
)

// outcome is what came of a fault.
type outcome struct {
	fault         fault
	note          string // what to say of it instead of figures
	began, mended time.Time
	refused       int // imports that had to be tried again
	samples       []*sample

	cached, uncached  figures
	mixed, older      int
	recovered         time.Duration // after it was mended, until the last request that failed
	news              time.Duration // until every server showed what was published
	posted            time.Duration // until every event had arrived
	events            int
	lost, doubled     int // events
	wrong             int // ids that were not one event's own
	lostUsage, lostIn int // requests that the ledger and Redis do not know of
	mayForget         int // of them by the ledger
	moreUsage, moreIn int // requests that they counted twice
	granted           int // of 100, after it; 0 where it was not tried
}

// figures are about the requests of one sort.
type figures struct {
	asked, failed, told int
	p99, worst          time.Duration
}

func (f *figures) add(samples []*sample) {
	var took []time.Duration
	for _, s := range samples {
		f.asked++
		switch {
		case s.told():
			f.told++
		case s.failure != "":
			f.failed++
		}
		took = append(took, s.took)
	}
	slices.Sort(took)
	if len(took) > 0 {
		f.p99, f.worst = took[len(took)*99/100], took[len(took)-1]
	}
}

// take works the samples of a fault up.
func (o *outcome) take(samples []*sample) {
	o.samples = samples
	var cached, uncached []*sample
	shown := map[string]int{}
	for _, s := range samples {
		if s.question.cached {
			cached = append(cached, s)
		} else {
			uncached = append(uncached, s)
		}
		if s.mixed != "" {
			o.mixed++
			s.failure = s.mixed
		}
		if s.older {
			o.older++
			s.failure = "an older release than before"
		}
		if s.failure != "" {
			o.recovered = max(o.recovered, s.at.Sub(o.mended))
			kind := fmt.Sprintf("%s: %.60s", s.question.name, s.failure)
			if shown[kind]++; shown[kind] == 1 && !s.told() {
				fmt.Fprintf(os.Stderr, "  %+.2fs, %s\n", s.at.Sub(o.mended).Seconds(), kind)
			}
		}
	}
	o.cached.add(cached)
	o.uncached.add(uncached)
}

// count compares what was counted with what was answered.
func (o *outcome) count(grown counts, answered, unsure int, shared bool) {
	o.lostUsage, o.moreUsage = max(0, answered-grown.usage), max(0, grown.usage-answered-unsure)
	if shared {
		o.lostIn, o.moreIn = max(0, answered-grown.redis), max(0, grown.redis-answered-unsure)
	}
}
