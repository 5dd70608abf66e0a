// Package blackbox runs palmares as a process, for tests that use
// it as operators and clients do.
package blackbox

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	catalog "palmares/internal/catalog/feed/demo"
	"palmares/internal/catalog/feed/synth"
	"palmares/internal/core/store"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
	"palmares/internal/dev/testkit/wait"
)

// Limit is much longer than any process runs in a test.
var Limit = 30 * time.Minute

// program replaces the program under test, for development tools.
var program string

// UseProgram makes commands run the program at a path.
func UseProgram(t testing.TB, path string) {
	t.Helper()
	path = check.Try(filepath.Abs(path)).OK(t)
	program = path
}

// Path returns the path of the program that commands run.
func Path(t testing.TB) string {
	t.Helper()
	if program != "" {
		return program
	}
	return testkit.Program(t, "palmares")
}

// Command prepares a palmares process on a database.
func Command(t testing.TB, cfg store.Config, args ...string) *exec.Cmd {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), Limit)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, Path(t), args...)
	cmd.Env = append(testkit.CleanEnv(), "DATABASE_URL="+cfg.DatabaseURL, "PALMARES_DATA_DIR="+cfg.DataDir)
	cmd.Dir = t.TempDir()
	return cmd
}

// Result is the exit code and output of a process.
type Result struct {
	Code     int
	Out, Err string
}

// Run runs a process until it exits.
func Run(t testing.TB, cmd *exec.Cmd) Result {
	t.Helper()
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return Result{cmd.ProcessState.ExitCode(), out.String(), errs.String()}
}

// MustRun runs a process that must exit with code 0.
func MustRun(t testing.TB, cmd *exec.Cmd) Result {
	t.Helper()
	r := Run(t, cmd)
	if r.Code != 0 {
		t.Fatalf("%v: got exit code %d, want 0\n%s", cmd.Args[1:], r.Code, r.Err)
	}
	return r
}

var accounts atomic.Int64

// NewKey creates a new account and an API key.
func NewKey(t testing.TB, cfg store.Config, plan string) string {
	t.Helper()
	return CreateKey(t, cfg, fmt.Sprintf("%s-%d@example.com", plan, accounts.Add(1)), plan)
}

// CreateKey creates an account and an API key on the command line.
func CreateKey(t testing.TB, cfg store.Config, email, plan string) string {
	t.Helper()
	MustRun(t, Command(t, cfg, "accounts", "create", email, "--plan", plan))
	return strings.TrimSpace(MustRun(t, Command(t, cfg, "keys", "create", email, "--name", "test")).Out)
}

// copyDemo copies the files of an embedded database with the demo catalog.
var copyDemo = testkit.Template(func(t testing.TB, dir string) {
	ImportDemo(t, store.Config{DataDir: dir})
})

// ImportDemo imports the demo catalog.
func ImportDemo(t testing.TB, cfg store.Config) {
	t.Helper()
	cmd := Command(t, cfg, "import", "-")
	cmd.Stdin = bytes.NewReader(catalog.Catalog())
	MustRun(t, cmd)
}

// Demo returns a new embedded database with the demo catalog.
func Demo(t testing.TB) store.Config {
	t.Helper()
	cfg := testkit.SQLite(t)
	copyDemo(t, cfg.DataDir)
	return cfg
}

// SynthFile writes a synthetic feed to a file.
func SynthFile(t testing.TB, opts synth.Options) string {
	t.Helper()
	var buf bytes.Buffer
	check.OK(t, synth.Write(t.Context(), &buf, opts))
	return WriteFile(t, "feed.ndjson", buf.Bytes())
}

// WriteFile writes a file that is removed when the test ends.
func WriteFile(t testing.TB, name string, data []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	check.OK(t, os.WriteFile(path, data, 0o600))
	return path
}

// ReadAll reads everything as text.
func ReadAll(t testing.TB, r io.Reader) string {
	t.Helper()
	data := check.Try(io.ReadAll(r)).OK(t)
	return string(data)
}

// Server is a running palmares process.
type Server testkit.Process

// Serve starts a server on a database. It is killed when the test ends.
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

// ServeWithoutSignIn starts a public server that cannot send email, so that nobody
// can sign up.
func ServeWithoutSignIn(t testing.TB) *Server {
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
	check.OK(t, json.NewDecoder(response.Body).Decode(&body))
	return response.StatusCode, body
}

// Call sends a request with headers in pairs, and returns the response with its
// body already read.
func (s *Server) Call(t testing.TB, method, path, body string, headers ...string) *http.Response {
	t.Helper()
	response, data, err := Do(t.Context(), http.DefaultClient, method, "http://"+s.Address+path, body, headers...)
	check.OK(t, err)
	response.Body = io.NopCloser(bytes.NewReader(data))
	return response
}

// Try is Call for other goroutines than the test's: it reports a failure, but does not
// end the test.
func (s *Server) Try(t testing.TB, method, path, body string, headers ...string) (status int, header http.Header, text string) {
	t.Helper()
	response, data, err := Do(t.Context(), http.DefaultClient, method, "http://"+s.Address+path, body, headers...)
	if err != nil {
		t.Errorf("%s %s: got %v, want a response", method, path, err)
		return 0, http.Header{}, ""
	}
	return response.StatusCode, response.Header, string(data)
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
	err := wait.Receive(t, "the server exits", s.Done)
	check.True(t, err == nil, "got %v, want a clean exit\n%s", err, s.Log)
}

// WaitForEmail waits for a sign-in email that the server writes to its log,
// skipping the first ones to the same address: after is their number.
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
