package portal

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"palmares/auth"
	"palmares/ent/account"
	"palmares/ent/endpoint"
	"palmares/internal/core/lang"
	"palmares/internal/core/quota"
	"palmares/internal/core/store"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
)

// inFrench returns a message as pages show it.
func inFrench(m lang.Message, args ...any) string { return plain(lang.French.Text(m, args...)) }

// A visitor of the French pages gets French emails whose links lead to French
// pages. A new account keeps the language; an existing one is not changed.
func TestSignUpInFrench(t *testing.T) {
	t.Parallel()
	testkit.EachStore(t, func(t *testing.T, db *store.Store) {
		s := newSite(t, db)
		b := s.browserIn(lang.French)
		wantPage(t, b.get("/login"), 200, `<html lang="fr">`, inFrench("Email me a sign-in link"))
		sent := b.start("ana@example.com")
		check.True(t, strings.HasPrefix(sent.link, "https://palmares.example/fr/login/confirm?"), "got email %s, want it in French", sent.text)
		check.Contains(t, plain(sent.text), inFrench("Your sign-in code for %s is:", "Palmarès"))
		wantPage(t, b.get("/login/code"), 200, inFrench("Six-digit code"))
		wantPage(t, b.get(sent.path(t)), 200, inFrench("You are signing in as <strong>%s</strong>.", "ana@example.com"))
		signedIn := b.post("/login/confirm", "token", sent.token(t))
		check.Equal(t, signedIn.Header().Get("Location"), "/fr/account", "redirect")
		wantPage(t, b.get(home), 200, inFrench("You have no keys yet. Create one to read embeddings and to get your own quota."))

		byCode := s.browserIn(lang.French)
		code := byCode.start("ben@example.com").code
		wantPage(t, byCode.post("/login/code", "code", "12345"), 400, inFrench("This code is incorrect."), `value="12345"`)
		wantRedirect(t, byCode.post("/login/code", "code", code), home)

		s.signIn("eva@example.com")
		s.signIn("ana@example.com")                // in English
		s.signInAt(lang.French, "eva@example.com") // in French
		for email, want := range map[string]account.Language{"ana@example.com": "fr", "ben@example.com": "fr", "eva@example.com": "en"} {
			check.Equal(t, s.account(email).Language, want, "%s: language", email)
		}
	})
}

// Pages in French have no text in common with those in English, except for
// names and what users typed.
func TestNoEnglishOnFrenchPages(t *testing.T) {
	t.Parallel()
	s := newSQLiteSite(t, enableBilling)
	s.now = func() time.Time { return noon }
	visitor := s.browser()
	compareLanguages(t, visitor, "/login", "/login/confirm?token=unknown", "/login/nothing")
	sent := visitor.start("ana@example.com")
	compareLanguages(t, visitor, "/login/code", sent.path(t))
	b := s.signIn("ana@example.com")
	ana := s.account("ana@example.com")
	compareLanguages(t, b, home, "/account/usage", "/account/plan", "/account/queries", "/account/queries/new", "/account/downloads", "/account/webhooks", "/account/settings", "/account/delete", "/account/nothing")

	for _, l := range lang.All {
		b.language = l
		b.makeKey("x1")
	}
	compareResponses(t, "new key", func(l lang.Language) response {
		s.db.Write.APIKey.Delete().ExecX(t.Context())
		b.language = l
		return b.post("/account/keys", "name", "x1")
	})
	key := s.db.Write.APIKey.Query().FirstX(t.Context())
	for i, endpoint := range []string{"/graphql", "other", "/q/ana/best"} {
		s.db.Write.Usage.Create().SetSubject(int64(auth.Subject(ana))).SetDay(quota.DayOf(time.Now()).String()).SetKey([]string{key.ID, "", "token"}[i]).SetEndpoint(endpoint).SetRequests(2).ExecX(t.Context())
	}
	for back, requests := range map[int]int{0: 1003, 1: 1} {
		s.db.Write.Usage.Create().SetSubject(int64(auth.Subject(ana))).SetDay(quota.DayOf(noon.AddDate(0, 0, -back)).String()).SetKey("").SetEndpoint("").SetRequests(requests).ExecX(t.Context())
	}
	compareLanguages(t, b, home, "/account/keys/"+key.ID+"/revoke", "/account/usage", "/account/keys/nothing/revoke")

	customer := s.db.Write.Customer.Create().SetID("cus_1").SetAccountID(ana.ID).SetEmail(ana.Email).SetPeriodEnd(noon.AddDate(0, 1, 0)).SetPastDueSince(noon.Add(-time.Hour))
	customer.ExecX(t.Context())
	for _, manual := range []bool{false, true} {
		for _, plan := range []string{"developer", "pro"} {
			s.db.Write.Account.UpdateOne(ana).SetPlan(planOf(plan)).SetManualPlan(manual).ExecX(t.Context())
			for _, status := range []string{"active", "past_due", "unpaid", "incomplete", "canceled"} {
				for _, cancels := range []bool{false, true} {
					s.db.Write.Customer.Update().SetStatus(status).SetCancels(cancels).ExecX(t.Context())
					compareLanguages(t, b, "/account/plan", "/account/plan?done=paying")
				}
			}
		}
	}
	compareLanguages(t, b, home, "/account/usage", "/account/delete")

	b.language = lang.English
	wantRedirect(t, b.post("/account/queries", "name", "x1", "title", "x1", "handle", "ana", "query", "query Tools { tools(limit: 1) { items { x1: name } } }"), "/account/queries/x1")
	compareLanguages(t, b, "/account/queries", "/account/queries/x1", "/account/queries/x1/edit", "/account/queries/x1/delete", "/account/queries/x2")
	compareResponses(t, "token", func(l lang.Language) response {
		b.language = l
		return b.post("/account/queries/x1/token")
	})
}

