package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/schema/edge"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"
)

// Usage is the number of requests that an account made on a day.
type Usage struct{ ent.Schema }

func (Usage) Fields() []ent.Field {
	return []ent.Field{
		field.Int("account_id").Immutable(),
		field.String("day").Immutable().Comment("In UTC, YYYY-MM-DD."),
		field.Int("requests"),
	}
}

func (Usage) Edges() []ent.Edge {
	return []ent.Edge{edge.From("account", Account.Type).Ref("usage").Field("account_id").Unique().Required().Immutable()}
}

func (Usage) Indexes() []ent.Index {
	return []ent.Index{index.Fields("account_id", "day").Unique()}
}
