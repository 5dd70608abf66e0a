package main

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"palmares/internal/dev/testkit"
)

// A shared cache in front of the server never serves one caller's response to
// another.
func TestSharedCache(t *testing.T) {
	t.Parallel()
	cfg := testkit.SQLite(t)
	s := startServer(t, cfg, "--demo", "--trusted-proxies", "127.0.0.1")
	front := &server{address: startNginx(t, s.address)}
	mine, theirs := newKey(t, cfg, "developer"), newKey(t, cfg, "pro")

	get := func(path string, headers ...string) (*http.Response, string) {
		t.Helper()
		got := front.call(t, http.MethodGet, path, "", headers...)
		return got, got.Header.Get("X-Cache-Status")
	}
	if got, _ := get("/api/v1/stats", "Authorization", "Bearer "+mine); got.StatusCode != 200 || got.Header.Get("X-RateLimit-Tier") != "free" {
		t.Fatalf("with a key: got %d %v, want 200 and the tier free", got.StatusCode, got.Header)
	}
	for i := range 3 {
		got, status := get("/api/v1/stats")
		if got.StatusCode != 200 || got.Header.Get("X-RateLimit-Tier") != "" || got.Header.Get("CDN-Cache-Control") != "" {
			t.Errorf("without a key: got %d %v, want 200 without a tier", got.StatusCode, got.Header)
		}
		if i > 0 && status != "HIT" {
			t.Errorf("got %s for a public response, want HIT", status)
		}
	}
	if got, _ := get("/api/v1/stats", "Authorization", "Bearer "+theirs); got.Header.Get("X-RateLimit-Tier") != "pro" {
		t.Errorf("with another key: got %v, want the tier pro", got.Header)
	}

	if got, _ := get("/api/embeddings/plume", "Authorization", "Bearer "+mine); got.StatusCode != 200 {
		t.Fatalf("embeddings: got %d, want 200", got.StatusCode)
	}
	for _, headers := range [][]string{nil, {"Authorization", "Bearer nonsense"}} {
		if got, status := get("/api/embeddings/plume", headers...); got.StatusCode != 401 {
			t.Errorf("embeddings without a key: got %d (%s), want 401", got.StatusCode, status)
		}
	}
	// Encodings are cached separately.
	if got, _ := get("/api/v1/tools", "Accept-Encoding", "gzip"); got.Header.Get("Content-Encoding") != "gzip" {
		t.Errorf("got %v, want gzip", got.Header)
	}
	if got, _ := get("/api/v1/tools", "Accept-Encoding", "identity"); got.Header.Get("Content-Encoding") != "" {
		t.Errorf("got %v, want no encoding", got.Header)
	}
}

// startNginx starts a caching proxy in front of an address.
func startNginx(t *testing.T, behind string) string {
	t.Helper()
	nginx, err := testkit.Nginx.Ensure()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	address := freeAddress(t)
	config := fmt.Sprintf(`
daemon off; master_process off; pid %[1]s/pid; error_log %[1]s/error.log;
events {}
http {
	access_log off;
	client_body_temp_path %[1]s/body; proxy_temp_path %[1]s/proxy; fastcgi_temp_path %[1]s/f; uwsgi_temp_path %[1]s/u; scgi_temp_path %[1]s/s;
	proxy_cache_path %[1]s/cache keys_zone=catalog:1m;
	server {
		listen %[2]s;
		location / {
			proxy_pass http://%[3]s;
			proxy_http_version 1.1;
			proxy_cache catalog;
			proxy_cache_key $request_uri;
			proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
			add_header X-Cache-Status $upstream_cache_status always;
		}
	}
}`, dir, address, behind)
	file := filepath.Join(dir, "nginx.conf")
	if err := os.WriteFile(file, []byte(config), 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(nginx, "-p", dir, "-c", file)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	testkit.WaitFor(t, address)
	return address
}
