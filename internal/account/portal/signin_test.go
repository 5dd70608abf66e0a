package portal

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"palmares/internal/core/store"
	"palmares/internal/dev/testkit"
)

func TestSignUpByLink(t *testing.T) {
	t.Parallel()
	testkit.EachStore(t, func(t *testing.T, db *store.Store) {
		s := newSite(t, db)
		b := s.browser()
		wantPage(t, b.get("/login"), 200, "Send me a message")
		sent := b.ask("Ana@Example.com")
		wantPage(t, b.get("/login/code"), 200, "ana@example.com", "six digits")

		scanner := s.browser() // no cookies, and no button is pressed
		for range 3 {
			wantPage(t, scanner.get(sent.path(t)), 200, "sign in as", "ana@example.com")
			if head := scanner.send("HEAD", sent.path(t), nil); head.Code != 200 {
				t.Errorf("HEAD: %d", head.Code)
			}
		}
		if len(scanner.cookies) != 0 || db.Write.Account.Query().CountX(t.Context()) != 0 {
			t.Fatal("opening the link did something")
		}

		wantGo(t, b.post("/login/confirm", "token", sent.token(t)), home)
		wantPage(t, b.get(home), 200, "You have no key yet", "ana@example.com")
		if s.account("ana@example.com").Plan != "developer" {
			t.Error("on another plan")
		}
	})
}

func TestSignInByCode(t *testing.T) {
	t.Parallel()
	s := onSQLite(t)
	b := s.browser()
	sent := b.ask("ana@example.com")
	if _, waits := b.cookies["__Host-"+browserCookie]; !waits {
		t.Fatal("the browser waits for no code")
	}
	wantPage(t, b.post("/login/code", "code", "12345"), 400, "not the code", "six digits")
	wantGo(t, b.post("/login/code", "code", sent.code[:3]+" "+sent.code[3:]), home)
	if !b.isSignedIn() {
		t.Error("not signed in")
	}
	if _, waits := b.cookies["__Host-"+browserCookie]; waits {
		t.Error("the browser still waits for a code")
	}
	wantGo(t, b.get("/login"), home)
}

func TestSessionCookie(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]http.Cookie{
		"https://palmares.example": {Name: "__Host-palmares_session", Secure: true},
		"http://localhost:8080":    {Name: "palmares_session"},
	} {
		s := onSQLite(t, func(cfg *Config) { cfg.PublicURL = address })
		b := s.browser()
		got := b.post("/login/confirm", "token", b.ask("ana@example.com").token(t))
		var found bool
		for _, cookie := range got.Result().Cookies() {
			if cookie.Value == "" {
				continue
			}
			found = true
			if cookie.Name != want.Name || cookie.Secure != want.Secure || !cookie.HttpOnly || cookie.SameSite != http.SameSiteLaxMode ||
				cookie.Path != "/" || cookie.Domain != "" || cookie.MaxAge != 30*24*60*60 || len(cookie.Value) < 26 {
				t.Errorf("%s: %s", address, cookie)
			}
		}
		if !found {
			t.Errorf("%s: no session", address)
		}
	}
}

func TestNewSessionAtEachSignIn(t *testing.T) {
	t.Parallel()
	s := onSQLite(t)
	b, other := s.signIn("ana@example.com"), s.signIn("ana@example.com")
	before := b.session()
	wantGo(t, b.post("/login/confirm", "token", b.ask("ana@example.com").token(t)), home)
	if b.session() == before {
		t.Error("the session is the same")
	}
	stale := s.browser()
	stale.cookies["__Host-"+sessionCookie] = before
	if stale.isSignedIn() {
		t.Error("the session before goes on")
	}
	if !b.isSignedIn() || !other.isSignedIn() {
		t.Error("others ended")
	}
	// What a browser brings along is never made a session.
	fixed := s.browser()
	fixed.cookies["__Host-"+sessionCookie] = "CHOSENBYSOMEBODYELSE000000"
	wantGo(t, fixed.post("/login/confirm", "token", fixed.ask("ben@example.com").token(t)), home)
	if fixed.session() == "CHOSENBYSOMEBODYELSE000000" {
		t.Error("a session was chosen by somebody else")
	}
}

