package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/schema/edge"
	"entgo.io/ent/schema/field"
)

// Category groups tools. Each import recalculates its count and average.
type Category struct{ ent.Schema }

func (Category) Fields() []ent.Field {
	return []ent.Field{
		slugID(),
		field.String("label").NotEmpty(),
		field.Int("tool_count").Default(0).
			Comment("Active tools in the category."),
		field.Float("avg_score").Optional().Nillable().
			Comment("Mean score of its active tools, two decimals; null when none has a score."),
		fingerprint(),
		sinceRelease(),
	}
}

func (Category) Edges() []ent.Edge {
	return []ent.Edge{edge.To("tools", Tool.Type)}
}
