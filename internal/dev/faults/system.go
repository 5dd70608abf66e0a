package main

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"palmares/internal/catalog/feed/synth"
	"palmares/internal/core/store"
	"palmares/internal/dev/check"
	"palmares/internal/dev/load"
	"palmares/internal/dev/testkit"
	"palmares/internal/dev/testkit/blackbox"
	"palmares/internal/dev/testkit/wait"
)

// system is the system under test: three servers with the services they share,
// or one with an embedded database. It is also the webhook receiver.
type system struct {
	testing.TB
	cfg         store.Config // of commands, which use no proxy
	servers     []*server
	base        string         // URL for readers
	key, reader string         // keys without a quota; the requests of the first one are compared with its usage
	logs        []*testkit.Log // of all servers, including those that have ended
	began       time.Time      // when the histories started

	postgres *testkit.Cluster     // nil with an embedded database
	redis    *testkit.RedisServer // nil for a single server
	proxies  *testkit.Toxiproxy   // one for each connection of a server, so that each can fail by itself
	rate     int                  // requests per second
	tools    int

	revision   int    // of the next feed
	after      string // the parameter that selects the events that are new in the journal
	killed     int    // the server that was killed
	killedAt   int64
	newestSeen atomic.Int64 // release

	mu     sync.Mutex
	h      catalogHistory
	sender string // address of the last connection of a webhook
}

// record changes or reads what clients record.
func (s *system) record(change func(h *catalogHistory)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(&s.h)
}

func newSystem(t testing.TB, cfg store.Config) *system {
	return &system{TB: t, cfg: cfg, began: time.Now(), rate: defaultRate, tools: 200}
}

// maxServers is how many servers share their services.
const maxServers = 3

// startCluster starts three servers behind nginx.
func startCluster(t testing.TB) *system {
	// Processes crash here, not machines, so fsync would only take time.
	postgres := testkit.StartCluster(t, "fsync=off")
	s := newSystem(t, store.Config{DatabaseURL: postgres.URL, DataDir: t.TempDir()})
	s.postgres, s.redis, s.proxies = postgres, testkit.StartRedis(t), testkit.StartToxiproxy(t)
	for i := range maxServers {
		cfg := store.Config{DatabaseURL: s.proxies.Between(postgresOf(i), postgres.URL), DataDir: s.cfg.DataDir}
		s.addServer(cfg, "REDIS_URL="+s.proxies.Between(redisOf(i), s.redis.URL))
	}
	s.open()
	s.startNginx()
	return s
}

func redisOf(server int) string    { return fmt.Sprintf("redis-%d", server) }
func postgresOf(server int) string { return fmt.Sprintf("postgres-%d", server) }

// open fills the database, and starts the servers and the webhook receiver.
func (s *system) open() {
	check.OK(s, s.publish())
	s.key, s.reader = blackbox.CreateKey(s, s.cfg, load.Owner, "pro"), blackbox.NewKey(s, s.cfg, "pro")
	receiver := httptest.NewServer(s)
	s.Cleanup(receiver.Close)
	blackbox.MustRun(s, blackbox.Command(s, s.cfg, "webhooks", "add", load.Owner, receiver.URL))
	for _, server := range s.servers {
		s.start(server)
	}
	s.base = "http://" + s.servers[0].address
	s.newEvents() // skips those from before the endpoint was added
}

// publish imports the next release, which changes one tool in twenty.
func (s *system) publish() error {
	var feed bytes.Buffer
	check.OK(s, synth.Write(s.Context(), &feed, synth.Options{Tools: s.tools, Revision: s.revision}))
	err := s.run(&feed, "import", "-")
	if err == nil {
		s.revision++
	}
	return err
}

// newest returns the number of the newest release.
func (s *system) newest() int {
	out := blackbox.MustRun(s, blackbox.Command(s, s.cfg, "releases")).Out
	return check.Try(strconv.Atoi(regexp.MustCompile(`(?m)^\d+`).FindString(out))).OK(s)
}

