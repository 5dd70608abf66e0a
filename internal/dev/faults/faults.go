package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"palmares/internal/core/store"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
)

// fault is a failure that is injected and then repaired.
type fault struct {
	name          string
	long, short   time.Duration // how long it lasts; if short is 0, a short run skips it
	inject, clear func(*system)
	effect        effect
}

// effect is what a fault may do to readers.
type effect int

const (
	nothingFails  effect = iota // not even an uncached read
	databaseFails               // uncached reads are rejected
	redisFails                  // nothing fails, but servers count by themselves
)

// faults are those of three servers, in this order.
var faults = []fault{
	{"none", 5 * time.Second, 0, nothing, nothing, nothingFails},
	{"kill -9 of the server that sends webhooks, and restart", 5 * time.Second, 3 * time.Second, killSender, restartKilled, nothingFails},
	{"rolling restart", time.Millisecond, time.Millisecond, nothing, restartAll, nothingFails},
	{"PostgreSQL crashes and restarts", 20 * time.Second, 3 * time.Second,
		func(s *system) { s.postgres.Crash() }, restartPostgres, databaseFails},
	{"PostgreSQL crashes right after an import", 5 * time.Second, 2 * time.Second, func(s *system) {
		check.OK(s, s.publish())
		s.postgres.Crash()
	}, restartPostgres, databaseFails},
	{"PostgreSQL frozen", 20 * time.Second, 3 * time.Second,
		func(s *system) { s.postgres.Freeze(s) }, func(s *system) { s.postgres.Thaw(s) }, databaseFails},
	{"Redis stopped, and restarted empty", 10 * time.Second, 2 * time.Second,
		func(s *system) { s.redis.Stop() }, func(s *system) { s.redis.Start(s) }, redisFails},
	{"Redis frozen", 10 * time.Second, 2 * time.Second,
		func(s *system) { s.redis.Freeze() }, func(s *system) { s.redis.Thaw() }, redisFails},
	{"Redis 10 ms away", 10 * time.Second, 2 * time.Second, func(s *system) {
		for i := range s.servers {
			s.proxies.Delay(redisOf(i), 10*time.Millisecond)
		}
	}, restoreNetwork, nothingFails},
	{"Redis 200 ms away from one server", 10 * time.Second, 2 * time.Second,
		func(s *system) { s.proxies.Delay(redisOf(victim), 200*time.Millisecond) }, restoreNetwork, redisFails},
	{"network failure between a server and Redis", 10 * time.Second, 2 * time.Second,
		func(s *system) { s.proxies.Interrupt(redisOf(victim)) }, restoreNetwork, redisFails},
	{"network failure between a server and PostgreSQL", 20 * time.Second, 3 * time.Second,
		func(s *system) { s.proxies.Interrupt(postgresOf(victim)) }, restoreNetwork, databaseFails},
}

// Those with a setup or a course of their own.
var (
	importsFault = fault{name: "a backup is restored between imports and prunes", long: time.Minute, short: 15 * time.Second}
	diskFault    = fault{"disk full, one server on SQLite", 10 * time.Second, 2 * time.Second, fillDisk,
		func(s *system) { check.OK(s, os.Remove(s.fillFile())) }, nothingFails}
	starvedFault = fault{name: "imports of 100,000 tools while the server gets 0.2 of a core, SQLite"}
)

const victim = 1 // the server that a fault of the network is about

func nothing(*system) {}

func restoreNetwork(s *system) { s.proxies.Restore() }

func restartPostgres(s *system) { s.postgres.Restart(s) }

// killSender publishes, and kills the server that starts to send the events. On a
// busy machine, all may be sent before the server is found; it then publishes
// again.
func killSender(s *system) {
	for range 4 {
		before, _ := s.received()
		check.OK(s, s.publish())
		for deadline := time.Now().Add(6 * time.Second); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
			now, sender := s.received()
			for i, server := range s.servers {
				if now > before && ownsConnection(server.process.Cmd.Process.Pid, sender) {
					s.killed, s.killedAt = i, s.now()
					server.process.Kill()
					return
				}
			}
		}
	}
	s.Fatal("no server sends events")
}

func restartKilled(s *system) { s.start(s.servers[s.killed]) }

func restartAll(s *system) {
	for _, server := range s.servers {
		_ = server.process.Cmd.Process.Signal(syscall.SIGTERM)
		server.process.WaitForExit(s)
		s.start(server)
	}
}

