package site

import (
	"context"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"palmares/internal/core/problem"
	"palmares/internal/core/quota"
)

// slots bound how many pages are worked out at once, of all visitors and of
// one: no quota counts pages, so nothing else would keep somebody from taking
// the database's time away from the API. Pages that are kept need none.
type slots struct {
	all      chan struct{}
	mu       sync.Mutex
	visitors map[netip.Prefix]*visitor
}

// visitor is somebody for whom pages are worked out, or wait for it.
type visitor struct {
	turns chan struct{}
	pages int
}

const (
	slotsOfAll = 4
	slotsOfOne = 2
	pagesOfOne = 16 // at work and waiting: a browser may open many at once
	// slotWait is how long a page waits for its turn: hundreds take theirs
	// meanwhile.
	slotWait = time.Second
)

func newSlots() *slots {
	return &slots{all: make(chan struct{}, slotsOfAll), visitors: map[netip.Prefix]*visitor{}}
}

var errBusy = problem.New(problem.TooMany, "More pages are asked for than can be worked out at once. Try again in a moment.")

type visitorKey struct{}

// withVisitor tells who asks, for what is worked out for them.
func (s *Site) withVisitor(r *http.Request) context.Context {
	address := quota.ClientAddress(r, s.Trusted)
	bits := 64 // what one customer of an IPv6 network has
	if address.Is4() {
		bits = 32
	}
	visitor, err := address.WithZone("").Prefix(bits)
	if err != nil {
		visitor = netip.Prefix{} // who cannot be told apart shares
	}
	return context.WithValue(r.Context(), visitorKey{}, visitor)
}

// take waits for a slot. What nobody asks for, such as a page that is renewed
// with a release, needs none.
func (s *slots) take(ctx context.Context) (release func(), err error) {
	name, asked := ctx.Value(visitorKey{}).(netip.Prefix)
	if !asked {
		return func() {}, nil
	}
	v := s.enter(name)
	if v == nil {
		return nil, errBusy
	}
	patience := time.NewTimer(slotWait)
	defer patience.Stop()
	for _, turns := range []chan struct{}{v.turns, s.all} {
		select {
		case turns <- struct{}{}:
			continue
		case <-patience.C:
			err = errBusy
		case <-ctx.Done():
			err = ctx.Err()
		}
		if turns == s.all {
			<-v.turns
		}
		s.leave(name, v)
		return nil, err
	}
	return func() {
		<-s.all
		<-v.turns
		s.leave(name, v)
	}, nil
}

// enter counts a page of a visitor; nil for one too many.
func (s *slots) enter(name netip.Prefix) *visitor {
	s.mu.Lock()
	defer s.mu.Unlock()
	v := s.visitors[name]
	if v == nil {
		v = &visitor{turns: make(chan struct{}, slotsOfOne)}
		s.visitors[name] = v
	}
	if v.pages == pagesOfOne {
		return nil
	}
	v.pages++
	return v
}

func (s *slots) leave(name netip.Prefix, v *visitor) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if v.pages--; v.pages == 0 {
		delete(s.visitors, name)
	}
}
