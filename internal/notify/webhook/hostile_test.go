package webhook

import (
	"bufio"
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"palmares/ent"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit/wait"
)

// hostile is a receiver that does not follow the rules of HTTP.
type hostile struct {
	serve    func(conn net.Conn) // after the request was read
	status   int
	response string // its start
	maxRead  int64  // bytes that we may read; 0 for the usual limit
	unread   bool   // serve gets the connection before the request was read
	tls      bool   // the URL is https
	slow     bool   // only the timeout ends the attempt
}

// slowAttempt is the timeout of attempts that only the timeout ends.
const slowAttempt = 5 * time.Second

// usualMaxRead is the limit of a response and its header, with a connection's buffers.
const usualMaxRead = maxResponse + 32<<10 + 32<<10

const (
	closedEarly = "the connection was closed before a response arrived"
	timedOut    = "the request timed out"
)

var hostiles = map[string]hostile{
	"never reads":                   {serve: silence, response: timedOut, slow: true, unread: true},
	"closes at once":                {serve: func(net.Conn) {}, unread: true},
	"closes after the request":      {serve: func(net.Conn) {}, response: closedEarly},
	"resets after the request":      {serve: reset, response: closedEarly},
	"closes in the status":          {serve: writes("HTTP/1.1 20"), response: "the connection failed"},
	"closes in the header":          {serve: writes("HTTP/1.1 200 OK\r\nX-A: b"), response: closedEarly},
	"closes in the body":            {serve: writes("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf"), status: 200, response: "half"},
	"closes in a chunk":             {serve: writes("HTTP/1.1 500 No\r\nTransfer-Encoding: chunked\r\n\r\n64\r\nhalf"), status: 500, response: "half"},
	"resets in the body":            {serve: func(c net.Conn) { writes("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n")(c); reset(c) }, status: 200},
	"silent in the status":          {serve: then("HTTP/1.1 ", silence), response: timedOut, slow: true},
	"silent in the header":          {serve: then("HTTP/1.1 200 OK\r\nX-A: b", silence), response: timedOut, slow: true},
	"silent in the body":            {serve: then("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nha", silence), status: 200, response: "ha", slow: true},
	"silent in a chunk":             {serve: then("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nff\r\nha", silence), status: 200, response: "ha", slow: true},
	"silent in the trailer":         {serve: then("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nha\r\n0\r\nX: ", silence), status: 200, response: "ha", slow: true},
	"drips the header":              {serve: then("HTTP/1.1 200 OK\r\n", dripping("X: y\r\n")), response: timedOut, slow: true},
	"drips the body":                {serve: then("HTTP/1.1 200 OK\r\n\r\n", dripping("x")), status: 200, response: "x", slow: true},
	"endless status":                {serve: then("HTTP/1.1 200 ", endless("x"))},
	"endless header":                {serve: then("HTTP/1.1 200 OK\r\n", endless("X-Something: and its value\r\n"))},
	"long header":                   {serve: writes("HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 64<<10) + "\r\n\r\n"), response: "the connection failed"},
	"endless header line":           {serve: then("HTTP/1.1 200 OK\r\nX: ", endless("x"))},
	"endless header name":           {serve: then("HTTP/1.1 200 OK\r\n", endless("x"))},
	"endless continuation line":     {serve: then("HTTP/1.1 200 OK\r\nX: y\r\n", endless(" z\r\n"))},
	"endless early hints":           {serve: endless("HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n")},
	"endless continue":              {serve: endless("HTTP/1.1 100 Continue\r\n\r\n")},
	"endless body":                  {serve: then("HTTP/1.1 200 OK\r\n\r\n", endless("x")), status: 200, response: "xxx"},
	"endless body of known length":  {serve: then("HTTP/1.1 200 OK\r\nContent-Length: 9223372036854775807\r\n\r\n", endless("x")), status: 200, response: "xxx"},
	"endless chunk":                 {serve: then("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n7fffffffffffffff\r\n", endless("x")), status: 200, response: "xxx"},
	"endless chunk header":          {serve: then("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;", endless("x")), status: 200},
	"tiny chunks":                   {serve: then("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", endless("1;xxxxxxxx\r\ny\r\n")), status: 200, response: "yyy", maxRead: 20 * maxResponse},
	"tiny chunks, long extensions":  {serve: then("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", endless("1;"+strings.Repeat("x", 1_000)+"\r\ny\r\n")), status: 200, response: "yyy"},
	"endless trailer":               {serve: then("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X\r\n\r\n0\r\n", endless("X: y\r\n")), status: 200},
	"data after the body":           {serve: then("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", endless("x")), status: 200, response: "ok"},
	"data after no body":            {serve: then("HTTP/1.1 204 No Content\r\n\r\n", endless("x")), status: 204},
	"gzip bomb":                     {serve: writes("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n" + bomb()), status: 200, response: "�"},
	"gzip without gzip":             {serve: writes("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\nplain"), status: 200, response: "plain"},
	"no HTTP":                       {serve: writes("220 mail.example ESMTP\r\n")},
	"zeros":                         {serve: endless("\x00")},
	"HTTP/2 without TLS":            {serve: writes("\x00\x00\x00\x04\x00\x00\x00\x00\x00")},
	"negative length":               {serve: writes("HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n")},
	"two lengths":                   {serve: writes("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxx")},
	"status 000":                    {serve: writes("HTTP/1.1 000 Zero\r\nContent-Length: 0\r\n\r\n")},
	"status 999":                    {serve: writes("HTTP/1.1 999 Odd\r\nContent-Length: 0\r\n\r\n"), status: 999},
	"switches protocols, silent":    {serve: then(switching, silence), status: 101},
	"switches protocols, endless":   {serve: then(switching, endless("x")), status: 101},
	"switches without an upgrade":   {serve: then("HTTP/1.1 101 Switching Protocols\r\n\r\n", silence), status: 101},
	"redirects nowhere":             {serve: writes("HTTP/1.1 302 Found\r\nContent-Length: 0\r\n\r\n"), status: 302},
	"redirects to an invalid URL":   {serve: writes("HTTP/1.1 302 Found\r\nLocation: http://[::1\r\nContent-Length: 3\r\n\r\nbye"), status: 302, response: "bye"},
	"redirects to an invalid path":  {serve: writes("HTTP/1.1 308 Moved\r\nLocation: /%zz\r\nContent-Length: 0\r\n\r\n"), status: 308},
	"redirects with a long URL":     {serve: writes("HTTP/1.1 307 Moved\r\nLocation: http://127.0.0.1/" + strings.Repeat("x", 30_000) + "\r\nContent-Length: 0\r\n\r\n"), status: 307},
	"redirects with an endless URL": {serve: then("HTTP/1.1 307 Moved\r\nLocation: http://127.0.0.1/", endless("x"))},
	"silent handshake":              {serve: silence, tls: true, unread: true, response: timedOut, slow: true},
	"endless handshake":             {serve: endless("\x16\x03\x03\x00\x01\x02"), tls: true, unread: true},
	"plain text handshake":          {serve: endless("HTTP/1.1 200 OK\r\n"), tls: true, unread: true, response: "the TLS certificate is not valid or the handshake failed"},
}

const switching = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n"

// silence waits until the other side closes the connection.
func silence(conn net.Conn) {
	buffer := make([]byte, 1)
	for {
		// Reading nothing does not notice a close, so it reads slowly.
		if _, err := conn.Read(buffer); err != nil {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// reset closes a connection with a reset.
func reset(conn net.Conn) {
	_ = conn.(*net.TCPConn).SetLinger(0)
	_ = conn.Close()
}

func writes(text string) func(net.Conn) {
	return func(conn net.Conn) { _, _ = io.WriteString(conn, text) }
}

func then(text string, rest func(net.Conn)) func(net.Conn) {
	return func(conn net.Conn) {
		writes(text)(conn)
		rest(conn)
	}
}

// endless repeats a text until the other side closes the connection.
func endless(text string) func(net.Conn) {
	text = strings.Repeat(text, max(1, 4096/len(text)))
	return func(conn net.Conn) {
		for {
			if _, err := io.WriteString(conn, text); err != nil {
				return
			}
		}
	}
}

func dripping(text string) func(net.Conn) {
	return func(conn net.Conn) {
		for {
			if _, err := io.WriteString(conn, text); err != nil {
				return
			}
			time.Sleep(10 * time.Millisecond)
		}
	}
}

// bomb returns few bytes that decompress to many.
func bomb() string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	zeros := make([]byte, 1<<20)
	for range 32 {
		_, _ = w.Write(zeros)
	}
	_ = w.Close()
	return b.String()
}

// startHostile listens for connections until the test ends, and returns its address.
func startHostile(t *testing.T, config *tls.Config, serve func(net.Conn)) (address string) {
	t.Helper()
	listener := check.Try(net.Listen("tcp", "127.0.0.1:0")).OK(t)
	address = listener.Addr().String()
	var mu sync.Mutex
	var open []net.Conn
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			_ = conn.(*net.TCPConn).SetReadBuffer(16 << 10) // so that large requests wait for serve to read
			if config != nil {
				conn = tls.Server(conn, config)
			}
			mu.Lock()
			open = append(open, conn)
			mu.Unlock()
			go func() { defer conn.Close(); serve(conn) }()
		}
	}()
	t.Cleanup(func() {
		_ = listener.Close()
		mu.Lock()
		defer mu.Unlock()
		for _, conn := range open {
			_ = conn.Close()
		}
	})
	return address
}

// start starts the receiver and returns its URL.
func (h hostile) start(t *testing.T) string {
	t.Helper()
	scheme := "http://"
	if h.tls {
		scheme = "https://"
	}
	return scheme + startHostile(t, nil, func(conn net.Conn) {
		if !h.unread {
			request, err := http.ReadRequest(bufio.NewReader(conn))
			if err != nil {
				return
			}
			_, _ = io.Copy(io.Discard, request.Body)
		}
		h.serve(conn)
	})
}

// measured is Webhooks that count what they read and the connections they open.
type measured struct {
	*Webhooks
	read, dials atomic.Int64
	ended       chan outcome
}

func newMeasured(slow bool) *measured {
	m := &measured{Webhooks: New(Config{Loopback: true}), ended: make(chan outcome, 1)}
	m.timing.attempt = wait.Limit
	if slow {
		m.timing.attempt = slowAttempt
	}
	m.transport = m.newTransport()
	transport := m.transport.(*http.Transport)
	dial := transport.DialContext
	transport.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		m.dials.Add(1)
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &measuredConn{conn, m}, nil
	}
	return m
}

type measuredConn struct {
	net.Conn
	by *measured
}

func (c *measuredConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.by.read.Add(int64(n))
	return n, err
}

// start starts an attempt, whose outcome is sent to ended.
func (m *measured) start(ctx context.Context, url string, body []byte) {
	go func() { m.ended <- m.post(ctx, &ent.Endpoint{URL: url, Secret: newSecret()}, "msg_1", body, func() {}) }()
}

// An attempt ends and reads a limited number of bytes, whatever the receiver does.
func TestHostileReceivers(t *testing.T) {
	t.Parallel()
	attempts := map[string]*measured{}
	for name, test := range hostiles { // all at once, because some take long
		m, body := newMeasured(test.slow), []byte("{}")
		if name == "never reads" {
			body = make([]byte, 6<<20) // more than the buffers of a connection
		}
		attempts[name] = m
		m.start(t.Context(), test.start(t), body)
	}
	for name, test := range hostiles {
		m := attempts[name]
		o := wait.Receive(t, "the attempt ends: "+name, m.ended)
		check.True(t, o.status == test.status && strings.HasPrefix(o.response, test.response) && len(o.response) <= shownBytes,
			"%s: got %d %q, want %d %q", name, o.status, o.response, test.status, test.response)
		got, limit := m.read.Load(), cmp.Or(test.maxRead, usualMaxRead)
		check.True(t, got <= limit, "%s: got %d bytes read, want at most %d", name, got, limit)
		check.Equal(t, m.dials.Load(), 1, "%s: connections", name)
	}
}
