package main

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	gosync "sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"palmares/internal/core/quota"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
	"palmares/internal/dev/testkit/blackbox"
)

// fault is what happens while clients use up quotas. The model is the one that
// must explain what they see.
type fault struct {
	name, model    string
	inject, repair func(*cluster)
}

func nothing(*cluster) {}

func restoreNetwork(c *cluster) { c.proxies.Restore() }

const victim = 1 // the server that a fault is about

var faults = []fault{
	{"none", "exact", nothing, nothing},
	{"Redis 10 ms away", "exact", func(c *cluster) {
		for i := range c.servers {
			c.proxies.Delay(redisOf(i), 10*time.Millisecond)
		}
	}, restoreNetwork},
	{"Redis 200 ms away from one server", "outage", func(c *cluster) { c.proxies.Delay(redisOf(victim), 200*time.Millisecond) }, restoreNetwork},
	{"one server partitioned from Redis", "outage", func(c *cluster) { c.proxies.Interrupt(redisOf(victim)) }, restoreNetwork},
	{"one server partitioned from PostgreSQL", "exact", func(c *cluster) { c.proxies.Interrupt(postgresOf(victim)) }, restoreNetwork},
	{"Redis restarted empty", "outage", func(c *cluster) { c.redis.Stop() }, func(c *cluster) { c.redis.Start(c.t) }},
	{"kill -9 of a server, and restart", "exact", func(c *cluster) { c.servers[victim].process.Kill() }, func(c *cluster) { c.startServer(victim) }},
	{"rolling restart", "exact", nothing, func(c *cluster) {
		for i := range c.servers {
			c.stop(i, syscall.SIGTERM)
			c.startServer(i)
		}
	}},
}

const (
	anonymousLimit, developerLimit = 100, 1000
	callsPerAddress                = 150 // more than the limit
	openAddresses                  = 4   // used at the same time
	clientsPerServer               = 3
	maxTries                       = 3
	pause                          = 15 * time.Millisecond // how long a client waits after each request
	patience                       = time.Minute           // how long the checker may take for one subject
)

// checkQuotas runs each fault and checks the recorded history. If a busy machine
// makes Redis too slow during a fault that must be exact, the history is checked
// as an outage, and the fault is repeated.
func checkQuotas(t testing.TB, c *cluster, r *results, length time.Duration) {
	for _, f := range faults {
		for try := 1; ; try++ {
			addresses, keyed := c.useUp(f, length)
			r.addQuota(f, addresses, keyed)
			if f.model == addresses.Model || f.model == "outage" {
				break
			}
			if try == maxTries {
				r.fail(f.name, "Redis was too slow to check the exact model", nil)
				break
			}
		}
	}
	r.addQuota(fault{name: "midnight", model: "exact"}, midnight(t, length))
}

// useUp sends requests from many addresses and with a key while a fault lasts,
// and returns what happened.
func (c *cluster) useUp(f fault, length time.Duration) (addresses, keyed *calls) {
	c.waitForRedis()
	outages := c.outages()
	developer := blackbox.CreateKey(c.t, c.cfg, fmt.Sprintf("%d@example.com", time.Now().UnixNano()), "developer")
	_, tag, _ := c.send(0, "key", "Authorization", "Bearer "+developer) // on a server that knows the key
	addresses = &calls{Model: f.model, Limit: anonymousLimit, Servers: len(c.servers)}
	keyed = &calls{Model: f.model, Limit: developerLimit - 1, Servers: len(c.servers)} // after the request above
	block := time.Now().UnixNano() / 1e6 % (1 << 20) * 4
	var mu gosync.Mutex
	var sent, sentKeyed atomic.Int64
	ctx, cancel := context.WithCancel(c.t.Context())
	wait := inParallel(ctx, len(c.servers)*clientsPerServer, func(number int) {
		server := number % len(c.servers)
		to, headers, matches, subject := addresses, []string(nil), false, ""
		if n := sentKeyed.Load(); rand.IntN(4) == 0 && n < developerLimit*8/10 {
			sentKeyed.Add(1)
			to, headers, subject = keyed, []string{"Authorization", "Bearer " + developer}, "key"
			if matches = rand.IntN(2) == 0; matches {
				headers = append(headers, "If-None-Match", tag)
			}
		} else {
			window := sent.Add(1) / (callsPerAddress * openAddresses)
			address := block + window*openAddresses + rand.Int64N(openAddresses)
			subject = fmt.Sprintf("100.%d.%d.%d", 64+address>>16&63, address>>8&255, address&255)
			headers = []string{"X-Forwarded-For", subject}
		}
		done, _, arrived := c.send(server, subject, headers...)
		if !arrived { // the server is not running
			time.Sleep(pause)
			return
		}
		done.Client, done.Matches = number, matches
		if done.Status == http.StatusServiceUnavailable { // counted, as other responses
			done.Status = http.StatusOK
		}
		mu.Lock()
		to.Calls = append(to.Calls, done)
		mu.Unlock()
		time.Sleep(pause)
	})
	time.Sleep(length / 3)
	at := c.now()
	if c.outages() > outages { // already: the machine is busy
		at = 0
	}
	f.inject(c)
	time.Sleep(length / 3)
	f.repair(c)
	time.Sleep(length / 3)
	cancel()
	wait()
	for _, h := range []*calls{addresses, keyed} {
		if h.Fault = at; f.model == "exact" && c.outages() > outages {
			h.Model, h.Fault = "outage", 0
		}
	}
	return addresses, keyed
}

