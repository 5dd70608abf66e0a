package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/dialect/entsql"
	"entgo.io/ent/schema"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"
)

// ComparisonCategory lists the published comparisons of each category: those
// with either tool in it. Every import writes the list anew; without it, a
// category's page would look at every tool.
type ComparisonCategory struct{ ent.Schema }

// Fields of a line of the list.
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

// Annotations name its table.
func (ComparisonCategory) Annotations() []schema.Annotation {
	return []schema.Annotation{entsql.Annotation{Table: "comparison_categories"}}
}
