package portal

import (
	"fmt"
	"html"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"palmares/auth"
	"palmares/ent"
	"palmares/internal/core/store"
	"palmares/internal/dev/testkit"
)

var shownSecret = regexp.MustCompile(`whsec_[A-Za-z0-9+/&#;=]+`)

// pro is somebody who may have webhooks.
func (s *site) pro(email string) *browser {
	s.t.Helper()
	b := s.signIn(email)
	if err := auth.NewAccounts(s.db).SetPlan(s.t.Context(), s.account(email), auth.Pro); err != nil {
		s.t.Fatal(err)
	}
	return b
}

// An endpoint's life, from its secret to its end.
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
		if page := ana.get("/account/webhooks"); !strings.Contains(page.text, "You have no endpoint yet") {
			t.Errorf("the first page: %s", page.text)
		}
		made := ana.post("/account/webhooks", "url", receiver.URL+"/<b>", "type", "tool.created", "categories", "code, image")
		secret := shownSecret.FindString(made.Body.String())
		if made.Code != 200 || secret == "" {
			t.Fatalf("adding: %d %s", made.Code, made.Body.String())
		}
		list := ana.get("/account/webhooks").Body.String()
		path := regexp.MustCompile(`/account/webhooks/\d+`).FindString(list)
		if path == "" || strings.Contains(list, "whsec_") || strings.Contains(list, "<b>") || !strings.Contains(list, "code, image") {
			t.Errorf("the list: %s", list)
		}
		if page := ana.get(path); page.Code != 200 || strings.Contains(page.text, "whsec_") || !strings.Contains(page.text, "Nothing was sent yet") {
			t.Errorf("the endpoint: %d %s", page.Code, page.text)
		}
		if page := ana.post(path + "/test"); !strings.Contains(page.text, "The test has arrived: status 204") || calls.Load() != 1 {
			t.Errorf("a test: %s", page.text)
		}
		status = http.StatusInternalServerError
		if page := ana.post(path + "/test"); !strings.Contains(page.text, "The test did not arrive: status 500") || !strings.Contains(page.text, "webhook.test") {
			t.Errorf("a failing test: %s", page.text)
		}
		rotated := shownSecret.FindString(ana.post(path + "/rotate").Body.String())
		if rotated == "" || rotated == secret {
			t.Errorf("rotated to %q", rotated)
		}
		if page := ana.get(path); !strings.Contains(page.text, "The secret before signs until") {
			t.Errorf("after rotating: %s", page.text)
		}
		for _, wrong := range [][]string{{"event", "evt_99"}, {"event", "x"}, {"since", "yesterday"}, {}} {
			if page := ana.post(path+"/replay", wrong...); page.Code < 400 || page.Code >= 500 || !strings.Contains(page.text, `role="alert"`) {
				t.Errorf("replay of %v: %d", wrong, page.Code)
			}
		}
		if page := ana.post(path+"/replay", "since", "2026-01-01T00:00"); page.Code != 303 {
			t.Errorf("replay: %d", page.Code)
		}
		ana.post(path + "/pause")
		if page := ana.get(path); !strings.Contains(page.text, "Paused") {
			t.Errorf("paused: %s", page.text)
		}
		ana.post(path + "/resume")
		if page := ana.get(path); strings.Contains(page.text, "Paused") {
			t.Errorf("resumed: %s", page.text)
		}

		ben := s.pro("ben@example.com")
		for _, method := range []string{"", "/test", "/rotate", "/pause", "/resume", "/remove", "/replay"} {
			got := ben.get(path)
			if method != "" {
				got = ben.post(path + method)
			}
			if got.Code != 404 {
				t.Errorf("another's endpoint%s: %d", method, got.Code)
			}
		}
		if page := ana.get(path); page.Code != 200 || !strings.Contains(page.text, ">Pause<") {
			t.Error("another has changed it")
		}
		ana.post(path + "/remove")
		if page := ana.get(path); page.Code != 404 {
			t.Errorf("removed: %d", page.Code)
		}
	})
}

func TestWrongEndpoints(t *testing.T) {
	s := onSQLite(t)
	ana := s.pro("ana@example.com")
	for _, form := range [][]string{
		{"url", ""}, {"url", "ftp://example.com"}, {"url", "http://example.com/x"}, {"url", "https://user:word@example.com"},
		{"url", "https://10.0.0.1/"}, {"url", "https://example.com", "type", "tool.exploded"}, {"url", "https://example.com", "categories", "A B!"},
	} {
		page := ana.post("/account/webhooks", form...)
		if page.Code != 400 || !strings.Contains(page.text, `role="alert"`) {
			t.Errorf("%v: %d", form, page.Code)
		}
	}
	for i := range 10 {
		if page := ana.post("/account/webhooks", "url", fmt.Sprintf("https://example.com/%d", i)); page.Code != 200 {
			t.Fatalf("endpoint %d: %d", i, page.Code)
		}
	}
	if page := ana.get("/account/webhooks"); !strings.Contains(page.text, "10 of 10 endpoints") || strings.Contains(page.text, `id="url"`) {
		t.Error("there is room for an eleventh")
	}
	if page := ana.post("/account/webhooks", "url", "https://example.com/more"); page.Code != 400 {
		t.Errorf("the eleventh: %d", page.Code)
	}

	dev := s.signIn("dev@example.com")
	if page := dev.get("/account/webhooks"); !strings.Contains(page.text, "part of") || strings.Contains(page.text, `id="url"`) {
		t.Error("a Developer sees the form")
	}
	if page := dev.post("/account/webhooks", "url", "https://example.com"); page.Code != 403 {
		t.Errorf("a Developer adds: %d", page.Code)
	}
}

