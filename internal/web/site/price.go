package site

import (
	"html/template"
	"strings"

	"palmares/internal/catalog/pricing"
	"palmares/internal/core/lang"
	"palmares/internal/web/words"
)

// formatPrice formats a price of the catalog, such as "19 €/mois". A price whose
// period has no English name stays in French, which attribute marks on an English
// page.
func formatPrice(l lang.Language, price string) (text string, attribute template.HTMLAttr) {
	text, ok := words.Price(l, price)
	if !ok {
		attribute = catalogLang(l)
	}
	return text, attribute
}

// priceText formats a price without marking its language.
func priceText(l lang.Language, price string) string {
	text, _ := formatPrice(l, price)
	return text
}

// showPrice formats a price for a template.
func showPrice(l lang.Language, price string) template.HTML {
	text, attribute := formatPrice(l, price)
	return marked(text, attribute)
}

// fullPrice formats a price in words. Lists compare prices per month, so one per year
// has both.
func fullPrice(l lang.Language, price string) template.HTML {
	text, attribute := formatPrice(l, price)
	if attribute == "" {
		text = strings.ReplaceAll(text, "/", l.Text(" per "))
	}
	if p := pricing.Read(price); attribute == "" && p.Billing == pricing.Year && p.Monthly > 0 {
		text = l.Text("%s (%s per month)", text, l.Euros(p.Monthly))
	}
	return marked(text, attribute)
}

func marked(text string, attribute template.HTMLAttr) template.HTML {
	escaped := template.HTMLEscapeString(text)
	if attribute != "" {
		escaped = "<span " + string(attribute) + ">" + escaped + "</span>"
	}
	return template.HTML(escaped) //nolint:gosec // escaped
}
