package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/schema/edge"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"
)

// PriceChange is one entry of a tool's price history. Entries of one tool
// are inserted oldest first, so the id orders those of the same day.
type PriceChange struct{ ent.Schema }

func (PriceChange) Fields() []ent.Field {
	return []ent.Field{
		field.String("tool_slug"),
		field.String("changed_at"),
		field.Enum("pricing").Values(pricingModels...),
		field.String("price"),
		field.Enum("previous_pricing").Values(pricingModels...),
		field.String("previous_price"),
		field.String("digest").Comment("Hash of the change, unique within its tool."),
		sinceRelease(),
	}
}

func (PriceChange) Edges() []ent.Edge {
	return []ent.Edge{edge.From("tool", Tool.Type).Ref("price_changes").Field("tool_slug").Unique().Required()}
}

func (PriceChange) Indexes() []ent.Index {
	return []ent.Index{index.Fields("tool_slug", "digest").Unique().StorageKey("price_changes_once")}
}
