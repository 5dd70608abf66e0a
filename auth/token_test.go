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
			if got, err := caller(target); err != nil || got.Account != 0 {
				t.Errorf("%s: got %+v and %v, want an anonymous caller", target, got, err)
			}
		}
		check.OK(t, keyring.SaveLastUsed(t.Context()))
		tokens, err := accounts.DownloadTokens(t.Context(), owner)
		if err != nil || len(tokens) != 1 || tokens[0].LastUsedAt == nil || tokens[0].Name != "sheet" {
			t.Fatalf("got %v and %v, want one token that was used", tokens, err)
		}
		check.OK(t, accounts.RevokeDownloadToken(t.Context(), owner, tokens[0].ID))
		keyring.ForgetAccount(owner.ID)
		if _, err := caller("/files?token=" + download); err != errTokenUnknown {
			t.Errorf("revoked token: got %v, want %v", err, errTokenUnknown)
		}
	})
}