func TestSignOut(t *testing.T) {
	t.Parallel()
	s := onSQLite(t)
	b, phone, ben := s.signIn("ana@example.com"), s.signIn("ana@example.com"), s.signIn("ben@example.com")
	stolen := s.browser()
	stolen.cookies["__Host-"+sessionCookie] = phone.session()
	taken := b.session()
	wantGo(t, b.post("/logout"), "/login")
	again := s.browser()
	again.cookies["__Host-"+sessionCookie] = taken
	if b.isSignedIn() || again.isSignedIn() || !phone.isSignedIn() || !stolen.isSignedIn() {
		t.Error("one browser signed out, but not that one alone")
	}
	out := phone.post("/account/logout-everywhere")
	wantGo(t, out, "/login")
	wantPage(t, phone.get(out.to()), 200, "signed out in every browser")
	if phone.isSignedIn() || stolen.isSignedIn() || !ben.isSignedIn() {
		t.Error("signed out everywhere, but not everywhere, or others, too")
	}
	wantGo(t, s.browser().post("/logout"), "/login") // who is not signed in may also leave
}

var cookieValue = regexp.MustCompile(`=[A-Z2-7]+;`)

// told is all that an answer says, without what is new each time.
func told(a answer, email string) string {
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

// Nothing tells an address that has an account from one that has none.
func TestKnownAndUnknownAreAnsweredAlike(t *testing.T) {
	t.Parallel()
	s := onSQLite(t)
	s.signIn("known@example.com")
	s.signIn("pro@example.com")
	s.db.Write.Account.Update().SetPlan("pro").ExecX(t.Context())
	var answers []string
	for _, email := range []string{"known@example.com", "nobody@example.com", "pro@example.com"} {
		var all string
		b := s.browser()
		for range 4 {
			all += told(b.post("/login", "email", email), email)
		}
		all += told(b.get("/login/code"), email) + told(b.post("/login/code", "code", "x"), email)
		if email == "nobody@example.com" { // the others signed in with one message before
			b.post("/login", "email", email)
		}
		answers = append(answers, all+told(b.post("/login", "email", email), email))
	}
	if answers[0] != answers[1] || answers[0] != answers[2] {
		t.Errorf("known:\n%s\nunknown:\n%s", answers[0], answers[1])
	}
	if !strings.Contains(answers[0], "429") {
		t.Error("there was no bound to see")
	}
}

func TestFiveMessagesToOneAddress(t *testing.T) {
	t.Parallel()
	testkit.EachStore(t, func(t *testing.T, db *store.Store) {
		s := newSite(t, db)
		var sent, refused atomic.Int64
		atOnce(20, func(i int) {
			switch got := s.browser().post("/login", "email", []string{"victim@example.com", "victim+x@example.com"}[i%2]); got.Code {
			case 303:
				sent.Add(1)
			case 429:
				refused.Add(1)
				wantPage(t, got, 429, "Try again later")
			default:
				t.Errorf("%d: %s", got.Code, got.text)
			}
		})
		if sent.Load() != 5 || refused.Load() != 15 {
			t.Errorf("%d messages", sent.Load())
		}
	})
}

// asksFrom counts the messages that more than are allowed bring about.
func asksFrom(t *testing.T, s *site, address func(i int) string, header func(i int) []string) int {
	t.Helper()
	sent := 0
	for i := range 80 {
		b := s.browser()
		b.address = address(i)
		body := fmt.Sprintf("email=u%d%%40example.com", i)
		if b.send("POST", "/login", strings.NewReader(body), header(i)...).Code == 303 {
			sent++
		}
	}
	return sent
}

func TestTwentyMessagesFromOneNetwork(t *testing.T) {
	t.Parallel()
	trust := func(cfg *Config) { cfg.Trusted = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")} }
	nothing := func(int) []string { return nil }
	claims := func(i int) []string { return []string{"X-Forwarded-For", fmt.Sprintf("203.0.113.%d", i)} }
	fixed := func(address string) func(int) string { return func(int) string { return address } }
	for name, c := range map[string]struct {
		address func(int) string
		header  func(int) []string
		want    int
	}{
		"IPv4":                      {fixed("192.0.2.1:99"), nothing, 20},
		"one half of IPv6":          {func(i int) string { return fmt.Sprintf("[2001:db8:1:2::%x]:99", i+1) }, nothing, 20},
		"many halves of IPv6":       {func(i int) string { return fmt.Sprintf("[2001:db8:1:%x::1]:99", i+1) }, nothing, 60},
		"many networks of IPv6":     {func(i int) string { return fmt.Sprintf("[2001:db8:%x::1]:99", i+1) }, nothing, 80},
		"claims of a stranger":      {fixed("192.0.2.1:99"), claims, 20},
		"behind a proxy of ours":    {fixed("10.1.2.3:99"), claims, 80},
		"claims of who is behind":   {fixed("10.1.2.3:99"), func(i int) []string { return []string{"X-Forwarded-For", fmt.Sprintf("203.0.113.%d, 192.0.2.7", i)} }, 20},
		"one visitor of many ports": {func(i int) string { return fmt.Sprintf("192.0.2.1:%d", 1000+i) }, nothing, 20},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := asksFrom(t, onSQLite(t, trust), c.address, c.header); got != c.want {
				t.Errorf("%d messages, not %d", got, c.want)
			}
		})
	}
}

