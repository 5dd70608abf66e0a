package words

import (
	"palmares/internal/catalog/pricing"
	"palmares/internal/core/lang"
)

// periods are the periods of prices in the catalog, which is in French.
var periods = map[string]string{
	"mois": "month", "an": "year", "année": "year", "semaine": "week", "jour": "day", "heure": "hour", "seconde": "second",
	"utilisateur": "user", "utilisateur/mois": "user/month", "poste/mois": "seat/month", "requête": "request", "usage": "use", "image": "image", "crédit": "credit",
}

// Period returns the word for the period of a price. ok is false if it has none in the
// language.
func Period(l lang.Language, period string) (name string, ok bool) {
	if l == lang.French {
		return period, true
	}
	name, ok = periods[period]
	return name, ok
}

// Price formats a price of the catalog, such as "19 €/mois". ok is false if it is none, or
// if its period has no word in the language.
func Price(l lang.Language, price string) (text string, ok bool) {
	amount, period, isPrice := pricing.Parse(price)
	name, ok := Period(l, period)
	switch {
	case isPrice && amount == 0:
		return l.Text("Free"), true
	case isPrice && ok:
		return l.Euros(amount) + "/" + name, true
	}
	return price, false
}
