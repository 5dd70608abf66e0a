package browser_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"

	"palmares/internal/core/lang"
	"palmares/internal/core/store"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
	"palmares/internal/dev/testkit/blackbox"
	"palmares/internal/dev/testkit/browser"
)

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
