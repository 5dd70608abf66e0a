package site

import (
	"html/template"
	"strings"

	"palmares/internal/catalog/pricing"
	"palmares/internal/core/lang"
	"palmares/internal/web/words"
)

// formatPrice formats a price of the catalog for a template, such as "19 €/mois" or, inWords,
// "19 € par mois". Lists compare prices per month, so one per year has both then. A price whose
// period has no English name stays in French, which is marked on an English page.
func formatPrice(l lang.Language, price string, inWords bool) template.HTML {
	text, ok := words.Price(l, price)
	if p := pricing.Read(price); ok && inWords {
		text = strings.ReplaceAll(text, "/", l.Text(" per "))
		if p.Billing == pricing.Year && p.Monthly > 0 {
			text = l.Text("%s (%s per month)", text, l.Euros(p.Monthly))
		}
	}
	escaped := template.HTMLEscapeString(text)
	if attribute := catalogLang(l); !ok && attribute != "" {
		escaped = "<span " + string(attribute) + ">" + escaped + "</span>"
	}
	return template.HTML(escaped) //nolint:gosec // escaped
}

// priceText formats a price without marking its language.
func priceText(l lang.Language, price string) string {
	text, _ := words.Price(l, price)
	return text
}
