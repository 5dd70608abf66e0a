package auth

import (
	"net/mail"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/idna"
	"golang.org/x/text/unicode/norm"

	"palmares/internal/core/problem"
)

const longestEmail = 254 // RFC 5321

// NormalEmail is an address as it names an account: bare, in lower case, its
// domain as it is looked up, so that however it is written, it is one account.
// What it makes of an address must be one itself: a domain that ends in one of
// the world's other dots becomes one that ends in ours.
func NormalEmail(text string) (string, error) {
	email, err := spelled(text)
	if err != nil {
		return "", err
	}
	if again, err := spelled(email); err != nil || again != email {
		return "", errNoEmail
	}
	return email, nil
}

func spelled(text string) (string, error) {
	if !utf8.ValidString(text) { // it would be made another address
		return "", errNoEmail
	}
	text = norm.NFC.String(strings.ToLower(strings.TrimSpace(text)))
	address, err := mail.ParseAddress(text)
	bare := err == nil && address.Name == "" && address.Address == text
	if !bare || len(text) > longestEmail || strings.ContainsFunc(text, unicode.IsControl) {
		return "", errNoEmail
	}
	at := strings.LastIndexByte(text, '@')
	local, domain := text[:at], text[at+1:]
	domain, err = idna.Lookup.ToASCII(domain)
	if err != nil || !strings.Contains(domain, ".") || len(local)+1+len(domain) > longestEmail {
		return "", errNoEmail
	}
	return local + "@" + domain, nil
}

var errNoEmail = problem.New(problem.BadInput, "This is not an e-mail address.")

// mailbox is where messages to an address arrive: what follows a plus is a
// note of its owner's.
func mailbox(email string) string {
	at := strings.LastIndexByte(email, '@')
	local, _, _ := strings.Cut(email[:at], "+")
	return local + email[at:]
}
