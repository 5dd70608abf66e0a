package blackbox

import (
	"html"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"palmares/internal/dev/check"
)

var consentForm = regexp.MustCompile(`<form class="row" method="post" action="([^"]+)"`)

// Consent does what a new user does whom an application sends to an authorization URL: sign
// up with an email address and connect the application. It returns the address that the
// browser is sent back to.
func (s *Server) Consent(t testing.TB, authorization, email string) *url.URL {
	t.Helper()
	jar, err := cookiejar.New(nil)
	check.OK(t, err)
	browser := &http.Client{Jar: jar, CheckRedirect: func(r *http.Request, _ []*http.Request) error {
		if r.URL.Host != s.Address || strings.HasSuffix(r.URL.Path, "/callback") {
			return http.ErrUseLastResponse
		}
		return nil
	}}
	submit := func(address string, form url.Values) (*http.Response, string) {
		t.Helper()
		r := check.Try(http.NewRequestWithContext(t.Context(), http.MethodPost, address, strings.NewReader(form.Encode()))).OK(t)
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		response := check.Try(browser.Do(r)).OK(t)
		defer response.Body.Close()
		return response, ReadAll(t, response.Body)
	}
	response, body, err := Do(t.Context(), browser, http.MethodGet, authorization, "")
	check.OK(t, err)
	login := response.Request.URL
	check.MustTrue(t, strings.HasSuffix(login.Path, "/login"), "got %d at %s, want the page to sign in: %s", response.StatusCode, login, body)
	next := login.Query().Get("next")
	login.RawQuery = ""
	code, _ := submit(login.String(), url.Values{"email": {email}, "next": {next}})
	_, digits := s.WaitForEmail(t, email, 0)
	response, page := submit(code.Request.URL.String(), url.Values{"code": {digits}, "next": {next}})
	form := consentForm.FindStringSubmatch(page)
	check.MustTrue(t, form != nil, "got %d at %s, want the page to connect: %s", response.StatusCode, response.Request.URL, page)
	response, page = submit("http://"+s.Address+html.UnescapeString(form[1]), url.Values{"decision": {"allow"}})
	to, err := response.Location()
	check.MustTrue(t, err == nil, "got %d, want a redirect to the application: %s", response.StatusCode, page)
	return to
}
