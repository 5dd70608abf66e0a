package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/alecthomas/kong"
	"golang.org/x/sync/errgroup"

	"palmares/ent"
	"palmares/ent/release"
	"palmares/internal/catalog/feed"
	"palmares/internal/catalog/feed/demo"
	"palmares/internal/catalog/feed/synth"
	"palmares/internal/core/store"
	"palmares/internal/dev/testkit"
	"palmares/internal/dev/testkit/blackbox"
	"palmares/internal/dev/testkit/wait"
)

// A webhook receiver cannot write into the log through the HTTP client.
func TestDefaultLogger(t *testing.T) {
	former := slog.Default()
	var output testkit.Log
	setDefaultLogger(slog.New(slog.NewTextHandler(&output, nil)))
	t.Cleanup(func() { slog.SetDefault(former); log.SetOutput(os.Stderr) })
	closed := make(chan struct{})
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		defer close(closed)
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\nbuy now")
		_, _ = io.Copy(io.Discard, conn) // until the client has noticed and closes the connection
		_ = conn.Close()
	}))
	t.Cleanup(receiver.Close)
	client := &http.Client{Transport: &http.Transport{}}
	response, err := client.Get(receiver.URL)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	<-closed
	slog.Info("our own line")
	if text := output.String(); strings.Contains(text, "buy now") || !strings.Contains(text, "our own line") {
		t.Errorf("got log %s, want only our own line", text)
	}
}

// server is a running palmares server.
type server struct {
	cmd     *exec.Cmd
	address string // host:port
	log     *testkit.Log
	done    chan error
}

func startServer(t testing.TB, cfg store.Config, args ...string) *server {
	t.Helper()
	return startCommand(t, palmares(t, cfg, append([]string{"serve", "--listen", "127.0.0.1:0"}, args...)...))
}

// startCommand starts a server and waits until it listens.
func startCommand(t testing.TB, cmd *exec.Cmd) *server {
	t.Helper()
	return fromBlackbox(blackbox.ServeCommand(t, cmd))
}

func fromBlackbox(s *blackbox.Server) *server { return &server{s.Cmd, s.Address, s.Log, s.Done} }

func (s *server) blackbox() *blackbox.Server {
	return &blackbox.Server{Cmd: s.cmd, Address: s.address, Log: s.log, Done: s.done}
}

// get returns the status and the decoded JSON body of a path.
func (s *server) get(t testing.TB, path string) (int, map[string]any) {
	t.Helper()
	return s.blackbox().Get(t, path)
}

// call sends a request. Headers are name, value pairs.
func (s *server) call(t testing.TB, method, path, body string, headers ...string) *http.Response {
	t.Helper()
	return s.blackbox().Call(t, method, path, body, headers...)
}

// waitForExit waits for the process to exit with code 0.
func (s *server) waitForExit(t testing.TB) {
	t.Helper()
	s.blackbox().WaitForExit(t)
}

// A server that is started during an import waits for its end.
func TestServeWaitsForImports(t *testing.T) {
	t.Parallel()
	cfg := testkit.SQLite(t)
	var s settings
	if _, err := kong.Must(&s).Parse([]string{"--listen", "127.0.0.1:0", "--data-dir", cfg.DataDir}); err != nil {
		t.Fatal(err)
	}
	log := &testkit.Log{}
	started := make(chan error, 1)
	err := testkit.Open(t, cfg).Exclusive(t.Context(), func(*ent.Tx) error {
		go func() {
			p, err := newProgram(t.Context(), &s, slog.New(slog.NewTextHandler(log, nil)), nil, false)
			if err == nil {
				p.close()
			}
			started <- err
		}()
		wait.Until(t, "the server waits", func() bool {
			return len(started) > 0 || strings.Contains(log.String(), "waiting for another import")
		})
		if len(started) > 0 {
			t.Error("the server did not wait for the end of the import")
		}
		return nil
	})
	testkit.Check(t, err)
	if err := <-started; err != nil {
		t.Errorf("after the import: got %v, want no error", err)
	}
}

