package main

import (
	"context"
	"fmt"
	"os"
	"time"
)

// together breaks each part of three servers in turn.
func together(ctx context.Context, p place, w wants) ([]*outcome, error) {
	var wanted []fault
	for _, f := range faults {
		if w.fault(f.name) && (f.short > 0 || !w.short) {
			wanted = append(wanted, f)
		}
	}
	if len(wanted) == 0 {
		return nil, nil
	}
	s, err := newTogether(ctx, p)
	if err != nil {
		return nil, err
	}
	defer s.stop()
	var all []*outcome
	for _, f := range wanted {
		fmt.Fprintln(os.Stderr, f.name)
		o, err := s.suffer(ctx, f, w.short)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.name, err)
		}
		all = append(all, o)
	}
	return all, nil
}

const (
	// longestNews and longestPost bound the waits for what should take a moment.
	longestNews = 40 * time.Second
	longestPost = 3 * time.Minute
	pulse       = 20 * time.Millisecond
)

// suffer is one fault from before its begin until all is well again, with a
// catalog published in its midst.
func (s *scene) suffer(ctx context.Context, f fault, short bool) (*outcome, error) {
	length, calm := f.long, 3*time.Second
	if short {
		length, calm = f.short, 700*time.Millisecond
	}
	before, err := s.countsNow(ctx)
	if err != nil {
		return nil, err
	}
	l := startLoad(ctx, s.base, s.key, s.shown)
	defer l.cancel()
	time.Sleep(calm)
	if err := f.begin(ctx, s); err != nil {
		return nil, err
	}
	importing := make(chan error, 1)
	o := &outcome{fault: f, began: time.Now()}
	go func() {
		time.Sleep(length / 3)
		var err error
		o.refused, err = s.publishAtLast(ctx)
		importing <- err
	}()
	time.Sleep(length)
	if err := f.end(ctx, s); err != nil {
		return nil, err
	}
	o.mended = time.Now()
	if err := <-importing; err != nil {
		return nil, err
	}
	settled := time.Now() // nothing is wrong any more, and there is news
	o.news = wait(longestNews, func() bool { return s.served(ctx) })
	posted := make(chan error, 1)
	go func() { posted <- s.awaitPost(ctx, o, settled) }()
	time.Sleep(calm)
	o.take(l.end())
	if err := <-posted; err != nil {
		return nil, err
	}
	answered, unsure := keyed(o.samples)
	grown, err := s.countsSince(ctx, before, answered)
	if err != nil {
		return nil, err
	}
	o.count(grown, answered, unsure, s.redis != nil)
	o.mayForget = s.killed.forgets(o)
	if s.redis != nil {
		o.granted = s.limit(ctx)
	}
	return o, ctx.Err()
}

// awaitPost waits until every event has arrived.
func (s *scene) awaitPost(ctx context.Context, o *outcome, settled time.Time) error {
	ids, err := s.newEvents(ctx)
	if err != nil {
		return err
	}
	wait(longestPost, func() bool {
		lost, _, _ := s.inbox.tally(ids)
		return lost == 0 || ctx.Err() != nil
	})
	o.posted = time.Since(settled)
	o.events = len(ids)
	o.lost, o.doubled, o.wrong = s.inbox.tally(ids)
	return nil
}

// wait waits until something is so, and tells how long it took.
func wait(atMost time.Duration, so func() bool) time.Duration {
	start := time.Now()
	for !so() && time.Since(start) < atMost {
		time.Sleep(pulse)
	}
	return time.Since(start)
}
