package feed

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
)

// The types of records, as they are spelled in a feed.
const (
	typeFeed       = "feed"
	typeCategory   = "category"
	typeTool       = "tool"
	typeComparison = "comparatif"
	typeRetired    = "cimetiere"
)

// record is one line of a feed after the first.
type record interface {
	recordType() string
	recordSlug() string
}

// Header is the first line of a feed.
type Header struct {
	Format    int    `json:"format"`
	UpdatedAt string `json:"updated_at"`
}

// Category is a category's record.
type Category struct {
	Slug  string `json:"slug"`
	Label string `json:"label"`
}

// Tool is an active tool's record.
type Tool struct {
	Slug            string        `json:"slug"`
	Name            string        `json:"name"`
	Domain          string        `json:"domain"`
	Category        string        `json:"category"`
	ICP             string        `json:"icp"`
	Pricing         string        `json:"pricing"`
	Price           string        `json:"price"`
	Score           *float64      `json:"score,omitzero"`
	Verifiability   *float64      `json:"verifiability,omitzero"`
	Tagline         string        `json:"tagline"`
	CanonicalURL    string        `json:"canonical_url"`
	AvisURL         *string       `json:"avis_url,omitzero"`
	AlternativesURL string        `json:"alternatives_url"`
	UpdatedAt       string        `json:"updated_at"`
	Tier            Tier          `json:"tier,omitzero"`
	Mainstream      bool          `json:"mainstream,omitzero"`
	Obsolescence    *float64      `json:"obsolescence,omitzero"`
	Sections        []Section     `json:"sections,omitempty"`
	PriceHistory    []PriceChange `json:"price_history,omitempty"`
}

// Tier is a tool's importance, from 1 to 3.
type Tier int

const defaultTier Tier = 3

// IsZero has the default left out where a record is written.
func (t Tier) IsZero() bool { return t == defaultTier }

// Published tells whether a comparison is to be seen; it is by default.
type Published bool

// IsZero has the default left out where a record is written.
func (p Published) IsZero() bool { return bool(p) }

// Section is one part of a tool's review.
type Section struct {
	Section string `json:"section"`
	Text    string `json:"text"`
}

// PriceChange is one entry of a tool's price history.
type PriceChange struct {
	ChangedAt       string `json:"changed_at"`
	Pricing         string `json:"pricing"`
	Price           string `json:"price"`
	PreviousPricing string `json:"previous_pricing"`
	PreviousPrice   string `json:"previous_price"`
}

// Comparison is a comparison's record.
type Comparison struct {
	Slug         string    `json:"slug"`
	Title        string    `json:"title"`
	ToolA        string    `json:"tool_a"`
	ToolB        string    `json:"tool_b"`
	Winner       string    `json:"winner"`
	WinnerNote   string    `json:"winner_note"`
	Published    Published `json:"published,omitzero"`
	UpdatedAt    string    `json:"updated_at"`
	CanonicalURL string    `json:"canonical_url"`
}

// Retired is a retired tool's record.
type Retired struct {
	Slug      string   `json:"slug"`
	Name      string   `json:"name"`
	Category  string   `json:"category"`
	Reason    string   `json:"reason"`
	RetiredAt string   `json:"retired_at"`
	Note      string   `json:"note"`
	Score     *float64 `json:"score,omitzero"`
}

func (*Category) recordType() string   { return typeCategory }
func (*Tool) recordType() string       { return typeTool }
func (*Comparison) recordType() string { return typeComparison }
func (*Retired) recordType() string    { return typeRetired }

func (c *Category) recordSlug() string   { return c.Slug }
func (t *Tool) recordSlug() string       { return t.Slug }
func (c *Comparison) recordSlug() string { return c.Slug }
func (r *Retired) recordSlug() string    { return r.Slug }

// toolSummary is a tool as the journal tells it: long texts are told by their
// hash, and price changes have entries of their own.
type toolSummary struct {
	*Tool
	SectionsHash string `json:"sections_hash"`
	Sections     any    `json:"sections,omitzero"`
	PriceHistory any    `json:"price_history,omitzero"`
}

// summary is what the journal keeps of a record and its fingerprint is made of.
func summary(rec record) []byte {
	if tool, ok := rec.(*Tool); ok {
		return encode(toolSummary{Tool: tool, SectionsHash: SectionsHash(tool.Sections)})
	}
	return encode(rec)
}

// encode writes a value of ours as JSON, with nothing escaped that need not be.
func encode(v any) []byte {
	data, err := json.Marshal(v, json.Deterministic(true))
	if err != nil {
		panic(err) // our own records, checked when they were read: a mistake in the program
	}
	return data
}

// SectionsHash is the hash of an embeddings document with these sections.
func SectionsHash(sections []Section) string {
	h := sha256.New()
	for _, s := range sections {
		for _, part := range []string{s.Section, s.Text} {
			h.Write([]byte(part))
			h.Write([]byte{0})
		}
	}
	return "sha256-" + hex.EncodeToString(h.Sum(nil))
}

// digest shortens any bytes to 128 bits, as text.
func digest(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:16])
}

// digest names a price change within its tool.
func (c PriceChange) digest() string {
	return digest([]byte(strings.Join([]string{c.ChangedAt, c.Pricing, c.Price, c.PreviousPricing, c.PreviousPrice}, "\x00")))
}

// sameStep tells whether two entries go from one price to the same other, on
// whatever day.
func (c PriceChange) sameStep(other PriceChange) bool {
	c.ChangedAt = other.ChangedAt
	return c == other
}

// historyHash is over a set of price changes, in any order.
func historyHash(history []PriceChange) string {
	if len(history) == 0 {
		return ""
	}
	digests := make([]string, len(history))
	for i, change := range history {
		digests[i] = change.digest()
	}
	slices.Sort(digests)
	return digest([]byte(strings.Join(slices.Compact(digests), "")))
}
