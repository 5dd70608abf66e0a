package portal

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"palmares/auth"
	"palmares/internal/account/oauth"
	"palmares/internal/catalog/feed"
	"palmares/internal/catalog/feed/demo"
	"palmares/internal/catalog/publish"
	"palmares/internal/core/lang"
	"palmares/internal/core/store"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
)

const testVerifier = "a-verifier-of-at-least-forty-three-characters"

// withOAuth adds an authorization server to a site.
func withOAuth(t *testing.T) func(*Config) {
	return func(cfg *Config) {
		cfg.Keyring = auth.NewKeyring(cfg.Store, cfg.Log, auth.Rules{Accepts: func(string, *http.Request) bool { return true }})
		cfg.OAuth = check.Try(oauth.New(context.Background(), oauth.Config{
			Resources: oauth.Resources{PublicURL: cfg.PublicURL, MCPPath: "/mcp"}, ServiceName: cfg.ServiceName, Store: cfg.Store, Keyring: cfg.Keyring, Log: cfg.Log,
		})).OK(t)
	}
}

// clientPath registers a client and returns its request.
func (s *site) clientPath(name, redirect string, changed ...string) string {
	s.t.Helper()
	body, _ := json.Marshal(map[string]any{"client_name": name, "redirect_uris": []string{redirect}})
	w := httptest.NewRecorder()
	s.OAuth.ServeHTTP(w, httptest.NewRequest("POST", "/oauth/register", strings.NewReader(string(body))))
	var client struct {
		ID string `json:"client_id"`
	}
	check.OK(s.t, json.Unmarshal(w.Body.Bytes(), &client))
	challenge := sha256.Sum256([]byte(testVerifier))
	q := url.Values{
		"client_id": {client.ID}, "redirect_uri": {redirect}, "response_type": {"code"}, "state": {"s"}, "resource": {s.PublicURL + "/mcp"},
		"code_challenge": {base64.RawURLEncoding.EncodeToString(challenge[:])}, "code_challenge_method": {"S256"},
	}
	for i := 0; i < len(changed); i += 2 {
		q.Set(changed[i], changed[i+1])
	}
	return "?" + q.Encode()
}

// Signing up on the way leads back to the page, and the answer of the user to the application.
func TestConnecting(t *testing.T) {
	t.Parallel()
	testkit.EachStore(t, func(t *testing.T, db *store.Store) {
		s := newSite(t, db, withOAuth(t))
		query := s.clientPath("Claude <b>", "https://claude.example/callback")
		b := s.browserIn(lang.French)
		start := b.send("GET", oauth.AuthorizePath+query, nil, "Accept-Language", "fr")
		check.Must(t, start.Code, 302)
		check.Must(t, start.Header().Get("Location"), "/fr/account/connect"+query)
		login := b.get("/account/connect" + query)
		wantRedirect(t, login, "/login")
		to := check.Try(url.Parse(login.to())).OK(t)
		link := b.start("ana@example.com", "next", to.Query().Get("next"))
		signedIn := b.post("/login/confirm", "token", link.token(t), "next", to.Query().Get("next"))
		wantRedirect(t, signedIn, "/account/connect")

		page := b.get(signedIn.Header().Get("Location"))
		wantPage(t, page, 200, "Connecter Claude <b> ?", "Non vérifiée", "claude.example", "ana@example.com", "lire le catalogue", "lire les passages des avis", "déconnecter à tout moment")
		wantNoText(t, page, "s’exécute sur votre appareil")
		header := page.Header()
		policy := header.Get("Content-Security-Policy")
		check.Contains(t, policy, "frame-ancestors 'none'")
		check.True(t, strings.HasSuffix(policy, "form-action 'self' https:"), "got %s, want no frames", policy)
		check.Equal(t, header.Get("X-Frame-Options"), "DENY")
		wantPage(t, b.get("/en/account/connect"+query), 200, "Connect Claude <b>?", "Not verified", "read review chunks")
		wantNoText(t, b.get("/en/account/connect"+query), "private saved queries")
		withQueries := s.clientPath("Claude", "https://claude.example/callback", "scope", "read saved_queries", "resource", "https://palmares.example")
		wantPage(t, b.get("/account/connect"+withQueries), 200, "lire vos requêtes enregistrées privées")
		wantPage(t, b.get("/en/account/connect"+withQueries), 200, "read your private saved queries")

		for _, origin := range []string{"https://evil.example", "null"} {
			forged := b.send("POST", "/account/connect"+query, strings.NewReader("decision=allow"), "Origin", origin, "Sec-Fetch-Site", "cross-site")
			wantPage(t, forged, 403)
		}
		for decision, want := range map[string]string{"deny": "error=access_denied", "": "error=access_denied", "allow": "code=oac_"} {
			answer := b.post("/account/connect"+query, "decision", decision)
			if got := answer.Header().Get("Location"); answer.Code != 303 || !strings.HasPrefix(got, "https://claude.example/callback?") || !strings.Contains(got, want) || !strings.Contains(got, "iss=https%3A%2F%2Fpalmares.example") {
				t.Errorf("%s: got %d to %s, want %s", decision, answer.Code, got, want)
			}
		}
		wantNoText(t, b.get("/account"), "Claude") // nothing is connected before the code is exchanged
		wantRedirect(t, s.browser().post("/account/connect"+query, "decision", "allow"), "/login")
	})
}

