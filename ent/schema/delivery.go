package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/schema/edge"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"
)

// Delivery is an event to send to an endpoint later, usually again. Events
// that arrive at the first attempt never have one.
type Delivery struct{ ent.Schema }

func (Delivery) Fields() []ent.Field {
	return []ent.Field{
		field.Int("endpoint_id").Immutable(),
		field.Int("event").Immutable().Comment("Number of the event in the journal."),
		field.Int("attempts").Default(0),
		field.Time("next_at"),
		field.Int("batch").Default(0).Comment("Groups the events that were sent in one request: the number of the first. 0 if the event was not sent yet."),
		field.Bool("held").Default(false).Comment("Waits for earlier events. Then next_at is when the last of them is sent again."),
	}
}

func (Delivery) Edges() []ent.Edge {
	return []ent.Edge{edge.From("endpoint", Endpoint.Type).Ref("deliveries").Field("endpoint_id").Unique().Required().Immutable()}
}

func (Delivery) Indexes() []ent.Index {
	return []ent.Index{index.Fields("endpoint_id", "event").Unique(), index.Fields("next_at")}
}
