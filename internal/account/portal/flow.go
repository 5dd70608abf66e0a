package portal

import (
	"context"
	"errors"
	"net/url"
	"strings"

	"palmares/auth"
	"palmares/ent"
	"palmares/ent/confirmation"
	"palmares/internal/core/quota"
	"palmares/internal/notify/mail"
)

// flow is what somebody does by showing that an address is theirs: a message
// goes there, and its link or its code finishes what was begun.
type flow struct {
	purpose  confirmation.Purpose
	begin    string // the page that asks for an address
	codePath string // the page that asks for the code
	linkPath string // the page behind the link
	letter   func(to, service, link, code string) mail.Message
	finish   func(*Portal, *visit, *ent.Confirmation) error
}

// The two that there are.
var (
	signingIn = flow{
		purpose: confirmation.PurposeSignIn, begin: "/login", codePath: "/login/code", linkPath: "/login/confirm",
		letter: mail.SignIn, finish: (*Portal).signIn,
	}
	changingAddress = flow{
		purpose: confirmation.PurposeChangeEmail, begin: "/account/settings", codePath: "/account/email/code", linkPath: "/account/email/confirm",
		letter: mail.ChangeAddress, finish: (*Portal).changeAddress,
	}
)

// send posts the message that was asked for, and goes on to where its code is
// typed. One that finds no room in the queue counts for nobody.
func (f flow) send(p *Portal, v *visit, asked auth.Asked, next string) error {
	then := url.Values{}
	if next != home {
		then.Set("next", next)
	}
	err := p.Mail.Post(f.letter(asked.Email, p.ServiceName, p.PublicURL+withQuery(f.linkPath, then, "token", asked.Link), asked.Code))
	if errors.Is(err, mail.ErrFull) {
		if err := p.confirmations.Withdraw(context.WithoutCancel(v.Context()), asked); err != nil {
			p.Log.Warn("a message that was not sent is counted", "cause", err)
		}
	}
	if err != nil {
		return err
	}
	p.setCookie(v, browserCookie, asked.Browser, auth.ConfirmTime)
	return p.redirect(v, withQuery(f.codePath, then))
}

// withQuery is a path with values, and with some more in turn.
func withQuery(path string, values url.Values, more ...string) string {
	query := url.Values{}
	for name, value := range values {
		query[name] = value
	}
	for i := 0; i < len(more); i += 2 {
		query.Set(more[i], more[i+1])
	}
	if len(query) == 0 {
		return path
	}
	return path + "?" + query.Encode()
}

// sender is where a visitor comes from, for the bounds on messages.
func (p *Portal) sender(v *visit) auth.Sender {
	address := quota.ClientAddress(v.Request, p.Trusted)
	return auth.Sender{Network: quota.Network(address), Wider: quota.WiderNetwork(address)}
}

// codeForm is the data of the page that asks for a code.
type codeForm struct {
	Email, Next   string
	Action, Begin string // where the code goes, and where another message is asked for
	Printed       bool   // the message is in the server's log
	Locked        bool
}

// showCode asks for the code of the message that this browser waits for.
func (f flow) showCode(p *Portal, v *visit) error { return f.showCodeWith(p, v, nil) }

func (f flow) showCodeWith(p *Portal, v *visit, wrong error) error {
	waiting, err := p.confirmations.LookByBrowser(v.Context(), f.purpose, p.cookie(v, browserCookie))
	switch {
	case errors.Is(err, auth.ErrUnknownLink):
		return p.redirect(v, f.begin)
	case err != nil:
		return err
	}
	locked, err := p.confirmations.Locked(v.Context(), waiting)
	if err != nil {
		return err
	}
	if locked {
		wrong = auth.ErrLocked
	}
	form := codeForm{Email: waiting.Email, Next: next(v.FormValue("next")), Action: f.codePath, Begin: f.begin, Printed: p.Mail.Prints(), Locked: locked}
	return p.show(v, "code", form, wrong)
}

func (f flow) takeCode(p *Portal, v *visit) error {
	found, err := p.confirmations.Try(v.Context(), f.purpose, p.cookie(v, browserCookie), typedCode(v))
	if errors.Is(err, auth.ErrWrongCode) || errors.Is(err, auth.ErrLocked) {
		return f.showCodeWith(p, v, err)
	}
	if err != nil {
		return err
	}
	return f.finish(p, v, found)
}

// typedCode is a code as it was meant: some write it in two groups.
func typedCode(v *visit) string {
	return strings.NewReplacer(" ", "", "-", "", "\u00a0", "").Replace(v.PostFormValue("code"))
}

// linkForm is the data of the page behind a message's link.
type linkForm struct {
	Email, Token, Next, Action string
	ChangesAddress             bool // else it signs in
}

// showLink shows a button: mail scanners open links, but press none.
func (f flow) showLink(p *Portal, v *visit) error {
	found, err := f.look(p, v)
	if err != nil {
		return err
	}
	return p.show(v, "confirm", linkForm{
		Email: found.Email, Token: v.FormValue("token"), Next: next(v.FormValue("next")), Action: f.linkPath,
		ChangesAddress: f.purpose == confirmation.PurposeChangeEmail,
	}, nil)
}

func (f flow) takeLink(p *Portal, v *visit) error {
	found, err := f.look(p, v)
	if err != nil {
		return err
	}
	return f.finish(p, v, found)
}

// look finds the message of the request's link, if it is this flow's and the
// visitor's.
func (f flow) look(p *Portal, v *visit) (*ent.Confirmation, error) {
	found, err := p.confirmations.Look(v.Context(), v.FormValue("token"))
	switch {
	case found != nil && found.Purpose != f.purpose:
		return nil, auth.ErrUnknownLink
	case err != nil:
		return nil, err
	case found.AccountID != nil && (v.account == nil || v.account.ID != *found.AccountID):
		return nil, auth.ErrOtherAccount
	}
	return found, nil
}
