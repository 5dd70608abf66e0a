package portal

import (
	"regexp"
	"strings"
	"testing"

	"palmares/internal/core/store"
	"palmares/internal/dev/testkit"
	"palmares/internal/transport/saved"
)

func TestDownloadTokens(t *testing.T) {
	testkit.EachStore(t, func(t *testing.T, db *store.Store) {
		s := newSite(t, db)
		ana, ben := s.signIn("ana@example.com"), s.signIn("ben@example.com")
		wantPage(t, ana.get("/account/downloads"), 200, "You have no download tokens yet")
		if page := ana.post("/account/downloads", "name", "two\nlines"); page.Code != 400 || !strings.Contains(page.text, `role="alert"`) {
			t.Errorf("invalid name: got status %d %s, want 400 and the form", page.Code, page.text)
		}
		created := ana.post("/account/downloads", "name", "<b>Prices</b>")
		token := regexp.MustCompile(`https://palmares\.example/api/v1/tools\.csv\?token=(dt_[A-Z2-7]{26})`).FindStringSubmatch(created.Body.String())
		if created.Code != 200 || token == nil || !strings.Contains(created.Body.String(), "&lt;b&gt;Prices") || created.Header().Get("Cache-Control") != "no-store" {
			t.Fatalf("got status %d %v %s, want the URL with the token, and the name escaped", created.Code, created.Header(), created.text)
		}
		page := ana.get("/account/downloads")
		wantPage(t, page, 200, "1 of 10 download tokens")
		wantNoText(t, page, "dt_")
		row, err := db.Read.DownloadToken.Query().Only(t.Context())
		testkit.Check(t, err)
		if strings.Contains(row.TokenHash, token[1]) || len(row.TokenHash) != 64 {
			t.Errorf("got %q stored, want only a hash", row.TokenHash)
		}
		link := regexp.MustCompile(`/account/downloads/\d+/revoke`).FindString(page.Body.String())
		wantPage(t, ana.get(link), 200, "Revoke this token?")
		wantPage(t, ben.get(link), 404, "")
		wantPage(t, ben.post(link), 404, "")
		wantPage(t, ana.get("/account/downloads/nothing/revoke"), 404, "")
		if export := ana.get("/account/export").Body.String(); !strings.Contains(export, `"download_tokens"`) || !strings.Contains(export, "Prices") || strings.Contains(export, row.TokenHash) {
			t.Errorf("got export %s, want the token without its hash", export)
		}
		for range saved.MaxDownloadTokens - 1 {
			wantPage(t, ana.post("/account/downloads"), 200, "Unnamed token")
		}
		wantPage(t, ana.post("/account/downloads"), 400, "Revoke one first")
		wantPage(t, ana.get("/account/downloads"), 200, "You have reached the limit of 10 download tokens")
		wantRedirect(t, ana.post(link), "/account/downloads")
		wantPage(t, ana.post(link), 404, "")
		wantPage(t, ana.get("/account/downloads?done=tokenrevoked"), 200, "The token was revoked.")
	})
}
