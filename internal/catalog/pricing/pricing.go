// Package pricing parses the catalog's prices, such as "20 €/mois": an amount in
// euros and a period.
package pricing

import (
	"math"
	"math/big"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"palmares/internal/core/text"
)

// Pattern matches a price. It means the same in JavaScript, for JSON Schemas.
const Pattern = `^([0-9]+(?:[.,][0-9]+)?) €/([^\x00\t\n\f\r ](?:[^\x00\n]*[^\x00\t\n\f\r ])?)$`

var form = regexp.MustCompile(Pattern)

// Parse splits a price into its amount in euros and its period.
func Parse(s string) (amount float64, period string, ok bool) {
	parts := form.FindStringSubmatch(s)
	if parts == nil {
		return 0, "", false
	}
	amount, err := strconv.ParseFloat(strings.Replace(parts[1], ",", ".", 1), 64)
	return amount, parts[2], err == nil
}

// The billing periods. Feeds may spell them freely: see Period.
const (
	Month     = "month"
	Year      = "year"
	SeatMonth = "seat_month"
	Hour      = "hour"
	Second    = "second"
	Use       = "use"
	Other     = "other"
)

// units maps the spellings of one-word periods, in lower case and without accents.
var units = map[string]string{
	"mois": Month, "month": Month,
	"an": Year, "annee": Year, "year": Year,
	"heure": Hour, "h": Hour, "hour": Hour,
	"seconde": Second, "s": Second, "second": Second,
	"usage": Use, "utilisation": Use, "use": Use, "appel": Use, "requete": Use,
	"request": Use, "image": Use, "generation": Use, "credit": Use, "document": Use,
}

// seatWords are the words for one of several users.
var seatWords = []string{"poste", "siege", "utilisateur", "utilisatrice", "personne", "membre", "licence", "seat", "user"}

// Period classifies the period of a price: "mois" is Month, and "poste / mois" or
// "mois par utilisateur" are SeatMonth.
func Period(period string) string {
	var unit string
	seat := false
	for _, word := range text.Words(period) {
		switch known, ok := units[word]; {
		case slices.Contains(seatWords, word):
			seat = true
		case word == "par" || word == "per":
		case !ok || unit != "":
			return Other
		default:
			unit = known
		}
	}
	switch {
	case unit == "":
		return Other
	case !seat:
		return unit
	case unit == Month:
		return SeatMonth
	}
	return Other
}

// maxAmount is far above any price, and low enough that sums of prices are exact to
// the cent.
const maxAmount = 1e9

// Monthly returns the price per month, rounded to cents, or NaN unless the billing
// period is a month or a year.
func Monthly(amount float64, billing string) float64 {
	switch {
	case amount > maxAmount:
	case billing == Month, billing == SeatMonth:
		return text.Round(amount)
	case billing == Year:
		return text.Round(amount / 12)
	}
	return math.NaN()
}

// Price is a parsed price. Monthly is NaN if there is no price per month.
type Price struct {
	Amount, Monthly float64
	Unit            string // the period as the price spells it
	Billing         string // the period
}

// Read parses a price that an import has checked.
func Read(s string) Price {
	amount, unit, _ := Parse(s)
	billing := Period(unit)
	return Price{amount, Monthly(amount, billing), unit, billing}
}

// Directions of a price change.
const (
	Up   = "up"
	Down = "down"
	Same = "same"
)

// Compare returns the direction of a price change, or "" if the prices cannot be
// compared, and the change in percent, or nil if there is none.
func Compare(from, to Price) (direction string, percent *float64) {
	before, after := from.Monthly, to.Monthly
	if math.IsNaN(before) || math.IsNaN(after) {
		if from.Unit != to.Unit && (from.Billing != to.Billing || from.Billing == Other || from.Billing == Use) {
			return "", nil
		}
		before, after = from.Amount, to.Amount
	}
	switch {
	case after > before:
		direction = Up
	case after < before:
		direction = Down
	default:
		direction = Same
	}
	return direction, Percent(before, after)
}

// Percent returns the difference as a percentage of the first value, or nil if that
// value is 0. It rounds to two decimals, halves away from zero, and computes with
// fractions, because the nearest float to a half may be on either side of it.
func Percent(from, to float64) *float64 {
	before, after := fraction(from), fraction(to)
	if before == nil || after == nil || before.Sign() == 0 {
		return nil
	}
	ratio := after.Sub(after, before)
	ratio.Quo(ratio, before).Mul(ratio, big.NewRat(100, 1))
	percent, err := strconv.ParseFloat(ratio.FloatString(2), 64)
	if err != nil { // out of range
		return nil
	}
	percent += 0 // turns -0 into 0
	return &percent
}

// fraction returns the decimal number that a value was read from, or nil if it is not
// a number.
func fraction(value float64) *big.Rat {
	exact, _ := new(big.Rat).SetString(strconv.FormatFloat(value, 'f', -1, 64))
	return exact
}
