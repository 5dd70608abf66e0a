package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/dialect/entsql"
	"entgo.io/ent/schema"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"
)

// The history of the catalog: rows that a release replaced or removed. Each
// import copies them here first, in its own transaction. The columns are those
// of the table itself, so that a query can read its past; see
// docs/design/009-time-travel.md.

// CategoryVersion is a category as earlier releases had it.
type CategoryVersion struct{ ent.Schema }

// Fields of a version of a category.
func (CategoryVersion) Fields() []ent.Field { return versionFields(Category{}.Fields()) }

// Indexes of a version of a category.
func (CategoryVersion) Indexes() []ent.Index { return versionIndexes("slug") }

// Annotations of a version of a category.
func (CategoryVersion) Annotations() []schema.Annotation { return versionsOf("categories") }

// ToolVersion is a tool as earlier releases had it.
type ToolVersion struct{ ent.Schema }

// Fields of a version of a tool.
func (ToolVersion) Fields() []ent.Field { return versionFields(Tool{}.Fields()) }

// Indexes of a version of a tool.
func (ToolVersion) Indexes() []ent.Index { return versionIndexes("slug") }

// Annotations of a version of a tool.
func (ToolVersion) Annotations() []schema.Annotation { return versionsOf("tools") }

// ComparisonVersion is a comparison as earlier releases had it.
type ComparisonVersion struct{ ent.Schema }

// Fields of a version of a comparison.
func (ComparisonVersion) Fields() []ent.Field { return versionFields(Comparison{}.Fields()) }

// Indexes of a version of a comparison.
func (ComparisonVersion) Indexes() []ent.Index { return versionIndexes("slug") }

// Annotations of a version of a comparison.
func (ComparisonVersion) Annotations() []schema.Annotation { return versionsOf("comparisons") }

// SectionVersion is a section as earlier releases had it.
type SectionVersion struct{ ent.Schema }

// Fields of a version of a section.
func (SectionVersion) Fields() []ent.Field { return versionFields(Section{}.Fields()) }

// Indexes of a version of a section.
func (SectionVersion) Indexes() []ent.Index { return versionIndexes("tool_slug") }

// Annotations of a version of a section.
func (SectionVersion) Annotations() []schema.Annotation { return versionsOf("sections") }

// PriceChangeVersion is a price change as earlier releases had it.
type PriceChangeVersion struct{ ent.Schema }

// Fields of a version of a price change.
func (PriceChangeVersion) Fields() []ent.Field { return versionFields(PriceChange{}.Fields()) }

// Indexes of a version of a price change.
func (PriceChangeVersion) Indexes() []ent.Index { return versionIndexes("tool_slug") }

// Annotations of a version of a price change.
func (PriceChangeVersion) Annotations() []schema.Annotation { return versionsOf("price_changes") }

// versionFields returns the fields of a version. The row's own key is an
// ordinary column, because a row has several versions.
func versionFields(fields []ent.Field) []ent.Field {
	key := field.Int("row").StorageKey("id")
	versions := []ent.Field{
		field.Int("id").StorageKey("version"),
		field.Int("until_release").Comment("The first release that no longer has the row."),
	}
	for _, f := range fields {
		if f.Descriptor().Name == "id" {
			key = nil
			f = field.String("slug")
		}
		versions = append(versions, f)
	}
	if key != nil {
		versions = append(versions, key)
	}
	return versions
}

// versionIndexes finds the versions of a row, and all that a release has.
func versionIndexes(key string) []ent.Index {
	return []ent.Index{index.Fields(key, "since_release"), index.Fields("until_release")}
}

func versionsOf(table string) []schema.Annotation {
	return []schema.Annotation{entsql.Table(table + "_versions")}
}
