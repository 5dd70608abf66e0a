// Package record declares the catalog's records: their fields, which values a feed
// may contain, where each field is stored, and which fields events show. Every other
// list of fields is derived from these structs.
//
// A field is declared by its struct tags:
//   - json names it in a feed; with omitzero or omitempty it is optional
//   - rule defines which values are valid (see rules.go)
//   - column names its database column, if that differs from the json name; a list
//     without it is stored in another table
//   - event describes it in the event schemas; events omit fields without it
//   - eventname names it in events, if that differs from the json name
//   - label is its name for people, wherever its values are shown; it needs a translation in
//     internal/core/lang/french.json. A rating may have a label for its average in mean
//   - help describes it in the schemas of a feed, if event does not
package record

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"

	"palmares/ent"
	"palmares/ent/schema"
)

// FormatVersion is the version of the feed format. It must match the rule of
// Header.Format.
const FormatVersion = 1

// Header is the first line of a feed.
type Header struct {
	Format    int    `json:"format" rule:"1..1" help:"The version of the feed format."`
	UpdatedAt string `json:"updated_at" rule:"date" help:"The date of the catalog. It must not be earlier than that of the last import."`
}

// Category groups tools.
type Category struct {
	Slug  string `json:"slug" rule:"slug" column:"id" event:"The category's identifier." label:"Slug"`
	Label string `json:"label" rule:"text" event:"The category's name." label:"Name"`

	Translations schema.CategoryTranslations `json:"translations,omitzero" event:"The label in other languages." label:"Translations"`
}

// Tool is an active tool.
type Tool struct {
	Slug            string        `json:"slug" rule:"slug" column:"id" event:"The tool's identifier." label:"Slug"`
	Name            string        `json:"name" rule:"text" event:"The tool's name." label:"Name"`
	Domain          string        `json:"domain" rule:"text" event:"The tool's web domain." label:"Website"`
	Category        string        `json:"category" rule:"slug" column:"category_slug" event:"The slug of the tool's category." label:"Category"`
	ICP             string        `json:"icp" rule:"icp" event:"The audience the tool is made for." label:"Made for"`
	Pricing         string        `json:"pricing" rule:"pricing" event:"The pricing model." label:"Pricing"`
	Price           string        `json:"price" rule:"price" event:"The price as text, such as 20 €/mois." label:"Price"`
	Score           *float64      `json:"score,omitzero" rule:"0..10" event:"The score; null if the tool has not been tested." label:"Score"`
	Verifiability   *float64      `json:"verifiability,omitzero" rule:"0..10" event:"How well the tool's claims can be verified; null if unknown." label:"Verifiability" mean:"Average verifiability"`
	Tagline         string        `json:"tagline" rule:"text" event:"The tool in one sentence." label:"Tagline"`
	CanonicalURL    string        `json:"canonical_url" rule:"url" event:"The tool's page on our site." label:"Overview"`
	AvisURL         *string       `json:"avis_url,omitzero" rule:"url" event:"The page of the full review; null if there is none." label:"Full review"`
	AlternativesURL string        `json:"alternatives_url" rule:"url" event:"The page that lists alternatives." label:"Alternatives"`
	UpdatedAt       string        `json:"updated_at" rule:"date" event:"The day the record last changed." label:"Review date"`
	EndsAt          *string       `json:"ends_at,omitzero" rule:"date" event:"The day on which the tool ends, as announced; null if no end is announced." label:"Announced end"`
	Tier            Tier          `json:"tier,omitzero" rule:"1..3" event:"The tool's importance, from 1 (highest) to 3." label:"Tier"`
	Mainstream      bool          `json:"mainstream,omitzero" event:"Whether the tool is widely used." label:"Widely used"`
	Obsolescence    *float64      `json:"obsolescence,omitzero" rule:"0..10" event:"How outdated the tool is, from 0 (current) to 10 (obsolete); null if it has not been rated." label:"Obsolescence" mean:"Average obsolescence"`
	Sections        []Section     `json:"sections,omitempty" help:"The sections of the review, in their order. In a Markdown file, write them below the front matter." eventname:"sections_hash" label:"Review text"`
	PriceHistory    []PriceChange `json:"price_history,omitempty" help:"Price changes before the first import. Imports record later ones."`

	Translations schema.ToolTranslations `json:"translations,omitzero" event:"The tagline in other languages." label:"Translations"`
	Sources      []Source                `json:"sources,omitempty" column:"sources" event:"Where fields of the tool were checked." label:"Sources"`
}

// Source is where a field of a tool was checked, and when. It is stored with the tool.
type Source = schema.Source

// Section is one part of a tool's review.
type Section struct {
	Section string `json:"section" rule:"text" help:"The section's name, once per tool."`
	Text    string `json:"text" rule:"text" help:"The section's text."`
}

