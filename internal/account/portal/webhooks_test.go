package portal

import (
	"fmt"
	"html"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"palmares/auth"
	"palmares/ent"
	"palmares/internal/catalog/journal"
	"palmares/internal/core/store"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
	"palmares/internal/notify/webhook"
)

var shownSecret = regexp.MustCompile(`whsec_[A-Za-z0-9+/&#;=]+`)

// pro signs in an account with the Pro plan.
func (s *site) pro(email string) *browser {
	s.t.Helper()
	b := s.signIn(email)
	check.OK(s.t, auth.NewAccounts(s.db).SetPlan(s.t.Context(), s.account(email), auth.Pro))
	return b
}

func endpointPath(e *ent.Endpoint) string { return fmt.Sprintf("/account/webhooks/%d", e.ID) }

// The pages of an endpoint, from adding to removing it.
func TestWebhookPages(t *testing.T) {
	testkit.EachStore(t, func(t *testing.T, db *store.Store) {
		var calls atomic.Int64
		status := http.StatusNoContent
		receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			calls.Add(1)
			w.WriteHeader(status)
		}))
		defer receiver.Close()
		s := newSite(t, db)
		ana := s.pro("ana@example.com")
		check.Contains(t, ana.get("/account/webhooks").text, "You have no endpoints yet", "page")
		added := ana.post("/account/webhooks", "url", receiver.URL+"/<b>", "type", "tool.created", "category", "code", "category", "image", "batches", "1")
		secret := shownSecret.FindString(added.Body.String())
		check.Must(t, added.Code, 200, "adding: %s", added.Body.String())
		check.MustTrue(t, secret != "", "adding: got status %d, want 200 and a secret: %s", added.Code, added.Body.String())
		list := ana.get("/account/webhooks").Body.String()
		path := regexp.MustCompile(`/account/webhooks/\d+`).FindString(list)
		check.True(t, path != "", "got list %s, want the endpoint without its secret", list)
		check.Lacks(t, list, "whsec_")
		check.Lacks(t, list, "<b>")
		check.Contains(t, list, "code, image")
		page := ana.get(path)
		check.Equal(t, page.Code, 200, "endpoint")
		check.Lacks(t, page.text, "whsec_", "endpoint")
		check.Contains(t, page.text, "No events have been sent yet", "endpoint")
		const checked = `name="batches" value="1" checked>`
		page = ana.get(path)
		check.Contains(t, page.Body.String(), checked, "endpoint with batches")
		page = ana.post(path+"/settings", "category", "A B!")
		check.Equal(t, page.Code, 400, "invalid settings")
		check.Contains(t, page.text, `role="alert"`, "invalid settings")
		for _, form := range [][]string{{}, {"batches", "1", "type", "price.changed", "category", "code"}} {
			check.Equal(t, ana.post(path+"/settings", form...).Code, 303, "settings %v: status", form)
			check.Equal(t, strings.Contains(ana.get(path).Body.String(), checked), (len(form) > 0), "settings %v: box checked", form)
		}
		if e := db.Read.Endpoint.Query().OnlyX(t.Context()); fmt.Sprint(e.Types, e.Categories) != "[price.changed] [code]" {
			t.Errorf("settings: got %v and %v, want one type and one category", e.Types, e.Categories)
		}
		// Reloading the result of a test event sends nothing.
		test := func() response {
			sent := ana.post(path + "/test")
			check.Equal(t, sent.Code, 303, "test event: status")
			ana.get(sent.Header().Get("Location"))
			return ana.get(sent.Header().Get("Location"))
		}
		page = test()
		check.Contains(t, page.text, "Test event delivered: status 204", "test event")
		check.Equal(t, calls.Load(), 1, "test event")
		status = http.StatusInternalServerError
		page = test()
		check.Contains(t, page.text, "Test event failed: status 500", "failing test event")
		check.Contains(t, page.text, "webhook.test", "failing test event")
		for action, question := range map[string]string{"/rotate": "Rotate the signing secret?", "/remove": "Remove this endpoint?"} {
			page := ana.get(path + action)
			check.Equal(t, page.Code, 200, action)
			check.Contains(t, page.text, question, action)
		}
		rotated := shownSecret.FindString(ana.post(path + "/rotate").Body.String())
		check.True(t, rotated != "" && rotated != secret, "got secret %q, want a new one", rotated)
		check.Contains(t, ana.get(path).text, "The previous secret is valid until", "after rotating: page")
		for _, wrong := range [][]string{{"event", "evt_99"}, {"event", "x"}, {"since", "yesterday"}, {}} {
			page := ana.post(path+"/replay", wrong...)
			check.True(t, page.Code >= 400 && page.Code < 500, "replay of %v: got status %d, want 4xx", wrong, page.Code)
			check.Contains(t, page.text, `role="alert"`, "replay of %v", wrong)
		}
		check.Equal(t, ana.post(path+"/replay", "since", "2026-01-01T00:00").Code, 303, "replay: status")
		e := db.Read.Endpoint.Query().OnlyX(t.Context())
		batch := db.Write.Attempt.Create().SetEndpointID(e.ID).SetEvent(7).SetEvents([]int{7, 9}).SetType(journal.EventsBatch).SetNumber(1).
			SetAt(s.now().UTC()).SetStatus(500).SetTookMs(1).SetResponse("").SetDelivered(false).SaveX(t.Context())
		page, id := ana.get(path), webhook.MessageID(batch)
		check.Contains(t, page.text, id+" (2 events)", "batch %s", id)
		check.Equal(t, ana.post(path+"/replay", "event", id).Code, 303, "batch %s", id)
		ana.post(path + "/pause")
		check.Contains(t, ana.get(path).text, "This endpoint is paused", "after pausing: page")
		ana.post(path + "/resume")
		page = ana.get(path)
		check.Lacks(t, page.text, "This endpoint is paused", "after resuming")

		ben := s.pro("ben@example.com")
		for _, method := range []string{"", "/test", "/rotate", "/pause", "/resume", "/remove", "/replay", "/settings"} {
			got := ben.get(path)
			if method != "" {
				got = ben.post(path + method)
			}
			check.Equal(t, got.Code, 404, "another account's endpoint%s: status", method)
		}
		page = ana.get(path)
		check.Equal(t, page.Code, 200)
		check.Contains(t, page.text, ">Pause endpoint<")
		ana.post(path + "/remove")
		check.Equal(t, ana.get(path).Code, 404, "after removing: status")
	})
}

