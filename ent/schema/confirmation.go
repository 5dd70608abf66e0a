package schema

import (
	"time"

	"entgo.io/ent"
	"entgo.io/ent/schema/edge"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"
)

// Confirmation is a message by which somebody is to show that an address is
// theirs: with its link, or with its code in the browser that asked for it.
type Confirmation struct{ ent.Schema }

// Fields of a confirmation.
func (Confirmation) Fields() []ent.Field {
	return []ent.Field{
		field.Enum("purpose").Values("sign_in", "change_email").Immutable(),
		field.String("email").NotEmpty().Immutable(),
		field.String("mailbox").NotEmpty().Immutable().
			Comment("The address without its +tag: where the message arrives."),
		field.String("sender").Immutable().
			Comment("The network that asked for it."),
		field.String("wider_sender").Default("").Immutable().
			Comment("The network around it: who has an IPv6 address often has many."),
		field.Int("account_id").Optional().Nillable().Immutable().
			Comment("Whose address changes."),
		field.String("link_hash").NotEmpty().Unique().Immutable().Sensitive(),
		field.String("browser_hash").NotEmpty().Unique().Immutable().Sensitive(),
		field.String("code_hash").NotEmpty().Immutable().Sensitive().
			Comment("Keyed with what only the browser knows: six digits alone are soon guessed."),
		field.Int("tries").Default(0).Comment("Codes that were tried."),
		field.Time("created_at").Default(time.Now).Immutable(),
		field.Time("expires_at").Immutable(),
		field.Time("used_at").Optional().Nillable(),
	}
}

// Edges of a confirmation.
func (Confirmation) Edges() []ent.Edge {
	return []ent.Edge{
		edge.From("account", Account.Type).Ref("confirmations").Field("account_id").Unique().Immutable(),
	}
}

// Indexes of a confirmation are for the bounds on messages.
func (Confirmation) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("mailbox", "created_at"),
		index.Fields("sender", "created_at"),
		index.Fields("wider_sender", "created_at"),
		index.Fields("created_at"),
		index.Fields("account_id"),
	}
}
