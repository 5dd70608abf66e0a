package billing

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stripe/stripe-go/v86"

	"palmares/auth"
	"palmares/ent"
	"palmares/internal/core/problem"
)

// promised is the price as SetUp makes it.
func promised() map[string]any {
	return map[string]any{
		"id": "price_found", "currency": "eur", "unit_amount": 9900, "tax_behavior": "exclusive",
		"recurring": map[string]any{"interval": "month", "interval_count": 1},
	}
}

func TestSetUpMakesThePrice(t *testing.T) {
	eachShop(t, func(t *testing.T, s *shop) {
		id, made, err := s.SetUp(t.Context())
		if err != nil || !made || id == "" {
			t.Fatalf("%q, %v, %v", id, made, err)
		}
		wantForm(t, s.peer.only(t, "GET /v1/prices"), map[string]string{"lookup_keys[0]": "pro_monthly", "active": "true"})
		wantForm(t, s.peer.only(t, "POST /v1/prices"), map[string]string{
			"currency": "eur", "unit_amount": "9900", "recurring[interval]": "month", "tax_behavior": "exclusive",
			"lookup_key": "pro_monthly", "product_data[name]": "palmarès Pro",
		})
	})
}

func TestSetUpFindsThePrice(t *testing.T) {
	eachShop(t, func(t *testing.T, s *shop) {
		s.peer.prices = []map[string]any{promised()}
		id, made, err := s.SetUp(t.Context())
		if err != nil || made || id != "price_found" {
			t.Errorf("%q, %v, %v", id, made, err)
		}
		if len(s.peer.made("POST /v1/prices")) > 0 {
			t.Error("a second price was made")
		}
	})
}

func TestSetUpRefusesAnotherPrice(t *testing.T) {
	eachShop(t, func(t *testing.T, s *shop) {
		for field, wrong := range map[string]any{
			"currency": "usd", "unit_amount": 990, "tax_behavior": "inclusive",
			"recurring": map[string]any{"interval": "year", "interval_count": 1},
		} {
			price := promised()
			price[field] = wrong
			s.peer.prices = []map[string]any{price}
			_, _, err := s.SetUp(t.Context())
			wantProblem(t, err, problem.BadInput)
		}
		quarterly := promised()
		quarterly["recurring"] = map[string]any{"interval": "month", "interval_count": 3}
		s.peer.prices = []map[string]any{quarterly}
		_, _, err := s.SetUp(t.Context())
		wantProblem(t, err, problem.BadInput)
		if len(s.peer.made("POST /v1/prices")) > 0 {
			t.Error("a second price was made")
		}
	})
}

// A price that is not set is found once, by its lookup key.
func TestSubscribeFindsThePrice(t *testing.T) {
	eachShop(t, func(t *testing.T, s *shop) {
		s.Price = ""
		_, err := s.Subscribe(t.Context(), s.account)
		wantProblem(t, err, problem.Unavailable)
		s.peer.prices = []map[string]any{promised()}
		for range 2 {
			if _, err := s.Subscribe(t.Context(), s.account); err != nil {
				t.Fatal(err)
			}
			s.wait(61 * time.Second) // another click, not the same again
		}
		for _, checkout := range s.peer.made("POST /v1/checkout/sessions") {
			if got := checkout.form.Get("line_items[0][price]"); got != "price_found" {
				t.Errorf("sold at %q", got)
			}
		}
		if n := len(s.peer.made("GET /v1/prices")); n != 2 {
			t.Errorf("looked up %d times", n)
		}
	})
}

// wantNotOpen checks that nothing is sold, that our visitors need not know why,
// and that the log says what to do about it.
func (s *shop) wantNotOpen(todo string) {
	s.t.Helper()
	_, err := s.Subscribe(s.t.Context(), s.account)
	wantProblem(s.t, err, problem.Unavailable)
	if got := problem.Of(err).Message; got != "Subscription is not open at the moment." {
		s.t.Errorf("said %q", got)
	}
	for line := range strings.Lines(s.log.String()) {
		if strings.Contains(line, `"level":"ERROR"`) && strings.Contains(line, todo) {
			return
		}
	}
	s.t.Errorf("the log does not say %q: %s", todo, s.log)
}

// A price that is missing is not a customer that is missing.
func TestMissingPrice(t *testing.T) {
	eachShop(t, func(t *testing.T, s *shop) {
		s.Price = ""
		s.peer.prices = []map[string]any{promised()}
		if _, err := s.Subscribe(t.Context(), s.account); err != nil {
			t.Fatal(err)
		}
		s.peer.forget("price_found")
		s.wait(time.Minute)
		s.wantNotOpen("run palmares billing setup")
		if row := s.row(); row.AccountID == nil || row.Email == "" {
			t.Error("the customer was unlinked")
		}
		another := promised()
		another["id"] = "price_another"
		s.peer.prices = []map[string]any{another}
		if _, err := s.Subscribe(t.Context(), s.account); err != nil {
			t.Errorf("once it is set up again: %v", err)
		}
		s.wantCustomers(1)
		if n := len(s.peer.made("POST /v1/customers")); n != 1 {
			t.Errorf("%d customers were made", n)
		}
	})
}

func TestMissingPriceOfTheOperator(t *testing.T) {
	eachShop(t, func(t *testing.T, s *shop) {
		s.customer()
		s.peer.forget(priceID)
		s.wantNotOpen("STRIPE_PRICE")
		s.wantCustomers(1)
		if len(s.peer.made("GET /v1/prices")) > 0 {
			t.Error("another price was looked for than the operator said")
		}
	})
}

// What is sold is what the pages say.
func TestPriceThatIsNotAsPromised(t *testing.T) {
	eachShop(t, func(t *testing.T, s *shop) {
		s.Price = ""
		dear := promised()
		dear["unit_amount"] = 99900
		s.peer.prices = []map[string]any{dear}
		s.wantNotOpen("archive it, and run palmares billing setup")
		if len(s.peer.made("POST /v1/checkout/sessions")) > 0 {
			t.Error("it was sold at that price")
		}
		s.peer.prices = []map[string]any{promised()}
		if _, err := s.Subscribe(t.Context(), s.account); err != nil {
			t.Errorf("once it is put right: %v", err)
		}
	})
}

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
