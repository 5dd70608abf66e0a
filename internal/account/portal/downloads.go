package portal

import (
	"cmp"
	"slices"
	"strconv"

	"palmares/ent"
	"palmares/internal/core/problem"
	"palmares/internal/transport/saved"
)

type downloadsPage struct {
	Tokens       []*ent.DownloadToken
	Max, MaxName int
	Name         string // as typed in a rejected form
	Token        string // a new token, which is shown once
}

func (p *Portal) showDownloads(v *visit) error { return p.showDownloadsWith(v, "") }

func (p *Portal) showDownloadsWith(v *visit, token string) error {
	tokens, err := p.Queries.DownloadTokens(v.Context(), v.account)
	if err != nil {
		return err
	}
	data := downloadsPage{Tokens: tokens, Max: saved.MaxDownloadTokens, MaxName: saved.MaxTokenName, Token: token}
	if v.invalid != nil {
		data.Name = v.PostFormValue("name")
	}
	return p.show(v, "downloads", data)
}

// createDownloadToken shows the token once, so it cannot redirect.
func (p *Portal) createDownloadToken(v *visit) error {
	token, err := p.Queries.CreateDownloadToken(v.Context(), v.account, v.PostFormValue("name"))
	if err != nil {
		return p.showDownloads(v.rejected(err))
	}
	return p.showDownloadsWith(v, token)
}

func (p *Portal) downloadToken(v *visit) (*ent.DownloadToken, error) {
	tokens, err := p.Queries.DownloadTokens(v.Context(), v.account)
	at := slices.IndexFunc(tokens, func(t *ent.DownloadToken) bool { return strconv.Itoa(t.ID) == v.PathValue("id") })
	if at < 0 {
		return nil, cmp.Or[error](err, problem.New(problem.NotFound, "This token does not exist or was already revoked."))
	}
	return tokens[at], err
}

func (p *Portal) revokeDownloadToken(v *visit, token *ent.DownloadToken) error {
	if err := p.Queries.RevokeDownloadToken(v.Context(), v.account, token.ID); err != nil {
		return err
	}
	return p.redirect(v, "/account/downloads?done=tokenrevoked")
}
