package process_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stripe/stripe-go/v86/webhook"

	"palmares/internal/core/lang"
	"palmares/internal/core/store"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
	"palmares/internal/dev/testkit/blackbox"
	"palmares/internal/dev/testkit/wait"
	"palmares/internal/web/page"
)

// newCookieClient returns an HTTP client with cookies, whose timeout is much
// longer than those of the server.
func newCookieClient(t *testing.T) *http.Client {
	t.Helper()
	jar := check.Try(cookiejar.New(nil)).OK(t)
	client := &http.Client{
		Jar: jar, Timeout: 5 * time.Minute, Transport: &http.Transport{},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	t.Cleanup(client.CloseIdleConnections)
	return client
}

// submit sends a form, or a GET without a body, as a browser does. Pages are in
// English.
func submit(client *http.Client, method, address string, values url.Values) (status int, header http.Header, body string, err error) {
	r, err := http.NewRequest(method, address, strings.NewReader(values.Encode()))
	if err != nil {
		return 0, nil, "", err
	}
	r.URL.Path = page.LocalPath(lang.English, r.URL.Path)
	if method == http.MethodGet {
		r.Body, r.ContentLength = nil, 0
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Accept", "text/html")
	response, err := client.Do(r)
	if err != nil {
		return 0, nil, "", err
	}
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	return response.StatusCode, response.Header, string(data), err
}

// While PostgreSQL is frozen, with its connections open, every page responds,
// and once it is back all of them work again.
func TestPagesWhilePostgreSQLIsFrozen(t *testing.T) {
	cluster := testkit.StartCluster(t, "fsync=off")
	cfg := store.Config{DatabaseURL: cluster.URL, DataDir: t.TempDir()}
	cmd := blackbox.Command(t, cfg, "serve", "--listen", "127.0.0.1:0", "--demo", "--stripe-api-base", "http://127.0.0.1:1")
	cmd.Env = append(cmd.Env, "STRIPE_SECRET_KEY=sk_test_x", "STRIPE_WEBHOOK_SECRET=whsec_x")
	s := blackbox.ServeCommand(t, cmd)
	base := "http://" + s.Address

	// The client is signed in and has a webhook endpoint.
	client := newCookieClient(t)
	blackbox.MustRun(t, blackbox.Command(t, cfg, "accounts", "create", "ana@example.com", "--plan", "pro"))
	if status, _, body, err := submit(client, "POST", base+"/login", url.Values{"email": {"ana@example.com"}}); err != nil || status != http.StatusSeeOther {
		t.Fatalf("sign-in: got %d %v %s, want 303", status, err, body)
	}
	link, _ := s.WaitForEmail(t, "ana@example.com", 0)
	parsed := check.Try(url.Parse(link)).OK(t)
	token := url.Values{"token": {parsed.Query().Get("token")}}
	if status, _, body, err := submit(client, "POST", base+"/login/confirm", token); err != nil || status != http.StatusSeeOther {
		t.Fatalf("confirmation: got %d %v %s, want 303", status, err, body)
	}
	in := newInbox(t)
	if status, _, body, err := submit(client, "POST", base+"/account/webhooks", url.Values{"url": {in.URL}}); err != nil || status != http.StatusOK {
		t.Fatalf("adding an endpoint: got %d %v %s, want 200", status, err, body)
	}
	if status, _, body, err := submit(client, "GET", base+"/account/export", nil); err != nil || status != http.StatusOK || !strings.Contains(body, "ana@example.com") {
		t.Fatalf("export: got %d %v %s, want 200", status, err, body)
	}

	wait.Until(t, "the catalog is in memory", func() bool { return strings.Contains(s.Log.String(), "catalog loaded") })
	if status, _, body, err := submit(client, "GET", base+"/status", nil); err != nil || status != http.StatusOK {
		t.Fatalf("status page: got %d %v %s, want 200", status, err, body)
	}
	cluster.Freeze(t)
	t.Cleanup(func() { cluster.Thaw(t) }) // before it is stopped
	visitor := newCookieClient(t)
	const unavailable, busy = http.StatusServiceUnavailable, http.StatusTooManyRequests // pages limit concurrent requests per network
	requests := []struct {
		method, path string
		client       *http.Client
		form         url.Values
		status       []int
	}{
		{"POST", "/login", visitor, url.Values{"email": {"ben@example.com"}}, []int{unavailable}},
		{"POST", "/login/confirm", visitor, token, []int{unavailable}},
		{"GET", "/login/confirm?" + token.Encode(), visitor, nil, []int{unavailable}},
		{"GET", "/login", visitor, nil, []int{http.StatusOK}}, // needs no database
		{"GET", "/login", client, nil, []int{unavailable}},
		{"POST", "/login/code", client, url.Values{"code": {"123456"}}, []int{unavailable}},
		{"GET", "/account", client, nil, []int{unavailable}},
		{"GET", "/account/usage", client, nil, []int{unavailable}},
		{"GET", "/account/plan", client, nil, []int{unavailable}},
		{"POST", "/account/plan/subscribe", client, nil, []int{unavailable}},
		{"POST", "/account/plan/manage", client, nil, []int{unavailable}},
		{"GET", "/account/plan/done", client, nil, []int{unavailable}},
		{"GET", "/account/settings", client, nil, []int{unavailable}},
		{"POST", "/account/email", client, url.Values{"email": {"new@example.com"}}, []int{unavailable}},
		{"GET", "/account/export", client, nil, []int{unavailable}},
		{"GET", "/account/delete", client, nil, []int{unavailable}},
		{"POST", "/account/keys", client, url.Values{"name": {"x"}}, []int{unavailable}},
		{"GET", "/account/webhooks", client, nil, []int{unavailable}},
		{"POST", "/account/webhooks", client, url.Values{"url": {in.URL}}, []int{unavailable}},
		{"GET", "/account/webhooks/1", client, nil, []int{unavailable}},
		{"POST", "/account/webhooks/1/test", client, nil, []int{unavailable}},
		{"POST", "/account/webhooks/1/replay", client, url.Values{"since": {"2026-01-01T00:00"}}, []int{unavailable}},
		{"POST", "/account/webhooks/1/settings", client, nil, []int{unavailable}},
		{"POST", "/account/webhooks/1/rotate", client, nil, []int{unavailable}},
		{"POST", "/account/webhooks/1/pause", client, nil, []int{unavailable}},
		{"POST", "/account/webhooks/1/resume", client, nil, []int{unavailable}},
		{"POST", "/account/webhooks/1/remove", client, nil, []int{unavailable}},
		{"POST", "/logout", client, nil, []int{unavailable}},
		{"GET", "/", visitor, nil, []int{http.StatusOK, unavailable, busy}},
		{"GET", "/tools?page=2", visitor, nil, []int{http.StatusOK, busy}}, // from memory
		{"GET", "/tools?q=agent", visitor, nil, []int{http.StatusOK, busy}},
		{"GET", "/tools/no-such-tool", visitor, nil, []int{http.StatusNotFound, unavailable, busy}},
		{"GET", "/comparatifs?page=3", visitor, nil, []int{http.StatusOK, busy}},
		{"GET", "/categories", visitor, nil, []int{http.StatusOK, unavailable, busy}},
		{"GET", "/cimetiere?page=4", visitor, nil, []int{http.StatusOK, busy}},
		{"GET", "/nowhere", visitor, nil, []int{http.StatusNotFound, unavailable}},
		{"GET", "/feeds/prices.atom", visitor, nil, []int{unavailable, busy}},
		{"GET", "/status", visitor, nil, []int{http.StatusOK, busy}},
		{"GET", "/readyz", visitor, nil, []int{unavailable}},
		{"GET", "/healthz", visitor, nil, []int{http.StatusOK}},
		{"GET", "/guides", visitor, nil, []int{http.StatusOK}},
		{"GET", "/docs", visitor, nil, []int{http.StatusOK, unavailable}},
		{"GET", "/explorer", client, nil, []int{http.StatusOK, unavailable, busy}},
		{"GET", "/llms.txt", visitor, nil, []int{http.StatusOK}},
		{"GET", "/robots.txt", visitor, nil, []int{http.StatusOK}},
	}
	var all sync.WaitGroup
	all.Go(func() {
		event := webhook.GenerateTestSignedPayload(&webhook.UnsignedPayload{
			Payload: []byte(`{"object":"event","id":"evt_1","type":"customer.subscription.created","data":{"object":{"object":"subscription","id":"sub_1","customer":"cus_1"}}}`),
			Secret:  "whsec_x",
		})
		r, err := http.NewRequest("POST", base+"/billing/stripe", bytes.NewReader(event.Payload))
		if err != nil {
			t.Error(err)
			return
		}
		r.Header.Set("Stripe-Signature", event.Header)
		response, err := visitor.Do(r)
		if err != nil {
			t.Errorf("POST /billing/stripe: got %v, want a response", err)
			return
		}
		_ = response.Body.Close()
		check.Equal(t, response.StatusCode, unavailable, "POST /billing/stripe")
	})
	for _, request := range requests {
		all.Go(func() {
			name := fmt.Sprint(request.method, " ", request.path)
			status, header, body, err := submit(request.client, request.method, base+request.path, request.form)
			switch {
			case err != nil:
				t.Errorf("%s: got %v, want a response", name, err)
			case !slices.Contains(request.status, status):
				t.Errorf("%s: got %d %s, want %v", name, status, body, request.status)
			case status == unavailable && header.Get("Retry-After") == "" && request.path != "/readyz":
				t.Errorf("%s: got no Retry-After header, want one", name)
			case status == unavailable && (strings.HasPrefix(request.path, "/account") || strings.HasPrefix(request.path, "/login")) && (!strings.Contains(body, "</html>") || header.Get("Cache-Control") != "no-store"):
				t.Errorf("%s: got %s, Cache-Control %q, want an error page with no-store", name, body, header.Get("Cache-Control"))
			}
		})
	}
	all.Wait()
	wait.Until(t, "the status page reports the outage", func() bool {
		status, _, body, err := submit(client, "GET", base+"/status", nil)
		return err == nil && status == http.StatusOK && strings.Contains(body, "The database is unavailable at the moment.")
	})

	cluster.Thaw(t)
	// Requests that timed out no longer block others.
	for _, path := range []string{"/account/usage", "/account/export", "/tools?page=2", "/feeds/prices.atom", "/readyz"} {
		wait.Until(t, "GET "+path+" is served again", func() bool {
			status, _, _, err := submit(client, "GET", base+path, nil)
			check.OK(t, err)
			// The POST /logout from before may have succeeded by now.
			return status == http.StatusOK || status == http.StatusSeeOther
		})
	}
}
