package auth

import (
	"errors"
	"net/http"
	"net/mail"
	"net/url"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"palmares/internal/core/problem"
	"palmares/internal/dev/check"
)

// sampleKey is a well-formed key.
var sampleKey = Key{"0123456789ab", strings.Repeat("x", secretLength)}

// FuzzAuthorization checks that a request with an Authorization header is never anonymous,
// that a key is only accepted as it was written, and that errors contain no secret.
func FuzzAuthorization(f *testing.F) {
	for _, header := range []string{"", "Bearer " + sampleKey.Text(), "bearer " + sampleKey.Text() + " ", "Basic cGFsXzox", "Bearer " + tokenText(accessPrefix, sampleKey.ID+sampleKey.secret), "Digest x"} {
		f.Add(header, "", true)
		f.Add(header, "key="+sampleKey.Text(), false)
	}
	f.Fuzz(func(t *testing.T, header, query string, basic bool) {
		r := &http.Request{URL: &url.URL{Path: "/api/v1/tools", RawQuery: query}, Header: http.Header{"Authorization": {header}}}
		key, sent, err := keyOf(r, basic)
		user, _, isBasic := r.BasicAuth()
		switch {
		case err != nil:
			var p *problem.Problem
			check.MustTrue(t, errors.As(err, &p), "%q: got %v, want 401 without a secret", header, err)
			check.Equal(t, p.Code, problem.Unauthenticated, header)
			check.Lacks(t, p.Message, sampleKey.secret, header)
		case !sent:
			t.Errorf("%q: got an anonymous caller, want a key or an error", header)
		case strings.Contains(query, sampleKey.Text()):
			t.Errorf("%q: got %v, want a key in the URL refused", query, key)
		case isBasic && basic:
			check.Equal(t, user, key.Text(), "%q: %v", header, key)
		case !strings.HasSuffix(header, key.ID[len(key.ID)-idLength:]+key.secret+checksum(key.ID[len(key.ID)-idLength:]+key.secret)):
			t.Errorf("%q: got %v, want the key in the header", header, key)
		}
	})
}

// FuzzToken checks that keys and tokens are accepted exactly if they could have been
// issued: they are looked up in databases, which reject some bytes.
func FuzzToken(f *testing.F) {
	f.Add(sampleKey.ID + sampleKey.secret)
	f.Add(sampleKey.ID + strings.Repeat("x", secretLength-1) + "\x00")
	f.Add(strings.Repeat("é", (idLength+secretLength)/2))
	f.Fuzz(func(t *testing.T, body string) {
		issued := len(body) == idLength+secretLength
		for _, r := range body {
			issued = issued && strings.ContainsRune(base62, r)
		}
		text := tokenText(keyPrefix, body)
		if key, ok := ParseKey(text); ok != issued || ok && key.Text() != text {
			t.Errorf("%q: got %v and %t, want %t", text, key, ok, issued)
		}
		if _, ok := ParseKey(body); ok && !strings.HasPrefix(body, keyPrefix) {
			t.Errorf("%q: got a key, want none", body)
		}
		_, ok := parseToken(refreshPrefix, len(body), tokenText(refreshPrefix, body+"-"))
		check.True(t, !ok, "%q: got a token of another length, want none", body)
	})
}

// FuzzEmail checks that an accepted address is its own normal form, whatever its case and
// the spaces around it, that mail programs read it as the address of one mailbox, that every
// plain name can have an address, and that a tag does not make another mailbox.
func FuzzEmail(f *testing.F) {
	for _, address := range []string{"Ana@Example.com", " ana+tag@exämple.fr ", "\"a b\"@example.com", "\"a@b+c\"@example.com", "ana@example。com", "ana@[127.0.0.1]", "a@b", "ana@example.com,bo@example.com", "Ana <ana@example.com>", "ana@example.com\r\nBcc: bo@example.com"} {
		f.Add(address)
	}
	f.Fuzz(func(t *testing.T, text string) {
		plain := strings.Map(func(r rune) rune {
			if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
				return r
			}
			return -1
		}, text)
		plain = plain[:min(len(plain), 60)]
		if got, err := NormalizeEmail(strings.ToUpper(plain) + "+Tag@EXAMPLE.com"); plain != "" && (err != nil || got != plain+"+tag@example.com" || mailbox(got) != plain+"@example.com") {
			t.Errorf("%s: got %q and %v, want the address of a plain name", plain, got, err)
		}
		email, err := NormalizeEmail(text)
		if err != nil {
			check.Equal(t, err, error(ErrInvalidEmail), "%q: want ErrInvalidEmail", text)
			check.Equal(t, email, "", "%q: want ErrInvalidEmail", text)
			return
		}
		check.True(t, len(email) <= maxEmailLength && utf8.ValidString(email) && !strings.ContainsFunc(email, unicode.IsControl), "%q: got %q, want a short line", text, email)
		for _, same := range []string{email, " " + email + "\t", strings.ToLower(email)} {
			again := check.Try(NormalizeEmail(same)).OK(t, text)
			check.Equal(t, again, email, "%q: from %q", text, same)
		}
		list := check.Try(mail.ParseAddressList(email)).OK(t, text)
		check.Must(t, len(list), 1, "%q: %v", text, list)
		check.Equal(t, list[0].Address, email, text)
		check.Equal(t, list[0].Name, "", text)
		at := strings.LastIndexByte(email, '@')
		for _, r := range email[at+1:] {
			check.True(t, strings.ContainsRune("abcdefghijklmnopqrstuvwxyz0123456789-.", r), "%q: got %q, want an ASCII domain", text, email)
		}
		if box := mailbox(email); !strings.HasSuffix(box, email[at:]) || !strings.HasPrefix(email, box[:len(box)-len(email[at:])]) || mailbox(box) != box {
			t.Errorf("%q: got mailbox %q, want the start of its name at the same domain", email, box)
		}
	})
}

// FuzzUserAgent checks that what is stored of a User-Agent is short, and text that every
// database accepts.
func FuzzUserAgent(f *testing.F) {
	f.Add("Mozilla/5.0 \x00\xff")
	f.Add(strings.Repeat("é", maxUserAgent))
	f.Fuzz(func(t *testing.T, header string) {
		got := storedUserAgent(header)
		check.True(t, len(got) <= maxUserAgent && utf8.ValidString(got) && !strings.ContainsRune(got, 0), "%q: got %q, want short text", header, got)
		check.Equal(t, storedUserAgent(got), got, header)
	})
}

// FuzzURLToken checks that the token of a URL is the one that standard parsers read, and that
// only tokens that could have been issued are looked up.
func FuzzURLToken(f *testing.F) {
	const token = "qt_ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	for _, query := range []string{"token=" + token, "a=b&token=dt_" + token[3:], "token=&token=" + token, "xtoken=" + token, "token=qt_%41", "token=" + token + "%0a"} {
		f.Add(query)
	}
	f.Fuzz(func(t *testing.T, query string) {
		got := TokenOf(&http.Request{URL: &url.URL{RawQuery: query}})
		values, err := url.ParseQuery(query)
		issued := tokenPattern.MatchString(got)
		check.True(t, !issued || len(got) == len(token) && url.QueryEscape(got) == got, "%q: got %q, want a token that could have been issued", query, got)
		check.True(t, !issued || err != nil || len(values["token"]) != 0 && values["token"][0] == got, "%q: got %q, want the first token of %q", query, got, values["token"])
		check.True(t, err != nil || got != "" || !tokenPattern.MatchString(values.Get("token")) || query != values.Encode(),
			"%q: got no token, want %q", query, values.Get("token"))
	})
}
