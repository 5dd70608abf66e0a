package schema

import (
	"time"

	"entgo.io/ent"
	"entgo.io/ent/schema/edge"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"
)

// APIKey is an API key. Only a hash of its secret part is stored, so the
// database does not give access to anything.
type APIKey struct{ ent.Schema }

func (APIKey) Fields() []ent.Field {
	return []ent.Field{
		field.String("id").NotEmpty().Immutable().
			Comment("The public part of the key."),
		field.Int("account_id").Immutable(),
		field.String("name"),
		field.Bytes("secret_hash").Immutable().Sensitive().
			Comment("SHA-256 of the secret part."),
		field.Time("created_at").Default(time.Now).Immutable(),
		field.Time("last_used_at").Optional().Nillable().
			Comment("Written at most once a minute."),
		field.Time("revoked_at").Optional().Nillable(),
	}
}

func (APIKey) Edges() []ent.Edge {
	return []ent.Edge{edge.From("account", Account.Type).Ref("keys").Field("account_id").Unique().Required().Immutable()}
}

func (APIKey) Indexes() []ent.Index {
	return []ent.Index{index.Fields("account_id")}
}
