package deploy_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"palmares/auth"
	"palmares/internal/catalog/feed/synth"
	"palmares/internal/core/middleware"
	"palmares/internal/core/store"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
	"palmares/internal/dev/testkit/blackbox"
	"palmares/internal/dev/testkit/wait"
)

// cachingProxy is nginx with its default cache key and rules: it stores responses to GET
// and HEAD as long as Cache-Control says, separately for the headers in Vary, and
// ignores Authorization and CDN-Cache-Control.
type cachingProxy struct{ address, dir string }

func startCachingProxy(t *testing.T, behind string) *cachingProxy {
	t.Helper()
	nginx := testkit.Nginx.Ensure(t)
	p := &cachingProxy{testkit.FreeAddress(t), t.TempDir()}
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
			proxy_cache catalog;
			add_header X-Cache-Status $upstream_cache_status always;
		}
	}
}`, p.dir, p.address, behind)
	file := filepath.Join(p.dir, "nginx.conf")
	check.OK(t, os.WriteFile(file, []byte(config), 0o644))
	testkit.StartAt(t, exec.Command(nginx, "-p", p.dir, "-c", file), p.address)
	return p
}

// clear empties the cache: nginx treats a missing file as a miss.
func (p *cachingProxy) clear(t *testing.T) {
	t.Helper()
	files := check.Try(filepath.Glob(filepath.Join(p.dir, "cache", "*"))).OK(t)
	for _, file := range files {
		check.OK(t, os.Remove(file))
	}
}

// caller is a kind of request.
type caller struct {
	name    string
	method  string // GET if empty
	body    string
	headers []string
}

func (c caller) header(name string) string {
	for i := 0; i < len(c.headers); i += 2 {
		if c.headers[i] == name {
			return c.headers[i+1]
		}
	}
	return ""
}

// answer is a response with its body.
type answer struct {
	*http.Response
	body []byte
}

// ask sends the request of a caller. Each anonymous one comes from another network,
// because they have a quota.
func (c caller) ask(t *testing.T, address, path string) answer {
	t.Helper()
	got := check.Try(c.try(t.Context(), address, path)).OK(t)
	return got
}

func (c caller) try(ctx context.Context, address, path string) (answer, error) {
	network := networks.Add(1)
	headers := slices.Concat([]string{"Accept-Encoding", cmp.Or(c.header("Accept-Encoding"), "identity")}, c.headers)
	if c.header("Accept-Encoding") != "" {
		headers = headers[2:]
	}
	if c.header("X-Forwarded-For") == "" {
		headers = append(headers, "X-Forwarded-For", fmt.Sprintf("2001:db8:%x:%x::1", network>>16, network&0xffff))
	}
	response, body, err := blackbox.Do(ctx, withoutRedirects, cmp.Or(c.method, http.MethodGet), "http://"+address+path, c.body, headers...)
	return answer{response, body}, err
}

var (
	networks         atomic.Int64
	withoutRedirects = &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
)

// Headers that differ between two responses to the same request, or that nginx sets.
var volatile = []string{
	"Accept-Ranges", "Cache-Status", "Connection", "Content-Length", "Date", "Keep-Alive", "Ratelimit", "Retry-After", "Server", "Set-Cookie", "Transfer-Encoding",
	"X-Cache-Status", "X-Ratelimit-Remaining", "X-Ratelimit-Reset", "X-Request-Id",
}

var requestID = regexp.MustCompile(`"requestId":"[a-z0-9]+"`) // of GraphQL's errors

// differs says how a response through the cache differs from the server's own, or
// returns "".
func (a answer) differs(own answer) string {
	if partial := a.StatusCode == http.StatusPartialContent; partial && own.StatusCode == http.StatusOK {
		var first, last, size int
		_, err := fmt.Sscanf(a.Header.Get("Content-Range"), "bytes %d-%d/%d", &first, &last, &size)
		if err != nil || size != len(own.body) || last >= size || !bytes.Equal(a.body, own.body[first:last+1]) {
			return fmt.Sprintf("got %s of another body, want a part of %d bytes", a.Header.Get("Content-Range"), len(own.body))
		}
		a.Header.Del("Content-Range")
	} else if a.StatusCode != own.StatusCode {
		return fmt.Sprintf("got status %d, want %d", a.StatusCode, own.StatusCode)
	} else if !bytes.Equal(requestID.ReplaceAll(a.body, nil), requestID.ReplaceAll(own.body, nil)) {
		return fmt.Sprintf("got the body %.200q, want %.200q", a.body, own.body)
	}
	got, want := maps.Clone(a.Header), maps.Clone(own.Header)
	for _, name := range volatile {
		got.Del(name)
		want.Del(name)
	}
	for name := range want {
		if !slices.Equal(got[name], want[name]) {
			return fmt.Sprintf("got %s %q, want %q", name, got[name], want[name])
		}
		delete(got, name)
	}
	if len(got) > 0 {
		return fmt.Sprintf("got the headers %v, want none of them", got)
	}
	return ""
}

// Behind a shared cache that respects Vary and Cache-Control, every caller gets the
// response that the server would send to them, whoever filled the cache.
func TestSharedCacheWithNginx(t *testing.T) {
	t.Parallel()
	cfg := testkit.SQLite(t)
	ana, bea := blackbox.CreateKey(t, cfg, "ana@example.com", "pro"), blackbox.CreateKey(t, cfg, "bea@example.com", "developer")
	other, revoked := blackbox.NewKey(t, cfg, "developer"), blackbox.NewKey(t, cfg, "pro")
	blackbox.MustRun(t, blackbox.Command(t, cfg, "keys", "revoke", revoked))
	sessions := []string{signIn(t, cfg, "ana@example.com"), signIn(t, cfg, "bea@example.com")}
	s := blackbox.Serve(t, cfg, "--demo", "--trusted-proxies", "127.0.0.1")
	proxy := startCachingProxy(t, s.Address)
	save := func(name string, flags ...string) []string {
		file := blackbox.WriteFile(t, "query.graphql", []byte(fmt.Sprintf("query %s {tools(limit: 20) {items {slug name}}}", name)))
		saved := blackbox.MustRun(t, blackbox.Command(t, cfg, append([]string{"--listen", s.Address, "queries", "save", "ana@example.com", name, file, "--handle", "ana"}, flags...)...))
		return strings.Fields(strings.ReplaceAll(saved.Out, "http://"+s.Address, ""))
	}
	public, secret := save("public"), save("secret", "--private")
	_, token, _ := strings.Cut(blackbox.MustRun(t, blackbox.Command(t, cfg, "queries", "token", "ana@example.com", "secret")).Out, "?")
	token = "?" + strings.TrimSpace(token)

	exhausted := []string{"X-Forwarded-For", "203.0.113.99"}
	for range 100 {
		caller{headers: exhausted}.ask(t, s.Address, "/api/v1/stats")
	}
	const query = `{"query":"{tools(limit: 2) {items {slug}}}"}`
	const anonymous, usedUp, withBody = "anonymous", "used up quota", "GET with a body"
	callers := []caller{
		{name: anonymous},
		{name: "ana", headers: []string{"Authorization", "Bearer " + ana}},
		{name: "bea", headers: []string{"Authorization", "Bearer " + bea}},
		{name: "another developer", headers: []string{"Authorization", "Bearer " + other}},
		{name: "ana with gzip", headers: []string{"Authorization", "Bearer " + ana, "Accept-Encoding", "gzip"}},
		{name: "ana with HEAD", method: http.MethodHead, headers: []string{"Authorization", "Bearer " + ana}},
		{name: "unknown key", headers: []string{"Authorization", "Bearer nonsense"}},
		{name: "revoked key", headers: []string{"Authorization", "Bearer " + revoked}},
		{name: usedUp, headers: exhausted},
		{name: "signed in as ana", headers: []string{"Cookie", "palmares_session=" + sessions[0], "Accept", "text/html"}},
		{name: "signed in as bea", headers: []string{"Cookie", "palmares_session=" + sessions[1], "Accept", "text/html"}},
		{name: "browser in French", headers: []string{"Accept", "text/html", "Accept-Language", "fr", "Accept-Encoding", "br"}},
		{name: "browser in English", headers: []string{"Accept", "text/html", "Accept-Language", "en", "Accept-Encoding", "br"}},
		{name: "Markdown", headers: []string{"Accept", "text/markdown"}},
		{name: "CSV", headers: []string{"Accept", "text/csv", "Accept-Encoding", "gzip"}},
		{name: "GraphQL's own type", headers: []string{"Accept", "application/graphql-response+json"}},
		{name: "no encoding", headers: []string{"Accept-Encoding", "identity;q=0"}},
		{name: "HEAD", method: http.MethodHead},
		{name: "range", headers: []string{"Range", "bytes=5-20"}},
		{name: "another origin", headers: []string{"Origin", "https://evil.example", "X-Forwarded-Host", "evil.example", "X-Forwarded-Proto", "https", "X-Original-Url", "/account", "X-Http-Method-Override", "POST"}},
		{name: withBody, body: query},
		{name: "POST", method: http.MethodPost, body: query},
		{name: "QUERY", method: middleware.MethodQuery, body: query},
		{name: "preflight", method: http.MethodOptions, headers: []string{"Origin", "https://evil.example", "Access-Control-Request-Method", "GET"}},
	}
	graphql := func(query, variables string) string {
		return "/graphql?" + url.Values{"query": {query}, "variables": {variables}}.Encode()
	}
	paths := []string{
		"/api/v1/stats", "/api/v1/tools", "/api/v1/tools?limit=3&nothing=1", "/api/v1/tools/plume", "/api/v1/tools/plume?as_of=3", "/api/v1/tools.csv", "/api/v1/tools?format=ndjson",
		"/api/v1/tools/unknown", "/api/v1/tools?limit=0", "/api/v1/nothing", "/api/v1/openapi.json", "/api/v1/changes", "/api/embeddings", "/api/embeddings/plume",
		graphql("query ($n: Int!) {tools(limit: $n) {items {slug}}}", `{"n":40}`), graphql("query ($n: Int!) {tools(limit: $n) {items {slug}}}", `{"n":2}`),
		graphql(`{tool(slug: "plume") {embeddings {hash}}}`, ""), graphql("{tols}", ""), graphql("subscription {catalogPublished {release}}", ""), "/graphql",
		public[0], public[0] + ".csv", public[1], secret[0], secret[0] + token, secret[0] + ".csv" + token, secret[1], secret[1] + token, "/q/ana/openapi.json", "/q/ana/unknown", "/q/palmares/monthly-prices",
		"/", "/tools", "/en/", "/fr/tools", "/en/tools/plume", "/en/tools/unknown", "/en/nothing", "/en/docs", "/en/explorer", "/en/guides/agents", "/en/q", "/en/changes",
		"/feeds/prices.atom", "/.well-known/api-catalog", "/llms.txt", "/sitemap.xml", "/robots.txt", "/healthz", "/mcp", "/search/suggestions?q=plum", "/account", "/en/account", "/en/login",
	}
	pairs, hits := 0, 0
	keys := map[string]string{} // by the ID of the request that they were sent with
	for _, path := range paths {
		own := map[string]answer{}
		for _, c := range callers {
			own[c.name] = c.ask(t, s.Address, path)
		}
		personal := strings.HasSuffix(path, "/account") || strings.HasSuffix(path, "/login")
		for i, first := range callers {
			proxy.clear(t)
			// Everyone follows, also the first caller again, in another order each time.
			for n, c := range slices.Concat([]caller{first}, callers[i:], callers[:i]) {
				got := c.ask(t, proxy.address, path)
				id, key := got.Header.Get("X-Request-Id"), c.header("Authorization")
				hit, want := got.Header.Get("X-Cache-Status") == "HIT", own[c.name]
				if hit {
					hits++
				} else {
					keys[id] = key
				}
				if n > 0 {
					pairs++
				}
				if hit && (c.name == usedUp || c.name == withBody) { // cached responses are free
					want = own[anonymous]
				}
				if c.name == usedUp && strings.HasPrefix(path, "/q/") && got.StatusCode != want.StatusCode { // free up to 10 a second
					want = own[anonymous]
				}
				problem := got.differs(want)
				if c.name == usedUp && strings.HasPrefix(path, "/q/") && got.StatusCode == http.StatusTooManyRequests {
					problem = ""
				}
				switch {
				case hit && strings.Contains(want.Header.Get("Vary"), "Authorization") && keys[id] != key:
					problem = "got the response to another key"
				case personal && hit:
					problem = "got a response from the cache"
				case personal && got.StatusCode == want.StatusCode: // forms have tokens
					problem = ""
					for _, email := range []string{"ana@example.com", "bea@example.com"} {
						if mine := c.name == "signed in as "+email[:3] && path == "/en/account"; bytes.Contains(got.body, []byte(email)) != mine {
							problem = fmt.Sprintf("got the page of %s: %t, want %t", email, !mine, mine)
						}
					}
				}
				check.True(t, problem == "", "%s: %s after %s: %s (%s)", path, c.name, first.name, problem, got.Header.Get("X-Cache-Status"))
			}
		}
	}
	t.Logf("%d pairs of callers, %d from the cache", pairs, hits)
	check.True(t, hits >= pairs/10, "got %d of %d responses from the cache, want at least a tenth", hits, pairs)

	// A tag is for one encoding.
	proxy.clear(t)
	plain, zipped := caller{}, caller{headers: []string{"Accept-Encoding", "gzip"}}
	for range 2 { // from the server, then from the cache
		tag := plain.ask(t, proxy.address, "/api/v1/tools").Header.Get("Etag")
		for _, c := range []struct {
			encoding string
			want     int
		}{{"identity", http.StatusNotModified}, {"gzip", http.StatusOK}} {
			conditional := caller{headers: []string{"If-None-Match", tag, "Accept-Encoding", c.encoding}}
			if got := conditional.ask(t, proxy.address, "/api/v1/tools"); got.StatusCode != c.want || got.Header.Get("Content-Encoding") == "gzip" != (c.want == http.StatusOK) {
				t.Errorf("If-None-Match with %s: got %d %v, want %d", c.encoding, got.StatusCode, got.Header, c.want)
			}
		}
	}

	// Cached responses match their release after the next one is published.
	proxy.clear(t)
	feed := graphql("{feed {release}}", "")
	for _, path := range []string{"/api/v1/stats", feed} {
		plain.ask(t, proxy.address, path)
	}
	var synced struct {
		Next string `json:"next_sync"`
	}
	owner := caller{headers: []string{"Authorization", "Bearer " + ana}}
	check.OK(t, json.Unmarshal(owner.ask(t, s.Address, "/api/embeddings?limit=100").body, &synced))
	blackbox.MustRun(t, blackbox.Command(t, cfg, "import", "--force", blackbox.SynthFile(t, synth.Options{Tools: 20, Seed: 1, Revision: 300})))
	newest := func() string { return plain.ask(t, s.Address, "/api/v1/stats").Header.Get("X-Service-Release") }
	wait.Until(t, "the next release is served", func() bool { return newest() == "9" })
	for _, c := range []struct {
		caller  caller
		release string
	}{{plain, "8"}, {zipped, "9"}} { // only the first was cached
		got, want := c.caller.ask(t, proxy.address, "/api/v1/stats"), c.caller.ask(t, s.Address, "/api/v1/stats?as_of="+c.release)
		release := got.Header.Get("X-Service-Release")
		check.True(t, release == c.release && bytes.Equal(got.body, want.body), "got release %s with %s, want %s with %s", release, got.body, c.release, want.body)
		got = c.caller.ask(t, proxy.address, feed)
		if release := got.Header.Get("X-Service-Release"); release != c.release || string(got.body) != `{"data":{"feed":{"release":`+release+`}}}` {
			t.Errorf("got release %s with %s, want %s", release, got.body, c.release)
		}
	}

	// A token of a release that was removed stays invalid, and its error is not cached.
	blackbox.MustRun(t, blackbox.Command(t, cfg, "history", "prune", "--before", "9", "--yes"))
	expired := "/api/embeddings?sync=" + synced.Next
	wait.Until(t, "the release is removed", func() bool { return owner.ask(t, s.Address, expired).StatusCode == http.StatusGone })
	for _, c := range []struct {
		caller caller
		want   int
	}{{owner, http.StatusGone}, {plain, http.StatusUnauthorized}, {owner, http.StatusGone}} {
		got := c.caller.ask(t, proxy.address, expired)
		check.True(t, got.StatusCode == c.want && got.Header.Get("X-Cache-Status") == "MISS", "expired token: got %d (%s), want %d from the server", got.StatusCode, got.Header.Get("X-Cache-Status"), c.want)
	}
}

// signIn returns the token of a new session.
func signIn(t *testing.T, cfg store.Config, email string) string {
	t.Helper()
	accounts := auth.NewAccounts(testkit.Open(t, cfg))
	challenge := check.Try(accounts.StartSignIn(t.Context(), email, auth.Sender{Network: email})).OK(t)
	found := check.Try(accounts.ConfirmationByLink(t.Context(), challenge.Link)).OK(t)
	token := check.Try(accounts.SignIn(t.Context(), found, "", "en")).OK(t)
	return token
}
