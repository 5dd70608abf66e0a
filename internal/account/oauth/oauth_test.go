package oauth

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"palmares/auth"
	"palmares/ent"
	"palmares/internal/core/limiter"
	"palmares/internal/core/problem"
	"palmares/internal/core/quota"
	"palmares/internal/core/store"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
)

const (
	base     = "https://palmares.example"
	verifier = "a-verifier-of-at-least-forty-three-characters"
)

// kit is a server with an account.
type kit struct {
	*Server
	t       *testing.T
	account *ent.Account
	time    time.Time
}

func newKit(t *testing.T, s *store.Store) *kit {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	server := check.Try(New(t.Context(), Config{
		Resources: Resources{base, "/mcp"}, ServiceName: "Palmarès", Loopback: true, Store: s, Keyring: auth.NewKeyring(s, log, auth.Rules{}), Log: log,
	})).OK(t)
	k := &kit{Server: server, t: t, time: time.Now()}
	k.now = func() time.Time { return k.time }
	k.account = check.Try(k.Accounts.Create(t.Context(), "ana@example.com", auth.Developer)).OK(t)
	return k
}

func newSQLiteKit(t *testing.T) *kit {
	t.Helper()
	return newKit(t, testkit.Open(t, testkit.SQLite(t)))
}

func eachKit(t *testing.T, test func(*kit)) {
	t.Parallel()
	testkit.EachStore(t, func(t *testing.T, s *store.Store) { test(newKit(t, s)) })
}

// serve sends a request from an address.
func (k *kit) serve(method, path, body string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	k.ServeHTTP(w, r)
	return w
}

// send returns the status of the response to a request, and the JSON in it.
func (k *kit) send(method, path, body string, header ...string) (int, map[string]any) {
	k.t.Helper()
	w := k.serve(method, path, body, header...)
	var content map[string]any
	if w.Body.Len() > 0 {
		check.OK(k.t, json.Unmarshal(w.Body.Bytes(), &content), "%s %s: %s", method, path, w.Body)
	}
	return w.Code, content
}

// register registers a client and returns its id.
func (k *kit) register(redirects ...string) string {
	k.t.Helper()
	body, _ := json.Marshal(map[string]any{"client_name": "Test", "redirect_uris": redirects})
	status, content := k.send("POST", registerPath, string(body))
	check.Must(k.t, status, http.StatusCreated, content)
	return content["client_id"].(string)
}

// query returns a valid authorization request, with some parameters changed. Those that are
// empty are left out.
func query(clientID, redirect string, changed ...string) url.Values {
	challenge := sha256.Sum256([]byte(verifier))
	q := url.Values{
		"client_id": {clientID}, "redirect_uri": {redirect}, "response_type": {"code"}, "state": {"a state&"}, "resource": {base + "/mcp"},
		"code_challenge": {base64.RawURLEncoding.EncodeToString(challenge[:])}, "code_challenge_method": {"S256"},
	}
	for i := 0; i < len(changed); i += 2 {
		if q.Set(changed[i], changed[i+1]); changed[i+1] == "" {
			q.Del(changed[i])
		}
	}
	return q
}

func (k *kit) parse(q url.Values) (*Request, error) {
	return k.Parse(httptest.NewRequest("GET", AuthorizePath+"?"+q.Encode(), nil), k.account.ID)
}

// code connects a client and returns the parameters of the answer.
func (k *kit) code(q url.Values) url.Values {
	k.t.Helper()
	request := check.Try(k.parse(q)).OK(k.t)
	location := check.Try(k.Allow(k.t.Context(), request, k.account)).OK(k.t)
	to := check.Try(url.Parse(location)).OK(k.t)
	return to.Query()
}

func (k *kit) token(form url.Values) (int, map[string]any) {
	k.t.Helper()
	return k.send("POST", tokenPath, form.Encode())
}

const local = "http://127.0.0.1:3000/callback"

func exchange(clientID, code string) url.Values {
	return url.Values{
		"grant_type": {"authorization_code"}, "client_id": {clientID}, "code": {code}, "redirect_uri": {local}, "code_verifier": {verifier}, "resource": {base + "/mcp"},
	}
}

func TestFlow(t *testing.T) {
	eachKit(t, func(k *kit) {
		client := k.register(local)
		answer := k.code(query(client, local))
		check.Equal(k.t, answer.Get("iss"), base, answer)
		check.Equal(k.t, answer.Get("state"), "a state&", answer)
		form := exchange(client, answer.Get("code"))
		status, got := k.token(form)
		check.Must(k.t, status, 200)
		check.Must(k.t, got["token_type"], "Bearer")
		check.Must(k.t, got["expires_in"], 3600.0)
		check.Must(k.t, got["scope"], "read")
		refresh := url.Values{"grant_type": {"refresh_token"}, "client_id": {client}, "refresh_token": {got["refresh_token"].(string)}}
		status, next := k.token(refresh)
		check.Must(k.t, status, 200, next)
		check.MustTrue(k.t, next["access_token"] != got["access_token"], "got %d %v, want new tokens", status, next)
		status, _ = k.send("POST", revokePath, url.Values{"client_id": {client}, "token": {next["access_token"].(string)}}.Encode())
		check.Equal(k.t, status, 200, "revoking")
		refresh.Set("refresh_token", next["refresh_token"].(string))
		status, got = k.token(refresh)
		check.Equal(k.t, fmt.Sprintf("%d %v", status, got["error"]), "400 invalid_grant", "a revoked token")
		k.time = k.time.Add(unusedLifetime + time.Minute)
		status, got = k.token(refresh) // clients register again
		check.Equal(k.t, fmt.Sprintf("%d %v", status, got["error"]), "401 invalid_client", "an expired registration")
	})
}

