package portal

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"palmares/auth"
	"palmares/internal/core/quota"
	"palmares/internal/core/store"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
)

// startEmailChange requests another address and returns the email sent there.
func (b *browser) startEmailChange(email string) message {
	b.site.t.Helper()
	wantRedirect(b.site.t, b.post("/account/email", "email", email), "/account/email/code")
	return b.site.emailTo(email)
}

func TestChangeEmail(t *testing.T) {
	t.Parallel()
	testkit.EachStore(t, func(t *testing.T, db *store.Store) {
		s := newSite(t, db)
		b, thief := s.signIn("ana@example.com"), s.signIn("ana@example.com")
		key := b.makeKey("laptop")
		wantPage(t, b.post("/account/email", "email", "ANA@example.com"), 400, "This is already the email address of your account")

		sent := b.startEmailChange("anna@example.com")
		wantPage(t, b.get("/account/email/code"), 200, "anna@example.com")
		for range 2 {
			wantPage(t, b.get(sent.path(t)), 200, "ana@example.com", "anna@example.com", "Change email address")
		}
		check.MustTrue(t, s.account("ana@example.com") != nil, "got the address changed by opening the link, want it unchanged")
		changed := b.post("/account/email/confirm", "token", sent.token(t))
		wantRedirect(t, changed, "/account/settings")
		wantPage(t, b.get(changed.to()), 200, "Your email address was changed", "anna@example.com")
		email := s.emailTo("ana@example.com").text
		check.Contains(t, email, "was changed to a…@example.com")
		check.Lacks(t, email, "anna@")
		check.Contains(t, email, "no longer sign in with this address")
		check.True(t, s.accepts(key), "got the key refused, want it accepted")
		check.True(t, b.isSignedIn() && !thief.isSignedIn(), "got other sessions ended, want only the account's other one")
		wantPage(t, b.post("/account/email/confirm", "token", sent.token(t)), 410, "already used")

		// By code, and to an address that has an account by now.
		s.signIn("ben@example.com")
		taken := b.startEmailChange("ben@example.com")
		wantPage(t, b.post("/account/email/code", "code", taken.code), 400, "This email address is taken", "An account with this email address already exists")
		back := b.startEmailChange("ana@example.com")
		wantPage(t, b.post("/account/email/code", "code", "nothing"), 400, "code is incorrect")
		wantRedirect(t, b.post("/account/email/code", "code", back.code), "/account/settings")
		check.True(t, s.account("ana@example.com") != nil, "got the address unchanged, want it changed by the code")
		wantPage(t, b.post("/account/email", "email", "no address"), 400, "Enter a valid email address", "no address")
		wantRedirect(t, s.signIn("ana@example.com").get("/account/email/code"), "/account/settings")
	})
}

