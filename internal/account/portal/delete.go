package portal

import (
	"palmares/auth"
	"palmares/internal/account/billing"
	"palmares/internal/core/problem"
	"palmares/internal/notify/mail"
)

// deletePage is the data of the page that asks whether to delete an account.
type deletePage struct {
	Keys       int
	Endpoints  int
	Subscribed bool
	Kept       bool // billing keeps something
}

func (p *Portal) askDelete(v *visit) error { return p.askDeleteWith(v, nil) }

func (p *Portal) askDeleteWith(v *visit, wrong error) error {
	keys, err := p.accounts.UnrevokedKeys(v.Context(), v.account)
	if err != nil {
		return err
	}
	endpoints, err := p.Hooks.List(v.Context(), v.account)
	if err != nil {
		return err
	}
	row, err := p.Billing.Customer(v.Context(), v.account)
	if err != nil {
		return err
	}
	data := deletePage{Keys: len(keys), Endpoints: len(endpoints), Kept: row != nil, Subscribed: row != nil && billing.Live(row.Status)}
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
	if !p.Closed { // else it would only be printed
		p.Mail.Post(mail.AccountDeleted(v.account.Email, p.ServiceName))
	}
	p.setCookie(v, sessionCookie, "", 0)
	return p.redirect(v, "/login?done=deleted")
}