func TestConnectedApplications(t *testing.T) {
	t.Parallel()
	s := newSQLiteSite(t, withOAuth(t))
	query := s.clientPath("Cursor", "cursor://anysphere.cursor-mcp/oauth/callback")
	ana, ben := s.signIn("ana@example.com"), s.signIn("ben@example.com")
	page := ana.get("/account/connect" + query)
	wantPage(t, page, 200, "It runs on your device")
	wantNoText(t, page, "look like others")
	wantPage(t, ana.get("/account/connect"+s.clientPath("\u0421ursor", "https://app.example/callback")), 200, "letters that can look like others: \u0421 (U+0421)")
	policy := page.Header().Get("Content-Security-Policy")
	check.True(t, strings.HasSuffix(policy, "form-action 'self' https: cursor:"), "got %s, want the scheme", policy)
	answer := check.Try(url.Parse(ana.post("/account/connect"+query, "decision", "allow").Header().Get("Location"))).OK(t)
	sent, _ := url.ParseQuery(query[1:])
	tokens := check.Try(s.accounts.ExchangeCode(t.Context(), auth.CodeExchange{
		Code: answer.Query().Get("code"), ClientID: sent.Get("client_id"), RedirectURI: sent.Get("redirect_uri"), Verifier: testVerifier,
	})).OK(t)
	check.MustTrue(t, s.accepts(tokens.Access), "got the token refused, want it accepted")
	check.OK(t, s.Keyring.SaveLastUsed(t.Context()))
	grants := check.Try(s.accounts.Grants(t.Context(), s.account("ana@example.com"))).OK(t)
	s.db.Write.Usage.Create().SetSubject(int64(auth.Subject(s.account("ana@example.com")))).SetDay(s.now().UTC().Format("2006-01-02")).SetKey(grants[0].UsageKey()).SetEndpoint("/mcp").SetRequests(7).ExecX(t.Context())
	wantPage(t, ana.get("/account"), 200, "Connected applications", "Cursor", "cursor://anysphere.cursor-mcp", "not verified", `<th scope="row">Cursor</th>`)
	wantNoText(t, ben.get("/account"), "Connected applications")
	check.Contains(t, ana.get("/account/export").text, `"name": "Cursor"`, "want the application in the export")
	revoke := "/account/applications/" + grants[0].ID + "/revoke"
	wantPage(t, ben.get(revoke), 404)
	wantPage(t, ben.post(revoke), 404)
	wantPage(t, ana.get(revoke), 200, "Disconnect this application?", "Cursor", "last used on")
	wantRedirect(t, ana.post(revoke), "/account")
	check.True(t, !s.accepts(tokens.Access), "got the token accepted, want it refused at once")
	wantPage(t, ana.get("/account?done=disconnected"), 200, "The application was disconnected.", "Disconnected application")
}

// Errors are shown on a page unless the application is verified.
func TestConnectErrors(t *testing.T) {
	t.Parallel()
	s := newSQLiteSite(t, withOAuth(t))
	b := s.signIn("ana@example.com")
	const redirect = "https://app.example/callback"
	for name, value := range map[string]string{"redirect_uri": "https://evil.example/", "client_id": "x"} {
		for _, page := range []response{b.get("/account/connect" + s.clientPath("App", redirect, name, value)), b.post("/account/connect"+s.clientPath("App", redirect, name, value), "decision", "allow")} {
			wantPage(t, page, 400)
			check.Equal(t, page.Header().Get("Location"), "", "%s: redirect to", name)
		}
	}
	// A link of this site to a client that anyone has registered must not lead there, neither
	// before nor after signing in.
	invalid := "/account/connect" + s.clientPath("App", redirect, "response_type", "x")
	wantRedirect(t, s.browser().get(invalid), "/login")
	wantPage(t, b.get(invalid), 400, "The application's request is not valid: response_type must be code.")
	without := newSQLiteSite(t)
	wantPage(t, without.browser().get("/account/connect"), 404)
}

