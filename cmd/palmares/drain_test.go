package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"palmares/internal/core/store"
	"palmares/internal/dev/testkit/blackbox"
	"palmares/internal/dev/testkit/wait"
)

// A server that is shutting down reports it before it stops accepting
// connections, so that load balancers can stop sending requests.
func TestDrainDelay(t *testing.T) {
	t.Parallel()
	const delay = time.Minute // the test does not wait for it
	s := startServer(t, blackbox.Demo(t), "--demo", "--drain-delay", delay.String())
	kept, err := net.Dial("tcp", s.address)
	if err != nil {
		t.Fatal(err)
	}
	defer kept.Close()
	_ = s.cmd.Process.Signal(syscall.SIGTERM)
	wait.Until(t, "the server has received the signal", func() bool {
		code, _ := s.get(t, "/readyz")
		return code != 200
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
	fmt.Fprintf(kept, "GET /healthz HTTP/1.1\r\nHost: palmares\r\n\r\n")
	response, err := http.ReadResponse(bufio.NewReader(kept), nil)
	if err != nil || response.Close {
		t.Errorf("got %v, %v, want the connection to stay open during the delay", response, err)
	} else {
		_, _ = io.Copy(io.Discard, response.Body)
	}
	_ = kept.Close()
	if line := logOf(s, "shutdown delayed"); !strings.Contains(line, fmt.Sprintf(`"delay":%d`, delay)) {
		t.Errorf("got %q, want a delay of %s", line, delay)
	}
	if strings.Contains(s.log.String(), "draining requests") {
		t.Errorf("got an early end of the delay: %s", s.log)
	}
	_ = s.cmd.Process.Signal(syscall.SIGTERM) // ends the delay
	wait.Receive(t, "the server exits", s.done)
	if _, err := net.Dial("tcp", s.address); err == nil {
		t.Error("got a connection after the end, want none")
	}
}

// A second signal ends the delay.
func TestSecondSignalEndsDrainDelay(t *testing.T) {
	t.Parallel()
	s := startServer(t, blackbox.Demo(t), "--demo", "--drain-delay", "30s")
	_ = s.cmd.Process.Signal(syscall.SIGTERM)
	if logOf(s, "shutdown delayed") == "" {
		t.Errorf("got no delay: %s", s.log)
	}
	_ = s.cmd.Process.Signal(syscall.SIGTERM)
	wait.Receive(t, "the server exits", s.done)
	if s.cmd.ProcessState.Exited() {
		t.Error("got an exit after the delay, want one by the second signal")
	}
}

// After the delay, requests in flight are finished and the server exits.
func TestDrainDelayEnds(t *testing.T) {
	t.Parallel()
	s := startServer(t, blackbox.Demo(t), "--demo", "--drain-delay", "1s")
	_ = s.cmd.Process.Signal(syscall.SIGTERM)
	s.ends(t)
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
		if r := runs(t, cmd); r.code != 2 || !strings.HasPrefix(r.err, "palmares: PALMARES_DRAIN_DELAY: ") {
			t.Errorf("%s: got exit code %d and %q, want 2", invalid, r.code, r.err)
		}
	}
}
