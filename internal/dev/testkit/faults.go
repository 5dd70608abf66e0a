package testkit

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"palmares/internal/dev/testkit/wait"
)

// What programs need that break things and mend them again; tests have the
// same with less to write in standby.go, redis.go and disk_linux.go.

// Crash ends the server as a power cut would, with its data left where it is.
func (c *Cluster) Crash() {
	_ = c.server.Process.Signal(syscall.SIGQUIT) // an immediate shutdown, in PostgreSQL's terms
	_ = c.server.Wait()
}

// Restart starts a server that has crashed on its data and port, and waits
// until it answers.
func (c *Cluster) Restart(ctx context.Context) error {
	old := c.server
	c.server = exec.Command(old.Path, old.Args[1:]...)
	c.server.Dir, c.server.SysProcAttr, c.server.Stdout, c.server.Stderr = old.Dir, old.SysProcAttr, old.Stdout, old.Stderr
	if err := c.server.Start(); err != nil {
		return err
	}
	return waitUntilUp(ctx, c.URL)
}

// Halt makes the server silent with all of its processes, as a machine that
// hangs; GoOn lets it answer again.
func (c *Cluster) Halt() error { return signalAll(c.server.Process, syscall.SIGSTOP) }

// GoOn ends what Halt began.
func (c *Cluster) GoOn() error { return signalAll(c.server.Process, syscall.SIGCONT) }

// signalAll reaches a process and its children. The parent is first, so that
// it does not make another one meanwhile.
func signalAll(parent *os.Process, signal syscall.Signal) error {
	if err := parent.Signal(signal); err != nil {
		return err
	}
	children, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%[1]d/children", parent.Pid))
	if err != nil {
		return err
	}
	for _, child := range strings.Fields(string(children)) {
		pid, err := strconv.Atoi(child)
		if err != nil {
			return err
		}
		_ = syscall.Kill(pid, signal) // one that just ended needs none
	}
	return nil
}

// NewRedis is a Redis for a program that is no test. It is not started.
func NewRedis() (*RedisServer, error) {
	path, err := Redis.Ensure()
	if err != nil {
		return nil, err
	}
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	return &RedisServer{path: path, port: port, URL: fmt.Sprintf("redis://127.0.0.1:%d/0", port)}, nil
}

// Run starts it, empty, where it was.
func (s *RedisServer) Run() error {
	s.cmd = exec.Command(s.path, "--port", strconv.Itoa(s.port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", os.TempDir())
	if err := s.cmd.Start(); err != nil {
		return err
	}
	return WaitUntilListening(fmt.Sprintf("127.0.0.1:%d", s.port))
}

// WaitUntilListening waits until somebody listens at an address.
func WaitUntilListening(address string) error {
	for deadline := time.Now().Add(wait.Limit); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if conn, err := net.Dial("tcp", address); err == nil {
			return conn.Close()
		}
	}
	return fmt.Errorf("nobody listens at %s", address)
}
