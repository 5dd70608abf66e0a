// Package synth makes synthetic feeds of any size, for load tests: the same
// options give the same bytes, and every edge that the feed allows occurs.
// Nothing in them is about a product that exists.
package synth

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"

	"palmares/internal/catalog/feed"
)

// Options of a feed.
type Options struct {
	Tools int // active ones; a twentieth more are retired
	Seed  uint64
	// Revision 0 is the catalog as it begins; each later one changes a few
	// tools of it, as editors do.
	Revision int
}

// feedDate moves on with the revision; days of a month never run out.
const feedDate = "2026-%02d-%02d"

// Write writes the feed.
func Write(ctx context.Context, w io.Writer, opts Options) error {
	m := &maker{Options: opts}
	out := feed.NewWriter(w, fmt.Sprintf(feedDate, 1+opts.Revision/28%12, 1+opts.Revision%28))
	for i, slug := range categories {
		out.Write(&feed.Category{Slug: slug, Label: categoryLabels[i]})
	}
	for i := range opts.Tools {
		if i%1000 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		out.Line(spelledOut(i, feed.Line(m.tool(i))))
	}
	for i := range opts.Tools / 20 {
		out.Write(m.retired(i))
	}
	for i := range opts.Tools / 5 {
		out.Write(m.comparison(i))
	}
	return out.Flush()
}

type maker struct{ Options }

// random gives each record a generator of its own, so that one record's
// choices never move another's.
func (m *maker) random(kind, i int) *rand.Rand {
	return rand.New(rand.NewPCG(m.Seed, uint64(kind)<<40|uint64(i)))
}

const (
	kindTool = iota
	kindRetired
	kindComparison
	kindRevision
)

func toolSlug(i int) string {
	slug := fmt.Sprintf("%s-%s-%d", pick(i, stems), pick(i/len(stems), suffixes), i)
	if i%101 == 7 { // as long as a slug may be
		return slug + strings.Repeat("-x", (80-len(slug))/2)
	}
	return slug
}

func retiredSlug(i int) string { return fmt.Sprintf("ancien-%s-%d", pick(i, stems), i) }

func (m *maker) tool(i int) *feed.Tool {
	r := m.random(kindTool, i)
	slug := toolSlug(i)
	t := &feed.Tool{
		Slug: slug, Name: m.name(r, i), Domain: slug[:min(len(slug), 50)] + ".example",
		// The last category stays empty.
		Category: categories[r.IntN(len(categories)-1)],
		ICP:      one(r, icps), Pricing: one(r, pricings), Price: price(r),
		Score: scale(r, 8), Verifiability: scale(r, 5), Obsolescence: scale(r, 4),
		Tagline:         sentence(r, 6+r.IntN(6)),
		CanonicalURL:    "https://palmares.example/outils/" + slug,
		AlternativesURL: "https://palmares.example/alternatives/" + slug + "?tri=score&page=1#liste",
		UpdatedAt:       day(r, 2025), Tier: feed.Tier(1 + min(2, r.IntN(40)/2)), Mainstream: r.IntN(5) == 0,
	}
	if r.IntN(4) > 0 {
		avis := "http://avis.palmares.example:8080/" + slug
		t.AvisURL = &avis
	}
	for s := range r.IntN(5) {
		t.Sections = append(t.Sections, feed.Section{Section: sections[s], Text: paragraph(r)})
	}
	if i == 3 { // one long review, near the limit of a line
		t.Sections = append(t.Sections, feed.Section{Section: "intégrale", Text: strings.Repeat(paragraph(r)+"\n", 1500)})
	}
	for range r.IntN(3) {
		t.PriceHistory = append(t.PriceHistory, feed.PriceChange{
			ChangedAt: day(r, 2024), Pricing: one(r, pricings), Price: price(r),
			PreviousPricing: one(r, pricings), PreviousPrice: price(r),
		})
	}
	m.revise(t, i)
	return t
}

// revise changes one tool in twenty at each revision.
func (m *maker) revise(t *feed.Tool, i int) {
	for revision := 1; revision <= m.Revision; revision++ {
		r := m.random(kindRevision+revision, i)
		if r.IntN(20) != 0 {
			continue
		}
		t.Price, t.Pricing, t.Score = price(r), one(r, pricings), scale(r, 8)
		t.UpdatedAt = fmt.Sprintf(feedDate, 1+revision/28%12, 1+revision%28)
		if len(t.Sections) > 0 {
			t.Sections[0].Text = paragraph(r)
		}
	}
}

func (m *maker) retired(i int) *feed.Retired {
	r := m.random(kindRetired, i)
	return &feed.Retired{
		Slug: retiredSlug(i), Name: "Ancien " + m.name(r, i), Category: categories[r.IntN(len(categories)-1)],
		Reason: reasons[i%len(reasons)], RetiredAt: day(r, 2023), Note: sentence(r, 12), Score: scale(r, 2),
	}
}

func (m *maker) comparison(i int) *feed.Comparison {
	r := m.random(kindComparison, i)
	a, b := toolSlug(r.IntN(m.Tools)), toolSlug(r.IntN(m.Tools))
	if gone := m.Tools / 20; gone > 0 && i%9 == 0 {
		b = retiredSlug(r.IntN(gone))
	}
	winner := a
	if r.IntN(2) == 0 {
		winner = b
	}
	return &feed.Comparison{
		Slug: fmt.Sprintf("duel-%d", i), Title: sentence(r, 4) + " ?", ToolA: a, ToolB: b, Winner: winner,
		WinnerNote: sentence(r, 14), Published: feed.Published(r.IntN(10) > 0), UpdatedAt: day(r, 2025),
		CanonicalURL: fmt.Sprintf("https://palmares.example/comparatifs/duel-%d", i),
	}
}

// spelledOut writes defaults out in every third line, where others leave them
// to be understood.
func spelledOut(i int, line []byte) []byte {
	if i%3 != 0 {
		return line
	}
	for _, field := range []struct{ key, value string }{
		{"score", "null"}, {"verifiability", "null"}, {"obsolescence", "null"}, {"avis_url", "null"},
		{"tier", "3"}, {"mainstream", "false"}, {"sections", "[]"}, {"price_history", "[]"},
	} {
		if !bytes.Contains(line, []byte(`,"`+field.key+`":`)) {
			line = slices.Concat(line[:len(line)-1], []byte(`,"`+field.key+`":`+field.value+`}`))
		}
	}
	return line
}
