package portal

import (
	"errors"
	"net/url"
	"strings"

	"palmares/auth"
	"palmares/ent"
	"palmares/ent/confirmation"
	"palmares/internal/billing"
	"palmares/internal/mail"
	"palmares/internal/problem"
)

// settingsPage is the data of the page of settings.
type settingsPage struct {
	Email    string // as it was typed, where it was refused
	Sessions []*ent.Session
}

func (p *Portal) showSettings(v *visit) error { return p.showSettingsWith(v, "", nil) }

func (p *Portal) showSettingsWith(v *visit, email string, wrong error) error {
	sessions, err := p.sessions.Of(v.Context(), v.account)
	if err != nil {
		return err
	}
	return p.show(v, "settings", settingsPage{email, sessions}, wrong)
}

// askChange sends a message to the new address, whoever may have it.
func (p *Portal) askChange(v *visit) error {
	email := strings.TrimSpace(v.PostFormValue("email"))
	if p.Closed {
		return p.showSettingsWith(v, email, problem.New(problem.Forbidden, "No mail can be sent from here at the moment."))
	}
	asked, err := p.confirmations.AskChange(v.Context(), v.account, email, p.sender(v))
	if err != nil {
		return p.showSettingsWith(v, email, err)
	}
	link := p.PublicURL + "/account/email/confirm?" + url.Values{"token": {asked.Link}}.Encode()
	if !p.Mail.Post(mail.ChangeAddress(asked.Email, p.ServiceName, link, asked.Code)) {
		return errMailBehind
	}
	p.setCookie(v, browserCookie, asked.Browser, auth.ConfirmTime)
	return p.redirect(v, "/account/email/code")
}

func (p *Portal) showChangeCode(v *visit) error { return p.showCodeOf(v, "/account/email/code", nil) }

func (p *Portal) changeByCode(v *visit) error {
	found, err := p.confirmations.Try(v.Context(), p.cookie(v, browserCookie), codeOf(v))
	if errors.Is(err, auth.ErrWrongCode) || errors.Is(err, auth.ErrLocked) {
		return p.showCodeOf(v, "/account/email/code", err)
	}
	if err != nil {
		return err
	}
	return p.changeEmail(v, found)
}

func (p *Portal) showChangeLink(v *visit) error {
	found, err := p.lookFor(v, confirmation.PurposeChangeEmail)
	if err != nil {
		return err
	}
	if found.AccountID == nil || *found.AccountID != v.account.ID {
		return auth.ErrOtherAccount
	}
	return p.show(v, "confirm", linkForm{Email: found.Email, Current: v.account.Email, Token: v.FormValue("token"), Next: home, Action: "/account/email/confirm"}, nil)
}

func (p *Portal) changeByLink(v *visit) error {
	found, err := p.lookFor(v, confirmation.PurposeChangeEmail)
	if err != nil {
		return err
	}
	return p.changeEmail(v, found)
}

// changeEmail also tells the old address: its owner may not have asked for it.
func (p *Portal) changeEmail(v *visit, found *ent.Confirmation) error {
	before := v.account.Email
	if err := p.confirmations.ChangeEmail(v.Context(), found, v.account); err != nil {
		return err
	}
	p.setCookie(v, browserCookie, "", 0)
	p.Mail.Post(mail.AddressChanged(before, p.ServiceName, found.Email))
	return p.redirect(v, "/account/settings?done=email")
}

func (p *Portal) logOutEverywhere(v *visit) error {
	if err := p.sessions.EndAll(v.Context(), v.account); err != nil {
		return err
	}
	p.setCookie(v, sessionCookie, "", 0)
	return p.redirect(v, "/login?done=everyone")
}

// deletePage is the data of the page that asks whether to delete an account.
type deletePage struct {
	Keys       int
	Subscribed bool
	Kept       bool // billing keeps something
}

func (p *Portal) askDelete(v *visit) error { return p.askDeleteWith(v, nil) }

func (p *Portal) askDeleteWith(v *visit, wrong error) error {
	keys, err := p.accounts.Keys(v.Context(), v.account)
	if err != nil {
		return err
	}
	row, err := p.Billing.Customer(v.Context(), v.account)
	if err != nil {
		return err
	}
	data := deletePage{Kept: row != nil, Subscribed: row != nil && billing.Live(row.Status)}
	for _, key := range keys {
		if key.RevokedAt == nil {
			data.Keys++
		}
	}
	return p.show(v, "delete", data, wrong)
}

func (p *Portal) deleteAccount(v *visit) error {
	typed, err := auth.NormalEmail(v.PostFormValue("email"))
	if err != nil || typed != v.account.Email {
		return p.askDeleteWith(v, problem.New(problem.BadInput, "This is not the account's address, so nothing was deleted."))
	}
	if err := p.Billing.Close(v.Context(), v.account); err != nil {
		return err
	}
	keys, err := p.accounts.Keys(v.Context(), v.account)
	if err != nil {
		return err
	}
	if err := p.accounts.Delete(v.Context(), v.account); err != nil {
		return err
	}
	for _, key := range keys {
		p.Keyring.Forget(key.ID)
	}
	p.setCookie(v, sessionCookie, "", 0)
	return p.redirect(v, "/login?done=deleted")
}
