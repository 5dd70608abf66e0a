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

	"palmares/internal/store"
	"palmares/internal/testdb"
)

// A server that is told to end says so before it takes no more connections, so
// that whoever sends requests here sends none in vain.
func TestDrainDelay(t *testing.T) {
	t.Parallel()
	const delay = 4 * time.Second
	s := startServer(t, testdb.SQLite(t), "--demo", "--drain-delay", delay.String())
	kept, err := net.Dial("tcp", s.address)
	if err != nil {
		t.Fatal(err)
	}
	defer kept.Close()
	_ = s.cmd.Process.Signal(syscall.SIGTERM)
	told := time.Now()

	for answers := 0; answers < 10; answers++ {
		code, body := s.get(t, "/readyz") // on a connection of its own
		if code == 200 && answers == 0 && time.Since(told) < delay/2 {
			answers-- // the signal is on its way
			continue
		}
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
	s.ends(t)
	if took := time.Since(told); took < delay {
		t.Errorf("it ended after %s", took)
	}
	if _, err := net.Dial("tcp", s.address); err == nil {
		t.Error("somebody still listens")
	}
}

// A second signal does not wait.
func TestDrainDelayCanBeCut(t *testing.T) {
	t.Parallel()
	s := startServer(t, testdb.SQLite(t), "--demo", "--drain-delay", "30s")
	_ = s.cmd.Process.Signal(syscall.SIGTERM)
	if logOf(s, "not ready any more") == "" {
		t.Error(s.log)
	}
	_ = s.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-s.done:
	case <-time.After(20 * time.Second):
		t.Error("it goes on")
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