// send sends a request and returns what happened, the ETag of the response, and
// whether the server can have received the request.
func (c *cluster) send(server int, subject string, headers ...string) (done call, tag string, arrived bool) {
	done = call{Subject: subject, Server: server, Start: c.now(), Remaining: unstated}
	response, _, arrived := c.try(server, "/api/v1/stats", headers...)
	done.End = c.now()
	if response == nil {
		return done, "", arrived
	}
	done.Status = response.StatusCode
	done.Remaining = remaining(response.Header)
	return done, response.Header.Get("ETag"), true
}

func remaining(header http.Header) int {
	n, err := strconv.Atoi(header.Get("X-RateLimit-Remaining"))
	if err != nil {
		return unstated
	}
	return n
}

// midnight uses up quotas on two days. A process cannot set its clock, so three
// gates run in this one, with clocks that differ a little, and a real Redis.
func midnight(t testing.TB, length time.Duration) *calls {
	redis := testkit.StartRedis(t)
	h := &calls{Model: "exact", Limit: anonymousLimit, Servers: maxServers}
	start := time.Now()
	turn := time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)
	var urls []string
	for i := range maxServers {
		store, err := quota.NewRedis(redis.URL, quota.NewCounter(), slog.New(slog.DiscardHandler))
		check.OK(t, err)
		defer store.Close()
		for range 100 { // the first request connects
			if store.Take(t.Context(), quota.Account(1_000+i), 1, 0); !store.Unavailable() {
				break
			}
			time.Sleep(50 * time.Millisecond)
		}
		gate := &quota.Gate{
			Store: store, Now: func() time.Time { return turn.Add(time.Since(start) - length/2 + time.Duration(i)*40*time.Millisecond) },
			Caller: func(r *http.Request) quota.Caller {
				id, _ := strconv.Atoi(r.Header.Get("X-Account"))
				return quota.Caller{Subject: quota.Account(id), Limit: anonymousLimit, Tier: "free"}
			},
		}
		server := httptest.NewServer(gate.Count(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})))
		defer server.Close()
		defer func() {
			if store.Fallbacks.Load() > 0 {
				h.Model = "outage"
			}
		}()
		urls = append(urls, server.URL)
	}
	ctx, cancel := context.WithTimeout(t.Context(), length)
	defer cancel()
	var mu gosync.Mutex
	var sent atomic.Int64
	inParallel(ctx, maxServers*clientsPerServer, func(number int) {
		account := sent.Add(1) / callsPerAddress
		done := call{Client: number, Server: number % maxServers, Start: int64(time.Since(start)), Remaining: unstated}
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, urls[done.Server], nil)
		check.OK(t, err)
		request.Header.Set("X-Account", strconv.FormatInt(account, 10))
		response, err := client.Do(request)
		check.OK(t, err)
		_ = response.Body.Close()
		done.End, done.Status, done.Remaining = int64(time.Since(start)), response.StatusCode, remaining(response.Header)
		if done.Status == http.StatusTooManyRequests {
			done.Remaining = unstated
		}
		done.Subject = fmt.Sprintf("account %d until %s", account, response.Header.Get("X-RateLimit-Reset"))
		mu.Lock()
		h.Calls = append(h.Calls, done)
		mu.Unlock()
		time.Sleep(pause)
	})()
	days := map[string]bool{}
	for _, c := range h.Calls {
		_, day, _ := strings.Cut(c.Subject, "until ")
		days[day] = true
	}
	if len(days) != 2 {
		t.Fatalf("got %d days, want 2", len(days))
	}
	return h
}
