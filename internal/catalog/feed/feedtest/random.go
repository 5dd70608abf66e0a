package feedtest

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"

	"palmares/internal/catalog/record"
)

// Random is a catalog that changes at random: tools are added, changed, retired, removed
// and active again, and categories and comparisons change, too. The same calls with the
// same seed give the same feeds.
type Random struct {
	*rand.Rand
	// Date is that of the feed, and of the tools that change.
	Date string
	// Simple catalogs have no tools that change their names or have earlier prices.
	Simple      bool
	slugs       []string
	tools       map[string]*record.Tool
	retired     map[string]*record.Retired
	comparisons map[string]*record.Comparison
	labels      map[string]string // of categories
}

// Categories are those of a random catalog.
var Categories = []string{"chat", "code", "voix"}

// NewRandom returns an empty catalog for at most as many tools: t00, t01 and so on.
func NewRandom(seed uint64, tools int) *Random {
	c := &Random{
		Rand: rand.New(rand.NewPCG(seed, 1)), tools: map[string]*record.Tool{}, retired: map[string]*record.Retired{},
		comparisons: map[string]*record.Comparison{}, labels: map[string]string{},
	}
	for i := range tools {
		c.slugs = append(c.slugs, fmt.Sprintf("t%02d", i))
	}
	for _, slug := range Categories {
		c.labels[slug] = "Catégorie " + slug
	}
	return c
}

// pick returns one of several values.
func pick[T any](c *Random, values ...T) T { return values[c.IntN(len(values))] }

// Change makes some changes.
func (c *Random) Change(n int) {
	for range n {
		c.change()
	}
}

func (c *Random) change() {
	slug, text := pick(c, c.slugs...), fmt.Sprintf("texte %d", c.IntN(1000))
	tool, retired := c.tools[slug], c.retired[slug]
	switch kind := c.IntN(14); {
	case tool == nil && (retired == nil || kind < 4):
		delete(c.retired, slug)
		c.tools[slug] = Tool(slug, func(t *record.Tool) {
			t.UpdatedAt, t.Pricing, t.ICP = c.Date, pick(c, "freemium", "gratuit", "payant"), pick(c, "agentic-engineer", "mixte", "vibe-coder")
			c.changeTool(t, text)
		})
	case tool == nil:
		copied := *retired
		copied.Note, copied.Category = text, pick(c, Categories...)
		c.retired[slug] = &copied
	case kind < 6:
		copied := *tool
		c.changeTool(&copied, text)
		c.tools[slug] = &copied
	case kind == 6:
		delete(c.tools, slug)
		c.retired[slug] = &record.Retired{
			Slug: slug, Name: tool.Name, Category: tool.Category, Reason: pick(c, "absorbe", "acquis", "deprecie", "mort", "pivot"), RetiredAt: c.day(), Note: text,
		}
	case kind == 7:
		delete(c.tools, slug)
		maps.DeleteFunc(c.comparisons, func(_ string, compared *record.Comparison) bool {
			return compared.ToolA == slug || compared.ToolB == slug
		})
	case kind == 8:
		c.labels[pick(c, Categories...)] = text
	case kind == 9:
		delete(c.comparisons, c.comparison())
	default:
		other := pick(c, c.slugs...)
		if other != slug && (c.tools[other] != nil || c.retired[other] != nil) {
			name := c.comparison()
			c.comparisons[name] = &record.Comparison{
				Slug: name, Title: text, ToolA: slug, ToolB: other, Winner: pick(c, slug, other), WinnerNote: text, UpdatedAt: c.day(),
				CanonicalURL: "https://palmares.example/" + name, Published: record.Published(c.IntN(5) > 0),
			}
		}
	}
}

// comparison returns the slug of one of the comparisons: c0, c1 and so on.
func (c *Random) comparison() string { return fmt.Sprintf("c%d", c.IntN(max(4, len(c.slugs)/2))) }

func (c *Random) day() string { return fmt.Sprintf("2026-%02d-%02d", 1+c.IntN(12), 1+c.IntN(28)) }

// changeTool changes the price and the score, and sometimes another field.
func (c *Random) changeTool(t *record.Tool, text string) {
	t.UpdatedAt = c.Date
	score := float64(c.IntN(101)) / 10
	if t.Score = &score; c.IntN(8) == 0 {
		t.Score = nil
	}
	if c.IntN(2) == 0 {
		t.Price = fmt.Sprintf("%d,%02d €/%s", c.IntN(60), c.IntN(100), pick(c, "mois", "mois", "mois", "an", "poste / mois", "heure", "requête", "lune"))
	}
	switch kind := c.IntN(10); {
	case kind == 0 && !c.Simple:
		t.Name = "Outil " + text
	case kind == 1:
		t.Category = pick(c, Categories...)
	case kind == 2:
		t.Tier = record.Tier(1 + c.IntN(3))
	case kind == 3:
		t.Sections = []record.Section{{Section: "verdict", Text: text}}
	case kind == 4:
		t.Translations.En.Tagline = text
	case kind == 5:
		t.Obsolescence, t.Verifiability = &score, &score
	case kind == 6:
		t.Pricing = pick(c, "freemium", "gratuit", "payant")
	case kind == 7:
		ends := fmt.Sprintf("2027-%02d-28", 1+c.IntN(12))
		t.EndsAt = &ends
	case kind == 8 && !c.Simple:
		t.PriceHistory = append(slices.Clip(t.PriceHistory), record.PriceChange{
			ChangedAt: "2025-01-01", Pricing: "payant", Price: "9 €/mois", PreviousPricing: "payant", PreviousPrice: fmt.Sprintf("%d €/mois", 10+c.IntN(50)),
		})
	}
}

// Feed returns the catalog as a feed.
func (c *Random) Feed() []byte {
	var records []any
	for _, slug := range Categories {
		records = append(records, &record.Category{Slug: slug, Label: c.labels[slug]})
	}
	for _, tool := range sorted(c.tools) {
		records = append(records, tool)
	}
	for _, retired := range sorted(c.retired) {
		records = append(records, retired)
	}
	for _, comparison := range sorted(c.comparisons) {
		records = append(records, comparison)
	}
	return Of(c.Date, records...)
}

func sorted[V any](all map[string]V) (values []V) {
	for _, slug := range slices.Sorted(maps.Keys(all)) {
		values = append(values, all[slug])
	}
	return values
}
