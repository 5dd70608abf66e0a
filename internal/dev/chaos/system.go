package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
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
)

// system is the system under test: three servers with the services they share,
// or one with an embedded database.
type system struct {
	t       testing.TB
	cfg     store.Config // of commands
	servers []*server
	base    string // URL for readers
	key     string // an API key without a quota
	inbox   *inbox
	logDir  string         // "" to discard logs
	logs    []*testkit.Log // of all servers, including those that have ended

	postgres *testkit.Cluster     // nil with an embedded database
	redis    *testkit.RedisServer // nil for a single server
	proxy    *testkit.Proxy       // between the last server and PostgreSQL
	edition  int                  // the last one published
	event    *string              // ID of the last event seen in the journal
	killed   kill
	rate     int // requests per second, if not defaultRate
	others   int // tools without a score

	mu    sync.Mutex
	shown map[string]int // the newest edition that each server has shown, by address
}

func newSystem(t testing.TB, logDir string, cfg store.Config) *system {
	return &system{t: t, logDir: logDir, cfg: cfg, shown: map[string]int{}}
}

// startCluster starts three servers behind nginx.
func startCluster(t testing.TB, logDir string) *system {
	// Processes crash here, not machines, so fsync would only take time.
	postgres := testkit.StartCluster(t, "fsync=off")
	s := newSystem(t, logDir, store.Config{DatabaseURL: postgres.URL, DataDir: t.TempDir()})
	s.postgres, s.redis, s.proxy = postgres, testkit.StartRedis(t), testkit.StartProxy(t, postgres.URL)
	for _, url := range []string{postgres.URL, postgres.URL, s.proxy.URL} {
		s.addServer(store.Config{DatabaseURL: url, DataDir: s.cfg.DataDir}, "REDIS_URL="+s.redis.URL)
	}
	s.startNginx()
	s.open()
	return s
}

// open fills the database, and starts the servers and the webhook receiver.
func (s *system) open() {
	check.OK(s.t, s.publish())
	s.key = blackbox.CreateKey(s.t, s.cfg, load.Owner, "pro")
	s.inbox = &inbox{bodies: map[string]string{}, times: map[string]int{}, ids: map[subject]string{}}
	receiver := httptest.NewServer(s.inbox)
	s.t.Cleanup(receiver.Close)
	blackbox.MustRun(s.t, blackbox.Command(s.t, s.cfg, "webhooks", "add", load.Owner, receiver.URL))
	for _, server := range s.servers {
		s.start(server)
	}
	s.newEvents() // skips those from before the endpoint was added
}

// publish imports the next edition.
func (s *system) publish() error {
	var edition bytes.Buffer
	if err := writeEdition(&edition, s.edition+1, s.others); err != nil {
		return err
	}
	cmd := blackbox.Command(s.t, s.cfg, "import", "-")
	cmd.Stdin = &edition
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("import edition %d: %w\n%s", s.edition+1, err, out)
	}
	s.edition++
	return nil
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

// newEvents returns the IDs of the journal's events since the last call.
func (s *system) newEvents() (ids []string) {
	for {
		query, err := json.Marshal(map[string]any{
			"query":     `query($after: String) {changes(first: 200, after: $after) {nodes {id}}}`,
			"variables": map[string]any{"after": s.event},
		})
		check.OK(s.t, err)
		code, body := status("http://"+s.servers[0].address+"/graphql", string(query))
		var found struct {
			Data struct {
				Changes struct{ Nodes []struct{ ID string } }
			}
		}
		if err := json.Unmarshal(body, &found); err != nil || code != http.StatusOK {
			s.t.Fatalf("read the journal: got %d %.200s, want 200", code, body)
		}
		nodes := found.Data.Changes.Nodes
		for _, node := range nodes {
			ids = append(ids, node.ID)
			s.event = &node.ID
		}
		if len(nodes) < 200 {
			return ids
		}
	}
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
	if server.edition() == notReady {
		s.t.Fatalf("got a server that is not ready, want a ready one\n%s", log)
	}
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
