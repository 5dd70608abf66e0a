package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/schema/edge"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"
)

// Delivery is a pending delivery of an event to an endpoint, usually a retry.
// Events that are delivered on the first attempt have no row.
type Delivery struct{ ent.Schema }

func (Delivery) Fields() []ent.Field {
	return []ent.Field{
		field.Int("endpoint_id").Immutable(),
		field.Int("event").Immutable().Comment("Number of the event in the journal."),
		field.Int("attempts").Default(0),
		field.Time("next_at"),
		field.Int("batch").Default(0).Comment("The number of the first event that was sent in the same request; 0 if the event has not been sent yet."),
		field.Bool("held").Default(false).Comment("Waits for earlier events; next_at is then when the last of them is retried."),
	}
}

func (Delivery) Edges() []ent.Edge {
	return []ent.Edge{edge.From("endpoint", Endpoint.Type).Ref("deliveries").Field("endpoint_id").Unique().Required().Immutable()}
}

func (Delivery) Indexes() []ent.Index {
	return []ent.Index{index.Fields("endpoint_id", "event").Unique(), index.Fields("next_at")}
}
