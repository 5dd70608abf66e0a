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
// of the table itself, so that the same query can read earlier releases; see
// docs/design/009-time-travel.md.

// CategoryVersion is a category as earlier releases had it.
type CategoryVersion struct{ version[Category] }

func (CategoryVersion) Annotations() []schema.Annotation { return versionsOf("categories") }

// ToolVersion is a tool as earlier releases had it.
type ToolVersion struct{ version[Tool] }

func (ToolVersion) Annotations() []schema.Annotation { return versionsOf("tools") }

// ComparisonVersion is a comparison as earlier releases had it.
type ComparisonVersion struct{ version[Comparison] }

func (ComparisonVersion) Annotations() []schema.Annotation { return versionsOf("comparisons") }

// SectionVersion is a section as earlier releases had it.
type SectionVersion struct{ version[Section] }

func (SectionVersion) Annotations() []schema.Annotation { return versionsOf("sections") }

// PriceChangeVersion is a price change as earlier releases had it.
type PriceChangeVersion struct{ version[PriceChange] }

func (PriceChangeVersion) Annotations() []schema.Annotation { return versionsOf("price_changes") }

// version is the schema of the earlier rows of another schema.
type version[S interface{ Fields() []ent.Field }] struct{ ent.Schema }

// Fields makes the row's own key an ordinary column, because a row has several
// versions.
func (version[S]) Fields() []ent.Field {
	versions := []ent.Field{
		field.Int("id").StorageKey("version"),
		field.Int("until_release").Comment("The first release that no longer has the row."),
	}
	var schema S
	fields := schema.Fields()
	if hasSlug(fields) {
		return append(append(versions, field.String("slug")), fields[1:]...)
	}
	return append(append(versions, fields...), field.Int("row").StorageKey("id"))
}

// Indexes serve lookups of the versions of a row and of all rows of a release.
func (version[S]) Indexes() []ent.Index {
	var schema S
	key := "tool_slug"
	if hasSlug(schema.Fields()) {
		key = "slug"
	}
	return []ent.Index{index.Fields(key, "since_release"), index.Fields("until_release")}
}

// hasSlug reports whether a schema's key is a slug, which is then its first field.
func hasSlug(fields []ent.Field) bool { return fields[0].Descriptor().Name == "id" }

func versionsOf(table string) []schema.Annotation {
	return []schema.Annotation{entsql.Table(table + "_versions")}
}
