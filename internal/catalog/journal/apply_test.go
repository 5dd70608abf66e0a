package journal_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"

	"palmares/internal/catalog/feed"
	"palmares/internal/catalog/feed/feedtest"
	"palmares/internal/catalog/publish"
	"palmares/internal/catalog/record"
	"palmares/internal/core/store"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
)

type object = map[string]any

// replica is a catalog that a client builds from events: the public part of an
// export, with hashes in place of reviews.
type replica struct {
	date    string
	records map[string]object               // by type and slug, without price histories
	prices  map[string][]record.PriceChange // oldest first; kept when a tool is retired or removed
}

// publicRecords reads a release, the newest if it is 0.
func publicRecords(t *testing.T, s *store.Store, release int) *replica {
	t.Helper()
	var export bytes.Buffer
	check.OK(t, publish.Export(t.Context(), s, &export, release))
	c := &replica{records: map[string]object{}, prices: map[string][]record.PriceChange{}}
	for line := range bytes.Lines(export.Bytes()) {
		var rec object
		var known struct {
			Type, Slug   string
			Sections     []record.Section
			PriceHistory []record.PriceChange `json:"price_history"`
		}
		check.OK(t, json.Unmarshal(line, &rec))
		check.OK(t, json.Unmarshal(line, &known))
		switch known.Type {
		case "feed":
			c.date = rec["updated_at"].(string)
			continue
		case "tool":
			rec["sections_hash"] = record.SectionsHash(known.Sections)
			delete(rec, "sections")
			delete(rec, "price_history")
			slices.Reverse(known.PriceHistory)
			c.prices[known.Slug] = known.PriceHistory
		case "comparatif":
			if rec["published"] == false {
				continue
			}
		}
		delete(rec, "type")
		c.records[known.Type+" "+known.Slug] = rec
	}
	return c
}

// apply changes the replica as an event of /api/v1/changes says.
func (c *replica) apply(t *testing.T, body json.RawMessage) {
	t.Helper()
	var e struct {
		Type, Slug string
		Data       struct {
			Before, After object
			UpdatedAt     string `json:"updated_at"`
		}
	}
	check.OK(t, json.Unmarshal(body, &e))
	after := e.Data.After
	for name, value := range after { // exports omit defaults
		list, isList := value.([]any)
		fields, isObject := value.(object)
		if value == nil || name == "tier" && value == 3.0 || name == "mainstream" && value == false || isList && len(list) == 0 || isObject && len(fields) == 0 {
			delete(after, name)
		}
	}
	switch e.Type {
	case "catalog.published":
		c.date = e.Data.UpdatedAt
	case "category.created", "category.updated":
		c.records["category "+e.Slug] = after
	case "category.removed":
		delete(c.records, "category "+e.Slug)
	case "tool.created", "tool.updated":
		delete(c.records, "cimetiere "+e.Slug)
		c.records["tool "+e.Slug] = after
	case "tool.retired", "retired.updated":
		delete(c.records, "tool "+e.Slug)
		c.records["cimetiere "+e.Slug] = after
	case "tool.removed":
		delete(c.records, "tool "+e.Slug)
		delete(c.records, "cimetiere "+e.Slug)
	case "price.changed", "price.backfilled":
		text := func(state object, name string) string { value, _ := state[name].(string); return value }
		change := record.PriceChange{
			ChangedAt: text(after, "changed_at"), Pricing: text(after, "pricing"), Price: text(after, "price"),
			PreviousPricing: text(e.Data.Before, "pricing"), PreviousPrice: text(e.Data.Before, "price"),
		}
		if !slices.Contains(c.prices[e.Slug], change) {
			c.prices[e.Slug] = append(c.prices[e.Slug], change)
		}
	case "comparatif.published", "comparatif.updated":
		for name, slug := range map[string]string{"winner": "winner_slug", "tool_a": "tool_a_slug", "tool_b": "tool_b_slug"} {
			after[name] = after[slug]
			delete(after, slug)
		}
		c.records["comparatif "+e.Slug] = after
	case "comparatif.removed":
		delete(c.records, "comparatif "+e.Slug)
	case "embeddings.changed": // not part of an export
	default:
		t.Errorf("got an event of type %s, want a known type", e.Type)
	}
}