// Private saved queries are another scope: only for applications that request it, with the
// resource that has them, and for as long as they stay connected.
func TestScopes(t *testing.T) {
	eachKit(t, func(k *kit) {
		client := k.register(local)
		for _, c := range []struct{ resource, scope, want string }{
			{base, "", "read"}, {base, "read", "read"}, {base, "saved_queriesx", "read"}, {base, "read saved_queries", "read saved_queries"}, {base + "/mcp", "saved_queries", "read"},
		} {
			form := exchange(client, k.code(query(client, local, "resource", c.resource, "scope", c.scope)).Get("code"))
			form.Set("resource", c.resource)
			status, got := k.token(form)
			check.Must(k.t, status, 200, "%+v", c)
			check.Must[any](k.t, got["scope"], c.want, "%+v", c)
			status, got = k.token(url.Values{"grant_type": {"refresh_token"}, "client_id": {client}, "refresh_token": {got["refresh_token"].(string)}})
			check.Equal(k.t, status, 200, "%+v", c)
			check.Equal[any](k.t, got["scope"], c.want, "%+v", c)
			r := httptest.NewRequest("GET", "/mcp", nil)
			r.Header.Set("Authorization", "Bearer "+got["access_token"].(string))
			var caller auth.Caller
			keyring := auth.NewKeyring(k.Store, k.Log, auth.Rules{Accepts: func(string, *http.Request) bool { return true }})
			keyring.Identify(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { caller = auth.CallerFrom(r.Context()) })).ServeHTTP(httptest.NewRecorder(), r)
			if allowed := c.want != "read"; caller.Account != k.account.ID || caller.OwnsQueries(k.account.ID) != allowed || caller.OwnsQueries(k.account.ID+1) {
				k.t.Errorf("%+v: got caller %+v, want private queries %v", c, caller, allowed)
			}
		}
	})
}

// Invalid requests never send the browser to an address that the client has not registered.
func TestRequests(t *testing.T) {
	t.Parallel()
	k := newSQLiteKit(t)
	client := k.register(local, "https://app.example/back?x=1", "cursor://anysphere.cursor-mcp/oauth/callback")
	const published = "https://app.example/client.json"
	k.transport = publish(`{"client_id":"` + published + `","redirect_uris":["` + local + `","https://app.example/back?x=1","cursor://anysphere.cursor-mcp/oauth/callback"]}`)
	signed := check.Try(base64.RawURLEncoding.DecodeString(strings.TrimPrefix(client, registeredPrefix))).OK(t)
	forged := registeredPrefix + base64.RawURLEncoding.EncodeToString(bytes.Replace(signed, []byte("app.example"), []byte("bad.example"), 1))
	for _, c := range []struct {
		name, redirect string
		changed        []string
		want           string // the error that the browser is sent back with; "" for a page
	}{
		{"no client", local, []string{"client_id", ""}, ""},
		{"unknown client", local, []string{"client_id", "dcr_AAAA"}, ""},
		{"forged client", "https://bad.example/back?x=1", []string{"client_id", forged}, ""},
		{"long client", local, []string{"client_id", "https://a.example/" + strings.Repeat("x", 2000)}, ""},
		{"no redirect", "", nil, ""},
		{"other host", "http://localhost:3000/callback", nil, ""},
		{"other path", "http://127.0.0.1:3000/callback/../x", nil, ""},
		{"longer path", local + "/x", nil, ""},
		{"more parameters", local + "?x=1", nil, ""},
		{"user", "http://127.0.0.1:3000@evil.example/callback", nil, ""},
		{"backslash", `http://127.0.0.1:3000\@evil.example/callback`, nil, ""},
		{"fragment", local + "#x", nil, ""},
		{"other port of https", "https://app.example:444/back?x=1", nil, ""},
		{"http", "http://app.example/back?x=1", nil, ""},
		{"script", "javascript:alert(1)", nil, ""},
		{"other scheme", "evil://anysphere.cursor-mcp/oauth/callback", nil, ""},
		{"no challenge", local, []string{"code_challenge", ""}, "invalid_request"},
		{"plain", local, []string{"code_challenge_method", "plain"}, "invalid_request"},
		{"no method", local, []string{"code_challenge_method", ""}, "invalid_request"},
		{"short challenge", local, []string{"code_challenge", "abc"}, "invalid_request"},
		{"token", local, []string{"response_type", "token"}, "unsupported_response_type"},
		{"fragment mode", local, []string{"response_mode", "fragment"}, "invalid_request"},
		{"no resource", local, []string{"resource", ""}, "invalid_target"},
		{"foreign resource", local, []string{"resource", "https://other.example/mcp"}, "invalid_target"},
		{"part of a resource", local, []string{"resource", base + "/mcp/x"}, "invalid_target"},
	} {
		_, err := k.parse(query(client, c.redirect, c.changed...))
		_, redirected := err.(*Rejection)
		check.Fails(t, err, c.name)
		check.Equal(t, redirected, false, c.name)
		_, err = k.parse(query(published, c.redirect, c.changed...))
		rejection, redirected := err.(*Rejection)
		check.Fails(t, err, c.name)
		check.Equal(t, redirected, c.want != "", "%s: %v", c.name, err)
		if !redirected {
			continue
		}
		to := check.Try(url.Parse(rejection.Location)).OK(t)
		if got := to.Query(); !strings.HasPrefix(rejection.Location, c.redirect+"?") || got.Get("error") != c.want || got.Get("iss") != base || got.Get("state") != "a state&" {
			t.Errorf("%s: got %s, want %s with the issuer and state", c.name, rejection.Location, c.want)
		}
	}
	for _, valid := range []string{local, "http://127.0.0.1:49152/callback", "http://127.0.0.1/callback", "https://app.example/back?x=1", "cursor://anysphere.cursor-mcp/oauth/callback"} {
		request := check.Try(k.parse(query(client, valid))).OK(t, valid)
		got := k.Deny(request)
		check.True(t, strings.HasPrefix(got, valid), "%s: got %s, want access_denied", valid, got)
		check.Contains(t, got, "error=access_denied", valid)
		check.Equal(t, strings.Count(got, "?"), 1, valid)
		check.Equal(t, request.Client.Verified, false, "%s: %+v", valid, request.Client)
		check.True(t, request.Client.Host != "", "%s: got %+v, want the host and nothing verified", valid, request.Client)
	}
	for _, resource := range []string{base, base + "/"} {
		request := check.Try(k.parse(query(client, local, "resource", resource))).OK(t, resource)
		check.Equal(t, request.Resource, base, resource)
	}
	for _, twice := range []string{"redirect_uri", "client_id", "state", "resource", "code_challenge"} {
		q := query(client, local)
		q.Add(twice, "x")
		check.Try(k.parse(q)).Fails(t, "%s twice", twice)
	}
	_, err := k.parse(query(client, local, "state", strings.Repeat("x", MaxQuery)))
	check.Equal[error](t, err, errQuery)
}

