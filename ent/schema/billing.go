package schema

import (
	"time"

	"entgo.io/ent"
	"entgo.io/ent/schema/edge"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"
)

// Customer is an account at the payment provider, with the state of its
// subscription as last read there. It outlives the account, because its
// invoices must be retained.
type Customer struct{ ent.Schema }

func (Customer) Fields() []ent.Field {
	return []ent.Field{
		field.String("id").NotEmpty().Immutable().Comment("The provider's identifier."),
		field.Int("account_id").Optional().Nillable().Unique().
			Comment("Null once the account is deleted."),
		field.String("email").Default("").Comment("The address at the provider; deleted with the account."),
		field.String("subscription").Default("").Comment("The provider's identifier of the subscription."),
		field.String("status").Default("").Comment("The provider's status of the subscription."),
		field.Time("period_end").Optional().Nillable(),
		field.Bool("cancels").Default(false).Comment("The subscription ends with its period."),
		field.Time("past_due_since").Optional().Nillable(),
		field.Time("notified_at").Optional().Nillable().
			Comment("When the owner was notified of a failed payment."),
		field.Time("checkout_at").Optional().Nillable().
			Comment("When a checkout page was last opened."),
		field.Int("revision").Default(0).
			Comment("Increases with each change, so that stale data cannot overwrite newer data."),
		field.Time("created_at").Default(time.Now).Immutable(),
		field.Time("read_at").Optional().Nillable().Comment("When the subscription was last read from the provider."),
	}
}

func (Customer) Edges() []ent.Edge {
	return []ent.Edge{edge.From("account", Account.Type).Ref("customer").Field("account_id").Unique()}
}

func (Customer) Indexes() []ent.Index {
	return []ent.Index{index.Fields("status")}
}

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