// lines returns the records as JSON, by "tool" or "comparatif" and slug.
func (c *replica) lines() map[string]string {
	lines := map[string]string{}
	for key, rec := range c.records {
		line, err := json.Marshal(rec)
		if err != nil {
			panic(err) // it was read from JSON
		}
		if kind, slug, _ := strings.Cut(key, " "); kind == "cimetiere" {
			key = "tool " + slug
		}
		lines[key] = string(line)
	}
	for key := range lines {
		if strings.HasPrefix(key, "category ") {
			delete(lines, key)
		}
	}
	return lines
}

// String returns the catalog as a feed, with the price history of each active tool.
func (c *replica) String() string {
	var out strings.Builder
	fmt.Fprintln(&out, c.date)
	for _, key := range slices.Sorted(maps.Keys(c.records)) {
		rec := maps.Clone(c.records[key])
		if slug, isTool := strings.CutPrefix(key, "tool "); isTool {
			history := slices.Clone(c.prices[slug])
			slices.Reverse(history)
			slices.SortStableFunc(history, func(a, b record.PriceChange) int { return cmp.Compare(b.ChangedAt, a.ChangedAt) })
			rec["price_history"] = history
		}
		line, err := json.Marshal(rec)
		if err != nil {
			panic(err)
		}
		fmt.Fprintln(&out, key, string(line))
	}
	return out.String()
}

// randomFeed changes any field of any record at random.
type randomFeed struct {
	r           *rand.Rand
	day         int
	categories  map[string]*record.Category
	tools       map[string]record.Record // active and retired
	comparisons map[string]*record.Comparison
}

func newRandomFeed(seed uint64) *randomFeed {
	return &randomFeed{
		r: rand.New(rand.NewPCG(seed, 3)), categories: map[string]*record.Category{"code": {Slug: "code", Label: "Code"}},
		tools: map[string]record.Record{}, comparisons: map[string]*record.Comparison{},
	}
}

// next returns the next feed. Slugs of categories, tools and comparisons overlap.
func (f *randomFeed) next() []byte {
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
			tool := feedtest.Tool(slug, func(t *record.Tool) {
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
	return feedtest.Of(day, records...)
}

// A client that applies the events of /api/v1/changes to the first release has every
// later release, with all public fields. Reviews are known by their hash, and
// unpublished comparisons are not public. The events of the first release make it
// from nothing.
func TestEventsRebuildEveryRelease(t *testing.T) {
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		random := newRandomFeed(35)
		var last int
		for range 40 {
			report, err := publish.Import(t.Context(), s, feed.NewLines(bytes.NewReader(random.next())), publish.Options{Force: true})
			check.OK(t, err)
			last = max(last, report.Release)
		}
		api := newAPI(t, s)
		built, fromNothing := publicRecords(t, s, 1), &replica{records: map[string]object{}, prices: map[string][]record.PriceChange{}}
		release, seen := 0, map[string]int{}
		for after, more := "", true; more; {
			var page struct {
				Data []json.RawMessage
				Next string
			}
			got := serve(api.rest, http.MethodGet, "/api/v1/changes?limit=200"+after)
			check.OK(t, json.Unmarshal(got.Body.Bytes(), &page))
			for _, body := range page.Data {
				var e struct {
					Type    string
					Release int
					Data    struct{ Fields []string }
				}
				check.OK(t, json.Unmarshal(body, &e))
				seen[e.Type]++
				if len(e.Data.Fields) == 1 {
					seen[e.Type+" "+e.Data.Fields[0]]++
				}
				fromNothing.apply(t, body)
				if e.Release > 1 {
					built.apply(t, body)
				}
				if e.Type != "catalog.published" {
					continue
				}
				release = e.Release
				want := publicRecords(t, s, release).String()
				for name, got := range map[string]string{"the first release": built.String(), "nothing": fromNothing.String()} {
					check.Must(t, got, want, "release %d from %s", release, name)
				}
			}
			after, more = "&after="+page.Next, len(page.Data) > 0
		}
		check.Equal(t, release, last)
		check.True(t, last >= 35, "got events up to release %d, want %d, at least 35", release, last)
		for _, event := range []string{
			"category.created", "category.updated", "category.removed", "tool.created", "tool.updated", "tool.retired", "tool.removed",
			"retired.updated", "price.changed", "price.backfilled", "comparatif.published", "comparatif.updated", "comparatif.removed",
			"category.updated translations", "tool.updated translations", "tool.updated sources", "comparatif.updated translations",
		} {
			check.True(t, seen[event] >= 3, "%s: got %d events, want at least 3", event, seen[event])
		}
	})
}