// The payloads have the shape that is publicly known of these clients; they are not recordings.
func TestRegistrations(t *testing.T) {
	t.Parallel()
	k := newSQLiteKit(t)
	for name, payload := range map[string]string{
		"Cursor":  `{"redirect_uris":["cursor://anysphere.cursor-mcp/oauth/callback"],"token_endpoint_auth_method":"none","grant_types":["authorization_code","refresh_token"],"response_types":["code"],"client_name":"Cursor","client_uri":"https://cursor.com"}`,
		"VS Code": `{"client_name":"Visual Studio Code","client_uri":"https://code.visualstudio.com","grant_types":["authorization_code","refresh_token","urn:ietf:params:oauth:grant-type:device_code"],"response_types":["code"],"redirect_uris":["https://insiders.vscode.dev/redirect","https://vscode.dev/redirect","http://localhost/","http://127.0.0.1/","http://localhost:33418/","http://127.0.0.1:33418/"],"token_endpoint_auth_method":"none"}`,
		"Claude":  `{"client_name":"Claude","client_uri":"https://claude.ai","redirect_uris":["https://claude.ai/api/mcp/auth_callback"],"grant_types":["authorization_code","refresh_token"],"response_types":["code"],"token_endpoint_auth_method":"none","scope":"claudeai"}`,
		"ChatGPT": `{"client_name":"ChatGPT","redirect_uris":["https://chatgpt.com/connector_platform_oauth_redirect"],"grant_types":["authorization_code","refresh_token"],"response_types":["code"],"token_endpoint_auth_method":"client_secret_post"}`,
	} {
		status, got := k.send("POST", registerPath, payload, "Content-Type", "application/json")
		if status != 201 || got["token_endpoint_auth_method"] != "none" || got["client_secret"] != nil {
			t.Fatalf("%s: got %d %v, want a public client", name, status, got)
		}
		for _, redirect := range got["redirect_uris"].([]any) {
			request, err := k.parse(query(got["client_id"].(string), redirect.(string)))
			check.True(t, err == nil && request.Client.Name == got["client_name"], "%s: got %v, want it allowed", redirect, err)
		}
		check.True(t, len(got["client_id"].(string)) <= 600, "%s: got id %v, want at most 600 characters", name, got["client_id"])
	}
	for _, redirect := range []string{
		"javascript:alert(1)", "javascript://x/%0aalert(1)", "data:text/html,x", "http://app.example/", "https:///x", "https://a.example/#x", "https://u:p@a.example/",
		"//a.example/", "/x", "", "file:///etc/passwd", "blob:https://a.example/x", "evil://x/", "cursor:x", "https://a.example/\r\nX: y", "https://a.example/<b>", "http://127.0.0.1.evil.example/", "http://localhost.evil.example/",
		"HTTPS ://a.example", "https://a.example/" + strings.Repeat("x", maxRedirect),
	} {
		body, _ := json.Marshal(map[string]any{"redirect_uris": []string{"https://a.example/", redirect}})
		status, got := k.send("POST", registerPath, string(body))
		check.Equal(t, status, 400, redirect)
		check.Equal(t, got["error"], "invalid_redirect_uri", redirect)
		k.time = k.time.Add(time.Minute) // otherwise there are too many
	}
	for _, body := range []string{"", "null", "[]", `{"redirect_uris":"https://a.example/"}`, `{"redirect_uris":["https://a.example/"],"grant_types":["client_credentials"]}`, strings.Repeat("x", maxDocument+1)} {
		status, _ := k.send("POST", registerPath, body)
		check.Equal(t, status, 400, "%.50q", body)
	}
	// A registration is part of the client_id, so it must fit into a URL.
	long := "https://a.example/" + strings.Repeat("x", 900)
	body, _ := json.Marshal(map[string]any{"redirect_uris": []string{long, long, long, long}})
	status, content := k.send("POST", registerPath, string(body))
	check.Equal(t, fmt.Sprintf("%d %v", status, content["error"]), "400 invalid_client_metadata")
	got := cleanName("Cla\u202eude\x00\n  by \u200bx" + strings.Repeat("y", 100))
	check.True(t, !strings.ContainsAny(got, "\u202e\u200b\x00\n"), "got name %q, want a short line", got)
	check.Equal(t, len([]rune(got)), maxName)
}

