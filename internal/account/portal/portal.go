// Package portal serves the account pages: signing in, API keys, usage, plan,
// webhooks and settings. They are plain HTML and work without JavaScript.
package portal

import (
	"cmp"
	"context"
	"embed"
	"errors"
	"fmt"
	"html/template"
	"net/http"
	"net/netip"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/net/idna"

	"palmares/auth"
	"palmares/ent"
	"palmares/internal/account/billing"
	"palmares/internal/account/oauth"
	"palmares/internal/catalog/journal"
	"palmares/internal/core/lang"
	"palmares/internal/core/problem"
	"palmares/internal/core/store"
	"palmares/internal/notify/mail"
	"palmares/internal/notify/webhook"
	"palmares/internal/transport/saved"
	"palmares/internal/web/page"
)

// Config holds the portal's dependencies.
type Config struct {
	page.Service
	SignInDisabled bool           // on a public server without a mail server
	TrustedProxies []netip.Prefix // proxies whose forwarding headers are trusted
	Store          *store.Store
	Keyring        *auth.Keyring
	Mail           *mail.Mailer
	Billing        *billing.Billing
	Webhooks       *webhook.Webhooks
	Queries        *saved.Queries
	API            http.Handler                                   // the REST API, for downloads
	IsDownload     func(*http.Request) bool                       // whether a request to it is for a whole list
	Files          http.Handler                                   // the releases as files, with the quota
	OAuth          *oauth.Server                                  // nil if applications cannot connect
	Charge         func(*http.Request) (done func(), err error)   // charges what follows to the visitor's budget
	Count          func(http.ResponseWriter, *http.Request) error // counts a request of the caller
	Example        func(context.Context) string                   // API path to try with a new key
	// Preview draws the result of a query as its page would.
	Preview func(context.Context, lang.Language, *saved.Queries, *saved.View) (template.HTML, error)
}

// Portal serves the account pages.
type Portal struct {
	Config
	accounts *auth.Accounts
	now      func() time.Time
	routes   *http.ServeMux
	handler  http.Handler
}

type handler func(*Portal, *visit) error

const (
	public   = false
	signedIn = true
)

