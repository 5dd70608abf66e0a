package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"palmares/internal/core/quota"
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

func (s *system) counts(ctx context.Context) (c counts, err error) {
	if c.usage, err = s.recordedUsage(); err != nil || s.redis == nil {
		return c, err
	}
	options, err := redis.ParseURL(s.redis.URL)
	if err != nil {
		return c, err
	}
	client := redis.NewClient(options)
	defer client.Close()
	const account = 1
	keys, err := client.Keys(ctx, fmt.Sprintf("palmares:quota:*:%x", uint64(quota.Account(account)))).Result()
	if err != nil {
		return c, err
	}
	for _, key := range keys { // one for each day
		value, err := client.Get(ctx, key).Result() // count:epoch
		if err != nil {
			return c, err
		}
		text, _, _ := strings.Cut(value, ":")
		n, err := strconv.Atoi(text)
		if err != nil {
			return c, err
		}
		c.redis += n
	}
	return c, nil
}

// compareCounts compares the requests counted since before with those sent, and
// then tests the quota.
func (s *system) compareCounts(ctx context.Context, o *outcome, before counts) error {
	answered, unsure := keyedRequests(o.samples)
	var grown counts
	for deadline := time.Now().Add(15 * time.Second); time.Now().Before(deadline); time.Sleep(250 * time.Millisecond) {
		now, err := s.counts(ctx)
		if err != nil {
			return err
		}
		grown = counts{now.usage - before.usage, now.redis - before.redis}
		if grown.usage >= answered && (s.redis == nil || grown.redis >= answered) {
			break
		}
	}
	compare := func(counted int) difference {
		return difference{lost: max(0, answered-counted), duplicated: max(0, counted-answered-unsure)}
	}
	o.usage, o.mayLose = compare(grown.usage), s.killed.mayLose(o)
	if s.redis != nil {
		o.redis, o.granted = compare(grown.redis), s.testQuota(ctx)
	}
	return nil
}

// keyedRequests returns how many requests with the key were answered, and so
// counted, and how many others may have been counted: those without a response,
// or tried on another server before.
func keyedRequests(samples []*sample) (answered, unsure int) {
	for _, s := range samples {
		if !s.query.keyed {
			continue
		}
		unsure += s.tries - 1
		switch s.status {
		case 0, http.StatusBadGateway, http.StatusGatewayTimeout: // nginx's own
			unsure++
		default:
			answered++
		}
	}
	return answered, unsure
}

// kill is when a server was killed.
type kill struct {
	server string
	at     time.Time
}

// writeInterval is how often servers record their counts.
const writeInterval = 500 * time.Millisecond

// mayLose returns how many answered requests a killed server may not have
// recorded. A slow machine is also slow to record them.
func (k kill) mayLose(o *outcome) (n int) {
	since := k.at.Add(-writeInterval - o.cached.p99)
	for _, s := range o.samples {
		if answered := s.at.Add(s.took); s.query.keyed && s.server == k.server && answered.After(since) && !answered.After(k.at.Add(o.cached.p99)) {
			n++
		}
	}
	return n
}

const dailyQuota = 100 // of an address

// testQuota exceeds the quota of an address on all servers at once, and returns
// how many requests were granted. On a machine too busy for Redis to respond in
// time servers count alone, so it tries up to three times.
func (s *system) testQuota(ctx context.Context) (granted int) {
	for range 3 {
		var total atomic.Int64
		var clients sync.WaitGroup
		address := clientAddress(1<<21 + requestNumber.Add(1))
		for range 12 {
			clients.Go(func() {
				for range 10 {
					if code, _ := status(ctx, s.base+"/api/v1/stats", "", "X-Forwarded-For", address); code == http.StatusOK {
						total.Add(1)
					}
				}
			})
		}
		clients.Wait()
		if granted = int(total.Load()); granted == dailyQuota {
			return granted
		}
		time.Sleep(time.Second)
	}
	return granted
}

// inbox is a webhook receiver that takes a moment for each event.
type inbox struct {
	address string
	server  *http.Server

	mu       sync.Mutex
	bodies   map[string]string // by webhook-id
	times    map[string]int    // how often an id arrived
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

func startInbox() (*inbox, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	in := &inbox{address: listener.Addr().String(), bodies: map[string]string{}, times: map[string]int{}, ids: map[subject]string{}}
	in.server = &http.Server{Handler: in}
	go func() { _ = in.server.Serve(listener) }()
	return in, nil
}

// ServeHTTP receives an event.
func (in *inbox) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the sender was killed
	}
	in.add(r.Header.Get("webhook-id"), string(body), r.RemoteAddr)
	time.Sleep(10 * time.Millisecond)
}

func (in *inbox) add(id, body, sender string) {
	var about subject
	_ = json.Unmarshal([]byte(body), &about)
	in.mu.Lock()
	defer in.mu.Unlock()
	if before, known := in.bodies[id]; known && before != body {
		in.wrongIDs++
	}
	if before, known := in.ids[about]; known && before != id {
		in.wrongIDs++
	}
	in.bodies[id], in.ids[about], in.sender = body, id, sender
	in.times[id]++
}

// received returns the number of different events, and who sent the last one.
func (in *inbox) received() (n int, sender string) {
	in.mu.Lock()
	defer in.mu.Unlock()
	return len(in.bodies), in.sender
}

// compare returns how many of the events are lost or duplicated, and how many
// ids were not unique.
func (in *inbox) compare(ids []string) (lost, duplicated, wrongIDs int) {
	in.mu.Lock()
	defer in.mu.Unlock()
	for _, id := range ids {
		switch n := in.times[id]; {
		case n == 0:
			lost++
		case n > 1:
			duplicated++
		}
	}
	return lost, duplicated, in.wrongIDs
}
