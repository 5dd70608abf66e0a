package deploy_test

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"palmares/internal/catalog/feed/synth"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
	"palmares/internal/dev/testkit/blackbox"
	"palmares/internal/dev/testkit/wait"
)

// TestDeploymentWithNginx runs nginx with deploy/nginx.conf in front of three servers.
func TestDeploymentWithNginx(t *testing.T) {
	t.Parallel()
	cfg := testkit.Postgres(t)
	redis := testkit.StartRedis(t).URL
	blackbox.ImportDemo(t, cfg)
	var servers []*blackbox.Server
	for range 3 {
		servers = append(servers, blackbox.Serve(t, cfg, "--redis-url", redis, "--trusted-proxies", "127.0.0.1"))
	}
	front, client := startDeployedNginx(t, servers)
	get := func(path string, headers ...string) (int, error) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+front.address+path, nil)
		if err != nil {
			return 0, err
		}
		for i := 0; i < len(headers); i += 2 {
			r.Header.Set(headers[i], headers[i+1])
		}
		response, err := client.Do(r)
		if err != nil {
			return 0, err
		}
		defer response.Body.Close()
		_, err = io.Copy(io.Discard, response.Body)
		return response.StatusCode, err
	}

	t.Run("redirect to https", func(t *testing.T) {
		plain := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
		response := check.Try(plain.Get("http://" + front.plain + "/api/v1/stats?x=1")).OK(t)
		defer response.Body.Close()
		to := response.Header.Get("Location")
		check.True(t, response.StatusCode == 308 && strings.HasPrefix(to, "https://") && strings.HasSuffix(to, "/api/v1/stats?x=1"), "got %d to %q, want 308 to https", response.StatusCode, to)
	})

	// Three servers share one quota, and clients cannot forge their address.
	t.Run("one quota", func(t *testing.T) {
		granted := 0
		for i := range 110 {
			status := check.Try(get("/api/v1/stats", "X-Forwarded-For", fmt.Sprintf("203.0.113.%d", i))).OK(t)
			if status == 200 {
				granted++
			} else if status != 429 {
				t.Fatalf("request %d: got %d, want 200 or 429", i, status)
			}
		}
		check.Equal(t, granted, 100, "requests granted")
	})

	// Only requests to the API with a well-formed key are not limited.
	t.Run("rate limit", func(t *testing.T) {
		key := blackbox.NewKey(t, cfg, "pro")
		for _, flood := range []struct {
			path, authorization string
			limited             bool
		}{
			{"/healthz", "", true},
			{"/api/v1/stats", "Bearer nonsense", true},
			{"/api/v1/stats", "Bearer " + key + " /api/", true},
			{"/healthz", "Bearer " + key, true},
			{"/api/v1/stats", "bearer " + key, false},
			{"/api/v1/stats", basic("nonsense", ""), true},
			{"/healthz", basic(key, ""), true},
			{"/mcp", basic(key, ""), true},
			{"/api/v1/stats", basic(key, ""), false},
			{"/api/v1/stats", basic(blackbox.NewKey(t, cfg, "pro"), "pässword"), false},
		} {
			var all sync.WaitGroup
			var rejected atomic.Int64
			for range 8 {
				all.Go(func() {
					for range 100 {
						r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+front.address+flood.path, nil)
						if err != nil {
							t.Error(err)
							return
						}
						if flood.authorization != "" {
							r.Header.Set("Authorization", flood.authorization)
						}
						response, err := client.Do(r)
						if err != nil {
							t.Error(err)
							return
						}
						body, _ := io.ReadAll(response.Body)
						response.Body.Close()
						if response.StatusCode == 429 {
							rejected.Add(1)
							check.True(t, response.Header.Get("Retry-After") != "" && strings.HasPrefix(string(body), `{"error":"Too many`), "429: got %v %s, want Retry-After and a JSON error", response.Header, body)
						}
					}
				})
			}
			all.Wait()
			check.Equal(t, rejected.Load() > 0, flood.limited, "%s with %q: %d", flood.path, flood.authorization, rejected.Load())
		}
	})

	t.Run("unbuffered events", func(t *testing.T) {
		key := blackbox.NewKey(t, cfg, "pro")
		ctx := wait.Context(t)
		r := check.Try(http.NewRequestWithContext(ctx, http.MethodPost, "https://"+front.address+"/graphql", strings.NewReader(`{"query":"subscription {catalogPublished {release}}"}`))).OK(t)
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "text/event-stream")
		r.Header.Set("Authorization", "Bearer "+key)
		response := check.Try(client.Do(r)).OK(t)
		defer response.Body.Close()
		blackbox.MustRun(t, blackbox.Command(t, cfg, "import", "--force", blackbox.SynthFile(t, synth.Options{Tools: 20, Seed: 1, Revision: 300})))
		for lines := bufio.NewScanner(response.Body); lines.Scan(); {
			if strings.Contains(lines.Text(), `"release":`) {
				return
			}
		}
		t.Errorf("got %d and %v, want an event", response.StatusCode, ctx.Err())
	})

	// One server shuts down, as in an upgrade, and one is killed.
	t.Run("lost servers", func(t *testing.T) {
		key := blackbox.NewKey(t, cfg, "pro")
		end, failed := make(chan struct{}), make(chan string, 1)
		var sent atomic.Int64
		more := func() {
			before := sent.Load()
			wait.Until(t, "more requests are sent", func() bool { return sent.Load() > before+20 || t.Failed() || len(failed) > 0 })
		}
		go func() {
			defer close(failed)
			for {
				select {
				case <-end:
					return
				default:
				}
				sent.Add(1)
				if status, err := get("/api/v1/tools?limit=5", "Authorization", "Bearer "+key); err != nil || status != 200 {
					failed <- fmt.Sprintf("request %d: got %d %v, want 200", sent.Load(), status, err)
					return
				}
			}
		}()
		more()
		_ = servers[0].Cmd.Process.Signal(syscall.SIGTERM)
		<-servers[0].Done
		more()
		_ = servers[1].Cmd.Process.Kill()
		<-servers[1].Done
		more()
		close(end)
		if why, is := <-failed; is {
			t.Error(why)
		}
		t.Logf("%d requests", sent.Load())
	})

	_ = servers[2].Cmd.Process.Signal(syscall.SIGTERM)
	servers[2].WaitForExit(t)
	for _, i := range []int{0, 2} { // the killed server lost its last log lines
		check.Contains(t, servers[i].Log.String(), "/api/v1/stats", "server %d: requests", i)
	}
}

