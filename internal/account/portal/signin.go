package portal

import (
	"strings"

	"palmares/auth"
	"palmares/ent"
	"palmares/internal/core/problem"
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
	return signingIn.send(p, v, asked, form.Next)
}

// signIn gives the browser a new session; the one it had ends.
func (p *Portal) signIn(v *visit, found *ent.Confirmation) error {
	token, err := p.confirmations.SignIn(v.Context(), found)
	if err != nil {
		return err
	}
	if before := p.cookie(v, sessionCookie); before != "" {
		if err := p.endSessions(v, func() error { return p.sessions.End(v.Context(), before) }); err != nil { // nobody has it any more
			p.Log.Warn("a session was not ended as its browser signed in again", "cause", err)
		}
	}
	p.setCookie(v, sessionCookie, token, auth.SessionTime)
	p.setCookie(v, browserCookie, "", 0)
	return p.redirect(v, next(v.FormValue("next")))
}

func (p *Portal) logOut(v *visit) error {
	if token := p.cookie(v, sessionCookie); token != "" {
		if err := p.endSessions(v, func() error { return p.sessions.End(v.Context(), token) }); err != nil {
			return err
		}
	}
	p.setCookie(v, sessionCookie, "", 0)
	return p.redirect(v, "/login?done=signedout")
}
