package portal

import (
	"strings"

	"palmares/ent"
	"palmares/internal/core/problem"
	"palmares/internal/notify/mail"
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
	return changingAddress.send(p, v, asked, home)
}

// changeAddress also tells the old address: its owner may not have asked for it.
func (p *Portal) changeAddress(v *visit, found *ent.Confirmation) error {
	before := v.account.Email
	err := p.endSessions(v, func() error {
		return p.confirmations.ChangeEmail(v.Context(), found, v.account, p.cookie(v, sessionCookie))
	})
	if err != nil {
		return err
	}
	p.setCookie(v, browserCookie, "", 0)
	p.Mail.Post(mail.AddressChanged(before, p.ServiceName, found.Email))
	return p.redirect(v, "/account/settings?done=email")
}

func (p *Portal) logOutEverywhere(v *visit) error {
	if err := p.endSessions(v, func() error { return p.sessions.EndAll(v.Context(), v.account) }); err != nil {
		return err
	}
	p.setCookie(v, sessionCookie, "", 0)
	return p.redirect(v, "/login?done=everyone")
}
