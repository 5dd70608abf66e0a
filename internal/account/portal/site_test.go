package portal

import (
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
	"palmares/graph"
	"palmares/graph/graphtest"
	"palmares/internal/account/billing"
	"palmares/internal/core/cache"
	"palmares/internal/core/lang"
	"palmares/internal/core/store"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
	ourmail "palmares/internal/notify/mail"
	"palmares/internal/notify/outbox"
	"palmares/internal/notify/webhook"
	"palmares/internal/transport/saved"
	"palmares/internal/web/page"
	"palmares/internal/web/queries"
	"palmares/rest"
)

// site is a portal with a database, a mail server and a log.
type site struct {
	*Portal
	t      *testing.T
	db     *store.Store
	smtp   *testkit.SMTPServer
	outbox *outbox.Outbox
	log    *testkit.Log
}

// newSQLiteSite returns a site for tests that do not depend on the database.
func newSQLiteSite(t *testing.T, change ...func(*Config)) *site {
	t.Helper()
	return newSite(t, testkit.Open(t, testkit.SQLite(t)), change...)
}

func newSite(t *testing.T, db *store.Store, change ...func(*Config)) *site {
	t.Helper()
	s := &site{t: t, db: db, log: &testkit.Log{}, smtp: testkit.StartSMTP(t)}
	log := slog.New(slog.NewTextHandler(s.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	cfg := Config{
		Service: page.Service{PublicURL: "https://palmares.example", ServiceName: "Palmarès", Credit: "Scores by the editors.", Log: log},
		Store:   db, Keyring: auth.NewKeyring(db, log, auth.Rules{}),
		Mail:    s.mailer(ourmail.Config{URL: s.smtp.URL, From: "palmares@palmares.example", Log: log}),
		Billing: billing.New(billing.Config{Store: db, Log: log}),
		Example: func(context.Context) string { return "/api/v1/tools" }, Preview: queries.Preview,
		Charge: func(*http.Request) (func(), error) { return func() {}, nil }, Count: func(http.ResponseWriter, *http.Request) error { return nil },
	}
	memory := cache.New(1<<20, nil, log)
	executor := graphtest.New(graph.Config{Catalog: db, Log: log, Cache: memory, Tools: func() int { return 0 }})
	cfg.Webhooks = webhook.New(webhook.Config{Store: db, Release: executor.Newest, Log: log, ServiceName: "Palmarès", Loopback: true})
	cfg.Queries = check.Try(saved.New(saved.Config{Service: rest.Config{PublicURL: cfg.PublicURL}, Store: db, Executor: executor, Cache: memory, Log: log})).OK(t)
	cfg.IsDownload = rest.IsDownload
	cfg.API = check.Try(rest.NewHandler(rest.Config{PublicURL: cfg.PublicURL}, executor, memory)).OK(t)
	for _, change := range change {
		change(&cfg)
	}
	s.Portal, s.outbox = New(cfg), outbox.New(db, cfg.Mail, log)
	return s
}

// newSiteWithoutMail returns a site on a private address without a mail server.
func newSiteWithoutMail(t *testing.T) *site {
	t.Helper()
	return newSQLiteSite(t, func(cfg *Config) {
		cfg.PublicURL = "http://localhost:8080"
		cfg.Mail, _ = ourmail.New(ourmail.Config{Log: cfg.Log})
	})
}

func (s *site) mailer(cfg ourmail.Config) *ourmail.Mailer {
	s.t.Helper()
	mailer := check.Try(ourmail.New(cfg)).OK(s.t)
	ctx, end := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { mailer.Run(ctx) })
	s.t.Cleanup(func() {
		end()
		running.Wait()
	})
	return mailer
}

// message is a received email.
type message struct {
	text, link, code string
}

var (
	linkInMessage = regexp.MustCompile(`https?://\S+`)
	codeInMessage = regexp.MustCompile(`(?m)^ +(\d{6})\r?$`)
)

// emailTo waits for the next email to an address and returns it.
func (s *site) emailTo(email string) message {
	s.t.Helper()
	check.OK(s.t, s.outbox.Send(s.t.Context()))
	parsed := check.Try(mail.ReadMessage(strings.NewReader(s.smtp.Wait(s.t, email)))).OK(s.t)
	_, params, err := mime.ParseMediaType(parsed.Header.Get("Content-Type"))
	check.OK(s.t, err)
	part := check.Try(multipart.NewReader(parsed.Body, params["boundary"]).NextPart()).OK(s.t)
	text := check.Try(io.ReadAll(part)).OK(s.t)
	found := message{text: string(text), link: linkInMessage.FindString(string(text))}
	if code := codeInMessage.FindStringSubmatch(found.text); code != nil {
		found.code = code[1]
	}
	return found
}

// path returns the path of the link.
func (m message) path(t *testing.T) string {
	t.Helper()
	u := check.Try(url.Parse(m.link)).OK(t)
	check.MustTrue(t, u.Path != "", "got link %q, want a URL", m.link)
	return u.RequestURI()
}

// token returns the token of the link.
func (m message) token(t *testing.T) string {
	t.Helper()
	u := check.Try(url.Parse(m.path(t))).OK(t)
	check.MustTrue(t, u.Query().Get("token") != "", "got link %q, want a token in it", m.link)
	return u.Query().Get("token")
}

// browser stores cookies and has a network of its own. It opens pages in a
// language, so that tests mention paths without its prefix.
type browser struct {
	site     *site
	address  string
	language lang.Language
	mu       sync.Mutex
	cookies  map[string]string
}

var browsers atomic.Int64

func (s *site) browser() *browser { return s.browserIn(lang.English) }

func (s *site) browserIn(l lang.Language) *browser {
	n := browsers.Add(1)
	return &browser{site: s, language: l, address: fmt.Sprintf("198.18.%d.%d:4711", n/250, n%250), cookies: map[string]string{}}
}

// response is a received page.
type response struct {
	*httptest.ResponseRecorder
	text string // with HTML entities decoded, plain spaces, and links without a language
}

// to returns where a redirect leads, without a language.
func (a response) to() string {
	return languagePrefix.ReplaceAllString(a.Header().Get("Location"), "/")
}

var (
	languagePrefix  = regexp.MustCompile(`^/(?:en|fr)/`)
	languageInLinks = regexp.MustCompile(`( (?:href|action)="/)(?:en|fr)/`)
)

func newResponse(recorder *httptest.ResponseRecorder) response {
	return response{recorder, languageInLinks.ReplaceAllString(plain(html.UnescapeString(recorder.Body.String())), "$1")}
}

// plain replaces the no-break spaces of dates, numbers and French punctuation.
func plain(text string) string {
	return strings.NewReplacer("\u00a0", " ", "\u202f", " ").Replace(text)
}

func (b *browser) send(method, target string, body io.Reader, header ...string) response {
	b.site.t.Helper()
	if !languagePrefix.MatchString(target) {
		target = page.LocalPath(b.language, target)
	}
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
	page.Localize(b.site).ServeHTTP(recorder, request)
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, cookie := range recorder.Result().Cookies() {
		b.cookies[cookie.Name] = cookie.Value
		if cookie.MaxAge < 0 {
			delete(b.cookies, cookie.Name)
		}
	}
	return newResponse(recorder)
}

func (b *browser) get(target string) response {
	b.site.t.Helper()
	return b.send("GET", target, nil)
}

// post sends a form, given as alternating names and values.
func (b *browser) post(target string, form ...string) response {
	b.site.t.Helper()
	values := url.Values{}
	for i := 0; i < len(form); i += 2 {
		values.Add(form[i], form[i+1])
	}
	return b.send("POST", target, strings.NewReader(values.Encode()))
}

// start starts to sign in and returns the email.
func (b *browser) start(email string, form ...string) message {
	b.site.t.Helper()
	wantRedirect(b.site.t, b.post("/login", append([]string{"email", email}, form...)...), "/login/code")
	sent := check.Try(auth.NormalizeEmail(email)).OK(b.site.t)
	return b.site.emailTo(sent)
}

// signIn returns a new browser that is signed in.
func (s *site) signIn(email string) *browser {
	s.t.Helper()
	return s.signInAt(lang.English, email)
}

func (s *site) signInAt(l lang.Language, email string) *browser {
	s.t.Helper()
	b := s.browserIn(l)
	wantRedirect(s.t, b.post("/login/confirm", "token", b.start(email).token(s.t)), home)
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

// makeKey creates a key and returns its text.
func (b *browser) makeKey(name string) string {
	b.site.t.Helper()
	page := b.post("/account/keys", "name", name)
	key := keyInPage.FindString(page.Body.String())
	check.Must(b.site.t, page.Code, http.StatusOK, page.text)
	check.MustTrue(b.site.t, key != "", "got status %d, want 200 and a key: %s", page.Code, page.text)
	return key
}

var keyInPage = regexp.MustCompile(`pal_\w{50}`)

func idOf(t *testing.T, key string) string {
	t.Helper()
	parsed, ok := auth.ParseKey(key)
	check.MustTrue(t, ok, "got %s, want a key", key)
	return parsed.ID
}

// accepts reports whether the server accepts a key.
func (s *site) accepts(key string) bool {
	request := httptest.NewRequest("GET", "/", nil)
	request.Header.Set("Authorization", "Bearer "+key)
	recorder := httptest.NewRecorder()
	s.Keyring.Identify(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})).ServeHTTP(recorder, request)
	return recorder.Code == http.StatusOK
}

