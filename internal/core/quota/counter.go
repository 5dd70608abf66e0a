package quota

import (
	"context"
	"sync"
)

const (
	shards = 64
	// maxSubjects limits the memory for one day of many addresses to some
	// 150 MB; all days together take no more than two full ones.
	maxSubjects = 4 << 20
	// daysInMemory is enough for today, yesterday and two days that a wrong
	// clock jumped to.
	daysInMemory = 4
	// looked is how many subjects are compared to find one to forget.
	looked = 8
)

// Counter counts in the process. It retains the days that were used last, in
// whatever order the clock visits them: a clock that jumps forward or back
// counts on another day, and finds the counts of the right day on its return.
type Counter struct{ shards [shards]shard }

type shard struct {
	mu      sync.Mutex
	days    [daysInMemory]dayCounts // the most recently used first
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

// on returns the counts of a day. A day without counts replaces the least
// recently used one.
func (s *shard) on(day Day) *dayCounts {
	first := &s.days[0]
	if first.day == day && first.counts != nil {
		return first
	}
	found := dayCounts{day: day}
	at := len(s.days) - 1
	for i, known := range s.days {
		if known.day == day && known.counts != nil {
			found, at = known, i
		}
	}
	if found.counts == nil {
		found.counts = map[Subject]int32{}
	}
	copy(s.days[1:at+1], s.days[:at])
	*first = found
	return first
}

// peek returns a subject's count without making room for its day.
func (s *shard) peek(subject Subject, day Day) int {
	for _, known := range s.days {
		if known.day == day {
			return int(known.counts[subject])
		}
	}
	return 0
}

// add changes a count, and returns what it is then.
func (s *shard) add(subject Subject, on *dayCounts, n int) int {
	count, known := on.counts[subject]
	if !known {
		s.makeRoom(on)
	}
	count = max(0, count+int32(n))
	on.counts[subject] = count
	return int(count)
}

// makeRoom keeps the shard within its share of the memory before a subject is
// added to a day. Where other days take too much, the least recently used one
// goes as a whole, because a Go map never shrinks.
func (s *shard) makeRoom(on *dayCounts) {
	const most = maxSubjects / shards
	if len(on.counts) >= most {
		on.forgetOne()
	}
	total := 0
	for i := range s.days {
		if total += len(s.days[i].counts); total >= 2*most {
			clear(s.days[i:])
			return
		}
	}
}

// forgetOne makes room where more addresses came on a day than can be kept:
// out of a few, the one that was counted least loses its count.
func (d *dayCounts) forgetOne() {
	var least Subject
	lowest, seen := int32(0), 0
	for subject, count := range d.counts { // in random order
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
	s.note(subject, day, 1)
	return s.add(subject, on, 1)
}

// GiveBack implements Store.
func (c *Counter) GiveBack(_ context.Context, subject Subject, day Day) {
	s := c.shard(subject)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.peek(subject, day) > 0 {
		s.add(subject, s.on(day), -1)
		s.note(subject, day, -1)
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
	return s.peek(subject, day)
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
		s.note(subject, day, 1)
	}
	return known
}
