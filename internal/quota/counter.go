package quota

import (
	"context"
	"sync"
)

const (
	shards = 64
	// maxSubjects bounds the memory that a day of many addresses takes, to
	// some 150 MB.
	maxSubjects = 4 << 20
	// looked is how many subjects are compared to find one to forget.
	looked = 8
)

// Counter counts in the process. It keeps two days, so that a clock that steps
// back over midnight finds the counts of the day before.
type Counter struct{ shards [shards]shard }

type shard struct {
	mu      sync.Mutex
	days    [2]dayCounts // the newer first
	changed map[change]int
}

type dayCounts struct {
	day    Day
	counts map[Subject]int32
}

// change is whose count changed since the changes were last collected.
type change struct {
	day     Day
	subject Subject
}

// NewCounter counts from nothing.
func NewCounter() *Counter { return &Counter{} }

func (c *Counter) shard(s Subject) *shard {
	return &c.shards[uint64(s)*0x9E3779B97F4A7C15>>58] // Fibonacci hashing: neighbours lie apart
}

// on is the counts of a day. A new day puts the last but one out; a day from
// before both is taken for the older.
func (s *shard) on(day Day) *dayCounts {
	switch newest := &s.days[0]; {
	case newest.counts == nil || day > newest.day:
		s.days[1] = s.days[0]
		s.days[0] = dayCounts{day, map[Subject]int32{}}
		return &s.days[0]
	case day == newest.day:
		return newest
	case s.days[1].counts == nil:
		s.days[1] = dayCounts{day, map[Subject]int32{}}
	}
	return &s.days[1]
}

// add changes a count, and returns what it is then.
func (s *shard) add(subject Subject, on *dayCounts, n int) int {
	count, known := on.counts[subject]
	if !known && len(on.counts) >= maxSubjects/shards {
		on.forgetOne()
	}
	count = max(0, count+int32(n))
	on.counts[subject] = count
	return int(count)
}

// forgetOne makes room where more addresses came on a day than can be kept:
// out of a few, the one that was counted least loses its count.
func (d *dayCounts) forgetOne() {
	var least Subject
	lowest, seen := int32(0), 0
	for subject, count := range d.counts { // which Go begins anywhere
		if seen == 0 || count < lowest {
			least, lowest = subject, count
		}
		if seen++; seen == looked {
			break
		}
	}
	delete(d.counts, least)
}

func (s *shard) note(subject Subject, day Day, n int) {
	if s.changed == nil {
		s.changed = map[change]int{}
	}
	s.changed[change{day, subject}] += n
}

// Take implements Store.
func (c *Counter) Take(_ context.Context, subject Subject, day Day, quota int) int {
	s := c.shard(subject)
	s.mu.Lock()
	defer s.mu.Unlock()
	on := s.on(day)
	if count := int(on.counts[subject]); quota > 0 && count >= quota {
		return max(count, quota) + 1
	}
	s.note(subject, on.day, 1)
	return s.add(subject, on, 1)
}

// GiveBack implements Store.
func (c *Counter) GiveBack(_ context.Context, subject Subject, day Day) {
	s := c.shard(subject)
	s.mu.Lock()
	defer s.mu.Unlock()
	on := s.on(day)
	if on.counts[subject] > 0 {
		s.add(subject, on, -1)
		s.note(subject, on.day, -1)
	}
}

// restore adds what was counted before, and is written down already.
func (c *Counter) restore(subject Subject, day Day, n int) {
	s := c.shard(subject)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.add(subject, s.on(day), n)
}

// changes collects what was counted since the last time, by day.
func (c *Counter) changes() map[Day]map[Subject]int {
	all := map[Day]map[Subject]int{}
	for i := range c.shards {
		s := &c.shards[i]
		s.mu.Lock()
		changed := s.changed
		s.changed = nil
		s.mu.Unlock()
		for c, n := range changed {
			if n == 0 {
				continue
			}
			if all[c.day] == nil {
				all[c.day] = map[Subject]int{}
			}
			all[c.day][c.subject] = n
		}
	}
	return all
}

// count is what is known of a subject.
func (c *Counter) count(subject Subject, day Day) int {
	s := c.shard(subject)
	s.mu.Lock()
	defer s.mu.Unlock()
	return int(s.on(day).counts[subject])
}

// observe takes over a count from another store, which counted one more if
// granted, and returns what was known before. Answers may come in another
// order than they were given in, so a count that is a little lower is only an
// older one.
func (c *Counter) observe(subject Subject, day Day, count int, granted bool) (known int) {
	s := c.shard(subject)
	s.mu.Lock()
	defer s.mu.Unlock()
	on := s.on(day)
	known = int(on.counts[subject])
	if count > known {
		s.add(subject, on, count-known)
	}
	if granted {
		s.note(subject, on.day, 1)
	}
	return known
}