// Registrations need no storage, are limited by address, and expire after a day.
func TestManyRegistrations(t *testing.T) {
	t.Parallel()
	k := newSQLiteKit(t)
	statuses := map[int]int{}
	for range 10_000 {
		status, _ := k.send("POST", registerPath, `{"redirect_uris":["https://a.example/"]}`)
		statuses[status]++
	}
	check.Equal(t, statuses[201], 60, statuses)
	check.Equal(t, statuses[429], 9_940, statuses)
	k.time = k.time.Add(time.Minute)
	used, unused := k.register(local), k.register(local, "https://a.example/")
	status, got := k.token(exchange(used, k.code(query(used, local)).Get("code")))
	check.Must(t, status, 200, got)
	k.time = k.time.Add(unusedLifetime + time.Second)
	_, err := k.parse(query(unused, local))
	check.Equal[error](t, err, errUnused, "unused")
	_, err = k.parse(query(used, local))
	check.Equal(t, err, nil, "used")
}

// publisher is a host of metadata documents.
type publisher struct {
	*httptest.Server
	requests atomic.Int64
	answer   http.HandlerFunc
}

func newPublisher(t *testing.T) *publisher {
	t.Helper()
	p := &publisher{}
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.requests.Add(1)
		p.answer(w, r)
	}))
	t.Cleanup(p.Close)
	return p
}

func TestMetadataDocuments(t *testing.T) {
	t.Parallel()
	k := newSQLiteKit(t)
	p := newPublisher(t)
	document := func(id, more string) string {
		return fmt.Sprintf(`{"client_id":%q,"client_name":"Claude","redirect_uris":[%q]%s}`, id, local, more)
	}
	text := func(body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, body) }
	}
	id := p.URL + "/client.json"
	p.answer = text(document(id, ""))
	for range 3 {
		request, err := k.parse(query(id, local))
		if err != nil || !request.Client.Verified || "http://"+request.Client.Host != p.URL || request.Client.Name != "Claude" || !request.Local {
			t.Fatalf("got %+v, %v, want a verified client", request, err)
		}
	}
	check.Equal(t, p.requests.Load(), 1, "requests")
	_, err := k.parse(query(id, "https://evil.example/"))
	check.Equal[error](t, err, errReturn)
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		want   error
	}{
		"other":    {text(document("https://claude.ai/client.json", "")), errDocument},
		"secret":   {text(document(p.URL+"/secret", `,"client_secret":"x"`)), errDocument},
		"method":   {text(document(p.URL+"/method", `,"token_endpoint_auth_method":"client_secret_basic"`)), errDocument},
		"redirect": {http.RedirectHandler(id, http.StatusFound).ServeHTTP, errFetch},
		"missing":  {http.NotFound, errFetch},
		"large":    {text(document(p.URL+"/large", `,"x":"`+strings.Repeat("x", maxDocument)+`"`)), errFetch},
		"html":     {text("<html>"), errDocument},
	} {
		p.answer = c.answer
		_, err := k.parse(query(p.URL+"/"+name, local))
		check.Equal(t, err, c.want, name)
	}
	for name, limit := range map[string]struct {
		other *limiter.Rate[quota.Subject]
		want  int64
	}{"host": {&k.accounts, 30}, "account": {&k.hosts, 10}} {
		k.time = k.time.Add(time.Minute)
		usual := limit.other.Limit
		limit.other.Limit = 1_000 // only this one applies
		before := p.requests.Load()
		for i := range 100 {
			_, _ = k.parse(query(fmt.Sprintf("%s/%s%d", p.URL, name, i), local))
		}
		check.Equal(t, p.requests.Load()-before, limit.want, "by %s: requests within a minute", name)
		limit.other.Limit = usual
	}
}

