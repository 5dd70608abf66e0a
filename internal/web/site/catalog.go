package site

import "html/template"

// What the operations tell, as the templates show it.

// catalogLang says what language editors write in; the pages around are in
// English. A feed does not tell, but its codes, periods and the credit line
// are French.
const catalogLang template.HTMLAttr = `lang="fr"`

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

type tool struct {
	Slug, Name, Tagline, Domain      string
	Category                         category
	Pricing, Price, PricePeriod, Icp string
	Score, Verifiability             *float64
	Obsolescence                     *float64
	CanonicalURL, AvisURL            string
	AlternativesURL, UpdatedAt       string
	Tier                             int
	History                          []moment
	Comparisons                      []comparison
}

// moment is what a tool cost and scored from one day on.
type moment struct {
	At, Pricing, Price string
	Score              *float64
}

// side is either tool of a comparison, active or retired.
type side struct {
	Kind, Slug, Name, Tagline string
	Category                  category
	Score, Verifiability      *float64
	Price, Pricing            string
	Reason, RetiredAt         string
}

// Path is the tool's page.
func (s side) Path() string {
	if s.Kind == "RetiredTool" {
		return "/cimetiere/" + s.Slug
	}
	return "/tools/" + s.Slug
}

type comparison struct {
	Slug, Title, WinnerName, WinnerNote string
	ToolA, ToolB                        side
	Winner                              struct{ Slug string }
	UpdatedAt, CanonicalURL             string
}

type retired struct {
	Slug, Name, Reason, RetiredAt, Note string
	Score                               *float64
	Category                            category
	Comparisons                         []comparison
}

// place is where a page stands in its list.
type place struct{ Total, Page, Limit, Pages int }

// First is the number of the first item on the page.
func (p place) First() int { return (p.Page-1)*p.Limit + 1 }

// Last is the number of the last one.
func (p place) Last() int { return min(p.Page*p.Limit, p.Total) }

// Prev and Next are the pages beside, or 0. Who is past the end is led back.
func (p place) Prev() int { return min(p.Page-1, p.Pages) }

// Next is the page after this one.
func (p place) Next() int {
	if p.Page >= p.Pages {
		return 0
	}
	return p.Page + 1
}

// wording is how codes of the catalog are said to people.
var wording = map[string]string{
	"gratuit": "free", "freemium": "freemium", "payant": "paid",
	"vibe_coder": "vibe coders", "agentic_engineer": "agentic engineers", "mixte": "both kinds of builders",
	"mort": "shut down", "acquis": "acquired", "deprecie": "discontinued", "pivot": "became something else", "absorbe": "merged into another product",
	"score_desc": "Best score first", "score_asc": "Lowest score first", "name_asc": "Names A to Z", "name_desc": "Names Z to A",
	"updated_desc": "Latest update first", "updated_asc": "Oldest update first", "price_asc": "Lowest amount first", "price_desc": "Highest amount first",
}

// words is a code as people say it; one without words is its own.
func words(code string) string {
	if said, known := wording[code]; known {
		return said
	}
	return code
}
