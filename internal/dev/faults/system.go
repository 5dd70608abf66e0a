package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"palmares/internal/core/store"
	"palmares/internal/dev/check"
	"palmares/internal/dev/load"
	"palmares/internal/dev/testkit"
	"palmares/internal/dev/testkit/blackbox"
	"palmares/internal/dev/testkit/wait"
)

// system is the system under test: three servers with the services they share,
// or one with an embedded database.
type system struct {
	t       testing.TB
	cfg     store.Config // of commands, which use no proxy
	servers []*server
	base    string // URL for readers
	key     string // an API key without a quota
	records *recorder
	logDir  string         // "" to discard logs
	logs    []*testkit.Log // of all servers, including those that have ended
	began   time.Time      // when the histories started

	postgres *testkit.Cluster     // nil with an embedded database
	redis    *testkit.RedisServer // nil for a single server
	proxies  *testkit.Toxiproxy   // one for each connection of a server, so that each can fail by itself
	edition  int                  // the last one published
	killed   kill
	rate     int // requests per second, if not defaultRate
	others   int // tools without a score

	mu    sync.Mutex
	shown map[string]int // the newest edition that each server has shown, by address
}

func newSystem(t testing.TB, logDir string, cfg store.Config) *system {
	return &system{t: t, logDir: logDir, cfg: cfg, shown: map[string]int{}, began: time.Now()}
}

// startCluster starts three servers behind nginx.
func startCluster(t testing.TB, logDir string) *system {
	// Processes crash here, not machines, so fsync would only take time.
	postgres := testkit.StartCluster(t, "fsync=off")
	s := newSystem(t, logDir, store.Config{DatabaseURL: postgres.URL, DataDir: t.TempDir()})
	s.postgres, s.redis, s.proxies = postgres, testkit.StartRedis(t), testkit.StartToxiproxy(t)
	for i := range maxServers {
		cfg := store.Config{DatabaseURL: s.proxies.Between(postgresOf(i), postgres.URL), DataDir: s.cfg.DataDir}
		s.addServer(cfg, "REDIS_URL="+s.proxies.Between(redisOf(i), s.redis.URL))
	}
	s.startNginx()
	s.open()
	return s
}

func redisOf(server int) string    { return fmt.Sprintf("redis-%d", server) }
func postgresOf(server int) string { return fmt.Sprintf("postgres-%d", server) }

// open fills the database, and starts the servers and the webhook receiver.
func (s *system) open() {
	check.OK(s.t, s.publish())
	s.key = blackbox.CreateKey(s.t, s.cfg, load.Owner, "pro")
	s.records = &recorder{system: s, key: blackbox.NewKey(s.t, s.cfg, "pro")}
	receiver := httptest.NewServer(s.records)
	s.t.Cleanup(receiver.Close)
	blackbox.MustRun(s.t, blackbox.Command(s.t, s.cfg, "webhooks", "add", load.Owner, receiver.URL))
	for _, server := range s.servers {
		s.start(server)
	}
	s.records.newEvents() // skips those from before the endpoint was added
}

// publish imports the next edition.
func (s *system) publish() error {
	var edition bytes.Buffer
	if err := writeEdition(&edition, s.edition+1, s.others); err != nil {
		return err
	}
	if err := s.run(&edition, "import", "-"); err != nil {
		return err
	}
	s.edition++
	return nil
}

func (s *system) run(input io.Reader, args ...string) error {
	cmd := blackbox.Command(s.t, s.cfg, args...)
	cmd.Stdin = input
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("palmares %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return nil
}

// runPostgres runs one of PostgreSQL's programs. Restoring a backup may deadlock with
// the servers' queries, and is then tried again.
func (s *system) runPostgres(name string, args ...string) {
	path := filepath.Join(testkit.PostgreSQL.Ensure(s.t), name)
	for try := 1; ; try++ {
		out, err := exec.Command(path, args...).CombinedOutput()
		if err == nil {
			return
		}
		check.MustTrue(s.t, try != 10 && strings.Contains(string(out), "deadlock"), "%s: %v\n%s", name, err, out)
	}
}

// allServe reports whether every server serves the last edition.
func (s *system) allServe() bool {
	for _, server := range s.servers {
		if server.edition() != s.edition {
			return false
		}
	}
	return true
}

// newestShown returns the newest edition that each server has served. Later
// responses must not be older.
func (s *system) newestShown() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.shown)
}

func (s *system) addShown(server string, edition int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.shown[server] = max(s.shown[server], edition)
}

// server is a palmares server that can be restarted at the same address.
type server struct {
	cfg     store.Config
	address string
	env     []string
	process *blackbox.Server
}

