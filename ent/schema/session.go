package schema

import (
	"time"

	"entgo.io/ent"
	"entgo.io/ent/schema/edge"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"
)

// Session is a signed-in browser. Only hashes are stored, so the
// database does not give access to a session.
type Session struct{ ent.Schema }

func (Session) Fields() []ent.Field {
	return []ent.Field{
		field.String("id").NotEmpty().Immutable().Sensitive().
			Comment("SHA-256 of the cookie's value, in hexadecimal."),
		field.Int("account_id").Immutable(),
		field.Time("created_at").Default(time.Now).Immutable(),
		field.Time("expires_at").Immutable(),
		field.String("user_agent").Default("").Immutable().Comment("The browser's User-Agent at sign-in, shortened."),
		field.String("key_id").Optional().Nillable().Unique().
			Comment("The public part of the key that this browser uses to call the API; null until it has one."),
		field.Bytes("key_hash").Optional().Sensitive().
			Comment("SHA-256 of that key's secret part."),
	}
}

func (Session) Edges() []ent.Edge {
	return []ent.Edge{edge.From("account", Account.Type).Ref("sessions").Field("account_id").Unique().Required().Immutable()}
}

func (Session) Indexes() []ent.Index {
	return []ent.Index{index.Fields("account_id"), index.Fields("expires_at")}
}
