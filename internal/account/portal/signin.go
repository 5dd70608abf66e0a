package portal

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"palmares/auth"
	"palmares/ent"
	"palmares/ent/confirmation"
	"palmares/internal/account/oauth"
	"palmares/internal/core/client"
	"palmares/internal/core/lang"
	"palmares/internal/core/problem"
	"palmares/internal/notify/mail"
	"palmares/internal/web/page"
)

// flow is an action that requires access to an email address: we send an
// email, and its link or its code completes the action.
type flow struct {
	purpose   confirmation.Purpose
	startPath string // page with the form for the address
	codePath  string
	linkPath  string
	email     func(l lang.Language, to, service, link, code string) mail.Message
	finish    func(*Portal, *visit, *ent.Confirmation) error
}

var (
	signInFlow = flow{
		purpose: confirmation.PurposeSignIn, startPath: "/login", codePath: "/login/code", linkPath: "/login/confirm",
		email: mail.SignIn, finish: (*Portal).finishSignIn,
	}
	emailChangeFlow = flow{
		purpose: confirmation.PurposeChangeEmail, startPath: "/account/settings", codePath: "/account/email/code", linkPath: "/account/email/confirm",
		email: mail.ConfirmEmail, finish: (*Portal).finishEmailChange,
	}
)

// signInPage is the data of login.html, code.html and confirm.html.
type signInPage struct {
	Email, Next, Token string
	Action, StartPath  string
	SignInDisabled     bool
	Logged             bool // the email is in the server's log
	Locked             bool // no more codes are accepted
	ChangesEmail       bool // otherwise it signs in
	Downloads          bool // the visitor signs in for a download
}

// send queues the email and redirects to the page for its code.
func (f flow) send(p *Portal, v *visit, challenge auth.Challenge, next string) error {
	codePath, query := f.codePath, url.Values{"token": {challenge.Link}}
	if next != home {
		codePath += "?next=" + url.QueryEscape(next)
		query.Set("next", next)
	}
	link := p.PublicURL + page.LocalPath(lang.Of(v.Context()), f.linkPath) + "?" + query.Encode()
	err := p.Mail.Enqueue(f.email(lang.Of(v.Context()), challenge.Email, p.ServiceName, link, challenge.Code))
	if errors.Is(err, mail.ErrQueueFull) { // must not count towards the limits
		if err := p.accounts.Withdraw(context.WithoutCancel(v.Context()), challenge); err != nil {
			p.Log.Warn("withdrawing an unsent email failed", "cause", err)
		}
	}
	if err != nil {
		return err
	}
	p.setCookie(v, browserCookie, challenge.Browser, auth.ConfirmationLifetime)
	return p.redirect(v, codePath)
}

func (f flow) showCode(p *Portal, v *visit) error {
	pending, err := p.accounts.ConfirmationByBrowser(v.Context(), f.purpose, p.cookie(v.Request, browserCookie))
	switch {
	case errors.Is(err, auth.ErrUnknownLink):
		return p.redirect(v, f.startPath)
	case err != nil:
		return err
	}
	locked, err := p.accounts.Locked(v.Context(), pending)
	if err != nil {
		return err
	}
	if locked {
		v.invalid = auth.ErrLocked
	}
	return p.show(v, "code", signInPage{
		Email: pending.Email, Next: nextPath(v), Action: f.codePath, StartPath: f.startPath, Logged: p.Mail.LogsOnly(), Locked: locked,
	})
}

func (f flow) submitCode(p *Portal, v *visit) error {
	code := strings.NewReplacer(" ", "", "-", "", "\u00a0", "").Replace(v.PostFormValue("code")) // often typed in two groups
	found, err := p.accounts.CheckCode(v.Context(), f.purpose, p.cookie(v.Request, browserCookie), code)
	if errors.Is(err, auth.ErrWrongCode) || errors.Is(err, auth.ErrLocked) {
		return f.showCode(p, v.rejected(err))
	}
	if err != nil {
		return err
	}
	return f.finish(p, v, found)
}

// openLink shows a button, because mail scanners open links but submit no forms.
// The button completes the action.
func (f flow) openLink(p *Portal, v *visit) error {
	token := v.FormValue("token")
	found, err := p.accounts.ConfirmationByLink(v.Context(), token)
	switch {
	case found != nil && found.Purpose != f.purpose:
		return auth.ErrUnknownLink
	case err != nil:
		return err
	case found.AccountID != nil && (v.account == nil || v.account.ID != *found.AccountID):
		return auth.ErrOtherAccount
	case v.Method == http.MethodPost:
		return f.finish(p, v, found)
	}
	return p.show(v, "confirm", signInPage{
		Email: found.Email, Token: token, Next: nextPath(v), Action: f.linkPath, ChangesEmail: f.purpose == confirmation.PurposeChangeEmail,
	})
}

