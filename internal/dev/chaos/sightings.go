package main

import (
	"maps"
	"sync"
)

// sightings are the newest editions that each process was seen to show. Who
// asks it afterwards must not be shown an older one.
type sightings struct {
	mu     sync.Mutex
	newest map[string]int // by address
}

func newSightings() *sightings { return &sightings{newest: map[string]int{}} }

// now is what has been seen before a question is asked.
func (s *sightings) now() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.newest)
}

func (s *sightings) saw(server string, edition int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.newest[server] = max(s.newest[server], edition)
}