func (s *system) addServer(cfg store.Config, env ...string) {
	address := testkit.FreeAddress(s.t)
	s.servers = append(s.servers, &server{cfg: cfg, address: address, env: append(env, "PALMARES_LISTEN="+address)})
}

// start starts a server and waits until it is ready.
func (s *system) start(server *server) {
	server.process = load.Serve(s.t, server.cfg, server.env...)
	log := server.process.Log
	s.logs = append(s.logs, log)
	if s.logDir != "" {
		file := filepath.Join(s.logDir, fmt.Sprintf("server-%d.log", len(s.logs)))
		s.t.Cleanup(func() { _ = os.WriteFile(file, []byte(log.String()), 0o644) })
	}
	waitFor(20*time.Second, func() bool { return server.edition() > notReady })
	check.MustTrue(s.t, server.edition() != notReady, "got a server that is not ready, want a ready one\n%s", log)
}

const (
	noEdition = -1
	notReady  = -2
)

// edition returns the edition that the server reports.
func (s *server) edition() int {
	var report struct {
		UpdatedAt string `json:"updated_at"`
	}
	code, body := status("http://"+s.address+"/readyz", "")
	if code != http.StatusOK || json.Unmarshal(body, &report) != nil {
		return notReady
	}
	return editionOn(report.UpdatedAt)
}

// status sends a request apart from the load and returns the status, or 0
// without a response, and the body.
func status(url, body string, headers ...string) (int, []byte) {
	ctx, cancel := context.WithTimeout(context.Background(), clientTimeout)
	defer cancel()
	response, data, err := load.Do(ctx, load.Client, url, body, headers...)
	if err != nil {
		return 0, nil
	}
	return response.StatusCode, data
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
	wait.Until(s.t, "all servers use Redis again", func() bool {
		return !slices.ContainsFunc(s.servers, func(server *server) bool {
			log := server.process.Log.String()
			return strings.Count(log, redisDown) > strings.Count(log, redisUp)
		})
	})
}

// servedBy is a response header with the servers that nginx tried. The last one
// responded.
const servedBy = "X-Served-By"

// nginxConfig configures a load balancer. A request without a response is retried
// on the next server, including GraphQL queries, which change nothing. Responses
// with 503 are passed on: retrying them would count the request several times. With
// max_fails=0, servers that restart one after the other stay in rotation.
const nginxConfig = `
daemon off; master_process off; pid %[1]s/nginx.pid; error_log %[1]s/nginx.log; worker_rlimit_nofile 4096;
events { worker_connections 2048; }
http {
	access_log off;
	client_body_temp_path %[1]s/body; proxy_temp_path %[1]s/proxy; fastcgi_temp_path %[1]s/f; uwsgi_temp_path %[1]s/u; scgi_temp_path %[1]s/s;
	keepalive_requests 100000;
	upstream palmares {
%[3]s
		keepalive 32;
		keepalive_timeout 2s;
	}
	server {
		listen %[2]s;
		location / {
			proxy_pass http://palmares;
			proxy_http_version 1.1;
			proxy_set_header Connection "";
			proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
			proxy_connect_timeout 1s;
			proxy_read_timeout 15s;
			proxy_next_upstream error timeout non_idempotent;
			add_header ` + servedBy + ` $upstream_addr always;
		}
	}
}`

func (s *system) startNginx() {
	dir, address := s.t.TempDir(), testkit.FreeAddress(s.t)
	var upstreams strings.Builder
	for _, server := range s.servers {
		fmt.Fprintf(&upstreams, "\t\tserver %s max_fails=0;\n", server.address)
	}
	file := filepath.Join(dir, "nginx.conf")
	check.OK(s.t, os.WriteFile(file, fmt.Appendf(nil, nginxConfig, dir, address, upstreams.String()), 0o644))
	testkit.StartAt(s.t, exec.Command(testkit.Nginx.Ensure(s.t), "-p", dir, "-c", file), address)
	s.base = "http://" + address
}

// ownsConnection reports whether a process has the loopback connection from an
// address, according to /proc.
func ownsConnection(pid int, address string) bool {
	_, text, _ := net.SplitHostPort(address)
	port, err := strconv.Atoi(text)
	if err != nil {
		return false
	}
	connections, _ := os.ReadFile(fmt.Sprintf("/proc/%d/net/tcp", pid))
	socket := ""
	for line := range strings.Lines(string(connections)) {
		if fields := strings.Fields(line); len(fields) > 9 && strings.HasSuffix(fields[1], fmt.Sprintf(":%04X", port)) {
			socket = "socket:[" + fields[9] + "]"
		}
	}
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	for _, file := range files {
		if target, err := os.Readlink(file); err == nil && target == socket {
			return true
		}
	}
	return false
}
