package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/schema/edge"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"
)

// Section is one part of a tool's review. Embeddings documents consist of
// sections.
type Section struct{ ent.Schema }

func (Section) Fields() []ent.Field {
	return []ent.Field{
		field.String("tool_slug"),
		field.Int("position").NonNegative().Comment("Order within the review, from 0."),
		field.String("section").NotEmpty().Comment("The section's identifier within the review."),
		field.Text("text"),
		sinceRelease(),
	}
}

func (Section) Edges() []ent.Edge {
	return []ent.Edge{edge.From("tool", Tool.Type).Ref("sections").Field("tool_slug").Unique().Required()}
}

func (Section) Indexes() []ent.Index {
	return []ent.Index{index.Fields("tool_slug", "position").Unique().StorageKey("sections_by_tool")}
}
