package store

import (
	"context"
	"fmt"
	"net"
	"sync"
	"time"
)

// cancelTime is how long a statement may still take when its context has ended.
// The driver then asks the database to cancel the statement, over a second
// connection, and would wait for the outcome however long it takes: for hours if
// the database is frozen.
const cancelTime = 100 * time.Millisecond

// socketKey is the key of the socket that a context's connection is to use.
type socketKey struct{}

// socket is the network connection to a database. It fails if no data arrives for a
// while, and when the context of a statement ends.
type socket struct {
	net.Conn
	timeout time.Duration

	mu    sync.Mutex
	until time.Time // when it fails because it was interrupted; zero if it was not
}

// connect makes a socket use a network connection. A driver that tries several
// addresses calls it for each.
func (s *socket) connect(conn net.Conn, timeout time.Duration) net.Conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.until.IsZero() {
		_ = conn.SetDeadline(s.until)
	}
	s.Conn, s.timeout = conn, timeout
	return s
}

// Read implements net.Conn.
func (s *socket) Read(p []byte) (int, error) {
	s.mu.Lock()
	deadline := time.Now().Add(s.timeout)
	if !s.until.IsZero() && s.until.Before(deadline) {
		deadline = s.until
	}
	err := s.SetReadDeadline(deadline)
	s.mu.Unlock()
	if err != nil {
		return 0, err
	}
	return s.Conn.Read(p)
}

// watch interrupts the socket if ctx ends before ended is called, which adds the
// context's error to the error of what was interrupted.
func (s *socket) watch(ctx context.Context) (ended func(error) error) {
	if s == nil {
		return func(err error) error { return err }
	}
	stop := context.AfterFunc(ctx, s.interrupt)
	return func(err error) error {
		if stop() || ctx.Err() == nil {
			return err
		}
		s.interrupt() // now, so that the pool does not reuse the connection
		return withCause(ctx, err)
	}
}

// withCause adds the error of a context that has ended to its consequence.
func withCause(ctx context.Context, err error) error {
	if err == nil || ctx.Err() == nil {
		return err
	}
	return fmt.Errorf("%w: %w", ctx.Err(), err)
}

func (s *socket) interrupt() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.until.IsZero() {
		return
	}
	s.until = time.Now().Add(cancelTime)
	if s.Conn != nil { // otherwise it is being opened
		_ = s.SetDeadline(s.until)
	}
}

func (s *socket) isInterrupted() bool {
	if s == nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.until.IsZero()
}