func TestServeDemo(t *testing.T) {
	t.Parallel()
	testkit.Each(t, func(t *testing.T, cfg store.Config) {
		for _, start := range []string{"empty database", "database with the demo catalog"} {
			s := startServer(t, cfg, "--demo")
			if code, body := s.get(t, "/healthz"); code != 200 || body["status"] != "alive" {
				t.Errorf("%s: /healthz: got %d %v, want 200 alive", start, code, body)
			}
			wait.Until(t, "the catalog is in memory", func() bool { code, _ := s.get(t, "/readyz"); return code == 200 })
			if code, body := s.get(t, "/readyz"); code != 200 || fmt.Sprint(body) != "map[release:8 status:ready updated_at:2026-11-10]" {
				t.Errorf("%s: /readyz: got %d %v, want 200 and release 8", start, code, body)
			}
			_ = s.cmd.Process.Signal(syscall.SIGTERM)
			s.waitForExit(t)
		}
		if r := mustRun(t, palmares(t, cfg, "export")); r.out != string(demo.Catalog()) {
			t.Errorf("got a catalog of %d bytes, want the demo catalog", len(r.out))
		}
	})
}

// The next start continues one that was interrupted between two editions, and
// servers that start at the same time do not affect each other.
func TestPublishDemo(t *testing.T) {
	t.Parallel()
	editions, err := demo.Editions()
	testkit.Check(t, err)
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		for _, edition := range editions[:3] {
			_, err := feed.Import(t.Context(), s, bytes.NewReader(edition.Feed), feed.Options{})
			testkit.Check(t, err)
		}
		group, ctx := errgroup.WithContext(t.Context())
		for range 3 {
			group.Go(func() error {
				release, err := s.CurrentRelease(ctx)
				if err != nil {
					return err
				}
				return publishDemo(ctx, s, release)
			})
		}
		testkit.Check(t, group.Wait())
		var dates []string
		for _, release := range s.Read.Release.Query().Order(release.ByID()).AllX(t.Context()) {
			dates = append(dates, release.FeedDate)
		}
		var want []string
		for _, edition := range editions {
			want = append(want, edition.Date)
		}
		if !slices.Equal(dates, want) {
			t.Errorf("got releases of %v, want %v", dates, want)
		}
		var exported bytes.Buffer
		testkit.Check(t, feed.Export(t.Context(), s, &exported, 0))
		if exported.String() != string(demo.Catalog()) {
			t.Errorf("got a catalog of %d bytes, want the demo catalog", exported.Len())
		}
	})
}

func TestServerDetectsImports(t *testing.T) {
	t.Parallel()
	testkit.Each(t, func(t *testing.T, cfg store.Config) {
		s := startServer(t, cfg)
		wait.Until(t, "the server is ready without a release", func() bool {
			code, body := s.get(t, "/readyz")
			return code == 200 && body["release"] == 0.0
		})
		for release := 1; release <= 3; release++ {
			mustRun(t, palmares(t, cfg, "import", synthFile(t, synth.Options{Tools: 50, Seed: 1, Revision: release})))
			wait.Until(t, fmt.Sprint("release ", release), func() bool {
				_, body := s.get(t, "/readyz")
				return body["release"] == float64(release)
			})
		}
	})
}

// A request that is in flight when the server shuts down receives its response.
func TestShutdownFinishesRequests(t *testing.T) {
	t.Parallel()
	s := startServer(t, testkit.SQLite(t), "--demo")
	slow, err := net.Dial("tcp", s.address)
	if err != nil {
		t.Fatal(err)
	}
	defer slow.Close()
	const query = `{"query":"{feed {release}}"}`
	fmt.Fprintf(slow, "POST /graphql HTTP/1.1\r\nHost: palmares\r\nContent-Type: application/json\r\nContent-Length: %d\r\nExpect: 100-continue\r\n\r\n", len(query))
	slowReader := bufio.NewReader(slow)
	if line, err := slowReader.ReadString('\n'); line != "HTTP/1.1 100 Continue\r\n" { // the server waits for the body
		t.Fatalf("got %q and %v, want 100 Continue", line, err)
	}
	idle, err := net.Dial("tcp", s.address)
	if err != nil {
		t.Fatal(err)
	}
	defer idle.Close()
	fmt.Fprintf(idle, "GET /healthz HTTP/1.1\r\nHost: palmares\r\n\r\n")
	reader := bufio.NewReader(idle)
	if response, err := http.ReadResponse(reader, nil); err != nil || response.Close {
		t.Fatalf("got %v, want an open connection", err)
	} else {
		_, _ = io.Copy(io.Discard, response.Body)
	}
	_ = s.cmd.Process.Signal(syscall.SIGTERM)
	wait.Until(t, "the server accepts no new connections", func() bool {
		probe, err := net.Dial("tcp", s.address)
		if err == nil {
			_ = probe.Close()
		}
		return err != nil
	})
	fmt.Fprintf(idle, "GET /healthz HTTP/1.1\r\nHost: palmares\r\n\r\n")
	if response, err := http.ReadResponse(reader, nil); err != nil || response.StatusCode != 200 || !response.Close {
		t.Errorf("idle connection: got %v, %v, want 200 and close", response, err)
	}
	fmt.Fprint(slow, query)
	if response := readAll(t, slowReader); !strings.Contains(response, "HTTP/1.1 200 OK") || !strings.Contains(response, `"release":8`) {
		t.Errorf("slow request: got %q, want 200", response)
	}
	s.waitForExit(t)
}