// Whoever requests made-up documents of a host neither blocks a client that is known, nor
// other accounts.
func TestLimitedDocuments(t *testing.T) {
	t.Parallel()
	k := newSQLiteKit(t)
	p := newPublisher(t)
	p.answer = func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, `{"client_id":%q,"client_name":"App","redirect_uris":[%q]}`, p.URL+r.URL.Path, local)
	}
	id := p.URL + "/client.json"
	check.Try(k.parse(query(id, local))).OK(t)
	k.time = k.time.Add(documentLifetime)
	for i := range 40 {
		_, _ = k.parse(query(fmt.Sprint(p.URL, "/x", i), local))
	}
	_, err := k.parse(query(p.URL+"/new", local))
	check.Equal[error](t, err, errFetches)
	request := check.Try(k.parse(query(id, local))).OK(t)
	check.Equal(t, request.Client.Verified, true)
	_, err = k.Parse(httptest.NewRequest("GET", AuthorizePath+"?"+query(p.URL+"/new", local).Encode(), nil), k.account.ID+1)
	check.Equal(t, err, nil, "another account")
}

// A verified host is always in ASCII, and letters of a name that imitate others are named.
func TestLookalikes(t *testing.T) {
	t.Parallel()
	k := newSQLiteKit(t)
	for _, id := range []string{"https://%D1%81laude.example/client.json", "https://сlaude.example/client.json"} {
		k.transport = publish(`{"client_id":"` + id + `","client_name":"Claude","redirect_uris":["` + local + `"]}`)
		request, err := k.parse(query(id, local))
		check.Equal[error](t, err, errClient, "%s: %+v", id, request)
	}
	_, allowed := parseRedirect("https://%D1%81laude.example/callback")
	check.True(t, !allowed, "got a redirect to a host in another script, want it refused")
	for name, want := range map[string]string{"Claude": "", "Éditeur d’œuvres 2": "", "Сlaude": "С (U+0421)", "Cıaudее": "ı (U+0131), е (U+0435)", "Ｃlaude": "Ｃ (U+FF23)"} {
		check.Equal(t, (&Client{Name: name}).Lookalikes(), want, name)
	}
}

// A public server never connects to private networks.
func TestMetadataDocumentsOfPrivateNetworks(t *testing.T) {
	t.Parallel()
	k := newSQLiteKit(t)
	p := newPublisher(t)
	p.answer = func(w http.ResponseWriter, _ *http.Request) { t.Error("got a request, want none") }
	k.Loopback = false
	_, port, _ := strings.Cut(strings.TrimPrefix(p.URL, "http://"), ":")
	for _, id := range []string{
		p.URL + "/x", "https://127.0.0.1:" + port + "/x", "https://localhost:" + port + "/x", "https://[::1]:" + port + "/x", "https://[::ffff:127.0.0.1]:" + port + "/x",
		"https://10.0.0.1/x", "https://169.254.169.254/latest/meta-data", "https://2130706433:" + port + "/x", "https://user:password@a.example/x", "https://a.example", "https://a.example/",
		"https://a.example/../x", "https://a.example/x#y", "http://a.example/x", "https://A B/x",
	} {
		_, err := k.parse(query(id, local))
		check.True(t, err == errClient || err == errFetch, "%s: got %v, want it refused", id, err)
	}
}

func TestMetadata(t *testing.T) {
	t.Parallel()
	k := newSQLiteKit(t)
	status, got := k.send("GET", serverMetadataPath, "")
	for name, want := range map[string]any{
		"issuer": base, "authorization_endpoint": base + "/oauth/authorize", "authorization_response_iss_parameter_supported": true,
		"client_id_metadata_document_supported": true, "code_challenge_methods_supported": "[S256]",
	} {
		check.True(t, status == 200 && fmt.Sprint(got[name]) == fmt.Sprint(want), "%s: got %d %v, want %v", name, status, got[name], want)
	}
	for _, path := range []string{"", "/mcp"} {
		status, got := k.send("GET", ResourcePath+path, "")
		check.Equal(t, status, 200, path)
		check.Equal[any](t, got["resource"], base+path, path)
		check.Equal(t, fmt.Sprint(got["authorization_servers"]), "["+base+"]", path)
	}
	for path, method := range map[string]string{serverMetadataPath: "POST", tokenPath: "GET", registerPath: "GET", revokePath: "GET"} {
		status, _ := k.send(method, path, "")
		check.Equal(t, status, 405, path)
	}
	for resource, want := range map[string][]string{base: {"/mcp", "/api/v1/tools"}, base + "/mcp": {"/mcp"}, "https://other.example": nil} {
		for _, path := range []string{"/mcp", "/api/v1/tools"} {
			check.Equal(t, k.Accepts(resource, httptest.NewRequest("GET", path, nil)), slices.Contains(want, path), "%s at %s", resource, path)
		}
	}
}

