package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"palmares/internal/dev/load"
	"palmares/internal/dev/testkit"
)

// system is what a fault happens to: three servers with the services they
// share, or one with an embedded database.
type system struct {
	load.Program
	servers []*server
	base    string   // URL for readers
	env     []string // for commands on the database
	key     string   // an API key without a quota
	inbox   *inbox
	shown   newestShown

	postgres *testkit.Cluster     // nil with an embedded database
	redis    *testkit.RedisServer // nil for a single server
	line     *testkit.Proxy       // between the last server and PostgreSQL
	data     string               // directory of an embedded database
	edition  int                  // the last one published
	event    string               // id of the last event seen in the journal
	killed   kill
	stops    []func()
}

// startCluster starts three servers behind nginx.
func startCluster(ctx context.Context, p load.Program, logs string) (s *system, err error) {
	s = &system{Program: p, shown: newestShown{}}
	defer func() {
		if err != nil {
			s.stop()
		}
	}()
	bin, err := testkit.PostgreSQL.Ensure()
	if err != nil {
		return nil, err
	}
	// Processes crash here, not machines: fsync only takes time.
	if s.postgres, err = testkit.StartCluster(ctx, bin, "fsync=off"); err != nil {
		return nil, err
	}
	s.onStop(s.postgres.Stop)
	if s.redis, err = testkit.NewRedis(); err != nil {
		return nil, err
	}
	if err := s.redis.Run(); err != nil {
		return nil, err
	}
	s.onStop(s.redis.Stop)
	if s.line, err = testkit.OpenProxy(s.postgres.URL); err != nil {
		return nil, err
	}
	s.onStop(s.line.Close)
	s.env = []string{"DATABASE_URL=" + s.postgres.URL, "REDIS_URL=" + s.redis.URL}
	for _, database := range []string{s.postgres.URL, s.postgres.URL, s.line.URL} {
		if err := s.addServer(logs, "DATABASE_URL="+database, "REDIS_URL="+s.redis.URL); err != nil {
			return nil, err
		}
	}
	if err := s.startNginx(); err != nil {
		return nil, err
	}
	return s, s.open(ctx)
}

func (s *system) onStop(f func()) { s.stops = append(s.stops, f) }

func (s *system) stop() {
	for i := len(s.stops) - 1; i >= 0; i-- {
		s.stops[i]()
	}
}

// open fills the database, and starts the servers and the webhook receiver.
func (s *system) open(ctx context.Context) (err error) {
	if err := s.publish(ctx); err != nil {
		return err
	}
	if s.key, err = s.CreateKey(s.env); err != nil {
		return err
	}
	if s.inbox, err = startInbox(); err != nil {
		return err
	}
	s.onStop(func() { _ = s.inbox.server.Close() })
	if _, _, err := s.Run(s.env, "webhooks", "add", load.Owner, "http://"+s.inbox.address); err != nil {
		return err
	}
	for _, server := range s.servers {
		if err := server.start(ctx); err != nil {
			return err
		}
		s.onStop(func() { _ = server.process.Stop() })
	}
	_, err = s.newEvents(ctx) // skips those from before the endpoint was added
	return err
}

// publish imports the next edition.
func (s *system) publish(context.Context) error {
	path, err := writeEdition(s.Dir, s.edition+1)
	if err != nil {
		return err
	}
	if _, _, err := s.Run(s.env, "import", path); err != nil {
		return err
	}
	s.edition++
	return nil
}

// publishUntilDone imports like an operator, who retries until the database is
// available.
func (s *system) publishUntilDone(ctx context.Context) error {
	for {
		err := s.publish(ctx)
		if err == nil || ctx.Err() != nil {
			return err
		}
		time.Sleep(200 * time.Millisecond)
	}
}

// allServe reports whether every server serves the last edition.
func (s *system) allServe(ctx context.Context) bool {
	for _, server := range s.servers {
		if server.edition(ctx) != s.edition {
			return false
		}
	}
	return true
}