func TestReadyWithoutMigrations(t *testing.T) {
	t.Parallel()
	cfg := testkit.Postgres(t)
	s := startServer(t, cfg, "--demo")
	db := testkit.Open(t, cfg)
	if _, err := db.Write.ExecContext(t.Context(), "ALTER TABLE schema_migrations RENAME TO elsewhere"); err != nil {
		t.Fatal(err)
	}
	if code, body := s.get(t, "/readyz"); code != 503 || !strings.HasSuffix(fmt.Sprint(body["error"]), "migration(s) are pending: run palmares migrate up") {
		t.Errorf("/readyz: got %d %v, want 503", code, body)
	}
	if code, _ := s.get(t, "/healthz"); code != 200 {
		t.Errorf("/healthz: got %d, want 200", code)
	}
}

func TestCORSHeaders(t *testing.T) {
	t.Parallel()
	s := startServer(t, testkit.SQLite(t), "--demo")
	defer http.DefaultClient.CloseIdleConnections()
	for method, headers := range map[string]map[string]string{
		http.MethodOptions: {"Access-Control-Allow-Origin": "*", "Access-Control-Allow-Methods": "GET, HEAD, POST, QUERY", "Access-Control-Allow-Headers": "Authorization, Content-Type, If-None-Match, If-Range, Last-Event-ID, Range, traceparent, apollographql-client-name, apollographql-client-version, MCP-Protocol-Version"},
		http.MethodPost:    {"Access-Control-Allow-Origin": "*"},
	} {
		r, err := http.NewRequestWithContext(t.Context(), method, "http://"+s.address+"/graphql", strings.NewReader(`{"query":"{feed {release}}"}`))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Origin", "https://dashboard.example")
		r.Header.Set("Content-Type", "application/json")
		if method == http.MethodOptions {
			r.Header.Set("Access-Control-Request-Method", http.MethodPost)
			r.Header.Set("Access-Control-Request-Headers", "content-type")
		}
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		for name, want := range headers {
			if got := response.Header.Get(name); got != want {
				t.Errorf("%s: got %s %q, want %q", method, name, got, want)
			}
		}
		if exposed := response.Header.Get("Access-Control-Expose-Headers"); method == http.MethodPost && !strings.Contains(strings.ToLower(exposed), "x-graphql-cost") {
			t.Errorf("got exposed headers %q, want x-graphql-cost among them", exposed)
		}
	}
}

func TestAddressInUse(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	r := runCmd(t, palmares(t, testkit.SQLite(t), "serve", "--listen", taken.Addr().String()))
	if want := "palmares: cannot listen on " + taken.Addr().String() + ": the address is already in use\n"; r.code != 1 || r.err != want {
		t.Errorf("got exit code %d and %q, want 1 and %q", r.code, r.err, want)
	}
}

func TestConcurrentMigrations(t *testing.T) {
	t.Parallel()
	testkit.EachNew(t, func(t *testing.T, cfg store.Config) {
		var all sync.WaitGroup
		var mu sync.Mutex
		applied := 0
		for range 10 {
			cmd := palmares(t, cfg, "migrate", "up")
			all.Go(func() {
				r := runCmd(t, cmd)
				mu.Lock()
				defer mu.Unlock()
				applied += strings.Count(r.out, "applied")
				if r.code != 0 {
					t.Errorf("got exit code %d and %q, want 0", r.code, r.err)
				}
			})
		}
		all.Wait()
		status := mustRun(t, palmares(t, cfg, "migrate", "status"))
		if steps := strings.Count(status.out, "\n"); applied != steps {
			t.Errorf("got %d migrations applied, want %d", applied, steps)
		}
	})
}

