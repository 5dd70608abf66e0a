package limiter

import (
	"errors"
	"sync"
)

// Slots counts what owners have open at the same time, such as streams. The zero
// value is ready to use.
type Slots[Owner comparable] struct {
	mu      sync.Mutex
	open    int
	byOwner map[Owner]int
}

// Why no slot is free.
var (
	ErrOwnerLimit = errors.New("the caller has too many open responses")
	ErrTotalLimit = errors.New("the server has too many open responses")
)

// Reserve reserves a slot within the limits of its owner and of all owners. It
// returns a function that releases the slot.
func (s *Slots[Owner]) Reserve(owner Owner, limit, total int) (release func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.byOwner[owner] >= limit:
		return nil, ErrOwnerLimit
	case s.open >= total:
		return nil, ErrTotalLimit
	case s.byOwner == nil:
		s.byOwner = map[Owner]int{}
	}
	s.open++
	s.byOwner[owner]++
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.open--
		if s.byOwner[owner]--; s.byOwner[owner] == 0 {
			delete(s.byOwner, owner)
		}
	}, nil
}

// Open returns the number of reserved slots.
func (s *Slots[Owner]) Open() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.open
}
