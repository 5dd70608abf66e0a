package testkit

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit/repo"
)

// RedisServer is a temporary Redis server on loopback that stores nothing on
// disk.
type RedisServer struct {
	URL           string
	path, address string
	process       *Process
}

// StartRedis starts a Redis server, which is stopped when the test ends.
func StartRedis(t testing.TB) *RedisServer {
	t.Helper()
	s := &RedisServer{path: Redis.Ensure(t), address: FreeAddress(t)}
	s.URL = "redis://" + s.address + "/0"
	s.Start(t)
	return s
}

// Start starts the server again, empty and at the same address as before.
func (s *RedisServer) Start(t testing.TB) {
	t.Helper()
	host, port, _ := strings.Cut(s.address, ":")
	s.process = StartAt(t, exec.Command(s.path, "--port", port, "--bind", host, "--save", "", "--appendonly", "no", "--dir", os.TempDir()), s.address)
}

// Stop kills the server, and its data is lost.
func (s *RedisServer) Stop() { s.process.End(syscall.SIGKILL) }

// Freeze suspends the server.
func (s *RedisServer) Freeze() { _ = s.process.Cmd.Process.Signal(syscall.SIGSTOP) }

// Thaw resumes a frozen server.
func (s *RedisServer) Thaw() { _ = s.process.Cmd.Process.Signal(syscall.SIGCONT) }

// VarnishToken is the credential for purges.
const VarnishToken = "X-Purge-Token: s3cret"

// StartVarnish starts Varnish at an address, with the configuration in deploy/varnish,
// in front of a server. Its purge URL is at the path /.purge.
func StartVarnish(t testing.TB, address, server string) {
	t.Helper()
	config := check.Try(os.ReadFile(filepath.Join(repo.Root(t), "deploy", "varnish", "default.vcl"))).OK(t)
	dir := t.TempDir()
	token, file := filepath.Join(dir, "token"), filepath.Join(dir, "default.vcl")
	_, value, _ := strings.Cut(VarnishToken, ": ")
	check.OK(t, os.WriteFile(token, []byte(value+"\n"), 0o600))
	_, port, _ := strings.Cut(server, ":") // on loopback
	text := strings.NewReplacer(`.port = "8080"`, `.port = "`+port+`"`, "/etc/varnish/purge-token", token).Replace(string(config))
	check.OK(t, os.WriteFile(file, []byte(text), 0o600))
	StartAt(t, exec.Command(Varnish.Ensure(t), "-F", "-j", "none", "-n", filepath.Join(dir, "work"), "-a", address, "-f", file, "-s", "malloc,256m"), address)
}

var stripeMockListening = regexp.MustCompile(`(?m)^Listening for HTTP at address: (\S+)`)

// StartStripeMock starts Stripe's mock of its API for the duration of a test, and
// returns its URL.
func StartStripeMock(t testing.TB) string {
	t.Helper()
	// It chooses both ports; without an address for TLS, it would use a fixed one.
	cmd := exec.Command(Program(t, "stripe-mock"), "-http-addr", "127.0.0.1:0", "-https-addr", "127.0.0.1:0")
	return "http://" + Start(t, cmd, stripeMockListening).Address
}

// Toxiproxy is a program that delays, interrupts and closes TCP connections.
type Toxiproxy struct {
	t   testing.TB
	api string
}

// StartToxiproxy starts the program, which is stopped when the test ends.
func StartToxiproxy(t testing.TB) *Toxiproxy {
	t.Helper()
	address := FreeAddress(t)
	host, port, _ := strings.Cut(address, ":")
	StartAt(t, exec.Command(Program(t, "toxiproxy"), "-host", host, "-port", port), address)
	return &Toxiproxy{t, "http://" + address}
}

// Between adds a proxy with a name to the service at a URL, and returns the URL of
// the service through it.
func (p *Toxiproxy) Between(name, service string) string {
	p.t.Helper()
	u := check.Try(url.Parse(service)).OK(p.t)
	listen := FreeAddress(p.t)
	p.send("POST", "/proxies", map[string]any{"name": name, "listen": listen, "upstream": u.Host, "enabled": true})
	u.Host = listen
	return u.String()
}

// Delay delays all replies of a service.
func (p *Toxiproxy) Delay(name string, by time.Duration) {
	p.send("POST", "/proxies/"+name+"/toxics", map[string]any{"type": "latency", "attributes": map[string]any{"latency": by.Milliseconds()}})
}

// Interrupt stops all data to and from a service, without closing connections.
func (p *Toxiproxy) Interrupt(name string) {
	for _, stream := range []string{"upstream", "downstream"} {
		p.send("POST", "/proxies/"+name+"/toxics", map[string]any{"type": "timeout", "stream": stream, "attributes": map[string]any{"timeout": 0}})
	}
}

// Cut closes all connections to a service, and refuses new ones.
func (p *Toxiproxy) Cut(name string) {
	p.send("POST", "/proxies/"+name, map[string]any{"enabled": false})
}

// Restore ends all delays, interruptions and cuts.
func (p *Toxiproxy) Restore() { p.send("POST", "/reset", nil) }

func (p *Toxiproxy) send(method, path string, body any) {
	p.t.Helper()
	data := check.Try(json.Marshal(body)).OK(p.t)
	request := check.Try(http.NewRequestWithContext(p.t.Context(), method, p.api+path, bytes.NewReader(data))).OK(p.t)
	response := check.Try(http.DefaultClient.Do(request)).OK(p.t)
	defer response.Body.Close()
	text, _ := io.ReadAll(response.Body)
	check.MustTrue(p.t, response.StatusCode < 300, "%s %s: got %d %s, want success", method, path, response.StatusCode, text)
}
