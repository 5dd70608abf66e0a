package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"palmares/internal/core/client"
	"palmares/internal/core/quota"
	"palmares/internal/core/store"
	"palmares/internal/dev/check"
	"palmares/internal/dev/load"
	"palmares/internal/dev/testkit"
	"palmares/internal/dev/testkit/blackbox"
)

// fault is a failure that is injected and then repaired.
type fault struct {
	name          string
	long, short   time.Duration // how long it lasts; if short is 0, a short run skips it
	inject, clear func(*system)
	noFailure     bool          // not even an uncached read may fail
	days          int           // on which the quota was tested, if not one
	patience      time.Duration // how long a new release may take, if more than maxRecovery
}

// faults are those of three servers, in this order.
var faults = []fault{
	{name: "none", long: 5 * time.Second, inject: nothing, clear: nothing, noFailure: true},
	{name: "kill -9 of the server that sends webhooks, and restart", long: 5 * time.Second, short: 3 * time.Second, inject: killSender, clear: restartKilled, noFailure: true},
	{name: "rolling restart", long: time.Millisecond, short: time.Millisecond, inject: nothing, clear: restartAll, noFailure: true},
	{name: "PostgreSQL crashes and restarts", long: 20 * time.Second, short: 3 * time.Second,
		inject: func(s *system) { s.postgres.Crash() }, clear: restartPostgres},
	{name: "PostgreSQL crashes right after an import", long: 5 * time.Second, short: 2 * time.Second,
		inject: func(s *system) {
			check.OK(s.t, s.publish())
			s.postgres.Crash()
		}, clear: restartPostgres},
	{name: "PostgreSQL frozen", long: 20 * time.Second, short: 3 * time.Second,
		inject: func(s *system) { s.postgres.Freeze(s.t) }, clear: func(s *system) { s.postgres.Thaw(s.t) }},
	{name: "Redis stopped, and restarted empty", long: 10 * time.Second, short: 2 * time.Second, noFailure: true,
		inject: func(s *system) { s.redis.Stop() }, clear: func(s *system) { s.redis.Start(s.t) }},
	{name: "Redis frozen", long: 10 * time.Second, short: 2 * time.Second, noFailure: true,
		inject: func(s *system) { s.redis.Freeze() }, clear: func(s *system) { s.redis.Thaw() }},
	{name: "network failure between a server and PostgreSQL", long: 20 * time.Second, short: 3 * time.Second,
		inject: func(s *system) { s.proxy.Silence() }, clear: func(s *system) { s.proxy.Restore() }},
}

func nothing(*system) {}

func restartPostgres(s *system) { s.postgres.Restart(s.t) }

// killSender publishes, and kills the server that starts to send the events. On a
// busy machine, all may be sent before the server is found; it then publishes
// again.
func killSender(s *system) {
	for range 4 {
		before, _ := s.inbox.received()
		check.OK(s.t, s.publish())
		for deadline := time.Now().Add(6 * time.Second); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
			now, sender := s.inbox.received()
			if now == before {
				continue
			}
			for _, server := range s.servers {
				if ownsConnection(server.process.Cmd.Process.Pid, sender) {
					s.killed = kill{server.address, time.Now()}
					server.process.Kill()
					return
				}
			}
		}
	}
	s.t.Fatal("no server sends events")
}

func restartKilled(s *system) {
	for _, server := range s.servers {
		if server.address == s.killed.server {
			s.start(server)
		}
	}
}

func restartAll(s *system) {
	for _, server := range s.servers {
		_ = server.process.Cmd.Process.Signal(syscall.SIGTERM)
		server.process.WaitForExit(s.t)
		s.start(server)
	}
}

// sharedFaults breaks each component of a system with three servers in turn.
func sharedFaults(t testing.TB, o options) (outcomes []*outcome) {
	var s *system
	for _, f := range faults {
		if !o.wants(f.name) || o.short && f.short == 0 {
			continue
		}
		if s == nil {
			s = startCluster(t, o.logs)
		}
		fmt.Fprintln(os.Stderr, f.name)
		outcomes = append(outcomes, s.measure(f, o.short))
	}
	return outcomes
}

