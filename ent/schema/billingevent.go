package schema

import (
	"time"

	"entgo.io/ent"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"
)

// BillingEvent records a processed event of the payment provider, so that it is
// not processed again.
type BillingEvent struct{ ent.Schema }

func (BillingEvent) Fields() []ent.Field {
	return []ent.Field{
		field.String("id").NotEmpty().Immutable().Comment("The provider's identifier."),
		field.String("type").Immutable(),
		field.Time("applied_at").Default(time.Now).Immutable(),
	}
}

func (BillingEvent) Indexes() []ent.Index {
	return []ent.Index{index.Fields("applied_at")}
}