// sender returns the visitor's network, for the limits on emails.
func (p *Portal) sender(v *visit) auth.Sender {
	address := client.Address(v.Request, p.TrustedProxies)
	return auth.Sender{Network: client.Network(address), Wider: client.WiderNetwork(address)}
}

func (p *Portal) showLogin(v *visit) error {
	if v.account != nil && v.invalid == nil {
		return p.redirect(v, nextPath(v))
	}
	return p.show(v, "login", signInPage{Next: nextPath(v), SignInDisabled: p.SignInDisabled, Downloads: strings.Contains(nextPath(v), "/account/downloads?"+fileParam+"=")})
}

// startSignIn sends an email to any address. The response does not depend on
// whether the address has an account.
func (p *Portal) startSignIn(v *visit) error {
	if p.SignInDisabled {
		return p.showLogin(v.rejected(problem.New(problem.Forbidden, "Signing in is not available at the moment.")))
	}
	challenge, err := p.accounts.StartSignIn(v.Context(), v.PostFormValue("email"), p.sender(v))
	if err != nil {
		return p.showLogin(v.rejected(err))
	}
	return signInFlow.send(p, v, challenge, nextPath(v))
}

// finishSignIn starts a new session and ends the one the browser had.
func (p *Portal) finishSignIn(v *visit, found *ent.Confirmation) error {
	token, err := p.accounts.SignIn(v.Context(), found, v.UserAgent(), lang.Of(v.Context()))
	if err != nil {
		return err
	}
	if err := p.endSession(v); err != nil {
		p.Log.Warn("ending the previous session failed", "cause", err)
	}
	p.setCookie(v, sessionCookie, token, auth.SessionLifetime)
	p.setCookie(v, browserCookie, "", 0)
	return p.redirect(v, nextPath(v))
}

func (p *Portal) signOut(v *visit) error {
	if err := p.endSession(v); err != nil {
		return err
	}
	p.setCookie(v, sessionCookie, "", 0)
	return p.redirect(v, "/login?done=signedout")
}

// endSession ends the session of the browser, if it is signed in.
func (p *Portal) endSession(v *visit) error {
	if v.account == nil {
		return nil
	}
	err := p.accounts.EndSession(v.Context(), p.cookie(v.Request, sessionCookie))
	p.Keyring.ForgetAccount(v.account.ID)
	return err
}

const (
	sessionCookie = "palmares_session"
	browserCookie = "palmares_code" // token without which the code of an email does not work

	home = "/account"
)

// cookieName adds the prefix that prevents other hosts from setting the cookie.
func (p *Portal) cookieName(name string) string {
	if p.Secure() {
		return "__Host-" + name
	}
	return name
}

func (p *Portal) cookie(r *http.Request, name string) string {
	cookie, err := r.Cookie(p.cookieName(name))
	if err != nil {
		return ""
	}
	return cookie.Value
}

// setCookie sets a cookie, or deletes it if value is empty.
func (p *Portal) setCookie(v *visit, name, value string, lifetime time.Duration) {
	maxAge := int(lifetime.Seconds())
	if value == "" {
		maxAge = -1
	}
	http.SetCookie(v.w, &http.Cookie{
		Name: p.cookieName(name), Value: value, Path: "/", MaxAge: maxAge,
		HttpOnly: true, Secure: p.Secure(), SameSite: http.SameSiteLaxMode,
	})
}

// Key returns the key with which pages in the visitor's browser call the API,
// or "" if nobody is signed in.
func (p *Portal) Key(r *http.Request) string {
	key, err := p.accounts.SessionKey(r.Context(), p.cookie(r, sessionCookie))
	if err != nil {
		p.Log.Warn("reading the session key failed", "cause", err, "request_id", problem.RequestID(r.Context()))
	}
	return key
}

// nextPath returns where to go after signing in.
func nextPath(v *visit) string { return localPath(v.FormValue("next")) }

// localPath returns a path of this site unchanged, and home for anything that
// could lead to another site.
func localPath(next string) string {
	u, err := url.Parse(next)
	local := err == nil && u.Scheme == "" && u.Host == "" && u.User == nil && u.Opaque == "" &&
		strings.HasPrefix(next, "/") && !strings.HasPrefix(next, "//") && !strings.HasPrefix(u.Path, "//") &&
		!strings.ContainsFunc(next, func(r rune) bool { return r <= ' ' || r == '\\' || r == 0x7f }) && !strings.Contains(u.Path, "\\")
	if !local || len(next) > oauth.MaxQuery+100 {
		return home
	}
	return next
}

func loginPath(r *http.Request) string {
	if r.Method != http.MethodGet || r.URL.RequestURI() == home {
		return "/login"
	}
	return "/login?next=" + url.QueryEscape(page.LocalPath(lang.Of(r.Context()), r.URL.RequestURI()))
}
