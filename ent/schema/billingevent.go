package schema

import (
	"time"

	"entgo.io/ent"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"
)

// BillingEvent is an event of the payment provider that was processed, so that
// it is not processed again.
type BillingEvent struct{ ent.Schema }

// Fields of a billing event.
func (BillingEvent) Fields() []ent.Field {
	return []ent.Field{
		field.String("id").NotEmpty().Immutable().Comment("The provider's identifier."),
		field.String("type").Immutable(),
		field.Time("applied_at").Default(time.Now).Immutable(),
	}
}

// Indexes of a billing event serve the deletion of old ones.
func (BillingEvent) Indexes() []ent.Index {
	return []ent.Index{index.Fields("applied_at")}
}
