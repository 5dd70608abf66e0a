// Package feedtest makes small feeds for tests.
package feedtest

import (
	"bytes"
	"fmt"

	"palmares/internal/catalog/feed"
)

// Catalog writes a feed of a date with the categories code and voix and these
// records.
func Catalog(date string, records ...any) []byte {
	return Of(date, append([]any{&feed.Category{Slug: "code", Label: "Code"}, &feed.Category{Slug: "voix", Label: "Voix"}}, records...)...)
}

// Of writes a feed of a date with these records alone.
func Of(date string, records ...any) []byte {
	var buf bytes.Buffer
	out := feed.NewWriter(&buf, date)
	for _, rec := range records {
		switch rec := rec.(type) {
		case *feed.Category:
			out.Write(rec)
		case *feed.Tool:
			out.Write(rec)
		case *feed.Retired:
			out.Write(rec)
		case *feed.Comparison:
			out.Write(rec)
		default:
			panic(fmt.Sprintf("%T is no record", rec))
		}
	}
	if err := out.Flush(); err != nil {
		panic(err)
	}
	return buf.Bytes()
}

// Tool is a tool with everything that a tool must have.
func Tool(slug string, change ...func(*feed.Tool)) *feed.Tool {
	score := 7.5
	t := &feed.Tool{
		Slug: slug, Name: "Outil " + slug, Domain: slug + ".example", Category: "code", ICP: "mixte",
		Pricing: "payant", Price: "20 €/mois", Score: &score, Tagline: "Un outil.",
		CanonicalURL: "https://palmares.example/" + slug, AlternativesURL: "https://palmares.example/alt/" + slug,
		UpdatedAt: "2026-11-01", Tier: 3,
		Sections: []feed.Section{{Section: "verdict", Text: "Bien."}},
	}
	for _, f := range change {
		f(t)
	}
	return t
}
