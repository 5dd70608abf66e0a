package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

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
	outage        bool          // of Redis, which servers can notice
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
	{name: "Redis stopped, and restarted empty", long: 10 * time.Second, short: 2 * time.Second, noFailure: true, outage: true,
		inject: func(s *system) { s.redis.Stop() }, clear: func(s *system) { s.redis.Start(s.t) }},
	{name: "Redis frozen", long: 10 * time.Second, short: 2 * time.Second, noFailure: true, outage: true,
		inject: func(s *system) { s.redis.Freeze() }, clear: func(s *system) { s.redis.Thaw() }},
	{name: "Redis 10 ms away", long: 10 * time.Second, short: 2 * time.Second, noFailure: true,
		inject: func(s *system) {
			for i := range s.servers {
				s.proxies.Delay(redisOf(i), 10*time.Millisecond)
			}
		}, clear: restoreNetwork},
	{name: "Redis 200 ms away from one server", long: 10 * time.Second, short: 2 * time.Second, noFailure: true, outage: true,
		inject: func(s *system) { s.proxies.Delay(redisOf(victim), 200*time.Millisecond) }, clear: restoreNetwork},
	{name: "network failure between a server and Redis", long: 10 * time.Second, short: 2 * time.Second, noFailure: true, outage: true,
		inject: func(s *system) { s.proxies.Interrupt(redisOf(victim)) }, clear: restoreNetwork},
	{name: "network failure between a server and PostgreSQL", long: 20 * time.Second, short: 3 * time.Second,
		inject: func(s *system) { s.proxies.Interrupt(postgresOf(victim)) }, clear: restoreNetwork},
}

const victim = 1 // the server that a fault of the network is about

func nothing(*system) {}

func restoreNetwork(s *system) { s.proxies.Restore() }

func restartPostgres(s *system) { s.postgres.Restart(s.t) }

// killSender publishes, and kills the server that starts to send the events. On a
// busy machine, all may be sent before the server is found; it then publishes
// again.
func killSender(s *system) {
	for range 4 {
		before, _ := s.records.received()
		check.OK(s.t, s.publish())
		for deadline := time.Now().Add(6 * time.Second); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
			now, sender := s.records.received()
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

// sharedFaults breaks each component of a system with three servers in turn, and
// then imports, prunes and restores catalogs. Clients read, sync and receive events
// all the time.
func sharedFaults(t testing.TB, o options) (outcomes []*outcome) {
	wanted := slices.DeleteFunc(slices.Clone(faults), func(f fault) bool { return !o.wants(f.name) || o.short && f.short == 0 })
	if len(wanted) == 0 && !o.wants(importsFault.name) {
		return nil
	}
	s := startCluster(t, o.logs)
	end := s.records.startClients()
	for _, f := range wanted {
		outcomes = append(outcomes, o.retry(f, func() *outcome { return s.measure(f, o) })...)
	}
	if o.wants(importsFault.name) {
		fmt.Fprintln(os.Stderr, importsFault.name)
		s.records.restoreDuringImports(o.lengthOf(importsFault))
	}
	end()
	return append(outcomes, &outcome{fault: importsFault, catalog: &s.records.h})
}

var importsFault = fault{name: "a backup is restored between imports and prunes", long: time.Minute, short: 15 * time.Second}

const maxTries = 3

// retry measures a fault again if the machine was too slow, and returns all outcomes.
// A short run only says so.
func (o options) retry(f fault, measure func() *outcome) (outcomes []*outcome) {
	for {
		fmt.Fprintln(os.Stderr, f.name)
		result := measure()
		if outcomes = append(outcomes, result); !result.slow || o.short || len(outcomes) == maxTries {
			return outcomes
		}
		result.note = "repeated, because the machine was too slow"
	}
}

func (o options) lengthOf(f fault) time.Duration {
	switch {
	case o.short:
		return f.short
	case o.length > 0 && f.long > time.Second:
		return o.length
	}
	return f.long
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
	outages, before := s.redisOutages(), s.counts()
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
		for s.publish() != nil && s.t.Context().Err() == nil { // an operator retries until the database is available
			time.Sleep(200 * time.Millisecond)
		}
	}()
	time.Sleep(length)
	f.clear(s)
	o.cleared = time.Now()
	<-imported
	published := time.Now()
	o.visible = waitFor(40*time.Second, s.allServe)
	events := s.records.newEvents()
	delivered := make(chan struct{})
	go func() {
		defer close(delivered)
		waitFor(3*time.Minute, func() bool {
			o.lost, o.duplicated = s.records.arrived(events)
			return o.lost == 0
		})
		o.delivered, o.events = time.Since(published), len(events)
	}()
	time.Sleep(calm)
	endQuotas()
	samples := endLoad()
	<-delivered
	o.add(samples)
	if s.redisOutages() > outages {
		// Requests in flight when Redis stops responding may be missing. On a busy
		// machine, Redis may be too slow during any fault.
		o.redisMayLose = 20
		o.inexact = !f.outage
		o.slow = o.slow || o.inexact
		for _, h := range o.quotas {
			if h.Model = "outage"; busy || o.inexact {
				h.Fault = 0
			}
		}
	}
	s.compareCounts(o, before)
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
	outcomes := o.retry(diskFault, func() *outcome { return s.measure(diskFault, o) })
	outcomes[0].catalog = &s.records.h
	return outcomes
}

func (s *system) fillFile() string { return filepath.Join(s.cfg.DataDir, "fill") }

// fillDisk fills the disk, and checks that an import fails.
func fillDisk(s *system) {
	err := os.WriteFile(s.fillFile(), bytes.Repeat([]byte{0}, smallDisk), 0o600)
	check.MustTrue(s.t, errors.Is(err, syscall.ENOSPC), "fill the disk: got %v, want an error that it is full", err)
	check.MustTrue(s.t, s.publish() != nil, "an import succeeded on a full disk of %d MB", smallDisk>>20)
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
