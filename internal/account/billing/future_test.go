package billing

import (
	"math"
	"net/http"
	"testing"
	"time"

	"github.com/stripe/stripe-go/v86"

	"palmares/auth"
)

// An event whose signature is dated ahead could be replayed until that time
// comes, so it is refused like one that is too old.
func TestEventSignedInTheFuture(t *testing.T) {
	eachShop(t, func(t *testing.T, s *shop) {
		s.customer()
		s.peer.set("cus_1", s.begun(stripe.SubscriptionStatusActive))
		event := s.event(stripe.EventTypeCustomerSubscriptionCreated)
		for name, at := range map[string]time.Time{
			"6 minutes":   time.Now().Add(6 * time.Minute),
			"10 years":    time.Now().AddDate(10, 0, 0),
			"end of time": time.Unix(math.MaxInt64, 0),
		} {
			w := s.deliver(t.Context(), event, signed(event, webhookSecret, at))
			if w.Code != http.StatusBadRequest {
				t.Errorf("%s ahead: got %d %s, want 400", name, w.Code, w.Body)
			}
			s.wantOwnWords(w.Body.String())
		}
		s.wantPlan(auth.Developer)
		if got := s.applied(); got != 0 {
			t.Errorf("got %d applied events, want 0", got)
		}
		// Clocks differ a little.
		s.wantAnswer(s.deliver(t.Context(), event, signed(event, webhookSecret, time.Now().Add(4*time.Minute))), http.StatusOK)
		s.wantPlan(auth.Pro)
	})
}
