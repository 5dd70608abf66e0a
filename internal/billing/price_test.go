package billing

import (
	"testing"
	"time"

	"palmares/internal/problem"
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
		s.price.Store(nil)
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