var routes = []struct {
	pattern  string
	signedIn bool // only for signed-in visitors
	handle   handler
}{
	{"GET /login", public, (*Portal).showLogin},
	{"POST /login", public, (*Portal).startSignIn},
	{"GET /login/code", public, signInFlow.showCode},
	{"POST /login/code", public, signInFlow.submitCode},
	{"GET /login/confirm", public, signInFlow.openLink},
	{"POST /login/confirm", public, signInFlow.openLink},
	{"POST /logout", public, (*Portal).signOut},

	{"GET /account", signedIn, (*Portal).showKeys},
	{"POST /account/keys", signedIn, (*Portal).createKey},
	{"GET /account/keys/{id}/revoke", signedIn, with((*Portal).key, confirm[*ent.APIKey]("revoke"))},
	{"POST /account/keys/{id}/revoke", signedIn, with((*Portal).key, (*Portal).revokeKey)},

	{"GET " + oauth.AuthorizePath, public, (*Portal).startConnecting},
	{"GET " + connectPath, public, (*Portal).connect},
	{"POST " + connectPath, public, (*Portal).connect},
	{"GET /account/applications/{id}/revoke", signedIn, with((*Portal).application, confirm[auth.Grant]("disconnect"))},
	{"POST /account/applications/{id}/revoke", signedIn, with((*Portal).application, (*Portal).disconnect)},

	{"GET /account/usage", signedIn, (*Portal).showUsage},

	{"GET /account/plan", signedIn, (*Portal).showPlan},
	{"POST /account/plan/subscribe", signedIn, (*Portal).subscribe},
	{"POST /account/plan/manage", signedIn, (*Portal).manageBilling},
	{"GET /account/plan/done", signedIn, (*Portal).returnFromCheckout},
	{"GET " + billing.BackPath, signedIn, (*Portal).returnFromManaging},

	{"GET /account/webhooks", signedIn, (*Portal).showEndpoints},
	{"POST /account/webhooks", signedIn, (*Portal).addEndpoint},
	{"GET /account/webhooks/{id}", signedIn, with((*Portal).endpoint, (*Portal).showEndpoint)},
	{"GET /account/webhooks/{id}/attempts/{attempt}", signedIn, with((*Portal).endpoint, (*Portal).showAttempt)},
	{"POST /account/webhooks/{id}/test", signedIn, with((*Portal).endpoint, (*Portal).testEndpoint)},
	{"POST /account/webhooks/{id}/replay", signedIn, with((*Portal).endpoint, (*Portal).replayEvents)},
	{"POST /account/webhooks/{id}/settings", signedIn, with((*Portal).endpoint, (*Portal).updateEndpoint)},
	{"GET /account/webhooks/{id}/rotate", signedIn, with((*Portal).endpoint, confirm[*ent.Endpoint]("rotatesecret"))},
	{"POST /account/webhooks/{id}/rotate", signedIn, with((*Portal).endpoint, (*Portal).rotateSecret)},
	{"POST /account/webhooks/{id}/pause", signedIn, changeEndpoint((*webhook.Webhooks).Pause, "/account/webhooks/{id}?done=paused")},
	{"POST /account/webhooks/{id}/resume", signedIn, changeEndpoint((*webhook.Webhooks).Resume, "/account/webhooks/{id}?done=resumed")},
	{"GET /account/webhooks/{id}/remove", signedIn, with((*Portal).endpoint, confirm[*ent.Endpoint]("removeendpoint"))},
	{"POST /account/webhooks/{id}/remove", signedIn, changeEndpoint((*webhook.Webhooks).Remove, "/account/webhooks?done=removed")},

	{"GET /account/queries", signedIn, (*Portal).showQueries},
	{"POST /account/queries", signedIn, (*Portal).saveQuery},
	{"GET " + draftPath, signedIn, (*Portal).showQueryForm},
	{"POST " + draftPath, signedIn, (*Portal).showQueryForm}, // from the explorer
	{"GET /account/queries/{name}", signedIn, with((*Portal).query, (*Portal).showQuery)},
	{"GET /account/queries/{name}/edit", signedIn, with((*Portal).query, (*Portal).editQuery)},
	{"POST /account/queries/{name}/token", signedIn, with((*Portal).query, (*Portal).createToken)},
	{"POST /account/queries/{name}/revoke-token", signedIn, with((*Portal).query, (*Portal).revokeToken)},
	{"GET /account/queries/{name}/delete", signedIn, with((*Portal).query, confirm[*saved.Query]("querydelete"))},
	{"POST /account/queries/{name}/delete", signedIn, with((*Portal).query, (*Portal).deleteQuery)},

	{"GET /account/downloads", signedIn, (*Portal).showDownloads},
	{"POST /account/downloads", signedIn, (*Portal).createDownloadToken},
	{"GET /account/downloads/{file}", public, (*Portal).download},
	{"GET /account/downloads/files/{release}/{file}", public, (*Portal).download},
	{"GET /account/downloads/{id}/revoke", signedIn, with((*Portal).downloadToken, confirm[*ent.DownloadToken]("revoketoken"))},
	{"POST /account/downloads/{id}/revoke", signedIn, with((*Portal).downloadToken, (*Portal).revokeDownloadToken)},

	{"GET /account/settings", signedIn, (*Portal).showSettings},
	{"POST /account/email", signedIn, (*Portal).startEmailChange},
	{"GET /account/email/code", signedIn, emailChangeFlow.showCode},
	{"POST /account/email/code", signedIn, emailChangeFlow.submitCode},
	{"GET /account/email/confirm", signedIn, emailChangeFlow.openLink},
	{"POST /account/email/confirm", signedIn, emailChangeFlow.openLink},
	{"POST /account/language", signedIn, (*Portal).setLanguage},
	{"POST /account/logout-everywhere", signedIn, (*Portal).signOutEverywhere},
	{"GET /account/export", signedIn, (*Portal).export},
	{"GET /account/delete", signedIn, (*Portal).confirmDelete},
	{"POST /account/delete", signedIn, (*Portal).deleteAccount},

	{"/login", public, allowOnly("GET, HEAD, POST")},
	{"/logout", public, allowOnly("POST")},
	{oauth.AuthorizePath, public, allowOnly("GET, HEAD")},
	{"/account", public, allowOnly("GET, HEAD")},
	{"GET /login/{$}", public, (*Portal).trimSlash},
	{"GET /account/{$}", public, (*Portal).trimSlash},
	{"/account/", public, (*Portal).notFound},
	{"/login/", public, (*Portal).notFound},
}

