package site

import (
	"html/template"
	"net/url"
	"slices"

	"palmares/internal/core/lang"
	"palmares/internal/web/words"
)

// The views are the results of the operations in queries/, as the templates
// show them.

// listOf is a page of a list.
type listOf[T any] struct {
	Items []T
	Meta  pageInfo
}

type retiredToolView struct {
	knownReleases
	RetiredTool, Tool *tool
	Categories        []category
	Versions          versionHistory `json:"-"`
	Lifetime          *lifetime      `json:"-"` // nil if it is unknown
}

func (v *retiredToolView) prepare(r *request) error {
	switch {
	case v.RetiredTool != nil:
		v.Versions = newVersionHistory(r, v.RetiredTool.Slug, v.RetiredTool.Versions, &v.knownReleases, v.Categories)
		v.Lifetime = newLifetime(v.RetiredTool.Versions, v.RetiredTool.RetiredAt)
		return nil
	case v.Tool != nil:
		return redirect(r.Link("/tools/", v.Tool.Slug))
	}
	return r.notFound("There is no retired tool “%s”.", "There was no retired tool “%s” in this release.")
}

type feedInfo struct {
	Release   int
	UpdatedAt string
}

type category struct {
	Slug, Label string
	ToolCount   int
	AvgScore    *float64
	Tools       []tool
}

// tool is an active or a retired tool.
type tool struct {
	Kind, Slug, Name, Tagline, Domain  string // Kind is the type, if tools of both types are selected
	Category                           category
	Pricing, Price, PricePeriod, Icp   string
	PriceAmount                        float64
	MonthlyPrice                       *float64 // nil if it is not paid by the month or year
	Verdict                            string
	ReviewSections                     []string
	Score, Verifiability, Obsolescence *float64
	CanonicalURL, AvisURL              string
	AlternativesURL, UpdatedAt         string
	Tier                               int
	History                            []historyEntry
	Comparisons                        []comparison
	Alternatives                       []tool
	Reason, RetiredAt, Note            string
	Versions                           []version
	Sources                            []source
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
	Slug, Title, WinnerName, WinnerNote string
	ToolA, ToolB                        tool
	Winner                              struct{ Slug string }
	UpdatedAt, CanonicalURL             string
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

// label returns the name of one of the catalog's codes.
func label(l lang.Language, code string) string {
	name, _ := words.Code(l, code)
	return name
}

func isCategory(categories []category, slug string) bool {
	return slices.ContainsFunc(categories, func(c category) bool { return c.Slug == slug })
}

const noScore = "–"

// formatScore shows at least one decimal, so that scores in a column align.
func formatScore(l lang.Language, score *float64) string {
	if score == nil {
		return noScore
	}
	return l.Decimal(*score, 1, 6)
}

func formatAverage(l lang.Language, average *float64) string {
	if average == nil {
		return noScore
	}
	return l.Decimal(*average, 2, 2)
}