// Responses with tokens and errors are never cached, and errors say what to do.
func TestResponsesOfTokenEndpoints(t *testing.T) {
	t.Parallel()
	k := newSQLiteKit(t)
	client := k.register(local)
	send := func(method, path, form string, header ...string) *httptest.ResponseRecorder {
		w := k.serve(method, path, form, header...)
		check.Equal(t, w.Header().Get("Cache-Control"), "no-store", "%s %s %.50s: Cache-Control", method, path, form)
		if w.Body.Len() > 0 && (w.Header().Get("Content-Type") != "application/json" || w.Header().Get("X-Content-Type-Options") != "nosniff") {
			t.Errorf("%s %s %.50s: got headers %v, want JSON", method, path, form, w.Header())
		}
		return w
	}
	want := func(w *httptest.ResponseRecorder, status int, code, header, value string) {
		t.Helper()
		if w.Code != status || code != "" && !strings.Contains(w.Body.String(), `"error":"`+code+`"`) || header != "" && w.Header().Get(header) != value {
			t.Errorf("got %d %s with %v, want %d %s with %s %s", w.Code, w.Body, w.Header(), status, code, header, value)
		}
	}
	form := func(resources ...string) string {
		f := exchange(client, k.code(query(client, local)).Get("code"))
		f["resource"] = resources
		return f.Encode()
	}
	valid := form()
	want(send("POST", tokenPath, valid+"&resource="), 400, "invalid_target", "", "")
	want(send("POST", tokenPath, form(base, base)), 400, "invalid_target", "", "")
	want(send("POST", tokenPath, form(base)), 400, "invalid_target", "", "") // the code is for another one
	want(send("POST", tokenPath, form("https://other.example/mcp")), 400, "invalid_target", "", "")
	want(send("POST", tokenPath+"?client_id=x", valid), 400, "invalid_request", "", "")
	want(send("POST", tokenPath, valid+"&code=x"), 400, "invalid_request", "", "")
	want(send("POST", tokenPath, form(base+"/mcp")), 200, "", "", "")
	want(send("POST", tokenPath, form()), 200, "", "", "")
	want(send("GET", tokenPath, ""), 405, "invalid_request", "Allow", "POST")
	want(send("POST", tokenPath, ""), 400, "invalid_request", "", "")
	want(send("POST", tokenPath, "grant_type=refresh_token"), 400, "invalid_request", "", "")
	want(send("POST", tokenPath, "client_id=x"), 400, "unsupported_grant_type", "", "")
	want(send("POST", tokenPath, "client_id=x&grant_type=password"), 400, "unsupported_grant_type", "", "")
	want(send("POST", tokenPath, valid+"&x="+strings.Repeat("x", maxForm)), 400, "invalid_request", "", "")
	want(send("POST", tokenPath, valid, "Authorization", "Basic eDp5"), 401, "invalid_client", "WWW-Authenticate", "Basic")
	want(send("POST", revokePath, "token=x"), 400, "invalid_request", "", "")
	want(send("POST", revokePath, "client_id=x"), 400, "invalid_request", "", "")
	want(send("POST", revokePath, "token=x&client_id=x"), 200, "", "", "")
	granted := 0
	for range 1000 {
		w := send("POST", tokenPath, "client_id=x")
		if w.Code == http.StatusTooManyRequests {
			want(w, 429, "temporarily_unavailable", "Retry-After", "60")
			break
		}
		granted++
	}
	check.True(t, granted != 0 && granted != 1000, "got %d requests granted in a minute, want a limit", granted)
	k.time = k.time.Add(time.Minute)
	check.OK(t, k.Store.Close())
	want(send("POST", tokenPath, valid), 503, "temporarily_unavailable", "Retry-After", "60")
	want(send("POST", revokePath, "client_id=x&token=oat_"+strings.Repeat("0", 50)), 200, "", "", "") // no token has this checksum
}

// A revoked token is refused at once, although a keyring caches it.
func TestRevokedTokenIsForgotten(t *testing.T) {
	t.Parallel()
	k := newSQLiteKit(t)
	k.Keyring = auth.NewKeyring(k.Store, k.Log, auth.Rules{Accepts: func(string, *http.Request) bool { return true }})
	client := k.register(local)
	_, tokens := k.token(exchange(client, k.code(query(client, local)).Get("code")))
	access := tokens["access_token"].(string)
	status := func() int {
		r, w := httptest.NewRequest("GET", "/mcp", nil), httptest.NewRecorder()
		r.Header.Set("Authorization", "Bearer "+access)
		k.Keyring.Identify(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})).ServeHTTP(w, r)
		return w.Code
	}
	check.Must(t, status(), http.StatusOK, "want a token that works")
	got, _ := k.send("POST", revokePath, url.Values{"client_id": {client}, "token": {access}}.Encode())
	check.Must(t, got, http.StatusOK)
	check.Equal(t, status(), http.StatusUnauthorized, "after the token was revoked")
}

