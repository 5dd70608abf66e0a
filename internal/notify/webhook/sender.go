package webhook

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"palmares/ent"
)

// atOnce is how many answers of one endpoint are waited for together.
const atOnce = 8

// sender sends to an endpoint in order: the next event is begun when the last
// one is answered or, where that takes long, on its way; and no more than a few
// answers are waited for.
type sender struct {
	hooks    *Webhooks
	endpoint *ent.Endpoint
	mayBegin func() bool
	places   chan struct{}
	waiting  sync.WaitGroup
	asked    atomic.Bool // to leave the receiver alone
}

func (w *Webhooks) newSender(e *ent.Endpoint, mayBegin func() bool) *sender {
	return &sender{hooks: w, endpoint: e, mayBegin: mayBegin, places: make(chan struct{}, atOnce)}
}

// send is false when nothing more is begun. What was not begun, or was cut off
// before an answer, has no outcome.
func (s *sender) send(ctx context.Context, t *task) bool {
	s.places <- struct{}{}
	if ctx.Err() != nil || s.asked.Load() || !s.mayBegin() {
		<-s.places
		return false
	}
	onItsWay := make(chan struct{})
	s.waiting.Go(func() {
		defer func() { <-s.places }()
		var once sync.Once
		begun := func() { once.Do(func() { close(onItsWay) }) }
		defer begun()
		t.outcome = s.hooks.send(ctx, s.endpoint, eventID(t.number), t.body, func() { time.AfterFunc(s.hooks.times.prompt, begun) })
		t.done = ctx.Err() == nil || t.outcome.status > 0
		t.body = nil
		if t.outcome.wait > 0 || t.outcome.gone {
			s.asked.Store(true)
		}
	})
	<-onItsWay
	return true
}

// wait is for the last answers.
func (s *sender) wait() { s.waiting.Wait() }
