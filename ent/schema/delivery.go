package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/schema/edge"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"
)

// Delivery is an event to send to an endpoint again at a certain time. Events
// that arrive at the first attempt never have one.
type Delivery struct{ ent.Schema }

func (Delivery) Fields() []ent.Field {
	return []ent.Field{
		field.Int("endpoint_id").Immutable(),
		field.Int("event").Immutable().Comment("Number of the event in the journal."),
		field.Int("attempts").Default(0),
		field.Time("next_at"),
	}
}

func (Delivery) Edges() []ent.Edge {
	return []ent.Edge{edge.From("endpoint", Endpoint.Type).Ref("deliveries").Field("endpoint_id").Unique().Required().Immutable()}
}

func (Delivery) Indexes() []ent.Index {
	return []ent.Index{index.Fields("endpoint_id", "event").Unique(), index.Fields("next_at")}
}
