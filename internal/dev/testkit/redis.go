package testkit

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"
)

// RedisServer is a Redis of a test's own, to be stopped and frozen.
type RedisServer struct {
	URL  string
	path string
	port int
	cmd  *exec.Cmd
}

// StartRedis starts one that keeps nothing on disk.
func StartRedis(t testing.TB) *RedisServer {
	t.Helper()
	path, err := Redis.Ensure()
	if err != nil {
		t.Fatal(err)
	}
	s := &RedisServer{path: path, port: FreePort(t)}
	s.URL = fmt.Sprintf("redis://127.0.0.1:%d/0", s.port)
	s.Start(t)
	t.Cleanup(s.Stop)
	return s
}

// Start starts it, empty, where it was.
func (s *RedisServer) Start(t testing.TB) {
	t.Helper()
	s.cmd = exec.Command(s.path, "--port", fmt.Sprint(s.port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", os.TempDir())
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	WaitFor(t, fmt.Sprintf("127.0.0.1:%d", s.port))
}

// Stop ends it, with all that it knows.
func (s *RedisServer) Stop() {
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
}

// Freeze makes it silent, and Thaw lets it go on.
func (s *RedisServer) Freeze() { _ = s.cmd.Process.Signal(syscall.SIGSTOP) }

// Thaw lets a frozen one go on.
func (s *RedisServer) Thaw() { _ = s.cmd.Process.Signal(syscall.SIGCONT) }

// WaitFor waits until somebody listens at an address.
func WaitFor(t testing.TB, address string) {
	t.Helper()
	if err := WaitUntilListening(address); err != nil {
		t.Fatal(err)
	}
}
