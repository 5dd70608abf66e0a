package record

import (
	"math"
	"slices"

	"palmares/internal/core/text"
)

// The periods that prices are for. Feeds spell them as they like.
const (
	BillingMonth     = "month"
	BillingYear      = "year"
	BillingSeatMonth = "seat_month"
	BillingHour      = "hour"
	BillingSecond    = "second"
	BillingUse       = "use"
	BillingOther     = "other"
)

// billingWords has the spellings of periods of one word, in lower case and
// without accents.
var billingWords = map[string]string{
	"mois": BillingMonth, "month": BillingMonth,
	"an": BillingYear, "annee": BillingYear, "year": BillingYear,
	"heure": BillingHour, "h": BillingHour, "hour": BillingHour,
	"seconde": BillingSecond, "s": BillingSecond, "second": BillingSecond,
	"usage": BillingUse, "utilisation": BillingUse, "use": BillingUse, "appel": BillingUse, "requete": BillingUse,
	"request": BillingUse, "image": BillingUse, "generation": BillingUse, "credit": BillingUse, "document": BillingUse,
}

// seatWords are the words for one user of many.
var seatWords = []string{"poste", "siege", "utilisateur", "utilisatrice", "personne", "membre", "licence", "seat", "user"}

// BillingPeriod classifies the period of a price: "mois" is a month, and
// "poste / mois" or "mois par utilisateur" one for each seat.
func BillingPeriod(period string) string {
	var unit string
	seat := false
	for _, word := range text.Words(period) {
		switch known, ok := billingWords[word]; {
		case slices.Contains(seatWords, word):
			seat = true
		case word == "par" || word == "per": // says nothing
		case !ok || unit != "":
			return BillingOther
		default:
			unit = known
		}
	}
	switch {
	case unit == "":
		return BillingOther
	case !seat:
		return unit
	case unit == BillingMonth:
		return BillingSeatMonth
	}
	return BillingOther
}

// maxPrice is far above any price, and low enough that sums of prices are exact
// to the cent.
const maxPrice = 1e9

// MonthlyPrice returns the price of a month for a price of a BillingPeriod,
// rounded to cents, or NaN if it is not paid by the month or year.
func MonthlyPrice(amount float64, billing string) float64 {
	switch {
	case amount > maxPrice:
	case billing == BillingMonth, billing == BillingSeatMonth:
		return text.Round(amount)
	case billing == BillingYear:
		return text.Round(amount / 12)
	}
	return math.NaN()
}
