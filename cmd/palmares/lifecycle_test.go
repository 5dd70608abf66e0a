package main

import (
	"bufio"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"palmares/internal/catalog/feed/demo"
	"palmares/internal/core/store"
	"palmares/internal/dev/check"
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
	response := check.Try(client.Get(receiver.URL)).OK(t)
	_ = response.Body.Close()
	<-closed
	slog.Info("our own line")
	if text := output.String(); strings.Contains(text, "buy now") || !strings.Contains(text, "our own line") {
		t.Errorf("got log %s, want only our own line", text)
	}
}

func TestServeDemo(t *testing.T) {
	t.Parallel()
	testkit.Each(t, func(t *testing.T, cfg store.Config) {
		for _, start := range []string{"empty database", "database with the demo catalog"} {
			s := blackbox.Serve(t, cfg, "--demo")
			if code, body := s.Get(t, "/healthz"); code != 200 || body["status"] != "alive" {
				t.Errorf("%s: /healthz: got %d %v, want 200 alive", start, code, body)
			}
			wait.Until(t, "the catalog is in memory", func() bool { code, _ := s.Get(t, "/readyz"); return code == 200 })
			if code, body := s.Get(t, "/readyz"); code != 200 || fmt.Sprint(body) != "map[release:8 status:ready updated_at:2026-11-10]" {
				t.Errorf("%s: /readyz: got %d %v, want 200 and release 8", start, code, body)
			}
			check.Contains(t, blackbox.ReadAll(t, s.Call(t, http.MethodGet, "/en/", "").Body), "This is a demo")
			_ = s.Cmd.Process.Signal(syscall.SIGTERM)
			s.WaitForExit(t)
		}
		check.Equal(t, blackbox.MustRun(t, blackbox.Command(t, cfg, "export")).Out, string(demo.Catalog()), "want the demo catalog")
	})
}

// A request that is in flight when the server shuts down receives its response.
func TestShutdownFinishesRequests(t *testing.T) {
	t.Parallel()
	s := blackbox.Serve(t, testkit.SQLite(t), "--demo")
	slow, err := net.Dial("tcp", s.Address)
	check.OK(t, err)
	defer slow.Close()
	const query = `{"query":"{feed {release}}"}`
	fmt.Fprintf(slow, "POST /graphql HTTP/1.1\r\nHost: palmares\r\nContent-Type: application/json\r\nContent-Length: %d\r\nExpect: 100-continue\r\n\r\n", len(query))
	slowReader := bufio.NewReader(slow)
	if line, err := slowReader.ReadString('\n'); line != "HTTP/1.1 100 Continue\r\n" { // the server waits for the body
		t.Fatalf("got %q and %v, want 100 Continue", line, err)
	}
	idle, err := net.Dial("tcp", s.Address)
	check.OK(t, err)
	defer idle.Close()
	fmt.Fprintf(idle, "GET /healthz HTTP/1.1\r\nHost: palmares\r\n\r\n")
	reader := bufio.NewReader(idle)
	if response, err := http.ReadResponse(reader, nil); err != nil || response.Close {
		t.Fatalf("got %v, want an open connection", err)
	} else {
		_, _ = io.Copy(io.Discard, response.Body)
	}
	_ = s.Cmd.Process.Signal(syscall.SIGTERM)
	wait.Until(t, "the server accepts no new connections", func() bool {
		probe, err := net.Dial("tcp", s.Address)
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
	if response := blackbox.ReadAll(t, slowReader); !strings.Contains(response, "HTTP/1.1 200 OK") || !strings.Contains(response, `"release":8`) {
		t.Errorf("slow request: got %q, want 200", response)
	}
	s.WaitForExit(t)
}

func TestReadyWithoutMigrations(t *testing.T) {
	t.Parallel()
	cfg := testkit.Postgres(t)
	s := blackbox.Serve(t, cfg, "--demo")
	db := testkit.Open(t, cfg)
	check.Try(db.Write.ExecContext(t.Context(), "ALTER TABLE schema_migrations RENAME TO elsewhere")).OK(t)
	if code, body := s.Get(t, "/readyz"); code != 503 || !strings.HasSuffix(fmt.Sprint(body["error"]), "migration(s) are pending: run palmares migrate up") {
		t.Errorf("/readyz: got %d %v, want 503", code, body)
	}
	if code, _ := s.Get(t, "/healthz"); code != 200 {
		t.Errorf("/healthz: got %d, want 200", code)
	}
}

func TestAddressInUse(t *testing.T) {
	t.Parallel()
	taken := check.Try(net.Listen("tcp", "127.0.0.1:0")).OK(t)
	defer taken.Close()
	r := blackbox.Run(t, blackbox.Command(t, testkit.SQLite(t), "serve", "--listen", taken.Addr().String()))
	want := "palmares: cannot listen on " + taken.Addr().String() + ": the address is already in use\n"
	check.True(t, r.Code == 1 && r.Err == want, "got exit code %d and %q, want 1 and %q", r.Code, r.Err, want)
}

// A server that is shutting down reports it before it stops accepting
// connections, so that load balancers can stop sending requests.
func TestDrainDelay(t *testing.T) {
	t.Parallel()
	const delay = time.Minute // the test does not wait that long
	s := blackbox.Serve(t, blackbox.Demo(t), "--demo", "--drain-delay", delay.String())
	idle, err := net.Dial("tcp", s.Address)
	check.OK(t, err)
	defer idle.Close()
	_ = s.Cmd.Process.Signal(syscall.SIGTERM)
	wait.Until(t, "the server has received the signal and loaded the catalog", func() bool {
		_, body := s.Get(t, "/readyz")
		return body["error"] == "the server is shutting down"
	})

	for range 10 {
		code, body := s.Get(t, "/readyz") // on a new connection
		check.MustTrue(t, code == 503 && body["error"] == "the server is shutting down",
			"/readyz: got %d %v, want 503", code, body)
		if code, body := s.Get(t, "/api/v1/stats"); code != 200 {
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
	check.Contains(t, logOf(s, "shutdown delayed"), fmt.Sprintf(`"delay":%d`, delay))
	check.True(t, !strings.Contains(s.Log.String(), "draining requests"),
		"got the delay ended early, want it to last: %s", s.Log)
	_ = s.Cmd.Process.Signal(syscall.SIGTERM) // ends the delay
	wait.Receive(t, "the server exits", s.Done)
	check.True(t, !s.Cmd.ProcessState.Exited(), "got a regular exit, want the second signal to end the process")
	if _, err := net.Dial("tcp", s.Address); err == nil {
		t.Error("got a connection after the server exited, want none")
	}
}

// After the delay, requests in flight are finished and the server exits.
func TestDrainDelayEnds(t *testing.T) {
	t.Parallel()
	s := blackbox.Serve(t, blackbox.Demo(t), "--demo", "--drain-delay", "1s")
	_ = s.Cmd.Process.Signal(syscall.SIGTERM)
	s.WaitForExit(t)
	delayed, ending := strings.Index(s.Log.String(), "shutdown delayed"), strings.Index(s.Log.String(), "draining requests")
	check.True(t, delayed >= 0 && ending >= delayed, "got %s, want a delay and then draining", s.Log)
}
