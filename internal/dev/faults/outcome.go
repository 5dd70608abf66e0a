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

	"palmares/internal/dev/load"
	"palmares/internal/dev/testkit/blackbox"
)

// outcome is the result of a fault.
type outcome struct {
	fault    fault
	cleared  int64
	reads    []read
	patience time.Duration // how long a new release may take, if more than maxRecovery

	cached, uncached          readFigures
	recovered                 time.Duration // from the repair to the last failed request
	visible                   time.Duration // from the import until every server shows it
	delivered                 time.Duration // from the import until all events have arrived
	events, repeated          int           // and those that arrived more than once
	lost, duplicated, mayLose int           // recorded requests, and those that a killed server had not recorded yet
	granted                   int           // of 100 afterwards; 0 if not tested
	slow                      bool          // the machine, so that goals about time are not judged
	inexact                   bool          // servers counted by themselves although Redis worked
	quotas                    []*calls
	catalog                   *catalogHistory
	violations                []string
}

// readFigures are about cached or uncached reads.
type readFigures struct {
	requests, failed, refused int
	p99, max                  time.Duration
}

// measure runs one fault, with an import while it lasts, until everything
// has recovered.
func (s *system) measure(f fault, options options) *outcome {
	length, calm := options.lengthOf(f), 3*time.Second
	if options.short {
		calm = 700 * time.Millisecond
	}
	o := &outcome{fault: f}
	endQuotas := func() {}
	if s.redis != nil {
		s.waitForRedis()
		endQuotas = s.useUpQuotas(o)
	}
	outages, before := s.redisOutages(), s.usage()
	endLoad := s.startLoad()
	time.Sleep(calm)
	busy := s.redisOutages() > outages
	for _, h := range o.quotas {
		h.Fault = s.now()
	}
	f.inject(s)
	imported := make(chan struct{})
	go func() {
		defer close(imported)
		time.Sleep(length / 3)
		for s.publish() != nil && s.Context().Err() == nil { // an operator retries until the database is available
			time.Sleep(200 * time.Millisecond)
		}
	}()
	time.Sleep(length)
	f.clear(s)
	o.cleared = s.now()
	<-imported
	published := time.Now()
	o.visible = waitFor(40*time.Second, s.allServe)
	events := s.newEvents()
	o.repeated = s.waitForDeliveries(events)
	o.delivered, o.events = time.Since(published), len(events)
	time.Sleep(calm)
	endQuotas()
	o.add(endLoad())
	if s.redisOutages() > outages { // on a busy machine, Redis may be too slow during any fault
		o.inexact = f.effect != redisFails
		o.slow = o.slow || o.inexact
		for _, h := range o.quotas {
			if h.Model = "outage"; busy || o.inexact {
				h.Fault = 0
			}
		}
	}
	s.compareUsage(o, before)
	if s.redis != nil {
		o.granted = s.testQuota()
	}
	return o
}

// waitFor polls a condition and returns how long it took.
func waitFor(limit time.Duration, condition func() bool) time.Duration {
	start := time.Now()
	for !condition() && time.Since(start) < limit {
		time.Sleep(20 * time.Millisecond)
	}
	return time.Since(start)
}

// add evaluates the reads during a fault.
func (o *outcome) add(reads []read) {
	o.reads = reads
	printed := map[string]bool{}
	times, late := map[*readFigures][]time.Duration{}, []time.Duration{}
	for _, r := range reads {
		late = append(late, r.late)
		f := &o.uncached
		if r.query.cached {
			f = &o.cached
		}
		f.requests++
		times[f] = append(times[f], r.late+time.Duration(r.End-r.Start))
		if r.failure == "" {
			continue
		}
		after := time.Duration(r.Start - o.cleared)
		o.recovered = max(o.recovered, after)
		if r.Status == http.StatusServiceUnavailable && !r.query.cached {
			f.refused++
			continue
		}
		f.failed++
		if failure := fmt.Sprintf("%s: %.60s", r.URL, r.failure); !printed[failure] {
			printed[failure] = true
			fmt.Fprintf(os.Stderr, "  %+.2fs, %s\n", after.Seconds(), failure)
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

// usage returns the requests of the key that the database has.
func (s *system) usage() int {
	return requestsIn(blackbox.MustRun(s, blackbox.Command(s, s.cfg, "accounts", "show", load.Owner)).Out)
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

// compareUsage compares the requests recorded since before with those that got a response,
// and so were counted. Others may have been counted: those without a response, or tried on
// another server before.
func (s *system) compareUsage(o *outcome, before int) {
	responded, unsure := 0, 0
	for _, r := range o.reads {
		if r.query.key != counted {
			continue
		}
		unsure += r.tries - 1
		switch r.Status {
		case 0, http.StatusBadGateway, http.StatusGatewayTimeout: // nginx's own
			unsure++
		default:
			responded++
		}
	}
	grown := 0
	waitFor(15*time.Second, func() bool {
		grown = s.usage() - before
		return grown >= responded
	})
	o.lost, o.duplicated = max(0, responded-grown), max(0, grown-responded-unsure)
	if s.killedAt > 0 {
		o.mayLose = o.lostByKill(s.killed, s.killedAt)
		s.killedAt = 0
	}
}

// writeInterval is how often servers record their counts.
const writeInterval = 500 * time.Millisecond

// lostByKill returns how many responses a killed server may have sent without
// recording the request. A slow machine is also slow to record it.
func (o *outcome) lostByKill(server int, at int64) (n int) {
	for _, r := range o.reads {
		p99 := int64(o.cached.p99)
		if r.query.key == counted && r.Server == server && r.End > at-int64(writeInterval)-p99 && r.End <= at+p99 {
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
					response, _, err := load.Do(s.Context(), load.Client, s.base+"/api/v1/stats", "", "X-Forwarded-For", address)
					if err == nil && response.StatusCode == http.StatusOK {
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
