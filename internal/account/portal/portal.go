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
	"net/url"
	"strings"
	"sync"
	"time"

	"palmares/auth"
	"palmares/ent"
	"palmares/internal/account/billing"
	"palmares/internal/core/problem"
	"palmares/internal/core/store"
	"palmares/internal/notify/mail"
	"palmares/internal/notify/webhook"
	"palmares/internal/web/page"
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
	Hooks       *webhook.Webhooks
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
	making        [64]sync.Mutex // of keys, by account
}

// access says who may see a page.
type access bool

const (
	anyone   access = false
	signedIn access = true
)

// handler does what a page is for, and shows it.
type handler func(*Portal, *visit) error

// routes are every page there is.
var routes = []struct {
	pattern string
	who     access
	handle  handler
}{
	{"GET /login", anyone, (*Portal).showLogin},
	{"POST /login", anyone, (*Portal).askSignIn},
	{"GET /login/code", anyone, signingIn.showCode},
	{"POST /login/code", anyone, signingIn.takeCode},
	{"GET /login/confirm", anyone, signingIn.showLink},
	{"POST /login/confirm", anyone, signingIn.takeLink},
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
	{"GET " + billing.BackPath, signedIn, (*Portal).backFromManaging},

	{"GET /account/webhooks", signedIn, (*Portal).showHooks},
	{"POST /account/webhooks", signedIn, (*Portal).addHook},
	{"GET /account/webhooks/{id}", signedIn, (*Portal).showHook},
	{"POST /account/webhooks/{id}/test", signedIn, (*Portal).testHook},
	{"POST /account/webhooks/{id}/replay", signedIn, (*Portal).replayHook},
	{"POST /account/webhooks/{id}/rotate", signedIn, (*Portal).rotateHook},
	{"POST /account/webhooks/{id}/pause", signedIn, (*Portal).pauseHook},
	{"POST /account/webhooks/{id}/resume", signedIn, (*Portal).resumeHook},
	{"POST /account/webhooks/{id}/remove", signedIn, (*Portal).removeHook},

	{"GET /account/settings", signedIn, (*Portal).showSettings},
	{"POST /account/email", signedIn, (*Portal).askChange},
	{"GET /account/email/code", signedIn, changingAddress.showCode},
	{"POST /account/email/code", signedIn, changingAddress.takeCode},
	{"GET /account/email/confirm", signedIn, changingAddress.showLink},
	{"POST /account/email/confirm", signedIn, changingAddress.takeLink},
	{"POST /account/logout-everywhere", signedIn, (*Portal).logOutEverywhere},
	{"GET /account/export", signedIn, (*Portal).export},
	{"GET /account/delete", signedIn, (*Portal).askDelete},
	{"POST /account/delete", signedIn, (*Portal).deleteAccount},

	{"/login", anyone, takesOnly("GET, HEAD, POST")},
	{"/logout", anyone, takesOnly("POST")},
	{"/account", anyone, takesOnly("GET, HEAD")},
	{"GET /login/{$}", anyone, (*Portal).withoutSlash},
	{"GET /account/{$}", anyone, (*Portal).withoutSlash},
	{"/account/", anyone, (*Portal).notFound},
	{"/login/", anyone, (*Portal).notFound},
}

// Paths are what belongs to the portal, with all that is below them.
var Paths = []string{"/login", "/login/", "/logout", "/account", "/account/"}

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
		mux.HandleFunc(route.pattern, func(w http.ResponseWriter, r *http.Request) { p.serve(w, r, route.who, route.handle) })
	}

	// A form of another site's must not act in our visitors' name. Ours come
	// from the public URL, whatever host a proxy names to us.
	sameOrigin := http.NewCrossOriginProtection()
	if err := sameOrigin.AddTrustedOrigin(origin(cfg.PublicURL)); err != nil {
		cfg.Log.Error("the public URL is not known to be ours: forms may be refused", "cause", err)
	}
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

// withoutSlash leads to a page whose address was written with one at its end.
func (p *Portal) withoutSlash(v *visit) error {
	to := url.URL{Path: strings.TrimRight(v.URL.Path, "/"), RawQuery: v.URL.RawQuery}
	return p.redirect(v, to.String())
}

// guard lets forms go to us and, from there, to where one pays. A page about
// somebody is kept nowhere.
func (p *Portal) guard(header http.Header) {
	page.Guard(header, page.Plain+"; form-action 'self' https://checkout.stripe.com https://billing.stripe.com", p.secure)
	header.Set("Cache-Control", "no-store")
}

// visit is one request, and who sent it.
type visit struct {
	*http.Request
	w       http.ResponseWriter
	account *ent.Account // nil where nobody is signed in
}

// MaxForm is the size of the largest form that is read, in bytes.
const MaxForm = 16 << 10

// serve sends a page to whoever may see it, and others to sign in.
func (p *Portal) serve(w http.ResponseWriter, r *http.Request, who access, handle handler) {
	v := &visit{Request: r, w: w}
	err := p.receive(v)
	switch {
	case err != nil:
	case v.account == nil && who == signedIn:
		err = p.redirect(v, loginPath(r))
	default:
		err = handle(p, v)
	}
	if err != nil {
		p.fail(v, err)
	}
}

// receive finds out who is there, and reads the form. In this order, so that a
// page that says what is wrong with a form knows who reads it.
func (p *Portal) receive(v *visit) (err error) {
	if v.account, err = p.sessions.Find(v.Context(), p.cookie(v, sessionCookie)); err != nil {
		return err
	}
	v.Body = http.MaxBytesReader(v.w, v.Body, MaxForm)
	if err := v.ParseForm(); err != nil {
		var large *http.MaxBytesError
		if errors.As(err, &large) {
			return problem.New(problem.TooLarge, "The form is larger than %d bytes.", MaxForm)
		}
		return problem.New(problem.BadInput, "This form cannot be read.")
	}
	return nil
}

func (p *Portal) redirect(v *visit, path string) error {
	http.Redirect(v.w, v.Request, path, http.StatusSeeOther)
	return nil
}

func (p *Portal) notFound(*visit) error {
	return problem.New(problem.NotFound, "There is no such page.")
}

// takesOnly answers what was sent with another method than a page has.
func takesOnly(methods string) handler {
	return func(_ *Portal, v *visit) error {
		v.w.Header().Set("Allow", methods)
		return problem.New(problem.WrongMethod, "This page does nothing with %s.", v.Method)
	}
}