func (s *system) run(input io.Reader, args ...string) error {
	cmd := blackbox.Command(s, s.cfg, args...)
	cmd.Stdin = input
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("palmares %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return nil
}

// runPostgres runs one of PostgreSQL's programs. Restoring a backup may deadlock with
// the servers' queries, and is then tried again.
func (s *system) runPostgres(name string, args ...string) {
	path := filepath.Join(testkit.PostgreSQL.Ensure(s), name)
	for try := 1; ; try++ {
		out, err := exec.Command(path, args...).CombinedOutput()
		if err == nil {
			return
		}
		check.MustTrue(s, try != 10 && strings.Contains(string(out), "deadlock"), "%s: %v\n%s", name, err, out)
	}
}

// allServe reports whether every server serves the newest release.
func (s *system) allServe() bool {
	newest := s.newest()
	return !slices.ContainsFunc(s.servers, func(server *server) bool { return server.release() != newest })
}

// server is a palmares server that can be restarted at the same address.
type server struct {
	cfg     store.Config
	address string
	env     []string
	process *blackbox.Server
}

func (s *system) addServer(cfg store.Config, env ...string) {
	address := testkit.FreeAddress(s)
	s.servers = append(s.servers, &server{cfg: cfg, address: address, env: append(env, "PALMARES_LISTEN="+address)})
}

// start starts a server and waits until it is ready.
func (s *system) start(server *server) {
	server.process = load.Serve(s, server.cfg, server.env...)
	s.logs = append(s.logs, server.process.Log)
	wait.Until(s, "a server is ready", func() bool { return server.release() > 0 })
}

// release returns the release that the server reports, or 0 if it is not ready.
func (s *server) release() int {
	var report struct{ Release int }
	ctx, cancel := context.WithTimeout(context.Background(), clientTimeout)
	defer cancel()
	response, body, err := load.Do(ctx, load.Client, "http://"+s.address+"/readyz", "")
	if err != nil || response.StatusCode != http.StatusOK || json.Unmarshal(body, &report) != nil {
		return 0
	}
	return report.Release
}

var direct = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64, DisableCompression: true, IdleConnTimeout: 2 * time.Second}}

// get sends a request to one server. It returns nil without a response, and whether
// the server can have received the request.
func (s *system) get(server int, path string, headers ...string) (response *http.Response, body []byte, sent bool) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	response, body, err := load.Do(ctx, direct, "http://"+s.servers[server].address+path, "", headers...)
	if err != nil {
		var failure *net.OpError
		return nil, nil, !errors.As(err, &failure) || failure.Op != "dial"
	}
	return response, body, true
}

// now returns the time since the histories started.
func (s *system) now() int64 { return int64(time.Since(s.began)) }

// redisOutages returns how often the servers have logged that Redis does not
// respond.
func (s *system) redisOutages() (n int) {
	for _, log := range s.logs {
		n += strings.Count(log.String(), redisDown)
	}
	return n
}

const redisDown, redisUp = "redis unavailable", "redis available again"

// waitForRedis waits until no server counts by itself.
func (s *system) waitForRedis() {
	wait.Until(s, "all servers use Redis again", func() bool {
		return !slices.ContainsFunc(s.servers, func(server *server) bool {
			log := server.process.Log.String()
			return strings.Count(log, redisDown) > strings.Count(log, redisUp)
		})
	})
}

//go:embed nginx.conf
var nginxConfig string

func (s *system) startNginx() {
	dir, address := s.TempDir(), testkit.FreeAddress(s)
	upstreams := ""
	for _, server := range s.servers {
		upstreams += fmt.Sprintf("server %s max_fails=0;\n", server.address)
	}
	config := strings.NewReplacer("DIRECTORY", dir, "ADDRESS", address, "SERVERS", upstreams).Replace(nginxConfig)
	file := blackbox.WriteFile(s, "nginx.conf", []byte(config))
	testkit.StartAt(s, exec.Command(testkit.Nginx.Ensure(s), "-p", dir, "-c", file), address)
	s.base = "http://" + address
}

// ownsConnection reports whether a process has the loopback connection from an
// address, according to /proc.
func ownsConnection(pid int, address string) bool {
	port := netip.MustParseAddrPort(address).Port()
	connections, _ := os.ReadFile(fmt.Sprintf("/proc/%d/net/tcp", pid))
	line := regexp.MustCompile(fmt.Sprintf(`\d+: \w+:%04X .*`, port)).Find(connections)
	fields := strings.Fields(string(line))
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	return len(fields) > 9 && slices.ContainsFunc(files, func(file string) bool {
		target, _ := os.Readlink(file)
		return target == "socket:["+fields[9]+"]"
	})
}
