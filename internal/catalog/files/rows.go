package files

import (
	"math"
	"reflect"
	"time"

	"github.com/go-json-experiment/json"

	"palmares/ent"
	"palmares/internal/catalog/pricing"
)

// The rows of the tables. The tags name the columns of Parquet files and of
// catalog.sqlite, as GraphQL does in camel case: columns that are pointers may be null,
// and "dict" is for texts that many rows share.

// Date is a day, as Parquet counts them: from 1970-01-01.
type Date int32

// String formats the day as YYYY-MM-DD.
func (d Date) String() string { return time.Unix(int64(d)*86400, 0).UTC().Format(time.DateOnly) }

// dateOf parses a day that an import has checked, or returns nil for "".
func dateOf(day string) *Date {
	t, err := time.Parse(time.DateOnly, day)
	if err != nil {
		return nil
	}
	return new(Date(t.Unix() / 86400))
}

type releaseRow struct {
	Number int32 `parquet:"number"`
	Date   Date  `parquet:"date,date"`
}

type categoryRow struct {
	Slug      string   `parquet:"slug"`
	Label     string   `parquet:"label"`
	LabelEn   *string  `parquet:"label_en,optional"`
	ToolCount int32    `parquet:"tool_count"`
	AvgScore  *float64 `parquet:"avg_score,optional"`
}

type toolRow struct {
	Slug            string   `parquet:"slug"`
	Name            string   `parquet:"name"`
	Domain          string   `parquet:"domain"`
	CategorySlug    string   `parquet:"category_slug,dict"`
	IcpCode         string   `parquet:"icp_code,dict"`
	Pricing         string   `parquet:"pricing,dict"`
	Price           string   `parquet:"price,dict"`
	PriceAmount     float64  `parquet:"price_amount"`
	PricePeriod     string   `parquet:"price_period,dict"`
	BillingPeriod   string   `parquet:"billing_period,dict"`
	MonthlyPrice    *float64 `parquet:"monthly_price,optional"`
	Score           *float64 `parquet:"score,optional"`
	Verifiability   *float64 `parquet:"verifiability,optional"`
	Obsolescence    *float64 `parquet:"obsolescence,optional"`
	Tagline         string   `parquet:"tagline"`
	TaglineEn       *string  `parquet:"tagline_en,optional"`
	CanonicalURL    string   `parquet:"canonical_url"`
	AvisURL         *string  `parquet:"avis_url,optional"`
	AlternativesURL string   `parquet:"alternatives_url"`
	UpdatedAt       Date     `parquet:"updated_at,date"`
	Tier            int32    `parquet:"tier"`
	Mainstream      bool     `parquet:"mainstream"`
	HasEmbeddings   bool     `parquet:"has_embeddings"`
	Sources         *string  `parquet:"sources,optional"` // JSON
}

type retiredRow struct {
	Slug         string   `parquet:"slug"`
	Name         string   `parquet:"name"`
	CategorySlug string   `parquet:"category_slug,dict"`
	Reason       string   `parquet:"reason,dict"`
	RetiredAt    Date     `parquet:"retired_at,date"`
	Note         string   `parquet:"note"`
	Score        *float64 `parquet:"score,optional"`
}

type comparisonRow struct {
	Slug         string  `parquet:"slug"`
	Title        string  `parquet:"title"`
	TitleEn      *string `parquet:"title_en,optional"`
	ToolASlug    string  `parquet:"tool_a_slug"`
	ToolBSlug    string  `parquet:"tool_b_slug"`
	WinnerSlug   string  `parquet:"winner_slug"`
	WinnerNote   string  `parquet:"winner_note"`
	WinnerNoteEn *string `parquet:"winner_note_en,optional"`
	UpdatedAt    Date    `parquet:"updated_at,date"`
	CanonicalURL string  `parquet:"canonical_url"`
}

type priceRow struct {
	ToolSlug              string   `parquet:"tool_slug"`
	Position              int32    `parquet:"position"` // place among the changes of the tool, from 0
	ChangedAt             Date     `parquet:"changed_at,date"`
	Pricing               string   `parquet:"pricing,dict"`
	Price                 string   `parquet:"price,dict"`
	Amount                float64  `parquet:"amount"`
	BillingPeriod         string   `parquet:"billing_period,dict"`
	MonthlyPrice          *float64 `parquet:"monthly_price,optional"`
	PreviousPricing       string   `parquet:"previous_pricing,dict"`
	PreviousPrice         string   `parquet:"previous_price,dict"`
	PreviousAmount        float64  `parquet:"previous_amount"`
	PreviousBillingPeriod string   `parquet:"previous_billing_period,dict"`
	PreviousMonthlyPrice  *float64 `parquet:"previous_monthly_price,optional"`
	Direction             *string  `parquet:"direction,optional,dict"`
	Percent               *float64 `parquet:"percent,optional"`
}

