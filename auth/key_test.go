package auth

import (
	"bytes"
	"crypto/rand"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

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
