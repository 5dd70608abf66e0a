package blackbox

import (
	"io"
	"net"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
)

// Line is a connection to a database that can be cut.
type Line struct {
	URL    string // leads through it
	to     string
	broken atomic.Bool
	mu     sync.Mutex
	open   map[net.Conn]bool
}

// NewLine opens a line to the database at an address.
func NewLine(t testing.TB, to string) *Line {
	t.Helper()
	through, err := url.Parse(to)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	l := &Line{to: through.Host, open: map[net.Conn]bool{}}
	through.Host = listener.Addr().String()
	l.URL = through.String()
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go l.carry(conn)
		}
	}()
	return l
}

func (l *Line) carry(near net.Conn) {
	defer near.Close()
	if l.broken.Load() {
		return
	}
	far, err := net.Dial("tcp", l.to)
	if err != nil {
		return
	}
	defer far.Close()
	l.mu.Lock()
	l.open[near], l.open[far] = true, true
	l.mu.Unlock()
	go func() {
		_, _ = io.Copy(far, near)
		_ = far.Close()
	}()
	_, _ = io.Copy(near, far)
}

// Cut ends all connections, and lets none through any more.
func (l *Line) Cut() {
	l.broken.Store(true)
	l.mu.Lock()
	defer l.mu.Unlock()
	for conn := range l.open {
		_ = conn.Close()
	}
	l.open = map[net.Conn]bool{}
}

// Mend lets connections through again.
func (l *Line) Mend() { l.broken.Store(false) }
