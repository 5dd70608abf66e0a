package release

import (
	"math"
	"strconv"
	"strings"

	"palmares/ent"
	"palmares/ent/schema"
	"palmares/ent/tool"
	"palmares/internal/catalog/pricing"
	"palmares/internal/catalog/record"
	"palmares/internal/catalog/search"
)

// Tool is an active or retired tool. Numbers that it does not have are NaN, which
// satisfies no condition.
type Tool struct {
	Slug, Name, NameKey, Category, Domain, Tagline string
	UpdatedAt, RetiredAt, Reason, RetiredNote      string
	Pricing, ICP, Price, PricePeriod               string
	Billing                                        string // the period of its price; "" if it is retired
	CanonicalURL, AlternativesURL, SectionsHash    string
	AvisURL, EndsAt                                *string
	Tier                                           int
	Amount, MonthlyPrice                           float64 // of its price
	Score, Verifiability, Obsolescence             float64
	InEmbeddings, Mainstream                       bool
	Translations                                   schema.ToolTranslations
	Sources                                        []schema.Source
	Since                                          int // the release that wrote it

	searchKey string // its name, as search.Rank compares it
	document  string // a hash of its embeddings document; "" if it is not in the set
}

// Active reports whether a tool is not retired.
func (t *Tool) Active() bool { return t.RetiredAt == "" }

// ReviewURL returns the page with the tool's review.
func (t *Tool) ReviewURL() string {
	if t.AvisURL != nil {
		return *t.AvisURL
	}
	return t.CanonicalURL
}

// monthlyCost returns the price per month, where free tools cost 0 whatever the period of
// their price.
func (t *Tool) monthlyCost() float64 {
	if t.Amount == 0 || t.Pricing == free {
		return 0
	}
	return t.MonthlyPrice
}

// value returns the points of the score for each euro of the price per month; NaN if
// there are none.
func (t *Tool) value() float64 {
	if cost := t.monthlyCost(); cost > 0 {
		return t.Score / cost
	}
	return math.NaN()
}

// Domain returns the domain of a web address, without www.
func Domain(address string) string {
	_, rest, found := strings.Cut(address, "://")
	if !found {
		rest = address
	}
	if end := strings.IndexAny(rest, "/?#:"); end >= 0 {
		rest = rest[:end]
	}
	return strings.TrimPrefix(strings.ToLower(rest), "www.")
}

const free = string(tool.PricingGratuit)

// A field is a value of tools that they are filtered, ordered or grouped by. It is a
// text or a number.
type field struct {
	text   func(*Tool) string
	number func(*Tool) float64
	// optional is set for a number that active tools may lack: they come last in both
	// directions.
	optional bool
	sorted   bool // lists can be ordered by it
	highest  bool // the highest ones only
}

// fields are the fields by name. To order by one, set sorted and add x_asc and x_desc to
// the enum ToolSort of the schema. The program does not start if the schema has an order
// without a field.
var fields = map[string]field{
	"slug":          {text: func(t *Tool) string { return t.Slug }},
	"domain":        {text: func(t *Tool) string { return Domain(t.Domain) }},
	"category":      {text: func(t *Tool) string { return t.Category }},
	"pricing":       {text: func(t *Tool) string { return t.Pricing }},
	"icp":           {text: func(t *Tool) string { return t.ICP }},
	"tier":          {text: func(t *Tool) string { return strconv.Itoa(t.Tier) }},
	"billingPeriod": {text: func(t *Tool) string { return t.Billing }},
	"name":          {text: func(t *Tool) string { return t.NameKey }, sorted: true},
	"updated":       {text: func(t *Tool) string { return t.UpdatedAt }, sorted: true},
	"retired":       {text: func(t *Tool) string { return t.RetiredAt }},
	"score":         {number: func(t *Tool) float64 { return t.Score }, optional: true, sorted: true},
	"verifiability": {number: func(t *Tool) float64 { return t.Verifiability }, optional: true},
	"obsolescence":  {number: func(t *Tool) float64 { return t.Obsolescence }, optional: true},
	"price":         {number: func(t *Tool) float64 { return t.Amount }, sorted: true},
	"monthlyPrice":  {number: func(t *Tool) float64 { return t.MonthlyPrice }, optional: true, sorted: true},
	"monthlyCost":   {number: (*Tool).monthlyCost, optional: true},
	"value":         {number: (*Tool).value, optional: true, sorted: true, highest: true},
}

// tool converts a row. Versions of a tool share the texts that did not change.
func (l *loader) tool(row *ent.Tool) *Tool {
	t := &Tool{
		Slug: l.text(row.ID), Name: l.own(row.Name), NameKey: l.own(row.NameKey), Category: l.text(row.CategorySlug),
		Domain: l.own(row.Domain), Tagline: l.own(row.Tagline),
		UpdatedAt: l.text(row.UpdatedAt), RetiredAt: l.text(row.RetiredAt), Reason: l.text(string(row.RetiredReason)),
		RetiredNote: l.own(row.RetiredNote), Pricing: l.text(string(row.Pricing)), ICP: l.text(string(row.Icp)),
		Price: l.text(row.Price), PricePeriod: l.text(row.PricePeriod),
		CanonicalURL: l.own(row.CanonicalURL), AlternativesURL: l.own(row.AlternativesURL),
		SectionsHash: l.own(row.SectionsHash), AvisURL: row.AvisURL, EndsAt: row.EndsAt,
		Tier: row.Tier, Amount: row.PriceAmount, MonthlyPrice: math.NaN(),
		Score: orNaN(row.Score), Verifiability: orNaN(row.Verifiability), Obsolescence: orNaN(row.Obsolescence),
		InEmbeddings: row.InEmbeddings, Mainstream: row.Mainstream,
		Translations: row.Translations, Sources: row.Sources,
		Since: row.SinceRelease,
	}
	if t.Active() {
		t.Billing = pricing.Period(row.PricePeriod)
		t.MonthlyPrice = pricing.Monthly(row.PriceAmount, t.Billing)
	}
	if row.InEmbeddings {
		t.document = record.DocumentMetadata(record.FromRow[record.Tool](row)) + row.SectionsHash
	}
	t.searchKey = l.own(search.Key(t.NameKey))
	return t
}

func orNaN(number *float64) float64 {
	if number == nil {
		return math.NaN()
	}
	return *number
}
