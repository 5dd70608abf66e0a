package middleware

import (
	"context"
	"io"
	"net"
	"sync"
)

// Listener accepts connections that send the header of a response together with
// its body. net/http has a buffer of 4 kB for each connection: it would send the
// header of a larger response with the first bytes of the body, and the rest by
// a second system call, which wakes the client a second time.
type Listener struct{ net.Listener }

// Accept implements net.Listener.
func (l Listener) Accept() (net.Conn, error) {
	accepted, err := l.Listener.Accept()
	if tcp, ok := accepted.(*net.TCPConn); ok && err == nil {
		return &joiningConn{TCPConn: tcp}, nil
	}
	return accepted, err
}

// joiningConn holds back the first write of a response until the next one. Only
// the goroutine that serves the connection writes.
type joiningConn struct {
	*net.TCPConn
	held *heldWrite // nil while writes are not joined
}

// heldWrite is what was written and not sent yet.
type heldWrite struct {
	bytes  [connBuffer]byte
	length int
}

// connBuffer is the size of net/http's buffer. If it were another one, writes
// would be sent one by one.
const connBuffer = 4 << 10

var heldWrites = sync.Pool{New: func() any { return new(heldWrite) }}

// Write implements net.Conn.
func (c *joiningConn) Write(p []byte) (int, error) {
	switch held := c.held; {
	case held == nil:
		return c.TCPConn.Write(p)
	case held.length == 0 && len(p) <= connBuffer:
		held.length = copy(held.bytes[:], p) // net/http uses p again
		return len(p), nil
	default:
		both := net.Buffers{held.bytes[:held.length], p}
		n, err := both.WriteTo(c.TCPConn)
		n = max(0, n-int64(held.length))
		held.length = 0
		return int(n), err
	}
}

type connKey struct{}

// ConnContext is that of an http.Server with a Listener.
func ConnContext(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, c)
}

// writeJoined writes part of a response to w. Nothing is held back after it
// returns.
func writeJoined(ctx context.Context, w io.Writer, p []byte) (n int, err error) {
	c, ok := ctx.Value(connKey{}).(*joiningConn)
	if !ok || len(p) < 2*connBuffer { // less may remain in the buffer of net/http
		return w.Write(p)
	}
	c.held = heldWrites.Get().(*heldWrite)
	n, err = w.Write(p)
	if c.held.length > 0 {
		_, failed := c.TCPConn.Write(c.held.bytes[:c.held.length])
		if err == nil {
			err = failed
		}
		c.held.length = 0
	}
	heldWrites.Put(c.held)
	c.held = nil
	return n, err
}