func TestPrintedLinks(t *testing.T) {
	t.Parallel()
	s := printing(t)
	b := s.browser()
	wantGo(t, b.post("/login", "email", "ana@example.com"), "/login/code")
	wantPage(t, b.get("/login/code"), 200, "sends no mail", "printed in its log")
	link := letter{link: regexp.MustCompile(`http://localhost:8080/login/confirm\?token=\w+`).FindString(s.log.String())}
	wantGo(t, b.post("/login/confirm", "token", link.token(t)), home)
	if !b.isSignedIn() {
		t.Error("not signed in")
	}
}

func TestClosed(t *testing.T) {
	t.Parallel()
	s := onSQLite(t)
	b := s.signIn("ana@example.com")
	s.Closed = true
	stranger := s.browser()
	wantPage(t, stranger.get("/login"), 200, "Sign-up is closed")
	wantPage(t, stranger.post("/login", "email", "ben@example.com"), 403, "Sign-up is closed")
	wantPage(t, b.post("/account/email", "email", "anna@example.com"), 403, "No mail can be sent")
	if n := s.db.Write.Confirmation.Query().CountX(t.Context()); n != 1 || s.smtp.Count("ben@example.com")+s.smtp.Count("anna@example.com") != 0 {
		t.Errorf("%d messages", n)
	}
}

func TestEverySpellingIsOneAccount(t *testing.T) {
	t.Parallel()
	s := onSQLite(t)
	for i, email := range []string{"ana@m\u00fcnchen.de", " ANA@mu\u0308nchen.de", "ana@xn--mnchen-3ya.de"} {
		b := s.signIn(email)
		if n := s.db.Write.Account.Query().CountX(t.Context()); n != 1 || !b.isSignedIn() {
			t.Errorf("%d accounts after %d spellings", n, i+1)
		}
	}
}

func TestWrongAddresses(t *testing.T) {
	t.Parallel()
	s := onSQLite(t)
	b := s.browser()
	for _, email := range []string{"", "ana", "ana@example.com\r\nBcc: ben@example.com", "ana@example.com\nX: y", "ana@example.com.", "ana@example.com。", "ana@example.com．", "ana@example.com｡", "ana\x00@example.com", "ana@exa\xffmple.com",
		strings.Repeat("a", 300) + "@example.com", "<script>alert(1)</script>@example.com", `"><script>alert(1)</script>`} {
		got := b.post("/login", "email", email)
		wantPage(t, got, 400, "not an e-mail address")
		if strings.Contains(got.Body.String(), "<script>alert") {
			t.Errorf("%q is run", email)
		}
	}
	if n := s.db.Write.Confirmation.Query().CountX(t.Context()); n != 0 {
		t.Errorf("%d messages", n)
	}
}

// A letter that cannot even be queued is not said to be on its way.
func TestFullQueue(t *testing.T) {
	t.Parallel()
	s := onSQLite(t)
	in := s.signIn("ben@example.com")
	s.smtp.Stop()
	full := false
	for range 1100 {
		if full = s.Mail.Post(mailTo("x@example.com")) != nil; full {
			break
		}
	}
	if !full {
		t.Fatal("the queue has no end")
	}
	// Nor does it count: whoever tries again is not refused for it.
	b := s.browser()
	for range 10 {
		for _, got := range []answer{b.post("/login", "email", "ana@example.com"), in.post("/account/email", "email", "new@example.com")} {
			wantPage(t, got, 503, "Try again in a minute")
			if got.Header().Get("Retry-After") == "" {
				t.Error("it does not say when")
			}
		}
	}
	if n := s.db.Write.Confirmation.Query().CountX(t.Context()); n != 1 { // by which Ben signed in
		t.Errorf("%d messages are counted", n)
	}
}

// expire makes what is stored as old as it can be.
func (s *site) expire(table string) {
	s.t.Helper()
	if _, err := s.db.Write.ExecContext(s.t.Context(), "UPDATE "+table+" SET expires_at = $1", time.Now().UTC().Add(-time.Second)); err != nil {
		s.t.Fatal(err)
	}
}

func TestExpiredSession(t *testing.T) {
	t.Parallel()
	testkit.EachStore(t, func(t *testing.T, db *store.Store) {
		s := newSite(t, db)
		b := s.signIn("ana@example.com")
		s.expire("sessions")
		wantGo(t, b.get("/account"), "/login")
	})
}

