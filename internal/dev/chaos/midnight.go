package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"time"

	"palmares/internal/core/quota"
	"palmares/internal/dev/testkit"
)

// A process takes its time from the machine, whose clock is not ours to set,
// and nothing in the program may pretend another one. So midnight comes to
// three of its gates in this process, with a real Redis, over HTTP.

const (
	gates     = 3
	skew      = 40 * time.Millisecond // the clocks of two servers are never the same
	midnights = "midnight, three gates in one process"
	aroundIt  = time.Second
)

// midnight comes again, up to three times, if the machine was too busy for
// Redis to answer within 45 ms: gates that count alone prove nothing of it.
func midnight(ctx context.Context, _ place, w wants) ([]*outcome, error) {
	if !w.fault(midnights) {
		return nil, nil
	}
	for tries := 1; ; tries++ {
		o, err := oneMidnight(ctx)
		if err != nil || o.note == "" || tries == 3 {
			return []*outcome{o}, err
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
	var comes atomic.Pointer[time.Time] // when it is midnight
	var stores []*quota.Redis
	var bases []string
	for i := range gates {
		store, err := quota.NewRedis(redis.URL, quota.NewCounter(), slog.New(slog.DiscardHandler))
		if err != nil {
			return nil, err
		}
		defer store.Close()
		stores = append(stores, store)
		gate := &quota.Gate{Store: store, Caller: anonymous, Now: func() time.Time {
			return firstDay.Add(time.Since(*comes.Load()) + time.Duration(i)*skew)
		}}
		server := httptest.NewServer(gate.Count(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "{}") })))
		defer server.Close()
		bases = append(bases, server.URL)
	}
	// The first questions connect to Redis, some days before.
	early := time.Now().Add(72 * time.Hour)
	comes.Store(&early)
	acrossMidnight(ctx, bases, time.Now().Add(aroundIt))
	wait(10*time.Second, func() bool { return !stores[0].Away() && !stores[1].Away() && !stores[2].Away() })
	failed := func() (n int) {
		for _, store := range stores {
			n += int(store.Failed.Load())
		}
		return n
	}
	before := failed()
	now := time.Now().Add(aroundIt)
	comes.Store(&now)
	o := acrossMidnight(ctx, bases, now.Add(aroundIt))
	if alone := failed() - before; alone > 0 {
		o.note = fmt.Sprintf("%d granted of 200, but %d requests did not hear of Redis in time", o.granted, alone)
		o.granted = 0
	}
	return o, nil
}

func anonymous(r *http.Request) quota.Caller {
	return quota.Caller{Subject: quota.Address(quota.ClientAddress(r, nil)), Limit: 100}
}

// acrossMidnight asks from one address far more often than it may, and tells
// how often it was answered.
func acrossMidnight(ctx context.Context, bases []string, until time.Time) *outcome {
	var granted, wrong, all atomic.Int64
	var askers sync.WaitGroup
	for i := range 2 * gates {
		askers.Go(func() {
			for ; time.Now().Before(until); time.Sleep(5 * time.Millisecond) {
				all.Add(1)
				switch code, _, err := fetch(ctx, bases[i%gates]); {
				case err == nil && code == http.StatusOK:
					granted.Add(1)
				case err != nil || code != http.StatusTooManyRequests:
					wrong.Add(1)
				}
			}
		})
	}
	askers.Wait()
	o := &outcome{fault: fault{name: midnights, days: 2}, granted: int(granted.Load())}
	o.cached.asked, o.cached.failed = int(all.Load()), int(wrong.Load())
	return o
}
