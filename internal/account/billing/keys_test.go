package billing

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/stripe/stripe-go/v86"

	"palmares/auth"
	"palmares/ent"
)

// Keys beyond the plan rest, the newest first, and come back with Pro.
func TestKeys(t *testing.T) {
	eachShop(t, func(t *testing.T, s *shop) {
		sub := s.subscribed()
		var keys []string
		for range 10 {
			text, _, err := s.accounts.CreateKey(t.Context(), s.account, "")
			if err != nil {
				t.Fatal(err)
			}
			keys = append(keys, text)
		}
		s.wantOpen(keys, 10)
		sub.status = stripe.SubscriptionStatusCanceled
		s.isNow(stripe.EventTypeCustomerSubscriptionDeleted, sub)
		s.wantOpen(keys, 3)
		s.isNow(stripe.EventTypeCustomerSubscriptionCreated, sub, s.begun(stripe.SubscriptionStatusActive))
		s.wantOpen(keys, 10)
		kept, err := s.accounts.Keys(t.Context(), s.account)
		if err != nil || len(kept) != 10 {
			t.Errorf("%d keys are left: %v", len(kept), err)
		}
	})
}

// wantOpen wants the oldest keys to open, and the others to be suspended.
func (s *shop) wantOpen(keys []string, want int) {
	s.t.Helper()
	made, err := s.accounts.Keys(s.t.Context(), s.account)
	if err != nil {
		s.t.Fatal(err)
	}
	ring := auth.NewKeyring(s.Store, s.Log).Identify(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusNoContent)
	}))
	for _, text := range keys {
		parsed, _ := auth.ParseKey(text)
		age := 0
		for made[age].ID != parsed.ID {
			age++
		}
		r := httptest.NewRequestWithContext(s.t.Context(), http.MethodGet, "/", nil)
		r.Header.Set("Authorization", "Bearer "+text)
		w := httptest.NewRecorder()
		ring.ServeHTTP(w, r)
		suspended := w.Code == http.StatusUnauthorized && strings.Contains(w.Body.String(), "suspended")
		if opens := w.Code == http.StatusNoContent; opens != (age < want) || suspended == opens {
			s.t.Errorf("of %d keys that go on, number %d: %d %s", want, age+1, w.Code, w.Body)
		}
	}
	if !slices.IsSortedFunc(made, func(a, b *ent.APIKey) int { return a.CreatedAt.Compare(b.CreatedAt) }) {
		s.t.Error("the keys are not in the order of their age")
	}
}
