package auth

import (
	"bytes"
	"crypto/rand"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/mail"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"palmares/internal/core/problem"
	"palmares/internal/core/store"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
)

func TestKeys(t *testing.T) {
	word := regexp.MustCompile(`^\w+$`) // so that a double click selects it
	seen := map[string]bool{}
	for range 1000 {
		key := NewKey()
		text := key.Text()
		check.MustTrue(t, word.MatchString(text) && strings.HasPrefix(text, "pal_"), "got key %s, want a unique word of 54 characters", text)
		check.Must(t, len(text), 54, "key %s", text)
		check.Must(t, seen[text], false)
		seen[text] = true
		read, ok := ParseKey(text)
		check.Must(t, ok, true, text)
		check.Must(t, read, key, text)
		check.MustTrue(t, read.matches(key.Hash()) && !read.matches(NewKey().Hash()), "%s: got %+v, want %+v", text, read, key)
	}
	bits := float64(secretLength) * 5.954
	check.True(t, bits >= 160, "got a secret of %v bits, want at least 160", bits)
}

// A mistyped character is detected without the database.
func TestMistypedKeys(t *testing.T) {
	text := NewKey().Text()
	for i := range text {
		for _, char := range []byte{'0', 'Z', 'a', '_', ' '} {
			changed := []byte(text)
			if changed[i] == char {
				continue
			}
			changed[i] = char
			_, ok := ParseKey(string(changed))
			check.True(t, !ok, "%s instead of %s: got a key, want none", changed, text)
		}
	}
	for _, wrong := range []string{
		"", "pal_", text[:len(text)-1], text + "0", " " + text, text + "\n", strings.ToUpper(text), strings.ToLower(text),
		strings.Replace(text, "pal_", "sk__", 1), strings.Repeat("x", 5000), "pal_" + strings.Repeat("0", 50)[:50],
	} {
		_, ok := ParseKey(wrong)
		check.True(t, !ok, "%.60q: got a key, want none", wrong)
	}
}

// All characters are equally likely.
func TestSecretsAreUniform(t *testing.T) {
	counts := map[byte]int{}
	for _, char := range []byte(readText(rand.Reader, 62*2000)) {
		counts[char]++
	}
	for _, char := range []byte(base62) {
		n := counts[char]
		check.True(t, n >= 1700 && n <= 2300, "%c: got %d occurrences, want about 2000", char, n)
	}
	check.True(t, !bytes.Equal(NewKey().Hash(), NewKey().Hash()), "got the same secret twice, want different ones")
}

// Keys that were issued stay valid: their checksum is part of the format.
func TestFormatOfKeys(t *testing.T) {
	check.Equal(t, sampleKey.Text(), "pal_0123456789ab"+sampleKey.secret+"1E6wma")
	check.Equal(t, readText(bytes.NewReader([]byte{0, 61, 62, 247, 248, 255, 1, 2}), 4), "0z0z", "want bytes below 248 as digits")
	check.Equal(t, readText(bytes.NewReader([]byte{248, 255, 1, 2, 3, 4, 5, 6}), 4), "1234", "want bytes from 248 skipped")
}

// Tokens identify their owner where they give access. What package saved serves with them
// is tested there.
func TestTokens(t *testing.T) {
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		accounts := NewAccounts(s)
		owner := check.Try(accounts.Create(t.Context(), "ana@example.com", Developer)).OK(t)
		check.OK(t, s.Write.Account.UpdateOne(owner).SetHandle("ana").Exec(t.Context()))
		download := check.Try(accounts.CreateDownloadToken(t.Context(), owner, " sheet ")).OK(t)
		query, hash := NewQueryToken()
		unknown, _ := NewQueryToken()
		s.Write.SavedQuery.Create().SetAccountID(owner.ID).SetName("best").SetHash("0123").SetPublic(false).SetTokenHash(hash).ExecX(t.Context())
		keyring := NewKeyring(s, slog.New(slog.DiscardHandler), Rules{
			SavedQuery: func(r *http.Request) string {
				return strings.TrimPrefix(strings.TrimPrefix(r.URL.Path, "/q/"), "/files")
			},
			IsDownload: func(r *http.Request) bool { return r.URL.Path == "/files" },
		})
		caller := func(target string) (Caller, error) { return keyring.caller(httptest.NewRequest("GET", target, nil)) }
		for target, downloads := range map[string]bool{
			"/files?token=" + download: true, "/q/ana/best?token=" + download: true, "/q/ana/best?a=b&token=" + query: false, "/q/0123?token=" + query: false,
		} {
			want := CallerOf(owner, TokenKey)
			want.Downloads = downloads
			got := check.Try(caller(target)).OK(t, target)
			check.Equal(t, got, want, target)
			check.Equal(t, got.OwnsQueries(owner.ID), !downloads, "%s: private queries", target)
		}
		for _, target := range []string{"/q/ana/other?token=" + query, "/files?token=" + query, "/q/ana/best?token=" + unknown, "/files"} {
			got := check.Try(caller(target)).OK(t, target)
			check.Equal(t, got.Account, 0, target)
		}
		check.OK(t, keyring.SaveLastUsed(t.Context()))
		tokens := check.Try(accounts.DownloadTokens(t.Context(), owner)).OK(t)
		check.Must(t, len(tokens), 1, tokens)
		check.MustTrue(t, tokens[0].LastUsedAt != nil, "got %v, want one token that was used", tokens)
		check.Must(t, tokens[0].Name, "sheet")
		check.OK(t, accounts.RevokeDownloadToken(t.Context(), owner, tokens[0].ID))
		keyring.ForgetAccount(owner.ID)
		_, err := caller("/files?token=" + download)
		check.Equal[error](t, err, errTokenUnknown, "revoked token")
	})
}

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
