package portal

import (
	"bytes"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"palmares/auth"
	"palmares/internal/catalog/feed"
	"palmares/internal/catalog/feed/demo"
	"palmares/internal/catalog/publish"
	"palmares/internal/core/store"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
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
		check.OK(t, err)
		check.Lacks(t, row.TokenHash, token[1])
		check.Equal(t, len(row.TokenHash), 64, "%q stored", row.TokenHash)
		link := regexp.MustCompile(`/account/downloads/\d+/revoke`).FindString(page.Body.String())
		wantPage(t, ana.get(link), 200, "Revoke this token?")
		wantPage(t, ben.get(link), 404, "")
		wantPage(t, ben.post(link), 404, "")
		wantPage(t, ana.get("/account/downloads/nothing/revoke"), 404, "")
		export := ana.get("/account/export").Body.String()
		check.Contains(t, export, `"download_tokens"`)
		check.Contains(t, export, "Prices")
		check.Lacks(t, export, row.TokenHash)
		for range auth.MaxDownloadTokens - 1 {
			wantPage(t, ana.post("/account/downloads"), 200, "Unnamed token")
		}
		wantPage(t, ana.post("/account/downloads"), 400, "Revoke one first")
		wantPage(t, ana.get("/account/downloads"), 200, "You have reached the limit of 10 download tokens")
		wantRedirect(t, ana.post(link), "/account/downloads")
		wantPage(t, ana.post(link), 404, "")
		wantPage(t, ana.get("/account/downloads?done=tokenrevoked"), 200, "The token was revoked.")
	})
}

// A click on a download sends the file to signed-in visitors, and others to the sign-in
// page, which says why, and then back to the file.
func TestDownloadsInTheBrowser(t *testing.T) {
	testkit.EachStore(t, func(t *testing.T, db *store.Store) {
		counted := 0
		s := newSite(t, db, func(cfg *Config) {
			cfg.Count = func(_ http.ResponseWriter, r *http.Request) error {
				counted++
				caller := auth.CallerFrom(r.Context())
				check.True(t, caller.Account != 0, "got %+v at %s, want the account at the path of the API", caller, r.URL.Path)
				check.Equal(t, caller.Browser, true)
				check.Equal(t, r.URL.Path, "/api/v1/tools.csv")
				return nil
			}
			cfg.Files = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = fmt.Fprintf(w, "account %d reads %s", auth.CallerFrom(r.Context()).Account, r.URL)
			})
		})
		_, err := publish.Import(t.Context(), db, feed.NewLines(bytes.NewReader(demo.Catalog())), publish.Options{})
		check.OK(t, err)
		const file = "/account/downloads/tools.csv?category=code&dialect=excel-fr"
		visitor := s.browser()
		wantRedirect(t, visitor.get(file), "/login")
		login := visitor.get(file).to()
		wantPage(t, visitor.get(login), 200, "Downloads of whole lists require an account, which is free.")
		next, err := url.Parse(login)
		check.OK(t, err)
		check.True(t, counted == 0, "got a request counted, want none of visitors without an account")

		ana := s.signIn("ana@example.com")
		ready := ana.get(next.Query().Get("next"))
		wantPage(t, ready, 200, "Your download is ready.")
		check.Contains(t, ready.Body.String(), strings.ReplaceAll(file, "&", "&amp;")+`"`, "want a link to the file")
		got := ana.get(file)
		if header := got.Header(); got.Code != 200 || counted != 1 || header.Get("Content-Type") != "text/csv; charset=utf-8; header=present" || header.Get("Cache-Control") != "no-store" ||
			!strings.HasPrefix(header.Get("Content-Disposition"), "attachment;") || !strings.HasPrefix(got.Body.String(), "\uFEFFslug;name;") || strings.Count(got.Body.String(), "\r\n") != 7 {
			t.Errorf("got %d %v, %d counted, %.80s, want the 6 tools of the category as a private file, counted once", got.Code, got.Header(), counted, got.Body)
		}
		const release = "/account/downloads/files/8/catalog.sqlite"
		wantPage(t, ana.get("/account/downloads?file=files/8/catalog.sqlite"), 200, "Your download is ready.")
		if got, want := ana.get(release), fmt.Sprintf("account %d reads /files/releases/8/catalog.sqlite", s.account("ana@example.com").ID); got.Body.String() != want || got.Header().Get("Cache-Control") != "no-store" {
			t.Errorf("got %s, %v, want %s", got.Body, got.Header(), want)
		}
		wantRedirect(t, visitor.get(release), "/login")
		for _, other := range []string{"/account/downloads/tools", "/account/downloads/nothing.csv", "/account/downloads/stats.csv", "/account/downloads/files/08/x.sqlite", "/account/downloads/files/8/x.exe"} {
			wantPage(t, ana.get(other), 404, "")
		}
		wantNoText(t, ana.get("/account/downloads?file="+url.QueryEscape("../../logout")), "Your download is ready.")
	})
}
