package info

import (
	"fmt"
	"net/http"
	"net/mail"
	"net/url"
	"strings"
	"time"

	"palmares/internal/core/cache"
	"palmares/internal/web/page"
)

// SecurityPath is the path of the file that says where to report vulnerabilities (RFC
// 9116).
const SecurityPath = "/.well-known/security.txt"

// securityNotice is how long before the file expires its publisher is warned.
const securityNotice = 30 * 24 * time.Hour

// SecurityProblem returns what is wrong with the facts for SecurityPath, or "".
func (f Facts) SecurityProblem(now time.Time) string {
	if f.SecurityContact == "" || f.SecurityExpires == "" {
		return "There is no " + SecurityPath + ", because security-contact or security-expires is missing."
	}
	expires, _ := time.Parse(time.DateOnly, f.SecurityExpires) // ReadFacts has checked it
	switch {
	case !now.Before(expires):
		return SecurityPath + " expired on " + f.SecurityExpires + ", so researchers ignore it."
	case expires.Sub(now) < securityNotice:
		return SecurityPath + " expires on " + f.SecurityExpires + "."
	}
	return ""
}

// checkSecurity returns an error if a fact for SecurityPath cannot be published.
func (f Facts) checkSecurity() error {
	if f.SecurityContact != "" && securityURL(f.SecurityContact) == "" {
		return fmt.Errorf("security-contact: must be an email address or an https URL (got %q)", f.SecurityContact)
	}
	if _, err := time.Parse(time.DateOnly, f.SecurityExpires); f.SecurityExpires != "" && err != nil {
		return fmt.Errorf("security-expires: must have the form 2027-06-30 (got %q)", f.SecurityExpires)
	}
	return nil
}

// securityURL returns a contact as a URL, or "" if it is neither an email address nor an
// https URL.
func securityURL(contact string) string {
	if u, err := url.Parse(contact); err == nil && u.Scheme == "https" && u.Host != "" {
		return u.String()
	}
	address, err := mail.ParseAddress(contact)
	if err != nil || address.Address != contact {
		return ""
	}
	return (&url.URL{Scheme: "mailto", Opaque: url.PathEscape(contact)}).String()
}

// Security serves SecurityPath, or is nil without the facts for it.
func (p *Pages) Security() http.Handler {
	f := p.Facts
	if f.SecurityContact == "" || f.SecurityExpires == "" {
		return nil
	}
	lines := []string{
		"Contact: " + securityURL(f.SecurityContact), "Expires: " + f.SecurityExpires + "T00:00:00Z", "Preferred-Languages: en, fr",
		"Canonical: " + p.PublicURL + SecurityPath, "Policy: " + p.PublicURL + "/en/contact",
	}
	entry := cache.NewEntry([]byte(strings.Join(lines, "\n")+"\n"), http.Header{
		"Content-Type": {"text/plain; charset=utf-8"}, "Cache-Control": {page.Caching}, "Vary": {page.Vary}, "X-Content-Type-Options": {"nosniff"},
	})
	return page.Handler(func(w http.ResponseWriter, r *http.Request) error { return entry.Write(w, r) })
}
