package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"palmares/internal/core/quota"
	"palmares/internal/dev/load"
	"palmares/internal/dev/testkit"
)

// fault is something that breaks and is repaired.
type fault struct {
	name          string
	long, short   time.Duration // how long it lasts; without a short one, it is left out of the short form
	inject, clear func(context.Context, *system) error
	noFailure     bool // not even an uncached read may fail
	days          int  // on which the quota was tested, if not one
}

// faults are those of three servers, in this order.
var faults = []fault{
	{name: "none", long: 5 * time.Second, inject: nothing, clear: nothing, noFailure: true},
	{name: "kill -9 of the server that sends webhooks, and restart", long: 5 * time.Second, short: 3 * time.Second, inject: killSender, clear: restartKilled, noFailure: true},
	{name: "rolling restart", long: time.Millisecond, short: time.Millisecond, inject: nothing, clear: restartAll, noFailure: true},
	{name: "PostgreSQL crashes and restarts", long: 20 * time.Second, short: 3 * time.Second,
		inject: func(_ context.Context, s *system) error { s.postgres.Crash(); return nil }, clear: restartPostgres},
	{name: "PostgreSQL crashes right after an import", long: 5 * time.Second, short: 2 * time.Second,
		inject: func(ctx context.Context, s *system) error {
			err := s.publish(ctx)
			s.postgres.Crash()
			return err
		}, clear: restartPostgres},
	{name: "PostgreSQL frozen", long: 20 * time.Second, short: 3 * time.Second,
		inject: func(_ context.Context, s *system) error { return s.postgres.Freeze() },
		clear:  func(_ context.Context, s *system) error { return s.postgres.Thaw() }},
	{name: "Redis stopped, and restarted empty", long: 10 * time.Second, short: 2 * time.Second, noFailure: true,
		inject: func(_ context.Context, s *system) error { s.redis.Stop(); return nil },
		clear:  func(_ context.Context, s *system) error { return s.redis.Run() }},
	{name: "Redis frozen", long: 10 * time.Second, short: 2 * time.Second, noFailure: true,
		inject: func(_ context.Context, s *system) error { s.redis.Freeze(); return nil },
		clear:  func(_ context.Context, s *system) error { s.redis.Thaw(); return nil }},
	{name: "network failure between a server and PostgreSQL", long: 20 * time.Second, short: 3 * time.Second,
		inject: func(_ context.Context, s *system) error { s.line.Silence(); return nil },
		clear:  func(_ context.Context, s *system) error { s.line.Restore(); return nil }},
}

func nothing(context.Context, *system) error { return nil }

func restartPostgres(ctx context.Context, s *system) error { return s.postgres.Restart(ctx) }

// killSender publishes, and kills the server that starts to send the events.
// On a busy machine all may be sent before we look: then it publishes again.
func killSender(ctx context.Context, s *system) error {
	for range 4 {
		before, _ := s.inbox.received()
		if err := s.publish(ctx); err != nil {
			return err
		}
		for deadline := time.Now().Add(6 * time.Second); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
			now, sender := s.inbox.received()
			if now == before {
				continue
			}
			for _, server := range s.servers {
				if ownsConnection(server.process.Pid, sender) {
					s.killed = kill{server.address, time.Now()}
					server.process.Kill()
					return nil
				}
			}
		}
	}
	return errors.New("no server sends events")
}

func restartKilled(ctx context.Context, s *system) error {
	for _, server := range s.servers {
		if server.process.Ended() {
			return server.start(ctx)
		}
	}
	return errors.New("no server was killed")
}

func restartAll(ctx context.Context, s *system) error {
	for _, server := range s.servers {
		if err := server.process.Stop(); err != nil {
			return err
		}
		if err := server.start(ctx); err != nil {
			return err
		}
	}
	return nil
}

// sharedFaults breaks each part of three servers in turn.
func sharedFaults(ctx context.Context, p load.Program, logs string, o options) (outcomes []*outcome, err error) {
	var s *system
	for _, f := range faults {
		if !o.wants(f.name) || o.short && f.short == 0 {
			continue
		}
		if s == nil {
			if s, err = startCluster(ctx, p, logs); err != nil {
				return nil, err
			}
			defer s.stop()
		}
		fmt.Fprintln(os.Stderr, f.name)
		result, err := s.measure(ctx, f, o.short)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.name, err)
		}
		outcomes = append(outcomes, result)
	}
	return outcomes, nil
}

// measure runs one fault, with an import while it lasts, until everything
// has recovered.
func (s *system) measure(ctx context.Context, f fault, short bool) (*outcome, error) {
	length, calm := f.long, 3*time.Second
	if short {
		length, calm = f.short, 700*time.Millisecond
	}
	outages := s.redisOutages()
	before, err := s.counts(ctx)
	if err != nil {
		return nil, err
	}
	g := startLoad(ctx, s)
	defer g.cancel()
	time.Sleep(calm)
	if err := f.inject(ctx, s); err != nil {
		return nil, err
	}
	imported := make(chan error, 1)
	go func() {
		time.Sleep(length / 3)
		imported <- s.publishUntilDone(ctx)
	}()
	time.Sleep(length)
	if err := f.clear(ctx, s); err != nil {
		return nil, err
	}
	o := &outcome{fault: f, cleared: time.Now()}
	if err := <-imported; err != nil {
		return nil, err
	}
	published := time.Now()
	o.visible = waitFor(40*time.Second, func() bool { return s.allServe(ctx) })
	delivered := make(chan error, 1)
	go func() { delivered <- s.awaitEvents(ctx, o, published) }()
	time.Sleep(calm)
	o.add(g.end())
	if err := <-delivered; err != nil {
		return nil, err
	}
	if err := s.compareCounts(ctx, o, before); err != nil {
		return nil, err
	}
	// Requests in flight when Redis stops responding may be missing. On a busy
	// machine, Redis may be too slow during any fault.
	if s.redisOutages() > outages {
		o.redisMayLose = 20
	}
	return o, ctx.Err()
}