type reviewRow struct {
	ToolSlug string `parquet:"tool_slug"`
	Position int32  `parquet:"position"`
	Section  string `parquet:"section,dict"`
	Text     string `parquet:"text"`
}

// historyRow is a tool as it was from one release to another. An active tool has no
// reason, and a retired one only what retiredRow has.
type historyRow struct {
	Slug            string   `parquet:"slug"`
	FirstRelease    int32    `parquet:"first_release"`
	LastRelease     *int32   `parquet:"last_release,optional"` // null if the release of the file has this version
	FirstDate       Date     `parquet:"first_date,date"`
	LastDate        *Date    `parquet:"last_date,date,optional"`
	Active          bool     `parquet:"active"`
	Name            string   `parquet:"name"`
	Domain          *string  `parquet:"domain,optional"`
	CategorySlug    string   `parquet:"category_slug,dict"`
	IcpCode         *string  `parquet:"icp_code,optional,dict"`
	Pricing         *string  `parquet:"pricing,optional,dict"`
	Price           *string  `parquet:"price,optional,dict"`
	PriceAmount     *float64 `parquet:"price_amount,optional"`
	PricePeriod     *string  `parquet:"price_period,optional,dict"`
	BillingPeriod   *string  `parquet:"billing_period,optional,dict"`
	MonthlyPrice    *float64 `parquet:"monthly_price,optional"`
	Score           *float64 `parquet:"score,optional"`
	Verifiability   *float64 `parquet:"verifiability,optional"`
	Obsolescence    *float64 `parquet:"obsolescence,optional"`
	Tagline         *string  `parquet:"tagline,optional"`
	TaglineEn       *string  `parquet:"tagline_en,optional"`
	CanonicalURL    *string  `parquet:"canonical_url,optional"`
	AvisURL         *string  `parquet:"avis_url,optional"`
	AlternativesURL *string  `parquet:"alternatives_url,optional"`
	UpdatedAt       *Date    `parquet:"updated_at,date,optional"`
	Tier            *int32   `parquet:"tier,optional"`
	Mainstream      *bool    `parquet:"mainstream,optional"`
	HasEmbeddings   *bool    `parquet:"has_embeddings,optional"`
	Sources         *string  `parquet:"sources,optional"` // JSON
	ReviewHash      *string  `parquet:"review_hash,optional"`
	Reason          *string  `parquet:"reason,optional,dict"`
	RetiredAt       *Date    `parquet:"retired_at,date,optional"`
	Note            *string  `parquet:"note,optional"`
}

func newCategory(row *ent.Category) categoryRow {
	return categoryRow{
		Slug: row.ID, Label: row.Label, LabelEn: unlessZero(row.Translations.En.Label), ToolCount: int32(row.ToolCount), AvgScore: row.AvgScore, //nolint:gosec // fits into memory
	}
}

func newTool(row *ent.Tool) toolRow {
	period := pricing.Period(row.PricePeriod)
	return toolRow{
		Slug: row.ID, Name: row.Name, Domain: row.Domain, CategorySlug: row.CategorySlug, IcpCode: string(row.Icp),
		Pricing: string(row.Pricing), Price: row.Price, PriceAmount: row.PriceAmount, PricePeriod: row.PricePeriod,
		BillingPeriod: period, MonthlyPrice: number(pricing.Monthly(row.PriceAmount, period)),
		Score: row.Score, Verifiability: row.Verifiability, Obsolescence: row.Obsolescence,
		Tagline: row.Tagline, TaglineEn: unlessZero(row.Translations.En.Tagline), CanonicalURL: row.CanonicalURL, AvisURL: row.AvisURL,
		AlternativesURL: row.AlternativesURL, UpdatedAt: orZero(dateOf(row.UpdatedAt)), Tier: int32(row.Tier), Mainstream: row.Mainstream, //nolint:gosec // 1 to 3
		HasEmbeddings: row.InEmbeddings, Sources: sources(row),
	}
}

