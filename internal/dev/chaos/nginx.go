package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"palmares/internal/dev/testkit"
)

// answeredBy tells which servers nginx asked, the last of which answered.
const answeredBy = "X-Answered-By"

// front is what an operator puts before several servers. A request that a
// server did not answer goes to the next one, questions of GraphQL, too: they
// change nothing. What a server refuses with 503 is left as it is, or a
// request would be counted by each. No server is given up for a while
// (max_fails): when all are restarted within a second, none would be left.
const front = `
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
			add_header ` + answeredBy + ` $upstream_addr always;
		}
	}
}`

// startNginx puts nginx before servers.
func startNginx(dir string, servers []*server) (address string, stop func(), err error) {
	nginx, err := testkit.Nginx.Ensure()
	if err != nil {
		return "", nil, err
	}
	if address, err = testkit.FreeAddress(); err != nil {
		return "", nil, err
	}
	var behind strings.Builder
	for _, s := range servers {
		fmt.Fprintf(&behind, "\t\tserver %s max_fails=0;\n", s.address)
	}
	file := filepath.Join(dir, "nginx.conf")
	if err := os.WriteFile(file, fmt.Appendf(nil, front, dir, address, behind.String()), 0o644); err != nil {
		return "", nil, err
	}
	cmd := exec.Command(nginx, "-p", dir, "-c", file)
	if err := cmd.Start(); err != nil {
		return "", nil, err
	}
	stop = func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
	if err := testkit.WaitUntilListening(address); err != nil {
		stop()
		return "", nil, err
	}
	return address, stop, nil
}
