package auth

import (
	"net/mail"
	"strings"
	"unicode"

	"palmares/internal/problem"
)

const longestEmail = 254 // RFC 5321

// NormalEmail is an address as it names an account: in lower case, bare.
func NormalEmail(text string) (string, error) {
	text = strings.ToLower(strings.TrimSpace(text))
	address, err := mail.ParseAddress(text)
	bare := err == nil && address.Name == "" && address.Address == text
	_, domain, _ := strings.Cut(text, "@")
	if !bare || len(text) > longestEmail || !strings.Contains(strings.Trim(domain, "."), ".") || strings.ContainsFunc(text, unicode.IsControl) {
		return "", problem.New(problem.BadInput, "This is not an e-mail address.")
	}
	return text, nil
}
