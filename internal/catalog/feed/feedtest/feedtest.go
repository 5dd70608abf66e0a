// Package feedtest makes small feeds for tests.
package feedtest

import (
	"bytes"
	"testing"
	"time"

	"palmares/internal/catalog/feed"
	"palmares/internal/catalog/feed/demo"
	"palmares/internal/catalog/feed/synth"
	"palmares/internal/catalog/publish"
	"palmares/internal/catalog/record"
	"palmares/internal/core/store"
)

// Hostile contains characters that are easy to encode wrongly. A feed allows every
// character but NUL.
const Hostile = "<script>\"]]>\\ & é 😀 \t\r\n\x01\x1f\x7f\u2028\ufffe 'x' €"

// Catalog returns a feed with the categories code and voix and these records.
func Catalog(date string, records ...any) []byte {
	return Of(date, append([]any{&record.Category{Slug: "code", Label: "Code"}, &record.Category{Slug: "voix", Label: "Voix"}}, records...)...)
}

// Of returns a feed with only these records.
func Of(date string, records ...any) []byte {
	var buf bytes.Buffer
	out := feed.NewWriter(&buf, date)
	for _, rec := range records {
		out.Write(rec.(record.Record))
	}
	if err := out.Flush(); err != nil {
		panic(err)
	}
	return buf.Bytes()
}

// Publish imports a feed, even if it is implausible, and returns the number of its release.
func Publish(t testing.TB, s *store.Store, data []byte) int {
	t.Helper()
	return publishAt(t, s, data, time.Time{})
}

func publishAt(t testing.TB, s *store.Store, data []byte, published time.Time) int {
	t.Helper()
	report, err := publish.Import(t.Context(), s, feed.NewLines(bytes.NewReader(data)), publish.Options{Force: true, PublishedAt: published})
	if err != nil {
		t.Fatal(err)
	}
	return report.Release
}

// Synthetic returns a feed with many tools, which package synth generates.
func Synthetic(t testing.TB, opts synth.Options) []byte {
	t.Helper()
	var buf bytes.Buffer
	if err := synth.Write(t.Context(), &buf, opts); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

// PublishDemo imports all editions of the demo catalog, each on its date but the last one
// now, as a new server does. It returns their number.
func PublishDemo(t testing.TB, s *store.Store) (release int) {
	t.Helper()
	editions, err := demo.Editions()
	if err != nil {
		t.Fatal(err)
	}
	last := len(editions) - 1
	for _, edition := range editions[:last] {
		published, err := time.Parse(time.DateOnly, edition.Date)
		if err != nil {
			t.Fatal(err)
		}
		publishAt(t, s, edition.Feed, published)
	}
	return Publish(t, s, editions[last].Feed)
}

// Tool returns a tool with all required fields.
func Tool(slug string, change ...func(*record.Tool)) *record.Tool {
	score := 7.5
	t := &record.Tool{
		Slug: slug, Name: "Outil " + slug, Domain: slug + ".example", Category: "code", ICP: "mixte",
		Pricing: "payant", Price: "20 €/mois", Score: &score, Tagline: "Un outil.",
		CanonicalURL: "https://palmares.example/" + slug, AlternativesURL: "https://palmares.example/alt/" + slug,
		UpdatedAt: "2026-11-01", Tier: 3,
		Sections: []record.Section{{Section: "verdict", Text: "Bien."}},
	}
	for _, f := range change {
		f(t)
	}
	return t
}

// Retired returns a retired tool.
func Retired(slug string) *record.Retired {
	return &record.Retired{Slug: slug, Name: "Outil " + slug, Category: "code", Reason: "mort", RetiredAt: "2026-06-01", Note: "Fermé."}
}

// Comparison returns a published comparison that the first tool wins.
func Comparison(slug, a, b string) *record.Comparison {
	return &record.Comparison{
		Slug: slug, Title: "Lequel ?", ToolA: a, ToolB: b, Winner: a, WinnerNote: "Plus net.", Published: true,
		UpdatedAt: "2026-10-01", CanonicalURL: "https://palmares.example/duel/" + slug,
	}
}