func TestInvalidEndpoints(t *testing.T) {
	s := newSQLiteSite(t)
	ana := s.pro("ana@example.com")
	for _, form := range [][]string{ // the field that is marked, and what is typed
		{"url", "url", ""}, {"url", "url", "ftp://example.com"}, {"url", "url", "http://example.com/x"}, {"url", "url", "https://user:word@example.com"}, {"url", "url", "https://10.0.0.1/"},
		{"", "url", "https://example.com", "type", "tool.exploded"}, {"", "url", "https://example.com", "category", "A B!"}, {"tools", "url", "https://example.com", "tools", "A!"},
	} {
		page := ana.post("/account/webhooks", form[1:]...)
		check.Equal(t, page.Code, 400, form)
		check.Contains(t, page.text, `role="alert"`, form)
		check.Equal(t, invalidField(page), form[0], form)
	}
	for i := range 10 {
		check.Must(t, ana.post("/account/webhooks", "url", fmt.Sprintf("https://example.com/%d", i)).Code, 200, "endpoint %d: status", i)
	}
	page := ana.get("/account/webhooks")
	check.Contains(t, page.text, "10 of 10 endpoints")
	check.Lacks(t, page.text, `id="url"`)
	check.Equal(t, ana.post("/account/webhooks", "url", "https://example.com/more").Code, 400, "eleventh endpoint: status")

	dev := s.signIn("dev@example.com")
	page = dev.get("/account/webhooks")
	check.Contains(t, page.text, "Upgrade to Pro", "Developer plan")
	check.Lacks(t, page.text, `id="url"`, "Developer plan")
	check.Equal(t, dev.post("/account/webhooks", "url", "https://example.com").Code, 403, "Developer plan: status")
}

