package portal

import (
	"errors"
	"net/http"

	"palmares/auth"
	"palmares/internal/account/oauth"
	"palmares/internal/core/lang"
	"palmares/internal/core/problem"
	"palmares/internal/web/page"
)

// connectPath is the page that asks whether an application may use the account.
const connectPath = "/account/connect"

// startConnecting sends the browser to the page in the language that it prefers.
func (p *Portal) startConnecting(v *visit) error {
	v.w.Header().Set("Vary", "Accept-Language")
	to := page.LocalPath(lang.Preferred(v.Header.Get("Accept-Language")), page.WithQuery(connectPath, v.URL.RawQuery))
	http.Redirect(v.w, v.Request, to, http.StatusFound)
	return nil
}

type connectPage struct {
	*oauth.Request
	Action  string
	AllData bool // not only for agents
}

// connect asks the user, or does what the user has chosen. It checks the request each time,
// so that no page has to be trusted with it.
func (p *Portal) connect(v *visit) error {
	if p.OAuth == nil {
		return p.notFound(v)
	}
	if v.account == nil { // also if the session ended before the form was sent
		v.Method = http.MethodGet
		return p.redirect(v, loginPath(v.Request))
	}
	request, err := p.OAuth.Parse(v.Request, v.account.ID)
	if rejection, ok := errors.AsType[*oauth.Rejection](err); ok {
		http.Redirect(v.w, v.Request, rejection.Location, http.StatusSeeOther)
		return nil
	}
	if err != nil {
		return err
	}
	action := page.WithQuery(connectPath, v.URL.RawQuery)
	if v.Method != http.MethodPost {
		p.SetSecurityHeaders(v.w.Header(), page.BasePolicy+"; form-action 'self' "+request.FormTargets())
		v.w.Header().Set("Cross-Origin-Opener-Policy", "unsafe-none")
		return p.show(v, "connect", connectPage{request, action, request.Resource == p.PublicURL})
	}
	location := p.OAuth.Deny(request)
	if v.PostFormValue("decision") == "allow" {
		if location, err = p.OAuth.Allow(v.Context(), request, v.account); err != nil {
			return err
		}
	}
	http.Redirect(v.w, v.Request, location, http.StatusSeeOther)
	return nil
}

func (p *Portal) application(v *visit) (auth.Grant, error) {
	all, err := p.accounts.Grants(v.Context(), v.account)
	return find(all, err, func(g auth.Grant) bool { return g.ID == v.PathValue("id") }, problem.New(problem.NotFound, "This application is not connected to your account."))
}

func (p *Portal) disconnect(v *visit, g auth.Grant) error {
	return p.changed(v, p.accounts.RevokeGrant(v.Context(), v.account, g.ID), "/account?done=disconnected")
}