// A server that is shutting down reports it before it stops accepting
// connections, so that load balancers can stop sending requests.
func TestDrainDelay(t *testing.T) {
	t.Parallel()
	const delay = time.Minute // the test does not wait that long
	s := startServer(t, blackbox.Demo(t), "--demo", "--drain-delay", delay.String())
	idle, err := net.Dial("tcp", s.address)
	if err != nil {
		t.Fatal(err)
	}
	defer idle.Close()
	_ = s.cmd.Process.Signal(syscall.SIGTERM)
	wait.Until(t, "the server has received the signal and loaded the catalog", func() bool {
		_, body := s.get(t, "/readyz")
		return body["error"] == "the server is shutting down"
	})

	for range 10 {
		code, body := s.get(t, "/readyz") // on a new connection
		if code != 503 || body["error"] != "the server is shutting down" {
			t.Fatalf("/readyz: got %d %v, want 503", code, body)
		}
		if code, body := s.get(t, "/api/v1/stats"); code != 200 {
			t.Fatalf("new request: got %d %v, want 200", code, body)
		}
	}
	fmt.Fprintf(idle, "GET /healthz HTTP/1.1\r\nHost: palmares\r\n\r\n")
	response, err := http.ReadResponse(bufio.NewReader(idle), nil)
	if err != nil || response.Close {
		t.Errorf("got %v, %v, want the connection to stay open during the delay", response, err)
	} else {
		_, _ = io.Copy(io.Discard, response.Body)
	}
	_ = idle.Close()
	if line := logOf(s, "shutdown delayed"); !strings.Contains(line, fmt.Sprintf(`"delay":%d`, delay)) {
		t.Errorf("got %q, want a delay of %s", line, delay)
	}
	if strings.Contains(s.log.String(), "draining requests") {
		t.Errorf("got the delay ended early, want it to last: %s", s.log)
	}
	_ = s.cmd.Process.Signal(syscall.SIGTERM) // ends the delay
	wait.Receive(t, "the server exits", s.done)
	if _, err := net.Dial("tcp", s.address); err == nil {
		t.Error("got a connection after the server exited, want none")
	}
}

// A second signal ends the delay.
func TestSecondSignalEndsDrainDelay(t *testing.T) {
	t.Parallel()
	s := startServer(t, blackbox.Demo(t), "--demo", "--drain-delay", "30s")
	_ = s.cmd.Process.Signal(syscall.SIGTERM)
	if logOf(s, "shutdown delayed") == "" {
		t.Errorf("got no delay in the log, want one: %s", s.log)
	}
	_ = s.cmd.Process.Signal(syscall.SIGTERM)
	wait.Receive(t, "the server exits", s.done)
	if s.cmd.ProcessState.Exited() {
		t.Error("got a regular exit, want the second signal to end the process")
	}
}

// After the delay, requests in flight are finished and the server exits.
func TestDrainDelayEnds(t *testing.T) {
	t.Parallel()
	s := startServer(t, blackbox.Demo(t), "--demo", "--drain-delay", "1s")
	_ = s.cmd.Process.Signal(syscall.SIGTERM)
	s.waitForExit(t)
	delayed, ending := strings.Index(s.log.String(), "shutdown delayed"), strings.Index(s.log.String(), "draining requests")
	if delayed < 0 || ending < delayed {
		t.Errorf("got %s, want a delay and then draining", s.log)
	}
}

func TestInvalidDrainDelay(t *testing.T) {
	t.Parallel()
	for _, invalid := range []string{"-1s", "61s"} {
		cmd := palmares(t, store.Config{DataDir: "data"}, "version")
		cmd.Env = append(cmd.Env, "PALMARES_DRAIN_DELAY="+invalid)
		if r := runCmd(t, cmd); r.code != 2 || !strings.HasPrefix(r.err, "palmares: PALMARES_DRAIN_DELAY: ") {
			t.Errorf("%s: got exit code %d and %q, want 2", invalid, r.code, r.err)
		}
	}
}
