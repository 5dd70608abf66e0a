package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/dialect/entsql"
	"entgo.io/ent/schema"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"
)

// ComparisonCategory lists the published comparisons of each category: those
// with either tool in it. Every import rewrites the list; without it, reading a
// category's comparisons would scan every tool.
type ComparisonCategory struct{ ent.Schema }

// Fields of an item of the list.
func (ComparisonCategory) Fields() []ent.Field {
	return []ent.Field{
		field.String("category_slug").Immutable(),
		field.String("comparison_slug").Immutable(),
	}
}

// Indexes of the list.
func (ComparisonCategory) Indexes() []ent.Index {
	return []ent.Index{index.Fields("category_slug", "comparison_slug").Unique().StorageKey("comparisons_by_category")}
}

// Annotations of the list: the name of its table.
func (ComparisonCategory) Annotations() []schema.Annotation {
	return []schema.Annotation{entsql.Annotation{Table: "comparison_categories"}}
}