// Each state of a link has a page, before and after its button is pressed.
func TestLinksThatDoNotWork(t *testing.T) {
	t.Parallel()
	s := onSQLite(t)
	ana, ben := s.signIn("ana@example.com"), s.signIn("ben@example.com")
	stranger := s.browser()
	signIn, change := stranger.ask("eva@example.com"), ana.askChange("anna@example.com")
	both := func(b *browser, path, token string, status int, says string) {
		t.Helper()
		wantPage(t, b.get(path+"?token="+url.QueryEscape(token)), status, says)
		wantPage(t, b.post(path, "token", token), status, says)
	}
	both(stranger, "/login/confirm", "", 404, "This link is not known")
	both(stranger, "/login/confirm", "made up\x00\xff", 404, "This link is not known")
	both(stranger, "/login/confirm", change.token(t), 404, "This link is not known")
	both(ana, "/account/email/confirm", signIn.token(t), 404, "This link is not known")
	both(ben, "/account/email/confirm", change.token(t), 403, "This link is another account's")
	wantGo(t, stranger.get("/account/email/confirm?token="+change.token(t)), "/login")

	// A code of the one kind does nothing for the other.
	wantPage(t, ana.post("/login/code", "code", change.code), 404, "not known")
	wantGo(t, ana.get("/login/code"), "/login")
	for _, row := range s.db.Write.Confirmation.Query().AllX(t.Context()) {
		if row.Tries != 0 {
			t.Errorf("a try of %s is used up", row.Email)
		}
	}
	mixed := s.signIn("mia@example.com")
	code := mixed.ask("max@example.com").code
	wantPage(t, mixed.post("/account/email/code", "code", code), 404, "not known")
	if s.account("ana@example.com") == nil || s.account("mia@example.com") == nil {
		t.Error("an address was changed")
	}

	wantGo(t, stranger.post("/login/confirm", "token", signIn.token(t)), home)
	both(s.browser(), "/login/confirm", signIn.token(t), 410, "This link was used already")
	wantPage(t, s.browser().get(signIn.path(t)), 410, "Ask for a new message")

	late := s.browser()
	expired := late.ask("tim@example.com")
	s.expire("confirmations")
	both(late, "/login/confirm", expired.token(t), 410, "This link has expired")
	both(ana, "/account/email/confirm", change.token(t), 410, "This link has expired")
	wantPage(t, late.post("/login/code", "code", expired.code), 410, "expired")
	wantPage(t, late.get("/login/code"), 410, "expired")
}

// apiKey is what a signed-in browser calls the API with. It is known to the
// keyring, as after a call.
func (b *browser) apiKey() string {
	b.site.t.Helper()
	r := httptest.NewRequest("GET", "/", nil)
	r.AddCookie(&http.Cookie{Name: b.site.cookieName(sessionCookie), Value: b.session()})
	key := b.site.Key(r)
	if key == "" || !b.site.opens(key) {
		b.site.t.Fatalf("the browser's key %q opens nothing", key)
	}
	return key
}

// What a browser calls the API with ends with its session, at once.
func TestKeysEndWithSessions(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		end  func(b *browser)
		both bool // the other browser's, too
	}{
		"logging out":            {func(b *browser) { wantGo(t, b.post("/logout"), "/login") }, false},
		"logging out everywhere": {func(b *browser) { wantGo(t, b.post("/account/logout-everywhere"), "/login") }, true},
		"deleting the account":   {func(b *browser) { wantGo(t, b.post("/account/delete", "email", "ana@example.com"), "/login") }, true},
		"signing in again": {func(b *browser) {
			wantGo(t, b.post("/login/confirm", "token", b.ask("ben@example.com").token(t)), home)
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := onSQLite(t)
			b, phone := s.signIn("ana@example.com"), s.signIn("ana@example.com")
			key, other := b.apiKey(), phone.apiKey()
			c.end(b)
			if s.opens(key) {
				t.Error("its key is still taken")
			}
			if taken := s.opens(other); taken == c.both {
				t.Errorf("the other browser's key is taken: %v", taken)
			}
		})
	}
}

// Who changes the address signs the other browsers out.
func TestKeysEndWithTheAddress(t *testing.T) {
	t.Parallel()
	s := onSQLite(t)
	b, phone := s.signIn("ana@example.com"), s.signIn("ana@example.com")
	key, other := b.apiKey(), phone.apiKey()
	wantGo(t, b.post("/account/email/confirm", "token", b.askChange("anna@example.com").token(t)), "/account/settings")
	if !s.opens(key) || s.opens(other) {
		t.Error("other keys ended than those of the other browsers")
	}
}
