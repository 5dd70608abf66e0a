package pricing_test

import (
	"math"
	"testing"

	"palmares/internal/catalog/pricing"
)

func TestPrices(t *testing.T) {
	none := math.NaN()
	for price, want := range map[string]struct {
		amount  float64
		period  string
		monthly float64
	}{
		"20 €/mois":                {20, pricing.Month, 20},
		"19,90 €/Mois":             {19.9, pricing.Month, 19.9},
		"9.5 €/month":              {9.5, pricing.Month, 9.5},
		"90 €/an":                  {90, pricing.Year, 7.5},
		"100 €/année":              {100, pricing.Year, 8.33},
		"9 €/poste / mois":         {9, pricing.SeatMonth, 9},
		"9 €/mois par utilisateur": {9, pricing.SeatMonth, 9},
		"9 €/siège/mois":           {9, pricing.SeatMonth, 9},
		"90 €/poste / an":          {90, pricing.Other, none},
		"90 €/mois / an":           {90, pricing.Other, none},
		"1 €/heure":                {1, pricing.Hour, none},
		"0,001 €/seconde":          {0.001, pricing.Second, none},
		"0,02 €/image":             {0.02, pricing.Use, none},
		"2 €/requête":              {2, pricing.Use, none},
		"5 €/lune":                 {5, pricing.Other, none},
		"5 €/poste":                {5, pricing.Other, none},
		"5 €/…":                    {5, pricing.Other, none},
		"1000000000 €/mois":        {1e9, pricing.Month, 1e9},
		"1000000001 €/mois":        {1e9 + 1, pricing.Month, none},
		"0 €/mois":                 {0, pricing.Month, 0},
	} {
		amount, text, ok := pricing.Parse(price)
		period := pricing.Period(text)
		monthly := pricing.Monthly(amount, period)
		if !ok || amount != want.amount || period != want.period || monthly != want.monthly && !(math.IsNaN(monthly) && math.IsNaN(want.monthly)) {
			t.Errorf("%s: got %t, %v, %s and %v, want %v, %s and %v", price, ok, amount, period, monthly, want.amount, want.period, want.monthly)
		}
	}
	for _, price := range []string{"", "20", "20 €", "20 €/", "20€/mois", "-1 €/mois", "1e3 €/mois", "1,2,3 €/mois", "20 €/ mois"} {
		if amount, period, ok := pricing.Parse(price); ok {
			t.Errorf("%q: got %v and %q, want an error", price, amount, period)
		}
	}
}
