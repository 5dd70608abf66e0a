package blackbox

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"palmares/internal/core/store"
	"palmares/internal/dev/testkit"
	"palmares/internal/dev/testkit/wait"
)

// Server is a running process and where it listens.
type Server struct {
	Cmd     *exec.Cmd
	Address string // host:port
	Log     *testkit.Log
	Done    chan error
}

// Serve starts a server on a database, which ends with the test.
func Serve(t testing.TB, cfg store.Config, args ...string) *Server {
	t.Helper()
	return Serving(t, Command(t, cfg, append([]string{"serve", "--listen", "127.0.0.1:0"}, args...)...))
}

// Serving starts a process that serves.
func Serving(t testing.TB, cmd *exec.Cmd) *Server {
	t.Helper()
	s := &Server{Cmd: cmd, Log: &testkit.Log{}, Done: make(chan error, 1)}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = s.Log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for s.Address == "" && lines.Scan() {
		if _, after, found := strings.Cut(lines.Text(), "http://"); found {
			s.Address, _, _ = strings.Cut(after, "/")
		}
	}
	go func() {
		_, _ = io.Copy(io.Discard, out)
		s.Done <- cmd.Wait()
	}()
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	if s.Address == "" {
		<-s.Done
		t.Fatalf("it prints no address:\n%s", s.Log)
	}
	return s
}

// ServeClosed starts a public server that sends no mail, so that nobody can
// sign up.
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
	defer http.DefaultClient.CloseIdleConnections() // they would hold up the server's end
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

// Call sends one request, with headers in pairs.
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
	data, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	response.Body = io.NopCloser(strings.NewReader(string(data)))
	return response
}

// Ends waits for an orderly end.
func (s *Server) Ends(t testing.TB) {
	t.Helper()
	if err := wait.Receive(t, "the server ends", s.Done); err != nil {
		t.Errorf("it ends with %v:\n%s", err, s.Log)
	}
}

var printedLink = regexp.MustCompile(`"to":"([^"]+)".*"link":"([^"]+)","code":"(\d{6})"`)

// Printed waits for an email to an address that the server prints to its log.
// After is how many came before.
func (s *Server) Printed(t testing.TB, to string, after int) (link, code string) {
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