// All attempts of the last 30 days can be reached page by page, and so can the
// failed ones.
func TestOlderAttempts(t *testing.T) {
	testkit.EachStore(t, func(t *testing.T, db *store.Store) {
		s := newSite(t, db)
		ana := s.pro("ana@example.com")
		ana.post("/account/webhooks", "url", "https://example.com/hook")
		e := db.Read.Endpoint.Query().OnlyX(t.Context())
		path := endpointPath(e)
		const all = 2*shownAttempts + 1
		rows := make([]*ent.AttemptCreate, all)
		for i := range rows { // two at a time; every other attempt failed
			rows[i] = db.Write.Attempt.Create().SetEndpointID(e.ID).SetEvent(i + 1).SetType("tool.created").SetNumber(1).
				SetAt(s.now().UTC().Add(time.Duration(i/2-all) * time.Second)).SetStatus(500 - 300*(i%2)).SetTookMs(1).SetResponse("").SetDelivered(i%2 == 1)
		}
		check.OK(t, db.Write.Attempt.CreateBulk(rows...).Exec(t.Context()))
		for name, want := range map[string]struct {
			address string
			events  []int
		}{"all": {path, descending(all, 1, 1)}, "failed": {path + "?failed=1", descending(all, 1, 2)}} {
			var got []int
			pages := 0
			for address := want.address; address != ""; pages++ {
				page := ana.get(address)
				check.Must(t, page.Code, 200, "%s: status", address)
				for _, found := range attemptShown.FindAllStringSubmatch(page.text, -1) {
					number, _ := strconv.Atoi(found[1])
					got = append(got, number)
				}
				address = ""
				if older := olderLink.FindStringSubmatch(page.text); older != nil {
					address = html.UnescapeString(older[1])
				}
			}
			check.Slices(t, got, want.events, name)
			check.Equal(t, pages, (len(want.events)+shownAttempts-1)/shownAttempts, name)
		}
		// Unknown and invalid ids.
		for address, text := range map[string]string{
			path + "?before=999999": "There are no older attempts", path + "?before=-3": "Older", path + "?before=x": "Older", path + "?before=99999999999999999999": "Older",
		} {
			page := ana.get(address)
			check.Equal(t, page.Code, 200, address)
			check.Contains(t, page.text, text, address)
		}
	})
}

var (
	attemptShown = regexp.MustCompile(`<td><code>tool.created</code> evt_(\d+)</td>`)
	olderLink    = regexp.MustCompile(`<a rel="next" href="([^"#]+)#attempts">Older</a>`)
)

func descending(from, to, step int) (all []int) {
	for n := from; n >= to; n -= step {
		all = append(all, n)
	}
	return all
}

// The page shows until when the receiver requested a pause.
func TestRetryAfterIsShown(t *testing.T) {
	s := newSQLiteSite(t)
	ana := s.pro("ana@example.com")
	ana.post("/account/webhooks", "url", "https://example.com/hook")
	e := s.db.Read.Endpoint.Query().OnlyX(t.Context())
	for until, want := range map[time.Duration]bool{time.Hour: true, -time.Hour: false} {
		s.db.Write.Endpoint.UpdateOne(e).SetNotBefore(s.now().UTC().Add(until)).ExecX(t.Context())
		page := ana.get(endpointPath(e))
		check.Equal(t, strings.Contains(page.text, "The receiver requested a pause until"), want, "%s from now: page %s", until, page.text)
	}
}

// The page says when the next test event may be sent.
func TestTestEventLimitPage(t *testing.T) {
	testkit.EachStore(t, func(t *testing.T, db *store.Store) {
		var calls atomic.Int64
		receiver := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { calls.Add(1) }))
		defer receiver.Close()
		s := newSite(t, db)
		ana := s.pro("ana@example.com")
		ana.post("/account/webhooks", "url", receiver.URL)
		path := endpointPath(db.Read.Endpoint.Query().OnlyX(t.Context()))
		for range 10 {
			check.Equal(t, ana.post(path+"/test").Code, http.StatusSeeOther, "status")
		}
		got := ana.post(path + "/test")
		wantPage(t, got, http.StatusTooManyRequests, "An account can send 10 test events per minute. Try again in")
		seconds := check.Try(strconv.Atoi(got.Header().Get("Retry-After"))).OK(t)
		check.True(t, seconds >= 1 && seconds <= 60, "got Retry-After %q, want 1 to 60", got.Header().Get("Retry-After"))
		check.Equal(t, calls.Load(), 10, "calls")
	})
}

