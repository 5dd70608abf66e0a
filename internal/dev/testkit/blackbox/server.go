package blackbox

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"palmares/internal/core/store"
	"palmares/internal/dev/testkit"
	"palmares/internal/dev/testkit/wait"
)

// Server is a running palmares process.
type Server testkit.Process

// Serve starts a server on a database, which is killed with the test.
func Serve(t testing.TB, cfg store.Config, args ...string) *Server {
	t.Helper()
	return ServeCommand(t, Command(t, cfg, append([]string{"serve", "--listen", "127.0.0.1:0"}, args...)...))
}

var printedAddress = regexp.MustCompile(`http://([^/\s]+)`)

// ServeCommand starts a prepared command that serves.
func ServeCommand(t testing.TB, cmd *exec.Cmd) *Server {
	t.Helper()
	return (*Server)(testkit.Start(t, cmd, printedAddress))
}

// ServeClosed starts a public server that cannot send email, so that nobody
// can sign up.
func ServeClosed(t testing.TB) *Server {
	t.Helper()
	address := testkit.FreeAddress(t)
	cmd := Command(t, testkit.SQLite(t), "serve", "--listen", address, "--public-url", "https://palmares.example")
	return (*Server)(testkit.StartAt(t, cmd, address))
}

// Kill ends the server like a crash.
func (s *Server) Kill() { (*testkit.Process)(s).End(syscall.SIGKILL) }

// Get returns the status and the decoded body.
func (s *Server) Get(t testing.TB, path string) (int, map[string]any) {
	t.Helper()
	defer http.DefaultClient.CloseIdleConnections() // they would delay a graceful shutdown
	response := s.Call(t, http.MethodGet, path, "")
	var body map[string]any
	testkit.Check(t, json.NewDecoder(response.Body).Decode(&body))
	return response.StatusCode, body
}

// Call sends a request with headers in pairs, and returns the response with its
// body already read.
func (s *Server) Call(t testing.TB, method, path, body string, headers ...string) *http.Response {
	t.Helper()
	response, data, err := Do(t.Context(), http.DefaultClient, method, "http://"+s.Address+path, body, headers...)
	testkit.Check(t, err)
	response.Body = io.NopCloser(bytes.NewReader(data))
	return response
}

// Do sends a request with headers in pairs, and reads the response. A body is
// JSON.
func Do(ctx context.Context, client *http.Client, method, url, body string, headers ...string) (*http.Response, []byte, error) {
	r, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return nil, nil, err
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	response, err := client.Do(r)
	if err != nil {
		return nil, nil, err
	}
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	return response, data, err
}

// WaitForExit waits for the server to exit, which must be without an error.
func (s *Server) WaitForExit(t testing.TB) {
	t.Helper()
	if err := wait.Receive(t, "the server exits", s.Done); err != nil {
		t.Errorf("got %v, want a clean exit\n%s", err, s.Log)
	}
}

// WaitForEmail waits for a sign-in email that the server prints to its log, and
// skips as many to the same address as after says.
func (s *Server) WaitForEmail(t testing.TB, to string, after int) (link, code string) {
	t.Helper()
	printed := regexp.MustCompile(`"to":"` + regexp.QuoteMeta(to) + `".*"link":"([^"]+)","code":"(\d{6})"`)
	wait.Until(t, "an email to "+to+" in the log", func() bool {
		found := printed.FindAllStringSubmatch(s.Log.String(), -1)
		if len(found) <= after {
			return false
		}
		link, code = found[after][1], found[after][2]
		return true
	})
	return link, code
}