// Limits of client IDs and redirect URIs, and what may be part of them.
func TestRedirectRules(t *testing.T) {
	long := "https://a.example/" + strings.Repeat("x", maxRedirect-len("https://a.example/"))
	for uri, want := range map[string]bool{
		long: true, long + "x": false, "https://a.example/a b": false, "https://a.example/é": false, "https://a.example/\x7f": false, "https://a.example/~": true,
		"http://localhost/": true, "http://127.0.0.1/": true, "http://127.9.9.9:1/": true, "http://[::1]:8/": true, "http://10.0.0.1/": false, "http://a.example/": false, "https://:8/": false,
	} {
		_, got := parseRedirect(uri)
		check.Equal(t, got, want, "%.80q", uri)
	}
	for n, want := range map[int]bool{0: false, 1: true, maxRedirects: true, maxRedirects + 1: false} {
		uris := make([]string, n)
		for i := range uris {
			uris[i] = "https://a.example/"
		}
		check.Equal(t, validRedirects(uris), want, "%d redirects", n)
	}
	c := Client{RedirectURIs: []string{"http://localhost:1/a", "https://a.example:1/a", "%"}}
	for uri, want := range map[string]bool{
		"http://localhost:2/a": true, "http://localhost/a": true, "http://localhost:2/b": false, "http://127.0.0.1:1/a": false, "http://[::1]:1/a": false,
		"https://a.example:1/a": true, "https://a.example:2/a": false, "https://localhost:1/a": false,
	} {
		_, got := c.allows(uri)
		check.Equal(t, got, want, uri)
	}
	s := &Server{secret: []byte("secret")}
	s.now = func() time.Time { return time.Unix(1_800_000_000, 0) }
	for at, want := range map[int64]bool{1_800_000_000: true, 1_800_000_000 - int64(unusedLifetime/time.Second): true, 1_800_000_000 + int64(unusedLifetime/time.Second): true} {
		id := check.Try(s.signRegistration(registration{At: at, Name: "a", Redirects: []string{"https://a.example/"}})).OK(t)
		signed := check.Try(base64.RawURLEncoding.DecodeString(strings.TrimPrefix(id, registeredPrefix))).OK(t)
		_, err := s.registeredClient(t.Context(), id)
		check.Equal(t, err == nil, want, "registered at %d", at)
		for _, length := range []int{0, signatureLength - 1, signatureLength, len(signed) - 1} {
			cut := registeredPrefix + base64.RawURLEncoding.EncodeToString(signed[:length])
			_, err := s.registeredClient(t.Context(), cut)
			check.Equal[error](t, err, errClient, "%d bytes", length)
		}
	}
	check.Equal(t, len(s.sign(nil)), 16, "signature of bytes")
}

// publish is a transport that returns a document for every URL.
type publish string

func (p publish) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(string(p)))}, nil
}

func newFuzzServer(f *testing.F) *Server {
	f.Helper()
	db := testkit.Open(f, testkit.SQLite(f))
	log := slog.New(slog.DiscardHandler)
	s := check.Try(New(f.Context(), Config{Resources: Resources{base, "/mcp"}, ServiceName: "Palmarès", Store: db, Keyring: auth.NewKeyring(db, log, auth.Rules{}), Log: log})).OK(f)
	s.transport = publish("")
	return s
}

// FuzzClientID checks that a client_id is accepted only as it was signed, and that it
// contains what was registered.
func FuzzClientID(f *testing.F) {
	s := newFuzzServer(f)
	f.Add(registeredPrefix, "Test", local, uint(3), byte(1))
	f.Add("=", "é", "https://a.example/", uint(9999), byte(0))
	f.Add("https://app.example/client.json", "", "", uint(0), byte(32))
	f.Fuzz(func(t *testing.T, other, name, redirect string, at uint, change byte) {
		want := registration{s.now().Unix(), cleanName(name), []string{strings.ToValidUTF8(redirect, "")}}
		id := check.Try(s.signRegistration(want)).OK(t)
		if len(id) > maxClientID {
			return // is not issued
		}
		r := httptest.NewRequest(http.MethodGet, AuthorizePath, nil)
		client, err := s.client(r.Context(), 1, id)
		if err != nil || client.ID != id || client.Name != want.Name || !reflect.DeepEqual(client.RedirectURIs, want.Redirects) || client.Verified {
			t.Fatalf("%+v: got %+v and %v, want the registered client", want, client, err)
		}
		forged := []byte(id)
		forged[len(registeredPrefix)+int(at%uint(len(id)-len(registeredPrefix)))] ^= change
		for _, forged := range []string{string(forged), other, id + other, other + id} {
			if forged == id {
				continue
			}
			client, err := s.client(r.Context(), 1, forged)
			check.Equal(t, client, nil, forged)
			check.Fails(t, err, forged)
		}
	})
}