func wantRedirect(t *testing.T, got response, to string) {
	t.Helper()
	path, _, _ := strings.Cut(got.to(), "?")
	check.Must(t, got.Code, http.StatusSeeOther, "to %q: %s", got.to(), got.text)
	check.Must(t, path, to, "to %q: %s", got.to(), got.text)
}

func wantPage(t *testing.T, got response, status int, texts ...string) {
	t.Helper()
	check.Equal(t, got.Code, status, got.text)
	check.True(t, strings.HasPrefix(got.Header().Get("Content-Type"), "text/html"), "got status %d, want %d: %s", got.Code, status, got.text)
	for _, text := range texts {
		check.Contains(t, got.text, text, "page without")
	}
}

// invalidField returns the fields that a page marks as invalid.
func invalidField(page response) (fields string) {
	for _, found := range regexp.MustCompile(` id="([a-z]+)"[^>]* aria-invalid="true"`).FindAllStringSubmatch(page.text, -1) {
		fields += found[1]
	}
	return fields
}

func wantNoText(t *testing.T, got response, texts ...string) {
	t.Helper()
	for _, text := range texts {
		check.Lacks(t, got.text, text)
		check.Lacks(t, got.Body.String(), text)
	}
}

func planOf(name string) account.Plan { return account.Plan(name) }
