package feedtest

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"

	"palmares/internal/catalog/record"
)

// Tangled is a catalog whose records change at random, in any field, and whose slugs of
// categories, tools and comparisons overlap. Random has more tools, but fewer fields change.
type Tangled struct {
	r           *rand.Rand
	day         int
	categories  map[string]*record.Category
	tools       map[string]record.Record // active and retired
	comparisons map[string]*record.Comparison
}

// NewTangled returns an empty catalog. The same seed gives the same feeds.
func NewTangled(seed uint64) *Tangled {
	return &Tangled{
		r: rand.New(rand.NewPCG(seed, 3)), categories: map[string]*record.Category{"code": {Slug: "code", Label: "Code"}},
		tools: map[string]record.Record{}, comparisons: map[string]*record.Comparison{},
	}
}

// Next returns the next feed.
func (f *Tangled) Next() []byte {
	f.day += f.r.IntN(2)
	day := fmt.Sprintf("2026-%02d-%02d", 1+f.day/28, 1+f.day%28)
	word := func() string { return fmt.Sprintf("Mot %d", f.r.IntN(4)) }
	translation := func() string { // or none
		return []string{"", "", "Word", `"quoted" \ & </script>`, "two\r\nlines\u2028", " 🦊 "}[f.r.IntN(6)]
	}
	number := func() *float64 {
		if n := f.r.IntN(5); n > 0 {
			value := float64(n) + 0.5
			return &value
		}
		return nil
	}
	for range 3 {
		slug := fmt.Sprintf("s%d", f.r.IntN(3))
		if f.r.IntN(3) == 0 {
			delete(f.categories, slug)
		} else {
			c := &record.Category{Slug: slug, Label: word()}
			c.Translations.En.Label = translation()
			f.categories[slug] = c
		}
	}
	category := func() string {
		all := slices.Sorted(maps.Keys(f.categories))
		return all[f.r.IntN(len(all))]
	}
	for range 5 {
		slug := fmt.Sprintf("s%d", f.r.IntN(9))
		switch f.r.IntN(6) {
		case 0:
			delete(f.tools, slug)
		case 1:
			f.tools[slug] = &record.Retired{Slug: slug, Name: word(), Category: category(), Reason: "mort", RetiredAt: day, Note: word(), Score: number()}
		default:
			tool := Tool(slug, func(t *record.Tool) {
				t.Name, t.Category, t.Tagline, t.Domain, t.UpdatedAt = word(), category(), word(), word(), day
				t.Pricing, t.ICP = []string{"gratuit", "freemium", "payant"}[f.r.IntN(3)], []string{"mixte", "vibe-coder"}[f.r.IntN(2)]
				t.Price = fmt.Sprintf("%d €/mois", f.r.IntN(3))
				t.Score, t.Verifiability, t.Obsolescence = number(), number(), number()
				t.Tier, t.Mainstream = record.Tier(1+f.r.IntN(3)), f.r.IntN(2) == 0
				t.Translations.En.Tagline = translation()
				for i := range f.r.IntN(3) {
					t.Sources = append(t.Sources, record.Source{
						Field: []string{"price", "score"}[f.r.IntN(2)], URL: fmt.Sprintf("https://a.example/?<&>=%d", i), CheckedAt: day,
					})
				}
				t.Sections = nil
				for i := range f.r.IntN(3) {
					t.Sections = append(t.Sections, record.Section{Section: fmt.Sprint("partie-", i), Text: word()})
				}
				if f.r.IntN(3) == 0 {
					url := "https://palmares.example/avis/" + slug
					t.AvisURL = &url
				}
				if f.r.IntN(3) == 0 {
					t.PriceHistory = []record.PriceChange{{
						ChangedAt: fmt.Sprintf("2025-0%d-01", 1+f.r.IntN(9)), Pricing: "payant", Price: fmt.Sprintf("%d €/mois", f.r.IntN(3)),
						PreviousPricing: "payant", PreviousPrice: "7 €/mois",
					}}
				}
			})
			if was, _ := f.tools[slug].(*record.Tool); was != nil && f.r.IntN(2) == 0 { // only what REST does not show
				changed := *was
				switch f.r.IntN(6) {
				case 0:
					changed.Tier = tool.Tier
				case 1:
					changed.Mainstream = tool.Mainstream
				case 2:
					changed.Obsolescence = tool.Obsolescence
				case 3:
					changed.Sections = tool.Sections
				case 4:
					changed.Translations = tool.Translations
				case 5:
					changed.Sources = tool.Sources
				}
				tool = &changed
			}
			f.tools[slug] = tool
		}
	}
	for slug, tool := range f.tools { // their category may be gone
		var at *string
		switch tool := tool.(type) {
		case *record.Tool:
			changed := *tool
			f.tools[slug], at = &changed, &changed.Category
		case *record.Retired:
			changed := *tool
			f.tools[slug], at = &changed, &changed.Category
		}
		if f.categories[*at] == nil {
			*at = "code"
		}
	}
	slugs := slices.Sorted(maps.Keys(f.tools))
	for range 3 {
		slug := fmt.Sprintf("s%d", f.r.IntN(4))
		if len(slugs) == 0 || f.r.IntN(4) == 0 {
			delete(f.comparisons, slug)
			continue
		}
		if was := f.comparisons[slug]; was != nil && f.r.IntN(2) == 0 {
			changed := *was
			changed.Winner = []string{was.ToolA, was.ToolB}[f.r.IntN(2)]
			changed.Translations.En.Title, changed.Translations.En.WinnerNote = translation(), translation()
			f.comparisons[slug] = &changed
			continue
		}
		a, b := slugs[f.r.IntN(len(slugs))], slugs[f.r.IntN(len(slugs))]
		f.comparisons[slug] = &record.Comparison{
			Slug: slug, Title: word(), ToolA: a, ToolB: b, Winner: []string{a, b}[f.r.IntN(2)], WinnerNote: word(),
			Published: f.r.IntN(3) > 0, UpdatedAt: day, CanonicalURL: "https://palmares.example/" + slug,
		}
	}
	records := []any{}
	for _, c := range f.categories {
		records = append(records, c)
	}
	for _, tool := range f.tools {
		records = append(records, tool)
	}
	for slug, c := range f.comparisons {
		if f.tools[c.ToolA] == nil || f.tools[c.ToolB] == nil {
			delete(f.comparisons, slug)
		} else {
			records = append(records, c)
		}
	}
	return Of(day, records...)
}
