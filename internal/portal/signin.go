package portal

import (
	"errors"
	"net/url"
	"strings"

	"palmares/auth"
	"palmares/ent"
	"palmares/ent/confirmation"
	"palmares/internal/mail"
	"palmares/internal/problem"
	"palmares/internal/quota"
)

// signInForm is the data of the page that asks for an address.
type signInForm struct {
	Email, Next string
	Closed      bool
}

func (p *Portal) showLogin(v *visit) error {
	if v.account != nil {
		return p.redirect(v, next(v.FormValue("next")))
	}
	return p.show(v, "login", signInForm{Next: next(v.FormValue("next")), Closed: p.Closed}, nil)
}

// askSignIn sends a message to whatever address was given: what happens does
// not depend on whether it has an account.
func (p *Portal) askSignIn(v *visit) error {
	form := signInForm{Email: strings.TrimSpace(v.PostFormValue("email")), Next: next(v.PostFormValue("next")), Closed: p.Closed}
	if p.Closed {
		return p.show(v, "login", form, problem.New(problem.Forbidden, "Nobody can sign in here at the moment."))
	}
	asked, err := p.confirmations.AskSignIn(v.Context(), form.Email, p.sender(v))
	if err != nil {
		return p.show(v, "login", form, err)
	}
	query := url.Values{"token": {asked.Link}}
	if form.Next != home {
		query.Set("next", form.Next)
	}
	link := p.PublicURL + "/login/confirm?" + query.Encode()
	if !p.Mail.Post(mail.SignIn(asked.Email, p.ServiceName, link, asked.Code)) {
		return errMailBehind
	}
	p.setCookie(v, browserCookie, asked.Browser, auth.ConfirmTime)
	return p.redirect(v, "/login/code?"+url.Values{"next": {form.Next}}.Encode())
}

var errMailBehind = problem.New(problem.Unavailable, "Too many messages wait to be sent. Try again in a minute.")

// sender is the network a visitor comes from, for the bound on messages.
func (p *Portal) sender(v *visit) string {
	return quota.Network(quota.ClientAddress(v.Request, p.Trusted))
}

// codeForm is the data of the page that asks for a code.
type codeForm struct {
	Email, Next, Action string
	Printed             bool // the message is in the server's log
	Locked              bool
}

func (p *Portal) showCode(v *visit) error { return p.showCodeOf(v, "/login/code", nil) }

// showCodeOf asks for the code of the message that this browser waits for.
func (p *Portal) showCodeOf(v *visit, action string, wrong error) error {
	waiting, err := p.confirmations.LookByBrowser(v.Context(), p.cookie(v, browserCookie))
	switch {
	case errors.Is(err, auth.ErrUnknownLink):
		return p.redirect(v, map[string]string{"/login/code": "/login", "/account/email/code": "/account/settings"}[action])
	case err != nil:
		return err
	}
	if wrong == nil && auth.Locked(waiting) {
		wrong = auth.ErrLocked
	}
	form := codeForm{Email: waiting.Email, Next: next(v.FormValue("next")), Action: action, Printed: p.Mail.Prints(), Locked: errors.Is(wrong, auth.ErrLocked)}
	return p.show(v, "code", form, wrong)
}

// codeOf is a code as it was meant: some write it in two groups.
func codeOf(v *visit) string {
	return strings.NewReplacer(" ", "", "-", "", "\u00a0", "").Replace(v.PostFormValue("code"))
}

func (p *Portal) signInByCode(v *visit) error {
	found, err := p.confirmations.Try(v.Context(), p.cookie(v, browserCookie), codeOf(v))
	if errors.Is(err, auth.ErrWrongCode) || errors.Is(err, auth.ErrLocked) {
		return p.showCodeOf(v, "/login/code", err)
	}
	if err != nil {
		return err
	}
	return p.signIn(v, found)
}

// linkForm is the data of the page behind a message's link.
type linkForm struct {
	Email, Token, Next, Action string
	Current                    string // the address that changes
}

// showLink shows a button: mail scanners open links, but press none.
func (p *Portal) showLink(v *visit) error {
	found, err := p.lookFor(v, confirmation.PurposeSignIn)
	if err != nil {
		return err
	}
	return p.show(v, "confirm", linkForm{Email: found.Email, Token: v.FormValue("token"), Next: next(v.FormValue("next")), Action: "/login/confirm"}, nil)
}

func (p *Portal) signInByLink(v *visit) error {
	found, err := p.lookFor(v, confirmation.PurposeSignIn)
	if err != nil {
		return err
	}
	return p.signIn(v, found)
}

// lookFor is what the request's link is for.
func (p *Portal) lookFor(v *visit, purpose confirmation.Purpose) (*ent.Confirmation, error) {
	found, err := p.confirmations.Look(v.Context(), v.FormValue("token"))
	if found != nil && found.Purpose != purpose {
		return nil, auth.ErrUnknownLink
	}
	return found, err
}

// signIn gives the browser a new session; the one it had ends.
func (p *Portal) signIn(v *visit, found *ent.Confirmation) error {
	token, err := p.confirmations.SignIn(v.Context(), found)
	if err != nil {
		return err
	}
	if before := p.cookie(v, sessionCookie); before != "" {
		if err := p.sessions.End(v.Context(), before); err != nil { // nobody has it any more
			p.Log.Warn("a session was not ended as its browser signed in again", "cause", err)
		}
	}
	p.setCookie(v, sessionCookie, token, auth.SessionTime)
	p.setCookie(v, browserCookie, "", 0)
	return p.redirect(v, next(v.FormValue("next")))
}

func (p *Portal) logOut(v *visit) error {
	if token := p.cookie(v, sessionCookie); token != "" {
		if err := p.sessions.End(v.Context(), token); err != nil {
			return err
		}
	}
	p.setCookie(v, sessionCookie, "", 0)
	return p.redirect(v, "/login?done=signedout")
}
