package schema

import (
	"time"

	"entgo.io/ent"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"
)

// BillingEvent is news of the payment provider that was acted on, so that it
// is not acted on again.
type BillingEvent struct{ ent.Schema }

// Fields of an event.
func (BillingEvent) Fields() []ent.Field {
	return []ent.Field{
		field.String("id").NotEmpty().Immutable().Comment("The provider's."),
		field.String("type").Immutable(),
		field.Time("applied_at").Default(time.Now).Immutable(),
	}
}

// Indexes of an event are for forgetting it in time.
func (BillingEvent) Indexes() []ent.Index {
	return []ent.Index{index.Fields("applied_at")}
}
