package billing

import (
	"net/http"
	"testing"

	"github.com/stripe/stripe-go/v86"

	"palmares/auth"
	"palmares/internal/core/problem"
)

func TestClose(t *testing.T) {
	eachShop(t, func(t *testing.T, s *shop) {
		if err := s.Close(t.Context(), s.account); err != nil { // nobody's customer
			t.Fatal(err)
		}
		live, over := s.subscribed(), s.begun(stripe.SubscriptionStatusCanceled)
		s.peer.set("cus_1", live, over)
		if err := s.Close(t.Context(), s.account); err != nil {
			t.Fatal(err)
		}
		s.peer.only(t, "DELETE /v1/subscriptions/"+live.id)
		if len(s.peer.made("DELETE /v1/subscriptions/"+over.id)) > 0 {
			t.Error("what was over was ended again")
		}
		if err := s.accounts.Delete(t.Context(), s.account); err != nil {
			t.Fatal(err)
		}
		if row := s.row(); row.AccountID != nil || row.Status != "canceled" || row.Email != "" {
			t.Errorf("%v", row)
		}
		// Nor does it come back where its change was being told to Stripe.
		s.look(t.Context())
		stale := s.row()
		stale.Edges.Account = s.account
		if err := s.rename(t.Context(), stale); err != nil {
			t.Fatal(err)
		}
		if email := s.row().Email; email != "" {
			t.Errorf("%s is known again", email)
		}
	})
}

// A page to pay on that is open cannot be paid once its account is gone.
func TestCloseWithAnOpenCheckout(t *testing.T) {
	eachShop(t, func(t *testing.T, s *shop) {
		s.customer()
		s.peer.sessions = []map[string]any{{"id": "cs_open", "status": "open"}, {"id": "cs_paid", "status": "complete"}}
		if err := s.Close(t.Context(), s.account); err != nil {
			t.Fatal(err)
		}
		wantForm(t, s.peer.only(t, "GET /v1/checkout/sessions"), map[string]string{"customer": "cus_1", "status": "open"})
		s.peer.only(t, "POST /v1/checkout/sessions/cs_open/expire")
		if len(s.peer.made("POST /v1/checkout/sessions/cs_paid/expire")) > 0 {
			t.Error("one that was paid was ended, too")
		}
	})
}

func TestCloseAsStripeFails(t *testing.T) {
	eachShop(t, func(t *testing.T, s *shop) {
		s.subscribed()
		before := s.row()
		s.peer.breakWith(internalError)
		err := s.Close(t.Context(), s.account)
		wantProblem(t, err, problem.Unavailable)
		s.wantOwnWords(problem.Of(err).Message)
		s.wantPlan(auth.Pro)
		if after := s.row(); after.String() != before.String() {
			t.Errorf("%v became %v", before, after)
		}
	})
}

// Somebody pays on a page that was left open, after the account is gone.
func TestPaidForADeletedAccount(t *testing.T) {
	eachShop(t, func(t *testing.T, s *shop) {
		s.customer()
		if err := s.accounts.Delete(t.Context(), s.account); err != nil {
			t.Fatal(err)
		}
		sub := s.begun(stripe.SubscriptionStatusActive)
		s.peer.set("cus_1", sub)
		s.wantAnswer(s.send(s.event(stripe.EventTypeCheckoutSessionCompleted)), http.StatusOK)

		s.peer.breakWith(internalError)
		s.look(t.Context())
		if status := s.row().Status; status != "active" {
			t.Fatalf("it is %q", status)
		}
		s.peer.mend()
		for range 2 {
			s.look(t.Context())
		}
		s.peer.only(t, "DELETE /v1/subscriptions/"+sub.id)
		if row := s.row(); row.AccountID != nil || row.Status != "canceled" {
			t.Errorf("%v", row)
		}
	})
}
