package billing

import (
	"maps"
	"strings"
	"testing"
	"time"

	"palmares/internal/core/problem"
	"palmares/internal/dev/check"
)

// advertised is the price that SetUpPrice creates.
func advertised() map[string]any {
	return map[string]any{
		"id": "price_found", "currency": "eur", "unit_amount": 9900, "tax_behavior": "exclusive",
		"recurring": map[string]any{"interval": "month", "interval_count": 1},
	}
}

// The price is created once, then found. Another price is rejected.
func TestSetUpPrice(t *testing.T) {
	eachFixture(t, func(t *testing.T, s *fixture) {
		id, created, err := s.SetUpPrice(t.Context())
		check.OK(t, err)
		check.Must(t, created, true, id)
		check.MustTrue(t, id != "", "got %q, %v, want a new price", id, created)
		wantForm(t, s.fake.only(t, "GET /v1/prices"), map[string]string{"lookup_keys[0]": "pro_monthly", "active": "true"})
		wantForm(t, s.fake.only(t, "POST /v1/prices"), map[string]string{
			"currency": "eur", "unit_amount": "9900", "recurring[interval]": "month", "tax_behavior": "exclusive",
			"lookup_key": "pro_monthly", "product_data[name]": "palmarès Pro",
		})
		s.fake.prices = []map[string]any{advertised()}
		id, created, err = s.SetUpPrice(t.Context())
		check.OK(t, err)
		check.Equal(t, created, false)
		check.Equal(t, id, "price_found")
		for _, wrong := range []map[string]any{
			{"currency": "usd"}, {"unit_amount": 990}, {"tax_behavior": "inclusive"},
			{"recurring": map[string]any{"interval": "year", "interval_count": 1}}, {"recurring": map[string]any{"interval": "month", "interval_count": 3}},
		} {
			price := advertised()
			maps.Copy(price, wrong)
			s.fake.prices = []map[string]any{price}
			_, _, err := s.SetUpPrice(t.Context())
			wantProblem(t, err, problem.BadInput)
		}
		s.fake.only(t, "POST /v1/prices")
	})
}

// The price is looked up once.
func TestSubscribeFindsPrice(t *testing.T) {
	eachFixture(t, func(t *testing.T, s *fixture) {
		s.foundPrice.Store(nil)
		_, err := s.Subscribe(t.Context(), s.account)
		wantProblem(t, err, problem.Unavailable)
		s.fake.prices = []map[string]any{advertised()}
		for range 2 {
			check.Try(s.Subscribe(t.Context(), s.account)).OK(t)
			s.wait(61 * time.Second) // for another idempotency key
		}
		for _, checkout := range s.fake.requests("POST /v1/checkout/sessions") {
			check.Equal(t, checkout.form.Get("line_items[0][price]"), "price_found", "price")
		}
		check.Equal(t, len(s.fake.requests("GET /v1/prices")), 2, "lookups")
	})
}

// wantUnavailable expects that subscribing fails without details for the user,
// and that the log contains instructions.
func (s *fixture) wantUnavailable(todo string) {
	s.t.Helper()
	_, err := s.Subscribe(s.t.Context(), s.account)
	wantProblem(s.t, err, problem.Unavailable)
	check.Equal(s.t, problem.Of(err).Message, "Subscriptions are not available at the moment.", "want no details")
	for line := range strings.Lines(s.log.String()) {
		if strings.Contains(line, `"level":"ERROR"`) && strings.Contains(line, todo) {
			return
		}
	}
	s.t.Errorf("got log %s, want %q", s.log, todo)
}

// A missing price is not mistaken for a missing customer.
func TestMissingPrice(t *testing.T) {
	eachFixture(t, func(t *testing.T, s *fixture) {
		s.foundPrice.Store(nil)
		s.fake.prices = []map[string]any{advertised()}
		check.Try(s.Subscribe(t.Context(), s.account)).OK(t)
		s.fake.deleteObject("price_found")
		s.wait(time.Minute)
		s.wantUnavailable("run palmares billing setup")
		row := s.row()
		check.True(t, row.AccountID != nil && row.Email != "", "got the customer unlinked, want it unchanged")
		another := advertised()
		another["id"] = "price_another"
		s.fake.prices = []map[string]any{another}
		_, err := s.Subscribe(t.Context(), s.account)
		check.Equal(t, err, nil, "after SetUpPrice")
		s.wantCustomers(1)
		check.Equal(t, len(s.fake.requests("POST /v1/customers")), 1, "customers")
	})
}

// Pro is sold only at the advertised price.
func TestPriceNotAsAdvertised(t *testing.T) {
	eachFixture(t, func(t *testing.T, s *fixture) {
		s.foundPrice.Store(nil)
		dear := advertised()
		dear["unit_amount"] = 99900
		s.fake.prices = []map[string]any{dear}
		s.wantUnavailable("archive it and run palmares billing setup")
		check.Equal(t, len(s.fake.requests("POST /v1/checkout/sessions")), 0)
		s.fake.prices = []map[string]any{advertised()}
		_, err := s.Subscribe(t.Context(), s.account)
		check.Equal(t, err, nil, "after correcting the price")
	})
}