// Explanations that are stored in English are shown in French.
func TestWebhooksInFrench(t *testing.T) {
	t.Parallel()
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) }))
	receiver.Config.SetKeepAlivesEnabled(false) // a connection that is still open would be closed instead of refused
	s := newSQLiteSite(t)
	b := s.pro("ana@example.com")
	compareResponses(t, "secret", func(l lang.Language) response {
		b.language = l
		return b.post("/account/webhooks", "url", receiver.URL)
	})
	e := s.db.Write.Endpoint.Query().FirstX(t.Context())
	path := endpointPath(e)
	compareLanguages(t, b, "/account/webhooks", path, path+"/rotate", path+"/remove", path+"/attempts/0", "/account/webhooks/0")
	b.language = lang.French
	failed := b.post(path + "/test")
	compareLanguages(t, b, failed.to())
	receiver.Close()
	b.language = lang.French
	refused := b.post(path + "/test")
	page := b.get(refused.to())
	wantPage(t, page, 200, "L’événement de test a échoué : la connexion a été refusée.", `<td class="response">la connexion a été refusée</td>`)
	for _, link := range regexp.MustCompile(path+`/attempts/\d+`).FindAllString(page.text, -1) {
		compareLanguages(t, b, link)
	}
	s.db.Write.Attempt.Create().SetEndpointID(e.ID).SetEvent(7).SetEvents([]int{7, 9}).SetType("events.batch").SetNumber(1).
		SetAt(s.now().UTC()).SetStatus(200).SetTookMs(1).SetResponse("the connection failed").SetDelivered(true).ExecX(t.Context())
	b.language = lang.French
	wantPage(t, b.get(path), 200, "(2 événements)", `<td class="response">the connection failed</td>`) // what a receiver says is not ours
	s.db.Write.Attempt.Delete().ExecX(t.Context())

	s.db.Write.Delivery.Create().SetEndpointID(e.ID).SetEvent(7).SetNextAt(noon).ExecX(t.Context())
	s.db.Write.Endpoint.UpdateOne(e).SetFailures(3).SetFailingSince(noon).ExecX(t.Context())
	wantPage(t, b.get(path), 200, "Aucun événement n’a encore été reçu. 1 événement attend d’être renvoyé.")
	compareLanguages(t, b, path, "/account/webhooks", path+"?failed=1", path+"?before=1")
	for _, state := range []string{"paused", "disabled"} {
		s.db.Write.Endpoint.UpdateOne(e).SetState(endpoint.State(state)).SetDisabledReason("every delivery failed for 5 days").ExecX(t.Context())
		compareLanguages(t, b, path, "/account/webhooks")
		compareResponses(t, "resending while "+state, func(l lang.Language) response {
			b.language = l
			return b.post(path+"/replay", "since", "2026-01-01T00:00")
		})
	}
	b.language = lang.French
	wantPage(t, b.get(path), 200, "<strong>Cet endpoint est désactivé</strong> : tous les envois ont échoué pendant 5 jours.")
	s.db.Write.Account.Update().SetPlan("developer").ExecX(t.Context())
	compareLanguages(t, b, "/account/webhooks", path)
}

