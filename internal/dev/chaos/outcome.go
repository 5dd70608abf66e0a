package main

import (
	"encoding/json"
	"fmt"
	"io"
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

	cached, uncached figures
	mixed, older     int
	recovered        time.Duration // from the repair to the last failed request
	visible          time.Duration // from the import until every server shows it
	delivered        time.Duration // from the import until all events have arrived
	events           int
	lost, duplicated int // events
	wrongIDs         int
	usage, redis     difference // of recorded requests
	mayLose          int        // requests that a killed server had not recorded yet
	redisMayLose     int        // requests in flight during an outage of Redis
	granted          int        // of 100 afterwards; 0 if not tested
}

// figures are about cached or uncached reads.
type figures struct {
	requests, failed, refused int
	p99, max                  time.Duration
}

// difference is between requests counted and requests sent.
type difference struct{ lost, duplicated int }

// add evaluates the samples of a fault.
func (o *outcome) add(samples []*sample) {
	o.samples = samples
	printed := map[string]bool{}
	times := map[*figures][]time.Duration{}
	for _, s := range samples {
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
		slices.Sort(took)
		f.p99, f.max = took[len(took)*99/100], took[len(took)-1]
	}
}

// counts are the recorded requests of the key.
type counts struct{ usage, redis int }

func (s *system) counts() (c counts) {
	c.usage = requestsIn(blackbox.MustRun(s.t, blackbox.Command(s.t, s.cfg, "accounts", "show", load.Owner)).Out)
	if s.redis == nil {
		return c
	}
	client, err := redis.DialURL(s.redis.URL)
	check.OK(s.t, err)
	defer client.Close()
	db := testkit.Open(s.t, s.cfg)
	account, err := auth.NewAccounts(db).Find(s.t.Context(), load.Owner)
	check.OK(s.t, err)
	keys, err := redis.Strings(client.Do("KEYS", fmt.Sprintf("palmares:tally:*:%x", uint64(auth.Subject(account)))))
	check.OK(s.t, err)
	for _, key := range keys { // one for each day
		tally, err := redis.IntMap(client.Do("HGETALL", key))
		check.OK(s.t, err)
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

// redisOutages returns how often the servers have logged that Redis does not
// respond.
func (s *system) redisOutages() (n int) {
	for _, log := range s.logs {
		n += strings.Count(log.String(), "redis unavailable")
	}
	return n
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

const dailyQuota = 100 // of an address

// testQuota exceeds the quota of an address on all servers at once, and returns
// how many requests were granted. If the machine is too busy for Redis to respond
// in time, servers count locally, so it tries up to three times.
func (s *system) testQuota() (granted int) {
	for range 3 {
		address := clientAddress(1<<21 + requestNumber.Add(1))
		clients := slices.Repeat([]string{s.base + "/api/v1/stats"}, 12)
		granted = exceedQuota(clients, func(sent int) bool { return sent < 10 }, "X-Forwarded-For", address).granted
		if granted == dailyQuota {
			return granted
		}
		time.Sleep(time.Second)
	}
	return granted
}

// exceedQuota sends requests to several URLs at once, to each until more returns
// false for the number it was sent.
func exceedQuota(urls []string, more func(sent int) bool, headers ...string) *outcome {
	var granted, failed, sent atomic.Int64
	var clients sync.WaitGroup
	for _, url := range urls {
		clients.Go(func() {
			for n := 0; more(n); n++ {
				sent.Add(1)
				switch code, _ := status(url, "", headers...); code {
				case http.StatusOK:
					granted.Add(1)
				case http.StatusTooManyRequests:
				default:
					failed.Add(1)
				}
			}
		})
	}
	clients.Wait()
	return &outcome{granted: int(granted.Load()), cached: figures{requests: int(sent.Load()), failed: int(failed.Load())}}
}

// inbox is a webhook receiver that spends a moment on each event.
type inbox struct {
	mu       sync.Mutex
	bodies   map[string]string // by webhook-id
	times    map[string]int    // how often an ID arrived
	ids      map[subject]string
	wrongIDs int
	sender   string // address of the last connection
}

// subject is what an event is about. Each has one event.
type subject struct {
	Type    string
	Release int
	Slug    string
}

// ServeHTTP receives an event.
func (in *inbox) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	data, err := io.ReadAll(r.Body)
	if err != nil {
		return // the sender was killed
	}
	defer time.Sleep(10 * time.Millisecond)
	var about subject
	_ = json.Unmarshal(data, &about)
	id, body := r.Header.Get("webhook-id"), string(data)
	in.mu.Lock()
	defer in.mu.Unlock()
	if before, known := in.bodies[id]; known && before != body {
		in.wrongIDs++
	}
	if before, known := in.ids[about]; known && before != id {
		in.wrongIDs++
	}
	in.bodies[id], in.ids[about], in.sender = body, id, r.RemoteAddr
	in.times[id]++
}

// received returns the number of different events, and the sender of the last
// one.
func (in *inbox) received() (n int, sender string) {
	in.mu.Lock()
	defer in.mu.Unlock()
	return len(in.bodies), in.sender
}

// compare records in an outcome how many of the events are lost or duplicated,
// and how many IDs were not unique.
func (in *inbox) compare(ids []string, o *outcome) {
	in.mu.Lock()
	defer in.mu.Unlock()
	o.lost, o.duplicated, o.wrongIDs = 0, 0, in.wrongIDs
	for _, id := range ids {
		switch n := in.times[id]; {
		case n == 0:
			o.lost++
		case n > 1:
			o.duplicated++
		}
	}
}
