package quota

import (
	"context"
	"slices"
	"sync"
)

const (
	shardCount = 64
	// maxSubjects limits the memory for one day of many addresses to about
	// 150 MB; all days together take no more than two full ones.
	maxSubjects = 4 << 20
	// DaysInMemory is enough for today, yesterday and two days that a wrong
	// clock jumped to.
	DaysInMemory = 4
	// evictionSample is how many subjects are compared to find one to evict.
	evictionSample = 8
)

// Counter counts in memory. It retains the most recently used days in whatever
// order the clock visits them: a clock that jumps counts on another day, and
// finds the counts of the right day on its return.
type Counter struct{ shards [shardCount]shard }

type shard struct {
	mu      sync.Mutex
	days    [DaysInMemory]dayCounts // the most recently used first
	changed map[key]int             // of addresses, since the changes were last collected
}

type dayCounts struct {
	day    Day
	counts map[Subject]tally
}

// tally is what a subject was granted on a day, and how much of it was refunded.
type tally struct{ granted, refunded int32 }

func (t tally) count() int { return int(t.granted - t.refunded) }

// plus returns the tally after more grants, or after refunds if n is negative.
func (t tally) plus(n int) tally {
	return tally{t.granted + int32(max(n, 0)), t.refunded - int32(min(n, 0))}
}

// key identifies a tally.
type key struct {
	day     Day
	subject Subject
}

// NewCounter returns a counter without counts.
func NewCounter() *Counter { return &Counter{} }

func (c *Counter) shard(s Subject) *shard {
	return &c.shards[uint64(s)*0x9E3779B97F4A7C15>>58] // Fibonacci hashing spreads neighbors
}

// index returns where a day is, or -1.
func (s *shard) index(day Day) int {
	return slices.IndexFunc(s.days[:], func(d dayCounts) bool { return d.day == day && d.counts != nil })
}

// on returns the counts of a day. A day without counts replaces the least
// recently used one.
func (s *shard) on(day Day) *dayCounts {
	i := s.index(day)
	if i < 0 {
		i = len(s.days) - 1
		s.days[i] = dayCounts{day, map[Subject]tally{}}
	}
	found := s.days[i]
	copy(s.days[1:i+1], s.days[:i])
	s.days[0] = found
	return &s.days[0]
}

// peek returns a count without making room for its day.
func (s *shard) peek(subject Subject, day Day) (t tally) {
	if i := s.index(day); i >= 0 {
		t = s.days[i].counts[subject]
	}
	return t
}

// makeRoom keeps the shard within its share of the memory before a subject is
// added to a day. Where other days take too much, the least recently used one
// is dropped as a whole, because a Go map never shrinks.
func (s *shard) makeRoom(on *dayCounts) {
	const most = maxSubjects / shardCount
	if len(on.counts) >= most {
		on.evict()
	}
	total := 0
	for i := range s.days {
		if total += len(s.days[i].counts); total >= 2*most {
			clear(s.days[i:])
			return
		}
	}
}

// evict drops the lowest of a few random counts.
func (d *dayCounts) evict() {
	var lowest Subject
	compared := 0
	for subject, t := range d.counts { // in random order
		if compared == 0 || t.count() < d.counts[lowest].count() {
			lowest = subject
		}
		if compared++; compared == evictionSample {
			break
		}
	}
	delete(d.counts, lowest)
}

// update replaces a tally. The change that it returns is written to the
// database, if it is an address; see Gate.Record for accounts.
func (c *Counter) update(k key, replace func(tally) (_ tally, change int)) {
	s := c.shard(k.subject)
	s.mu.Lock()
	defer s.mu.Unlock()
	on := s.on(k.day)
	before, known := on.counts[k.subject]
	after, change := replace(before)
	if !known {
		s.makeRoom(on)
	}
	on.counts[k.subject] = after
	if change != 0 && !k.subject.IsAccount() {
		if s.changed == nil {
			s.changed = map[key]int{}
		}
		s.changed[k] += change
	}
}

// Take implements Store.
func (c *Counter) Take(_ context.Context, subject Subject, day Day, limit int) int {
	count, changed := c.add(key{day, subject}, 1, limit)
	return count + 1 - changed
}

// Refund implements Store.
func (c *Counter) Refund(_ context.Context, subject Subject, day Day) {
	c.add(key{day, subject}, -1, 0)
}

// Count implements Store.
func (c *Counter) Count(_ context.Context, subject Subject, day Day) int {
	return c.get(key{day, subject}).count()
}

// add changes a count unless the limit is reached, and returns it with the
// change that it made.
func (c *Counter) add(k key, change, limit int) (count, changed int) {
	if change < 0 && c.get(k).count() == 0 {
		return 0, 0 // without making room for the day
	}
	c.update(k, func(t tally) (tally, int) {
		if granted(limit, t.count()+change) {
			changed = max(change, -t.count())
		}
		t = t.plus(changed)
		count = t.count()
		return t, changed
	})
	return count, changed
}

// Restore adds requests that are already in the database.
func (c *Counter) Restore(subject Subject, day Day, n int) {
	c.update(key{day, subject}, func(t tally) (tally, int) { return t.plus(max(n, -t.count())), 0 })
}

// Changes collects what was counted for addresses since the last call, by day.
func (c *Counter) Changes() map[Day]map[Subject]int {
	all := map[Day]map[Subject]int{}
	for i := range c.shards {
		s := &c.shards[i]
		s.mu.Lock()
		changed := s.changed
		s.changed = nil
		s.mu.Unlock()
		for k, n := range changed {
			if n == 0 {
				continue
			}
			if all[k.day] == nil {
				all[k.day] = map[Subject]int{}
			}
			all[k.day][k.subject] = n
		}
	}
	return all
}

func (c *Counter) get(k key) tally {
	s := c.shard(k.subject)
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.peek(k.subject, k.day)
}