// compareLanguages opens pages in both languages and finds texts that are the same.
func compareLanguages(t *testing.T, b *browser, paths ...string) {
	t.Helper()
	for _, path := range paths {
		path = languagePrefix.ReplaceAllString(path, "/")
		compareResponses(t, path, func(l lang.Language) response {
			b.language = l
			return b.get(path)
		})
	}
}

// sameTexts are texts that both languages share: names, numbers and what the
// tests type.
var sameTexts = regexp.MustCompile(`^(?:[\P{L}]*|[\w.+-]+@example\.com|Pro|Developer|URL|Webhooks|Embeddings|guide|Description|Sessions|Secret|Palmarès|https?://\S*|msg_\S*|evt_\S*|x1(?: · Palmarès)?|, |\d+ ms|\(GraphQL\)|Standard Webhooks|Webhooks · Palmarès)$`)

func compareResponses(t *testing.T, name string, get func(lang.Language) response) {
	t.Helper()
	texts := map[lang.Language]map[string]bool{}
	for _, l := range lang.All {
		got := get(l)
		check.MustTrue(t, got.Code < 500, "%s: got status %d, want a page", name, got.Code)
		texts[l] = visibleTexts(t, got)
		check.True(t, strings.Contains(got.text, fmt.Sprintf(`<html lang="%s">`, l)) && len(texts[l]) >= 3,
			"%s: got %d texts, want a page in %s: %s", name, len(texts[l]), l, got.text)
	}
	for text := range texts[lang.French] {
		check.True(t, !texts[lang.English][text] || sameTexts.MatchString(text), "%s: got %q in both languages, want it translated", name, text)
	}
}

// visibleTexts returns the texts of the title and of the main part, without code
// and without what has a language of its own.
func visibleTexts(t *testing.T, got response) map[string]bool {
	t.Helper()
	root := check.Try(html.Parse(strings.NewReader(got.Body.String()))).OK(t)
	found := map[string]bool{}
	var visit func(node *html.Node, inside bool)
	visit = func(node *html.Node, inside bool) {
		if node.Type == html.ElementNode {
			switch node.Data {
			case "code", "pre", "textarea":
				return
			case "main", "title":
				inside = true
			}
			for _, a := range node.Attr {
				switch a.Key {
				case "lang":
					if node.Data != "html" {
						return
					}
				case "aria-label", "placeholder", "title", "alt":
					if inside {
						found[strings.TrimSpace(plain(a.Val))] = true
					}
				}
			}
		}
		if text := strings.TrimSpace(plain(node.Data)); node.Type == html.TextNode && inside && text != "" {
			found[text] = true
		}
		for child := range node.ChildNodes() {
			visit(child, inside)
		}
	}
	visit(root, false)
	return found
}

// After a form was sent, the menu and the language switch lead to its page.
func TestPageOfForms(t *testing.T) {
	t.Parallel()
	s := newSQLiteSite(t)
	for _, route := range routes {
		form, isForm := strings.CutPrefix(route.pattern, "POST ")
		if !isForm || form == "/logout" {
			continue
		}
		form = strings.NewReplacer("{id}", "7", "{name}", "best").Replace(form)
		got := s.pagePath(httptest.NewRequest(http.MethodPost, form, nil))
		_, pattern := s.routes.Handler(httptest.NewRequest(http.MethodGet, got, nil))
		check.True(t, strings.HasPrefix(pattern, "GET "), "%s: got %s, want a page", form, got)
	}
	for form, want := range map[string]string{
		"/login": "/login", "/account/keys": home, "/account/email": "/account/settings", "/account/plan/subscribe": "/account/plan",
		"/account/webhooks/7/test": "/account/webhooks/7", "/account/webhooks/7/rotate": "/account/webhooks/7/rotate", "/account/queries/best/token": "/account/queries/best",
	} {
		check.Equal(t, s.pagePath(httptest.NewRequest(http.MethodPost, form, nil)), want, form)
	}
}