// measure runs one fault, with an import while it lasts, until everything
// has recovered.
func (s *system) measure(f fault, short bool) *outcome {
	length, calm := f.long, 3*time.Second
	if short {
		length, calm = f.short, 700*time.Millisecond
	}
	outages, before := s.redisOutages(), s.counts()
	endLoad := s.startLoad()
	defer endLoad()
	time.Sleep(calm)
	f.inject(s)
	imported := make(chan struct{})
	go func() {
		defer close(imported)
		time.Sleep(length / 3)
		for s.publish() != nil && s.t.Context().Err() == nil { // an operator retries until the database is available
			time.Sleep(200 * time.Millisecond)
		}
	}()
	time.Sleep(length)
	f.clear(s)
	o := &outcome{fault: f, cleared: time.Now()}
	<-imported
	published := time.Now()
	o.visible = waitFor(40*time.Second, s.allServe)
	ids := s.newEvents()
	delivered := make(chan struct{})
	go func() {
		defer close(delivered)
		waitFor(3*time.Minute, func() bool {
			s.inbox.compare(ids, o)
			return o.lost == 0
		})
		o.delivered, o.events = time.Since(published), len(ids)
	}()
	time.Sleep(calm)
	samples := endLoad()
	<-delivered
	o.add(samples)
	s.compareCounts(o, before)
	// Requests in flight when Redis stops responding may be missing. On a busy
	// machine, Redis may be too slow during any fault.
	if s.redisOutages() > outages {
		o.redisMayLose = 20
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

const smallDisk = 24 << 20

var diskFault = fault{name: "disk full, one server on SQLite", long: 10 * time.Second, short: 2 * time.Second, noFailure: true,
	inject: fillDisk, clear: func(s *system) { check.OK(s.t, os.Remove(s.fillFile())) }}

// diskFull fills the disk of a single server with an embedded database.
func diskFull(t testing.TB, o options) []*outcome {
	if !o.wants(diskFault.name) {
		return nil
	}
	data, err := testkit.MountSmallDisk(t, smallDisk)
	if err != nil {
		return []*outcome{{fault: diskFault, note: "not run: only root can mount a small disk"}}
	}
	s := newSystem(t, o.logs, store.Config{DataDir: data})
	s.addServer(s.cfg)
	s.base = "http://" + s.servers[0].address
	s.open()
	return []*outcome{s.measure(diskFault, o.short)}
}

func (s *system) fillFile() string { return filepath.Join(s.cfg.DataDir, "fill") }

// fillDisk fills the disk, and checks that an import fails.
func fillDisk(s *system) {
	err := os.WriteFile(s.fillFile(), bytes.Repeat([]byte{0}, smallDisk), 0o600)
	if !errors.Is(err, syscall.ENOSPC) {
		s.t.Fatalf("fill the disk: got %v, want an error that it is full", err)
	}
	if s.publish() == nil {
		s.t.Fatalf("an import succeeded on a full disk of %d MB", smallDisk>>20)
	}
}

// starvation stops the server for most of the time, so that it gets a fifth of a core.
const starvation, starvedTurn = 80 * time.Millisecond, 100 * time.Millisecond

var starvedFault = fault{
	name: "imports of 100,000 tools while the server gets 0.2 of a core, SQLite", noFailure: true, patience: 2 * time.Minute,
}

// starved imports large catalogs while the server hardly gets any CPU time.
func starved(t testing.TB, o options) []*outcome {
	if !o.wants(starvedFault.name) || o.short {
		return nil
	}
	s := newSystem(t, o.logs, store.Config{DataDir: t.TempDir()})
	s.addServer(s.cfg)
	s.base, s.rate, s.others = "http://"+s.servers[0].address, 5, 100_000
	check.OK(t, s.publish())
	s.key = blackbox.CreateKey(t, s.cfg, load.Owner, "pro")
	s.start(s.servers[0])
	fmt.Fprintln(os.Stderr, starvedFault.name)
	process := s.servers[0].process.Cmd.Process
	fed, enough := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(fed)
		for {
			_ = process.Signal(syscall.SIGSTOP)
			time.Sleep(starvation)
			_ = process.Signal(syscall.SIGCONT)
			select {
			case <-enough:
				return
			case <-time.After(starvedTurn - starvation):
			}
		}
	}()
	endLoad := s.startLoad()
	result := &outcome{fault: starvedFault}
	for range 5 {
		check.OK(t, s.publish())
		result.visible = max(result.visible, waitFor(starvedFault.patience+time.Second, s.allServe))
	}
	close(enough)
	<-fed
	result.cleared = time.Now()
	result.add(endLoad())
	return []*outcome{result}
}

const midnightFault = "midnight, quota checks of three servers in one process"

// midnight tests the quota across midnight. A process cannot set its own clock, so
// three gates run in this process, with a real Redis and over HTTP. If
// the machine is too busy for Redis to respond in time, it tries again.
func midnight(t testing.TB, o options) []*outcome {
	if !o.wants(midnightFault) {
		return nil
	}
	for tries := 1; ; tries++ {
		if result := oneMidnight(t); result.note == "" || tries == 3 {
			return []*outcome{result}
		}
	}
}

func oneMidnight(t testing.TB) *outcome {
	redis := testkit.StartRedis(t)
	const gates, skew, around = 3, 40 * time.Millisecond, time.Second
	var at atomic.Pointer[time.Time] // when it is midnight
	var stores []*quota.Redis
	var urls []string
	for i := range gates {
		store, err := quota.NewRedis(redis.URL, quota.NewCounter(), slog.New(slog.DiscardHandler))
		check.OK(t, err)
		defer store.Close()
		stores = append(stores, store)
		gate := &quota.Gate{Store: store, Caller: anonymous, Now: func() time.Time { return firstDay.Add(time.Since(*at.Load()) + time.Duration(i)*skew) }}
		server := httptest.NewServer(gate.Count(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "{}") })))
		defer server.Close()
		urls = append(urls, server.URL, server.URL)
	}
	exceed := func(midnight, until time.Time) *outcome {
		at.Store(&midnight)
		return exceedQuota(urls, func(int) bool {
			time.Sleep(5 * time.Millisecond)
			return time.Now().Before(until)
		})
	}
	failures := func() (n int64) {
		for _, store := range stores {
			n += store.Fallbacks.Load()
		}
		return n
	}
	// The first requests connect to Redis, on another day.
	exceed(time.Now().Add(72*time.Hour), time.Now().Add(around))
	waitFor(10*time.Second, func() bool { return !slices.ContainsFunc(stores, (*quota.Redis).Unavailable) })
	before, now := failures(), time.Now().Add(around)
	o := exceed(now, now.Add(around))
	o.fault = fault{name: midnightFault, days: 2}
	if failed := failures() - before; failed > 0 {
		o.note = fmt.Sprintf("%d granted of 200, but Redis was too slow for %d requests", o.granted, failed)
		o.granted = 0
	}
	return o
}

func anonymous(r *http.Request) quota.Caller {
	return quota.Caller{Subject: quota.Address(client.Address(r, nil)), Limit: dailyQuota}
}
