package testkit

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"

	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit/wait"
)

// Process is a running server. It is stopped when its test ends.
type Process struct {
	Cmd     *exec.Cmd
	Address string     // host:port
	Log     *Log       // its standard error
	Done    chan error // receives the result of Cmd.Wait, and is then closed
}

// Start starts a server that prints its address, which is the pattern's first
// group, on a line.
func Start(t testing.TB, cmd *exec.Cmd, pattern *regexp.Regexp) *Process {
	t.Helper()
	var out, errs Log
	cmd.Stdout, cmd.Stderr = &out, &errs
	return start(t, cmd, &errs, syscall.SIGKILL, func() string {
		text := out.String()
		if found := pattern.FindStringSubmatch(text[:strings.LastIndexByte(text, '\n')+1]); found != nil {
			return found[1]
		}
		return ""
	})
}

// StartAt starts a server that listens on a known address.
func StartAt(t testing.TB, cmd *exec.Cmd, address string) *Process {
	t.Helper()
	var errs Log
	cmd.Stderr = &errs
	return start(t, cmd, &errs, syscall.SIGKILL, func() string {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			return ""
		}
		_ = conn.Close()
		return address
	})
}

// start starts a server that logs to a log, and waits until ready returns its
// address. The signal ends the server.
func start(t testing.TB, cmd *exec.Cmd, log *Log, signal syscall.Signal, ready func() string) *Process {
	t.Helper()
	p := &Process{Cmd: cmd, Log: log, Done: make(chan error, 1)}
	check.OK(t, cmd.Start())
	go func() {
		p.Done <- cmd.Wait()
		close(p.Done)
	}()
	t.Cleanup(func() { p.End(signal) })
	name := filepath.Base(cmd.Path)
	wait.Until(t, name+" listens", func() bool {
		select {
		case err := <-p.Done:
			t.Fatalf("%s ended before it listened: %v\n%s", name, err, p.Log)
		default:
		}
		p.Address = ready()
		return p.Address != ""
	})
	return p
}

// End sends a signal and waits until the process has ended.
func (p *Process) End(signal syscall.Signal) {
	_ = p.Cmd.Process.Signal(signal)
	<-p.Done
}

// FreeAddress returns a loopback address on which nothing listens. Its port is
// outside of the range from which systems choose ports for outgoing connections,
// one of which could take it before the server listens.
func FreeAddress(t testing.TB) string {
	t.Helper()
	const first, last = 12_000, 32_000
	for range 100 {
		address := fmt.Sprintf("127.0.0.1:%d", first+rand.IntN(last-first))
		if listener, err := net.Listen("tcp", address); err == nil {
			check.OK(t, listener.Close())
			return address
		}
	}
	t.Fatal("no free port")
	return ""
}

// Log collects log lines from several goroutines.
type Log struct {
	mu    sync.Mutex
	lines bytes.Buffer
}

// Write implements io.Writer.
func (l *Log) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lines.Write(line)
}

// String returns everything logged so far.
func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lines.String()
}
