package browser_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp/kb"

	"palmares/internal/core/lang"
	"palmares/internal/core/quota"
	"palmares/internal/core/store"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
	"palmares/internal/dev/testkit/blackbox"
	"palmares/internal/dev/testkit/browser"
	"palmares/internal/dev/testkit/wait"
)

// codeInEmail matches the sign-in code, which is alone on its line.
var codeInEmail = regexp.MustCompile(`(?m)^ +(\d{6})\r?$`)

// languageOn returns the language in which a test runs on a database, so that a
// test on both databases is in both languages.
func languageOn(cfg store.Config) lang.Language {
	if cfg.DatabaseURL != "" {
		return lang.French
	}
	return lang.English
}

// contains reports whether a text has a message in a language. Browsers return
// no-break spaces as they are.
func contains(text string, l lang.Language, m lang.Message, args ...any) bool {
	return strings.Contains(text, l.Text(m, args...))
}

// A new user signs in, creates a key, uses it and sees the request counted.
func TestNewUser(t *testing.T) {
	t.Parallel()
	chrome := browser.Start(t)
	testkit.Each(t, func(t *testing.T, cfg store.Config) {
		s := blackbox.Serve(t, cfg, "--demo")
		l, base := languageOn(cfg), "http://"+s.Address
		account := base + l.Path("/account")
		shot := func(p *browser.Page, name string) { p.Screenshot("path-" + string(l) + "-" + name) }

		p := chrome.Open(t, browser.Look{}, account)
		check.Must(t, p.URL(), base+l.Path("/login"), "signed out: want the sign-in page")
		p.Fill("#email", "Nina@Example.com")
		shot(p, "1-login")
		p.Follow("main button")
		text := p.Text("main")
		check.MustTrue(t, strings.Contains(text, "nina@example.com") && contains(text, l, "Check your inbox"), "got %s, want a confirmation that a message was sent", text)
		shot(p, "2-code")
		link, _ := s.WaitForEmail(t, "nina@example.com", 0)
		check.Equal(t, s.Call(t, http.MethodHead, strings.TrimPrefix(link, base), "").StatusCode, 200, "HEAD by a link scanner")
		p.Go(link)
		shot(p, "3-link")
		p.Follow("main button")
		if p.URL() != account || !contains(p.Text("main"), l, "You have no keys yet. Create one to read embeddings and to get your own quota.") {
			t.Fatalf("signed in: got %s with %s, want %s without keys", p.URL(), p.Text("main"), account)
		}
		shot(p, "4-no-key")
		p.Fill("#name", "laptop")
		p.Follow("main form button")
		key := p.Text("#key")
		curl := p.Text("#curl")
		check.True(t, strings.Contains(curl, key) && strings.Contains(curl, base+"/api/embeddings/"), "got example %s, want the key and an embeddings URL", curl)
		shot(p, "5-key")
		p.Click("[data-copy=key]")
		wait.Until(t, "the copy button confirms the copy", func() bool {
			return p.Text("[data-copy=key]") != l.Text("Copy")
		})

		document := strings.TrimSpace(p.Text("#curl")[strings.LastIndex(p.Text("#curl"), " ")+1:])
		day := quota.DayOf(time.Now())
		got := s.Call(t, http.MethodGet, strings.TrimPrefix(document, base), "", "Authorization", "Bearer "+key)
		if got.StatusCode != 200 {
			body, _ := io.ReadAll(got.Body)
			t.Fatalf("embeddings: got %d %s, want 200", got.StatusCode, body)
		}
		p.Follow("main a.button")
		row := p.Text("tbody")
		check.True(t, strings.Contains(row, "laptop") && !strings.Contains(row, key), "got row %s in the list of keys, want the name without the key", row)
		wait.Until(t, "the request is counted", func() bool {
			p.Go(account + "/usage")
			return p.Text("#today") == "1" ||
				quota.DayOf(time.Now()) != day && strings.Contains(p.Text("main"), l.Plural(1, "Last 30 days: %d request|Last 30 days: %d requests")) // the request was before midnight
		})
		shot(p, "6-usage")

		p.Go(account)
		p.Follow("tbody a.button")
		p.Follow("main button")
		if !contains(p.Text("main"), l, "The key was revoked.") {
			t.Errorf("after revoking: got %s, want a confirmation", p.Text("main"))
		}
		check.Equal(t, s.Call(t, http.MethodGet, "/api/v1/stats", "", "Authorization", "Bearer "+key).StatusCode, 401, "revoked key")
		p.Follow(".who button")
		if !contains(p.Text("main"), l, "You are signed out.") {
			t.Errorf("after signing out: got %s, want a confirmation", p.Text("main"))
		}
	})
}