// newEvents returns the ids of the journal's events since the last call.
func (s *system) newEvents(ctx context.Context) (ids []string, err error) {
	for {
		variables := map[string]any{"after": nil}
		if s.event != "" {
			variables["after"] = s.event
		}
		query, err := json.Marshal(map[string]any{
			"query":     `query($after: String) {changes(first: 200, after: $after) {nodes {id}}}`,
			"variables": variables,
		})
		if err != nil {
			return nil, err
		}
		code, body := status(ctx, "http://"+s.servers[0].address+"/graphql", string(query))
		var found struct {
			Data struct {
				Changes struct{ Nodes []struct{ ID string } }
			}
		}
		if err := json.Unmarshal(body, &found); err != nil || code != http.StatusOK {
			return nil, fmt.Errorf("read the journal: got %d %.200s", code, body)
		}
		nodes := found.Data.Changes.Nodes
		for _, node := range nodes {
			ids = append(ids, node.ID)
			s.event = node.ID
		}
		if len(nodes) < 200 {
			return ids, nil
		}
	}
}

// server is a palmares server that can be restarted at the same address.
type server struct {
	program load.Program
	address string
	log     string
	env     []string
	process *load.Process
}

func (s *system) addServer(logs string, env ...string) error {
	address, err := testkit.FreeAddress()
	if err != nil {
		return err
	}
	log := filepath.Join(logs, fmt.Sprintf("server-%s.log", strings.ReplaceAll(address, ":", "-")))
	s.servers = append(s.servers, &server{program: s.Program, address: address, log: log, env: append(env, "PALMARES_LISTEN="+address)})
	return nil
}

// start starts the server and waits until it is ready.
func (s *server) start(ctx context.Context) error {
	log, err := os.OpenFile(s.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	if s.process, err = s.program.Serve(s.env, log); err != nil {
		return err
	}
	waitFor(20*time.Second, func() bool { return s.edition(ctx) > notReady || s.process.Ended() || ctx.Err() != nil })
	if s.edition(ctx) == notReady {
		return fmt.Errorf("a server is not ready: see %s", s.log)
	}
	return ctx.Err()
}

const (
	noEdition = -1
	notReady  = -2
)

// edition returns the edition that the server reports.
func (s *server) edition(ctx context.Context) int {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	var report struct {
		UpdatedAt string `json:"updated_at"`
	}
	code, body := status(ctx, "http://"+s.address+"/readyz", "")
	if code != http.StatusOK || json.Unmarshal(body, &report) != nil {
		return notReady
	}
	return editionOn(report.UpdatedAt)
}

// status sends a request apart from the load and returns the status, or 0
// without a response, and the body.
func status(ctx context.Context, url, body string, headers ...string) (int, []byte) {
	response, data, err := load.Do(ctx, load.Client, url, body, headers...)
	if err != nil {
		return 0, nil
	}
	return response.StatusCode, data
}

// servedBy is a response header with the servers that nginx tried. The last one
// responded.
const servedBy = "X-Served-By"

// nginxConfig is a load balancer. A request that a server did not answer goes to
// the next one, including GraphQL queries, which change nothing. Responses with
// 503 are passed on: retrying them would count the request several times. With
// max_fails=0, servers that restart one after the other are not taken out.
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

func (s *system) startNginx() error {
	nginx, err := testkit.Nginx.Ensure()
	if err != nil {
		return err
	}
	address, err := testkit.FreeAddress()
	if err != nil {
		return err
	}
	var upstreams strings.Builder
	for _, server := range s.servers {
		fmt.Fprintf(&upstreams, "\t\tserver %s max_fails=0;\n", server.address)
	}
	file := filepath.Join(s.Dir, "nginx.conf")
	if err := os.WriteFile(file, fmt.Appendf(nil, nginxConfig, s.Dir, address, upstreams.String()), 0o644); err != nil {
		return err
	}
	cmd := exec.Command(nginx, "-p", s.Dir, "-c", file)
	if err := cmd.Start(); err != nil {
		return err
	}
	s.onStop(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	s.base = "http://" + address
	return testkit.WaitUntilListening(address)
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

// recordedUsage returns the number of requests that the account page shows.
func (s *system) recordedUsage() (int, error) {
	shown, _, err := s.Run(s.env, "accounts", "show", load.Owner)
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(shown) {
		var n int
		if _, err := fmt.Sscanf(line, "requests %d today", &n); err == nil {
			return n, nil
		}
	}
	return 0, errors.New("the account shows no usage")
}
