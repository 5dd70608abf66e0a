package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/schema/edge"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"
)

// Comparison compares two tools, active or retired.
type Comparison struct{ ent.Schema }

func (Comparison) Fields() []ent.Field {
	return []ent.Field{
		slugID(),
		field.String("title").NotEmpty(),
		field.String("tool_a_slug"),
		field.String("tool_b_slug"),
		field.String("winner_slug"),
		field.String("winner_note"),
		field.Bool("published"),
		field.String("updated_at"),
		field.String("canonical_url"),
		fingerprint(),
		sinceRelease(),
	}
}

func (Comparison) Edges() []ent.Edge {
	return []ent.Edge{
		edge.From("tool_a", Tool.Type).Ref("comparisons_as_a").Field("tool_a_slug").Unique().Required(),
		edge.From("tool_b", Tool.Type).Ref("comparisons_as_b").Field("tool_b_slug").Unique().Required(),
		edge.From("winner", Tool.Type).Ref("comparisons_won").Field("winner_slug").Unique().Required(),
	}
}

func (Comparison) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("tool_a_slug").StorageKey("comparisons_by_tool_a"),
		index.Fields("tool_b_slug").StorageKey("comparisons_by_tool_b"),
		index.Fields("winner_slug").StorageKey("comparisons_by_winner"),
	}
}
