package portal

import (
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"palmares/auth"
	"palmares/ent"
	"palmares/internal/core/lang"
	"palmares/internal/core/problem"
	"palmares/internal/web/page"
)

type downloadsPage struct {
	Tokens       []*ent.DownloadToken
	Max, MaxName int
	Token        string // a new token, which is shown once
	File         string // the file that the visitor signed in for, or ""
}

const (
	fileParam = "file" // has the file that a visitor signs in for, with its query
	filesPath = "/api/v1/"
)

// releaseFile matches a release of the catalog as a file.
var releaseFile = regexp.MustCompile(`^files/[1-9][0-9]{0,8}/[a-z]+\.(parquet|sqlite)$`)

// download sends a whole list or a file to a signed-in visitor, whose browser sends no key.
// Others sign in first, and find a link to the file after that.
func (p *Portal) download(v *visit) error {
	file := strings.TrimPrefix(v.URL.Path, "/account/downloads/")
	if v.account == nil {
		ready := "/account/downloads?" + url.Values{fileParam: {page.WithQuery(file, v.URL.RawQuery)}}.Encode()
		return p.redirect(v, "/login?next="+url.QueryEscape(page.LocalPath(lang.Of(v.Context()), ready)))
	}
	r := v.asCaller()
	if releaseFile.MatchString(file) { // which counts itself
		r.URL = &url.URL{Path: "/files/releases/" + strings.TrimPrefix(file, "files/")}
		p.Files.ServeHTTP(privateWriter{v.w}, r)
		return nil
	}
	if r.URL = (&url.URL{Path: filesPath + file, RawQuery: v.URL.RawQuery}); !p.IsDownload(r) {
		return p.notFound(v)
	}
	if err := p.Count(v.w, r); err != nil {
		return err
	}
	p.API.ServeHTTP(privateWriter{v.w}, r)
	return nil
}

// privateWriter keeps the response of the API out of caches: they do not know that it
// depends on a session.
type privateWriter struct{ http.ResponseWriter }

func (w privateWriter) WriteHeader(status int) {
	w.Header().Set("Cache-Control", "no-store")
	w.ResponseWriter.WriteHeader(status)
}

// Unwrap lets the API flush the response.
func (w privateWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (p *Portal) showDownloads(v *visit) error {
	tokens, err := p.accounts.DownloadTokens(v.Context(), v.account)
	if err != nil {
		return err
	}
	data := downloadsPage{Tokens: tokens, Max: auth.MaxDownloadTokens, MaxName: auth.MaxKeyName, Token: v.token}
	if file, err := url.Parse(filesPath + v.FormValue(fileParam)); err == nil && (p.IsDownload(&http.Request{URL: file}) || releaseFile.MatchString(v.FormValue(fileParam))) {
		data.File = v.FormValue(fileParam)
	}
	return p.show(v, "downloads", data)
}

// createDownloadToken shows the token once, so it cannot redirect.
func (p *Portal) createDownloadToken(v *visit) error {
	v.token, v.invalid = p.accounts.CreateDownloadToken(v.Context(), v.account, v.PostFormValue("name"))
	return p.showDownloads(v)
}

func (p *Portal) downloadToken(v *visit) (*ent.DownloadToken, error) {
	tokens, err := p.accounts.DownloadTokens(v.Context(), v.account)
	return find(tokens, err, func(t *ent.DownloadToken) bool { return strconv.Itoa(t.ID) == v.PathValue("id") }, problem.New(problem.NotFound, "This token does not exist or was already revoked."))
}

func (p *Portal) revokeDownloadToken(v *visit, token *ent.DownloadToken) error {
	return p.changed(v, p.accounts.RevokeDownloadToken(v.Context(), v.account, token.ID), "/account/downloads?done=tokenrevoked")
}
