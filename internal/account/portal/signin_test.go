package portal

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"palmares/internal/core/lang"
	"palmares/internal/core/store"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
	"palmares/internal/notify/mail"
)

func TestSignUpByLink(t *testing.T) {
	t.Parallel()
	testkit.EachStore(t, func(t *testing.T, db *store.Store) {
		s := newSite(t, db)
		b := s.browser()
		wantPage(t, b.get("/login"), 200, "Email me a sign-in link")
		sent := b.start("Ana@Example.com")
		wantPage(t, b.get("/login/code"), 200, "ana@example.com", "Six-digit code")

		scanner := s.browser() // without cookies, and without submitting the form
		for range 3 {
			wantPage(t, scanner.get(sent.path(t)), 200, "signing in as", "ana@example.com")
			check.Equal(t, scanner.send("HEAD", sent.path(t), nil).Code, 200, "HEAD: status")
		}
		check.Must(t, len(scanner.cookies), 0, "want it unused")
		check.Must(t, db.Write.Account.Query().CountX(t.Context()), 0, "want it unused")

		wantRedirect(t, b.post("/login/confirm", "token", sent.token(t)), home)
		wantPage(t, b.get(home), 200, "You have no keys yet", "ana@example.com")
		check.Equal(t, s.account("ana@example.com").Plan, "developer", "another plan")
	})
}

func TestSignInByCode(t *testing.T) {
	t.Parallel()
	s := newSQLiteSite(t)
	b := s.browser()
	sent := b.start("ana@example.com")
	_, found := b.cookies["__Host-"+browserCookie]
	check.MustTrue(t, found, "got no cookie for the code, want one")
	wantPage(t, b.post("/login/code", "code", "12345"), 400, "code is incorrect", "Six-digit code")
	wantRedirect(t, b.post("/login/code", "code", sent.code[:3]+" "+sent.code[3:]), home)
	check.True(t, b.isSignedIn(), "got no session, want one")
	_, found = b.cookies["__Host-"+browserCookie]
	check.True(t, !found, "got a cookie for the code, want none")
	wantRedirect(t, b.get("/login"), home)
}

func TestSessionCookie(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]http.Cookie{
		"https://palmares.example": {Name: "__Host-palmares_session", Secure: true},
		"http://localhost:8080":    {Name: "palmares_session"},
	} {
		s := newSQLiteSite(t, func(cfg *Config) { cfg.PublicURL = address })
		b := s.browser()
		got := b.post("/login/confirm", "token", b.start("ana@example.com").token(t))
		var found bool
		for _, cookie := range got.Result().Cookies() {
			if cookie.Value == "" {
				continue
			}
			found = true
			if cookie.Name != want.Name || cookie.Secure != want.Secure || !cookie.HttpOnly || cookie.SameSite != http.SameSiteLaxMode ||
				cookie.Path != "/" || cookie.Domain != "" || cookie.MaxAge != 30*24*60*60 || len(cookie.Value) < 26 {
				t.Errorf("%s: got cookie %s, want %s for 30 days", address, cookie, want.Name)
			}
		}
		check.True(t, found, "%s: got no session, want one", address)
	}
}

func TestNewSessionAtEachSignIn(t *testing.T) {
	t.Parallel()
	s := newSQLiteSite(t)
	b, other := s.signIn("ana@example.com"), s.signIn("ana@example.com")
	before := b.session()
	wantRedirect(t, b.post("/login/confirm", "token", b.start("ana@example.com").token(t)), home)
	check.True(t, b.session() != before, "got the same session, want a new one")
	stale := s.browser()
	stale.cookies["__Host-"+sessionCookie] = before
	check.True(t, !stale.isSignedIn(), "got the previous session, want it ended")
	check.True(t, b.isSignedIn() && other.isSignedIn(), "got other sessions ended, want them valid")
	// A session token is never taken from the browser.
	fixed := s.browser()
	fixed.cookies["__Host-"+sessionCookie] = "CHOSENBYSOMEBODYELSE000000"
	wantRedirect(t, fixed.post("/login/confirm", "token", fixed.start("ben@example.com").token(t)), home)
	check.True(t, fixed.session() != "CHOSENBYSOMEBODYELSE000000", "got a session with the browser's token, want a new token")
}

func TestSignOut(t *testing.T) {
	t.Parallel()
	s := newSQLiteSite(t)
	b, phone, ben := s.signIn("ana@example.com"), s.signIn("ana@example.com"), s.signIn("ben@example.com")
	stolen := s.browser()
	stolen.cookies["__Host-"+sessionCookie] = phone.session()
	taken := b.session()
	wantRedirect(t, b.post("/logout"), "/login")
	again := s.browser()
	again.cookies["__Host-"+sessionCookie] = taken
	check.True(t, !b.isSignedIn() && !again.isSignedIn() && phone.isSignedIn() && stolen.isSignedIn(), "got other browsers signed out, want only one")
	out := phone.post("/account/logout-everywhere")
	wantRedirect(t, out, "/login")
	wantPage(t, phone.get(out.to()), 200, "signed out of all browsers")
	check.True(t, !phone.isSignedIn() && !stolen.isSignedIn() && ben.isSignedIn(), "got the wrong sessions ended, want exactly those of the account")
	wantRedirect(t, s.browser().post("/logout"), "/login") // without a session
}