// sharedFaults breaks each component of a system with three servers in turn, and
// then imports, prunes and restores catalogs. Clients read, sync and receive events
// all the time.
func sharedFaults(t testing.TB, o options) (outcomes []*outcome) {
	var s *system
	for _, f := range append(faults, importsFault) {
		if !o.wants(f) {
			continue
		}
		if s == nil {
			s = startCluster(t)
			defer s.startSyncs()()
		}
		if fmt.Fprintln(os.Stderr, f.name); f.inject == nil {
			endLoad := s.startLoad()
			s.restoreDuringImports(o.lengthOf(f))
			endLoad()
		} else {
			outcomes = append(outcomes, s.measure(f, o))
		}
	}
	if s == nil {
		return nil
	}
	return append(outcomes, &outcome{fault: importsFault, catalog: &s.h})
}

// restoreDuringImports imports and prunes for a time, and restores a backup in the
// middle.
func (s *system) restoreDuringImports(length time.Duration) {
	end := time.Now().Add(length)
	backup, newest := filepath.Join(s.TempDir(), "backup"), 0
	for n := 1; time.Now().Before(end) || backup != ""; n++ {
		check.OK(s, s.publish())
		switch {
		case backup != "" && newest == 0 && time.Until(end) < length*2/3:
			newest = s.newest()
			s.runPostgres("pg_dump", "--format=custom", "--file="+backup, s.postgres.URL)
		case backup != "" && time.Until(end) < length/2:
			s.waitForDeliveries(s.newEvents())
			restored := restore{Start: s.now(), Newest: newest}
			s.runPostgres("pg_restore", "--clean", "--if-exists", "--no-owner", "--exit-on-error", "--single-transaction", "--dbname="+s.postgres.URL, backup)
			restored.End = s.now()
			s.record(func(h *catalogHistory) { h.Restores = append(h.Restores, restored) })
			backup, s.after = "", "" // the journal of the backup continues from another event
			s.newEvents()
		case n%3 == 0:
			s.record(func(h *catalogHistory) { h.Prunes = append(h.Prunes, s.now()) })
			check.OK(s, s.run(nil, "history", "prune", "--yes", "--before", strconv.Itoa(s.newest()-3)))
		}
		time.Sleep(time.Second)
	}
	s.waitForDeliveries(s.newEvents())
}

const smallDisk = 24 << 20

// diskFull fills the disk of a single server with an embedded database.
func diskFull(t testing.TB, o options) []*outcome {
	if !o.wants(diskFault) {
		return nil
	}
	data, err := testkit.MountSmallDisk(t, smallDisk)
	if err != nil {
		fmt.Fprintln(os.Stderr, "not run: only root can mount a small disk")
		return nil
	}
	s := newSystem(t, store.Config{DataDir: data})
	s.addServer(s.cfg)
	s.open()
	fmt.Fprintln(os.Stderr, diskFault.name)
	result := s.measure(diskFault, o)
	result.catalog = &s.h
	return []*outcome{result}
}

func (s *system) fillFile() string { return filepath.Join(s.cfg.DataDir, "fill") }

// fillDisk fills the disk, and checks that an import fails.
func fillDisk(s *system) {
	err := os.WriteFile(s.fillFile(), bytes.Repeat([]byte{0}, smallDisk), 0o600)
	check.MustTrue(s, errors.Is(err, syscall.ENOSPC), "fill the disk: got %v, want an error that it is full", err)
	check.MustTrue(s, s.publish() != nil, "an import succeeded on a full disk of %d MB", smallDisk>>20)
}

// starvation stops the server for most of the time, so that it gets a fifth of a core.
const starvation, starvedTurn = 80 * time.Millisecond, 100 * time.Millisecond

// starved imports large catalogs while the server hardly gets any CPU time.
func starved(t testing.TB, o options) []*outcome {
	if !o.wants(starvedFault) {
		return nil
	}
	fmt.Fprintln(os.Stderr, starvedFault.name)
	s := newSystem(t, store.Config{DataDir: t.TempDir()})
	s.addServer(s.cfg)
	s.rate, s.tools = 5, 100_000
	s.open()
	process := s.servers[0].process.Cmd.Process
	feed := inParallel(1, func(int) {
		_ = process.Signal(syscall.SIGSTOP)
		time.Sleep(starvation)
		_ = process.Signal(syscall.SIGCONT)
		time.Sleep(starvedTurn - starvation)
	})
	endLoad := s.startLoad()
	result := &outcome{fault: starvedFault, patience: 2 * time.Minute}
	for range 5 {
		check.OK(t, s.publish())
		result.visible = max(result.visible, waitFor(result.patience+time.Second, s.allServe))
	}
	feed()
	result.cleared = s.now()
	result.add(endLoad())
	return []*outcome{result}
}