// PriceChange is one entry of a tool's price history.
type PriceChange struct {
	ChangedAt       string `json:"changed_at" rule:"date" event:"The day of the change." label:"Date"`
	Pricing         string `json:"pricing" rule:"pricing" event:"The pricing model." label:"Pricing"`
	Price           string `json:"price" rule:"price" event:"The price as text, such as 20 €/mois." label:"Price"`
	PreviousPricing string `json:"previous_pricing" rule:"pricing" help:"The pricing model before the change."`
	PreviousPrice   string `json:"previous_price" rule:"price" help:"The price before the change."`
}

// Comparison compares two tools, active or retired. Events show the winner's
// name instead of its slug.
type Comparison struct {
	Slug         string    `json:"slug" rule:"slug" column:"id" event:"The comparison's identifier." label:"Slug"`
	Title        string    `json:"title" rule:"text" event:"The comparison's title." label:"Title"`
	ToolA        string    `json:"tool_a" rule:"slug" column:"tool_a_slug" event:"The slug of the first tool." eventname:"tool_a_slug" label:"First tool"`
	ToolB        string    `json:"tool_b" rule:"slug" column:"tool_b_slug" event:"The slug of the second tool." eventname:"tool_b_slug" label:"Second tool"`
	Winner       string    `json:"winner" rule:"slug" column:"winner_slug" event:"The name of the winning tool." help:"The slug of the winning tool: tool_a or tool_b." label:"Winner"`
	WinnerNote   string    `json:"winner_note" rule:"text" event:"Why the winner won." label:"Why it won"`
	Published    Published `json:"published,omitzero" help:"Whether readers see the comparison."`
	UpdatedAt    string    `json:"updated_at" rule:"date" event:"The day the record last changed." label:"Review date"`
	CanonicalURL string    `json:"canonical_url" rule:"url" event:"The comparison's page on our site." label:"Overview"`

	Translations schema.ComparisonTranslations `json:"translations,omitzero" event:"The title and winner_note in other languages." label:"Translations"`
}

// Retired is a retired tool.
type Retired struct {
	Slug      string   `json:"slug" rule:"slug" column:"id" event:"The tool's identifier." label:"Slug"`
	Name      string   `json:"name" rule:"text" event:"The tool's name." label:"Name"`
	Category  string   `json:"category" rule:"slug" column:"category_slug" event:"The slug of the tool's category." label:"Category"`
	Reason    string   `json:"reason" rule:"reason" column:"retired_reason" event:"Why the tool was retired." label:"Reason"`
	RetiredAt string   `json:"retired_at" rule:"date" event:"The day the tool was retired." label:"Retired"`
	Note      string   `json:"note" rule:"text" column:"retired_note" event:"What happened, in one sentence." label:"Note"`
	Score     *float64 `json:"score,omitzero" rule:"0..10" event:"The last score; null if the tool was not tested." label:"Score"`
}

// tables holds the fields of every struct above. An invalid declaration stops
// the program here, before it serves anything.
var tables = map[reflect.Type]*table{
	reflect.TypeFor[Header]():      newTable(reflect.TypeFor[Header](), nil),
	reflect.TypeFor[Category]():    newTable(reflect.TypeFor[Category](), reflect.TypeFor[ent.Category]()),
	reflect.TypeFor[Tool]():        newTable(reflect.TypeFor[Tool](), reflect.TypeFor[ent.Tool]()),
	reflect.TypeFor[Section]():     newTable(reflect.TypeFor[Section](), reflect.TypeFor[ent.Section]()),
	reflect.TypeFor[PriceChange](): newTable(reflect.TypeFor[PriceChange](), reflect.TypeFor[ent.PriceChange]()),
	reflect.TypeFor[Comparison]():  newTable(reflect.TypeFor[Comparison](), reflect.TypeFor[ent.Comparison]()),
	reflect.TypeFor[Retired]():     newTable(reflect.TypeFor[Retired](), reflect.TypeFor[ent.Tool]()),
}

// Tier is a tool's importance, from 1 (highest) to 3.
type Tier int

const defaultTier Tier = 3

// IsZero omits the default from JSON.
func (t Tier) IsZero() bool { return t == defaultTier }

// Published is whether a comparison is visible to readers. The default is true.
type Published bool

// IsZero omits the default from JSON.
func (p Published) IsZero() bool { return bool(p) }

// The types of records, as they appear in a feed.
const (
	TypeFeed       = "feed"
	TypeCategory   = "category"
	TypeTool       = "tool"
	TypeComparison = "comparatif"
	TypeRetired    = "cimetiere"
)

// Types lists the types that lines of a feed after the first may have.
var Types = []string{TypeCategory, TypeTool, TypeComparison, TypeRetired}

