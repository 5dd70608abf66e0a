package blackbox

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"palmares/internal/core/store"
	"palmares/internal/dev/testkit"
	"palmares/internal/dev/testkit/wait"
)

// Server is a running palmares process.
type Server struct {
	Cmd     *exec.Cmd
	Address string // host:port
	Log     *testkit.Log
	Done    chan error
}

// Serve starts a server on a database, which is killed with the test.
func Serve(t testing.TB, cfg store.Config, args ...string) *Server {
	t.Helper()
	return ServeCommand(t, Command(t, cfg, append([]string{"serve", "--listen", "127.0.0.1:0"}, args...)...))
}

var printedAddress = regexp.MustCompile(`http://([^/\s]+)`)

// ServeCommand starts a prepared command that serves.
func ServeCommand(t testing.TB, cmd *exec.Cmd) *Server {
	t.Helper()
	s := &Server{Cmd: cmd, Log: &testkit.Log{}, Done: make(chan error, 1)}
	cmd.Stderr = s.Log
	address, err := testkit.StartListening(cmd, printedAddress)
	if err != nil {
		t.Fatalf("%v\n%s", err, s.Log)
	}
	s.Address = address
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	go func() { s.Done <- cmd.Wait() }()
	return s
}

// ServeClosed starts a public server that cannot send email, so that nobody
// can sign up.
func ServeClosed(t testing.TB) *Server {
	t.Helper()
	s := &Server{Log: &testkit.Log{}, Address: FreeAddress(t)}
	s.Cmd = Command(t, testkit.SQLite(t), "serve", "--listen", s.Address, "--public-url", "https://palmares.example")
	s.Cmd.Stderr = s.Log
	if err := s.Cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Cmd.Process.Kill(); _ = s.Cmd.Wait() })
	testkit.WaitFor(t, s.Address)
	return s
}

// Get returns the status and the decoded body.
func (s *Server) Get(t testing.TB, path string) (int, map[string]any) {
	t.Helper()
	defer http.DefaultClient.CloseIdleConnections() // they would delay a graceful shutdown
	response, err := http.Get("http://" + s.Address + path)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var body map[string]any
	if err := json.NewDecoder(response.Body).Decode(&body); err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, body
}

// Call sends a request with headers in pairs, and returns the response with its
// body already read.
func (s *Server) Call(t testing.TB, method, path, body string, headers ...string) *http.Response {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, "http://"+s.Address+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	data := ReadAll(t, response.Body)
	response.Body.Close()
	response.Body = io.NopCloser(strings.NewReader(data))
	return response
}

// WaitForExit waits for the server to exit, which must be without an error.
func (s *Server) WaitForExit(t testing.TB) {
	t.Helper()
	if err := wait.Receive(t, "the server exits", s.Done); err != nil {
		t.Errorf("got %v, want a clean exit\n%s", err, s.Log)
	}
}

var printedLink = regexp.MustCompile(`"to":"([^"]+)".*"link":"([^"]+)","code":"(\d{6})"`)

// WaitForEmail waits for a sign-in email that the server prints to its log, and
// skips as many to the same address as after says.
func (s *Server) WaitForEmail(t testing.TB, to string, after int) (link, code string) {
	t.Helper()
	wait.Until(t, "an email to "+to+" in the log", func() bool {
		n := 0
		for _, found := range printedLink.FindAllStringSubmatch(s.Log.String(), -1) {
			if found[1] != to {
				continue
			}
			if n++; n > after {
				link, code = found[2], found[3]
				return true
			}
		}
		return false
	})
	return link, code
}

// Inbox is a receiver of webhooks.
type Inbox struct {
	*httptest.Server
	mu   sync.Mutex
	got  []http.Header
	hold chan struct{} // delays responses until it is closed, if not nil
}

// NewInbox starts a receiver, which is closed with the test.
func NewInbox(t testing.TB) *Inbox {
	in := &Inbox{}
	in.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // otherwise the server does not notice a closed connection
		in.mu.Lock()
		in.got = append(in.got, r.Header)
		hold := in.hold
		in.mu.Unlock()
		if hold != nil {
			select {
			case <-hold:
			case <-r.Context().Done():
			}
		}
	}))
	t.Cleanup(in.Close)
	return in
}

// Hold delays responses from now on until the channel is closed; nil ends it.
func (in *Inbox) Hold(until chan struct{}) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.hold = until
}

// All returns the headers of the events received so far.
func (in *Inbox) All() []http.Header {
	in.mu.Lock()
	defer in.mu.Unlock()
	return slices.Clone(in.got)
}

// Wait waits until n events have arrived.
func (in *Inbox) Wait(t testing.TB, n int) {
	t.Helper()
	wait.Until(t, fmt.Sprintf("%d events have arrived", n), func() bool { return len(in.All()) >= n })
}