// Paths are the patterns to register the portal for.
var Paths = []string{"/login", "/login/", "/logout", "/account", "/account/", oauth.AuthorizePath}

// MaxForm is the maximum size of a form, in bytes.
const MaxForm = 16 << 10

// New returns the portal.
func New(cfg Config) *Portal {
	p := &Portal{Config: cfg, accounts: auth.NewAccounts(cfg.Store), now: time.Now}
	mux := http.NewServeMux()
	for _, route := range routes {
		mux.HandleFunc(route.pattern, func(w http.ResponseWriter, r *http.Request) { p.serve(w, r, route.signedIn, route.handle) })
	}

	// Prevents cross-site request forgery. Our own forms come from the public
	// URL, whatever host a proxy reports.
	sameOrigin := http.NewCrossOriginProtection()
	if err := sameOrigin.AddTrustedOrigin(origin(cfg.PublicURL)); err != nil {
		cfg.Log.Error("invalid public URL: forms may be rejected", "cause", err)
	}
	sameOrigin.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.fail(&visit{Request: r, w: w}, problem.New(problem.Forbidden, "This form was sent from another site. Nothing was changed."))
	}))
	p.routes, p.handler = mux, sameOrigin.Handler(mux)
	return p
}

// origin returns the origin of an address as browsers send it: in lower case
// and ASCII, without the default port.
func origin(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	host := u.Host
	if ascii, err := idna.Lookup.ToASCII(u.Hostname()); err == nil {
		host = strings.Replace(host, u.Hostname(), ascii, 1)
	}
	defaultPort := map[string]string{"http": ":80", "https": ":443"}[u.Scheme]
	return u.Scheme + "://" + strings.ToLower(strings.TrimSuffix(host, defaultPort))
}

// ServeHTTP serves a page.
func (p *Portal) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.setHeaders(w.Header())
	if strings.HasPrefix(r.URL.Path, "/login") || r.URL.Path == connectPath || r.URL.Path == oauth.AuthorizePath {
		// Applications open these pages in a window, to which they must stay connected.
		w.Header().Set("Cross-Origin-Opener-Policy", "unsafe-none")
	}
	p.handler.ServeHTTP(w, r)
}

// setHeaders allows forms to be sent to the portal, which redirects some to Stripe.
func (p *Portal) setHeaders(header http.Header) {
	p.SetSecurityHeaders(header, page.BasePolicy+"; form-action 'self' https://checkout.stripe.com https://billing.stripe.com")
	header.Set("Cache-Control", "no-store")
}

// visit is one request to the portal.
type visit struct {
	*http.Request
	w       http.ResponseWriter
	account *ent.Account // nil if nobody is signed in
	invalid error        // why a form was rejected, for the page that shows it again
	token   string       // a new one, for the page that shows it once
}

func (p *Portal) serve(w http.ResponseWriter, r *http.Request, needsSession bool, handle handler) {
	account, err := p.sessionAccount(r)
	v := &visit{Request: r, w: w, account: account}
	switch {
	case err != nil:
	case v.account == nil && needsSession && r.URL.Path == draftPath && r.Method == http.MethodPost:
		err = errSignInFirst // without JavaScript, which stores the query
	case v.account == nil && needsSession:
		err = p.redirect(v, loginPath(r))
	default:
		if err = readForm(v); err == nil {
			err = handle(p, v)
		}
	}
	if err != nil {
		p.fail(v, err)
	}
}

func (p *Portal) sessionAccount(r *http.Request) (*ent.Account, error) {
	return p.accounts.SessionAccount(r.Context(), p.cookie(r, sessionCookie))
}