// FuzzMetadata checks that a client's metadata document is accepted only if it is about its
// own URL, with redirect URIs that a browser may be sent to and a name in one short line.
func FuzzMetadata(f *testing.F) {
	s := newFuzzServer(f)
	const id = "https://app.example/client.json"
	for _, body := range []string{
		`{"client_id":"` + id + `","client_name":"App","redirect_uris":["https://app.example/back"]}`,
		`{"client_id":"` + id + `","client_name":"A\u202eB\n","redirect_uris":["http://localhost/","vscode://x/y"],"token_endpoint_auth_method":"none"}`,
		`{"client_id":"` + id + `","redirect_uris":["https://app.example/"],"client_secret":"x"}`,
		`{"client_id":"` + id + `","redirect_uris":["javascript://a.example/%0aalert(1)"]}`,
		`{"client_id":"https://other.example/","redirect_uris":["javascript:alert(1)"]}`, `[]`, ``,
	} {
		f.Add(body)
	}
	f.Fuzz(func(t *testing.T, body string) {
		s.transport = publish(body)
		client, err := s.fetch(t.Context(), id, "app.example")
		if err != nil {
			check.Equal(t, client, nil, body)
			check.True(t, errors.Is(err, errDocument) || errors.Is(err, errFetch), "%q: got %+v and %v, want no client", body, client, err)
			return
		}
		line := !strings.ContainsFunc(client.Name, unicode.IsControl) && utf8.RuneCountInString(client.Name) <= maxName && cleanName(client.Name) == client.Name
		if client.ID != id || client.Host != "app.example" || !client.Verified || !line || len(client.RedirectURIs) == 0 || len(body) > maxDocument {
			t.Errorf("%q: got %+v, want a valid client", body, client)
		}
		for _, uri := range client.RedirectURIs {
			u, err := url.Parse(uri)
			if err != nil || u.Host == "" || u.User != nil || u.Scheme == "javascript" || u.Scheme == "data" || strings.ContainsAny(uri, "\r\n\"<> ") {
				t.Errorf("%q: got redirect URI %q, want one for browsers", body, uri)
			}
		}
	})
}

// FuzzAuthorize checks that a browser is only sent back to the registered redirect URI, with
// the issuer and the state, whatever the request of an application contains.
func FuzzAuthorize(f *testing.F) {
	s := newFuzzServer(f)
	id := check.Try(s.signRegistration(registration{s.now().Unix(), "Test", []string{local, "https://app.example/back?x=1"}})).OK(f)
	f.Add(query(id, local).Encode())
	f.Add(query(id, "https://app.example/back?x=1", "response_type", "token").Encode())
	f.Add(query(id, "http://127.0.0.1:9/callback", "state", "").Encode() + "&state=1&state=2")
	f.Add(query(id, local+"/../x").Encode())
	const published = "https://app.example/client.json"
	s.transport = publish(`{"client_id":"` + published + `","redirect_uris":["` + local + `","https://app.example/back?x=1"]}`)
	f.Add(query(published, local).Encode())
	f.Add(query(published, "https://app.example/back?x=1", "response_type", "token").Encode())
	f.Fuzz(func(t *testing.T, query string) {
		r := httptest.NewRequest(http.MethodGet, AuthorizePath, nil)
		r.URL.RawQuery = query
		request, err := s.Parse(r, 1)
		location := ""
		var rejection *Rejection
		switch {
		case err == nil:
			location = s.Deny(request)
		case errors.As(err, &rejection):
			location = rejection.Location
		default:
			status := problem.Of(err).Code.Status()
			check.True(t, status < 500, "%q: got %v, want no server error", query, err)
			return
		}
		to := check.Try(url.Parse(location)).OK(t, "%q: %q", query, location)
		back := to.Scheme+"://"+to.Hostname()+to.EscapedPath() == "http://127.0.0.1/callback" || strings.HasPrefix(location, "https://app.example/back?x=1&")
		if states := r.URL.Query()["state"]; !back || to.Query().Get("iss") != base || len(to.Query()["iss"]) != 1 || len(states) > 0 && to.Query().Get("state") != states[0] {
			t.Errorf("%q: got %q, want a registered URI with issuer and state", query, location)
		}
	})
}

// FuzzRedirect checks that a redirect URI is allowed only if it is identical to the
// registered one, or differs in the port of this machine alone.
func FuzzRedirect(f *testing.F) {
	f.Add(local, "http://127.0.0.1:9/callback")
	f.Add("https://app.example/a", "https://app.example:443/a")
	f.Add("http://localhost/", "http://localhost:1/#x")
	f.Add("http://[::1]/a", "http://[::1]:80/a")
	f.Add("vscode://x", "vscode://x:1")
	f.Fuzz(func(t *testing.T, registered, uri string) {
		client := Client{RedirectURIs: []string{registered}}
		u, allowed := client.allows(uri)
		if !allowed {
			return
		}
		if registered != uri {
			other, err := url.Parse(registered)
			if err != nil || u.Scheme != "http" || other.Scheme != "http" || u.Hostname() != other.Hostname() || u.EscapedPath() != other.EscapedPath() || u.RawQuery != other.RawQuery {
				t.Errorf("%q for %q: got it allowed, want only another port", uri, registered)
			}
			if host := u.Hostname(); host != "localhost" && host != "::1" && !strings.HasPrefix(host, "127.") && !strings.HasPrefix(host, "::ffff:") && !strings.Contains(host, ":") {
				t.Errorf("%q for %q: got it allowed, want only this machine", uri, registered)
			}
		}
		check.True(t, len(uri) <= maxRedirect && !strings.ContainsAny(uri, "\r\n #\\"), "%q: got it allowed, want no fragment or line break", uri)
	})
}