var cookieValue = regexp.MustCompile(`=[A-Z2-7]+;`)

// normalized returns a response without the parts that always differ.
func normalized(a response, email string) string {
	var all strings.Builder
	fmt.Fprintln(&all, a.Code)
	header := a.Header().Clone()
	for i, cookie := range header["Set-Cookie"] {
		header["Set-Cookie"][i] = cookieValue.ReplaceAllString(cookie, "=…;")
	}
	_ = header.Write(&all)
	all.WriteString(a.Body.String())
	return strings.ReplaceAll(all.String(), email, "…")
}

// Responses do not reveal whether an address has an account.
func TestSignInDoesNotRevealAccounts(t *testing.T) {
	t.Parallel()
	s := newSQLiteSite(t)
	s.signIn("known@example.com")
	s.signIn("pro@example.com")
	s.db.Write.Account.Update().SetPlan("pro").ExecX(t.Context())
	var responses []string
	for _, email := range []string{"known@example.com", "nobody@example.com", "pro@example.com"} {
		var all string
		b := s.browser()
		for range 4 {
			all += normalized(b.post("/login", "email", email), email)
		}
		all += normalized(b.get("/login/code"), email) + normalized(b.post("/login/code", "code", "x"), email)
		if email == "nobody@example.com" { // the others have received one email before
			b.post("/login", "email", email)
		}
		responses = append(responses, all+normalized(b.post("/login", "email", email), email))
	}
	check.Equal(t, responses[0], responses[1])
	check.Equal(t, responses[0], responses[2])
	check.Contains(t, responses[0], "429", "limit")
}

