package portal

import (
	"strings"
	"testing"
	"unicode/utf8"

	"palmares/internal/core/store"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
)

func TestBrowserOf(t *testing.T) {
	const mac, webkit = "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) ", "AppleWebKit/537.36 (KHTML, like Gecko) "
	for userAgent, want := range map[string]string{
		"Mozilla/5.0 (X11; Linux x86_64; rv:145.0) Gecko/20100101 Firefox/145.0":                                                                                      "Firefox on Linux",
		"Mozilla/5.0 (X11; Ubuntu; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0":                                                                              "Firefox on Linux",
		"Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:145.0) Gecko/20100101 Firefox/145.0":                                                                            "Firefox on Windows",
		"Mozilla/5.0 (Android 15; Mobile; rv:145.0) Gecko/145.0 Firefox/145.0":                                                                                        "Firefox on Android",
		"Mozilla/5.0 (iPhone; CPU iPhone OS 18_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) FxiOS/145.0 Mobile/15E148 Safari/605.1.15":                   "Firefox on iPhone",
		"Mozilla/5.0 (iPhone; CPU iPhone OS 18_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.5 Mobile/15E148 Safari/604.1":                     "Safari on iPhone",
		"Mozilla/5.0 (iPad; CPU OS 16_6 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/16.6 Mobile/15E148 Safari/604.1":                              "Safari on iPad",
		mac + "AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.5 Safari/605.1.15":                                                                                 "Safari on macOS",
		mac + webkit + "Chrome/142.0.0.0 Safari/537.36":                                                                                                               "Chrome on macOS",
		"Mozilla/5.0 (Windows NT 10.0; Win64; x64) " + webkit + "Chrome/142.0.0.0 Safari/537.36":                                                                      "Chrome on Windows",
		"Mozilla/5.0 (Windows NT 10.0; Win64; x64) " + webkit + "Chrome/142.0.0.0 Safari/537.36 Edg/142.0.0.0":                                                        "Edge on Windows",
		"Mozilla/5.0 (Windows NT 10.0; Win64; x64) " + webkit + "Chrome/142.0.0.0 Safari/537.36 OPR/124.0.0.0":                                                        "Opera on Windows",
		"Mozilla/5.0 (Linux; Android 10; K) " + webkit + "Chrome/142.0.0.0 Mobile Safari/537.36":                                                                      "Chrome on Android",
		"Mozilla/5.0 (Linux; Android 10; K) " + webkit + "SamsungBrowser/28.0 Chrome/130.0.0.0 Mobile Safari/537.36":                                                  "Samsung Internet on Android",
		"Mozilla/5.0 (X11; CrOS x86_64 14541.0.0) " + webkit + "Chrome/142.0.0.0 Safari/537.36":                                                                       "Chrome on ChromeOS",
		"Mozilla/5.0 (iPhone; CPU iPhone OS 18_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) CriOS/142.0.7444.77 Mobile/15E148 Safari/604.1":              "Chrome on iPhone",
		"Mozilla/5.0 (iPhone; CPU iPhone OS 18_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.5 EdgiOS/142.0.0.0 Mobile/15E148 Safari/605.1.15": "Edge on iPhone",
		"Mozilla/5.0 (X11; Linux x86_64) " + webkit + "HeadlessChrome/142.0.0.0 Safari/537.36":                                                                        "Chrome on Linux",
		"Mozilla/5.0 (Haiku) Firefox/1":                  "Firefox",
		"Mozilla/5.0 (compatible; Something/1.0; Linux)": "Unknown browser",
		"curl/8.5.0":                "Unknown browser",
		"":                          "Unknown browser",
		"<script>alert(1)</script>": "Unknown browser",
		"Mozilla/5.0 (Linux) Gecko " + strings.Repeat("Firefox", 9): "Unknown browser",
	} {
		device := deviceOf(userAgent)
		got := "Unknown browser"
		if device.Browser != "" {
			got = strings.TrimSuffix(device.Browser+" on "+device.System, " on ")
		}
		check.Equal(t, got, want, userAgent)
	}
}

// The settings list the browsers that are signed in, and the export has what is
// stored of them.
func TestSessionsShowBrowsers(t *testing.T) {
	t.Parallel()
	testkit.EachStore(t, func(t *testing.T, db *store.Store) {
		s := newSite(t, db)
		for _, userAgent := range []string{
			"Mozilla/5.0 (X11; Linux x86_64; rv:145.0) Gecko/20100101 Firefox/145.0",
			"bot\x00 \xff" + strings.Repeat("é", 5000),
		} {
			b := s.browser()
			confirm := "token=" + b.start("ana@example.com").token(t)
			wantRedirect(t, b.send("POST", "/login/confirm", strings.NewReader(confirm), "User-Agent", userAgent), home)
		}
		b := s.signIn("ana@example.com")
		page := b.get("/account/settings")
		wantPage(t, page, 200, "<li>Firefox on Linux: signed in on")
		check.Equal(t, strings.Count(page.text, "<li>Unknown browser: signed in on"), 2, "unknown browsers")
		wantNoText(t, page, "Gecko", "éé")
		check.Contains(t, b.get("/account/export").text, "Gecko/20100101", "export")
		for _, row := range db.Write.Session.Query().AllX(t.Context()) {
			if len(row.UserAgent) > 300 || strings.ContainsAny(row.UserAgent, "\x00\ufffd") || !utf8.ValidString(row.UserAgent) {
				t.Errorf("got user agent %q, want at most 300 bytes of text", row.UserAgent)
			}
		}
	})
}
