package portal

import (
	"strings"

	"palmares/auth"
	"palmares/ent"
	"palmares/internal/account/billing"
	"palmares/internal/core/problem"
	"palmares/internal/notify/mail"
)

type settingsPage struct {
	Email    string // as typed in a rejected form
	Sessions []*ent.Session
}

func (p *Portal) showSettings(v *visit) error {
	sessions, err := p.sessions.List(v.Context(), v.account)
	if err != nil {
		return err
	}
	return p.show(v, "settings", settingsPage{strings.TrimSpace(v.PostFormValue("email")), sessions})
}

func (p *Portal) startEmailChange(v *visit) error {
	if p.Closed {
		return v.reject(problem.New(problem.Forbidden, "Emails cannot be sent at the moment."), p.showSettings)
	}
	challenge, err := p.confirmations.StartEmailChange(v.Context(), v.account, v.PostFormValue("email"), p.sender(v))
	if err != nil {
		return v.reject(err, p.showSettings)
	}
	return emailChangeFlow.send(p, v, challenge, home)
}

// finishEmailChange also notifies the old address, in case of an attack.
func (p *Portal) finishEmailChange(v *visit, found *ent.Confirmation) error {
	err := p.endSessions(v, func() error {
		return p.confirmations.ChangeEmail(v.Context(), found, v.account, p.cookie(v.Request, sessionCookie))
	})
	if err != nil {
		return err
	}
	p.setCookie(v, browserCookie, "", 0)
	p.Mail.Enqueue(mail.EmailChanged(v.account.Email, p.ServiceName, found.Email))
	return p.redirect(v, "/account/settings?done=email")
}

func (p *Portal) signOutEverywhere(v *visit) error {
	if err := p.endSessions(v, func() error { return p.sessions.EndAll(v.Context(), v.account) }); err != nil {
		return err
	}
	p.setCookie(v, sessionCookie, "", 0)
	return p.redirect(v, "/login?done=everyone")
}

type deletePage struct {
	Keys, Endpoints int
	Subscribed      bool
	HasInvoices     bool
}

func (p *Portal) confirmDelete(v *visit) error {
	keys, err := p.accounts.UnrevokedKeys(v.Context(), v.account)
	if err != nil {
		return err
	}
	endpoints, err := p.Webhooks.List(v.Context(), v.account)
	if err != nil {
		return err
	}
	customer, err := p.Billing.Customer(v.Context(), v.account)
	if err != nil {
		return err
	}
	return p.show(v, "delete", deletePage{
		Keys: len(keys), Endpoints: len(endpoints), HasInvoices: customer != nil, Subscribed: customer != nil && billing.Live(customer.Status),
	})
}

func (p *Portal) deleteAccount(v *visit) error {
	typed, err := auth.NormalizeEmail(v.PostFormValue("email"))
	if err != nil || typed != v.account.Email {
		return v.reject(problem.New(problem.BadInput, "This does not match the email address of your account. Nothing was deleted."), p.confirmDelete)
	}
	if err := p.Billing.Cancel(v.Context(), v.account); err != nil {
		return err
	}
	keys, err := p.accounts.UnrevokedKeys(v.Context(), v.account)
	if err != nil {
		return err
	}
	if err := p.endSessions(v, func() error { return p.accounts.Delete(v.Context(), v.account) }); err != nil {
		return err
	}
	for _, key := range keys {
		p.Keyring.Forget(key.ID)
	}
	if !p.Closed { // without a mail server, the email would only be logged
		p.Mail.Enqueue(mail.AccountDeleted(v.account.Email, p.ServiceName))
	}
	p.setCookie(v, sessionCookie, "", 0)
	return p.redirect(v, "/login?done=deleted")
}