// Emails are limited by the address of the visitor, which trusted proxies report.
func TestEmailsPerNetwork(t *testing.T) {
	t.Parallel()
	for peer, want := range map[string]int{"192.0.2.1:99": 20, "10.1.2.3:99": 30} {
		s, sent := newSQLiteSite(t, func(cfg *Config) { cfg.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")} }), 0
		for i := range 30 {
			b := s.browser()
			b.address = peer
			if b.send("POST", "/login", strings.NewReader(fmt.Sprintf("email=u%d%%40example.com", i)), "X-Forwarded-For", fmt.Sprintf("203.0.113.%d", i)).Code == 303 {
				sent++
			}
		}
		check.Equal(t, sent, want, "emails through %s", peer)
	}
}

func TestPrintedLinks(t *testing.T) {
	t.Parallel()
	s := newSiteWithoutMail(t)
	b := s.browser()
	wantRedirect(t, b.post("/login", "email", "ana@example.com"), "/login/code")
	wantPage(t, b.get("/login/code"), 200, "does not send emails", "in the server log")
	link := message{link: regexp.MustCompile(`http://localhost:8080/en/login/confirm\?token=\w+`).FindString(s.log.String())}
	wantRedirect(t, b.post("/login/confirm", "token", link.token(t)), home)
	check.True(t, b.isSignedIn(), "got no session, want one")
}

func TestSignInDisabled(t *testing.T) {
	t.Parallel()
	s := newSQLiteSite(t)
	b := s.signIn("ana@example.com")
	s.SignInDisabled = true
	stranger := s.browser()
	wantPage(t, stranger.get("/login"), 200, "Signing in is disabled")
	wantPage(t, stranger.post("/login", "email", "ben@example.com"), 403, "Signing in is disabled")
	wantPage(t, b.post("/account/email", "email", "anna@example.com"), 403, "Emails cannot be sent")
	check.Equal(t, s.db.Write.Confirmation.Query().CountX(t.Context()), 1)
	check.Equal(t, s.smtp.Count("ben@example.com")+s.smtp.Count("anna@example.com"), 0)
}

// If an email cannot be queued, the page does not say that it was sent.
func TestFullQueue(t *testing.T) {
	t.Parallel()
	s := newSQLiteSite(t)
	in := s.signIn("ben@example.com")
	s.smtp.Stop()
	full := false
	for range 1100 {
		if full = s.Mail.Enqueue(mail.ProEnded(lang.English, "x@example.com", "x", "https://x.example")) != nil; full {
			break
		}
	}
	check.MustTrue(t, full, "got an unlimited queue, want a limit")
	// It does not count towards the limits either.
	b := s.browser()
	for range 10 {
		for _, got := range []response{b.post("/login", "email", "ana@example.com"), in.post("/account/email", "email", "new@example.com")} {
			wantPage(t, got, 503, "Try again in a minute")
			check.True(t, got.Header().Get("Retry-After") != "", "got no Retry-After, want one")
		}
	}
	if n := s.db.Write.Confirmation.Query().CountX(t.Context()); n != 1 { // with which Ben signed in
		t.Errorf("got %d confirmations, want 1", n)
	}
}

// expire makes all rows of a table expire.
func (s *site) expire(table string) {
	s.t.Helper()
	check.Try(s.db.Write.ExecContext(s.t.Context(), "UPDATE "+table+" SET expires_at = $1", time.Now().UTC().Add(-time.Second))).OK(s.t)
}

// Each state of a link has an error page, when it is opened and when it is used.
func TestInvalidLinks(t *testing.T) {
	t.Parallel()
	s := newSQLiteSite(t)
	ana, ben := s.signIn("ana@example.com"), s.signIn("ben@example.com")
	stranger := s.browser()
	signIn, change := stranger.start("eva@example.com"), ana.startEmailChange("anna@example.com")
	both := func(b *browser, path, token string, status int, text string) {
		t.Helper()
		wantPage(t, b.get(path+"?token="+url.QueryEscape(token)), status, text)
		wantPage(t, b.post(path, "token", token), status, text)
	}
	both(stranger, "/login/confirm", "", 404, "Invalid link")
	both(stranger, "/login/confirm", "invented\x00\xff", 404, "Invalid link")
	both(stranger, "/login/confirm", change.token(t), 404, "Invalid link")
	both(ana, "/account/email/confirm", signIn.token(t), 404, "Invalid link")
	both(ben, "/account/email/confirm", change.token(t), 403, "This link belongs to another account")
	wantRedirect(t, stranger.get("/account/email/confirm?token="+change.token(t)), "/login")

	// A code works only for its purpose.
	wantPage(t, ana.post("/login/code", "code", change.code), 404, "Invalid link")
	wantRedirect(t, ana.get("/login/code"), "/login")
	for _, row := range s.db.Write.Confirmation.Query().AllX(t.Context()) {
		check.Equal(t, row.Tries, 0, "%s: attempts counted", row.Email)
	}
	mixed := s.signIn("mia@example.com")
	code := mixed.start("max@example.com").code
	wantPage(t, mixed.post("/account/email/code", "code", code), 404, "Invalid link")
	check.True(t, s.account("ana@example.com") != nil && s.account("mia@example.com") != nil, "got an address changed, want none")

	wantRedirect(t, stranger.post("/login/confirm", "token", signIn.token(t)), home)
	both(s.browser(), "/login/confirm", signIn.token(t), 410, "This link was already used")
	wantPage(t, s.browser().get(signIn.path(t)), 410, "Request a new email")

	late := s.browser()
	expired := late.start("tim@example.com")
	s.expire("confirmations")
	both(late, "/login/confirm", expired.token(t), 410, "This link has expired")
	both(ana, "/account/email/confirm", change.token(t), 410, "This link has expired")
	wantPage(t, late.post("/login/code", "code", expired.code), 410, "expired")
	wantPage(t, late.get("/login/code"), 410, "expired")
}

// apiKey returns the key with which a signed-in browser calls the API. It is
// cached, like after a request.
func (b *browser) apiKey() string {
	b.site.t.Helper()
	r := httptest.NewRequest("GET", "/", nil)
	r.AddCookie(&http.Cookie{Name: b.site.cookieName(sessionCookie), Value: b.session()})
	key := b.site.Key(r)
	check.MustTrue(b.site.t, key != "" && b.site.accepts(key), "got key %q, want one that is accepted", key)
	return key
}

// The key of a browser becomes invalid with its session, at once.
func TestKeysEndWithSessions(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		end  func(b *browser)
		both bool // including the other browser's key
	}{
		"logging out":            {func(b *browser) { wantRedirect(t, b.post("/logout"), "/login") }, false},
		"logging out everywhere": {func(b *browser) { wantRedirect(t, b.post("/account/logout-everywhere"), "/login") }, true},
		"deleting the account":   {func(b *browser) { wantRedirect(t, b.post("/account/delete", "email", "ana@example.com"), "/login") }, true},
		"signing in again": {func(b *browser) {
			wantRedirect(t, b.post("/login/confirm", "token", b.start("ben@example.com").token(t)), home)
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSQLiteSite(t)
			b, phone := s.signIn("ana@example.com"), s.signIn("ana@example.com")
			key, other := b.apiKey(), phone.apiKey()
			c.end(b)
			check.True(t, !s.accepts(key), "got the key accepted, want it refused")
			taken := s.accepts(other)
			check.True(t, taken != c.both, "got the other browser's key accepted: %v, want %v", taken, !taken)
		})
	}
}

// Changing the address signs out the other browsers.
func TestKeysEndWithEmailChange(t *testing.T) {
	t.Parallel()
	s := newSQLiteSite(t)
	b, phone := s.signIn("ana@example.com"), s.signIn("ana@example.com")
	key, other := b.apiKey(), phone.apiKey()
	wantRedirect(t, b.post("/account/email/confirm", "token", b.startEmailChange("anna@example.com").token(t)), "/account/settings")
	check.True(t, s.accepts(key) && !s.accepts(other), "got other keys refused, want only those of other browsers")
}
