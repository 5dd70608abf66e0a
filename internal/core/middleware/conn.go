package middleware

import (
	"context"
	"io"
	"net"
	"sync"
)

// Listener accepts connections that send the header of a response together with
// its body. net/http buffers 4 kB per connection: it would send the header of a
// larger response with the first bytes of the body, and the rest in a second
// system call, which wakes the client twice.
type Listener struct{ net.Listener }

// Accept implements net.Listener.
func (l Listener) Accept() (net.Conn, error) {
	accepted, err := l.Listener.Accept()
	if tcp, ok := accepted.(*net.TCPConn); ok && err == nil {
		return &joiningConn{TCPConn: tcp}, nil
	}
	return accepted, err
}

// joiningConn delays the first write of a response and sends it together with the
// second. Only the goroutine that serves the connection writes to it.
type joiningConn struct {
	*net.TCPConn
	held *heldWrite // nil unless writes are being joined
}

// heldWrite holds bytes that were written but not yet sent.
type heldWrite struct {
	bytes  [connBuffer]byte
	length int
}

// connBuffer is the size of net/http's buffer. With any other size, writes would
// be sent separately.
const connBuffer = 4 << 10

var heldWrites = sync.Pool{New: func() any { return new(heldWrite) }}

// Write implements net.Conn.
func (c *joiningConn) Write(p []byte) (int, error) {
	switch held := c.held; {
	case held == nil:
		return c.TCPConn.Write(p)
	case held.length == 0 && len(p) <= connBuffer:
		held.length = copy(held.bytes[:], p) // net/http reuses p
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

// ConnContext must be the ConnContext of an http.Server that uses a Listener. It
// makes the connection available to the middleware.
func ConnContext(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, c)
}

// writeJoined writes part of a response to w, joining the header and the body. It
// sends everything before it returns.
func writeJoined(ctx context.Context, w io.Writer, p []byte) (n int, err error) {
	c, ok := ctx.Value(connKey{}).(*joiningConn)
	if !ok || len(p) < 2*connBuffer { // less could stay in net/http's buffer
		return w.Write(p)
	}
	c.held = heldWrites.Get().(*heldWrite)
	n, err = w.Write(p)
	if c.held.length > 0 {
		_, sendErr := c.TCPConn.Write(c.held.bytes[:c.held.length])
		if err == nil {
			err = sendErr
		}
		c.held.length = 0
	}
	heldWrites.Put(c.held)
	c.held = nil
	return n, err
}
