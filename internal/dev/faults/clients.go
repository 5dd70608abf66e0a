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
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"palmares/internal/core/quota"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
	"palmares/internal/dev/testkit/blackbox"
)

const (
	dailyQuota, developerQuota = 100, 1000
	callsPerAddress            = 150 // more than the quota
	openAddresses              = 4   // used at the same time
	clientsPerServer           = 2
	pause                      = 25 * time.Millisecond // how long a client waits after each request
	patience                   = time.Minute           // how long the checker may take for one subject
)

// inParallel runs a function several times until it is stopped.
func inParallel(n int, each func(number int)) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	for i := range n {
		running.Go(func() {
			for ctx.Err() == nil {
				each(i)
			}
		})
	}
	return func() {
		cancel()
		running.Wait()
	}
}

// useUpQuotas sends requests from many addresses and with a key, to one server or
// another, until it is stopped. It adds the histories to an outcome.
func (s *system) useUpQuotas(o *outcome) (stop func()) {
	developer := blackbox.CreateKey(s.t, s.cfg, fmt.Sprintf("%d@example.com", time.Now().UnixNano()), "developer")
	tag := ""
	for server := range s.servers { // a server that does not know the key needs the database
		first, etag, _ := s.call(server, "key", "Authorization", "Bearer "+developer)
		check.Must(s.t, first.Status, http.StatusOK, "a request with a new key")
		tag = etag
	}
	addresses := &calls{Model: "exact", Limit: dailyQuota, Servers: len(s.servers)}
	keyed := &calls{Model: "exact", Limit: developerQuota - len(s.servers), Servers: len(s.servers)} // after those requests
	o.quotas = []*calls{addresses, keyed}
	block := time.Now().UnixNano() / 1e6 % (1 << 20) * 4
	var mu sync.Mutex
	var sent, sentKeyed atomic.Int64
	return inParallel(len(s.servers)*clientsPerServer, func(number int) {
		defer time.Sleep(pause)
		to, headers, matches, subject := addresses, []string(nil), false, ""
		if rand.IntN(4) == 0 && sentKeyed.Add(1) < developerQuota*8/10 {
			to, headers, subject = keyed, []string{"Authorization", "Bearer " + developer}, "key"
			if matches = rand.IntN(2) == 0; matches {
				headers = append(headers, "If-None-Match", tag)
			}
		} else {
			window := sent.Add(1) / (callsPerAddress * openAddresses)
			subject = clientAddress(block + window*openAddresses + rand.Int64N(openAddresses))
			headers = []string{"X-Forwarded-For", subject}
		}
		done, _, arrived := s.call(number%len(s.servers), subject, headers...)
		if !arrived { // the server is not running
			return
		}
		done.Client, done.Matches = number, matches
		if done.Status == http.StatusServiceUnavailable { // counted, as other responses
			done.Status = http.StatusOK
		}
		mu.Lock()
		defer mu.Unlock()
		to.Calls = append(to.Calls, done)
	})
}

// call sends a request and returns what happened, the ETag of the response, and
// whether the server can have received the request.
func (s *system) call(server int, subject string, headers ...string) (done call, tag string, arrived bool) {
	done = call{Subject: subject, Server: server, Start: s.now(), Remaining: unstated}
	response, _, arrived := s.get(server, "/api/v1/stats", headers...)
	done.End = s.now()
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

var midnightFault = fault{name: "midnight, quota checks of three servers in one process", long: 5 * time.Second, short: 2 * time.Second}

// midnight uses up quotas on two days. A process cannot set its clock, so three
// gates run in this one, with clocks that differ a little, over HTTP and with a real
// Redis. If the machine is too busy for Redis to respond in time, it tries again.
func midnight(t testing.TB, o options) []*outcome {
	if !o.wants(midnightFault.name) {
		return nil
	}
	return o.retry(midnightFault, func() *outcome { return oneMidnight(t, o.lengthOf(midnightFault)) })
}

func oneMidnight(t testing.TB, length time.Duration) *outcome {
	redis := testkit.StartRedis(t)
	h := &calls{Model: "exact", Limit: dailyQuota, Servers: maxServers}
	o := &outcome{fault: midnightFault, quotas: []*calls{h}}
	start := time.Now()
	turn := time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)
	var urls []string
	var stores []*quota.Redis
	for i := range maxServers {
		store := check.Try(quota.NewRedis(redis.URL, quota.NewCounter(), slog.New(slog.DiscardHandler))).OK(t)
		defer store.Close()
		// The first request connects, and counts locally.
		waitFor(10*time.Second, func() bool {
			store.Take(t.Context(), quota.Account(1_000+i), 1, 0)
			return !store.Unavailable()
		})
		stores = append(stores, store)
		gate := &quota.Gate{
			Store: store, Now: func() time.Time { return turn.Add(time.Since(start) - length/2 + time.Duration(i)*40*time.Millisecond) },
			Caller: func(r *http.Request) quota.Caller {
				id, _ := strconv.Atoi(r.Header.Get("X-Account"))
				return quota.Caller{Subject: quota.Account(id), Limit: dailyQuota, Tier: "free"}
			},
		}
		server := httptest.NewServer(gate.Count(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})))
		defer server.Close()
		urls = append(urls, server.URL)
	}
	start = time.Now()
	fallbacks := func() (n int64) {
		for _, store := range stores {
			n += store.Fallbacks.Load()
		}
		return n
	}
	before := fallbacks()
	var mu sync.Mutex
	var sent atomic.Int64
	stop := inParallel(maxServers*clientsPerServer, func(number int) {
		defer time.Sleep(5 * time.Millisecond)
		account := sent.Add(1) / callsPerAddress
		done := call{Client: number, Server: number % maxServers, Start: int64(time.Since(start)), Remaining: unstated}
		request, err := http.NewRequest(http.MethodGet, urls[done.Server], nil)
		if err != nil {
			t.Error(err)
			return
		}
		request.Header.Set("X-Account", strconv.FormatInt(account, 10))
		response, err := direct.Do(request)
		if err != nil {
			t.Error(err)
			return
		}
		_ = response.Body.Close()
		done.End, done.Status, done.Remaining = int64(time.Since(start)), response.StatusCode, remaining(response.Header)
		if done.Status == http.StatusTooManyRequests {
			done.Remaining = unstated
		}
		done.Subject = fmt.Sprintf("account %d until %s", account, response.Header.Get("X-RateLimit-Reset"))
		mu.Lock()
		defer mu.Unlock()
		h.Calls = append(h.Calls, done)
	})
	time.Sleep(length)
	stop()
	if fallbacks() > before {
		h.Model, o.slow, o.inexact = "outage", true, true
	}
	days := map[string]bool{}
	for _, c := range h.Calls {
		_, day, _ := strings.Cut(c.Subject, "until ")
		days[day] = true
	}
	check.Must(t, len(days), 2, "days")
	return o
}