// The portal works with only a keyboard and without scripts.
func TestPortalByKeyboard(t *testing.T) {
	t.Parallel()
	s := blackbox.Serve(t, blackbox.Demo(t), "--demo")
	chrome := browser.Start(t)
	inLanguages(t, func(t *testing.T, l lang.Language) {
		p := chrome.Open(t, browser.Look{NoScript: true, Width: 360}, "http://"+s.Address+l.Path("/login"))
		tabTo := func(what string) {
			t.Helper()
			for range 30 {
				if strings.Contains(p.Focused(), what) {
					return
				}
				p.Press(kb.Tab)
			}
			t.Fatalf("got focus on %s, want %s after pressing Tab", p.Focused(), what)
		}
		write := func(text string) {
			for _, r := range text {
				p.Press(string(r))
			}
		}
		email := string(l) + "@example.com"
		tabTo("input#email")
		write(email)
		p.FollowKey(kb.Enter)
		_, code := s.WaitForEmail(t, email, 0)
		tabTo("input#code")
		write(code)
		p.FollowKey(kb.Enter)
		tabTo("input#name")
		write("keyboard")
		p.Press(kb.Tab)
		p.FollowKey(" ")
		key := p.Text("#key")
		check.MustTrue(t, strings.HasPrefix(key, "pal_"), "got key %q, want one that starts with pal_", key)
		tabTo(l.Text("I have saved the key"))
		p.FollowKey(kb.Enter)
		tabTo(`a "` + l.Text("Revoke"))
		p.FollowKey(kb.Enter)
		tabTo(l.Text("Revoke key"))
		p.FollowKey(kb.Enter)
		if !contains(p.Text("main"), l, "The key was revoked.") {
			t.Errorf("after revoking: got %s, want a confirmation", p.Text("main"))
		}
	})
}

// An account of a Stripe customer has Pro and can open the customer portal, and
// forged events are rejected.
func TestSubscription(t *testing.T) {
	t.Parallel()
	testkit.Each(t, func(t *testing.T, cfg store.Config) {
		smtp := testkit.StartSMTP(t)
		s := blackbox.Serve(t, cfg, "--demo", "--smtp-url", smtp.URL, "--mail-from", "palmares <hello@example.com>",
			"--stripe-secret-key", "sk_test_123", "--stripe-webhook-secret", "whsec_test",
			"--stripe-api-base", testkit.StartStripeMock(t))
		l, base := languageOn(cfg), "http://"+s.Address
		jar := check.Try(cookiejar.New(nil)).OK(t)
		visitor := &http.Client{Jar: jar, CheckRedirect: func(r *http.Request, _ []*http.Request) error {
			if r.URL.Host != s.Address {
				return http.ErrUseLastResponse
			}
			return nil
		}}
		post := func(path string, form url.Values) *http.Response {
			t.Helper()
			r := check.Try(http.NewRequestWithContext(wait.Context(t), http.MethodPost, base+l.Path(path), strings.NewReader(form.Encode()))).OK(t)
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			got := check.Try(visitor.Do(r)).OK(t)
			got.Body.Close()
			return got
		}
		post("/login", url.Values{"email": {"paul@example.com"}})
		email := smtp.Wait(t, "paul@example.com")
		found := codeInEmail.FindStringSubmatch(email)
		check.MustTrue(t, found != nil, "got %s, want an email with a code", email)
		code := found[1]
		if got := post("/login/code", url.Values{"code": {code}}); got.Request.URL.Path != l.Path("/account") {
			t.Fatalf("signed in: got %d at %s, want %s", got.StatusCode, got.Request.URL, l.Path("/account"))
		}
		// The mock always returns an active subscription, so the account has Pro
		// and cannot subscribe again.
		check.Equal(t, post("/account/plan/subscribe", nil).StatusCode, 400, "subscribing twice")
		got := post("/account/plan/manage", nil)
		check.True(t, got.StatusCode == 303 && strings.HasPrefix(got.Header.Get("Location"), "https://"), "customer portal: got %d to %s, want 303", got.StatusCode, got.Header.Get("Location"))
		shown := blackbox.MustRun(t, blackbox.Command(t, cfg, "accounts", "show", "paul@example.com"))
		check.Contains(t, shown.Out, "pro", "account")
		check.Equal(t, s.Call(t, http.MethodPost, "/billing/stripe", `{"id":"evt_1"}`, "Stripe-Signature", "t=1,v1=00").StatusCode, 400, "forged event")
		for _, secret := range []string{`["= ]` + code + `["& ]`, "sk_test_123", "whsec_test"} { // six digits may be part of another number
			check.True(t, !regexp.MustCompile(secret).MatchString(s.Log.String()), "got %s in the log, want no secrets", secret)
		}
	})
}

