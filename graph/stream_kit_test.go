package graph_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"palmares/graph"
	"palmares/internal/catalog/feed/demo"
	"palmares/internal/core/store"
	"palmares/internal/dev/testkit/wait"
)

// serverLimit is how long the server itself lets a request take.
const serverLimit = 10 * time.Second

// listening is a server of streams, with limits as the real one has.
type listening struct {
	*graph.Handler
	conns    *connections
	executor *graph.Executor
	server   *httptest.Server
	store    *store.Store
	releases int
}

func listen(t *testing.T, s *store.Store) *listening {
	t.Helper()
	l := &listening{executor: newExecutor(s), store: s}
	l.Handler = newHandler(l.executor)
	l.server = httptest.NewUnstartedServer(l.Handler)
	l.server.Config.ReadTimeout, l.server.Config.WriteTimeout = serverLimit, serverLimit
	l.conns = &connections{Listener: l.server.Listener}
	l.server.Listener = l.conns
	l.server.Start()
	t.Cleanup(l.server.Close)
	t.Cleanup(l.Handler.Close)
	return l
}

// connections records until when each connection may be written to.
type connections struct {
	net.Listener
	mu  sync.Mutex
	all []*trackedConn
}

type trackedConn struct {
	net.Conn
	mu    sync.Mutex
	until time.Time
}

func (c *connections) Accept() (net.Conn, error) {
	conn, err := c.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all = append(c.all, &trackedConn{Conn: conn})
	return c.all[len(c.all)-1], nil
}

func (c *trackedConn) SetWriteDeadline(until time.Time) error {
	c.mu.Lock()
	c.until = until
	c.mu.Unlock()
	return c.Conn.SetWriteDeadline(until)
}

// extended counts the connections that may be written to for longer than the
// server allows for a request that began before a time.
func (c *connections) extended(began time.Time) (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, conn := range c.all {
		conn.mu.Lock()
		if conn.until.After(began.Add(serverLimit)) {
			n++
		}
		conn.mu.Unlock()
	}
	return n
}

// publish brings out one more release, without telling streams.
func (l *listening) publish(t *testing.T) {
	t.Helper()
	l.releases++
	publish(t, l.store, bytes.Replace(demo.Catalog, []byte("2026-11-10"), fmt.Appendf(nil, "2026-12-%02d", l.releases), 1))
}

const subscribe = `subscription {catalogPublished {release}}`

// stream is one open stream, line by line.
type stream struct {
	*http.Response
	lines chan string // closed at the end
	leave context.CancelFunc
}

func (l *listening) open(t *testing.T, headers ...string) *stream {
	t.Helper()
	ctx, leave := context.WithCancel(t.Context())
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, l.server.URL, strings.NewReader(`{"query":"`+subscribe+`"}`))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "text/event-stream")
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	s := &stream{response, make(chan string, 10_000), leave}
	t.Cleanup(leave)
	go func() {
		defer close(s.lines)
		defer response.Body.Close()
		hint := false // of when and where to reconnect, which is no event
		for scanner := bufio.NewScanner(response.Body); scanner.Scan(); {
			line := scanner.Text()
			if hint = hint && line != "" || strings.HasPrefix(line, "retry: "); !hint {
				s.lines <- line
			}
		}
	}()
	return s
}

// events are the next so many, comments apart.
func (s *stream) events(t *testing.T, n int) []string {
	t.Helper()
	var events []string
	event := ""
	for deadline := time.After(wait.Limit); len(events) < n; {
		select {
		case line, ok := <-s.lines:
			switch {
			case !ok:
				t.Fatalf("the stream ended after %q", events)
			case strings.HasPrefix(line, ":"):
			case line == "" && event != "":
				events, event = append(events, event), ""
			case line != "":
				event += line + "|"
			}
		case <-deadline:
			t.Fatalf("only %q came", events)
		}
	}
	return events
}

func (s *stream) ends(t *testing.T) {
	t.Helper()
	deadline := time.After(wait.Limit)
	for {
		select {
		case line, ok := <-s.lines:
			if !ok {
				return
			}
			if strings.HasPrefix(line, "event: complete") {
				t.Error("it says that there is no reason to come again")
			}
		case <-deadline:
			t.Fatal("the stream does not end")
		}
	}
}

// ids are those of the events that tell of releases.
func publications(t *testing.T, s *store.Store) []string {
	return storedEvents(t, s, "catalog.published")
}

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	wait.Until(t, what, holds)
}
