package main

import (
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gomodule/redigo/redis"

	"palmares/auth"
	"palmares/internal/dev/check"
	"palmares/internal/dev/load"
	"palmares/internal/dev/testkit"
	"palmares/internal/dev/testkit/blackbox"
)

// outcome is the result of a fault.
type outcome struct {
	fault   fault
	note    string // shown instead of figures
	cleared time.Time
	samples []*sample

	cached, uncached readFigures
	mixed, older     int
	recovered        time.Duration // from the repair to the last failed request
	visible          time.Duration // from the import until every server shows it
	delivered        time.Duration // from the import until all events have arrived
	events           int
	lost, duplicated int        // events
	usage, redis     difference // of recorded requests
	mayLose          int        // requests that a killed server had not recorded yet
	redisMayLose     int        // requests in flight during an outage of Redis
	granted          int        // of 100 afterwards; 0 if not tested
	slow             bool       // the machine, so that goals about time are not judged
	inexact          bool       // servers counted by themselves although Redis worked
	quotas           []*calls
	catalog          *catalogHistory
	violations       []string
}

// readFigures are about cached or uncached reads.
type readFigures struct {
	requests, failed, refused int
	p99, max                  time.Duration
}

// difference is between requests counted and requests sent.
type difference struct{ lost, duplicated int }

// add evaluates the samples of a fault.
func (o *outcome) add(samples []*sample) {
	o.samples = samples
	printed := map[string]bool{}
	times, late := map[*readFigures][]time.Duration{}, []time.Duration{}
	for _, s := range samples {
		late = append(late, s.late)
		f := &o.uncached
		if s.query.cached {
			f = &o.cached
		}
		f.requests++
		times[f] = append(times[f], s.took)
		if s.mixed {
			o.mixed++
		}
		if s.older {
			o.older++
		}
		if s.failure == "" {
			continue
		}
		o.recovered = max(o.recovered, s.at.Sub(o.cleared))
		if s.refused() {
			f.refused++
			continue
		}
		f.failed++
		if failure := fmt.Sprintf("%s: %.60s", s.query.name, s.failure); !printed[failure] {
			printed[failure] = true
			fmt.Fprintf(os.Stderr, "  %+.2fs, %s\n", s.at.Sub(o.cleared).Seconds(), failure)
		}
	}
	for f, took := range times {
		f.p99, f.max = percentile99(took), took[len(took)-1]
	}
	o.slow = o.slow || percentile99(late) > maxLate
}

// maxLate is how late a request may be sent because the machine is busy. Servers get
// no more of the machine than the load does.
const maxLate = 20 * time.Millisecond

// percentile99 sorts durations and returns their 99th percentile.
func percentile99(all []time.Duration) time.Duration {
	slices.Sort(all)
	return all[len(all)*99/100]
}

// counts are the recorded requests of the key.
type counts struct{ usage, redis int }

func (s *system) counts() (c counts) {
	c.usage = requestsIn(blackbox.MustRun(s.t, blackbox.Command(s.t, s.cfg, "accounts", "show", load.Owner)).Out)
	if s.redis == nil {
		return c
	}
	client := check.Try(redis.DialURL(s.redis.URL)).OK(s.t)
	defer client.Close()
	db := testkit.Open(s.t, s.cfg)
	account := check.Try(auth.NewAccounts(db).Find(s.t.Context(), load.Owner)).OK(s.t)
	keys := check.Try(redis.Strings(client.Do("KEYS", fmt.Sprintf("palmares:tally:*:%x", uint64(auth.Subject(account)))))).OK(s.t)
	for _, key := range keys { // one for each day
		tally := check.Try(redis.IntMap(client.Do("HGETALL", key))).OK(s.t)
		c.redis += tally["granted"] - tally["refunded"]
	}
	return c
}

// requestsIn returns the requests of all days in what accounts show prints. A run may
// pass midnight.
func requestsIn(shown string) (n int) {
	for line := range strings.Lines(shown) {
		var year, month, day, requests int
		if found, _ := fmt.Sscanf(line, "%d-%d-%d %d", &year, &month, &day, &requests); found == 4 {
			n += requests
		}
	}
	return n
}

// compareCounts compares the requests counted since before with those sent, and
// then tests the quota.
func (s *system) compareCounts(o *outcome, before counts) {
	responded, unsure := keyedRequests(o.samples)
	var grown counts
	for deadline := time.Now().Add(15 * time.Second); time.Now().Before(deadline); time.Sleep(250 * time.Millisecond) {
		now := s.counts()
		grown = counts{now.usage - before.usage, now.redis - before.redis}
		if grown.usage >= responded && (s.redis == nil || grown.redis >= responded) {
			break
		}
	}
	compare := func(counted int) difference {
		return difference{lost: max(0, responded-counted), duplicated: max(0, counted-responded-unsure)}
	}
	o.usage, o.mayLose = compare(grown.usage), s.killed.mayLose(o)
	if s.redis != nil {
		o.redis, o.granted = compare(grown.redis), s.testQuota()
	}
}

// keyedRequests returns how many requests with the key got a response, and so were
// counted, and how many others may have been counted: those without a response,
// or tried on another server before.
func keyedRequests(samples []*sample) (responded, unsure int) {
	for _, s := range samples {
		if !s.query.keyed {
			continue
		}
		unsure += s.tries - 1
		switch s.status {
		case 0, http.StatusBadGateway, http.StatusGatewayTimeout: // nginx's own
			unsure++
		default:
			responded++
		}
	}
	return responded, unsure
}

// kill is when a server was killed.
type kill struct {
	server string
	at     time.Time
}

// writeInterval is how often servers record their counts.
const writeInterval = 500 * time.Millisecond

// mayLose returns how many responses a killed server may have sent without
// recording the request. A slow machine is also slow to record it.
func (k kill) mayLose(o *outcome) (n int) {
	since := k.at.Add(-writeInterval - o.cached.p99)
	for _, s := range o.samples {
		if responded := s.at.Add(s.took); s.query.keyed && s.server == k.server && responded.After(since) && !responded.After(k.at.Add(o.cached.p99)) {
			n++
		}
	}
	return n
}

// testQuota exceeds the quota of an address on all servers at once, and returns
// how many requests were granted. If the machine is too busy for Redis to respond
// in time, servers count locally, so it tries up to three times.
func (s *system) testQuota() int {
	for try := 1; ; try++ {
		address := clientAddress(1<<21 + requestNumber.Add(1))
		var granted atomic.Int64
		var clients sync.WaitGroup
		for range 12 {
			clients.Go(func() {
				for range dailyQuota / 10 {
					if code, _ := status(s.base+"/api/v1/stats", "", "X-Forwarded-For", address); code == http.StatusOK {
						granted.Add(1)
					}
				}
			})
		}
		clients.Wait()
		if n := int(granted.Load()); n == dailyQuota || try == 3 {
			return n
		}
		time.Sleep(time.Second)
	}
}
