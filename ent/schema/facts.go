package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/schema/field"
)

// The types below are stored as JSON. Their tags are explained in package record,
// which uses them in its records.

// CategoryTranslations are texts of a category in other languages than French.
type CategoryTranslations struct {
	En struct {
		Label string `json:"label,omitzero" rule:"text" help:"The category's name."`
	} `json:"en,omitzero" help:"The texts in English."`
}

// ToolTranslations are texts of a tool in other languages than French.
type ToolTranslations struct {
	En struct {
		Tagline string `json:"tagline,omitzero" rule:"text" help:"The tool in one sentence."`
	} `json:"en,omitzero" help:"The texts in English."`
}

// ComparisonTranslations are texts of a comparison in other languages than French.
type ComparisonTranslations struct {
	En struct {
		Title      string `json:"title,omitzero" rule:"text" help:"The comparison's title."`
		WinnerNote string `json:"winner_note,omitzero" rule:"text" help:"Why the winner won."`
	} `json:"en,omitzero" help:"The texts in English."`
}

// Source is where a field of a tool was checked, and when.
type Source struct {
	Field     string `json:"field" rule:"toolfield" help:"The field that was checked."`
	URL       string `json:"url" rule:"url" help:"The page that confirms it."`
	CheckedAt string `json:"checked_at" rule:"date" help:"The day of the check."`
}

// optionalJSON is null for records without a value.
func optionalJSON(name string, value any) ent.Field {
	return field.JSON(name, value).SchemaType(asText).Optional().Immutable()
}
