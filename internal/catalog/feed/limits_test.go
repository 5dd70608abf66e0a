package feed_test

import (
	"bytes"
	"fmt"
	"math"
	"strings"
	"testing"

	"palmares/internal/catalog/feed"
	"palmares/internal/core/store"
	"palmares/internal/dev/testkit"
)

func TestLongTextsFitEveryDatabase(t *testing.T) {
	// Random text does not compress: what fits an index of PostgreSQL only
	// when compressed must not slip through.
	noise := strings.Builder{}
	for i := range 20_000 {
		noise.WriteRune(rune('a' + (i*i*7919+i*104729)%26))
	}
	data := catalogOf("2026-11-01", aTool("a", func(t *feed.Tool) {
		t.Name, t.Price = noise.String(), "1 €/"+noise.String()
		t.Sections = []feed.Section{{Section: noise.String(), Text: noise.String()}}
		t.PriceHistory = []feed.PriceChange{{ChangedAt: "2026-01-01", Pricing: "payant", Price: t.Price, PreviousPricing: "payant", PreviousPrice: "0 €/" + noise.String()}}
	}))
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		publish(t, s, data)
		expect(t, "export", export(t, s) == string(data), true)
	})
}

// What was read from a line fits into one again, also after an export has
// written it its own way.
func TestLongestLineComesBack(t *testing.T) {
	const limit = 1 << 20
	shortest := aTool("a")
	fill := limit - len(feed.Line(shortest)) + len(shortest.Sections[0].Text)
	shortest.Sections[0].Text = strings.Repeat("a", fill)
	if n := len(feed.Line(shortest)); n != limit {
		t.Fatalf("the line has %d bytes", n)
	}
	data := catalogOf("2026-11-01", shortest)
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		publish(t, s, data)
		expect(t, "import of the export", publish(t, s, []byte(export(t, s))).Release, 0)
	})
}

func TestHistoryThatNoLineCanTell(t *testing.T) {
	with := func(year int) *feed.Tool {
		return aTool("a", func(t *feed.Tool) {
			for i := range 5000 {
				t.PriceHistory = append(t.PriceHistory, feed.PriceChange{
					ChangedAt: fmt.Sprintf("%d-01-01", year), Pricing: "payant", Price: fmt.Sprintf("%d €/mois", i),
					PreviousPricing: "payant", PreviousPrice: "0 €/mois",
				})
			}
		})
	}
	s := testkit.Open(t, testkit.SQLite(t))
	publish(t, s, catalogOf("2026-11-01", with(2020)))
	before := export(t, s)
	_, err := feed.Import(t.Context(), s, bytes.NewReader(catalogOf("2026-11-02", with(2021))), feed.Options{})
	want := `line 3: tool "a": price_history: together with the stored price changes, the tool exceeds the line limit of 1 MiB; shorten its texts`
	if err == nil || err.Error() != want {
		t.Errorf("got %v", err)
	}
	expect(t, "the catalog is as before", export(t, s) == before, true)
}

func TestStoredKeys(t *testing.T) {
	zero := math.Copysign(0, -1) // there is no score of -0
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		publish(t, s, catalogOf("2026-11-01", aTool("a", func(t *feed.Tool) {
			t.Name, t.Tagline, t.Price, t.Score = "Écritoire & Cie", "Très net.", "19,90 €/poste et par mois", &zero
		})))
		row := s.Read.Tool.GetX(t.Context(), "a")
		expect(t, "keys", []any{row.NameKey, row.SearchText, row.PriceAmount, row.PricePeriod, row.Untested, math.Signbit(*row.Score)},
			[]any{"ecritoire & cie", "ecritoire & cie\ntres net.", 19.9, "poste et par mois", false, false})
	})
}
