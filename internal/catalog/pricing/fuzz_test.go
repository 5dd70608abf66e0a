package pricing_test

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"palmares/internal/catalog/pricing"
	"palmares/internal/dev/check"
)

// FuzzPrice checks that a price has a finite amount and a known period, that writing it
// again changes nothing, and that a change and its reverse have opposite directions.
func FuzzPrice(f *testing.F) {
	f.Add("20 €/mois", "19,90 €/poste / mois")
	f.Add("20 €/mois", "240 €/an")
	f.Add("0 €/an", "1.5 €/image")
	f.Add("9999999999999999999999 €/h", "0,000000000001 €/ an")
	f.Fuzz(func(t *testing.T, text, other string) {
		amount, unit, ok := pricing.Parse(text)
		if !ok {
			return
		}
		price := pricing.Read(text)
		known := slices.Contains([]string{pricing.Month, pricing.Year, pricing.SeatMonth, pricing.Hour, pricing.Second, pricing.Use, pricing.Other}, price.Billing)
		if amount < 0 || math.IsInf(amount, 0) || math.IsNaN(amount) || strings.Trim(unit, " \t\n\f\r") != unit || unit == "" || !known || price.Monthly < 0 || price.Monthly > amount+0.01 {
			t.Errorf("%q: got %v, %q and %+v, want an amount per period", text, amount, unit, price)
		}
		written := strconv.FormatFloat(amount, 'f', -1, 64) + " €/" + unit
		if again := pricing.Read(written); again.Amount != amount || again.Unit != unit || again.Billing != price.Billing {
			t.Errorf("%q: got %+v after writing, want %+v", text, again, price)
		}
		if _, _, ok := pricing.Parse(other); !ok {
			return
		}
		opposite := map[string]string{pricing.Up: pricing.Down, pricing.Down: pricing.Up, pricing.Same: pricing.Same, "": ""}
		there, _ := pricing.Compare(price, pricing.Read(other))
		back, _ := pricing.Compare(pricing.Read(other), price)
		check.Equal(t, opposite[there], back, "from %q to %q: %q", text, other, there)
	})
}
