// Package synth generates feeds of any size for load tests. The same options always
// give the same bytes. The feeds cover every edge case of the format, and all tools
// are fictional.
package synth

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"

	"palmares/internal/catalog/feed"
	"palmares/internal/catalog/record"
)

// Options of a feed.
type Options struct {
	Tools    int // active tools; there is one retired tool for every twenty
	Seed     uint64
	Revision int // 0 is the first; each later one changes a few tools
}

// dateOf returns the date of a revision's feed.
func dateOf(revision int) string {
	return fmt.Sprintf("2026-%02d-%02d", 1+revision/28%12, 1+revision%28)
}

// Write writes the feed.
func Write(ctx context.Context, w io.Writer, opts Options) error {
	g := generator{opts}
	out := feed.NewWriter(w, dateOf(opts.Revision))
	for i, slug := range categories {
		c := &record.Category{Slug: slug, Label: categoryLabels[i]}
		if i%3 == 0 {
			c.Translations.En.Label = pick(i+opts.Revision/5, oddTexts)
		}
		out.Write(c)
	}
	for i := range opts.Tools {
		if i%1000 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		out.Line(withDefaults(i, feed.Line(g.tool(i))))
	}
	for i := range opts.Tools / 20 {
		out.Write(g.retired(i))
	}
	for i := range opts.Tools / 5 {
		out.Write(g.comparison(i))
	}
	return out.Flush()
}

type generator struct{ Options }

// random returns an independent random source for each record.
func (g generator) random(kind, i int) *rand.Rand {
	return rand.New(rand.NewPCG(g.Seed, uint64(kind)<<40|uint64(i)))
}

const (
	kindTool = iota
	kindRetired
	kindComparison
	kindRevision
)

func toolSlug(i int) string {
	slug := fmt.Sprintf("%s-%s-%d", pick(i, stems), pick(i/len(stems), suffixes), i)
	if i%101 == 7 { // the longest slug allowed
		return slug + strings.Repeat("-x", (80-len(slug))/2)
	}
	return slug
}

func retiredSlug(i int) string { return fmt.Sprintf("ancien-%s-%d", pick(i, stems), i) }

func (g generator) tool(i int) *record.Tool {
	r := g.random(kindTool, i)
	slug := toolSlug(i)
	t := &record.Tool{
		Slug: slug, Name: g.name(r, i), Domain: slug[:min(len(slug), 50)] + ".example",
		Category:        categories[r.IntN(len(categories)-1)], // the last category stays empty
		Price:           price(r),
		Tagline:         sentence(r, 6+r.IntN(6)),
		CanonicalURL:    "https://palmares.example/outils/" + slug,
		AlternativesURL: "https://palmares.example/alternatives/" + slug + "?tri=score&page=1#liste",
		UpdatedAt:       day(r, 2025), Tier: record.Tier(1 + min(2, r.IntN(40)/2)),
	}
	fill(r, reflect.ValueOf(t).Elem())
	if t.EndsAt != nil { // after all updates
		*t.EndsAt = "2030" + (*t.EndsAt)[len("2025"):]
	}
	for s := range r.IntN(5) {
		t.Sections = append(t.Sections, record.Section{Section: sections[s], Text: paragraph(r)})
	}
	if i == 3 { // one review is near the limit of a line
		t.Sections = append(t.Sections, record.Section{Section: "intégrale", Text: strings.Repeat(paragraph(r)+"\n", 1500)})
	}
	for range r.IntN(3) {
		t.PriceHistory = append(t.PriceHistory, record.PriceChange{
			ChangedAt: day(r, 2024), Pricing: one(r, pricings), Price: price(r),
			PreviousPricing: one(r, pricings), PreviousPrice: price(r),
		})
	}
	g.addFacts(t, r)
	g.revise(t, i)
	return t
}

