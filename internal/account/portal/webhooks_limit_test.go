package portal

import (
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync/atomic"
	"testing"

	"palmares/internal/core/store"
	"palmares/internal/dev/testkit"
)

// The page says when the next test event may be sent.
func TestTestEventLimitPage(t *testing.T) {
	testkit.EachStore(t, func(t *testing.T, db *store.Store) {
		var calls atomic.Int64
		receiver := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { calls.Add(1) }))
		defer receiver.Close()
		s := newSite(t, db)
		ana := s.pro("ana@example.com")
		ana.post("/account/webhooks", "url", receiver.URL)
		path := hookPath(db.Current().Endpoint.Query().OnlyX(t.Context()))
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