// basic returns the Authorization header of HTTP Basic.
func basic(user, password string) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+password))
}

// deployedNginx holds the addresses that nginx listens on.
type deployedNginx struct{ address, plain string }

func startDeployedNginx(t *testing.T, servers []*blackbox.Server) (deployedNginx, *http.Client) {
	t.Helper()
	nginx := testkit.Nginx.Ensure(t)
	dir := t.TempDir()
	client := certify(t, dir)
	front := deployedNginx{testkit.FreeAddress(t), testkit.FreeAddress(t)}
	// Only addresses and folders are changed in the deployed file.
	config := deployFile(t, "nginx.conf")
	change := func(from, to string) {
		t.Helper()
		check.Must(t, strings.Count(config, from), 1, "%q", from)
		config = strings.Replace(config, from, to, 1)
	}
	for i, s := range servers {
		change(fmt.Sprintf("palmares-%d:8080 ", i+1), s.Address+" ")
	}
	change("listen 80 default_server;", "listen "+front.plain+";")
	change("listen 443 ssl http2;", "listen "+front.address+" ssl http2;")
	change("/etc/nginx/certs/fullchain.pem", dir+"/fullchain.pem")
	change("/etc/nginx/certs/privkey.pem", dir+"/privkey.pem")
	change("/var/run/nginx.pid", dir+"/pid")
	change("/dev/stderr", dir+"/error.log")
	change("/var/cache/nginx/palmares", dir+"/cache")
	change("http {", fmt.Sprintf("http { client_body_temp_path %[1]s/b; proxy_temp_path %[1]s/p; fastcgi_temp_path %[1]s/f; uwsgi_temp_path %[1]s/u; scgi_temp_path %[1]s/s;", dir))
	file := filepath.Join(dir, "nginx.conf")
	check.OK(t, os.WriteFile(file, []byte(config), 0o644))
	out, err := exec.Command(nginx, "-t", "-p", dir, "-c", file, "-g", "daemon off;").CombinedOutput()
	check.MustTrue(t, err == nil, "nginx -t: got %v: %s, want a valid configuration", err, out)
	t.Cleanup(func() {
		if output, _ := os.ReadFile(filepath.Join(dir, "error.log")); t.Failed() {
			t.Logf("nginx: %s", output)
		}
	})
	testkit.StartAt(t, exec.Command(nginx, "-p", dir, "-c", file, "-g", "daemon off; master_process off;"), front.address)
	return front, client
}

// certify writes a certificate and its key to a folder, and returns a client that
// trusts it.
func certify(t *testing.T, dir string) *http.Client {
	t.Helper()
	web := httptest.NewTLSServer(nil)
	defer web.Close()
	key := check.Try(x509.MarshalPKCS8PrivateKey(web.TLS.Certificates[0].PrivateKey)).OK(t)
	for name, block := range map[string]*pem.Block{
		"fullchain.pem": {Type: "CERTIFICATE", Bytes: web.Certificate().Raw},
		"privkey.pem":   {Type: "PRIVATE KEY", Bytes: key},
	} {
		check.OK(t, os.WriteFile(filepath.Join(dir, name), pem.EncodeToMemory(block), 0o600))
	}
	trusted := x509.NewCertPool()
	trusted.AddCert(web.Certificate())
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: trusted, ServerName: "example.com"}, ForceAttemptHTTP2: true}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: wait.Limit}
}
