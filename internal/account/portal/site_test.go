package portal

import (
	"bytes"
	"context"
	"fmt"
	"html"
	"io"
	"log/slog"
	"mime"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"net/mail"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"palmares/auth"
	"palmares/ent"
	"palmares/ent/account"
	"palmares/internal/account/billing"
	"palmares/internal/core/store"
	"palmares/internal/dev/testkit"
	letters "palmares/internal/notify/mail"
	"palmares/internal/notify/webhook"
)

// site is a portal with all that it needs: a database, a mail server, a log.
type site struct {
	*Portal
	t    *testing.T
	db   *store.Store
	smtp *testkit.SMTPServer
	log  *logbook
}

// onSQLite is a site where it does not matter which database is behind.
func onSQLite(t *testing.T, change ...func(*Config)) *site {
	t.Helper()
	return newSite(t, testkit.Open(t, testkit.SQLite(t)), change...)
}

func newSite(t *testing.T, db *store.Store, change ...func(*Config)) *site {
	t.Helper()
	s := &site{t: t, db: db, log: &logbook{}, smtp: testkit.StartSMTP(t)}
	log := slog.New(slog.NewTextHandler(s.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	cfg := Config{
		PublicURL: "https://palmares.example", ServiceName: "Palmarès", Credit: "Scores by the editors.",
		Store: db, Keyring: auth.NewKeyring(db, log), Log: log,
		Mail:    s.mailer(letters.Config{URL: s.smtp.URL, From: "palmares@palmares.example", Log: log}),
		Billing: billing.New(billing.Config{Store: db, Log: log}),
		Hooks:   webhook.New(webhook.Config{Store: db, Log: log, ServiceName: "Palmarès", Loopback: true}),
		Example: func(context.Context) string { return "/api/v1/tools" },
	}
	for _, change := range change {
		change(&cfg)
	}
	s.Portal = New(cfg)
	return s
}

// printing is a site that has no mail server, on an address of its own network.
func printing(t *testing.T) *site {
	t.Helper()
	return onSQLite(t, func(cfg *Config) {
		cfg.PublicURL = "http://localhost:8080"
		cfg.Mail, _ = letters.New(letters.Config{Log: cfg.Log})
	})
}

func (s *site) mailer(cfg letters.Config) *letters.Mailer {
	s.t.Helper()
	mailer, err := letters.New(cfg)
	if err != nil {
		s.t.Fatal(err)
	}
	ctx, end := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { mailer.Run(ctx) })
	s.t.Cleanup(func() {
		end()
		running.Wait()
	})
	return mailer
}

// logbook is a log that is read while it is written.
type logbook struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (j *logbook) Write(line []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(line)
}

func (j *logbook) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.String()
}

// letter is what somebody finds in their mailbox.
type letter struct {
	text, link, code string
}

var (
	linkInLetter = regexp.MustCompile(`https?://\S+`)
	codeInLetter = regexp.MustCompile(`(?m)^ +(\d{6})\r?$`)
)

// letterTo waits for the next letter to an address.
func (s *site) letterTo(email string) letter {
	s.t.Helper()
	parsed, err := mail.ReadMessage(strings.NewReader(s.smtp.Wait(s.t, email)))
	if err != nil {
		s.t.Fatal(err)
	}
	_, params, err := mime.ParseMediaType(parsed.Header.Get("Content-Type"))
	if err != nil {
		s.t.Fatal(err)
	}
	part, err := multipart.NewReader(parsed.Body, params["boundary"]).NextPart()
	if err != nil {
		s.t.Fatal(err)
	}
	text, err := io.ReadAll(part)
	if err != nil {
		s.t.Fatal(err)
	}
	found := letter{text: string(text), link: linkInLetter.FindString(string(text))}
	if code := codeInLetter.FindStringSubmatch(found.text); code != nil {
		found.code = code[1]
	}
	return found
}

// path is where a letter's link leads on our site.
func (l letter) path(t *testing.T) string {
	t.Helper()
	u, err := url.Parse(l.link)
	if err != nil || u.Path == "" {
		t.Fatalf("the link %q: %v", l.link, err)
	}
	return u.RequestURI()
}

// token is what a letter's link holds.
func (l letter) token(t *testing.T) string {
	t.Helper()
	u, err := url.Parse(l.path(t))
	if err != nil || u.Query().Get("token") == "" {
		t.Fatalf("the link %q has no token", l.link)
	}
	return u.Query().Get("token")
}

// browser keeps cookies, and comes from a network of its own.
type browser struct {
	site    *site
	address string
	mu      sync.Mutex
	cookies map[string]string
}

var browsers atomic.Int64

func (s *site) browser() *browser {
	n := browsers.Add(1)
	return &browser{site: s, address: fmt.Sprintf("198.18.%d.%d:4711", n/250, n%250), cookies: map[string]string{}}
}

// answer is a page as it arrived.
type answer struct {
	*httptest.ResponseRecorder
	text string // without marks of HTML's own, for reading
}

func (a answer) to() string { return a.Header().Get("Location") }

