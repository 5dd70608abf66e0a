package portal

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"palmares/auth"
	"palmares/internal/store"
	"palmares/internal/testdb"
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
	testdb.EachStore(t, func(t *testing.T, db *store.Store) {
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
