// Package panels_test compares the explorer's dashboard panels with statements in SQL
// on the files of the same release: see sql_test.go.
package panels_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"

	"palmares/internal/catalog/feed/feedtest"
	"palmares/internal/catalog/record"
)

// tool is an active tool. Its score is in tenths, its price in cents.
type tool struct {
	category, pricing, icp string
	tier                   int
	score                  int // -1 for none
	cents                  int
	period                 string
	updatedAt              string
}

type retirement struct{ category, reason, at string }

type duel struct{ a, b, winner, updatedAt string }

// catalog is the content of one feed.
type catalog struct {
	date    string
	tools   map[string]tool
	retired map[string]retirement
	duels   map[string]duel
}

// dates are the feed dates. Two are equal, and one is older than the one before it.
var dates = []string{"2026-01-30", "2026-03-02", "2026-03-02", "2026-04-30", "2026-04-11", "2026-07-01", "2026-10-05", "2026-11-14"}

var (
	categories = []string{"audio", "code", "texte"}
	pricings   = []string{"freemium", "gratuit", "payant"}
	icps       = []string{"agentic-engineer", "mixte", "vibe-coder"}
	reasons    = []string{"absorbe", "acquis", "deprecie", "mort", "pivot"}
	periods    = []string{"mois", "mois", "mois", "an", "poste / mois", "heure", "requête", "lune"}
)

func pick[T any](r *rand.Rand, values []T) T { return values[r.IntN(len(values))] }

// randomCatalogs returns eight releases with tools that are added, changed, retired,
// removed and active again.
func randomCatalogs(seed uint64) (releases []catalog) {
	r := rand.New(rand.NewPCG(seed, 1))
	now := catalog{tools: map[string]tool{}, retired: map[string]retirement{}, duels: map[string]duel{}}
	for release, date := range dates {
		now = catalog{date, maps.Clone(now.tools), maps.Clone(now.retired), maps.Clone(now.duels)}
		for i := range 40 {
			slug := fmt.Sprintf("t%02d", i)
			before, active := now.tools[slug]
			_, retired := now.retired[slug]
			switch n := r.IntN(12); {
			case active && n == 0:
				delete(now.tools, slug)
				now.retired[slug] = retirement{before.category, pick(r, reasons), fmt.Sprintf("2026-%02d-%02d", 1+r.IntN(12), 1+r.IntN(28))}
			case active && n == 1 || retired && n == 2:
				delete(now.tools, slug)
				delete(now.retired, slug)
			case active && n < 6:
				t := before
				t.updatedAt = date
				t.change(r)
				now.tools[slug] = t
			case !active && (n < 2 || release == 0 && n < 8):
				t := tool{category: pick(r, categories), pricing: pick(r, pricings), icp: pick(r, icps), tier: 1 + r.IntN(3), updatedAt: date}
				t.change(r)
				now.tools[slug] = t
				delete(now.retired, slug)
			}
		}
		now.changeDuels(r)
		releases = append(releases, now)
	}
	return releases
}

func (t *tool) change(r *rand.Rand) {
	switch r.IntN(4) {
	case 0:
		t.category = pick(r, categories)
	case 1:
		t.pricing = pick(r, pricings)
	}
	if t.period == "" || r.IntN(2) == 0 {
		t.cents, t.period = r.IntN(6000), pick(r, periods)
	}
	if t.score = r.IntN(101); r.IntN(8) == 0 {
		t.score = -1
	}
}

// changeDuels keeps comparisons of tools that still exist, and adds some.
func (c *catalog) changeDuels(r *rand.Rand) {
	exists := func(slug string) bool {
		_, active := c.tools[slug]
		_, retired := c.retired[slug]
		return active || retired
	}
	maps.DeleteFunc(c.duels, func(_ string, d duel) bool { return !exists(d.a) || !exists(d.b) })
	active := slices.Sorted(maps.Keys(c.tools))
	for range 4 {
		a, b := pick(r, active), pick(r, active)
		if a != b {
			c.duels[a+"-vs-"+b] = duel{a, b, pick(r, []string{a, b}), fmt.Sprintf("2026-%02d-%02d", 1+r.IntN(12), 1+r.IntN(28))}
		}
	}
}

func (t tool) price() string {
	return fmt.Sprintf("%d,%02d €/%s", t.cents/100, t.cents%100, t.period)
}

// feed returns a catalog as a feed.
func (c catalog) feed() []byte {
	var records []any
	for _, slug := range categories {
		records = append(records, &record.Category{Slug: slug, Label: "Catégorie " + slug})
	}
	for _, slug := range slices.Sorted(maps.Keys(c.tools)) {
		t := c.tools[slug]
		records = append(records, feedtest.Tool(slug, func(f *record.Tool) {
			f.Category, f.Pricing, f.ICP, f.Tier, f.Price, f.UpdatedAt = t.category, t.pricing, t.icp, record.Tier(t.tier), t.price(), t.updatedAt
			if ends := fmt.Sprintf("2027-%02d-28", 1+t.score%12); t.score > 50 {
				f.EndsAt = &ends
			}
			if f.Score = nil; t.score >= 0 {
				score := float64(t.score) / 10
				f.Score = &score
			}
		}))
	}
	for _, slug := range slices.Sorted(maps.Keys(c.retired)) {
		d := c.retired[slug]
		records = append(records, &record.Retired{Slug: slug, Name: "Outil " + slug, Category: d.category, Reason: d.reason, RetiredAt: d.at, Note: "Parti."})
	}
	for _, slug := range slices.Sorted(maps.Keys(c.duels)) {
		d := c.duels[slug]
		records = append(records, &record.Comparison{Slug: slug, Title: slug, ToolA: d.a, ToolB: d.b, Winner: d.winner, WinnerNote: "Plus net.", Published: true,
			UpdatedAt: d.updatedAt, CanonicalURL: "https://palmares.example/duel/" + slug})
	}
	return feedtest.Of(c.date, records...)
}
