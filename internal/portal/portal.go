// Package portal is where people sign in, get keys, see what they use and
// subscribe: plain pages that work without JavaScript. What it shows and does
// is the business of auth and billing; nothing of the catalog enters here.
package portal

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"palmares/auth"
	"palmares/ent"
	"palmares/internal/billing"
	"palmares/internal/mail"
	"palmares/internal/problem"
	"palmares/internal/store"
)

// Config is what the portal needs of the rest of the program.
type Config struct {
	PublicURL   string
	ServiceName string
	Credit      string
	Closed      bool           // nobody can sign in: no mail is sent from a public address
	Trusted     []netip.Prefix // proxies that say who is behind them
	Store       *store.Store
	Keyring     *auth.Keyring
	Mail        *mail.Mailer
	Billing     *billing.Billing
	// Example is a path of the API worth trying first with a key.
	Example func(context.Context) string
	Log     *slog.Logger
}

// Portal serves the pages.
type Portal struct {
	Config
	secure        bool // reached over https
	accounts      *auth.Accounts
	sessions      *auth.Sessions
	confirmations *auth.Confirmations
	now           func() time.Time
	mux           http.Handler
}

// access says who may see a page.
type access bool

const (
	anyone   access = false
	signedIn access = true
)

// routes are every page there is.
var routes = []struct {
	pattern string
	who     access
	answer  func(*Portal, *visit) error
}{
	{"GET /login", anyone, (*Portal).showLogin},
	{"POST /login", anyone, (*Portal).askSignIn},
	{"GET /login/code", anyone, (*Portal).showCode},
	{"POST /login/code", anyone, (*Portal).signInByCode},
	{"GET /login/confirm", anyone, (*Portal).showLink},
	{"POST /login/confirm", anyone, (*Portal).signInByLink},
	{"POST /logout", anyone, (*Portal).logOut},

	{"GET /account", signedIn, (*Portal).showKeys},
	{"POST /account/keys", signedIn, (*Portal).createKey},
	{"GET /account/keys/{id}/revoke", signedIn, (*Portal).askRevoke},
	{"POST /account/keys/{id}/revoke", signedIn, (*Portal).revokeKey},

	{"GET /account/usage", signedIn, (*Portal).showUsage},

	{"GET /account/plan", signedIn, (*Portal).showPlan},
	{"POST /account/plan/subscribe", signedIn, (*Portal).subscribe},
	{"POST /account/plan/manage", signedIn, (*Portal).managePlan},
	{"GET /account/plan/done", signedIn, (*Portal).backFromPaying},

	{"GET /account/settings", signedIn, (*Portal).showSettings},
	{"POST /account/email", signedIn, (*Portal).askChange},
	{"GET /account/email/code", signedIn, (*Portal).showChangeCode},
	{"POST /account/email/code", signedIn, (*Portal).changeByCode},
	{"GET /account/email/confirm", signedIn, (*Portal).showChangeLink},
	{"POST /account/email/confirm", signedIn, (*Portal).changeByLink},
	{"POST /account/logout-everywhere", signedIn, (*Portal).logOutEverywhere},
	{"GET /account/export", signedIn, (*Portal).export},
	{"GET /account/delete", signedIn, (*Portal).askDelete},
	{"POST /account/delete", signedIn, (*Portal).deleteAccount},

	{"/login", anyone, takesOnly("GET, HEAD, POST")},
	{"/logout", anyone, takesOnly("POST")},
	{"/account", anyone, takesOnly("GET, HEAD")},
	{"/account/", anyone, (*Portal).notFound},
	{"/login/", anyone, (*Portal).notFound},
}

// Paths are what belongs to the portal, with all that is below them.
var Paths = []string{"/login", "/login/", "/logout", "/account", "/account/", "/assets/"}

// New makes the portal.
func New(cfg Config) *Portal {
	p := &Portal{
		Config:        cfg,
		secure:        strings.HasPrefix(cfg.PublicURL, "https://"),
		accounts:      auth.NewAccounts(cfg.Store),
		sessions:      auth.NewSessions(cfg.Store),
		confirmations: auth.NewConfirmations(cfg.Store),
		now:           time.Now,
	}
	mux := http.NewServeMux()
	for _, route := range routes {
		mux.HandleFunc(route.pattern, func(w http.ResponseWriter, r *http.Request) { p.visit(w, r, route.who, route.answer) })
	}
	mux.HandleFunc("GET /assets/{name}", serveAsset)

	// A form of another site's must not act in our visitors' name.
	sameOrigin := http.NewCrossOriginProtection()
	sameOrigin.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.fail(&visit{Request: r, w: w}, problem.New(problem.Forbidden, "This form was sent from another site, so nothing was done."))
	}))
	p.mux = sameOrigin.Handler(mux)
	return p
}

// ServeHTTP answers with a page.
func (p *Portal) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.guard(w.Header())
	p.mux.ServeHTTP(w, r)
}

// guard says what browsers may do with a page: show it, with our own styles
// and script, framed by nobody, told to nobody, kept nowhere.
func (p *Portal) guard(header http.Header) {
	header.Set("Content-Security-Policy", "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; "+
		"form-action 'self' https://checkout.stripe.com https://billing.stripe.com; base-uri 'none'; frame-ancestors 'none'")
	header.Set("X-Frame-Options", "DENY")
	header.Set("X-Content-Type-Options", "nosniff")
	// Not none at all: a form's post would then come from nowhere.
	header.Set("Referrer-Policy", "same-origin")
	header.Set("Cross-Origin-Opener-Policy", "same-origin")
	header.Set("Cross-Origin-Resource-Policy", "same-origin")
	header.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=(), payment=(), usb=()")
	header.Set("Cache-Control", "no-store")
	if p.secure {
		header.Set("Strict-Transport-Security", "max-age=31536000")
	}
}

// visit is one request, and who sent it.
type visit struct {
	*http.Request
	w       http.ResponseWriter
	account *ent.Account // nil where nobody is signed in
}

// Forms are small.
const maxForm = 16 << 10

func (p *Portal) visit(w http.ResponseWriter, r *http.Request, who access, answer func(*Portal, *visit) error) {
	v := &visit{Request: r, w: w}
	if err := p.answer(v, who, answer); err != nil {
		p.fail(v, err)
	}
}

func (p *Portal) answer(v *visit, who access, answer func(*Portal, *visit) error) error {
	v.Body = http.MaxBytesReader(v.w, v.Body, maxForm)
	if err := v.ParseForm(); err != nil {
		var large *http.MaxBytesError
		if errors.As(err, &large) {
			return problem.New(problem.TooLarge, "This form is larger than %d bytes.", maxForm)
		}
		return problem.New(problem.BadInput, "This form cannot be read.")
	}
	account, err := p.sessions.Find(v.Context(), p.cookie(v, sessionCookie))
	if err != nil {
		return err
	}
	if account == nil && who == signedIn {
		return p.redirect(v, loginPath(v.Request))
	}
	v.account = account
	return answer(p, v)
}

func (p *Portal) redirect(v *visit, path string) error {
	http.Redirect(v.w, v.Request, path, http.StatusSeeOther)
	return nil
}

func (p *Portal) notFound(*visit) error {
	return problem.New(problem.NotFound, "There is no such page.")
}

// takesOnly answers what was sent with another method than a page has.
func takesOnly(methods string) func(*Portal, *visit) error {
	return func(_ *Portal, v *visit) error {
		v.w.Header().Set("Allow", methods)
		return problem.New(problem.WrongMethod, "This page does nothing with %s.", v.Method)
	}
}
