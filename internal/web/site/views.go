package site

import (
	"encoding/json"
	"html/template"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"

	catalog "palmares/internal/catalog/release"
	"palmares/internal/core/lang"
	"palmares/internal/core/text"
	"palmares/internal/web/words"
)

// The views are the results of the operations in queries/, as the templates
// show them.

// listOf is a page of a list.
type listOf[T any] struct {
	Items []T
	Meta  pageInfo
}

type feedInfo struct {
	Release   int
	UpdatedAt string
}

type category struct {
	Slug, Label, FrenchLabel string
	ToolCount                int
	Tested                   int `json:"-"` // of the active tools; set by countTested
	AvgScore                 *float64
	Tools                    []tool
}

// categoryList is in the order of the labels, which the API only has in French.
type categoryList []category

// UnmarshalJSON reads and sorts the categories of a result.
func (all *categoryList) UnmarshalJSON(result []byte) error {
	err := json.Unmarshal(result, (*[]category)(all))
	slices.SortStableFunc(*all, func(a, b category) int { return strings.Compare(text.Fold(a.Label), text.Fold(b.Label)) })
	return err
}

// countTested counts the tested tools of each category, which the API does not.
func (all categoryList) countTested(shown *catalog.Release) {
	tested := map[string]int{}
	for _, t := range shown.Tools {
		if t.Active() && !math.IsNaN(t.Score) {
			tested[t.Category]++
		}
	}
	for i := range all {
		all[i].Tested = tested[all[i].Slug]
	}
}

// tool is an active or a retired tool.
type tool struct {
	Kind, Slug, Name, Domain           string // Kind is the type, if tools of both types are selected
	Tagline, FrenchTagline             string
	Category                           category
	Pricing, Price, PricePeriod, Icp   string
	PriceAmount                        float64
	MonthlyPrice                       *float64 // nil if it is not paid by the month or year
	Verdict                            string
	ReviewSections                     []string
	Score, Verifiability, Obsolescence *float64
	CanonicalURL, AvisURL              string
	AlternativesURL, UpdatedAt, EndsAt string // EndsAt is "" if no end is announced
	Tier                               int
	History                            []historyEntry
	Comparisons                        []comparison
	Alternatives                       []tool
	Reason, RetiredAt, Note            string
	Versions                           []version
	Sources                            []source
	Rank                               *rank // nil if it has not been tested
}

// toolOf returns what lists of tools in the release have, with the name as pages show it.
func toolOf(t *catalog.Tool) *tool {
	found := &tool{Slug: t.Slug, Name: strings.ReplaceAll(t.Name, "'", "’"), Score: &t.Score, MonthlyPrice: &t.MonthlyPrice}
	if !t.Active() {
		found.Kind = "RetiredTool"
	}
	return found
}

// rank is the place of a tool by score.
type rank struct {
	Position, Of int
	Previous     *int // in the previous edition
}

// Moved returns by how many places the tool has moved since the previous edition.
func (r rank) Moved() (d delta) {
	if r.Previous != nil && *r.Previous != r.Position {
		d = newDelta(*r.Previous-r.Position > 0, strconv.Itoa(max(r.Position-*r.Previous, *r.Previous-r.Position)))
	}
	return d
}

// source is where a field of a tool was checked.
type source struct{ Field, URL, CheckedAt string }

// Host returns the site of the source.
func (s source) Host() string {
	u, err := url.Parse(s.URL)
	if err != nil {
		return ""
	}
	return u.Hostname()
}

// Path returns the path of the tool's page.
func (t tool) Path() string {
	if t.Kind == "RetiredTool" {
		return "/cimetiere/" + t.Slug
	}
	return "/tools/" + t.Slug
}

// historyEntry is the price and score of a tool from a day on.
type historyEntry struct {
	At, Pricing, Price string
	Score              *float64
}

type comparison struct {
	Slug, WinnerName             string
	Title, FrenchTitle           string
	WinnerNote, FrenchWinnerNote string
	ToolA, ToolB                 tool
	Winner                       struct{ Slug string }
	UpdatedAt, CanonicalURL      string
}

// Tools returns both tools.
func (c *comparison) Tools() []tool { return []tool{c.ToolA, c.ToolB} }

type pageInfo struct{ Total, Page, Limit, Pages int }

// First returns the number of the first item on the page.
func (p pageInfo) First() int { return (p.Page-1)*p.Limit + 1 }

// Last returns the number of the last item on the page.
func (p pageInfo) Last() int { return min(p.Page*p.Limit, p.Total) }

// Prev returns the previous page, or 0. For a page past the end, that is the
// last one.
func (p pageInfo) Prev() int { return min(p.Page-1, p.Pages) }

// Next returns the next page, or 0.
func (p pageInfo) Next() int {
	if p.Page >= p.Pages {
		return 0
	}
	return p.Page + 1
}

// catalogLang marks text from the catalog, which is in French, on a page in
// another language.
func catalogLang(l lang.Language) template.HTMLAttr {
	if l == lang.French {
		return ""
	}
	return `lang="fr"`
}

// langOf marks a text on a page in another language if it is the French one, because
// it has no translation.
func langOf(l lang.Language, text, french string) template.HTMLAttr {
	if text != french {
		return ""
	}
	return catalogLang(l)
}

// inFrench says so after a text that is in French on a page in another language.
func inFrench(l lang.Language, texts ...string) template.HTML {
	if l == lang.French || len(texts) == 2 && texts[0] != texts[1] {
		return ""
	}
	return l.HTML(` <span class="in-french">in French</span>`)
}

// onlyFrench reports whether no tagline of a list is in the language of the page. A
// list says so once.
func onlyFrench(l lang.Language, tools []tool) bool {
	return l != lang.French && len(tools) > 1 && !slices.ContainsFunc(tools, func(t tool) bool { return t.Tagline != t.FrenchTagline })
}

// label returns the name of one of the catalog's codes.
func label(l lang.Language, code string) string {
	name, _ := words.Code(l, code)
	return name
}

const noScore = "–"

// formatScore shows at least one decimal, so that scores in a column align.
func formatScore(l lang.Language, score *float64) string { return formatNumber(l, score, 1, 6) }

func formatNumber(l lang.Language, number *float64, least, most int) string {
	if number == nil {
		return noScore
	}
	return l.Decimal(*number, least, most)
}
