package site

import (
	"context"
	"html/template"
	"slices"
	"strconv"
	"strings"

	"palmares/internal/core/lang"
	"palmares/internal/web/page"
)

type toolsView struct {
	Tools      listOf[tool]
	Categories categoryList
	Chips      []chip       `json:"-"`
	Limits     []priceLimit `json:"-"`
	Empty      string       `json:"-"` // why the list has no tools
	Corrected  string       `json:"-"` // the search text without its typos, or ""
}

func (v *toolsView) prepare(ctx context.Context, s *Site, r *request) error {
	v.Corrected = s.correct(ctx, r, v.Tools.Items)
	r.structured = graphOf(breadcrumbs(r, crumb{r.lang.Text("Tools"), "/tools"}), itemList(r, v.Tools.Items, v.Tools.Meta.First()))
	v.Chips = newChips(r)
	v.Empty = r.lang.Text("No tools match your filters.")
	if wanted := r.Param("category"); wanted != "" && r.shown.Category(wanted) == nil {
		v.Empty = r.lang.Text("There is no category “%s”.", wanted)
	}
	for _, limit := range priceLimits {
		value, text := strconv.Itoa(limit), r.lang.Text("Free")
		if limit > 0 {
			text = r.lang.Text("Up to %s", r.lang.Euros(float64(limit)))
		}
		v.Limits = append(v.Limits, priceLimit{text, r.With("price_max", value), r.Param("price_max") == value})
	}
	return nil
}

// priceLimit is a link to the tools up to a price per month.
type priceLimit struct {
	Text, URL string
	Current   bool
}

// priceLimits are in euros per month.
var priceLimits = []int{0, 10, 20, 50}

// chip is an active filter with a link that removes it.
type chip struct {
	Text, Remove string
	Lang         template.HTMLAttr // language of Text if it is not that of the page
}

func newChips(r *request) (chips []chip) {
	add := func(name string, lang template.HTMLAttr, text func(value string) string) {
		if value := r.Param(name); value != "" {
			chips = append(chips, chip{text(value), r.With(name, ""), lang})
		}
	}
	l := r.lang
	add("q", "", func(value string) string { return l.Text("“%s”", value) })
	chosen := r.named(r.Param("category"))
	add("category", langOf(l, chosen.Label, chosen.FrenchLabel), func(string) string { return chosen.Label })
	add("pricing", "", func(value string) string { return label(l, value) })
	add("icp", "", func(value string) string { return l.Text("For %s", label(l, value)) })
	add("score_min", "", func(string) string { return l.Text("Score of at least %s", l.Decimal(r.number("score_min"), 0, 6)) })
	add("price_max", "", func(string) string {
		if r.number("price_max") == 0 {
			return l.Text("Free")
		}
		return l.Text("Up to %s per month", l.Euros(r.number("price_max")))
	})
	return chips
}

// number returns the value of a parameter that is a number.
func (r *request) number(name string) float64 {
	number, _ := r.variables[name].(float64)
	return number
}

// sortColumns has the two orders of each column by which tools can be sorted.
// The first is that of the first click.
var sortColumns = map[string][2]string{
	"name": {"name_asc", "name_desc"}, "score": {"score_desc", "score_asc"},
	"price": {"monthly_price_asc", "monthly_price_desc"}, "updated": {"updated_desc", "updated_asc"},
}

// sortHeader is the header of a column.
type sortHeader struct {
	URL  string // sorts by the column, or reverses its order
	Aria string // the value of aria-sort, or "" if another column is sorted
}

// SortBy returns the header of a column of tools.
func (r *request) SortBy(column string) (h sortHeader) {
	orders, current := sortColumns[column], r.Sort()
	to := orders[0]
	if current == to {
		to = orders[1]
	}
	if to == defaultSort(r.variables) {
		to = ""
	}
	h.URL = r.With("sort", to)
	if slices.Contains(orders[:], current) {
		if h.Aria = "descending"; strings.HasSuffix(current, "_asc") {
			h.Aria = "ascending"
		}
	}
	return h
}

type toolView struct {
	Feed        feedInfo
	Tool        *tool
	RetiredTool *tool
	Others      []tool         `json:"-"` // of the category, to compare with
	Ranking     []standing     `json:"-"` // of the category: the first ones, and those beside the tool
	History     *figure        `json:"-"` // nil if there is nothing to draw
	Market      *figure        `json:"-"` // the category
	LastPrice   *delta         `json:"-"` // the last change of the price, or nil
	Versions    versionHistory `json:"-"`
}

