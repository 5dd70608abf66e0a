package mail

import (
	"context"
	"sync"
	"time"

	"palmares/internal/core/problem"
)

// Run delivers the queue until ctx ends, and then what is still queued for at
// most 10 seconds more. Letters that wait for another attempt have it then, as
// their last. Afterwards none are taken.
func (m *Mailer) Run(ctx context.Context) {
	if m.Prints() {
		<-ctx.Done()
		return
	}
	sending, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	ending := make(chan struct{})
	var workers sync.WaitGroup
	for range workerCount {
		workers.Go(func() { m.work(sending, ending) })
	}
	<-ctx.Done()
	defer time.AfterFunc(m.grace, stop).Stop()
	m.hurry()
	close(ending)
	workers.Wait()
	m.end()
}

func (m *Mailer) work(ctx context.Context, ending <-chan struct{}) {
	for {
		select {
		case l := <-m.queue:
			m.try(ctx, l)
		case <-ending:
			m.empty(func(l *letter) { m.try(ctx, l) })
			return
		}
	}
}

// empty takes what is in the queue, without waiting for more.
func (m *Mailer) empty(handle func(*letter)) {
	for {
		select {
		case l := <-m.queue:
			handle(l)
		default:
			return
		}
	}
}

// try makes an attempt at a letter, and sees to what becomes of it.
func (m *Mailer) try(ctx context.Context, l *letter) {
	err := m.deliver(ctx, l)
	if err != nil {
		if isTemporary(err) && m.wait(l, err) {
			return
		}
		m.giveUp(l.to, err)
	}
	m.mu.Lock()
	m.held--
	m.mu.Unlock()
}

// take queues a new letter if there is room.
func (m *Mailer) take(l *letter) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.ended || m.held == queueLength {
		return false
	}
	m.held++
	m.queue <- l
	return true
}

// wait puts a letter aside until its next attempt, if there is one. Nobody is
// kept from other letters meanwhile.
func (m *Mailer) wait(l *letter, err error) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.ending || l.tries == len(m.retryAfter) {
		return false
	}
	if l.tries == 0 {
		m.log.Warn("a letter waits for another attempt", m.about(l.to, err)...)
	}
	m.waiting[l] = time.AfterFunc(m.retryAfter[l.tries], func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.requeue(l)
	})
	l.tries++
	return true
}

// requeue ends a letter's waiting, once.
func (m *Mailer) requeue(l *letter) {
	if timer, waits := m.waiting[l]; waits {
		timer.Stop()
		delete(m.waiting, l)
		m.queue <- l
	}
}

// hurry ends all waiting.
func (m *Mailer) hurry() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ending = true
	for l := range m.waiting {
		m.requeue(l)
	}
}

// end gives up what was posted too late for anybody to send.
func (m *Mailer) end() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ended = true
	m.empty(func(l *letter) {
		m.giveUp(l.to, problem.New(problem.Unavailable, "It was posted too late."))
	})
}
