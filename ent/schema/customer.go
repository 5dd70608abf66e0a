package schema

import (
	"time"

	"entgo.io/ent"
	"entgo.io/ent/schema/edge"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"
)

// Customer is an account as the payment provider knows it, and the state of
// its subscription as it was last read there. It outlives the account, since
// its invoices must be kept.
type Customer struct{ ent.Schema }

// Fields of a customer.
func (Customer) Fields() []ent.Field {
	return []ent.Field{
		field.String("id").NotEmpty().Immutable().Comment("The provider's."),
		field.Int("account_id").Optional().Nillable().Unique().
			Comment("None once the account is deleted."),
		field.String("email").Default("").Comment("As the provider knows it; forgotten with the account."),
		field.String("subscription").Default("").Comment("The provider's id of it."),
		field.String("status").Default("").Comment("The provider's word for it."),
		field.Time("period_end").Optional().Nillable(),
		field.Bool("cancels").Default(false).Comment("It ends with its period."),
		field.Time("past_due_since").Optional().Nillable(),
		field.Time("noticed_at").Optional().Nillable().
			Comment("When the owner was told that a payment failed."),
		field.Time("checkout_at").Optional().Nillable().
			Comment("When a page to pay on was last opened."),
		field.Int("revision").Default(0).
			Comment("Goes up with each change, so that nothing older is written over it."),
		field.Time("created_at").Default(time.Now).Immutable(),
		field.Time("read_at").Optional().Nillable().Comment("When the provider was last asked."),
	}
}

// Edges of a customer.
func (Customer) Edges() []ent.Edge {
	return []ent.Edge{
		edge.From("account", Account.Type).Ref("customer").Field("account_id").Unique(),
	}
}

// Indexes of a customer are for those who look for what time alone changes.
func (Customer) Indexes() []ent.Index {
	return []ent.Index{index.Fields("status")}
}
