package schema

import (
	"time"

	"entgo.io/ent"
	"entgo.io/ent/schema/edge"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"
)

// Confirmation is an email that proves the ownership of an address, by its link
// or by its code, which must be entered in the browser that requested it.
type Confirmation struct{ ent.Schema }

func (Confirmation) Fields() []ent.Field {
	return []ent.Field{
		field.Enum("purpose").Values("sign_in", "change_email").Immutable(),
		field.String("email").NotEmpty().Immutable(),
		field.String("mailbox").NotEmpty().Immutable().
			Comment("The address without its +tag: the mailbox that receives the email."),
		field.String("sender").Immutable().
			Comment("The network that requested it."),
		field.String("wider_sender").Default("").Immutable().
			Comment("The larger network around it: many IPv6 users have several networks."),
		field.Int("account_id").Optional().Nillable().Immutable().
			Comment("The account whose address changes."),
		field.String("link_hash").NotEmpty().Unique().Immutable().Sensitive(),
		field.String("browser_hash").NotEmpty().Unique().Immutable().Sensitive(),
		field.String("code_hash").NotEmpty().Immutable().Sensitive().
			Comment("Keyed with a secret of the browser: a hash of six digits alone is easy to guess."),
		field.Int("tries").Default(0).Comment("How many incorrect codes were entered."),
		field.Time("created_at").Default(time.Now).Immutable(),
		field.Time("expires_at").Immutable(),
		field.Time("used_at").Optional().Nillable(),
	}
}

func (Confirmation) Edges() []ent.Edge {
	return []ent.Edge{edge.From("account", Account.Type).Ref("confirmations").Field("account_id").Unique().Immutable()}
}

func (Confirmation) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("mailbox", "created_at"),
		index.Fields("sender", "created_at"),
		index.Fields("wider_sender", "created_at"),
		index.Fields("created_at"),
		index.Fields("account_id"),
	}
}
