package release

import (
	"fmt"
	"hash/maphash"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"palmares/ent"
	"palmares/ent/schema"
	"palmares/ent/tool"
	"palmares/internal/catalog/pricing"
	"palmares/internal/catalog/search"
)

// Tool is an active or retired tool. Numbers that it does not have are NaN, which
// satisfies no condition.
type Tool struct {
	Slug, NameKey, Category, UpdatedAt, RetiredAt string
	Pricing, ICP, Reason                          string
	Billing                                       string // the period of its price; "" if it is retired
	Tier                                          int
	Amount, MonthlyPrice                          float64 // of its price
	Score, Verifiability, Obsolescence            float64
	InEmbeddings                                  bool
	Since                                         int // the release that wrote it

	searchKey string // its name, as search.Rank compares it
	document  uint64 // identifies its embeddings document within this process
	*Details
}

// Details are the values of a tool that only its own fields show. They are in
// memory for the tools of the newest release; WithDetails reads others. Fields have
// the names of columns. One that few tools have is a pointer to the column's type.
type Details struct {
	Name, Domain, Price, PricePeriod, Tagline, CanonicalURL, AlternativesURL, RetiredNote, SectionsHash string
	AvisURL                                                                                             *string
	Mainstream                                                                                          bool
	Translations                                                                                        *schema.ToolTranslations
	Sources                                                                                             *[]schema.Source
}

// Active reports whether a tool is not retired.
func (t *Tool) Active() bool { return t.RetiredAt == "" }

// monthlyCost returns the price per month, where free tools cost 0 whatever the period of
// their price.
func (t *Tool) monthlyCost() float64 {
	if t.Amount == 0 || t.Pricing == free {
		return 0
	}
	return t.MonthlyPrice
}

const free = string(tool.PricingGratuit)

// A field is a value of tools that they are filtered, ordered or grouped by. It has
// one of text, number and flag.
type field struct {
	text   func(*Tool) string
	number func(*Tool) float64
	flag   func(*Tool) bool
	// optional is set for a number that active tools may lack: they come last in both
	// directions.
	optional bool
	sorted   bool // lists can be ordered by it
}

// fields are the fields by name. To filter by one, add its condition to the input
// ToolFilter of the schema: xMin and xMax for numbers, xSince and xBefore for dates,
// its own name for flags, and its plural for a list of texts. To order by it, set
// sorted and add x_asc and x_desc to the enum ToolSort. The program does not start if
// the schema has a condition or an order without a field.
var fields = map[string]field{
	"slug":          {text: func(t *Tool) string { return t.Slug }},
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
	"hasEmbeddings": {flag: func(t *Tool) bool { return t.InEmbeddings }},
}

// tool converts a row, without details.
func (l *loader) tool(row *ent.Tool) *Tool {
	t := &Tool{
		Slug: l.text(row.ID), NameKey: l.text(row.NameKey), Category: l.text(row.CategorySlug),
		UpdatedAt: l.text(row.UpdatedAt), RetiredAt: l.text(row.RetiredAt), Reason: l.text(string(row.RetiredReason)),
		Pricing: l.text(string(row.Pricing)), ICP: l.text(string(row.Icp)), Tier: row.Tier,
		Amount: row.PriceAmount, MonthlyPrice: math.NaN(),
		Score: orNaN(row.Score), Verifiability: orNaN(row.Verifiability), Obsolescence: orNaN(row.Obsolescence),
		InEmbeddings: row.InEmbeddings,
		Since:        row.SinceRelease,
	}
	if t.Active() {
		t.Billing = pricing.Period(row.PricePeriod)
		t.MonthlyPrice = pricing.Monthly(row.PriceAmount, t.Billing)
	}
	t.searchKey = l.text(search.Key(t.NameKey))
	if t.InEmbeddings {
		url := row.CanonicalURL
		if row.AvisURL != nil {
			url = *row.AvisURL
		}
		t.document = maphash.String(documentSeed, strings.Join([]string{
			row.Name, url, row.CategorySlug, row.UpdatedAt, row.SectionsHash,
			strconv.FormatFloat(t.Score, 'g', -1, 64), strconv.FormatFloat(t.Verifiability, 'g', -1, 64),
		}, "\x00"))
	}
	return t
}

var documentSeed = maphash.MakeSeed()

func orNaN(number *float64) float64 {
	if number == nil {
		return math.NaN()
	}
	return *number
}

// replacedColumns are the columns that are read of replaced tools: all that Tool
// needs.
var replacedColumns = slices.DeleteFunc(slices.Clone(tool.Columns), func(column string) bool {
	return slices.Contains([]string{
		tool.FieldDomain, tool.FieldPrice, tool.FieldTagline, tool.FieldAlternativesURL,
		tool.FieldMainstream, tool.FieldRetiredNote, tool.FieldTranslations, tool.FieldSources,
		tool.FieldFingerprint, tool.FieldHistoryHash,
	}, column)
})

// detailColumns are the positions of fields in Details and in a row.
var detailColumns = func() (positions [][2]int) {
	row := reflect.TypeFor[ent.Tool]()
	for i, f := range reflect.VisibleFields(reflect.TypeFor[Details]()) {
		column, ok := row.FieldByName(f.Name)
		if !ok || column.Type != f.Type && reflect.PointerTo(column.Type) != f.Type {
			panic(fmt.Sprintf("release.Details.%s is not a column of tools with the same type", f.Name))
		}
		positions = append(positions, [2]int{i, column.Index[0]})
	}
	return positions
}()

func newDetails(row *ent.Tool) *Details {
	d := &Details{}
	to, from := reflect.ValueOf(d).Elem(), reflect.ValueOf(row).Elem()
	for _, at := range detailColumns {
		field, column := to.Field(at[0]), from.Field(at[1])
		if field.Type() == column.Type() {
			field.Set(column)
		} else if !column.IsZero() {
			field.Set(reflect.New(column.Type()))
			field.Elem().Set(column)
		}
	}
	return d
}