// fill gives values to those fields of a new record that have a rule, so that feeds also
// have fields that this package does not know.
func fill(r *rand.Rand, rec reflect.Value) {
	for declared, value := range rec.Fields() {
		rule := declared.Tag.Get("rule")
		text := func() string {
			switch rule {
			case "url":
				return "http://avis.palmares.example:8080/" + one(r, words)
			case "date":
				return day(r, 2025)
			case "text":
				return sentence(r, 3)
			}
			return one(r, record.Codes(rule))
		}
		switch into := value.Addr().Interface().(type) {
		case **float64:
			*into = scale(r, 8)
		case *bool:
			*into = r.IntN(5) == 0
		case **string:
			if r.IntN(4) > 0 {
				filled := text()
				*into = &filled
			}
		case *string:
			if *into == "" {
				*into = text()
			}
		}
	}
}

// addFacts adds a translation or sources to a few tools.
func (g generator) addFacts(t *record.Tool, r *rand.Rand) {
	if r.IntN(8) == 0 {
		t.Translations.En.Tagline = one(r, oddTexts)
	}
	if r.IntN(8) == 0 {
		for i := range 1 + r.IntN(3) {
			t.Sources = append(t.Sources, record.Source{
				Field: one(r, sourceFields), URL: fmt.Sprintf("https://%s/prix?é=%d&x=<%%22>#tarifs", t.Domain, i), CheckedAt: day(r, 2025),
			})
		}
	}
}

// revise changes one tool in twenty at each revision.
func (g generator) revise(t *record.Tool, i int) {
	for revision := 1; revision <= g.Revision; revision++ {
		r := g.random(kindRevision+revision, i)
		if r.IntN(20) != 0 {
			continue
		}
		t.Price, t.Pricing, t.Score = price(r), one(r, pricings), scale(r, 8)
		t.UpdatedAt = dateOf(revision)
		if len(t.Sections) > 0 {
			t.Sections[0].Text = paragraph(r)
		}
		if r.IntN(2) == 0 {
			t.Translations.En.Tagline, t.Sources = "", nil
			g.addFacts(t, r)
		}
	}
}

func (g generator) retired(i int) *record.Retired {
	r := g.random(kindRetired, i)
	return &record.Retired{
		Slug: retiredSlug(i), Name: "Ancien " + g.name(r, i), Category: categories[r.IntN(len(categories)-1)],
		Reason: reasons[i%len(reasons)], RetiredAt: day(r, 2023), Note: sentence(r, 12), Score: scale(r, 2),
	}
}

func (g generator) comparison(i int) *record.Comparison {
	r := g.random(kindComparison, i)
	a, b := toolSlug(r.IntN(g.Tools)), toolSlug(r.IntN(g.Tools))
	if retired := g.Tools / 20; retired > 0 && i%9 == 0 {
		b = retiredSlug(r.IntN(retired))
	}
	winner := a
	if r.IntN(2) == 0 {
		winner = b
	}
	c := &record.Comparison{
		Slug: fmt.Sprintf("duel-%d", i), Title: sentence(r, 4) + " ?", ToolA: a, ToolB: b, Winner: winner,
		WinnerNote: sentence(r, 14), Published: record.Published(r.IntN(10) > 0), UpdatedAt: day(r, 2025),
		CanonicalURL: fmt.Sprintf("https://palmares.example/comparatifs/duel-%d", i),
	}
	if r.IntN(4) == 0 {
		c.Translations.En.Title = one(r, oddTexts)
	}
	if r.IntN(4) == 0 {
		c.Translations.En.WinnerNote = pick(i+g.Revision/3, oddTexts)
	}
	return c
}

// withDefaults adds omitted fields with their default values to every third line.
func withDefaults(i int, line []byte) []byte {
	if i%3 != 0 {
		return line
	}
	for _, f := range record.Defaults(record.TypeTool) {
		if !bytes.Contains(line, []byte(`,"`+f.Name+`":`)) {
			line = slices.Concat(line[:len(line)-1], []byte(`,"`+f.Name+`":`), f.Default, []byte("}"))
		}
	}
	return line
}