// The page of an attempt shows the request, the response and what happens next,
// but no secret.
func TestAttemptPage(t *testing.T) {
	testkit.EachStore(t, func(t *testing.T, db *store.Store) {
		var signature atomic.Value
		status, body := http.StatusInternalServerError, "<b>oh no</b>"
		receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			signature.Store(r.Header.Get("webhook-signature"))
			w.WriteHeader(status)
			_, _ = w.Write([]byte(body))
		}))
		receiver.Config.SetKeepAlivesEnabled(false) // after it is closed, a connection is refused, not lost
		defer receiver.Close()
		s := newSite(t, db)
		ana := s.pro("ana@example.com")
		added := ana.post("/account/webhooks", "url", receiver.URL)
		secret := strings.TrimPrefix(html.UnescapeString(shownSecret.FindString(added.Body.String())), "whsec_")
		e := db.Read.Endpoint.Query().OnlyX(t.Context())
		test := func() response {
			t.Helper()
			sent := ana.post(endpointPath(e) + "/test")
			link := regexp.MustCompile(endpointPath(e) + `/attempts/\d+`).FindString(ana.get(sent.to()).text)
			page := ana.get(link)
			wantNoText(t, page, secret, "whsec_", signature.Load().(string))
			return page
		}
		page := test()
		wantPage(t, page, 200, "webhook.test", "responded with status 500", "<p>Status 500</p>", "none, because test events are sent once",
			"<code>webhook-id</code></th><td><code>msg_test_", "<code>webhook-timestamp</code>", "<code>Content-Type</code></th><td><code>application/json</code>",
			"<code>webhook-signature</code></th><td>hidden", `"message": "This is a test of Palmarès."`)
		check.Contains(t, page.Body.String(), ">&lt;b&gt;oh no&lt;/b&gt;</pre>", "page")
		wantNoText(t, page, "style=")
		status, body = http.StatusFound, ""
		wantPage(t, test(), 200, "Redirects are not followed", "The body of the response is empty")
		status = http.StatusNoContent
		wantPage(t, test(), 200, "Delivered: the receiver responded with status 204", "none, because the event was delivered")
		receiver.Close()
		wantPage(t, test(), 200, "Failed after", "There was no response: the connection was refused.")

		attempt := func(number int) *ent.Attempt {
			return db.Write.Attempt.Create().SetEndpointID(e.ID).SetEvent(7).SetType("tool.created").SetNumber(number).
				SetAt(s.now().UTC().Add(time.Duration(number-10) * time.Hour)).SetStatus(500).SetTookMs(1).SetResponse("").SetDelivered(false).SaveX(t.Context())
		}
		first := attempt(1)
		path := fmt.Sprintf("%s/attempts/%d", endpointPath(e), first.ID)
		wantPage(t, ana.get(path), 200, "evt_7", "<dd>none planned</dd>", "This payload is no longer stored")
		next := time.Date(2027, 1, 2, 3, 4, 0, 0, time.UTC)
		db.Write.Delivery.Create().SetEndpointID(e.ID).SetEvent(7).SetAttempts(1).SetNextAt(next).ExecX(t.Context())
		wantPage(t, ana.get(path), 200, `<dd><time datetime="2027-01-02T03:04:00Z">2 January 2027, 03:04 UTC</time></dd>`)
		wantPage(t, ana.get(endpointPath(e)), 200, `next attempt <time datetime="2027-01-02T03:04:00Z">`)
		last := attempt(webhook.MaxAttempts)
		wantPage(t, ana.get(path), 200, fmt.Sprintf(`<dd><a href="%s/attempts/%d">attempt %d`, endpointPath(e), last.ID, webhook.MaxAttempts))
		db.Write.Delivery.Delete().ExecX(t.Context())
		path = fmt.Sprintf("%s/attempts/%d", endpointPath(e), last.ID)
		wantPage(t, ana.get(path), 200, "none, because all 10 attempts failed")
		ana.post(endpointPath(e) + "/pause")
		wantPage(t, ana.get(path), 200, "none, because the endpoint is paused")

		for _, missing := range []string{endpointPath(e) + "/attempts/0", endpointPath(e) + "/attempts/x", "/account/webhooks/0/attempts/1"} {
			wantPage(t, ana.get(missing), 404)
		}
		wantPage(t, s.pro("ben@example.com").get(path), 404)
	})
}

// The page shows the time of the last delivery if later ones failed.
func TestLastDeliveryIsShownAfterFailures(t *testing.T) {
	s := newSQLiteSite(t)
	ana := s.pro("ana@example.com")
	ana.post("/account/webhooks", "url", "https://example.com/hook")
	e := s.db.Read.Endpoint.Query().OnlyX(t.Context())
	failing := s.db.Write.Endpoint.UpdateOne(e).SetFailures(3).SetFailingSince(noon.Add(time.Hour)).SaveX(t.Context())
	wantPage(t, ana.get(endpointPath(e)), 200, "No event has been delivered yet.", "0 events are waiting")
	s.db.Write.Endpoint.UpdateOne(failing).SetDeliveredAt(noon).ExecX(t.Context())
	s.db.Write.Delivery.Create().SetEndpointID(e.ID).SetEvent(7).SetNextAt(noon).ExecX(t.Context())
	page := ana.get(endpointPath(e))
	wantPage(t, page, 200, `No event has been delivered since <time datetime="2026-03-15T12:00:00Z">15 March 2026, 12:00 UTC</time>. 1 event is waiting`)
	wantNoText(t, page, "13:00")
}