// readForm reads the form of a visit that may send it. Only users with an account may send
// a long one.
func readForm(v *visit) error {
	limit := int64(MaxForm)
	if v.account != nil {
		limit = FormLimit(v.Request)
	}
	v.Body = http.MaxBytesReader(v.w, v.Body, limit)
	if err := v.ParseForm(); err != nil {
		if _, tooLarge := errors.AsType[*http.MaxBytesError](err); tooLarge {
			return problem.New(problem.TooLarge, "The form is larger than %d bytes.", limit)
		}
		return problem.New(problem.BadInput, "The form could not be read.")
	}
	return nil
}

func (p *Portal) redirect(v *visit, path string) error {
	page.Redirect(v.w, v.Request, path, http.StatusSeeOther)
	return nil
}

// changed redirects after a change to the account, unless it failed.
func (p *Portal) changed(v *visit, err error, path string) error {
	if err != nil {
		return err
	}
	p.Keyring.ForgetAccount(v.account.ID) // for example, another key may no longer be suspended
	return p.redirect(v, path)
}

// rejected makes the page that is shown again say why its form was rejected.
func (v *visit) rejected(err error) *visit {
	v.invalid = err
	return v
}

// with passes the item in the path, which find returns if it belongs to the visitor.
func with[T any](find func(*Portal, *visit) (T, error), handle func(*Portal, *visit, T) error) handler {
	return func(p *Portal, v *visit) error {
		item, err := find(p, v)
		if err != nil {
			return err
		}
		return handle(p, v, item)
	}
}

// find returns the item of the visitor that the path selects, or why there is none.
func find[T any](all []T, err error, isSelected func(T) bool, missing *problem.Problem) (item T, _ error) {
	at := slices.IndexFunc(all, isSelected)
	if at < 0 {
		return item, cmp.Or[error](err, missing)
	}
	return all[at], err
}

// confirm returns a handler that shows a page with the button for an action.
func confirm[T any](page string) func(*Portal, *visit, T) error {
	return func(p *Portal, v *visit, item T) error { return p.show(v, page, item) }
}

func (p *Portal) trimSlash(v *visit) error {
	to := url.URL{Path: strings.TrimRight(v.URL.Path, "/"), RawQuery: v.URL.RawQuery}
	return p.redirect(v, to.String())
}

func (p *Portal) notFound(*visit) error {
	return problem.New(problem.NotFound, "This page does not exist.")
}

func allowOnly(methods string) handler {
	return func(_ *Portal, v *visit) error {
		v.w.Header().Set("Allow", methods)
		return problem.New(problem.WrongMethod, "This page does not support %s requests.", v.Method)
	}
}

// The data of a template is the type whose name ends in Page beside its handler.
//
//go:embed templates
var templateFiles embed.FS

var pages = page.NewTemplates(templateFiles, "templates", func(l lang.Language) template.FuncMap {
	return template.FuncMap{
		"day":       l.Day,
		"iso":       func(t time.Time) string { return t.UTC().Format(time.RFC3339) },
		"stamp":     l.Time,
		"moment":    func(t time.Time) string { return l.ShortDay(t) + t.UTC().Format(", 15:04:05") },
		"messageID": webhook.MessageID,
		"filter":    webhook.FilterOf,
		"text":      func(s *string) string { return *s },
		"terms":     func(plan any) auth.Terms { return auth.Plan(fmt.Sprint(plan)).Terms() },
		"device":    deviceOf,
		"events":    func() []string { return journal.Events },
		"has":       slices.Contains[[]string],
		"join":      strings.Join,
		"stored":    func(text string) string { return l.Text(lang.Message(text)) }, // a message in the database, in English
	}
})

// notices are shown by the page that a form redirects to with ?done=.
var notices = map[string]lang.Message{
	"revoked":      "The key was revoked.",
	"disconnected": "The application was disconnected.",
	"email":        "Your email address was changed.",
	"language":     "The language of your emails was saved.",
	"signedout":    "You are signed out.",
	"deleted":      "Your account and its keys were deleted.",
	"replayed":     "The events will be sent again within a few seconds.",
	"saved":        "The settings were saved.",
	"paused":       "The endpoint is paused.",
	"resumed":      "The endpoint is enabled. New events are sent from now on.",
	"removed":      "The endpoint was removed.",

	"querysaved":   "The query was saved.",
	"querydeleted": "The query was deleted.",
	"tokenrevoked": "The token was revoked.",
	"everyone":     "You are signed out of all browsers.",
}

