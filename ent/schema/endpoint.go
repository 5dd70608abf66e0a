package schema

import (
	"time"

	"entgo.io/ent"
	"entgo.io/ent/dialect"
	"entgo.io/ent/dialect/entsql"
	"entgo.io/ent/schema/edge"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"
)

// Endpoint is a URL to which an account has events delivered.
type Endpoint struct{ ent.Schema }

// asText stores JSON as text: encoded JSON cannot be sent to a jsonb column as
// it is.
var asText = map[string]string{dialect.Postgres: "text"}

// Fields of an endpoint.
func (Endpoint) Fields() []ent.Field {
	return []ent.Field{
		field.Int("account_id").Immutable(),
		field.String("url").NotEmpty(),
		field.JSON("types", []string{}).SchemaType(asText).Comment("Types of events to deliver; all if empty."),
		field.JSON("categories", []string{}).SchemaType(asText).Comment("Categories to deliver; all if empty."),
		field.String("secret").NotEmpty().Sensitive().
			Comment("The key that signs events. Signing needs it, so it is stored in plain text."),
		field.String("former_secret").Default("").Sensitive(),
		field.Time("former_until").Optional().Nillable().Comment("Until then, both secrets sign events."),
		field.Enum("state").Values("active", "paused", "disabled").Default("active"),
		field.String("why").Default("").Comment("Why the endpoint was disabled."),
		field.Int("position").Comment("The newest event whose delivery was started."),
		field.Int("failures").Default(0).Comment("Consecutive failed attempts."),
		field.Time("failing_since").Optional().Nillable(),
		field.Time("not_before").Optional().Nillable().Comment("The receiver requested no attempts before this time."),
		field.Bool("untold").Default(false).Comment("The owner has not been notified yet that the endpoint was disabled."),
		field.Time("created_at").Default(time.Now).Immutable(),
	}
}

// Edges of an endpoint.
func (Endpoint) Edges() []ent.Edge {
	return []ent.Edge{
		edge.From("account", Account.Type).Ref("endpoints").Field("account_id").Unique().Required().Immutable(),
		edge.To("deliveries", Delivery.Type).Annotations(entsql.OnDelete(entsql.Cascade)),
		edge.To("attempts", Attempt.Type).Annotations(entsql.OnDelete(entsql.Cascade)),
	}
}

// Indexes of an endpoint.
func (Endpoint) Indexes() []ent.Index {
	return []ent.Index{index.Fields("account_id"), index.Fields("state", "position")}
}
