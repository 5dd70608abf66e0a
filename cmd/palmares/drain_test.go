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

// A server that is told to end says so before it takes no more connections, so
// that whoever sends requests here sends none in vain.
func TestDrainDelay(t *testing.T) {
	t.Parallel()
	const delay = time.Minute // which the test does not wait for
	s := startServer(t, blackbox.Demo(t), "--demo", "--drain-delay", delay.String())
	kept, err := net.Dial("tcp", s.address)
	if err != nil {
		t.Fatal(err)
	}
	defer kept.Close()
	_ = s.cmd.Process.Signal(syscall.SIGTERM)
	wait.Until(t, "the signal has arrived", func() bool {
		code, _ := s.get(t, "/readyz")
		return code != 200
	})

	for range 10 {
		code, body := s.get(t, "/readyz") // on a connection of its own
		if code != 503 || body["error"] != "the server is ending" {
			t.Fatalf("readyz: %d %v", code, body)
		}
		if code, body := s.get(t, "/api/v1/stats"); code != 200 {
			t.Fatalf("a new request: %d %v", code, body)
		}
	}
	fmt.Fprintf(kept, "GET /healthz HTTP/1.1\r\nHost: palmares\r\n\r\n")
	answer, err := http.ReadResponse(bufio.NewReader(kept), nil)
	if err != nil || answer.Close {
		t.Errorf("a connection is not kept meanwhile: %v %v", answer, err)
	} else {
		_, _ = io.Copy(io.Discard, answer.Body)
	}
	_ = kept.Close()
	if line := logOf(s, "not ready any more"); !strings.Contains(line, fmt.Sprintf(`"delay":%d`, delay)) {
		t.Errorf("got %q, want a delay of %s", line, delay)
	}
	if strings.Contains(s.log.String(), "answering what is in flight") {
		t.Errorf("the delay is over: %s", s.log)
	}
	_ = s.cmd.Process.Signal(syscall.SIGTERM) // does not wait
	wait.Receive(t, "it ends", s.done)
	if _, err := net.Dial("tcp", s.address); err == nil {
		t.Error("somebody still listens")
	}
}

// A second signal does not wait.
func TestDrainDelayCanBeCut(t *testing.T) {
	t.Parallel()
	s := startServer(t, blackbox.Demo(t), "--demo", "--drain-delay", "30s")
	_ = s.cmd.Process.Signal(syscall.SIGTERM)
	if logOf(s, "not ready any more") == "" {
		t.Error(s.log)
	}
	_ = s.cmd.Process.Signal(syscall.SIGTERM)
	wait.Receive(t, "it ends", s.done)
	if s.cmd.ProcessState.Exited() {
		t.Error("it ended when the delay was over, not with the signal")
	}
}

// With the delay over, what is in flight is answered, and the server ends.
func TestDrainDelayEnds(t *testing.T) {
	t.Parallel()
	s := startServer(t, blackbox.Demo(t), "--demo", "--drain-delay", "1s")
	_ = s.cmd.Process.Signal(syscall.SIGTERM)
	s.ends(t)
	delayed, ending := strings.Index(s.log.String(), "not ready any more"), strings.Index(s.log.String(), "answering what is in flight")
	if delayed < 0 || ending < delayed {
		t.Errorf("got %s", s.log)
	}
}

func TestDrainDelayIsBounded(t *testing.T) {
	t.Parallel()
	for _, wrong := range []string{"-1s", "61s"} {
		cmd := palmares(t, store.Config{DataDir: "data"}, "version")
		cmd.Env = append(cmd.Env, "PALMARES_DRAIN_DELAY="+wrong)
		if r := runs(t, cmd); r.code != 2 || !strings.HasPrefix(r.err, "palmares: PALMARES_DRAIN_DELAY: ") {
			t.Errorf("%s: exit %d: %s", wrong, r.code, r.err)
		}
	}
}