// Record is a *Category, *Tool, *Comparison or *Retired.
type Record interface {
	RecordType() string
	RecordSlug() string
}

// New returns an empty record with its defaults.
func New(recordType string) Record {
	switch recordType {
	case TypeCategory:
		return &Category{}
	case TypeTool:
		return &Tool{Tier: defaultTier}
	case TypeComparison:
		return &Comparison{Published: true}
	default:
		return &Retired{}
	}
}

// RecordType returns the type of the record in a feed.
func (*Category) RecordType() string   { return TypeCategory }
func (*Tool) RecordType() string       { return TypeTool }
func (*Comparison) RecordType() string { return TypeComparison }
func (*Retired) RecordType() string    { return TypeRetired }

// RecordSlug returns the slug, which is unique within the type.
func (c *Category) RecordSlug() string   { return c.Slug }
func (t *Tool) RecordSlug() string       { return t.Slug }
func (c *Comparison) RecordSlug() string { return c.Slug }
func (r *Retired) RecordSlug() string    { return r.Slug }

// check reports problems that involve several fields.
func (t *Tool) check(report Reporter) {
	seen := make(map[string]bool, len(t.Sections))
	for i, s := range t.Sections {
		if s.Section != "" && seen[s.Section] {
			report(fmt.Sprintf("sections[%d].section", i), Quote(s.Section)+" is used twice; a tool has each section once")
		}
		seen[s.Section] = true
	}
	sources := make(map[Source]bool, len(t.Sources))
	for i, s := range t.Sources {
		s.CheckedAt = "" // a source that was checked again has the last date only
		if s.Field != "" && s.URL != "" && sources[s] {
			report(fmt.Sprintf("sources[%d].url", i), "is given twice for "+s.Field+"; keep the entry with the last date")
		}
		sources[s] = true
	}
}

func (c *Comparison) check(report Reporter) {
	if c.Winner != "" && c.ToolA != "" && c.ToolB != "" && c.Winner != c.ToolA && c.Winner != c.ToolB {
		report("winner", "must be tool_a or tool_b (got "+Quote(c.Winner)+")")
	}
}

// toolSummary replaces the sections with their hash and omits the price history,
// whose changes have journal entries of their own.
type toolSummary struct {
	*Tool
	SectionsHash string `json:"sections_hash"`
	Sections     any    `json:"sections,omitzero"`
	PriceHistory any    `json:"price_history,omitzero"`
}

// Summary encodes a record for the journal and for its fingerprint.
func Summary(rec Record) []byte {
	if tool, ok := rec.(*Tool); ok {
		return ToolSummary(tool, SectionsHash(tool.Sections))
	}
	return Encode(rec)
}

// ToolSummary is Summary for a tool whose sections are only known by their hash.
func ToolSummary(tool *Tool, sectionsHash string) []byte {
	return Encode(toolSummary{Tool: tool, SectionsHash: sectionsHash})
}

// Fingerprint returns a hash of the content of a record. It depends on the encoding,
// so new fields must be omitted at their default.
func Fingerprint(rec Record) string { return digest(Summary(rec)) }

// Encode encodes one of the program's own types as JSON.
func Encode(v any) []byte {
	data, err := json.Marshal(v, json.Deterministic(true))
	if err != nil {
		panic(err) // records were checked when they were read
	}
	return data
}

// SectionsHash returns the hash of the embeddings document with these sections.
func SectionsHash(sections []Section) string {
	h := sha256.New()
	for _, s := range sections {
		h.Write([]byte(s.Section + "\x00" + s.Text + "\x00"))
	}
	return "sha256-" + hex.EncodeToString(h.Sum(nil))
}

// DocumentMetadata returns a hash of the metadata in the embeddings document of a
// tool.
func DocumentMetadata(t *Tool) string {
	url := t.CanonicalURL
	if t.AvisURL != nil {
		url = *t.AvisURL
	}
	return digest(Encode([]any{t.Name, url, t.Category, t.Score, t.Verifiability, t.UpdatedAt}))
}

// HistoryHash returns the hash of a set of price changes, regardless of their order.
func HistoryHash(history []PriceChange) string {
	if len(history) == 0 {
		return ""
	}
	digests := make([]string, len(history))
	for i, change := range history {
		digests[i] = change.Digest()
	}
	slices.Sort(digests)
	return digest([]byte(strings.Join(slices.Compact(digests), "")))
}

// Digest returns a hash that identifies a price change within its tool.
func (c PriceChange) Digest() string {
	return digest([]byte(strings.Join([]string{c.ChangedAt, c.Pricing, c.Price, c.PreviousPricing, c.PreviousPrice}, "\x00")))
}

// digest returns the first half of the SHA-256 hash.
func digest(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:16])
}
