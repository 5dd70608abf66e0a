package portal

import (
	"net/http"
	"net/url"
	"strings"
	"time"

	"palmares/internal/core/problem"
)

// The cookies we set. Over https their names say that no other host may have.
const (
	sessionCookie = "palmares_session"
	browserCookie = "palmares_code" // what the code of a message works with
)

func (p *Portal) cookieName(name string) string {
	if p.secure {
		return "__Host-" + name
	}
	return name
}

func (p *Portal) cookie(v *visit, name string) string { return p.cookieOf(v.Request, name) }

func (p *Portal) cookieOf(r *http.Request, name string) string {
	cookie, err := r.Cookie(p.cookieName(name))
	if err != nil {
		return ""
	}
	return cookie.Value
}

// Key is the key that the visitor's browser calls the API with, for pages that
// do; "" where nobody is signed in.
func (p *Portal) Key(r *http.Request) string {
	key, err := p.sessions.Key(r.Context(), p.cookieOf(r, sessionCookie))
	if err != nil {
		p.Log.Warn("a page goes without its visitor's key", "cause", err, "request_id", problem.RequestID(r.Context()))
	}
	return key
}

// setCookie keeps a value in the browser for a while; an empty one ends it.
func (p *Portal) setCookie(v *visit, name, value string, keep time.Duration) {
	seconds := int(keep.Seconds())
	if value == "" {
		seconds = -1
	}
	http.SetCookie(v.w, &http.Cookie{
		Name: p.cookieName(name), Value: value, Path: "/", MaxAge: seconds,
		HttpOnly: true, Secure: p.secure, SameSite: http.SameSiteLaxMode,
	})
}

const home = "/account"

// next is where somebody goes once signed in: a page of ours, whatever was
// asked for.
func next(asked string) string {
	u, err := url.Parse(asked)
	ours := err == nil && u.Scheme == "" && u.Host == "" && u.User == nil && u.Opaque == "" &&
		strings.HasPrefix(asked, "/") && !strings.HasPrefix(asked, "//") && !strings.HasPrefix(u.Path, "//") &&
		!strings.ContainsFunc(asked, func(r rune) bool { return r <= ' ' || r == '\\' || r == 0x7f }) && !strings.Contains(u.Path, "\\")
	if !ours || len(asked) > 1000 {
		return home
	}
	return asked
}

// loginPath leads to signing in, and back to where somebody was headed.
func loginPath(r *http.Request) string {
	if r.Method != http.MethodGet || r.URL.RequestURI() == home {
		return "/login"
	}
	return "/login?next=" + url.QueryEscape(r.URL.RequestURI())
}
