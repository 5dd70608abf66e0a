package auth

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"palmares/internal/core/store"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
)

// Tokens identify their owner where they give access. What package saved serves with them
// is tested there.
func TestTokens(t *testing.T) {
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		accounts := NewAccounts(s)
		owner, err := accounts.Create(t.Context(), "ana@example.com", Developer)
		check.OK(t, err)
		check.OK(t, s.Write.Account.UpdateOne(owner).SetHandle("ana").Exec(t.Context()))
		download, err := accounts.CreateDownloadToken(t.Context(), owner, " sheet ")
		check.OK(t, err)
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
			got, err := caller(target)
			check.OK(t, err, target)
			check.Equal(t, got, want, target)
			check.Equal(t, got.OwnsQueries(owner.ID), !downloads, "%s: private queries", target)
		}
		for _, target := range []string{"/q/ana/other?token=" + query, "/files?token=" + query, "/q/ana/best?token=" + unknown, "/files"} {
			got, err := caller(target)
			check.OK(t, err, target)
			check.Equal(t, got.Account, 0, target)
		}
		check.OK(t, keyring.SaveLastUsed(t.Context()))
		tokens, err := accounts.DownloadTokens(t.Context(), owner)
		check.OK(t, err)
		check.Must(t, len(tokens), 1, tokens)
		check.MustTrue(t, tokens[0].LastUsedAt != nil, "got %v, want one token that was used", tokens)
		check.Must(t, tokens[0].Name, "sheet")
		check.OK(t, accounts.RevokeDownloadToken(t.Context(), owner, tokens[0].ID))
		keyring.ForgetAccount(owner.ID)
		_, err = caller("/files?token=" + download)
		check.Equal[error](t, err, errTokenUnknown, "revoked token")
	})
}