func (b *browser) send(method, target string, body io.Reader, header ...string) answer {
	b.site.t.Helper()
	request := httptest.NewRequest(method, target, body)
	request.RemoteAddr = b.address
	if method == http.MethodPost {
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for i := 0; i < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
	}
	b.mu.Lock()
	for name, value := range b.cookies {
		request.AddCookie(&http.Cookie{Name: name, Value: value})
	}
	b.mu.Unlock()
	recorder := httptest.NewRecorder()
	b.site.ServeHTTP(recorder, request)
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, cookie := range recorder.Result().Cookies() {
		b.cookies[cookie.Name] = cookie.Value
		if cookie.MaxAge < 0 {
			delete(b.cookies, cookie.Name)
		}
	}
	return answer{recorder, html.UnescapeString(recorder.Body.String())}
}

func (b *browser) get(target string) answer {
	b.site.t.Helper()
	return b.send("GET", target, nil)
}

// post sends a form of names and values in turn.
func (b *browser) post(target string, form ...string) answer {
	b.site.t.Helper()
	values := url.Values{}
	for i := 0; i < len(form); i += 2 {
		values.Add(form[i], form[i+1])
	}
	return b.send("POST", target, strings.NewReader(values.Encode()))
}

// ask has a letter sent, and reads it.
func (b *browser) ask(email string, form ...string) letter {
	b.site.t.Helper()
	wantGo(b.site.t, b.post("/login", append([]string{"email", email}, form...)...), "/login/code")
	sent, err := auth.NormalizeEmail(email)
	if err != nil {
		b.site.t.Fatal(err)
	}
	return b.site.letterTo(sent)
}

// signIn is a new browser in which somebody is signed in.
func (s *site) signIn(email string) *browser {
	s.t.Helper()
	b := s.browser()
	wantGo(s.t, b.post("/login/confirm", "token", b.ask(email).token(s.t)), home)
	return b
}

func (b *browser) session() string { return b.cookies[b.site.cookieName(sessionCookie)] }

func (b *browser) isSignedIn() bool {
	b.site.t.Helper()
	return b.get(home).Code == http.StatusOK
}

func (s *site) account(email string) *ent.Account {
	s.t.Helper()
	return s.db.Write.Account.Query().Where(account.Email(email)).OnlyX(s.t.Context())
}

// makeKey makes one, and returns its text.
func (b *browser) makeKey(name string) string {
	b.site.t.Helper()
	page := b.post("/account/keys", "name", name)
	key := keyInPage.FindString(page.Body.String())
	if page.Code != http.StatusOK || key == "" {
		b.site.t.Fatalf("no key: %d %s", page.Code, page.text)
	}
	return key
}

var keyInPage = regexp.MustCompile(`pal_\w{50}`)

func idOf(t *testing.T, key string) string {
	t.Helper()
	parsed, ok := auth.ParseKey(key)
	if !ok {
		t.Fatalf("%s is no key", key)
	}
	return parsed.ID
}

// opens tells whether a key is taken by this server.
func (s *site) opens(key string) bool {
	request := httptest.NewRequest("GET", "/", nil)
	request.Header.Set("Authorization", "Bearer "+key)
	recorder := httptest.NewRecorder()
	s.Keyring.Identify(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})).ServeHTTP(recorder, request)
	return recorder.Code == http.StatusOK
}

func wantGo(t *testing.T, got answer, to string) {
	t.Helper()
	if path, _, _ := strings.Cut(got.to(), "?"); got.Code != http.StatusSeeOther || path != to {
		t.Fatalf("%d to %q, not to %s: %s", got.Code, got.to(), to, got.text)
	}
}

func wantPage(t *testing.T, got answer, status int, says ...string) {
	t.Helper()
	if got.Code != status || !strings.HasPrefix(got.Header().Get("Content-Type"), "text/html") {
		t.Errorf("%d, not %d: %s", got.Code, status, got.text)
	}
	for _, text := range says {
		if !strings.Contains(got.text, text) {
			t.Errorf("it does not say %q: %s", text, got.text)
		}
	}
}

func wantNot(t *testing.T, got answer, says ...string) {
	t.Helper()
	for _, text := range says {
		if strings.Contains(got.text, text) || strings.Contains(got.Body.String(), text) {
			t.Errorf("it says %q: %s", text, got.text)
		}
	}
}

func atOnce(times int, do func(i int)) {
	var ready, all sync.WaitGroup
	ready.Add(1)
	for i := range times {
		all.Go(func() {
			ready.Wait()
			do(i)
		})
	}
	ready.Done()
	all.Wait()
}

// mailTo is some letter.
func mailTo(email string) letters.Message { return letters.ProEnded(email, "x", "https://x.example") }

func planOf(name string) account.Plan { return account.Plan(name) }

// failing is the answer to a visit that ends with an error.
func (b *browser) failing(err error) answer {
	recorder := httptest.NewRecorder()
	b.site.setHeaders(recorder.Header())
	b.site.fail(&visit{Request: httptest.NewRequest("POST", home, nil), w: recorder}, err)
	return answer{recorder, html.UnescapeString(recorder.Body.String())}
}