func TestExport(t *testing.T) {
	t.Parallel()
	s := newSQLiteSite(t)
	b, phone := s.signIn("ana@example.com"), s.signIn("ana@example.com")
	s.signIn("ben@example.com").makeKey("another key")
	key, revoked := b.makeKey("laptop \"é\" </script>"), b.makeKey("old")
	wantRedirect(t, b.post("/account/keys/"+idOf(t, revoked)+"/revoke"), home)
	s.accepts(key)
	check.OK(t, s.Keyring.SaveLastUsed(t.Context()))
	ana := s.account("ana@example.com")
	for _, day := range []string{"2025-01-01", "2026-03-01"} {
		s.db.Write.Usage.Create().SetSubject(int64(auth.Subject(ana))).SetDay(day).SetKey("").SetEndpoint("").SetRequests(7).ExecX(t.Context())
	}
	s.db.Write.Customer.Create().SetID("cus_1").SetAccountID(ana.ID).SetEmail("ana@example.com").SetSubscription("sub_1").SetStatus("active").SetPeriodEnd(time.Now()).ExecX(t.Context())
	b.startEmailChange("anna@example.com")
	hook := s.db.Write.Endpoint.Create().SetAccountID(ana.ID).SetURL("https://hooks.example/ana").SetTypes([]string{"tool.created"}).SetCategories([]string{}).SetTools([]string{}).
		SetState("disabled").SetDisabledReason("too slow").SetSecret("whsec_new").SetFormerSecret("whsec_former").SetPosition(0).SaveX(t.Context())
	s.db.Write.Attempt.Create().SetEndpointID(hook.ID).SetEvent(7).SetType("tool.created").SetNumber(2).SetStatus(500).SetTookMs(31).SetResponse("oh no").SetDelivered(false).ExecX(t.Context())
	s.db.Write.Endpoint.Create().SetAccountID(s.account("ben@example.com").ID).SetURL("https://hooks.example/ben@").SetTypes([]string{}).SetCategories([]string{}).SetTools([]string{}).SetSecret("whsec_ben").SetPosition(0).ExecX(t.Context())

	got := b.get("/account/export")
	if kind := got.Header().Get("Content-Type"); got.Code != 200 || kind != "application/json" || !strings.HasPrefix(got.Header().Get("Content-Disposition"), "attachment") {
		t.Errorf("got status %d, type %s, want 200 and JSON", got.Code, kind)
	}
	var data struct {
		Account  struct{ Email, Plan string }
		Keys     []map[string]any
		Usage    []map[string]any
		Sessions []map[string]any
		Messages []map[string]any
		Webhooks []struct {
			URL, State string
			Reason     string `json:"disabled_reason"`
			Types      []string
			Attempts   []map[string]any
		}
		Billing map[string]any
	}
	check.OK(t, json.Unmarshal(got.Body.Bytes(), &data))
	if data.Account.Email != "ana@example.com" || data.Account.Plan != "developer" || len(data.Keys) != 2 || len(data.Usage) != 2 ||
		len(data.Sessions) != 2 || len(data.Messages) != 3 || data.Billing["customer"] != "cus_1" || data.Billing["subscription"] != "sub_1" {
		t.Errorf("got export %s, want all data of the account", got.Body)
	}
	check.Equal(t, data.Keys[0]["name"], "laptop \"é\" </script>", "keys %v", data.Keys)
	check.True(t, data.Keys[0]["last_used_at"] != nil && data.Keys[1]["revoked_at"] != nil, "got keys %v, want one used and one revoked", data.Keys)
	if len(data.Webhooks) != 1 || data.Webhooks[0].URL != "https://hooks.example/ana" || data.Webhooks[0].State != "disabled" || data.Webhooks[0].Reason != "too slow" || len(data.Webhooks[0].Types) != 1 ||
		len(data.Webhooks[0].Attempts) != 1 || data.Webhooks[0].Attempts[0]["response"] != "oh no" || data.Webhooks[0].Attempts[0]["status"] != 500.0 || data.Webhooks[0].Attempts[0]["event"] != "evt_7" {
		t.Errorf("got webhooks %v, want one endpoint with one attempt", data.Webhooks)
	}
	wantNoText(t, got, "another key", "ben@", "whsec_", "hash", key, key[16:48], b.session(), phone.session())
	for _, row := range s.db.Write.Confirmation.Query().AllX(t.Context()) {
		wantNoText(t, got, row.LinkHash, row.BrowserHash, row.CodeHash)
	}
	for _, row := range s.db.Write.Session.Query().AllX(t.Context()) {
		wantNoText(t, got, row.ID)
	}

	empty := s.signIn("eva@example.com").get("/account/export")
	check.True(t, json.Valid(empty.Body.Bytes()), "new account: got %s, want empty lists", empty.text)
	check.Lacks(t, empty.text, `"keys": null`, "new account")
	check.Lacks(t, empty.text, `"webhooks": null`, "new account")
}

func TestDeleteAccount(t *testing.T) {
	t.Parallel()
	testkit.EachStore(t, func(t *testing.T, db *store.Store) {
		s := newSite(t, db)
		b, phone, ben := s.signIn("ana@example.com"), s.signIn("ana@example.com"), s.signIn("ben@example.com")
		key, others := b.makeKey("laptop"), ben.makeKey("laptop")
		check.MustTrue(t, s.accepts(key), "got the new key refused, want it accepted")
		ana := s.account("ana@example.com")
		db.Write.Customer.Create().SetID("cus_1").SetAccountID(ana.ID).SetEmail("ana@example.com").SetStatus("canceled").ExecX(t.Context())
		wantPage(t, b.get("/account/delete"), 200, "Your key stops working immediately", "invoices are retained")
		wantNoText(t, b.get("/account/delete"), "endpoint")
		for position, text := range []string{"Your webhook endpoint is removed", "Your 2 webhook endpoints are removed"} {
			s.db.Write.Endpoint.Create().SetAccountID(ana.ID).SetURL("https://hooks.example/ana").SetTypes([]string{}).SetCategories([]string{}).SetTools([]string{}).SetSecret("whsec_new").SetPosition(position).ExecX(t.Context())
			wantPage(t, b.get("/account/delete"), 200, text)
		}
		for _, typed := range []string{"", "ben@example.com", "ana"} {
			wantPage(t, b.post("/account/delete", "email", typed), 400, "Nothing was deleted")
		}
		check.MustTrue(t, s.accepts(key) && b.isSignedIn(), "got something deleted, want nothing")
		deleted := b.post("/account/delete", "email", " ANA@example.com")
		wantRedirect(t, deleted, "/login")
		wantPage(t, b.get(deleted.to()), 200, "Your account and its keys were deleted")
		check.True(t, !s.accepts(key), "got the deleted account's key accepted, want it refused at once")
		check.True(t, !b.isSignedIn() && !phone.isSignedIn() && ben.isSignedIn() && s.accepts(others),
			"got other sessions or keys ended, want only the deleted account's")
		check.Equal(t, db.Write.Endpoint.Query().CountX(t.Context()), 0, "endpoints")
		row := db.Write.Customer.GetX(t.Context(), "cus_1")
		check.Equal(t, row.AccountID, nil)
		check.Equal(t, row.Email, "")
		email := s.emailTo("ana@example.com").text
		check.Contains(t, email, "was deleted")
		check.Contains(t, email, "If you did not delete it")
		wantPage(t, s.signIn("ana@example.com").get(home), 200, "You have no keys yet")
	})
}