// Every attempt of the last 30 days can be come to, also the 101st, and those
// that failed by themselves.
func TestOlderAttempts(t *testing.T) {
	testkit.EachStore(t, func(t *testing.T, db *store.Store) {
		s := newSite(t, db)
		ana := s.pro("ana@example.com")
		ana.post("/account/webhooks", "url", "https://example.com/hook")
		e := db.Current().Endpoint.Query().OnlyX(t.Context())
		path := endpointPath(e)
		const all = 2*shownAttempts + 1
		rows := make([]*ent.AttemptCreate, all)
		for i := range rows { // two at a time, every other one failed
			rows[i] = db.Write.Attempt.Create().SetEndpointID(e.ID).SetEvent(i + 1).SetType("tool.created").SetNumber(1).
				SetAt(s.now().UTC().Add(time.Duration(i/2-all) * time.Second)).SetStatus(500 - 300*(i%2)).SetTookMs(1).SetAnswer("").SetDelivered(i%2 == 1)
		}
		if err := db.Write.Attempt.CreateBulk(rows...).Exec(t.Context()); err != nil {
			t.Fatal(err)
		}
		for name, want := range map[string]struct {
			address string
			events  []int
		}{
			"all":    {path, numbersDown(all, 1, 1)},
			"failed": {path + "?failed=1", numbersDown(all, 1, 2)},
		} {
			var got []int
			pages := 0
			for address := want.address; address != ""; pages++ {
				page := ana.get(address)
				if page.Code != 200 {
					t.Fatalf("%s: %d", address, page.Code)
				}
				for _, found := range attemptShown.FindAllStringSubmatch(page.text, -1) {
					number, _ := strconv.Atoi(found[1])
					got = append(got, number)
				}
				address = ""
				if older := olderLink.FindStringSubmatch(page.text); older != nil {
					address = html.UnescapeString(older[1])
				}
			}
			if !slices.Equal(got, want.events) || pages != (len(want.events)+shownAttempts-1)/shownAttempts {
				t.Errorf("%s: %d pages have %v", name, pages, got)
			}
		}
		// Another's attempt, one that is forgotten, and nonsense.
		for address, text := range map[string]string{
			path + "?before=999999": "There is nothing older", path + "?before=-3": "Older", path + "?before=x": "Older", path + "?before=99999999999999999999": "Older",
		} {
			if page := ana.get(address); page.Code != 200 || !strings.Contains(page.text, text) {
				t.Errorf("%s: %d %s", address, page.Code, page.text)
			}
		}
	})
}

var (
	attemptShown = regexp.MustCompile(`<td><code>tool.created</code> evt_(\d+)</td>`)
	olderLink    = regexp.MustCompile(`<a rel="next" href="([^"#]+)#attempts">Older</a>`)
)

func numbersDown(from, to, step int) (all []int) {
	for n := from; n >= to; n -= step {
		all = append(all, n)
	}
	return all
}

// While a receiver wants to be left alone, its owner sees until when.
func TestLeftAlonePage(t *testing.T) {
	s := onSQLite(t)
	ana := s.pro("ana@example.com")
	ana.post("/account/webhooks", "url", "https://example.com/hook")
	e := s.db.Current().Endpoint.Query().OnlyX(t.Context())
	for until, want := range map[time.Duration]bool{time.Hour: true, -time.Hour: false} {
		s.db.Write.Endpoint.UpdateOne(e).SetNotBefore(s.now().UTC().Add(until)).ExecX(t.Context())
		if page := ana.get(endpointPath(e)); strings.Contains(page.text, "asked to be left alone until") != want {
			t.Errorf("%s from now: %s", until, page.text)
		}
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
		path := endpointPath(db.Current().Endpoint.Query().OnlyX(t.Context()))
		for range 10 {
			wantPage(t, ana.post(path+"/test"), http.StatusOK)
		}
		got := ana.post(path + "/test")
		wantPage(t, got, http.StatusTooManyRequests, "An account can send 10 test events per minute. Try again in")
		if seconds, err := strconv.Atoi(got.Header().Get("Retry-After")); err != nil || seconds < 1 || seconds > 60 {
			t.Errorf("got Retry-After %q, want 1 to 60", got.Header().Get("Retry-After"))
		}
		if calls.Load() != 10 {
			t.Errorf("got %d calls, want 10", calls.Load())
		}
	})
}