func newRetired(row *ent.Tool) retiredRow {
	return retiredRow{
		Slug: row.ID, Name: row.Name, CategorySlug: row.CategorySlug, Reason: string(row.RetiredReason),
		RetiredAt: orZero(dateOf(row.RetiredAt)), Note: row.RetiredNote, Score: row.Score,
	}
}

func newComparison(row *ent.Comparison) comparisonRow {
	return comparisonRow{
		Slug: row.ID, Title: row.Title, TitleEn: unlessZero(row.Translations.En.Title),
		ToolASlug: row.ToolASlug, ToolBSlug: row.ToolBSlug, WinnerSlug: row.WinnerSlug,
		WinnerNote: row.WinnerNote, WinnerNoteEn: unlessZero(row.Translations.En.WinnerNote),
		UpdatedAt: orZero(dateOf(row.UpdatedAt)), CanonicalURL: row.CanonicalURL,
	}
}

func newPrice(row *ent.PriceChange, position int) priceRow {
	before, after := pricing.Read(row.PreviousPrice), pricing.Read(row.Price)
	direction, percent := pricing.Compare(before, after)
	return priceRow{
		ToolSlug: row.ToolSlug, Position: int32(position), ChangedAt: orZero(dateOf(row.ChangedAt)), //nolint:gosec // limited by the length of a line, 1 MiB
		Pricing: string(row.Pricing), Price: row.Price, Amount: after.Amount, BillingPeriod: after.Billing, MonthlyPrice: number(after.Monthly),
		PreviousPricing: string(row.PreviousPricing), PreviousPrice: row.PreviousPrice, PreviousAmount: before.Amount,
		PreviousBillingPeriod: before.Billing, PreviousMonthlyPrice: number(before.Monthly),
		Direction: unlessZero(direction), Percent: percent,
	}
}

func newReview(row *ent.Section) reviewRow {
	return reviewRow{row.ToolSlug, int32(row.Position), row.Section, row.Text} //nolint:gosec // limited by the length of a line, 1 MiB
}

// newVersion converts a row whose releases the caller sets.
func newVersion(row *ent.Tool) historyRow {
	if row.RetiredAt != "" {
		return historyRow{
			Slug: row.ID, Name: row.Name, CategorySlug: row.CategorySlug, Score: row.Score,
			Reason: new(string(row.RetiredReason)), RetiredAt: dateOf(row.RetiredAt), Note: &row.RetiredNote,
		}
	}
	t := newTool(row)
	return historyRow{
		Slug: t.Slug, Active: true, Name: t.Name, Domain: &t.Domain, CategorySlug: t.CategorySlug, IcpCode: &t.IcpCode,
		Pricing: &t.Pricing, Price: &t.Price, PriceAmount: &t.PriceAmount, PricePeriod: &t.PricePeriod,
		BillingPeriod: &t.BillingPeriod, MonthlyPrice: t.MonthlyPrice,
		Score: t.Score, Verifiability: t.Verifiability, Obsolescence: t.Obsolescence,
		Tagline: &t.Tagline, TaglineEn: t.TaglineEn, CanonicalURL: &t.CanonicalURL, AvisURL: t.AvisURL,
		AlternativesURL: &t.AlternativesURL, UpdatedAt: &t.UpdatedAt, Tier: &t.Tier, Mainstream: &t.Mainstream,
		HasEmbeddings: &t.HasEmbeddings, Sources: t.Sources, ReviewHash: &row.SectionsHash,
	}
}

// continues reports whether a version has the same values as the one before it, which
// ended when it began: an import also rewrites rows for what the files do not have.
func (h historyRow) continues(before historyRow) bool {
	if h.Slug != before.Slug || before.LastRelease == nil || *before.LastRelease+1 != h.FirstRelease {
		return false
	}
	before.FirstRelease, before.FirstDate = h.FirstRelease, h.FirstDate
	before.LastRelease, before.LastDate = h.LastRelease, h.LastDate
	return reflect.DeepEqual(h, before)
}

func sources(row *ent.Tool) *string {
	if len(row.Sources) == 0 {
		return nil
	}
	text, err := json.Marshal(row.Sources)
	if err != nil {
		panic(err) // the database has checked it
	}
	return new(string(text))
}

// number returns a number that may be NaN, which stands for none.
func number(n float64) *float64 {
	if math.IsNaN(n) {
		return nil
	}
	return &n
}

func unlessZero[T comparable](value T) *T {
	var zero T
	if value == zero {
		return nil
	}
	return &value
}

func orZero[T any](value *T) (v T) {
	if value != nil {
		v = *value
	}
	return v
}