var (
	categories     = []string{"agents", "chat", "code", "image", "recherche", "redaction", "video", "voix", "vide"}
	categoryLabels = []string{"Agents", "Chat", "Code", "Image", "Recherche", "Rédaction", "Vidéo", "Voix", "Vide"}

	pricings = record.Codes("pricing")
	reasons  = record.Codes("retired_reason")
	sections = []string{"verdict", "prix", "forces", "limites", "pour-qui"}
	periods  = []string{"mois", "an", "heure", "requête", "poste / mois"}

	stems    = []string{"atelier", "plume", "forge", "boussole", "lanterne", "rivage", "cadran", "orme", "galet", "sillage", "verger"}
	suffixes = []string{"nova", "lab", "pro", "studio", "bleu", "vif", "clair"}

	// Names that are hard to sort or to encode.
	oddNames = []string{
		"Écritoire & Cie", "écritoire & cie", "ECRITOIRE & CIE", "L'Établi <3>", `Le "Guillemet"`, "Cœur d’or", "Zoé\u0301",
		"İstanbul", "日本語ツール", "🦊 Renard", "a", "Ångström №5", "C:\\Outils", "Tab\tdedans", "e\u0301toile", "\u2028ligne",
	}
	// Texts that are hard to encode.
	oddTexts = []string{
		`He said: "yes" \ no`, "<b>bold</b> & </script>", "line one\nline two\r\n## three", " outer spaces ", "\u2028\u2029|",
		"日本語 🦊 e\u0301", "key: value # - [x] {y} 'z'", "---\n...\n- 'a", "null", "\ufeffmark\u200b \x7f\x01",
	}
	sourceFields = []string{"price", "pricing", "domain", "name", "score"}
	words        = strings.Fields(`outil équipe brouillon modèle réponse prix essai dépôt page note image voix agent
		code contexte lecture rapide précis fiable sobre cher utile net simple long court chaque pour sans avec
		entre après déjà encore très peu trop à l’usage côté cœur façon goût même où là`)
)

func one(r *rand.Rand, from []string) string { return from[r.IntN(len(from))] }
func pick(i int, from []string) string       { return from[i%len(from)] }

// name returns a plain name most of the time. Names need not be unique.
func (g generator) name(r *rand.Rand, i int) string {
	if i%7 == 0 {
		return one(r, oddNames)
	}
	return strings.ToUpper(pick(i, stems)[:1]) + pick(i, stems)[1:] + " " + pick(r.IntN(len(suffixes)), suffixes)
}

// scale returns a number from 0 to 10 or, once in n times, null.
func scale(r *rand.Rand, n int) *float64 {
	if r.IntN(n) == 0 {
		return nil
	}
	v := float64(r.IntN(101)) / 10
	if r.IntN(50) == 0 {
		v = float64(r.IntN(1_000_001)) / 100_000 // unusually many decimals
	}
	return &v
}

func price(r *rand.Rand) string {
	amount := fmt.Sprint(r.IntN(300))
	switch r.IntN(4) {
	case 0:
		amount = fmt.Sprintf("%d,%02d", r.IntN(100), r.IntN(100))
	case 1:
		amount = fmt.Sprintf("%d.%d", r.IntN(10), r.IntN(10))
	}
	return amount + " €/" + one(r, periods)
}

func day(r *rand.Rand, year int) string {
	return fmt.Sprintf("%d-%02d-%02d", year, 1+r.IntN(12), 1+r.IntN(28))
}

func sentence(r *rand.Rand, n int) string {
	chosen := make([]string, n)
	for i := range chosen {
		chosen[i] = one(r, words)
	}
	return strings.Join(chosen, " ")
}

func paragraph(r *rand.Rand) string {
	return sentence(r, 20) + ". " + sentence(r, 25) + " : " + sentence(r, 15) + "."
}