func (v *toolView) prepare(_ context.Context, _ *Site, r *request) error {
	if v.Tool == nil {
		if v.RetiredTool != nil {
			return redirect(r.Link("/cimetiere/", v.RetiredTool.Slug))
		}
		return r.noTool(r.Slug())
	}
	for _, other := range v.Tool.Category.Tools {
		if other.Slug != v.Tool.Slug {
			v.Others = append(v.Others, other)
		}
	}
	v.Ranking = v.Tool.standings()
	v.Market = marketOf(r, v.Tool.Category.Slug, v.Tool.Slug)
	v.History = newToolHistory(r, v.Tool, v.Feed.UpdatedAt)
	for i, e := range v.Tool.History {
		if i > 0 && e.Price != v.Tool.History[i-1].Price {
			v.LastPrice = new(priceDelta(r.lang, v.Tool.History[i-1].Price, e.Price, e.At))
		}
	}
	v.Versions = newVersionHistory(r, v.Tool)
	r.feeds, r.figures, r.structured = []page.Feed{toolFeed(r, v.Tool.Slug, v.Tool.Name)}, []*figure{v.History, v.Market}, v.structured(r)
	return nil
}

// standing is a place in a ranking.
type standing struct {
	Position int
	tool
}

// standings returns the first tools in the ranking of a tool's category, and those beside it.
func (t *tool) standings() (shown []standing) {
	var all []standing
	at := -1
	for i, other := range t.Category.Tools {
		if other.Score == nil {
			break // those that are not tested are last
		}
		position := i + 1
		if i > 0 && *other.Score == *all[i-1].Score {
			position = all[i-1].Position
		}
		all = append(all, standing{position, other})
		if other.Slug == t.Slug {
			at = i
		}
	}
	for i, s := range all {
		if i < maxFirst || at >= 0 && i >= at-1 && i <= at+1 {
			shown = append(shown, s)
		}
	}
	if at < 0 && t.Rank != nil { // after those that the page has read
		shown = append(shown, standing{t.Rank.Position, *t})
	}
	return shown
}

const maxFirst = 7 // of a ranking

// OtherSections returns the sections of the review besides the verdict.
func (t *tool) OtherSections() []string {
	return slices.DeleteFunc(slices.Clone(t.ReviewSections), func(id string) bool { return id == "verdict" })
}

// sections are the titles of the sections that reviews usually have.
var sections = map[string]lang.Message{
	"forces": "Strengths", "limites": "Limitations", "prix": "Price", "methode": "How we tested it", "pour-qui": "Who it is for",
	"prise-en-main": "Getting started", "integrations": "Integrations", "confidentialite": "Privacy", "verdict": "Verdict",
}

// sectionTitle returns the title of a section of a review. One that is not
// listed is named as in the catalog.
func sectionTitle(l lang.Language, id string) template.HTML {
	if title, ok := sections[id]; ok {
		return template.HTML(template.HTMLEscapeString(l.Text(title))) //nolint:gosec // escaped
	}
	name := template.HTMLEscapeString(strings.ReplaceAll(id, "-", " "))
	return template.HTML(`<span ` + string(catalogLang(lang.English)) + `>` + name + `</span>`) //nolint:gosec // escaped
}

func (v *toolView) structured(r *request) any {
	t := v.Tool
	application := object{
		"@type": "SoftwareApplication", "name": t.Name, "description": t.Tagline, "url": r.URL("/tools/" + t.Slug), "sameAs": "https://" + t.Domain,
		"applicationCategory": t.Category.Label, "operatingSystem": "Web",
		"offers": object{"@type": "Offer", "price": t.PriceAmount, "priceCurrency": "EUR", "description": t.Price},
	}
	if t.Score != nil {
		review := object{
			"@type": "Review", "author": object{"@type": "Organization", "name": r.service.ServiceName, "url": r.service.PublicURL}, "datePublished": t.UpdatedAt,
			"reviewRating": object{"@type": "Rating", "ratingValue": *t.Score, "bestRating": highestScore, "worstRating": 0},
		}
		if t.Verdict != "" {
			review["reviewBody"], review["inLanguage"] = t.Verdict, "fr"
		}
		application["review"] = review
	}
	return graphOf(breadcrumbs(r, crumb{r.lang.Text("Tools"), "/tools"}, crumb{t.Category.Label, "/categories/" + t.Category.Slug}, crumb{t.Name, "/tools/" + t.Slug}), application)
}

// Sorts returns the orders of a list of tools; that by relevance needs a search.
func (r *request) Sorts() []string {
	all := []string{relevance, "score_desc", "score_asc", "name_asc", "name_desc", "updated_desc", "updated_asc", "monthly_price_asc", "monthly_price_desc"}
	if r.Param("q") == "" {
		all = all[1:]
	}
	return all
}