// A new user whom an application sends to the server signs up, connects the application,
// and disconnects it.
func TestConnectingAnApplication(t *testing.T) {
	t.Parallel()
	chrome := browser.Start(t)
	testkit.Each(t, func(t *testing.T, cfg store.Config) {
		s := blackbox.Serve(t, cfg, "--demo")
		l, base := languageOn(cfg), "http://"+s.Address
		application := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/callback" { // which many applications redirect from
				http.Redirect(w, r, "/done?"+r.URL.RawQuery, http.StatusFound)
				return
			}
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprint(w, `<!doctype html><html lang="en"><title>done</title><link rel="icon" href="data:,"><main>Done</main>`)
		}))
		defer application.Close()
		callback := application.URL + "/callback"
		registered := s.Call(t, http.MethodPost, "/oauth/register", `{"client_name":"Carnet","redirect_uris":["`+callback+`"]}`)
		client := regexp.MustCompile(`dcr_[\w-]+`).FindString(blackbox.ReadAll(t, registered.Body))
		query := url.Values{
			"client_id": {client}, "redirect_uri": {callback}, "response_type": {"code"}, "state": {"s"}, "resource": {base + "/mcp"},
			"code_challenge": {"E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"}, "code_challenge_method": {"S256"}, // of RFC 7636
		}
		request := base + l.Path("/account/connect") + "?" + query.Encode()

		p := chrome.Open(t, browser.Look{}, request)
		if !strings.HasPrefix(p.URL(), base+l.Path("/login")) {
			t.Fatalf("got %s, want the sign-in page", p.URL())
		}
		p.Fill("#email", "olga@example.com")
		p.Follow("main button")
		_, code := s.WaitForEmail(t, "olga@example.com", 0)
		p.Fill("#code", code)
		p.Follow("main button")
		if text := p.Text("main"); p.URL() != request || !contains(text, l, "Connect %s?", "Carnet") || !strings.Contains(text, "olga@example.com") ||
			!strings.Contains(text, strings.TrimPrefix(application.URL, "http://")) || !contains(text, l, "read review chunks (embeddings)") {
			t.Fatalf("got %s with %s, want the page to connect", p.URL(), text)
		}
		p.Axe()
		p.Screenshot("connect-" + string(l))
		p.Follow("button[value=deny]")
		got := p.URL()
		check.MustTrue(t, strings.HasPrefix(got, application.URL+"/done?error=access_denied"), "got %s, want the application with access_denied", got)
		p.Go(request)
		p.Follow("button[value=allow]")
		answered := check.Try(url.Parse(p.URL())).OK(t)
		answer := answered.Query()
		check.MustTrue(t, answer.Get("iss") == base && answer.Get("state") == "s" && answer.Get("code") != "", "got %s, want a code", answered)
		response := check.Try(http.PostForm(base+"/oauth/token", url.Values{
			"grant_type": {"authorization_code"}, "client_id": {client}, "redirect_uri": {callback}, "code": {answered.Query().Get("code")},
			"code_verifier": {"dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"}, "resource": {base + "/mcp"},
		})).OK(t)
		defer response.Body.Close()
		check.Must(t, response.StatusCode, http.StatusOK, "want tokens")

		p.Go(base + l.Path("/account"))
		text := p.Text("main")
		check.MustTrue(t, contains(text, l, "Connected applications") && strings.Contains(text, "Carnet"), "got %s, want the application", text)
		p.Axe()
		p.Follow("tbody a.button")
		p.Axe()
		p.Follow("button.danger")
		if text := p.Text("main"); !contains(text, l, "The application was disconnected.") || strings.Contains(text, "Carnet") {
			t.Errorf("got %s, want a confirmation without the application", text)
		}
	})
}