func TestDownloadTokens(t *testing.T) {
	testkit.EachStore(t, func(t *testing.T, db *store.Store) {
		s := newSite(t, db)
		ana, ben := s.signIn("ana@example.com"), s.signIn("ben@example.com")
		wantPage(t, ana.get("/account/downloads"), 200, "You have no download tokens yet")
		if page := ana.post("/account/downloads", "name", "two\nlines"); page.Code != 400 || !strings.Contains(page.text, `role="alert"`) {
			t.Errorf("invalid name: got status %d %s, want 400 and the form", page.Code, page.text)
		}
		created := ana.post("/account/downloads", "name", "<b>Prices</b>")
		token := regexp.MustCompile(`https://palmares\.example/api/v1/tools\.csv\?token=(dt_[A-Z2-7]{26})`).FindStringSubmatch(created.Body.String())
		if created.Code != 200 || token == nil || !strings.Contains(created.Body.String(), "&lt;b&gt;Prices") || created.Header().Get("Cache-Control") != "no-store" {
			t.Fatalf("got status %d %v %s, want the URL with the token, and the name escaped", created.Code, created.Header(), created.text)
		}
		page := ana.get("/account/downloads")
		wantPage(t, page, 200, "1 of 10 download tokens")
		wantNoText(t, page, "dt_")
		row := check.Try(db.Read.DownloadToken.Query().Only(t.Context())).OK(t)
		check.Lacks(t, row.TokenHash, token[1])
		check.Equal(t, len(row.TokenHash), 64, "%q stored", row.TokenHash)
		link := regexp.MustCompile(`/account/downloads/\d+/revoke`).FindString(page.Body.String())
		wantPage(t, ana.get(link), 200, "Revoke this token?")
		wantPage(t, ben.get(link), 404, "")
		wantPage(t, ben.post(link), 404, "")
		wantPage(t, ana.get("/account/downloads/nothing/revoke"), 404, "")
		export := ana.get("/account/export").Body.String()
		check.Contains(t, export, `"download_tokens"`)
		check.Contains(t, export, "Prices")
		check.Lacks(t, export, row.TokenHash)
		for range auth.MaxDownloadTokens - 1 {
			wantPage(t, ana.post("/account/downloads"), 200, "Unnamed token")
		}
		wantPage(t, ana.post("/account/downloads"), 400, "Revoke one first")
		wantPage(t, ana.get("/account/downloads"), 200, "You have reached the limit of 10 download tokens")
		wantRedirect(t, ana.post(link), "/account/downloads")
		wantPage(t, ana.post(link), 404, "")
		wantPage(t, ana.get("/account/downloads?done=tokenrevoked"), 200, "The token was revoked.")
	})
}

// A click on a download sends the file to signed-in visitors, and others to the sign-in
// page, which says why, and then back to the file.
func TestDownloadsInTheBrowser(t *testing.T) {
	testkit.EachStore(t, func(t *testing.T, db *store.Store) {
		counted := 0
		s := newSite(t, db, func(cfg *Config) {
			cfg.Count = func(_ http.ResponseWriter, r *http.Request) error {
				counted++
				caller := auth.CallerFrom(r.Context())
				check.True(t, caller.Account != 0, "got %+v at %s, want the account at the path of the API", caller, r.URL.Path)
				check.Equal(t, caller.Browser, true)
				check.Equal(t, r.URL.Path, "/api/v1/tools.csv")
				return nil
			}
			cfg.Files = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = fmt.Fprintf(w, "account %d reads %s", auth.CallerFrom(r.Context()).Account, r.URL)
			})
		})
		check.Try(publish.Import(t.Context(), db, feed.NewLines(bytes.NewReader(demo.Catalog())), publish.Options{})).OK(t)
		const file = "/account/downloads/tools.csv?category=code&dialect=excel-fr"
		visitor := s.browser()
		wantRedirect(t, visitor.get(file), "/login")
		login := visitor.get(file).to()
		wantPage(t, visitor.get(login), 200, "Downloads of whole lists require an account, which is free.")
		next := check.Try(url.Parse(login)).OK(t)
		check.True(t, counted == 0, "got a request counted, want none of visitors without an account")

		ana := s.signIn("ana@example.com")
		ready := ana.get(next.Query().Get("next"))
		wantPage(t, ready, 200, "Your download is ready.")
		check.Contains(t, ready.Body.String(), strings.ReplaceAll(file, "&", "&amp;")+`"`, "want a link to the file")
		got := ana.get(file)
		if header := got.Header(); got.Code != 200 || counted != 1 || header.Get("Content-Type") != "text/csv; charset=utf-8; header=present" || header.Get("Cache-Control") != "no-store" ||
			!strings.HasPrefix(header.Get("Content-Disposition"), "attachment;") || !strings.HasPrefix(got.Body.String(), "\uFEFFslug;name;") || strings.Count(got.Body.String(), "\r\n") != 7 {
			t.Errorf("got %d %v, %d counted, %.80s, want the 6 tools of the category as a private file, counted once", got.Code, got.Header(), counted, got.Body)
		}
		const release = "/account/downloads/files/8/catalog.sqlite"
		wantPage(t, ana.get("/account/downloads?file=files/8/catalog.sqlite"), 200, "Your download is ready.")
		if got, want := ana.get(release), fmt.Sprintf("account %d reads /files/releases/8/catalog.sqlite", s.account("ana@example.com").ID); got.Body.String() != want || got.Header().Get("Cache-Control") != "no-store" {
			t.Errorf("got %s, %v, want %s", got.Body, got.Header(), want)
		}
		wantRedirect(t, visitor.get(release), "/login")
		for _, other := range []string{"/account/downloads/tools", "/account/downloads/nothing.csv", "/account/downloads/stats.csv", "/account/downloads/files/08/x.sqlite", "/account/downloads/files/8/x.exe"} {
			wantPage(t, ana.get(other), 404, "")
		}
		wantNoText(t, ana.get("/account/downloads?file="+url.QueryEscape("../../logout")), "Your download is ready.")
	})
}
