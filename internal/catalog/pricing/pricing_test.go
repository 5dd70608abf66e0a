package pricing_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"palmares/internal/catalog/pricing"
	"palmares/internal/dev/check"
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
		amount, period, ok := pricing.Parse(price)
		check.True(t, !ok, "%q: got %v and %q, want an error", price, amount, period)
	}
}

func TestPercent(t *testing.T) {
	for _, c := range []struct {
		from, to float64
		want     string
	}{
		{16, 9.5, "-40.63"}, // -40.625
		{16, 22.5, "40.63"},
		{800, 801, "0.13"}, // 0.125
		{800, 799, "-0.13"},
		{3, 1, "-66.67"},
		{19.9, 24.9, "25.13"},
		{0.1, 0.3, "200"},
		{1e9, 1e9 - 0.01, "0"},
		{20, 0, "-100"},
		{0, 20, "none"},
		{math.NaN(), 20, "none"},
		{20, math.Inf(1), "none"},
		{5e-324, 1e308, "none"},
	} {
		got := "none"
		if percent := pricing.Percent(c.from, c.to); percent != nil {
			got = fmt.Sprint(*percent)
		}
		check.Equal(t, got, c.want, "from %v to %v", c.from, c.to)
	}
}

// Percentages of prices in cents are those of integer arithmetic, whatever floats
// are between.
func TestPercentIsExact(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 35))
	halves := 0
	for range 20_000 {
		from, to := 1+r.IntN(5_000), r.IntN(10_000)
		hundredths, rest := (to-from)*10_000/from, (to-from)*10_000%from
		if 2*rest >= from {
			hundredths++
		} else if -2*rest >= from {
			hundredths--
		}
		if 2*rest == from || -2*rest == from {
			halves++
		}
		got := pricing.Percent(float64(from)/100, float64(to)/100)
		want := float64(hundredths) / 100
		check.True(t, got != nil && *got == want, "from %d to %d cents: got %v, want %v", from, to, got, want)
	}
	check.True(t, halves >= 20, "got %d halves, want at least 20", halves)
}

func TestCompare(t *testing.T) {
	for _, c := range []struct{ from, to, want string }{
		{"10 €/mois", "15 €/mois", "up 50"},
		{"15 €/mois", "10 €/mois", "down -33.33"},
		{"10 €/mois", "10,00 €/month", "same 0"},
		{"120 €/an", "10 €/mois", "same 0"},
		{"120 €/an", "12 €/poste / mois", "up 20"},
		{"0 €/mois", "5 €/mois", "up"},
		{"1 €/heure", "2 €/h", "up 100"}, // one period, in two spellings
		{"1 €/heure", "1 €/seconde", ""},
		{"1 €/heure", "20 €/mois", ""},
		{"20 €/mois", "1 €/heure", ""},
		{"2 €/image", "1 €/image", "down -50"},
		{"2 €/image", "1 €/document", ""}, // other things
		{"2 €/lune", "1 €/lune", "down -50"},
		{"2 €/lune", "1 €/étoile", ""},
		{"2000000000 €/mois", "1000000000 €/mois", "down -50"},
	} {
		got, percent := pricing.Compare(pricing.Read(c.from), pricing.Read(c.to))
		if percent != nil {
			got += fmt.Sprintf(" %v", *percent)
		}
		check.Equal(t, got, c.want, "%s to %s", c.from, c.to)
	}
}

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
		again := pricing.Read(written)
		check.True(t, again.Amount == amount && again.Unit == unit && again.Billing == price.Billing, "%q: got %+v after writing, want %+v", text, again, price)
		if _, _, ok := pricing.Parse(other); !ok {
			return
		}
		opposite := map[string]string{pricing.Up: pricing.Down, pricing.Down: pricing.Up, pricing.Same: pricing.Same, "": ""}
		there, _ := pricing.Compare(price, pricing.Read(other))
		back, _ := pricing.Compare(pricing.Read(other), price)
		check.Equal(t, opposite[there], back, "from %q to %q: %q", text, other, there)
	})
}