// formPages maps paths that forms are posted to, to the page with the form, if
// that is neither the same path nor the one above it.
var formPages = map[string]string{"/account/email": "/account/settings", "/account/language": "/account/settings"}

// pagePath returns the path that shows the page of a request, also in another
// language. After a form was sent, that is the path of the page with the form.
func (p *Portal) pagePath(r *http.Request) string {
	if r.Method != http.MethodPost {
		return r.URL.Path
	}
	if form, ok := formPages[r.URL.Path]; ok {
		return form
	}
	opened := &http.Request{Method: http.MethodGet, URL: &url.URL{Path: r.URL.Path}}
	if _, pattern := p.routes.Handler(opened); strings.HasPrefix(pattern, "GET ") {
		return r.URL.Path
	}
	return path.Dir(r.URL.Path)
}

func (p *Portal) content(v *visit, data any) page.Content {
	c := p.Content(lang.Of(v.Context()), p.pagePath(v.Request), page.Head{}, data)
	c.NoIndex = true
	if v.URL.Path == connectPath {
		c.Query = v.URL.RawQuery
	}
	if v.account != nil {
		c.Email, c.Account = v.account.Email, v.account
	}
	return c
}

// show writes a page. If a form was rejected, the page shows why.
func (p *Portal) show(v *visit, name string, data any) error {
	status, content := http.StatusOK, p.content(v, data)
	content.Notice = content.Language.Text(notices[v.FormValue("done")])
	if v.invalid != nil {
		reason := problem.Of(v.invalid)
		if status = reason.Code.Status(); status >= http.StatusInternalServerError {
			return v.invalid
		}
		if reason.RetryAfter > 0 {
			v.w.Header().Set("Retry-After", strconv.Itoa(reason.Seconds()))
		}
		content.FormError, content.FormField, content.Form = reason.In(content.Language), reason.Param, v.PostForm
	}
	return pages.Write(v.w, status, name, content)
}

var errorTitles = map[*problem.Problem]lang.Message{
	auth.ErrUnknownLink:  "Invalid link",
	auth.ErrExpired:      "This link has expired",
	auth.ErrUsed:         "This link was already used",
	auth.ErrOtherAccount: "This link belongs to another account",
	auth.ErrTaken:        "This email address is taken",
	auth.ErrSameAddress:  "This is already your email address",
}

// fail logs a server error and writes an error page, which never shows the cause.
func (p *Portal) fail(v *visit, err error) {
	if databaseErr, found := errors.AsType[*store.Error](err); found {
		message := lang.Message("Our database is unavailable. Nothing was changed. Try again in a minute.")
		if databaseErr.CommitUnknown {
			message = "We lost the connection to our database, so your change may or may not have been saved. Check before you try again."
		}
		err = &problem.Problem{Code: problem.Unavailable, Message: string(message), Cause: cmp.Or(databaseErr.Cause, err)}
	}
	p.showError(v, err, false)
}

// Refuse writes the error page for a request that was rejected before it
// reached the portal. It logs nothing.
func (p *Portal) Refuse(w http.ResponseWriter, r *http.Request, err error) {
	p.setHeaders(w.Header())
	p.showError(&visit{Request: r, w: w}, err, true)
}

func (p *Portal) showError(v *visit, err error, logged bool) {
	l, reason := lang.Of(v.Context()), problem.Of(err)
	data := page.ErrorPage{Title: l.Text(errorTitles[reason]), More: page.Suggestion{Path: "/login", Name: l.Text("Sign in")}, Logged: logged}
	switch {
	case v.account != nil:
		data.More = page.Suggestion{Path: "/account", Name: l.Text("Go to your account")}
	case reason.Code == problem.Gone:
		data.More.Name = l.Text("Request a new email")
	}
	content := p.content(v, nil)
	// Without the address: a cache might mistake the path of an unknown page, such as
	// /account/style.css, for a public file.
	content.Email = ""
	p.Fail(v.w, v.Request, err, content, data)
}