// An account is not deleted if its subscription cannot be canceled: it would
// continue to cost money.
func TestDeleteWithUncancelableSubscription(t *testing.T) {
	t.Parallel()
	s := newSQLiteSite(t)
	b := s.signIn("ana@example.com")
	s.db.Write.Customer.Create().SetID("cus_1").SetAccountID(s.account("ana@example.com").ID).SetEmail("ana@example.com").SetStatus("active").ExecX(t.Context())
	wantPage(t, b.get("/account/delete"), 200, "Your subscription ends immediately")
	wantPage(t, b.post("/account/delete", "email", "ana@example.com"), 503, "so the account was not deleted")
	check.True(t, b.isSignedIn(), "got the account deleted, want it unchanged")
}

func TestLanguageForEmails(t *testing.T) {
	t.Parallel()
	testkit.EachStore(t, func(t *testing.T, db *store.Store) {
		s := newSite(t, db)
		b := s.signIn("ana@example.com")
		wantPage(t, b.get("/account/settings"), 200, "Language for emails", `<option value="en" lang="en" selected>`, `<option value="fr" lang="fr">`)
		for _, wrong := range []string{"", "de", "FR"} {
			wantPage(t, b.post("/account/language", "language", wrong), 400, "The language must be one of en, fr")
		}
		saved := b.post("/account/language", "language", "fr")
		wantRedirect(t, saved, "/account/settings")
		wantPage(t, b.get(saved.to()), 200, "The language of your emails was saved", `<option value="fr" lang="fr" selected>`)
		check.Equal(t, s.account("ana@example.com").Language, "fr", "language")
		check.Contains(t, b.get("/account/export").text, `"language": "fr"`, "export")
		wantPage(t, s.signIn("ben@example.com").get("/account/settings"), 200, `<option value="en" lang="en" selected>`)
	})
}

var noon = time.Date(2026, 3, 15, 12, 0, 0, 0, time.UTC)

func TestUsagePage(t *testing.T) {
	t.Parallel()
	s := newSQLiteSite(t)
	s.now = func() time.Time { return noon }
	b := s.signIn("ana@example.com")
	empty := b.get("/account/usage")
	wantPage(t, empty, 200, `Requests today: <strong id="today">0</strong>. 1,000 of 1,000 left`, "<svg", "15 March 2026")
	check.Equal(t, strings.Count(empty.text, `<th scope="row">`), 30, "days")
	wantPage(t, empty, 200, "quota: 1,000", "with a line at the quota of 1,000")
	wantNoText(t, empty, "NaN", "Inf", "style=")

	ana := s.account("ana@example.com")
	for back, requests := range map[int]int{0: 999, 1: 1, 29: 12345, 30: 777} {
		s.db.Write.Usage.Create().SetSubject(int64(auth.Subject(ana))).SetDay(quota.DayOf(noon.AddDate(0, 0, -back)).String()).SetKey("").SetEndpoint("").SetRequests(requests).ExecX(t.Context())
	}
	page := b.get("/account/usage")
	wantPage(t, page, 200, `Requests today: <strong id="today">999</strong>. 1 of 1,000 left`, "Last 30 days: 13,345 requests", "12,345", "14 March 2026 · 1<", "15 March 2026 · 999<")
	wantNoText(t, page, "777", "You have reached your daily quota")
	check.Equal(t, strings.Count(page.text, `<rect class="s0"`), 2*3, "columns of both drawings")
	check.Equal(t, strings.Count(page.text, `<rect class="soft"`), 2*27, "days without requests")
	wantPage(t, b.get(home), 200, "999 of 1,000 requests used today")

	s.db.Write.Usage.Update().SetRequests(1003).ExecX(t.Context())
	wantPage(t, b.get("/account/usage"), 200, "You have reached your daily quota", "0 of 1,000 left", "midnight UTC", "2026-03-16T00:00:00Z")
	wantPage(t, b.get(home), 200, "You have reached your daily quota")
	s.db.Write.Account.Update().SetPlan("pro").ExecX(t.Context())
	wantPage(t, b.get("/account/usage"), 200, "(unlimited)")
	wantNoText(t, b.get("/account/usage"), "You have reached your daily quota", "quota:", "line at the quota")
	wantNoText(t, b.get(home), "You have reached your daily quota")
}

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
