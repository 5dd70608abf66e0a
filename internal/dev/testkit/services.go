package testkit

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"palmares/internal/dev/testkit/wait"
)

// RedisServer is a temporary Redis on loopback that stores nothing on disk.
type RedisServer struct {
	URL  string
	path string
	port int
	cmd  *exec.Cmd
}

// NewRedis prepares a Redis; Run starts it.
func NewRedis() (*RedisServer, error) {
	path, err := Redis.Ensure()
	if err != nil {
		return nil, err
	}
	port, err := freePort()
	return &RedisServer{path: path, port: port, URL: fmt.Sprintf("redis://127.0.0.1:%d/0", port)}, err
}

// StartRedis starts a Redis that is stopped with the test.
func StartRedis(t testing.TB) *RedisServer {
	t.Helper()
	s, err := NewRedis()
	if err != nil {
		t.Fatal(err)
	}
	s.Start(t)
	t.Cleanup(s.Stop)
	return s
}

// Start is Run for tests.
func (s *RedisServer) Start(t testing.TB) {
	t.Helper()
	if err := s.Run(); err != nil {
		t.Fatal(err)
	}
}

// Run starts the server, empty and on the same port as before.
func (s *RedisServer) Run() error {
	s.cmd = exec.Command(s.path, "--port", fmt.Sprint(s.port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", os.TempDir())
	if err := s.cmd.Start(); err != nil {
		return err
	}
	return WaitUntilListening(fmt.Sprintf("127.0.0.1:%d", s.port))
}

// Stop kills the server, and its data is lost.
func (s *RedisServer) Stop() {
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
}

// Freeze suspends the server.
func (s *RedisServer) Freeze() { _ = s.cmd.Process.Signal(syscall.SIGSTOP) }

// Thaw resumes a frozen server.
func (s *RedisServer) Thaw() { _ = s.cmd.Process.Signal(syscall.SIGCONT) }

// WaitFor waits until an address accepts connections.
func WaitFor(t testing.TB, address string) {
	t.Helper()
	if err := WaitUntilListening(address); err != nil {
		t.Fatal(err)
	}
}

// WaitUntilListening is WaitFor for programs that are not tests.
func WaitUntilListening(address string) error {
	for deadline := time.Now().Add(wait.Limit); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if conn, err := net.Dial("tcp", address); err == nil {
			return conn.Close()
		}
	}
	return fmt.Errorf("nothing listens on %s", address)
}

// freePort returns a port on which nothing listens. It is outside of the range
// from which systems choose ports for outgoing connections, one of which could
// take it before the server listens.
func freePort() (int, error) {
	const first, last = 12_000, 32_000
	err := errors.New("no free port")
	for range 100 {
		port := first + rand.IntN(last-first)
		listener, listenErr := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if listenErr == nil {
			return port, listener.Close()
		}
		err = listenErr
	}
	return 0, err
}

// FreeAddress returns a loopback address on which nothing listens.
func FreeAddress() (string, error) {
	port, err := freePort()
	return fmt.Sprintf("127.0.0.1:%d", port), err
}

// StartListening starts a server and returns the address that it prints, the
// pattern's first group.
func StartListening(cmd *exec.Cmd, pattern *regexp.Regexp) (address string, err error) {
	out, err := cmd.StdoutPipe()
	if err != nil {
		return "", err
	}
	if err := cmd.Start(); err != nil {
		return "", err
	}
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if found := pattern.FindStringSubmatch(lines.Text()); found != nil {
			go func() { _, _ = io.Copy(io.Discard, out) }() // so that it never blocks
			return found[1], nil
		}
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait() // its log is complete now
	return "", fmt.Errorf("%s printed no address", filepath.Base(cmd.Path))
}

var stripeMockListening = regexp.MustCompile(`^Listening for HTTP at address: (\S+)`)

// StartStripeMock starts Stripe's mock of its API for the length of a test, and
// returns its URL.
func StartStripeMock(t testing.TB) string {
	t.Helper()
	path, err := stripeMock()
	if err != nil {
		t.Fatal(err)
	}
	// Both ports are its own choice; without an address for TLS it insists on
	// a fixed port.
	cmd := exec.Command(path, "-http-addr", "127.0.0.1:0", "-https-addr", "127.0.0.1:0")
	address, err := StartListening(cmd, stripeMockListening)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return "http://" + address
}

// stripeMock builds the program, or finds it in Go's build cache. It is a module
// of its own, so that its dependencies do not become ours.
var stripeMock = sync.OnceValues(func() (string, error) {
	_, file, _, _ := runtime.Caller(0)
	cmd := exec.Command("go", "tool", "-C", filepath.Join(filepath.Dir(file), "stripemock"), "-n", "stripe-mock")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
	path, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("build stripe-mock: %w", err)
	}
	return strings.TrimSpace(string(path)), nil
})

// Proxy is a TCP proxy in front of a database, to simulate network failures.
type Proxy struct {
	URL      string // of the database, through the proxy
	target   string
	listener net.Listener
	silent   atomic.Bool // discards data
	mu       sync.Mutex
	cut      bool // refuses connections
	open     map[net.Conn]bool
}

// OpenProxy starts a proxy to the database at a URL.
func OpenProxy(database string) (*Proxy, error) {
	u, err := url.Parse(database)
	if err != nil {
		return nil, err
	}
	l := &Proxy{target: u.Host, open: map[net.Conn]bool{}}
	if l.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		return nil, err
	}
	u.Host = l.listener.Addr().String()
	l.URL = u.String()
	go func() {
		for {
			conn, err := l.listener.Accept()
			if err != nil {
				return
			}
			go l.forward(conn)
		}
	}()
	return l, nil
}

func (l *Proxy) forward(client net.Conn) {
	defer client.Close()
	server, err := net.Dial("tcp", l.target)
	if err != nil {
		return
	}
	defer server.Close()
	l.mu.Lock()
	if l.cut { // perhaps since the connection was accepted
		l.mu.Unlock()
		return
	}
	l.open[client], l.open[server] = true, true
	l.mu.Unlock()
	go func() {
		l.copy(server, client)
		_ = server.Close()
	}()
	l.copy(client, server)
}

func (l *Proxy) copy(to, from net.Conn) {
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		for err != nil && l.silent.Load() { // the other side must not notice
			time.Sleep(5 * time.Millisecond)
		}
		if err == nil && !l.silent.Load() {
			_, err = to.Write(buffer[:n])
		}
		if err != nil {
			return
		}
	}
}

// Cut closes all connections and refuses new ones.
func (l *Proxy) Cut() {
	l.refuse(true)
	l.closeAll()
}

func (l *Proxy) refuse(cut bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut = cut
}

// Silence discards all data without closing connections, like a network that
// drops packets.
func (l *Proxy) Silence() { l.silent.Store(true) }

// Restore ends Cut and Silence. Connections that lost data are closed.
func (l *Proxy) Restore() {
	l.refuse(false)
	if l.silent.Swap(false) {
		l.closeAll()
	}
}

// Close stops the proxy.
func (l *Proxy) Close() {
	_ = l.listener.Close()
	l.silent.Store(false)
	l.closeAll()
}

func (l *Proxy) closeAll() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for conn := range l.open {
		_ = conn.Close()
	}
	clear(l.open)
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