// awaitEvents waits until every new event has arrived.
func (s *system) awaitEvents(ctx context.Context, o *outcome, published time.Time) error {
	ids, err := s.newEvents(ctx)
	if err != nil {
		return err
	}
	waitFor(3*time.Minute, func() bool {
		o.lost, o.duplicated, o.wrongIDs = s.inbox.compare(ids)
		return o.lost == 0 || ctx.Err() != nil
	})
	o.delivered, o.events = time.Since(published), len(ids)
	return nil
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
	inject: fillDisk, clear: func(_ context.Context, s *system) error { return os.Remove(s.fillFile()) }}

// diskFull fills the disk of a single server with an embedded database.
func diskFull(ctx context.Context, p load.Program, logs string, o options) ([]*outcome, error) {
	if !o.wants(diskFault.name) {
		return nil, nil
	}
	data, unmount, err := testkit.MountSmallDisk(smallDisk)
	if err != nil {
		return []*outcome{{fault: diskFault, note: "not run: only root can mount a small disk"}}, nil
	}
	defer unmount()
	s := &system{Program: p, shown: newestShown{}, data: data, env: []string{"PALMARES_DATA_DIR=" + data}}
	defer s.stop()
	if err := s.addServer(logs, s.env...); err != nil {
		return nil, err
	}
	s.base = "http://" + s.servers[0].address
	if err := s.open(ctx); err != nil {
		return nil, err
	}
	result, err := s.measure(ctx, diskFault, o.short)
	return []*outcome{result}, err
}

func (s *system) fillFile() string { return filepath.Join(s.data, "fill") }

// fillDisk fills the disk, and checks that an import fails.
func fillDisk(ctx context.Context, s *system) error {
	file, err := os.Create(s.fillFile())
	if err != nil {
		return err
	}
	defer file.Close()
	block := make([]byte, 4<<10)
	for err == nil {
		_, err = file.Write(block)
	}
	if !errors.Is(err, syscall.ENOSPC) {
		return err
	}
	if err := s.publish(ctx); err == nil {
		return fmt.Errorf("an import succeeded on a full disk of %d MB", smallDisk>>20)
	}
	return nil
}

const midnightFault = "midnight, three quota gates in one process"

// midnight tests the quota across midnight. The clock of a process cannot be
// set, so three gates run in this process, with a real Redis and over HTTP. On
// a machine too busy for Redis to respond in time it tries again.
func midnight(ctx context.Context, _ load.Program, _ string, o options) ([]*outcome, error) {
	if !o.wants(midnightFault) {
		return nil, nil
	}
	for tries := 1; ; tries++ {
		result, err := oneMidnight(ctx)
		if err != nil || result.note == "" || tries == 3 {
			return []*outcome{result}, err
		}
	}
}

func oneMidnight(ctx context.Context) (*outcome, error) {
	redis, err := testkit.NewRedis()
	if err != nil {
		return nil, err
	}
	if err := redis.Run(); err != nil {
		return nil, err
	}
	defer redis.Stop()
	const gates, skew, around = 3, 40 * time.Millisecond, time.Second
	var at atomic.Pointer[time.Time] // when it is midnight
	var stores []*quota.Redis
	var urls []string
	for i := range gates {
		store, err := quota.NewRedis(redis.URL, quota.NewCounter(), slog.New(slog.DiscardHandler))
		if err != nil {
			return nil, err
		}
		defer store.Close()
		stores = append(stores, store)
		gate := &quota.Gate{Store: store, Caller: anonymous, Now: func() time.Time { return firstDay.Add(time.Since(*at.Load()) + time.Duration(i)*skew) }}
		server := httptest.NewServer(gate.Count(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "{}") })))
		defer server.Close()
		urls = append(urls, server.URL)
	}
	// The first requests connect to Redis, on another day.
	early := time.Now().Add(72 * time.Hour)
	at.Store(&early)
	exceedQuota(ctx, urls, time.Now().Add(around))
	waitFor(10*time.Second, func() bool { return !stores[0].Unavailable() && !stores[1].Unavailable() && !stores[2].Unavailable() })
	failures := func() (n int64) {
		for _, store := range stores {
			n += store.Fallbacks.Load()
		}
		return n
	}
	before, now := failures(), time.Now().Add(around)
	at.Store(&now)
	o := exceedQuota(ctx, urls, now.Add(around))
	if failed := failures() - before; failed > 0 {
		o.note = fmt.Sprintf("%d granted of 200, but Redis was too slow for %d requests", o.granted, failed)
		o.granted = 0
	}
	return o, nil
}

func anonymous(r *http.Request) quota.Caller {
	return quota.Caller{Subject: quota.Address(quota.ClientAddress(r, nil)), Limit: dailyQuota}
}

// exceedQuota sends many more requests from one address than its quota allows.
func exceedQuota(ctx context.Context, urls []string, until time.Time) *outcome {
	var granted, failed, sent atomic.Int64
	var clients sync.WaitGroup
	for i := range 2 * len(urls) {
		clients.Go(func() {
			for ; time.Now().Before(until); time.Sleep(5 * time.Millisecond) {
				sent.Add(1)
				switch code, _ := status(ctx, urls[i%len(urls)], ""); code {
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
	o := &outcome{fault: fault{name: midnightFault, days: 2}, granted: int(granted.Load())}
	o.cached.requests, o.cached.failed = int(sent.Load()), int(failed.Load())
	return o
}
